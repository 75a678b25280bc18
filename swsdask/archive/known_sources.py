"""What an archive knows of the files that it was made from: files that did not change are not read again.

    kept/sources.json

For each file that was ingested it has the stamp (`places.reading`), of the resources beside it too, and which systems
of which content the file had; for each reference its stamps and its inputs. A file is known if its stamp is the same,
the archive still has its systems with that content, and whatever else decides what is stored is the same: how the file
is named and encoded, the settings that shape rows or refuse them, and the sources of the readers. It is no part of a
version, for it says nothing of the archive: a file that was only copied or touched needs a new stamp and no new
version. What is damaged or not there is read again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import xxhash

from swsdask.archive.encode import counts
from swsdask.archive.kept_statistics import OF_READING, SOURCES, digest_of, version
from swsdask.archive.reference_tables import JudgedFiles, ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION
from swsdask.archive.versions import EvaluationManifest, latest, own_hash
from swsdask.formats.find import ReferenceFiles, resource_places
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import ArchiveError, InputError
from swsdask.model.schemas import RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.places.reading import Pipe, local_path, stamps_of

_HASH = "hash"
_ABSENT = "none"
MOST = 100_000
"""How many files are remembered: the latest."""


@dataclass(eq=False)
class KnownSources:
    """The files that an archive knows.

    Parameters
    ----------
    storage : Storage
        The archive's.
    settings, encoding : EvaluationSettings, Encoding
        Those by which files are read now.
    contents, inputs : dict of str to str
        The content of each system, and the inputs, that the archive has.
    records : dict of str to dict
        What was found in each file, by what the file is called.
    """

    storage: Storage
    settings: EvaluationSettings
    encoding: Encoding
    contents: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, object]] = field(default_factory=dict)
    _stamps: dict[str, str] = field(default_factory=dict)
    _reference: str | None = None

    def systems(self, run: RunSource) -> dict[str, str]:
        """The systems of a file that need not be read, with their contents; none of one that must be."""
        self.look([run])
        found: dict[str, str] = self._record(self._name(run.file, run.system)).get("systems", {})
        return found if found.items() <= self.contents.items() else {}

    def parted(self, runs: Sequence[RunFile]) -> tuple[list[RunFile], list[RunFile]]:
        """Those of some files that must be read, and the others."""
        self.look(runs)
        unread: list[RunFile] = []
        unknown: list[RunFile] = []
        for run in runs:
            (unread if self.systems(run) else unknown).append(run)
        return unknown, unread

    def look(self, runs: Iterable[RunSource]) -> None:
        """Take the stamps of files that were not looked at before, all at once."""
        files = {name: run.file for run in runs if (name := self._name(run.file, run.system)) not in self._stamps}
        places = {name: [file, *resource_places(file)] for name, file in files.items()}
        stamps = _stamps(place for each in places.values() for place in each)
        self._stamps |= {name: _joined(each, stamps) for name, each in places.items()}

    def among(self, files: Iterable[str]) -> list[str]:
        """Those of some files that need not be read."""
        return [run.file for run in self.parted([RunFile(file) for file in files])[1]]

    def has_reference(self, files: ReferenceFiles | JudgedFiles | ReferenceTables) -> bool:
        """Whether the archive was made of these files, and they did not change; not of tables in memory."""
        if isinstance(files, ReferenceTables):
            return False
        places = [place for place in vars(files).values() if isinstance(place, str)]
        if isinstance(files, JudgedFiles):
            if len(places) != 1:
                return False
            places += [run.file for run in files.runs]
        self._reference = self._name(places[0], *map(_absolute, places[1:]))
        self._stamps[self._reference] = _joined(places, _stamps(places))
        return bool(self.inputs) and self._record(self._reference).get("inputs") == self.inputs

    def remember(self, read: Mapping[tuple[str, str | None], dict[str, str]], inputs: dict[str, str]) -> None:
        """Keep the contents of the systems of each file, under its given name, and the inputs of the reference.

        Nothing is kept where the archive cannot be written.
        """
        found: dict[str, dict[str, object]] = {
            self._name(*file): {"systems": systems} for file, systems in read.items()
        }
        if self._reference is not None:
            found[self._reference] = {"inputs": inputs}
        news = {
            name: record
            for name, said in found.items()
            if name in self._stamps and (record := {"stamp": self._stamps[name], **said}) != self.records.get(name)
        }
        if news:
            others = {name: record for name, record in _read(self.storage).items() if name not in news}
            records = dict([*others.items(), *news.items()][-MOST:])
            with suppress(ArchiveError):
                content = json.dumps({"sources": records, _HASH: own_hash(records)})
                self.storage.replace(SOURCES, content.encode())

    def _record(self, name: str) -> dict[str, Any]:
        """What was found in a file, if its stamp is the same."""
        record = self.records.get(name, {})
        return record if record.get("stamp") == self._stamps[name] else {}

    def _name(self, file: str, *named: str | None) -> str:
        """What a file is called here, by its place and its name, or others.

        A URL itself, which may have secrets, is not kept.
        """
        return xxhash.xxh3_128_hexdigest(repr((self._read_as, _absolute(file), named)).encode())

    @cached_property
    def _read_as(self) -> str:
        """The hash of all else that decides what is stored of a file."""
        settings = self.settings
        shaped = (settings.compat, counts(settings), settings.unknown_queries, settings.unknown_documents)
        return digest_of((version(OF_READING), shaped, repr(self.encoding)))


def known_sources(
    storage: Storage, settings: EvaluationSettings, encoding: Encoding, *, rehash: bool = False
) -> KnownSources:
    """What an archive knows, in its newest version; nothing if there is none, or if everything is to be read anew."""
    manifest = None if rehash else latest(storage, EvaluationManifest)[0]
    if manifest is None:
        return KnownSources(storage, settings, encoding)
    runs = EVALUATION.entries(storage, manifest)
    contents = {system: EVALUATION.content(run) for system, run in runs.items()}
    return KnownSources(storage, settings, encoding, contents, manifest.inputs, _read(storage))


def _read(storage: Storage) -> dict[str, dict[str, object]]:
    with suppress(OSError, ArchiveError, InputError, ValueError, TypeError, KeyError, RecursionError):
        said = json.loads(storage.read(SOURCES))
        records: dict[str, dict[str, object]] = said["sources"]
        if own_hash(records) == said[_HASH]:
            return records
    return {}


def _stamps(places: Iterable[str]) -> dict[str, str]:
    """The stamps of files; none of pipes, nor where a storage cannot be listed: reading says why."""
    try:
        return stamps_of(place for place in places if not isinstance(place, Pipe))
    except InputError:
        return {}


def _joined(places: Sequence[str], stamps: Mapping[str, str]) -> str:
    """The stamps of a file and of others, which may be absent."""
    return "; ".join(stamps.get(place, _ABSENT) for place in places)


def _absolute(place: str) -> str:
    path = local_path(place)
    return place if path is None else os.path.abspath(path)
