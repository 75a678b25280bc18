"""Scores of systems: statistics over cells, then measures, then tables of results in canonical order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from swsdask.archive.cache import CacheCounts, CachedStatistics
from swsdask.archive.protocols import Archive, Cell, Run
from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, audio_time
from swsdask.execution.executor import Executor, Progress, SerialExecutor, ThreadExecutor, Unseen, or_unseen
from swsdask.measures.generalised_average_precision import GeneralisedAveragePrecision
from swsdask.measures.measure import Measure, counts_present_only
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.errors import ArchiveError
from swsdask.model.resources import SECONDS_PER_HOUR
from swsdask.model.schemas import WITHOUT_TIMES
from swsdask.model.settings import EngineSettings, Settings
from swsdask.model.system_rows import Spill
from swsdask.model.trials import Reference
from swsdask.model.wording import FEW, choices, listed
from swsdask.scoring import detections
from swsdask.scoring.alignment_table import align_systems
from swsdask.scoring.detections import Cells, DetectionSource, HeldCell, in_batches
from swsdask.scoring.missing_trials import check_complete
from swsdask.scoring.result_tables import CachedResults, CountedRun, Observer
from swsdask.scoring.rounds import SYSTEMS, ResultTables, Statistics, count_systems, score_systems
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Statistic


def score_archive(
    archive: Archive,
    systems: Sequence[str],
    reference: Reference,
    families: Sequence[Measure],
    settings: Settings,
    executor: Executor,
    *,
    names: Sequence[str] | None = None,
    alignment: bool = False,
    progress: Progress | None = None,
    observer: Observer | None = None,
    cached_statistics: CachedStatistics | None = None,
    cached_results: CachedResults | None = None,
) -> ResultTables:
    """Score some systems of an archive.

    Parameters
    ----------
    archive
        The archive of the runs.
    systems
        The systems to score, in the order of the results.
    reference
        What was spoken and what a trial is.
    families
        The measures, with the statistics that they need.
    settings
        The settings of the evaluation and of the engine.
    executor
        Runs the tasks that count cells and compute numbers.
    names
        The names of the requested numbers; None: all of `families`.
    alignment
        Whether the alignment of every system is requested.
    progress
        Receives the phases of the work and the rows that are done.
    observer
        Sees each system in the task that computes its numbers.
    cached_statistics
        The statistics in the cache of the archive for this reference: they are not counted again, and counted ones are
        added.
    cached_results
        The results in the cache of the archive, likewise. An observer does not see systems with cached results.

    Raises
    ------
    InputError
        For a run that leaves out trials under `impute = "error"`.
    ArchiveError, ExecutionError, ClusterError
        As for `score_systems`.
    """
    shown = or_unseen(progress)
    runs = runs_of(archive, systems)
    request = Requested.of(archive, runs, families, settings, names, observer)
    source = _source(archive, reference, request.statistics, executor, settings.engine, cached_statistics)

    def counted(run: Run, found: Statistics) -> CountedRun:
        return request.counted(run, found, reference, archive.cells)

    whole = [run for run in runs if is_small(run)]
    cut = [run for run in runs if not is_small(run)]
    spill = Spill()
    parts = []
    if cut or not whole:
        parts.append(score_systems(cut, len(cut), source, counted, executor, shown, cached_results, spill))
    if whole:
        parts += _score_whole(
            archive, whole, request, source.shared[0], executor, shown, cached_statistics, cached_results, spill
        )
    tables = ResultTables.joined(parts, systems)
    if not alignment:
        return tables
    return replace(tables, aligned=align_systems(archive, runs, reference, executor, settings.engine, shown, spill))


def count_archive(
    archive: Archive,
    systems: Sequence[str],
    reference: Reference,
    families: Sequence[Measure],
    executor: Executor,
    settings: EngineSettings,
    progress: Progress,
) -> Iterator[tuple[str, Statistics]]:
    """Yield each system with the merged statistics that the measures need, in the order of `systems`.

    Raises `ArchiveError` for a system without a run, and the errors of `count_systems`.
    """
    runs = runs_of(archive, systems)
    source = _source(archive, reference, _needed(families), executor, settings)
    for group in count_systems(runs, len(runs), source, executor, progress):
        for run, found in group:
            yield run.system, found


@dataclass(frozen=True, eq=False)
class Requested:
    """The request for every run: the measures, the names of the requested numbers (None: all), and an observer.

    `statistics` are those that these need, and others; `audio_time` is the duration of the evaluated audio in hours.
    """

    families: Sequence[Measure]
    settings: Settings
    names: Sequence[str] | None
    observer: Observer | None
    statistics: tuple[type[Statistic], ...]
    audio_time: Fraction

    @classmethod
    def of(
        cls,
        archive: Archive,
        runs: Iterable[Run],
        families: Sequence[Measure],
        settings: Settings,
        names: Sequence[str] | None,
        observer: Observer | None = None,
    ) -> Self:
        """Return the request for some runs of an archive."""
        present = (Counts,) if counts_present_only(settings.evaluation) else ()
        half_ticks = 0
        if any(run.reported is not None for run in runs):
            half_ticks = int(audio_time(archive.documents, "none").sum())
        hours = Fraction(half_ticks, HALF_TICKS_PER_SECOND * SECONDS_PER_HOUR)
        beside = () if observer is None else observer.needs
        return cls(families, settings, names, observer, (*present, *beside, *_needed(families)), hours)

    def counted(self, run: Run, found: Statistics, reference: Reference, cells: Cells) -> CountedRun:
        """Return the run with its merged statistics. Raises `InputError` if required trials are missing."""
        if self.settings.evaluation.impute == "error" and Counts in found:
            check_complete(cells, run, found[Counts], reference)
        own = [self._of_run(family, run) for family in self.families]
        return CountedRun(run.system, run.rows, found, own, self.settings.evaluation, self.names, self.observer)

    def _of_run(self, family: Measure, run: Run) -> Measure:
        """Return the family for one run: resources, and whether there are times, are properties of the run."""
        if isinstance(family, GeneralisedAveragePrecision) and WITHOUT_TIMES in run.attributes:
            return GeneralisedAveragePrecision(timed=False)
        if not isinstance(family, ProcessingLoad) or run.reported is None:
            return family
        return ProcessingLoad(run.reported, self.audio_time, only_defined=run.resources is None)


@dataclass(frozen=True, eq=False)
class WholeRuns:
    """Small runs that one task scores, from the first round to the numbers; `cells` are those of each."""

    runs: tuple[Run, ...]
    cells: Mapping[str, Sequence[Cell]]

    @property
    def is_distant(self) -> bool:
        """Whether scoring them is mostly waiting for a store."""
        return any(cell.is_distant for cells in self.cells.values() for cell in cells)

    def parts(self, rows: int) -> list[WholeRuns]:
        """Return the runs in parts of at most `rows` rows, unless one run has more."""
        return [WholeRuns(tuple(part), self.cells) for part in _in_batches(self.runs, lambda _: rows)]

    @property
    def rows(self) -> int:
        """The number of detections of all runs."""
        return sum(run.rows for run in self.runs)

    def __str__(self) -> str:
        return f"system {listed([run.system for run in self.runs], FEW)}"


def is_small(run: Run) -> bool:
    """Return whether one task can score the whole run without leaving workers idle."""
    return run.rows <= detections.FEW_ROWS


def _batches(archive: Archive, runs: Sequence[Run], workers: int, rows_per_task: int) -> Iterator[WholeRuns]:
    """Yield the runs in tasks, which shrink towards the end like `detections.tasks` if workers should end together."""

    def cells(run: Run) -> Sequence[Cell]:
        return [*archive.cells(run.system, rows_per_task)]

    is_distant = any(cell.is_distant for cell in cells(runs[0]))
    least = _DISTANT if is_distant else 0

    def size(left: int) -> int:
        return min(_MOST, max(least, left // (2 * workers) if workers > 1 else left))

    for batch in _in_batches(runs, size):
        yield WholeRuns(tuple(batch), {run.system: cells(run) for run in batch})


def _in_batches(runs: Sequence[Run], size: Callable[[int], int]) -> Iterator[list[Run]]:
    """Yield the runs in batches, with a constant added to the rows of each, for the time of computing its numbers."""
    return in_batches(runs, _work, sum(map(_work, runs)), size)


def _work(run: Run) -> int:
    return run.rows + _NUMBERS


_MOST = 8 * detections.FEW_ROWS
"""The rows of a task of small runs: few tasks, but enough that workers end together."""

_DISTANT = 2 * detections.FEW_ROWS
"""Tasks of distant runs do not shrink, since each begins with waiting."""

_AT_ONCE = 4
"""The number of parts of a task of distant runs that are scored concurrently: while some wait for the store, others are
counted. Cells of one part are requested concurrently too."""

_NUMBERS = 50_000
"""Computing the numbers of a system takes about as long as counting this many rows."""


def _score_whole(
    archive: Archive,
    runs: Sequence[Run],
    request: Requested,
    reference: Reference,
    executor: Executor,
    progress: Progress,
    cached_statistics: CachedStatistics | None,
    cached_results: CachedResults | None,
    spill: Spill,
) -> list[ResultTables]:
    """Score small runs, several in each task: statistics stay in the worker, and only results are sent back.

    The workers also read and write the cache. `reference` is a handle of the executor.
    """
    progress.begin(SYSTEMS, sum(run.rows for run in runs))
    rows_per_task = min(request.settings.engine.rows_per_task, detections.ROWS_PER_CELL)
    tables = []
    for part, *tallies in executor.map(
        _tables_of,
        _batches(archive, runs, executor.workers, rows_per_task),
        (reference, executor.share((request, cached_statistics, cached_results, executor.folder))),
        done=lambda each: progress.advance(each.rows),
        name=SYSTEMS,
    ):
        tables.append(part.held(spill))
        for each, tally in zip((cached_statistics, cached_results), tallies, strict=True):
            if each is not None:
                each.files.tally.add(tally)
    return tables


_Shared = tuple[Reference, tuple[Requested, CachedStatistics | None, CachedResults | None, str | None]]
_Part = tuple[ResultTables, CacheCounts, CacheCounts]


def _tables_of(task: WholeRuns, shared: _Shared) -> _Part:
    """Return the results of the runs of a task, and the numbers of cached statistics and results that were used.

    Parts that wait for a store are scored concurrently. Rows are left in the folder that the client can access, if
    there is one: sending them takes longer.
    """
    _, (_, _, _, folder) = shared
    tables, counts, numbers = [], CacheCounts(), CacheCounts()
    with closing(ThreadExecutor(_AT_ONCE) if task.is_distant else SerialExecutor()) as executor:
        for part, *tallies in executor.map(_tables_of_part, task.parts(detections.FEW_ROWS // 2), shared):
            tables.append(part)
            counts.add(tallies[0])
            numbers.add(tallies[1])
    found = ResultTables.joined(tables, [run.system for run in task.runs])
    return found if folder is None else found.held(Spill(0, folder)), counts, numbers


def _tables_of_part(task: WholeRuns, shared: _Shared) -> _Part:
    reference, (request, cached_statistics, cached_results, _) = shared
    here = SerialExecutor()
    own = None if cached_statistics is None else cached_statistics.anew()
    own_results = None if cached_results is None else cached_results.anew()

    held = {run.system: [HeldCell(each) for each in task.cells[run.system]] for run in task.runs}

    def cells(system: str, rows: int) -> Sequence[Cell]:  # noqa: ARG001
        return held[system]

    def counted(run: Run, found: Statistics) -> CountedRun:
        return request.counted(run, found, reference, cells)

    source = DetectionSource(cells, reference, request.statistics, here, request.settings.engine.rows_per_task, own)
    tables = score_systems(task.runs, len(task.runs), source, counted, here, Unseen(), own_results)
    tables = ResultTables({system: results.encoded() for system, results in tables.systems.items()})
    counts, numbers = (CacheCounts() if each is None else each.files.tally for each in (own, own_results))
    return tables, counts, numbers


def _needed(families: Iterable[Measure]) -> tuple[type[Statistic], ...]:
    return tuple(needed for family in families for needed in family.needs)


def _source(
    archive: Archive,
    reference: Reference,
    statistics: Sequence[type[Statistic]],
    executor: Executor,
    settings: EngineSettings,
    cached_statistics: CachedStatistics | None = None,
) -> DetectionSource:
    """Return the source of statistics, with cells that every worker can read."""
    if archive.place is not None:
        executor.check([archive.place])
    return DetectionSource(archive.cells, reference, statistics, executor, settings.rows_per_task, cached_statistics)


def runs_of(archive: Archive, systems: Sequence[str]) -> list[Run]:
    """Return the runs of some systems, in their order.

    Raises `ArchiveError` for a system that the archive does not hold.
    """
    runs = {run.system: run for run in archive.runs}
    missing = [system for system in systems if system not in runs]
    if missing:
        raise ArchiveError(f"no run of {listed(missing)}; there are: {choices(runs, missing[0])}.")
    return [runs[system] for system in systems]
