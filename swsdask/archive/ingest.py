"""Writing runs into an archive: each call commits one version, or leaves everything unchanged.

A run that is complete in one source and fits into memory is read, coded, sorted and written by one task. Larger runs
take two phases, in memory that does not grow with the runs: rows are read, coded and spilled by the bucket of their
query; then each share of buckets is sorted and written. This temporarily needs about 30 bytes of storage per detection
in addition to the archive. A writer that stops at any moment leaves the previous version intact; `archive.cleaning`
removes its files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from swsdask.archive.cache import KnownSources
from swsdask.archive.change import ADD_ONLY, Change, ChangePolicy, Growth, Lease, OutgrownError, leased
from swsdask.archive.encode import Codes, Tally, encode_piece, file_order, note_claims
from swsdask.archive.fragments import FragmentWriter, Share, SpillFile, concatenate, shares, spill
from swsdask.archive.occurrences import find_occurrences, finder_of
from swsdask.archive.protocols import FindRule, Run
from swsdask.archive.reference_files import read_reference
from swsdask.archive.reference_tables import (
    COLLECTION,
    JudgedFiles,
    ReferenceTables,
    collection,
    document_ids,
    other_documents,
)
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION, StoredArchive
from swsdask.archive.stored_tables import Fragment, StoredRun
from swsdask.archive.versions import BUCKETS, EvaluationManifest, Layout, buckets_of
from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen, run_tasks
from swsdask.formats.files import noted
from swsdask.formats.find import ReferenceFiles
from swsdask.model.errors import ArchiveError, ExecutionError, Problems
from swsdask.model.hashes import hash_tables
from swsdask.model.safe_text import without_secrets
from swsdask.model.schemas import RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections
from swsdask.model.wording import counted
from swsdask.places.reading import Pipe, is_local, parted

ROWS_PER_PART = 1_500_000
"""The approximate minimum number of rows that a task reads from a file that is cut into parts."""

_PARTS_PER_WORKER = 4
"""The approximate number of parts per worker, large enough that no worker waits long for the last one."""


def begin(
    lease: Lease,
    tables: ReferenceTables | None,
    settings: EvaluationSettings,
    layout: Layout,
    policy: ChangePolicy,
) -> Change[EvaluationManifest, StoredRun]:
    """Begin a change of an existing archive, or of a new one with `tables`. Nothing is written yet.

    Raises `ArchiveError` as `archive.change.Change`, and if the archive has another number of buckets than the layout.
    """
    blank, made_of = None, {}
    if tables is not None:
        rule = FindRule.of(settings)
        made_of = {
            "documents": tables.documents,
            "queries": tables.queries,
            "words": tables.words,
            "segments": tables.segments,
            **({"judgments": tables.judgments} if len(tables.judgments) else {}),
        }
        blank = EvaluationManifest(
            version=0,
            buckets=layout.buckets or BUCKETS,
            find_gap=rule.find_gap,
            text_filters=rule.text_filters,
            tables={},
            inputs=tables.inputs,
            settings=policy.settings_of_new(),
            finder=finder_of(rule),
        )
    change = Change(
        EVALUATION,
        lease,
        blank,
        made_of,
        policy,
        grows=COLLECTION if policy.keep is not None and policy.keep.judged else None,
    )
    if change.made_of is not None and tables is not None:
        change.made_of = {**made_of, "occurrences": find_occurrences(tables.words, tables.queries, rule)}
    elif layout.buckets not in (None, change.base.buckets):
        raise ArchiveError(
            f"{lease.storage.url}: expected {counted(change.base.buckets, 'query buckets')}, which this archive was "
            f"made with; found {layout.buckets}. Leave that out, or make another archive."
        )
    return change


def _add_documents(
    change: Change[EvaluationManifest, StoredRun],
    sources: Sequence[RunSource],
    executor: Executor,
    done: Callable[[RunSource], None],
) -> None:
    """Add the documents of runs to the collection of judged documents. Existing documents keep their codes."""
    new = change.made_of is not None
    documents = _documents(change)
    known = document_ids(documents)
    others = other_documents(sources, known, executor, done)
    if others:
        added = [collection(sorted({*known, *others}))] if new else [documents, collection(sorted(others))]
        larger = pa.concat_tables(added).combine_chunks()
        change.grow(Growth("documents", larger, hash_tables(larger)))


def _documents(change: Change[EvaluationManifest, StoredRun]) -> pa.Table:
    if change.growth is not None:
        return change.growth.table
    return (
        StoredArchive(change.storage, change.base).documents if change.made_of is None else change.made_of["documents"]
    )


def codes_of(change: Change[EvaluationManifest, StoredRun]) -> Codes:
    """Return the codes of the archive's queries and documents."""
    if change.made_of is not None:
        return Codes.of(*(change.made_of[name] for name in ("documents", "queries", "words")))
    there = StoredArchive(change.storage, change.base)
    return Codes.of(_documents(change), there.queries, there.words)


def write_runs(
    storage: Storage,
    tables: ReferenceTables | None,
    sources: Sequence[RunSource],
    settings: EvaluationSettings,
    *,
    policy: ChangePolicy = ADD_ONLY,
    layout: Layout | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    known: KnownSources | None = None,
    unread: Sequence[RunSource] = (),
) -> StoredArchive:
    """Write the runs of some sources into an archive, created from `tables` if it does not exist, and open the result.

    Without `tables` the archive must exist; with them, its tables must be equal to these. A run that the archive
    already has, with the same content, is left as it is; the `policy` says whether one with the same name but different
    content is replaced, and which settings the archive keeps. `unread` are known files, of which the archive has all
    runs; files that are read become `known` too. For several workers, large files are read in parts.

    Raises `InputError` with every problem of the sources, and with unknown queries and documents if the settings make
    them errors; `ArchiveError` if the archive or the storage does not allow the change.
    """
    layout = layout or Layout()
    executor = executor or SerialExecutor()
    shown = or_unseen(progress)
    sources = divide(sources, executor.workers)
    storage.check_writable()
    with leased(storage) as lease:
        executor.check([lease.place, *_inputs(sources)])
        change = begin(lease, tables, settings, layout, policy)
        claims = _claims(unread, known, change)

        def done(rows: int) -> None:
            lease.renew()
            shown.advance(rows)

        new: dict[str, StoredRun] = {}
        contents: dict[tuple[str, str | None], dict[str, str]] = {}
        if sources:
            rows_about = sum(source.rows_about for source in sources)
            if change.grows is not None:
                shown.begin("looking for documents", rows_about)
                _add_documents(change, sources, executor, lambda source: done(source.rows_about))
            codes = codes_of(change)
            buckets = change.base.buckets
            bucket_of_query = buckets_of(codes.query_ids, buckets)
            in_files = file_order(sources, codes, settings)
            writer = FragmentWriter(storage, lease.folder, bucket_of_query, len(codes.document_ids), layout, in_files)
            reader = Reader(writer, codes, buckets, change.before)
            shown.begin("reading runs", rows_about)
            read = run_tasks(
                executor,
                _read_source,
                _number_sources(sources),
                reader,
                lambda each: without_secrets(each.run.file),
                lambda each: done(each.run.rows_about),
            )
            runs = _check_and_merge(sources, read, settings, claims)
            for source, part in zip(sources, read, strict=True):
                if not source.in_memory:
                    of_file = contents.setdefault((source.file, source.system), {})
                    of_file.update({system: runs[system].tally.content for system in part.runs})
            added = {system: run for system, run in runs.items() if change.is_new(system, run.tally.content)}
            work = [
                share
                for system, run in added.items()
                for share in shares(system, run.tally.content, run.files, layout.rows_per_fragment)
            ]
            fragments = {system: run.fragments for system, run in added.items()}
            shown.begin("writing runs", sum(share.rows for share in work))
            written = run_tasks(executor, _write, work, writer, _of_share, lambda share: done(share.rows))
            for share, found in zip(work, written, strict=True):
                fragments[share.system] += tuple(found)
            new = {system: _whole(run.tally.run(), fragments[system]) for system, run in added.items()}
        manifest = change.commit(new)
        if known is not None:
            known.remember(contents, manifest.inputs)
    return StoredArchive(storage, manifest)


def divide(sources: Sequence[RunSource], workers: int) -> list[RunSource]:
    """Return the sources, in order; for several workers, cut into parts that can be read at the same time.

    A source is cut if it is much larger than the share of one worker.
    """
    if workers < 2:
        return list(sources)
    rows = [source.rows_about for source in sources]
    most = max(ROWS_PER_PART, sum(rows) // (_PARTS_PER_WORKER * workers))
    return [part for source, own in zip(sources, rows, strict=True) for part in source.parts(1 + own // most)]


def _claims(
    unread: Sequence[RunSource], known: KnownSources | None, change: Change[EvaluationManifest, StoredRun]
) -> dict[str, list[RunSource]]:
    """Return the unread files by system. Raises `ArchiveError` if the archive lost one of their runs meanwhile."""
    claims: dict[str, list[RunSource]] = {}
    for run in unread:
        for system, content in ({} if known is None else known.systems(run)).items():
            if change.before.get(system) != content:
                raise ArchiveError(
                    f"{change.storage.url}: {system!r} was changed by another writer meanwhile. Ingest again."
                )
            claims.setdefault(system, []).append(run)
    return claims


def _inputs(sources: Sequence[RunSource]) -> Iterator[str]:
    """The files that workers must be able to read; one for each folder in a store, as checking each takes a request."""
    folders: set[str] = set()
    for file in dict.fromkeys(source.file for source in sources if not source.in_memory):
        folder = file if is_local(file) else parted(file)[0]
        if folder not in folders and not isinstance(file, Pipe):
            yield file
        folders.add(folder)


class Numbered(NamedTuple):
    """A source and its number. `whole`: no other source may have rows of its runs."""

    number: int
    run: RunSource
    whole: bool


def _number_sources(sources: Sequence[RunSource]) -> list[Numbered]:
    files = Counter(source.file for source in sources)
    systems = Counter(source.system for source in sources)
    return [
        Numbered(number, source, files[source.file] == 1 and (source.system is None or systems[source.system] == 1))
        for number, source in enumerate(sources)
    ]


@dataclass
class Stored:
    """Rows of one run on the storage, spilled or already in fragments, and their tally."""

    tally: Tally
    files: tuple[SpillFile, ...] = ()
    fragments: tuple[Fragment, ...] = ()

    def __add__(self, other: Stored) -> Stored:
        return Stored(self.tally + other.tally, self.files + other.files, self.fragments + other.fragments)


@dataclass(frozen=True)
class Read:
    """The content of one source: its runs by system, and its problems."""

    runs: dict[str, Stored]
    problems: Problems


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads sources: rows are coded by `codes`, then spilled by bucket; complete small runs are written at once.

    Runs that the archive already has (`there`), with the same content, are not written. If the file order counts, rows
    get positions.
    """

    writer: FragmentWriter
    codes: Codes
    buckets: int
    there: Mapping[str, str]

    def read(self, source: Numbered) -> Read:
        """Read a whole source."""
        problems = Problems()
        runs: dict[str, Stored] = {}
        waiting: dict[str, list[Detections]] = {}
        held = 0
        in_files = self.writer.in_files
        for piece in in_files.read(source.number, problems) if in_files else source.run.read(problems):
            system = piece.header.system
            rows, tally = encode_piece(piece, self.codes)
            found = Stored(tally)
            runs[system] = runs[system] + found if system in runs else found
            waiting.setdefault(system, []).append(rows)
            held += len(rows)
            if held >= self.writer.layout.rows_in_memory:
                self._spill(waiting, runs)
                held = 0
        if source.whole and not problems.total:
            with noted(problems):
                self._write_small(waiting, runs)
        self._spill(waiting, runs)
        return Read(runs, problems)

    def _write_small(self, waiting: dict[str, list[Detections]], runs: dict[str, Stored]) -> None:
        """Write the runs that were not spilled and that fit into one fragment."""
        for system in [system for system in waiting if not runs[system].files]:
            run = runs[system]
            if run.tally.rows <= self.writer.layout.rows_per_fragment:
                rows = concatenate(waiting.pop(system))
                if self.there.get(system) != run.tally.content:
                    run.fragments = tuple(self.writer.write_whole(system, run.tally.content, rows))

    def _spill(self, waiting: dict[str, list[Detections]], runs: dict[str, Stored]) -> None:
        writer = self.writer
        for system, parts in waiting.items():
            rows = concatenate(parts)
            if len(rows):
                partition = writer.bucket_of_query[rows.query]
                runs[system].files += (spill(writer.storage, writer.folder, rows, partition, self.buckets),)
        waiting.clear()


def _read_source(source: Numbered, reader: Reader) -> Read:
    return reader.read(source)


def _write(share: Share, writer: FragmentWriter) -> list[Fragment]:
    return writer.write(share)


def _whole(run: Run, fragments: tuple[Fragment, ...]) -> StoredRun:
    written = sum(sum(fragment.groups) for fragment in fragments)
    if written != run.rows:
        found = f"{counted(run.rows, 'rows')} read and {written:,} written"
        raise ExecutionError(f"{run.system}: {found}; nothing was committed.")
    return StoredRun(run, fragments)


def _of_share(share: Share) -> str:
    return f"{counted(share.rows, 'rows')} of {share.system}"


def _check_and_merge(
    sources: Sequence[RunSource],
    read: Sequence[Read],
    settings: EvaluationSettings,
    claims: dict[str, list[RunSource]],
) -> dict[str, Stored]:
    """Return all runs, sorted by system.

    Raises `InputError` with every problem, including conflicts with earlier `claims`.
    """
    problems = Problems()
    runs: dict[str, Stored] = {}
    for source, found in zip(sources, read, strict=True):
        problems.extend(found.problems)
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
    reference_files: ReferenceFiles | JudgedFiles | ReferenceTables | None,
    runs: Sequence[RunSource],
    settings: EvaluationSettings,
    *,
    policy: ChangePolicy = ADD_ONLY,
    layout: Layout | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    known: KnownSources | None = None,
    unread: Sequence[RunSource] = (),
) -> StoredArchive:
    """Write a reference and runs into the archive at a URL, created if it does not exist; see `write_runs`.

    A reference that is `known` is not read. If another writer let the collection of judged documents grow meanwhile,
    the runs are written again.

    Raises `InputError` with every problem of the files, `ArchiveError` if the archive or the storage does not allow the
    change. In both cases the archive is unchanged.
    """
    storage = Storage(url)
    is_known = known is not None and reference_files is not None and known.has_reference(reference_files)
    tables = None if reference_files is None or is_known else read_reference(reference_files)
    while True:
        with suppress(OutgrownError):
            return write_runs(
                storage,
                tables,
                runs,
                settings,
                policy=policy,
                layout=layout,
                executor=executor,
                progress=progress,
                known=known,
                unread=unread,
            )
