"""Opening an evaluation: what runs are scored against, and the settings that say how."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from swsdask.api.arguments import Location, Runs, named_runs, run_files
from swsdask.api.writing import differences
from swsdask.archive.memory import JudgedFiles, MemoryArchive, read_reference
from swsdask.archive.protocols import Archive
from swsdask.archive.store import is_archive, open_archive
from swsdask.formats.reference.files import ReferenceFiles, find_reference
from swsdask.model.errors import SettingsError, counted
from swsdask.model.layers import Layers, Override, Settled
from swsdask.model.settings import Settings, load_preset


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What runs are scored against: an archive (or a reference in memory) and settings."""

    archive: Archive
    settings: Settings
    files: ReferenceFiles | None = field(default=None, repr=False)
    """Where the reference was read from, unless it is an archive's."""
    overridden: tuple[Override, ...] = field(default=(), repr=False)
    """The settings that are not as the archive keeps them."""
    notes: tuple[str, ...] = field(default=(), repr=False)
    """What a reader must be told of the settings."""

    @classmethod
    def of(cls, archive: Archive, settled: Settled, files: ReferenceFiles | None = None) -> Self:
        """An evaluation with the settings that are settled for it."""
        return cls(archive, settled.settings, files, settled.overridden, settled.notes)

    def __repr__(self) -> str:
        excerpts, queries = self.archive.documents.num_rows, self.archive.queries.num_rows
        held = f"{counted(excerpts, 'excerpts')}, {counted(queries, 'queries')}, {counted(len(self.systems), 'runs')}"
        return f"<Evaluation: {held}; {differences(self.settings)}>"

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose runs the archive holds."""
        return tuple(run.system for run in self.archive.runs)


def open(  # noqa: A001
    source: Location | None = None,
    *,
    ecf: Location | None = None,
    rttm: Location | None = None,
    queries: Location | None = None,
    qrels: Location | None = None,
    collection: Runs = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: Mapping[str, Any] | None = None,
    version: int | None = None,
) -> Evaluation:
    """Open an evaluation: an archive or a reference directory (path or URL), or the three files of a reference.

    Or judgments of documents, `qrels`: TREC's or a table with query, document and relevance. `collection` are runs
    whose documents are of the collection whether they were judged or not: give it all runs that are to be scored.

    `settings` is shaped as a settings file, e.g. {"evaluation": {"trials": "segment"}}; it wins over `compat`, which
    wins over `preset`. An archive has the settings that it was made with: a `preset` given here replaces them, `compat`
    and `settings` go on top, and the evaluation's `notes` say what that changes. `version` is a version of an archive.
    Raises `InputError` with everything that is wrong with the reference files, `SettingsError`, `ArchiveError`.
    """
    layers = layers_of(preset, compat, settings, judged=qrels is not None)
    if source is not None and qrels is None and is_archive(os.fspath(source)):
        archive = open_archive(os.fspath(source), version)
        return Evaluation.of(archive, Settled.of_archive(layers, archive.kept))
    settled = Settled.of_files(layers)
    if qrels is not None:
        judged = judged_files(qrels, collection, (source, ecf, rttm, queries, version))
        return Evaluation.of(MemoryArchive(read_reference(judged), (), {}), settled)
    if version is not None:
        raise SettingsError(f"version={version} goes with an archive; {source} is none.")
    files = reference_files(source, ecf, rttm, queries)
    return Evaluation.of(MemoryArchive(read_reference(files), (), {}), settled, files)


def layers_of(
    preset: str | None, compat: str | None, explicit: Mapping[str, Any] | None, *, judged: bool = False
) -> Layers:
    """The layers of settings that are given. Raises `SettingsError` for an unknown preset."""
    return Layers(load_preset(preset) if preset else None, compat, explicit or {}, judged)


def judged_files(qrels: Location, runs: Runs, others: Iterable[Any]) -> JudgedFiles:
    """Judgments as a reference, with the runs of its collection. Raises `SettingsError` where `others` are given."""
    if any(other is not None for other in others):
        raise SettingsError("qrels are a whole reference: give no other one beside them.")
    return JudgedFiles(os.fspath(qrels), tuple(file.url for file in run_files(named_runs(runs))))


def reference_files(
    source: Location | None, ecf: Location | None, rttm: Location | None, queries: Location | None
) -> ReferenceFiles:
    """The files of a reference, by its folder or by name. Raises `SettingsError` unless it is one or the other."""
    if source is not None and not any((ecf, rttm, queries)):
        return find_reference(os.fspath(source))
    if source is None and ecf and rttm and queries:
        return ReferenceFiles(os.fspath(ecf), os.fspath(rttm), os.fspath(queries))
    raise SettingsError("Give a reference directory, or all three of ecf, rttm and queries.")
