"""Scoring of systems: their statistics are counted in rounds, then their results are computed.

A statistic may need the value of an earlier one, so statistics are counted in rounds; each round is one map over the
tasks of a group of systems. Systems are scored group by group, all rounds of one group before the next: a group is
large enough that every worker has several tasks, and small enough that memory is bounded for any number of systems. A
task also computes and encodes the results of a system, so the client only coordinates. For small systems all of this is
one task (`scoring.score`).

Detections of an archive (`scoring.score`) and fragments of term discovery (`discovery.score`) are scored in this way;
a `Source` cuts either into tasks. Nothing here can change a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import or_
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.execution.executor import Executor, Progress
from swsdask.model.name_columns import coded
from swsdask.model.parquet_files import in_one_form
from swsdask.model.results import ALIGNMENT, CURVES, SCORES, Note
from swsdask.model.system_rows import Rows, Spill, SystemRows, as_encoded

ROUND, NUMBERS, SYSTEMS = "round", "numbers", "systems"
"""The phases of scoring: the labels of progress begin with one of these. `SYSTEMS` are systems that are one task each,
or share one."""

MOST_SYSTEMS = 64
"""The maximum number of systems in a group."""

StatisticType = type[Any]
"""The class of a statistic. Statistics have a method `merge`: associative, commutative and exact."""

Statistics = Mapping[StatisticType, Any]
"""The statistics of one system, by their type."""

Shared = tuple[Any, ...]
"""The values of `Source.shared`, `Source.share` and `Plan.shared`: a source and its tasks agree on their types."""


class System(Protocol):
    """A system whose results are requested; `rows` is its size, for groups and progress."""

    @property
    def system(self) -> str:
        """Its name."""
        ...

    @property
    def rows(self) -> int:
        """The number of its rows."""
        ...


AnySystem = TypeVar("AnySystem", bound=System)
SystemOfSource = TypeVar("SystemOfSource", bound=System, contravariant=True)


class Task(Protocol):
    """A part of a round; its `str` names it in errors."""

    @property
    def rows(self) -> int:
        """Its share of the progress."""
        ...

    def count(self, shared: Shared) -> dict[str, Statistics]:
        """Return the statistics of its rows, by system; `shared` has what `Source` and `Plan` share."""
        ...


@dataclass(frozen=True, eq=False)
class Plan:
    """A round of a group: its tasks, the rows of all of them, and the handles of data that tasks need in this round.

    `known` are statistics that need not be counted, by system; `store` is called with those that were counted.
    """

    tasks: Iterable[Task]
    rows: int
    shared: Shared = ()
    known: Mapping[str, Statistics] = field(default_factory=dict)
    store: Callable[[Mapping[str, Statistics]], None] | None = None


@dataclass(frozen=True, eq=False)
class SystemResults:
    """The results of one system: its rows of `SCORES` and `CURVES`, as tables or encoded, and its notes.

    They are sent encoded. `overall` are the rows of `SCORES` over all queries; `observed` is the data that an observer
    collected.
    """

    scores: Rows
    curves: Rows
    overall: pa.Table
    notes: tuple[Note, ...]
    observed: object = None

    @classmethod
    def of(cls, scores: pa.Table, curves: pa.Table, notes: Iterable[Note], observed: object = None) -> Self:
        """Hold tables of results, whose names may be coded."""
        overall = scores.filter(pc.is_null(scores["query"]))
        return cls(scores, curves, in_one_form(overall, SCORES), tuple(notes), observed)

    def encoded(self) -> Self:
        """Return the same with encoded rows, which take a third of the memory."""
        return replace(self, scores=as_encoded(self.scores, SCORES), curves=as_encoded(self.curves, CURVES))

    def held(self, spill: Spill) -> Self:
        """Return the same with its rows held by `spill` until they are written."""
        return replace(self, scores=spill.hold(self.scores, SCORES), curves=spill.hold(self.curves, CURVES))

    def __getstate__(self) -> dict[str, object]:
        return self.encoded().__dict__


class ResultCache(Protocol[SystemOfSource]):
    """Results that were computed before."""

    def read(self, systems: Sequence[SystemOfSource]) -> dict[str, SystemResults]:
        """Return the cached results of some systems, by system."""
        ...

    def write(self, results: Mapping[str, SystemResults]) -> None:
        """Add results."""
        ...


class CountedSystem(Protocol):
    """A system with its merged statistics; its `str` names it in errors."""

    @property
    def system(self) -> str:
        """Its name."""
        ...

    @property
    def rows(self) -> int:
        """Its share of the progress."""
        ...

    def results(self, shared: Shared) -> SystemResults:
        """Compute its results; `shared` has what `Source` shares."""
        ...


class Source(Protocol[SystemOfSource]):
    """The data that systems are counted on, cut into tasks."""

    @property
    def rounds(self) -> Sequence[Sequence[StatisticType]]:
        """The statistics to count, round by round: each after those that it needs."""
        ...

    @property
    def enough(self) -> int:
        """The number of rows that fill a group."""
        ...

    @property
    def shared(self) -> Shared:
        """The handles of the data that all tasks need, as `Executor.share` returned them."""
        ...

    def share(self, group: Sequence[SystemOfSource]) -> Shared:
        """Return the handles of data of the systems of a group, which its tasks and its numbers need."""
        ...

    def plan(
        self,
        group: Sequence[SystemOfSource],
        shared: Shared,
        statistics: Sequence[StatisticType],
        found: Mapping[str, Statistics],
    ) -> Plan | None:
        """The round that counts `statistics`, given those that earlier rounds `found`; None if no system needs it.

        `shared` has the handles of `Source`.
        """
        ...


@dataclass(frozen=True, eq=False)
class ResultTables:
    """The results of systems, in order, and their rows of `ALIGNMENT` if these were requested."""

    systems: dict[str, SystemResults]
    aligned: dict[str, Rows] | None = None

    @classmethod
    def joined(cls, parts: Sequence[ResultTables], systems: Sequence[str]) -> Self:
        """Return the results of systems that were scored in several parts, in the order of `systems`."""
        of = {system: own for part in parts for system, own in part.systems.items()}
        ordered = {system: of[system] for system in systems}
        if all(part.aligned is None for part in parts):
            return cls(ordered)
        aligned = {system: rows for part in parts for system, rows in (part.aligned or {}).items()}
        return cls(ordered, {system: aligned[system] for system in systems})

    def held(self, spill: Spill) -> Self:
        """Return the same with the rows of systems held by `spill` until they are written."""
        return replace(self, systems={system: own.held(spill) for system, own in self.systems.items()})

    @property
    def scores(self) -> SystemRows:
        """The rows of `SCORES`."""
        return SystemRows(SCORES, {system: own.scores for system, own in self.systems.items()})

    @property
    def curves(self) -> SystemRows:
        """The rows of `CURVES`."""
        return SystemRows(CURVES, {system: own.curves for system, own in self.systems.items()})

    @property
    def alignment(self) -> SystemRows | None:
        """The rows of `ALIGNMENT`; None if they were not requested."""
        return None if self.aligned is None else SystemRows(ALIGNMENT, self.aligned)

    @property
    def overall(self) -> pa.Table:
        """The rows of `SCORES` over all queries."""
        none = coded(SCORES.empty_table(), SCORES)
        return pa.concat_tables([none, *(own.overall for own in self.systems.values())])

    @property
    def notes(self) -> dict[str, tuple[Note, ...]]:
        """The notes of each system."""
        return {system: own.notes for system, own in self.systems.items()}

    @property
    def observed(self) -> dict[str, object]:
        """The data that observers collected, by system."""
        return {system: own.observed for system, own in self.systems.items()}


def score_systems(
    systems: Iterable[AnySystem],
    n_systems: int,
    source: Source[AnySystem],
    counted: Callable[[AnySystem, Statistics], CountedSystem],
    executor: Executor,
    progress: Progress,
    cached_results: ResultCache[AnySystem] | None = None,
    spill: Spill | None = None,
) -> ResultTables:
    """Return the results of systems, in their order.

    Parameters
    ----------
    systems
        The systems, consumed group by group.
    n_systems
        The number of systems.
    source
        The data from which statistics are counted.
    counted
        Called in the client after the statistics of a system were counted.
    executor
        Runs the tasks.
    progress
        Receives the phases of the work.
    cached_results
        Results that need not be computed; computed results are added.
    spill
        Holds the rows; None: they stay in memory.

    Raises
    ------
    ExecutionError, ClusterError
        As `count_systems`.
    """
    found: dict[str, SystemResults] = {}
    for group in groups(systems, source.enough):
        results = {} if cached_results is None else cached_results.read(group)
        left = [system for system in group if system.system not in results]
        if left:
            which = _which(len(found), len(group), n_systems)
            computed = _results(left, which, source, counted, executor, progress)
            if cached_results is not None:
                computed = {system: own.encoded() for system, own in computed.items()}
                cached_results.write(computed)
            results |= computed
        for system in group:
            own = results[system.system]
            found[system.system] = own if spill is None else own.held(spill)
    return ResultTables(found)


def count_systems(
    systems: Iterable[AnySystem], n_systems: int, source: Source[AnySystem], executor: Executor, progress: Progress
) -> Iterator[list[tuple[AnySystem, Statistics]]]:
    """Yield the systems, in their order, group by group, each with its merged statistics.

    Raises `ExecutionError` with the task if one fails, the `SwsdaskError` that a task raised, `ClusterError` if the
    cluster is lost.
    """
    first = 0
    for group in groups(systems, source.enough):
        shared = (*source.shared, *source.share(group))
        found = _counted(group, _which(first, len(group), n_systems), source, shared, executor, progress)
        first += len(group)
        yield [(system, found[system.system]) for system in group]


def _results(
    group: Sequence[AnySystem],
    which: str,
    source: Source[AnySystem],
    counted: Callable[[AnySystem, Statistics], CountedSystem],
    executor: Executor,
    progress: Progress,
) -> dict[str, SystemResults]:
    """Return the results of a group, by system; `which` ends the labels of its phases."""
    shared = (*source.shared, *source.share(group))
    statistics = _counted(group, which, source, shared, executor, progress)
    waiting = [counted(system, statistics[system.system]) for system in group]
    progress.begin(f"{NUMBERS}{which}", sum(each.rows for each in waiting))
    results = executor.map_reduce(
        _results_of, waiting, or_, shared, done=lambda each: progress.advance(each.rows), name=NUMBERS
    )
    return results or {}


def _counted(
    group: Sequence[AnySystem],
    which: str,
    source: Source[AnySystem],
    shared: Shared,
    executor: Executor,
    progress: Progress,
) -> dict[str, dict[StatisticType, object]]:
    """Return the merged statistics of a group, by system; `shared` has the handles of the source."""
    found: dict[str, dict[StatisticType, object]] = {system.system: {} for system in group}
    for number, statistics in enumerate(source.rounds, 1):
        plan = source.plan(group, shared, statistics, found)
        if plan is None:
            continue
        progress.begin(f"{ROUND} {number} of {len(source.rounds)}{which}", plan.rows)
        merged = executor.map_reduce(
            _count,
            plan.tasks,
            merge,
            (*shared, *plan.shared),
            done=lambda task: progress.advance(task.rows),
            name=f"{ROUND} {number}",
        )
        for name, values in (*plan.known.items(), *(merged or {}).items()):
            found[name].update(values)
        if plan.store is not None and merged:
            plan.store(merged)
    return found


def groups(systems: Iterable[AnySystem], enough: int) -> Iterator[list[AnySystem]]:
    """Systems, in their order, in groups that are scored together: of `enough` rows, or of `MOST_SYSTEMS`."""
    group: list[AnySystem] = []
    rows = 0
    for system in systems:
        group.append(system)
        rows += system.rows
        if rows >= enough or len(group) == MOST_SYSTEMS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def merge(one: Mapping[str, Statistics], other: Mapping[str, Statistics]) -> dict[str, Statistics]:
    """Return the statistics of two parts of a round, by system."""
    merged = dict(one)
    for system, found in other.items():
        own = merged.get(system, {})
        both = {kind: own[kind].merge(value) if kind in own else value for kind, value in found.items()}
        merged[system] = {**own, **both}
    return merged


def _count(task: Task, shared: Shared) -> dict[str, Statistics]:
    return task.count(shared)


def _results_of(counted: CountedSystem, shared: Shared) -> dict[str, SystemResults]:
    return {counted.system: counted.results(shared)}


def _which(done: int, count: int, n_systems: int) -> str:
    """Return the end of a phase's label, which names its systems; empty if it has all of them."""
    some = f"system {done + 1}" if count == 1 else f"systems {done + 1}-{done + count}"
    return "" if count == n_systems else f", {some} of {n_systems}"
