"""The detections of an archive as a source of rounds.

A task is a few cells; all statistics of a round are counted from the same trials of a cell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial, reduce
from graphlib import TopologicalSorter
from itertools import chain
from typing import Self, TypeVar

import numpy as np

from swsdask.archive.cache import CachedStatistics
from swsdask.archive.protocols import Cell, Run
from swsdask.execution.executor import Executor, Tree, naming
from swsdask.model.schemas import DETECTION_COLUMNS
from swsdask.model.tables import number_type
from swsdask.model.trials import Detections, Reference, ScoreRange, Trials
from swsdask.model.wording import FEW, counted, listed
from swsdask.scoring.rounds import Plan, Shared, Statistics, StatisticType, merge
from swsdask.statistics.alignment import make_trials, trial_columns
from swsdask.statistics.counts import NO, NONE, YES, Counts, stretches
from swsdask.statistics.statistic import OfDetections, Statistic

TASKS_PER_WORKER = 8
"""The number of tasks of `rows_per_task` per worker in a full group: so few workers wait at the end of a round."""

FEW_ROWS = 1_000_000
"""Tasks that shrink so that workers end together have at least this many rows: counting them takes several times as
long as Dask's overhead for a task."""

SERVED = 16
"""The maximum number of workers that Dask's scheduler keeps busy with tasks of these sizes. With more workers, tasks
are larger in proportion: otherwise, by the model in tests/bench/simulate_cluster.py, even 100 workers would wait for
the scheduler most of the time."""

ROWS_PER_CELL = 500_000
"""The maximum size of a cell: a row group, which is read without a copy, into memory that has just been released."""

HELD_BYTES = 128 << 20
MOST_HELD_BYTES = 512 << 20
"""The memory, per worker and in total, for data that later rounds of a group need, if workers share the memory of this
process. Reading scores again takes a tenth of the time of scoring a large archive from a disk, and more from a
store."""

ROWS_AHEAD = 1_000_000
MOST_AHEAD = 16
"""The maximum numbers of rows of distant cells, and of cells, that are read ahead: a request of 30 ms takes less time
than counting what was read before it."""


@dataclass(frozen=True)
class CellTask:
    """Some cells, whose detections are read and counted one cell after the other."""

    cells: tuple[Cell, ...]

    @property
    def rows(self) -> int:
        """The number of detections of all cells."""
        return sum(cell.rows for cell in self.cells)

    def count(self, shared: Shared) -> dict[str, Statistics]:
        """Return the statistics of the cells, by system; `shared` is the reference and the `Round`.

        Raises `ExecutionError` that names the cell, and the `SwsdaskError` that reading or alignment raises.
        """
        _keep_pages()
        reference, this = shared
        tree: Tree[dict[str, Statistics]] = Tree(lambda parts: reduce(merge, parts), fan_in=2)
        columns = [this.columns(cell.system, reference) for cell in self.cells]
        checked = [not this.checks(cell.system, reference) for cell in self.cells]
        with closing(read_ahead(self.cells, columns, checked)) as reads:
            for cell, names in zip(self.cells, columns, strict=True):
                with naming(cell, cell_name):
                    tree.add({cell.system: _of_cell(cell, names, next(reads), reference, this)})
        return tree.total() or {}

    def __str__(self) -> str:
        systems = dict.fromkeys(cell.system for cell in self.cells)
        sources = dict.fromkeys(cell.source for cell in self.cells)
        return f"system {listed(list(systems), FEW)}: {listed(list(sources), FEW)}"


@dataclass(frozen=True)
class NoDetections:
    """The one cell of a system that detected nothing."""

    system: str
    rows: int = 0
    parts = ()
    is_distant = False

    @property
    def source(self) -> str:
        """A text in place of a file."""
        return "no detections"

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:  # noqa: ARG002
        """Columns without rows."""
        empty = {
            name: np.empty(0, number_type(DETECTION_COLUMNS.field(name).type)) for name in {"query", "score", *columns}
        }
        return Detections(**empty)

    def confirm(self, columns: Sequence[str]) -> None:
        """Nothing."""


class HeldCell:
    """A cell whose detections stay in memory after reading, for later rounds: all columns read, or only `names`.

    If rows have an order in files, scores read with the order differ from those read without (`archive.cells`).
    """

    def __init__(self, cell: Cell, names: Collection[str] | None = None) -> None:
        self._cell = cell
        self._names = names
        self._held: Detections | None = None
        self._sound = False
        self.system, self.rows, self.source, self.parts = cell.system, cell.rows, cell.source, cell.parts

    @property
    def is_distant(self) -> bool:
        """Whether the columns not read yet are distant."""
        return self._held is None and self._cell.is_distant

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        """The named columns. They are read unless all are held, without an order that is not requested now, and with
        the check that is requested now.
        """
        held = self._held
        if (
            held is None
            or any(getattr(held, name) is None for name in columns)
            or (held.position is not None and "position" not in columns)
            or (checked and not self._sound)
        ):
            held = self._cell.read(columns, checked=checked)
            self._sound = checked
            if self._names is None:
                self._held = held
            elif held.position is None or "position" in self._names:
                self._held = _only(held, self._names)
        return _only(held, columns)

    def confirm(self, columns: Sequence[str]) -> None:
        """Remember that the held columns have been checked."""
        self._sound = True
        self._cell.confirm(columns)


def _only(detections: Detections, names: Collection[str]) -> Detections:
    return Detections(**{name: getattr(detections, name) for name in {"query", "score", *names}})


Cells = Callable[[str, int], Iterable[Cell]]
"""The cells of a system, of about the given number of rows: `Archive.cells`."""


def tasks(cells: Cells, runs: Sequence[Run], workers: int, rows_per_task: int) -> Iterator[CellTask]:
    """Every cell of the runs, in order, in tasks that shrink towards the end: few tasks, and workers end together.

    A task has as many cells as fit in half of a worker's equal share of the remaining rows (guided self-scheduling:
    Polychronopoulos and Kuck 1987), but no more than `rows_per_task` rows, unless one cell has more.
    With more workers than `SERVED` the limits are larger in proportion.
    """
    larger = max(1, workers / SERVED)
    least, most = FEW_ROWS * larger, rows_per_task * larger

    def limit(left: int) -> float:
        return min(most, max(least, left // (2 * workers)))

    every = _every(cells, [run.system for run in runs], rows_per_task)
    for batch in in_batches(every, lambda cell: cell.rows, sum(run.rows for run in runs), limit):
        yield CellTask(tuple(batch))


Item = TypeVar("Item")


def in_batches(
    items: Iterable[Item], rows_of: Callable[[Item], int], left: int, limit: Callable[[int], float]
) -> Iterator[list[Item]]:
    """Yield items, in order, in batches of at most `limit(left)` rows, unless one item has more.

    `left` rows remain, at first those of all items.
    """
    batch: list[Item] = []
    rows = 0
    for item in items:
        of_item = rows_of(item)
        if batch and rows + of_item > limit(left):
            yield batch
            left -= rows
            batch, rows = [], 0
        batch.append(item)
        rows += of_item
    if batch:
        yield batch


def _every(cells: Cells, systems: Iterable[str], rows_per_task: int) -> Iterator[Cell]:
    for system in systems:
        empty = True
        for cell in cells(system, min(rows_per_task, ROWS_PER_CELL)):
            empty = False
            yield cell
        if empty:
            yield NoDetections(system)


def read_ahead(
    cells: Sequence[Cell], columns: Sequence[Sequence[str]], checked: Sequence[bool]
) -> Generator[Detections, None, None]:
    """Read cells ahead and yield each one, in order; `columns` and `checked` are the arguments of `read` for each.

    Distant cells are requested while earlier ones are counted: up to `ROWS_AHEAD` rows, and at least one cell. An error
    is raised when its cell would be yielded.
    """
    if not any(cell.is_distant for cell in cells):
        for cell, names, check in zip(cells, columns, checked, strict=True):
            yield cell.read(names, checked=check)
        return
    waiting: deque[tuple[int, Future[Detections]]] = deque()
    with ThreadPoolExecutor(MOST_AHEAD, thread_name_prefix="swsdask read") as pool:
        try:
            for cell, names, check in zip(cells, columns, checked, strict=True):
                while waiting and (
                    len(waiting) > MOST_AHEAD or sum(rows for rows, _ in waiting) + cell.rows > ROWS_AHEAD
                ):
                    yield waiting.popleft()[1].result()
                waiting.append((cell.rows, pool.submit(cell.read, names, checked=check)))
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            for _, reading in waiting:
                reading.cancel()


def cell_name(cell: Cell) -> str:
    """Return the name of a cell in errors."""
    return f"system {cell.system}: {cell.source} ({counted(cell.rows, 'rows')})"


_LARGE = 31 << 20


@dataclass(frozen=True, eq=False)
class Round:
    """The data that tasks of one round need besides the reference.

    `scores` and `prepared` are by system, for systems that need a statistic of this round; `prepared` then by needed
    statistic. All of these are computed from the same trials.
    """

    scores: Mapping[str, ScoreRange]
    prepared: Mapping[str, Statistics]

    @classmethod
    def of(
        cls,
        statistics: Iterable[type[Statistic]],
        scores: Mapping[str, ScoreRange],
        found: Mapping[str, Statistics],
        reference: Reference,
    ) -> Self:
        """The round of the `statistics` that are still needed, given those already `found`, by system like `scores`."""
        every = {system: {s: s.prepare(found[system], reference) for s in statistics} for system in scores}
        return cls._needed(scores, {name: {s: p for s, p in of.items() if p is not None} for name, of in every.items()})

    def without(self, known: Mapping[str, Statistics]) -> Self:
        """Return the round without the statistics that are known, by system."""
        left = {name: {s: p for s, p in of.items() if s not in known[name]} for name, of in self.prepared.items()}
        return self._needed(self.scores, left)

    def columns(self, system: str, reference: Reference) -> list[str]:
        """Return the columns of detections that the statistics of a system need."""
        return _columns(self.prepared[system], reference)

    def checks(self, system: str, reference: Reference) -> bool:
        """Return whether counting checks all rows of a system, so that reading need not check them.

        Alignment refuses unknown codes; if every detection is a trial, `Counts` checks all scores and decisions.
        """
        rule = reference.rule
        return Counts in self.prepared[system] and rule.trials == "virtual" and rule.outside == "false_alarm"

    @classmethod
    def _needed(cls, scores: Mapping[str, ScoreRange], needed: Mapping[str, Statistics]) -> Self:
        prepared = {system: of for system, of in needed.items() if of}
        return cls({system: scores[system] for system in prepared}, prepared)


def _columns(statistics: Collection[type[Statistic]], reference: Reference) -> list[str]:
    aligned = reference.groups_by_alignment or any(statistic.aligned for statistic in statistics)
    of_detections = (name for s in statistics if issubclass(s, OfDetections) for name in s.columns_for(reference))
    return list(dict.fromkeys([*trial_columns(reference.rule, reference.n_groups, aligned), *of_detections]))


def rounds(needed: Iterable[type[Statistic]]) -> list[tuple[type[Statistic], ...]]:
    """Return the needed statistics and those that they come `after`, each in the earliest possible round."""
    before: dict[type[Statistic], tuple[type[Statistic], ...]] = {}
    waiting = list(needed)
    while waiting:
        statistic = waiting.pop(0)
        if statistic not in before:
            before[statistic] = statistic.after
            waiting.extend(statistic.after)
    sorter = TopologicalSorter(before)
    sorter.prepare()
    order = []
    while sorter.is_active():
        ready = sorter.get_ready()
        order.append(ready)
        sorter.done(*ready)
    return order


class DetectionSource:
    """A source that counts `statistics` of runs from their `cells`, under a reference; it knows no measure.

    Statistics that are cached in the archive are not counted, and counted ones are cached. If workers share the memory
    of this process, the columns that later rounds of a group need, except for alignment, are held as far as there is
    room; a group is not much larger.
    """

    def __init__(
        self,
        cells: Cells,
        reference: Reference,
        statistics: Iterable[type[Statistic]],
        executor: Executor,
        rows_per_task: int,
        cached_statistics: CachedStatistics | None = None,
    ) -> None:
        self.rounds = rounds(statistics)
        self.shared = (executor.share(reference),)
        self.enough = TASKS_PER_WORKER * executor.workers * rows_per_task
        self._cells = cells
        self._reference = reference
        self._executor = executor
        self._rows_per_task = rows_per_task
        self._cached = cached_statistics
        later = [each for each in chain(*self.rounds[1:]) if not each.aligned]
        self._later = _columns(later, reference)
        self._room = 0
        if executor.shares_memory and later:
            room = min(MOST_HELD_BYTES, executor.workers * HELD_BYTES)
            self._room = room // sum(_BYTES[name] for name in self._later)
            self.enough = min(self.enough, max(self._room, TASKS_PER_WORKER * executor.workers * FEW_ROWS))
        self._group: list[str] = []
        self._held: dict[str, list[Cell]] = {}

    def share(self, group: Sequence[Run]) -> Shared:  # noqa: ARG002
        """Nothing: tasks read cells."""
        return ()

    def plan(
        self,
        group: Sequence[Run],
        shared: Shared,  # noqa: ARG002
        statistics: Sequence[StatisticType],
        found: Mapping[str, Statistics],
    ) -> Plan | None:
        """Return the round of the runs that need one of `statistics`."""
        this = Round.of(statistics, {run.system: run.scores for run in group}, found, self._reference)
        if not this.prepared:
            return None
        known = {} if self._cached is None else self._cached.read(this.prepared)
        left = this.without(known) if known else this
        needing = [run for run in group if run.system in left.prepared]
        is_last = tuple(statistics) == tuple(self.rounds[-1])
        self._hold([run.system for run in group], [] if is_last else [run.system for run in needing])
        work = tasks(self._cells_of, needing, self._executor.workers, self._rows_per_task)
        store = None if self._cached is None else partial(self._cached.write, left.prepared)
        return Plan(work, sum(run.rows for run in needing), (self._executor.share(left),), known, store)

    def _hold(self, group: list[str], systems: Sequence[str]) -> None:
        """Hold the cells of some systems, as far as there is room, and release those of other groups."""
        if group == self._group:
            return
        self._group, self._held = group, {}
        room = self._room
        for system in systems:
            cells = self._held[system] = []
            for cell in self._cells(system, min(self._rows_per_task, ROWS_PER_CELL)):
                room -= cell.rows
                is_held = isinstance(cell, HeldCell) or room < 0
                cells.append(cell if is_held else HeldCell(cell, self._later))
            if room < 0:
                break

    def _cells_of(self, system: str, rows: int) -> Iterable[Cell]:
        return self._held[system] if system in self._held else self._cells(system, rows)


_BYTES = {field.name: field.type.bit_width // 8 for field in DETECTION_COLUMNS}


def _of_cell(
    cell: Cell, columns: Sequence[str], detections: Detections, reference: Reference, this: Round
) -> Statistics:
    """Return the statistics of a cell; if counting checks the rows, `Counts` is computed before the others."""
    prepared = this.prepared[cell.system]
    aligned = any(statistic.aligned for statistic in prepared)
    scores = this.scores[cell.system]
    checks = this.checks(cell.system, reference)
    found: dict[type[Statistic], Statistic] = {}
    try:
        trials = make_trials(detections, reference, scores, aligned=aligned, source=cell.source)
        if checks:
            found[Counts] = counts = Counts.from_trials(trials, reference, prepared[Counts])
            _check_bounds(cell.parts, trials, counts, scores)
    except ValueError:
        if checks:
            cell.read(columns)  # raises an error that names the row group
        raise
    if checks:
        cell.confirm(columns)
    return found | {each: each.from_trials(trials, reference, p) for each, p in prepared.items() if each not in found}


def _check_bounds(parts: Sequence[int], trials: Trials, counts: Counts, scores: ScoreRange) -> None:
    """Raise `ValueError` if trials are not ordered by query in each of their parts, if only some have decisions, or if
    their scores are outside the run's range.
    """
    least, most = scores.run
    by_decision = counts.mapped.sum(axis=(0, 1)) + counts.unmapped.sum(axis=(0, 1))
    if by_decision[NONE] and by_decision[[NO, YES]].any():
        raise ValueError("rows of which some have decisions")
    found = stretches(trials)
    back = found.bounds[1:-1][np.diff(found.query) < 0]
    if not np.isin(back, np.cumsum(parts)).all():
        raise ValueError("rows that are not in the order of queries")
    if counts.lowest.min(initial=np.inf) < least or counts.highest.max(initial=-np.inf) > most:
        raise ValueError("scores that are not the run's")


@cache
def _keep_pages() -> None:
    """Let a process reuse the memory pages of one cell's arrays for the next cell.

    glibc's allocator returns free memory beyond twice the largest array that was ever freed (up to 32 MiB) to the
    system, and new pages take as long as counting. So a large array is freed first; nothing is written to it, so it
    takes no memory. With other allocators this does nothing.
    """
    np.empty(_LARGE, np.uint8)
