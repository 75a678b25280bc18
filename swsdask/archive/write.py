"""Writing runs into an archive: each call makes one committed version, or leaves everything as it was.

Two phases, in memory that does not grow with the runs: rows are read, coded and spilled by bucket of their query; then
each share of buckets is sorted and written. Free space of about 30 bytes per detection is needed beside the archive
while it runs. A writer that stops at any moment leaves the version that was there; `archive.cleaning` removes the files
it left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swsdask.archive.change import Change
from swsdask.archive.encode import Codes, Tally, encode
from swsdask.archive.fragments import FragmentWriter, Share, SpillFile, shares, spill
from swsdask.archive.known_sources import KnownSources
from swsdask.archive.lease import Lease, leased
from swsdask.archive.memory import RunFile, read_reference, sources_of
from swsdask.archive.occurrences import find_occurrences, finder_of
from swsdask.archive.protocols import FindRule, Run
from swsdask.archive.reference_tables import JudgedFiles, ReferenceTables
from swsdask.archive.rows import joined
from swsdask.archive.run_table import Fragment, StoredRun
from swsdask.archive.sources import FileOrder, file_order, note_claims
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION, StoredArchive
from swsdask.archive.versions import BUCKETS, EvaluationManifest, Layout, buckets_of
from swsdask.execution.executor import Executor, run_tasks
from swsdask.formats.in_memory import TableRun
from swsdask.formats.pipes import Pipe
from swsdask.formats.reference.files import ReferenceFiles
from swsdask.formats.runs.read import RunPart
from swsdask.model.errors import ArchiveError, ExecutionError, Problems, counted
from swsdask.model.layers import Layers
from swsdask.model.schemas import RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.shown_text import without_secrets
from swsdask.model.trials import I64, Detections
from swsdask.places.reading import is_local, parted


def begin(
    lease: Lease,
    tables: ReferenceTables | None,
    settings: EvaluationSettings,
    layout: Layout,
    *,
    replace: bool,
    keep: Layers | None = None,
    change_settings: bool = False,
) -> Change[EvaluationManifest, StoredRun]:
    """Begin a change of the archive that is there, or of a new one of `tables`, of which nothing is written yet.

    Raises `ArchiveError` as `archive.change.Change`, and if the archive has other buckets than the layout.
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
            settings=None if keep is None else keep.kept(),
            finder=finder_of(rule),
        )
    change = Change(EVALUATION, lease, blank, made_of, replace=replace, keep=keep, change_settings=change_settings)
    if change.made_of is not None and tables is not None:
        change.made_of = {**made_of, "occurrences": find_occurrences(tables.words, tables.queries, rule)}
    elif layout.buckets not in (None, change.base.buckets):
        raise ArchiveError(
            f"{lease.storage.url}: expected {counted(change.base.buckets, 'query buckets')}, which this archive was "
            f"made with; found {layout.buckets}. Leave that out, or make another archive."
        )
    return change


def codes_of(change: Change[EvaluationManifest, StoredRun]) -> Codes:
    """The codes of the archive's queries and documents."""
    if change.made_of is not None:
        return Codes.of(*(change.made_of[name] for name in ("documents", "queries", "words")))
    there = StoredArchive(change.storage, change.base)
    return Codes.of(there.documents, there.queries, there.words)


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
    known: KnownSources | None = None,
    unread: Sequence[RunFile] = (),
) -> StoredArchive:
    """Write the runs of some sources into an archive, made of `tables` if there is none; open it as it then is.

    Without `tables` the archive must be there; with them it must be theirs. A run that is there already with the same
    content is left as it is; another one of the same name is replaced only if `replace`. A new archive keeps the layers
    `keep` of the settings; one that is there must keep settings that are equal, or takes these if `change_settings`.
    `progress` is called with what has been done. `unread` are files that the archive knows, of which it has all runs;
    what is read becomes `known` too.

    Raises `InputError` with everything that is wrong with the sources, and with unknown queries and documents where the
    settings call them an error; `ArchiveError` if the archive or the storage does not admit the change.
    """
    layout = layout or Layout()
    storage.check_writable()
    with leased(storage) as lease:
        if executor is not None:
            executor.check([lease.place, *_inputs(sources)])
        change = begin(lease, tables, settings, layout, replace=replace, keep=keep, change_settings=change_settings)
        claims = _claims(unread, known, change)

        def telling(verb: str) -> Callable[[str], None]:
            def tell(label: str) -> None:
                lease.renew()
                if progress is not None:
                    progress(f"{verb} {label}")

            return tell

        new: dict[str, StoredRun] = {}
        contents: dict[tuple[str, str | None], dict[str, str]] = {}
        if sources:
            codes = codes_of(change)
            buckets = change.base.buckets
            bucket_of_query = buckets_of(codes.query_ids, buckets)
            in_files = file_order(sources, codes, settings)
            spiller = Spiller(storage, lease.folder, codes, bucket_of_query, buckets, layout.rows_in_memory, in_files)
            numbered = list(enumerate(sources))
            read = run_tasks(
                executor, _spill, numbered, spiller, lambda each: without_secrets(each[1].file), telling("read")
            )
            runs = _checked(sources, read, settings, claims)
            for source, part in zip(sources, read, strict=True):
                if isinstance(source, RunPart):
                    of_file = contents.setdefault((source.file, source.system), {})
                    of_file.update({system: runs[system].tally.content for system in part.runs})
            spilled = {system: run for system, run in runs.items() if change.is_new(system, run.tally.content)}
            writer = FragmentWriter(storage, lease.folder, bucket_of_query, len(codes.document_ids), layout, in_files)
            work = [
                share
                for system, run in spilled.items()
                for share in shares(system, run.tally.content, run.files, layout.rows_per_fragment)
            ]
            written = run_tasks(executor, _write, work, writer, _what, telling("wrote"))
            fragments: dict[str, tuple[Fragment, ...]] = dict.fromkeys(spilled, ())
            for share, found in zip(work, written, strict=True):
                fragments[share.system] += tuple(found)
            new = {system: _whole(run.tally.run(), fragments[system]) for system, run in spilled.items()}
        manifest = change.commit(new)
        if known is not None:
            known.remember(contents, manifest.inputs)
    return StoredArchive(storage, manifest)


def _claims(
    unread: Sequence[RunFile], known: KnownSources | None, change: Change[EvaluationManifest, StoredRun]
) -> dict[str, list[RunSource]]:
    """The files that are not read, by system. Raises `ArchiveError` if the archive lost one of their runs meanwhile."""
    claims: dict[str, list[RunSource]] = {}
    for run in unread:
        for system, content in ({} if known is None else known.systems(run)).items():
            if change.before.get(system) != content:
                raise ArchiveError(
                    f"{change.storage.url}: {system!r} was changed by another writer meanwhile. Ingest again."
                )
            claims.setdefault(system, []).append(RunPart(run.url, run.system))
    return claims


def _inputs(sources: Sequence[RunSource]) -> Iterator[str]:
    """The files that workers are to read; of a folder in a store only one, for each is a request."""
    folders: set[str] = set()
    for file in dict.fromkeys(source.file for source in sources if isinstance(source, RunPart)):
        folder = file if is_local(file) else parted(file)[0]
        if folder not in folders and not isinstance(file, Pipe):
            yield file
        folders.add(folder)


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
    return f"{counted(share.rows, 'rows')} of {share.system}"


def _checked(
    sources: Sequence[RunSource],
    read: Sequence[Read],
    settings: EvaluationSettings,
    claims: dict[str, list[RunSource]],
) -> dict[str, Spilled]:
    """All runs, by system in order. Raises `InputError` with everything that is wrong, also beside earlier `claims`."""
    problems = Problems()
    runs: dict[str, Spilled] = {}
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
    known: KnownSources | None = None,
) -> StoredArchive:
    """Write a reference and runs into the archive at a URL, made if there is none; see `archive.write.write_runs`.

    Files that are `known` are not read.

    Raises `InputError` with everything that is wrong with the files, `ArchiveError` if the archive or the storage does
    not admit the change. In either case the archive is as it was.
    """
    storage = Storage(url, storage_options or {})
    is_known = known is not None and reference_files is not None and known.has_reference(reference_files)
    return write_runs(
        storage,
        None if reference_files is None or is_known else read_reference(reference_files),
        sources_of(runs if known is None else known.unknown(runs)),
        settings,
        replace=replace,
        keep=keep,
        change_settings=change_settings,
        layout=layout,
        executor=executor,
        progress=progress,
        known=known,
        unread=[run for run in runs if isinstance(run, RunFile) and known is not None and known.systems(run)],
    )
