"""Scoring of systems: their statistics are counted in rounds, then their results are computed.

A statistic may need what an earlier one found, so statistics are counted in rounds; each is one map over the tasks of a
group of systems. Systems are scored group by group, all rounds of one group before the next: a group is large enough
that every worker has several tasks, and small enough that memory stays bounded however many systems there are. The
results of a system are a task too, so the client only steers and joins tables. Of small systems all of this is one
task (`scoring.score`).

Detections of an archive (`scoring.score`) and fragments of term discovery (`discovery.score`) are scored in this way;
a `Source` cuts either into tasks. Nothing here can change a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import or_
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.execution.executor import Executor, Progress
from swsdask.model.results import CURVES, SCORES, Note
from swsdask.model.tables import coded, gathered, received, sent

MOST_SYSTEMS = 64
"""The maximum number of systems in a group."""

Kind = type[Any]
"""The class of a statistic. Statistics have a method `merge`: associative, commutative and exact (law 1)."""

Found = Mapping[Kind, Any]
"""The statistics of one system, by their type."""

Shared = tuple[Any, ...]
"""The values of `Source.shared`, then those of `Plan.shared`: a source and its tasks agree on their types."""


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
    """A part of a round; `str` of it names it in errors."""

    @property
    def rows(self) -> int:
        """Its share of the progress."""
        ...

    def count(self, shared: Shared) -> dict[str, Found]:
        """The statistics of its rows, by system; `shared` has what `Plan` and `Source` share."""
        ...


@dataclass(frozen=True, eq=False)
class Plan:
    """A round of a group: its tasks, the rows of all of them, and the handles of what tasks need in this round.

    `known` are statistics that need not be counted, by system; `keep` is called with those that were.
    """

    tasks: Iterable[Task]
    rows: int
    shared: Shared = ()
    known: Mapping[str, Found] = field(default_factory=dict)
    keep: Callable[[Mapping[str, Found]], None] | None = None


@dataclass(frozen=True, eq=False)
class SystemResults:
    """The results of one system: rows of `SCORES` and of `CURVES`, whose names may be `coded`, and notes.

    `observed` is what was taken of it beside them.
    """

    scores: pa.Table
    curves: pa.Table
    notes: tuple[Note, ...]
    observed: object = None


class Keeping(Protocol[SystemOfSource]):
    """Results that were computed before."""

    def read(self, systems: Sequence[SystemOfSource]) -> dict[str, SystemResults]:
        """Return the results that are there of some systems, by system."""
        ...

    def write(self, results: Mapping[str, SystemResults]) -> None:
        """Add results."""
        ...


class CountedSystem(Protocol):
    """A system with its merged statistics; `str` of it names it in errors."""

    @property
    def system(self) -> str:
        """Its name."""
        ...

    @property
    def rows(self) -> int:
        """Its share of the progress."""
        ...

    def results(self, shared: Shared) -> SystemResults:
        """Compute its results; `shared` is what `Source` shares."""
        ...


class Source(Protocol[SystemOfSource]):
    """The data that systems are counted on, cut into tasks."""

    @property
    def rounds(self) -> Sequence[Sequence[Kind]]:
        """The statistics that are counted, round by round: each after those that it needs."""
        ...

    @property
    def enough(self) -> int:
        """The number of rows that fill a group."""
        ...

    @property
    def shared(self) -> Shared:
        """The handles of what all tasks need, as `Executor.share` returned them."""
        ...

    def plan(
        self, group: Sequence[SystemOfSource], statistics: Sequence[Kind], found: Mapping[str, Found]
    ) -> Plan | None:
        """The round that counts `statistics`, after what earlier rounds `found`; None if no system needs it."""
        ...


@dataclass(frozen=True, eq=False)
class ResultTables:
    """The results of some systems: tables of `model.results`, and by system notes and what was observed.

    The alignment is there if it was requested.
    """

    scores: pa.Table
    curves: pa.Table
    notes: dict[str, tuple[Note, ...]]
    observed: dict[str, object]
    alignment: pa.Table | None = None

    def __getstate__(self) -> dict[str, object]:
        """The tables travel without what their chunks share."""
        return self.__dict__ | {name: sent(getattr(self, name)) for name in ("scores", "curves")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Undo `__getstate__`."""
        self.__dict__.update(state | {name: received(*state[name]) for name in ("scores", "curves")})


def one_table(parts: Sequence[ResultTables], systems: Sequence[str]) -> ResultTables:
    """The results of systems that were scored in several parts, in the order of `systems`."""
    if len(parts) == 1:
        return parts[0]
    there = [system for part in parts for system in part.notes]

    def joined(tables: Sequence[pa.Table]) -> pa.Table:
        table = gathered(tables)
        if there == [*systems]:
            return table
        table = table.combine_chunks()
        place = pc.index_in(table["system"].cast(pa.string()), value_set=pa.array(systems, pa.string()))
        return table.take(pc.array_sort_indices(place.combine_chunks()))

    aligned = [part.alignment for part in parts if part.alignment is not None]
    return ResultTables(
        scores=joined([part.scores for part in parts]),
        curves=joined([part.curves for part in parts]),
        notes={system: part.notes[system] for system in systems for part in parts if system in part.notes},
        observed={system: seen for part in parts for system, seen in part.observed.items()},
        alignment=joined(aligned) if aligned else None,
    )


def score_systems(
    systems: Iterable[AnySystem],
    n_systems: int,
    source: Source[AnySystem],
    counted: Callable[[AnySystem, Found], CountedSystem],
    executor: Executor,
    progress: Progress,
    kept: Keeping[AnySystem] | None = None,
) -> ResultTables:
    """The results of systems, in their order.

    Parameters
    ----------
    systems
        The systems, drawn group by group.
    n_systems
        How many there are.
    source
        What they are counted on.
    counted
        Called in the client when the statistics of a system are counted.
    executor
        Where tasks run.
    progress
        Receives the phases of the work.
    kept
        Results that need not be computed; those that are computed are added.

    Raises
    ------
    ExecutionError, ClusterError
        As `count_systems`.
    """
    scores, curves = [coded(SCORES.empty_table(), SCORES)], [coded(CURVES.empty_table(), CURVES)]
    notes: dict[str, tuple[Note, ...]] = {}
    observed: dict[str, object] = {}
    for group in groups(systems, source.enough):
        results = {} if kept is None else kept.read(group)
        left = [system for system in group if system.system not in results]
        if left:
            which = _which(len(notes), len(group), n_systems)
            statistics = _counted(left, which, source, executor, progress)
            waiting = [counted(system, statistics[system.system]) for system in left]
            progress.begin(f"{which}numbers", sum(each.rows for each in waiting))
            computed = executor.map_reduce(
                _results_of,
                waiting,
                or_,
                source.shared,
                done=lambda each: progress.advance(each.rows),
                name="numbers",
            )
            if kept is not None:
                kept.write(computed or {})
            results |= computed or {}
        for system in group:
            own = results[system.system]
            scores.append(coded(own.scores, SCORES))
            curves.append(coded(own.curves, CURVES))
            notes[system.system] = own.notes
            observed[system.system] = own.observed
    return ResultTables(
        scores=gathered(scores),
        curves=gathered(curves),
        notes=notes,
        observed=observed,
    )


def count_systems(
    systems: Iterable[AnySystem], n_systems: int, source: Source[AnySystem], executor: Executor, progress: Progress
) -> Iterator[list[tuple[AnySystem, Found]]]:
    """Yield the systems, in their order, group by group, each with its merged statistics.

    Raises `ExecutionError` with the task if one fails, the `SwsdaskError` that a task raised, `ClusterError` if the
    cluster is lost.
    """
    first = 0
    for group in groups(systems, source.enough):
        found = _counted(group, _which(first, len(group), n_systems), source, executor, progress)
        first += len(group)
        yield [(system, found[system.system]) for system in group]


def _counted(
    group: Sequence[AnySystem], which: str, source: Source[AnySystem], executor: Executor, progress: Progress
) -> dict[str, dict[Kind, object]]:
    """The merged statistics of a group, by system; `which` systems it has, for progress."""
    found: dict[str, dict[Kind, object]] = {system.system: {} for system in group}
    for number, statistics in enumerate(source.rounds, 1):
        plan = source.plan(group, statistics, found)
        if plan is None:
            continue
        progress.begin(f"{which}round {number} of {len(source.rounds)}", plan.rows)
        merged = executor.map_reduce(
            _count,
            plan.tasks,
            merge,
            (*source.shared, *plan.shared),
            done=lambda task: progress.advance(task.rows),
            name=f"round {number}",
        )
        for name, values in (*plan.known.items(), *(merged or {}).items()):
            found[name].update(values)
        if plan.keep is not None and merged:
            plan.keep(merged)
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


def merge(one: Mapping[str, Found], other: Mapping[str, Found]) -> dict[str, Found]:
    """The statistics of two parts of a round, by system."""
    merged = dict(one)
    for system, found in other.items():
        own = merged.get(system, {})
        both = {kind: own[kind].merge(value) if kind in own else value for kind, value in found.items()}
        merged[system] = {**own, **both}
    return merged


def _count(task: Task, shared: Shared) -> dict[str, Found]:
    return task.count(shared)


def _results_of(counted: CountedSystem, shared: Shared) -> dict[str, SystemResults]:
    return {counted.system: counted.results(shared)}


def _which(done: int, count: int, n_systems: int) -> str:
    """The systems of a phase, for progress; nothing if it has all of them."""
    some = f"system {done + 1}" if count == 1 else f"systems {done + 1}-{done + count}"
    return "" if count == n_systems else f"{some} of {n_systems}, "
