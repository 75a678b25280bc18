"""Which cells are worked on together: tasks of about the same size, of groups of systems.

Systems are scored group by group, all rounds of one group before the next. A group is as many systems as give every
worker several tasks, so that few workers wait while the last tasks of a round end; and no more, so that what is held of
them at once stays bounded however many there are. Nothing here can change a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from swsdask.archive.base import Archive, Cell, Run
from swsdask.model.schemas import DETECTION_COLUMNS
from swsdask.model.trials import Detections

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
