"""Rounds: statistics in the order in which they need each other, each round one map over the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from graphlib import TopologicalSorter
from typing import Any, Self

import numpy as np

from swsdask.alignment.trials import make_trials, trial_columns
from swsdask.archive.base import Cell
from swsdask.engine.executor import execution_error
from swsdask.engine.plan import Task
from swsdask.engine.tree import Tree
from swsdask.errors import SwsdaskError
from swsdask.model.trials import Reference, ScoreRange
from swsdask.model.wording import counted
from swsdask.statistics.base import OfDetections, Statistic

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
