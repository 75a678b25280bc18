"""Rounds over the cells of an archive: each is one map, in the order in which statistics need each other.

Systems are scored group by group, all rounds of one group before the next. A group is as many systems as give every
worker several tasks of about the same size, so that few workers wait while the last tasks of a round end; and no more,
so that memory stays bounded however many systems there are. Nothing here can change a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from graphlib import TopologicalSorter
from typing import Any, Self

import numpy as np

from swsdask.alignment.trials import make_trials, trial_columns
from swsdask.archive.protocols import Archive, Cell, Run
from swsdask.execution.executor import Tree, execution_error
from swsdask.model.errors import SwsdaskError, counted
from swsdask.model.schemas import DETECTION_COLUMNS
from swsdask.model.trials import Detections, Reference, ScoreRange
from swsdask.statistics.statistic import OfDetections, Statistic

TASKS_PER_WORKER = 8
"""For how many tasks of `rows_per_task` a worker has rows in a group, where there are rows enough."""

FEW_ROWS = 1_000_000
"""No task is made smaller than this so that workers end together: counting so many rows takes several times as long as
Dask needs for a task."""

ROWS_PER_CELL = 500_000
"""Cells are asked for no larger, so that one holds a row group: it is read without a copy, into memory just let go."""

MOST_SYSTEMS = 64
"""How many systems are in a group at most."""


@dataclass(frozen=True)
class Task:
    """Some cells, whose detections are read and counted one cell after the other."""

    cells: tuple[Cell, ...]

    @property
    def rows(self) -> int:
        """How many detections they have together."""
        return sum(cell.rows for cell in self.cells)

    def __str__(self) -> str:
        systems = dict.fromkeys(cell.system for cell in self.cells)
        sources = dict.fromkeys(cell.source for cell in self.cells)
        return f"system {_some(list(systems))}: {_some(list(sources))}"


@dataclass(frozen=True)
class NoDetections:
    """The one cell of a system that detected nothing."""

    system: str
    rows: int = 0

    @property
    def source(self) -> str:
        """There is none."""
        return "no detections"

    def read(self, columns: Sequence[str]) -> Detections:
        """Columns without rows."""
        empty = {
            name: np.empty(0, DETECTION_COLUMNS.field(name).type.to_pandas_dtype())
            for name in {"query", "score", *columns}
        }
        return Detections(**empty)


def groups(runs: Iterable[Run], workers: int, rows_per_task: int) -> Iterator[list[Run]]:
    """The runs, in their order, in groups of systems that are scored together."""
    enough = TASKS_PER_WORKER * workers * rows_per_task
    group: list[Run] = []
    rows = 0
    for run in runs:
        if group and (rows >= enough or len(group) == MOST_SYSTEMS):
            yield group
            group, rows = [], 0
        group.append(run)
        rows += run.rows
    if group:
        yield group


def tasks(archive: Archive, runs: Sequence[Run], workers: int, rows_per_task: int) -> Iterator[Task]:
    """Every cell of the runs, in order, in tasks that shrink towards the end: few tasks, and workers end together.

    A task has as many cells as fit in a worker's half of an equal share of the rows that are left (guided
    self-scheduling: Polychronopoulos and Kuck 1987), but no more than `rows_per_task` rows, unless one cell has more.
    """
    left = sum(run.rows for run in runs)
    waiting: list[Cell] = []
    rows = 0
    for cell in _cells(archive, [run.system for run in runs], rows_per_task):
        if waiting and rows + cell.rows > min(rows_per_task, max(FEW_ROWS, left // (2 * workers))):
            yield Task(tuple(waiting))
            left -= rows
            waiting, rows = [], 0
        waiting.append(cell)
        rows += cell.rows
    if waiting:
        yield Task(tuple(waiting))


def _cells(archive: Archive, systems: Iterable[str], rows_per_task: int) -> Iterator[Cell]:
    for system in systems:
        empty = True
        for cell in archive.cells(system, min(rows_per_task, ROWS_PER_CELL)):
            empty = False
            yield cell
        if empty:
            yield NoDetections(system)


def _some(names: Sequence[str], shown: int = 3) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


_LARGE = 31 << 20

Found = Mapping[type[Statistic], Any]
"""Statistics of one system, by their type."""


@dataclass(frozen=True, eq=False)
class Round:
    """What the tasks of one round need besides the reference.

    `scores` and `prepared` are by system, of those that need a statistic of this round; `prepared` then by statistic,
    of those that are needed, which are computed from the same trials.
    """

    scores: Mapping[str, ScoreRange]
    prepared: Mapping[str, Found]

    @classmethod
    def of(
        cls,
        statistics: Iterable[type[Statistic]],
        scores: Mapping[str, ScoreRange],
        found: Mapping[str, Found],
        reference: Reference,
    ) -> Self:
        """The round of those of `statistics` that are needed after what was `found`, by system as `scores`."""
        every = {system: {s: s.prepare(found[system], reference) for s in statistics} for system in scores}
        needed = {system: {s: p for s, p in of.items() if p is not None} for system, of in every.items()}
        prepared = {system: of for system, of in needed.items() if of}
        return cls({system: scores[system] for system in prepared}, prepared)


def rounds(needed: Iterable[type[Statistic]]) -> list[tuple[type[Statistic], ...]]:
    """The needed statistics and all that these come `after`, each in the earliest round that it can be in."""
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


def statistics_of(task: Task, shared: tuple[Reference, Round]) -> dict[str, Found]:
    """The statistics of a task's cells, by system.

    Raises `ExecutionError` that names the cell, and what its reading and alignment raise of ours.
    """
    _keep_pages()
    reference, this = shared
    tree: Tree[dict[str, Found]] = Tree(lambda parts: reduce(merge, parts), fan_in=2)
    for cell in task.cells:
        try:
            found = _of_cell(cell, reference, this)
        except SwsdaskError:
            raise
        except Exception as error:
            raise execution_error(
                f"system {cell.system}: {cell.source} ({counted(cell.rows, 'rows')})", error
            ) from error
        tree.add({cell.system: found})
    return tree.total() or {}


def merge(one: Mapping[str, Found], other: Mapping[str, Found]) -> dict[str, Found]:
    """What two parts of a round found, together."""
    merged = dict(one)
    for system, found in other.items():
        if system in merged:
            found = {statistic: value.merge(found[statistic]) for statistic, value in merged[system].items()}
        merged[system] = found
    return merged


def _of_cell(cell: Cell, reference: Reference, this: Round) -> Found:
    prepared = this.prepared[cell.system]
    aligned = any(statistic.aligned for statistic in prepared)
    of_detections = (name for s in prepared if issubclass(s, OfDetections) for name in s.columns_for(reference))
    columns = dict.fromkeys([*trial_columns(reference.rule, reference.n_groups, aligned), *of_detections])
    detections = cell.read(list(columns))
    trials = make_trials(detections, reference, this.scores[cell.system], aligned=aligned, source=cell.source)
    return {statistic: statistic.from_trials(trials, reference, p) for statistic, p in prepared.items()}


@cache
def _keep_pages() -> None:
    """Let a process keep the pages of the arrays of one cell for those of the next.

    glibc's allocator gives back to the system what is free beyond twice the largest array that was ever let go of (up
    to 32 MiB), and new pages take as long as counting does. So a large one is let go of first; nothing is written to
    it, so it takes no memory. Elsewhere this does nothing.
    """
    np.empty(_LARGE, np.uint8)
