"""Scores of term discovery: statistics of systems on an executor, then numbers in long form.

Numbers are reported over each set of folds, with their spread, and for every fold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from swsdask.discovery.folds import COUNT, spreads, with_f_scores
from swsdask.discovery.measures.tokens import sizes
from swsdask.discovery.statistic import Measure, Statistic
from swsdask.execution.executor import Executor, Progress
from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.errors import counted
from swsdask.model.results import SCORES
from swsdask.model.trials import F64

MOST_SYSTEMS = 64
"""The maximum number of systems in a group."""

MOST_FRAGMENTS = 4_000_000
"""The maximum number of fragments in a group, unless one system has more: it bounds the memory."""

Found = Mapping[type[Statistic], Any]
"""The statistics of one system, by their type."""


@dataclass(frozen=True)
class Task:
    """One cell of a statistic of one system of a group; `measures` are those that need it, for error messages.

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
    """Yield each system with its merged statistics, in the order of `systems`, which are drawn group by group.

    `statistics` has the measures that need each, for error messages; `work` is roughly the number of elementary steps
    per cell. Raises what drawing systems raises, `ExecutionError` with the system, the measures and the cell if a task
    fails, `ClusterError` if the cluster is lost.
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
"""Statistics by (index of the system in its group, type)."""


def statistic_of(task: Task, shared: tuple[Any, ...]) -> Parts:
    """The statistic of a task's cell; `shared` is the corpus, then the systems of the group."""
    corpus, discovered, cell = shared[0], shared[1 + task.place], task.cell
    return {(task.place, task.statistic): task.statistic.from_cell(cell, corpus, discovered)}


def merge(one: Parts, other: Parts) -> Parts:
    """The merged statistics of two parts of the work."""
    merged = dict(one)
    for key, value in other.items():
        merged[key] = merged[key].merge(value) if key in merged else value
    return merged


def needed(families: Iterable[Measure]) -> dict[type[Statistic], str]:
    """Every statistic that measures need, with the names of these measures."""
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


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of one system over one set of folds.

    `overall` are the means, spreads and counts of the whole set by name; `by_fold` the numbers of its folds,
    float64 [n_folds]; `left_out` the number of folds that a mean leaves out, if any.
    """

    condition: str
    folds: tuple[str, ...]
    overall: dict[str, float]
    by_fold: dict[str, F64]
    left_out: dict[str, int]


def numbers(
    discovered: Discovered, found: Found, families: Sequence[Measure], corpus: Corpus, names: Collection[str]
) -> list[Numbers]:
    """The numbers `names` (and the spreads of means), in this order, for each set of folds.

    tdev2 has one fold, the corpus, and therefore no spreads and no numbers of folds.
    """
    made = []
    for place, folds in enumerate(corpus.folds):
        totals, by_fold = sizes(discovered, corpus, place)
        values = dict(by_fold)
        for family in families:
            values.update(family.values(found[family.statistic], corpus, place))
        values = with_f_scores(values)
        whole = corpus.definition == "tdev2"
        overall, left_out = _overall({name: values[name] for name in names}, values, totals, corpus, spread=not whole)
        kept = {} if whole else {name: values[name] for name in names}
        made.append(Numbers(folds.condition, folds.names, overall, kept, left_out))
    return made


def _overall(
    requested: Mapping[str, F64],
    values: Mapping[str, F64],
    totals: Mapping[str, float],
    corpus: Corpus,
    *,
    spread: bool,
) -> tuple[dict[str, float], dict[str, int]]:
    over_folds = spreads(values, corpus.definition)
    overall: dict[str, float] = {}
    left_out: dict[str, int] = {}
    for name, numbers_of_folds in requested.items():
        if name.startswith(COUNT):
            overall[name] = totals.get(name, float(numbers_of_folds.sum()))
            continue
        this = over_folds[name]
        overall[name] = this.mean
        if spread:
            overall |= {f"{name}_std": this.std, f"{name}_min": this.least, f"{name}_max": this.most}
        if this.left_out:
            left_out[name] = this.left_out
    return overall, left_out


def score_table(system: str, conditions: Sequence[Numbers]) -> pa.Table:
    """Rows of `model.results.SCORES`: "all" or "within_talker", then a condition per fold, "all/<fold>"."""
    rows = [(condition, name, value) for numbers in conditions for condition, name, value in _rows(numbers)]
    names, measures, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [[system] * len(rows), names, pa.nulls(len(rows), pa.string()), measures, values]
    return pa.table(columns, schema=SCORES)


def _rows(numbers: Numbers) -> Iterator[tuple[str, str, float]]:
    for name, value in numbers.overall.items():
        yield numbers.condition, name, value
    for place, fold in enumerate(numbers.folds):
        for name, values in numbers.by_fold.items():
            yield f"{numbers.condition}/{fold}", name, float(values[place])
