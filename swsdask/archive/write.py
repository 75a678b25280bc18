"""Writing of an archive: one change, committed whole or not at all.

Writing runs into an archive: each call makes one committed version, or leaves everything as it was.

Two phases, in memory that does not grow with the runs: rows are read, coded and spilled by bucket of their query; then
each share of buckets is sorted and written. Free space of about 30 bytes per detection is needed beside the archive
while it runs. A writer that stops at any moment leaves the version that was there; `archive.store.vacuum` removes the
files it left.

Changing an archive: the reference it begins with, and runs that are added, as one committed version.

A writer that loses a race reads again and tries on top of what won, as long as the two do not contradict each other.

Reading files into an archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from swsdask.archive.encode import Codes, Tally, encode
from swsdask.archive.fragments import (
    Fragment,
    FragmentWriter,
    Share,
    SpillFile,
    StoredRun,
    from_table,
    shares,
    spill,
    temporary_folder,
    to_table,
)
from swsdask.archive.memory import RunFile, read_reference, sources_of
from swsdask.archive.occurrences import find_occurrences, finder_of
from swsdask.archive.protocols import Run
from swsdask.archive.reference_tables import JudgedFiles, ReferenceTables
from swsdask.archive.rows import joined
from swsdask.archive.sources import FileOrder, file_order, note_claims
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive
from swsdask.archive.versions import (
    BUCKETS,
    Layout,
    Manifest,
    buckets_of,
    check_same_settings,
    commit,
    latest,
    table_name,
)
from swsdask.execution.executor import Executor, run_tasks
from swsdask.formats.in_memory import TableRun
from swsdask.formats.reference.files import ReferenceFiles
from swsdask.model.errors import ArchiveError, ExecutionError, Problems, counted
from swsdask.model.finding import FindRule
from swsdask.model.layers import Layers
from swsdask.model.schemas import RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64, Detections


class Change:
    """What a writer wants of an archive, and what was there when it began: `base`, or tables to make one of."""

    def __init__(
        self,
        storage: Storage,
        base: Manifest,
        made_of: Mapping[str, pa.Table] | None = None,
        *,
        replace: bool,
        keep: Layers | None = None,
        change_settings: bool = False,
    ) -> None:
        self.storage = storage
        self.base = base
        self.made_of = made_of
        self.replace = replace
        self.keep = keep
        self.change_settings = change_settings
        self.before = {system: stored.run.content for system, stored in _runs(storage, base).items()}

    @classmethod
    def begin(
        cls,
        storage: Storage,
        tables: ReferenceTables | None,
        settings: EvaluationSettings,
        layout: Layout,
        *,
        replace: bool,
        keep: Layers | None = None,
        change_settings: bool = False,
    ) -> Change:
        """Begin with the archive that is there, or with a new one of `tables`, of which nothing is written yet.

        `keep` are the settings that a new archive keeps, and one that is there if `change_settings`. Raises
        `ArchiveError` if the archive there has another reference, keeps other settings or has other buckets than the
        layout asks for, if there is neither, or where the storage cannot be written safely.
        """
        storage.check_writable()
        base, _ = latest(storage, Manifest.from_json)
        if base is not None:
            if tables is not None:
                _check_same_reference(storage, base.inputs, tables.inputs)
            if not change_settings:
                check_same_settings(storage, base.kept, keep)
            if layout.buckets not in (None, base.buckets):
                raise ArchiveError(
                    f"{storage.url}: expected {counted(base.buckets, 'query buckets')}, which this archive was made "
                    f"with; found {layout.buckets}. Leave that out, or make another archive."
                )
            return cls(storage, base, replace=replace, keep=keep, change_settings=change_settings)
        if tables is None:
            raise ArchiveError(
                f"{storage.url}: expected an archive; found none. Give ECF, RTTM and queries to make one."
            )
        rule = FindRule.of(settings)
        made_of = {
            "documents": tables.documents,
            "queries": tables.queries,
            "words": tables.words,
            "segments": tables.segments,
            "occurrences": find_occurrences(tables.words, tables.queries, rule),
        }
        blank = Manifest(
            version=0,
            buckets=layout.buckets or BUCKETS,
            find_gap=rule.find_gap,
            text_filters=rule.text_filters,
            tables={},
            inputs=tables.inputs,
            settings=None if keep is None else keep.kept(),
            finder=finder_of(rule),
        )
        return cls(storage, blank, made_of, replace=replace, keep=keep, change_settings=change_settings)

    def codes(self) -> Codes:
        """The codes of the archive's queries and documents."""
        if self.made_of is not None:
            return Codes.of(self.made_of["documents"], self.made_of["queries"], self.made_of["words"])
        names = ("documents", "queries", "words")
        return Codes.of(*(self.storage.read_table(self.base.tables[name]) for name in names))

    def is_new(self, system: str, content: str) -> bool:
        """Whether a run must be written: False if it is there already.

        Raises `ArchiveError` if another run of that name is there and is not to be replaced.
        """
        return self._is_change(system, content, self.before.get(system))

    def commit(self, runs: Iterable[StoredRun]) -> Manifest:
        """Make a version with `runs` added or replaced; nothing is made if the archive has them all already.

        Raises `ArchiveError` if another writer has made, meanwhile, an archive of another reference or with other
        settings, or another run of the same name.
        """
        runs = list(runs)
        while True:
            current, version = latest(self.storage, Manifest.from_json)
            on = current or self._made()
            _check_same_reference(self.storage, on.inputs, self.base.inputs)
            if not self.change_settings:
                check_same_settings(self.storage, on.kept, self.keep)
            kept = self.keep.kept() if self.keep is not None and self.change_settings else on.settings
            there = _runs(self.storage, on)
            changes = {
                stored.run.system: stored
                for stored in runs
                if self._is_change(stored.run.system, stored.run.content, _content(there, stored.run.system))
            }
            if current is not None and not changes and kept == on.settings:
                return current
            name = table_name("runs")
            self.storage.write_table(name, to_table({**there, **changes}.values()))
            manifest = replace(on, version=version, tables={**on.tables, "runs": name}, settings=kept)
            if commit(self.storage, manifest):
                return manifest

    def _made(self) -> Manifest:
        """The base with its tables written, which is done once."""
        if self.made_of is not None and not self.base.tables:
            names = {table: table_name(table) for table in self.made_of}
            for table, name in names.items():
                self.storage.write_table(name, self.made_of[table])
            self.base = replace(self.base, tables=names)
        return self.base

    def _is_change(self, system: str, content: str, there: str | None) -> bool:
        if there is None or there == content:
            return there is None
        where = f"{self.storage.url}: a run of {system!r}"
        if not self.replace:
            raise ArchiveError(
                f"{where} with other content is there. Ingest it under another name, or replace it (--replace)."
            )
        if there != self.before.get(system):
            raise ArchiveError(f"{where} was changed by another writer meanwhile. Look at it, then ingest again.")
        return True


def _runs(storage: Storage, manifest: Manifest) -> dict[str, StoredRun]:
    if "runs" not in manifest.tables:
        return {}
    return {stored.run.system: stored for stored in from_table(storage.read_table(manifest.tables["runs"]))}


def _content(runs: Mapping[str, StoredRun], system: str) -> str | None:
    return runs[system].run.content if system in runs else None


def _check_same_reference(storage: Storage, there: Mapping[str, str], ours: Mapping[str, str]) -> None:
    different = [role for role in ours if there.get(role) != ours[role]]
    if different:
        raise ArchiveError(
            f"{storage.url}: expected the reference that this archive was made with; found one that "
            f"differs in {', '.join(different)}. An archive is one evaluation: make another archive for another "
            "reference."
        )


def write_runs(
    storage: Storage,
    tables: ReferenceTables | None,
    sources: Sequence[RunSource],
    settings: EvaluationSettings,
    *,
    replace: bool = False,
    keep: Layers | None = None,
    change_settings: bool = False,
    layout: Layout | None = None,
    executor: Executor | None = None,
    progress: Callable[[str], None] | None = None,
) -> StoredArchive:
    """Write the runs of some sources into an archive, made of `tables` if there is none; open it as it then is.

    Without `tables` the archive must be there; with them it must be theirs. A run that is there already with the same
    content is left as it is; another one of the same name is replaced only if `replace`. A new archive keeps the layers
    `keep` of the settings; one that is there must keep settings that are equal, or takes these if `change_settings`.
    `progress` is called with what has been done.

    Raises `InputError` with everything that is wrong with the sources, and with unknown queries and documents where the
    settings call them an error; `ArchiveError` if the archive or the storage does not admit the change.
    """
    layout = layout or Layout()
    change = Change.begin(
        storage, tables, settings, layout, replace=replace, keep=keep, change_settings=change_settings
    )
    codes = change.codes()
    buckets = change.base.buckets
    bucket_of_query = buckets_of(codes.query_ids, buckets)
    folder = temporary_folder()
    try:
        in_files = file_order(sources, codes, settings)
        spiller = Spiller(storage, folder, codes, bucket_of_query, buckets, layout.rows_in_memory, in_files)
        numbered = list(enumerate(sources))
        read = run_tasks(executor, _spill, numbered, spiller, lambda each: f"read {each[1].file}", progress)
        runs = _checked(sources, read, settings)
        new = {system: run for system, run in runs.items() if change.is_new(system, run.tally.content)}
        writer = FragmentWriter(storage, folder, bucket_of_query, len(codes.document_ids), layout, in_files)
        work = [
            share
            for system, run in new.items()
            for share in shares(system, run.tally.content, run.files, layout.rows_per_fragment)
        ]
        written = run_tasks(executor, _write, work, writer, _what, progress)
        fragments: dict[str, tuple[Fragment, ...]] = dict.fromkeys(new, ())
        for share, found in zip(work, written, strict=True):
            fragments[share.system] += tuple(found)
        manifest = change.commit([_whole(run.tally.run(), fragments[system]) for system, run in new.items()])
    finally:
        storage.remove(folder)
    return StoredArchive(storage, manifest)


@dataclass
class Spilled:
    """Rows of one run that were spilled, and what was found in them."""

    tally: Tally
    files: tuple[SpillFile, ...]

    def __add__(self, other: Spilled) -> Spilled:
        return Spilled(self.tally + other.tally, self.files + other.files)


@dataclass(frozen=True)
class Read:
    """What was read from one source: its runs by system, and what is wrong with it."""

    runs: dict[str, Spilled]
    problems: Problems


@dataclass(frozen=True, eq=False)
class Spiller:
    """How sources are read: coded by `codes`, spilled to `folder` by bucket.

    Where the file order counts, `in_files`, rows get positions.
    """

    storage: Storage
    folder: str
    codes: Codes
    bucket_of_query: I64
    buckets: int
    rows_in_memory: int
    in_files: FileOrder | None = None

    def read(self, number: int, source: RunSource) -> Read:
        """Read a whole source, the one of that number."""
        problems = Problems()
        runs: dict[str, Spilled] = {}
        waiting: dict[str, list[Detections]] = {}
        held = 0
        for piece in self.in_files.read(number, problems) if self.in_files else source.read(problems):
            system = piece.header.system
            rows, tally = encode(piece, self.codes)
            found = Spilled(tally, ())
            runs[system] = runs[system] + found if system in runs else found
            waiting.setdefault(system, []).append(rows)
            held += len(rows)
            if held >= self.rows_in_memory:
                self._flush(waiting, runs)
                held = 0
        self._flush(waiting, runs)
        return Read(runs, problems)

    def _flush(self, waiting: dict[str, list[Detections]], runs: dict[str, Spilled]) -> None:
        for system, parts in waiting.items():
            rows = joined(parts)
            if len(rows):
                file = spill(self.storage, self.folder, rows, self.bucket_of_query[rows.query], self.buckets)
                runs[system].files += (file,)
        waiting.clear()


def _spill(numbered: tuple[int, RunSource], spiller: Spiller) -> Read:
    return spiller.read(*numbered)


def _write(share: Share, writer: FragmentWriter) -> list[Fragment]:
    return writer.write(share)


def _whole(run: Run, fragments: tuple[Fragment, ...]) -> StoredRun:
    written = sum(sum(fragment.groups) for fragment in fragments)
    if written != run.rows:
        found = f"{counted(run.rows, 'rows')} read and {written:,} written"
        raise ExecutionError(f"{run.system}: {found}; nothing was committed.")
    return StoredRun(run, fragments)


def _what(share: Share) -> str:
    return f"wrote {counted(share.rows, 'rows')} of {share.system}"


def _checked(sources: Sequence[RunSource], read: Sequence[Read], settings: EvaluationSettings) -> dict[str, Spilled]:
    """All runs, by system in order. Raises `InputError` with everything that is wrong."""
    problems = Problems()
    runs: dict[str, Spilled] = {}
    claims: dict[str, list[RunSource]] = {}
    for source, found in zip(sources, read, strict=True):
        for problem in found.problems:
            problems.add(problem.file, problem.line, problem.expected, problem.found, problem.remedy)
        problems.total += len(found.problems) - len(list(found.problems))
        for system, run in found.runs.items():
            runs[system] = runs[system] + run if system in runs else run
            claims.setdefault(system, []).append(source)
    note_claims(claims, problems)
    for run in runs.values():
        run.tally.note_faults(settings, problems)
    problems.raise_if_any()
    return dict(sorted(runs.items()))


def ingest(
    url: str,
    reference_files: ReferenceFiles | JudgedFiles | None,
    runs: Sequence[RunFile | TableRun],
    settings: EvaluationSettings,
    *,
    replace: bool = False,
    keep: Layers | None = None,
    change_settings: bool = False,
    layout: Layout | None = None,
    executor: Executor | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> StoredArchive:
    """Write a reference and runs into the archive at a URL, made if there is none; see `archive.write.write_runs`.

    Raises `InputError` with everything that is wrong with the files, `ArchiveError` if the archive or the storage does
    not admit the change. In either case the archive is as it was.
    """
    return write_runs(
        Storage(url, storage_options or {}),
        None if reference_files is None else read_reference(reference_files),
        sources_of(runs),
        settings,
        replace=replace,
        keep=keep,
        change_settings=change_settings,
        layout=layout,
        executor=executor,
        progress=progress,
    )
