"""The cache of an archive, so that nothing is computed or read again: merged statistics, results, known sources.

    kept/VERSION/CONTENT/NAME-KEY-HASH.arrow
    kept/sources.json

VERSION is a digest of the source code that determines what is computed, and of the versions of the software that it
uses (`source_digest`). CONTENT is the content hash of the run, KEY the hash of everything else that the file depends on
(`hash_values`), and HASH the hash of its bytes, an Arrow file of one row. So equal content has equal names, writers
cannot conflict, and the name of a damaged or truncated file does not match: it is computed and written again.

Merged statistics and the results of systems (`scoring.result_tables`) are cached.

A statistic depends on the rows of a run, the reference, and what it was prepared with. The rules of a reference
(`model.trials.RULES`) affect only the statistics that follow them; the rest of a reference affects all. Only
statistics of this package are cached: the version of others is unknown.

sources.json describes the files that the archive was made from, so that unchanged files are not read again. For each
ingested file it has the stamps of the file and of the resources beside it (`places.stamps`), and the systems in the
file with their contents; for each reference, its stamps and its inputs. A file is known if its stamp is the same, the
archive still has its systems with that content, and everything else that determines what is stored is the same: the
name and encoding of the file, the settings that affect or refuse rows, and the source code of the readers. It is not
part of a version, because it does not describe the archive: a file that was only copied or touched needs a new stamp
but no new version. For a file that a night refused, it has the problems, which hold as long as the file, the reference
and the settings are the same. If it is damaged or missing, the files are read again.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import xxhash

from swsdask.archive.encode import depends_on_file_order
from swsdask.archive.reference_tables import COLLECTION, JudgedFiles, ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION, StoredArchive
from swsdask.archive.stored_tables import StoredRun
from swsdask.archive.versions import CACHE, EvaluationManifest, latest
from swsdask.formats.find import ReferenceFiles, resource_places
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.parquet import parts_of
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import ArchiveError, InputError, SwsdaskError
from swsdask.model.hashes import hash_bytes, hash_json, hash_repr, hash_values
from swsdask.model.schemas import RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import RULES, Reference
from swsdask.places.reading import Pipe, local_path
from swsdask.places.stamps import stamps_of
from swsdask.statistics.statistic import Statistic, from_arrow, to_arrow

PACKAGE = Path(__file__).resolve().parents[1]
OF_READING = ("archive", "formats", "kernels", "model", "places")
OF_STATISTICS = ("model", "kernels", "statistics", "archive")
OF_RESULTS = (*OF_STATISTICS, "measures", "scoring")
SOURCES = f"{CACHE}/sources.json"
"""The file of the known sources."""

MOST = 100_000
"""The number of files that are remembered, the latest ones."""

_HASH = "hash"
_ABSENT = "none"
_ENDING = ".arrow"
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_IN_THIS_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""Files are so small that more threads cost more than they save."""


@dataclass
class CacheCounts:
    """The numbers of results that were read and that were computed, and the reason if none can be cached."""

    used: int = 0
    made: int = 0
    fault: str | None = None

    def add(self, other: CacheCounts) -> None:
        """Add the counts of another process."""
        self.used += other.used
        self.made += other.made
        self.fault = self.fault or other.fault


@dataclass(eq=False)
class _List:
    """The files in a folder: those listed on first use, and those added since."""

    storage: Storage
    folder: str

    @cached_property
    def times(self) -> dict[str, float]:
        """The modification time of each file."""
        return self.storage.modified(self.folder)

    @cached_property
    def _by_run(self) -> dict[str, dict[str, str]]:
        """The files of each run by their names without the hash."""
        found: dict[str, dict[str, str]] = {}
        for name in self.times:
            if name.endswith(_ENDING):
                found.setdefault(_folder(name), {})[name.rpartition("-")[0]] = name
        return found

    def beside(self, place: str) -> dict[str, str]:
        """Return the files of the same run as one file, by their names without the hash."""
        return self._by_run.setdefault(_folder(place), {})


@dataclass(eq=False)
class CacheFiles:
    """The cache files of one version.

    At most `most` files of one name remain for a run (None: any number); the oldest are removed. The folder is listed
    once for all copies in a process; each task has a copy.
    """

    storage: Storage
    version: str
    most: int | None = None
    tally: CacheCounts = field(default_factory=CacheCounts)
    _list: _List = field(init=False)
    _row_hashes: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._list = _List(self.storage, f"{CACHE}/{self.version}")

    def anew(self) -> Self:
        """Return a copy with counts of its own."""
        files = copy(self)
        files.tally = CacheCounts()
        return files

    def place(self, run: StoredRun, name: str, key: object) -> str:
        """Return the name, without the hash, of a file that depends on the rows of a run and on a key."""
        system = run.run.system
        if system not in self._row_hashes:
            self._row_hashes[system] = hash_values((run.run.scores, tuple(each.file.hash for each in run.fragments)))
        return f"{CACHE}/{self.version}/{run.run.content}/{name}-{hash_values((self._row_hashes[system], key))}"

    def has(self, place: str) -> bool:
        """Return whether there is a file at a place, damaged or not."""
        return place in self._list.beside(place)

    def read(self, places: Iterable[str]) -> dict[str, pa.RecordBatch]:
        """Return the rows of the places that have a file."""
        wanted = {name: place for place in places if (name := self._list.beside(place).get(place)) is not None}
        found = {}
        for name, content in self.storage.read_all(wanted).items():
            if name.endswith(_suffix_of(content)):
                with suppress(pa.ArrowException, ValueError):  # no file of ours, though its hash is right
                    found[wanted[name]] = pa.ipc.open_file(content, options=_IN_THIS_THREAD).get_batch(0)
        return found

    def write(self, rows: Mapping[str, pa.RecordBatch]) -> None:
        """Write rows to their places. An archive that cannot be written stays unchanged: see `CacheCounts.fault`."""
        contents = {place: _file(row) for place, row in rows.items()}
        names = {place: f"{place}{_suffix_of(content)}" for place, content in contents.items()}
        if self.tally.fault is None:
            try:
                self.storage.write_all({names[place]: content for place, content in contents.items()})
                for place, name in names.items():
                    beside = self._list.beside(place)
                    beside[place] = name
                    for other in [] if self.most is None else self._too_many(place, dict(beside), self.most):
                        self.storage.remove(beside.pop(other, other))
            except ArchiveError as error:
                self.tally.fault = str(error)

    def _too_many(self, place: str, beside: Mapping[str, str], most: int) -> list[str]:
        """The places of the oldest files with the same name, as many as exceed `most`, without `place` itself."""
        series = f"{place.rpartition('-')[0]}-"
        others = [other for other in beside if other != place and other.startswith(series)]
        surplus = max(len(others) + 1 - most, 0)
        return sorted(others, key=lambda other: (self._list.times.get(beside[other], 0.0), beside[other]))[:surplus]


def _suffix_of(content: bytes | pa.Buffer) -> str:
    """Return the suffix of the name of a cache file with this content."""
    return f"-{hash_bytes(content).hex()}{_ENDING}"


def cache_files(storage: Storage) -> list[str]:
    """Return the names of all finished cache files of an archive, including those of other releases."""
    return [name for name in storage.modified(CACHE) if name == SOURCES or name.endswith(_ENDING)]


def cache_fault(name: str, content: bytes | pa.Buffer) -> str | None:
    """Return the fault of a cache file whose content is not what was written; None if there is none."""
    try:
        if (_records(bytes(content)) is not None) if name == SOURCES else name.endswith(_suffix_of(content)):
            return None
    except _UNREADABLE:
        pass
    return "one whose content is not what was written. It is not used, and made again when it is needed: remove it"


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def can_cache(archive: object) -> bool:
    """Return whether an archive can cache results.

    It cannot in memory, nor if read unverified, as damage would be cached.
    """
    return isinstance(archive, StoredArchive) and archive.verification == "on"


def cached_for(contents: Iterable[str]) -> Callable[[str], bool]:
    """Return a test whether this release uses a cache file, for a run with one of these content hashes or for all."""
    runs = list(contents)
    folders = {f"{CACHE}/{source_digest(of)}/{content}" for of in (OF_STATISTICS, OF_RESULTS) for content in runs}
    return lambda name: name == SOURCES or (name.endswith(_ENDING) and _folder(name) in folders)


@cache
def source_digest(packages: tuple[str, ...]) -> str:
    """Return a digest of the source code in some packages, and of the versions of the software that it uses."""
    versions = np.__version__, pa.__version__, metadata.version("numba")
    beneath = (platform.python_version(), platform.machine(), *versions)
    state = xxhash.xxh3_64(" ".join(beneath).encode())
    for package in packages:
        for file in sorted((PACKAGE / package).rglob("*.py")):
            content = file.read_bytes()
            state.update(f"\n{file.relative_to(PACKAGE)} {len(content)}\n".encode() + content)
    return state.hexdigest()


def _file(row: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, row.schema, options=_COMPRESSED) as file:
        file.write_batch(row)
    return sink.getvalue()


ByStatistic = Mapping[type[Statistic], Any]
"""Statistics of one system, or what they are prepared with, by their type."""

_OURS = f"{PACKAGE.name}.statistics."


class CachedStatistics:
    """The statistics in the cache of an archive for one reference."""

    def __init__(self, archive: StoredArchive, reference: Reference) -> None:
        self.files = CacheFiles(archive.storage, source_digest(OF_STATISTICS))
        self._runs = {stored.run.system: stored for stored in archive.stored_runs}
        values = {each.name: getattr(reference, each.name) for each in fields(reference)}
        self._rules = {name: hash_values(values.pop(name)) for name in RULES}
        self._shape = hash_values(values)

    def anew(self) -> Self:
        """Return a copy with counts of its own."""
        statistics = copy(self)
        statistics.files = self.files.anew()
        return statistics

    def read(self, prepared: Mapping[str, ByStatistic]) -> dict[str, dict[type[Statistic], object]]:
        """Return the cached ones among the statistics that are prepared for some systems."""
        wanted = {place: (system, kind) for system, kind, place in self._places(prepared)}
        found: dict[str, dict[type[Statistic], object]] = {system: {} for system in prepared}
        for place, row in self.files.read(wanted).items():
            system, kind = wanted[place]
            with suppress(ValueError):  # no row of this statistic
                found[system][kind] = from_arrow(kind, row)
        self.files.tally.used += sum(map(len, found.values()))
        self.files.tally.made += sum(len(of) - len(found[system]) for system, of in prepared.items())
        return found

    def write(self, prepared: Mapping[str, ByStatistic], found: Mapping[str, ByStatistic]) -> None:
        """Cache the statistics `found`, which were prepared as `prepared`."""
        places = ((system, kind, place) for system, kind, place in self._places(prepared) if kind in found[system])
        self.files.write({place: to_arrow(found[system][kind]) for system, kind, place in places})

    def _places(self, prepared: Mapping[str, ByStatistic]) -> Iterator[tuple[str, type[Statistic], str]]:
        """Yield the system, type and place of every statistic that may be cached."""
        for system, of in prepared.items():
            for kind, given in of.items():
                if kind.__module__.startswith(_OURS):
                    rules = tuple(self._rules[name] for name in getattr(kind, "follows", ()))
                    yield system, kind, self.files.place(self._runs[system], kind.__name__, (self._shape, rules, given))


def cached_statistics_of(archive: object, reference: Reference) -> CachedStatistics | None:
    """Return the cached statistics of an archive for a reference; None where none can be cached."""
    return CachedStatistics(archive, reference) if isinstance(archive, StoredArchive) and can_cache(archive) else None


@dataclass(eq=False)
class KnownSources:
    """The files that an archive knows.

    Parameters
    ----------
    storage : Storage
        The storage of the archive.
    settings, encoding : EvaluationSettings, Encoding
        The settings and the encoding with which files are read now.
    contents, inputs : dict of str to str
        The content of each system, and the inputs, of the archive.
    records : dict of str to dict
        The record of each file, by the name of the file.
    """

    storage: Storage
    settings: EvaluationSettings
    encoding: Encoding
    contents: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, object]] = field(default_factory=dict)
    _stamps: dict[str, str] = field(default_factory=dict)
    _reference: str | None = None
    _grows: str | None = None

    def systems(self, run: RunSource) -> dict[str, str]:
        """The systems of a file that need not be read, with their contents; empty for a file that must be read."""
        self.look([run])
        found: dict[str, str] = self._record(self._name(run.file, run.system)).get("systems", {})
        return found if found.items() <= self.contents.items() else {}

    def parted(self, runs: Sequence[RunFile]) -> tuple[list[RunFile], list[RunFile]]:
        """Part files into those that must be read, and the others."""
        self.look(runs)
        unread: list[RunFile] = []
        unknown: list[RunFile] = []
        for run in runs:
            (unread if self.systems(run) else unknown).append(run)
        return unknown, unread

    def look(self, runs: Iterable[RunSource]) -> None:
        """Get the stamps of files that do not have one yet, all at once."""
        files = {name: run.file for run in runs if (name := self._name(run.file, run.system)) not in self._stamps}
        places = {name: [*(parts_of(file) or [file]), *resource_places(file)] for name, file in files.items()}
        stamps = _stamps(place for each in places.values() for place in each)
        self._stamps |= {name: _join_stamps(each, stamps) for name, each in places.items()}

    def among(self, files: Iterable[str]) -> list[str]:
        """Select the known files, which need not be read."""
        return [run.file for run in self.parted([RunFile(file) for file in files])[1]]

    def has_reference(self, files: ReferenceFiles | JudgedFiles | ReferenceTables) -> bool:
        """Return whether the archive was made of these files and they did not change. False for tables in memory."""
        places = [place for place in vars(files).values() if isinstance(place, str)]
        if not places:
            return False
        self._grows = COLLECTION if isinstance(files, JudgedFiles) else None
        self._reference = self._name(places[0], *map(_absolute, places[1:]))
        self._stamps[self._reference] = _join_stamps(places, _stamps(places))
        return bool(self.inputs) and self._record(self._reference).get("inputs") == self._lasting(self.inputs)

    def _lasting(self, inputs: Mapping[str, str]) -> dict[str, str]:
        """Return the inputs without the growing one."""
        return {role: content for role, content in inputs.items() if role != self._grows}

    def remember(self, read: Mapping[tuple[str, str | None], dict[str, str]], inputs: dict[str, str]) -> None:
        """Remember the contents of the systems of each file, under its given name, and the inputs of the reference.

        Nothing is remembered if the archive cannot be written.
        """
        found: dict[str, dict[str, object]] = {
            self._name(*file): {"systems": systems} for file, systems in read.items()
        }
        if self._reference is not None:
            found[self._reference] = {"inputs": self._lasting(inputs)}
        self._write(found)

    def refused(self, run: RunSource) -> tuple[str, ...]:
        """Return the remembered problems of a file, if the file, the reference and the settings have not changed."""
        self.look([run])
        record = self._record(self._name(run.file, run.system))
        return tuple(record["refused"]) if record.get("checked_by") == self._checked_by else ()

    def remember_refused(self, problems: Mapping[RunSource, Sequence[str]]) -> None:
        """Remember the problems of files that were refused, unless the archive cannot be written."""
        self._write(
            {
                self._name(run.file, run.system): {"refused": [*own], "checked_by": self._checked_by}
                for run, own in problems.items()
            }
        )

    def _write(self, found: Mapping[str, Mapping[str, object]]) -> None:
        news = {
            name: record
            for name, known in found.items()
            if name in self._stamps and (record := {"stamp": self._stamps[name], **known}) != self.records.get(name)
        }
        if news:
            others = {name: record for name, record in _read_records(self.storage).items() if name not in news}
            records = dict([*others.items(), *news.items()][-MOST:])
            with suppress(ArchiveError):
                content = json.dumps({"sources": records, _HASH: hash_json(records)})
                self.storage.replace(SOURCES, content.encode())

    @cached_property
    def _checked_by(self) -> str:
        """The hash of the reference and the settings that files are checked against."""
        return hash_values((self.inputs, self.settings.model_dump()))

    def _record(self, name: str) -> dict[str, Any]:
        """Return the record of a file, if its stamp is the same."""
        record = self.records.get(name, {})
        return record if record.get("stamp") == self._stamps[name] else {}

    def _name(self, file: str, *named: str | None) -> str:
        """Return the name of a file in the records, from its place and its given name or names.

        The URL itself is not stored, because it may contain secrets.
        """
        return hash_repr((self._read_as, _absolute(file), named))

    @cached_property
    def _read_as(self) -> str:
        """The hash of everything else that determines what is stored of a file."""
        settings = self.settings
        shaped = (
            settings.compat,
            depends_on_file_order(settings),
            settings.unknown_queries,
            settings.unknown_documents,
        )
        return hash_values((source_digest(OF_READING), shaped, repr(self.encoding)))


def known_sources(
    storage: Storage, settings: EvaluationSettings, encoding: Encoding, *, rehash: bool = False
) -> KnownSources:
    """Return the known sources of the newest version; none without a version, or if all files are to be read anew."""
    manifest = None if rehash else latest(storage, EvaluationManifest)[0]
    if manifest is None:
        return KnownSources(storage, settings, encoding)
    runs = EVALUATION.entries(storage, manifest)
    contents = {system: EVALUATION.content(run) for system, run in runs.items()}
    return KnownSources(storage, settings, encoding, contents, manifest.inputs, _read_records(storage))


_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)


def _read_records(storage: Storage) -> dict[str, dict[str, object]]:
    with suppress(OSError, SwsdaskError, *_UNREADABLE):
        return _records(storage.read(SOURCES)) or {}
    return {}


def _records(content: bytes) -> dict[str, dict[str, object]] | None:
    """Return the records of a file `SOURCES`; None if its hash differs. Raises errors that are `_UNREADABLE`."""
    stored = json.loads(content)
    records: dict[str, dict[str, object]] = stored["sources"]
    return records if hash_json(records) == stored[_HASH] else None


def _stamps(places: Iterable[str]) -> dict[str, str]:
    """Return the stamps of files.

    Pipes have none, nor have files of a storage that cannot be listed: reading says why.
    """
    try:
        return stamps_of(place for place in places if not isinstance(place, Pipe))
    except InputError:
        return {}


def _join_stamps(places: Sequence[str], stamps: Mapping[str, str]) -> str:
    """Return the stamps of a file and of others, which may be absent."""
    return "; ".join(stamps.get(place, _ABSENT) for place in places)


def _absolute(place: str) -> str:
    path = local_path(place)
    return place if path is None else os.path.abspath(path)
