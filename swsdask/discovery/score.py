"""Scoring term discovery: the statistics of some systems on an executor, whatever the systems, cells and measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from swsdask.discovery.base import Measure, Statistic
from swsdask.engine.executor import Executor
from swsdask.engine.progress import Progress
from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.wording import counted

MOST_SYSTEMS = 64
"""How many systems are in a group at most."""

MOST_FRAGMENTS = 4_000_000
"""How many fragments a group has at most, unless one system has more: what is held of them at once stays bounded."""

Found = Mapping[type[Statistic], Any]
"""The statistics of one system, by their type."""


@dataclass(frozen=True)
class Task:
    """One cell of a statistic of one system of a group; `measures` are those that need it, for whoever reads an error.

    `number` counts a statistic's cells from 1.
    """

    place: int
    system: str
    measures: str
    statistic: type[Statistic]
    number: int
    cell: Any

    def __str__(self) -> str:
        return f"system {self.system}: {self.measures}, cell {self.number} ({self.cell})"


def score_systems(
    systems: Iterable[Discovered],
    corpus: Corpus,
    statistics: Mapping[type[Statistic], str],
    executor: Executor,
    work: int,
    progress: Progress,
) -> Iterator[tuple[Discovered, Found]]:
    """Each system with its merged statistics, in the order of `systems`, which are drawn group by group.

    `statistics` tells of each what needs it, for whoever reads an error; `work` is about how many elementary steps a
    cell takes. Raises what drawing systems raises, `ExecutionError` naming the system, the measures and the cell where
    a task fails, `ClusterError` where the cluster is lost.
    """
    known_everywhere = executor.share(corpus)
    scored = 0
    for group in groups(systems):
        tasks = [task for place, system in enumerate(group) for task in _tasks(place, system, corpus, statistics, work)]
        those = group[0].system if len(group) == 1 else counted(len(group), "systems")
        progress.begin(f"{those} from number {scored + 1}" if scored else those, len(tasks))
        merged = executor.map_reduce(
            statistic_of,
            tasks,
            merge,
            (known_everywhere, *(executor.share(system) for system in group)),
            done=lambda _: progress.advance(1),
        )
        for place, system in enumerate(group):
            yield system, {statistic: (merged or {})[place, statistic] for statistic in statistics}
        scored += len(group)


def groups(systems: Iterable[Discovered]) -> Iterator[list[Discovered]]:
    """Systems, in their order, in groups that are scored together."""
    group: list[Discovered] = []
    for system in systems:
        if group and (len(group) == MOST_SYSTEMS or sum(map(len, group)) + len(system) > MOST_FRAGMENTS):
            yield group
            group = []
        group.append(system)
    if group:
        yield group


Parts = dict[tuple[int, type[Statistic]], Any]
"""Statistics by (place of the system in its group, type)."""


def statistic_of(task: Task, shared: tuple[Any, ...]) -> Parts:
    """The statistic of a task's cell; `shared` is the corpus, then the systems of the group."""
    corpus, discovered, cell = shared[0], shared[1 + task.place], task.cell
    return {(task.place, task.statistic): task.statistic.from_cell(cell, corpus, discovered)}


def merge(one: Parts, other: Parts) -> Parts:
    """What two parts of the work found, together."""
    merged = dict(one)
    for key, value in other.items():
        merged[key] = merged[key].merge(value) if key in merged else value
    return merged


def needed(families: Iterable[Measure]) -> dict[type[Statistic], str]:
    """Every statistic that measures need, once, with the names of those that do."""
    names: dict[type[Statistic], list[str]] = {}
    for family in families:
        names.setdefault(family.statistic, []).extend(family.names)
    return {statistic: ", ".join(those) for statistic, those in names.items()}


def _tasks(
    place: int, system: Discovered, corpus: Corpus, statistics: Mapping[type[Statistic], str], work: int
) -> Iterator[Task]:
    for statistic, measures in statistics.items():
        for number, cell in enumerate(statistic.cells(corpus, system, work), 1):
            yield Task(place, system.system, measures, statistic, number, cell)
