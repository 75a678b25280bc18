"""Systems compared: an interval for every number, the difference of every two systems with its tests, and gates.

A pair of systems is compared over the queries that count for both. Queries are resampled, the same ones for all systems
and measures of a condition, so differences are paired. Systems are in the order of their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from swsdask.comparison.gates import Gate, failures, gate_notes
from swsdask.comparison.notes import (
    FEW_QUERIES,
    Least,
    alone_notes,
    coarse_notes,
    few_notes,
    replicate_notes,
    tie_notes,
    undefined_notes,
    unpaired_notes,
    unreliable,
    without_notes,
)
from swsdask.comparison.paired import P_RANDOMIZATION, Tasks
from swsdask.comparison.resampled import Draws, OfSystem, SampleReplicates
from swsdask.model.comparison import DIFFERENCES, INTERVALS, Comparison, Resampling
from swsdask.model.errors import SettingsError
from swsdask.model.samples import SampleOfQueries
from swsdask.model.trials import F64
from swsdask.model.wording import counted, listed

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor


MANY_PAIRS = 1000
"""A comparison of at least this many pairs is reported before it starts."""

Samples = Mapping[str, Mapping[str, Mapping[str, SampleOfQueries]]]
"""By condition, measure and system."""


Key = tuple[str, bytes]
"""A system, and the queries of its sample."""


class ComparedSystems(NamedTuple):
    """Two systems, their samples over the queries that both have, and the number of queries that only one has."""

    a: str
    b: str
    one: Key
    other: Key
    n_both: int
    n_only_one: int


@dataclass(frozen=True, eq=False)
class _ByMeasure:
    """One measure in one condition: its samples over their own queries and over those of pairs, and the pairs."""

    own: Mapping[str, Key]
    samples: Mapping[Key, SampleOfQueries]
    pairs: Sequence[ComparedSystems]

    @classmethod
    def of(cls, by_system: Mapping[str, SampleOfQueries], pairs: Iterable[tuple[str, str]]) -> Self:
        """Pair systems; each pair is compared over the queries that both have."""
        queries = {system: sample.queries for system, sample in by_system.items()}
        own = {system: (system, queries[system].tobytes()) for system in by_system}
        samples = {own[system]: sample for system, sample in by_system.items()}
        found = []
        for a, b in pairs:
            if a not in own or b not in own:
                continue
            both = queries[a] & queries[b]
            keys = [(system, both.tobytes()) for system in (a, b)]
            for key in keys:
                if key not in samples:
                    samples[key] = by_system[key[0]].restricted_to(both)
            n_only_one = int(np.count_nonzero(queries[a] != queries[b]))
            found.append(ComparedSystems(a, b, keys[0], keys[1], int(both.sum()), n_only_one))
        return cls(own, samples, found)


def pairs_of(
    systems: Iterable[str], pair: tuple[str, str] | None = None, baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return every pair of systems, or one `pair`, or each of the others with a `baseline`.

    Raises `SettingsError` for an unknown system and for two equal ones.
    """
    systems = sorted(systems)
    for name in (*(pair or ()), *([baseline] if baseline is not None else [])):
        if name not in systems:
            raise SettingsError(f"{name!r} is none of the systems: {listed(systems)}.")
    if pair is not None:
        if pair[0] == pair[1]:
            raise SettingsError(f"{pair[0]!r} is compared with itself: name two systems.")
        return [pair]
    if baseline is not None:
        return [(system, baseline) for system in systems if system != baseline]
    return list(combinations(systems, 2))


def compare(
    samples: Samples,
    n_queries: Mapping[str, int],
    systems: Iterable[str],
    how: Resampling,
    pairs: Sequence[tuple[str, str]],
    gates: Iterable[Gate] = (),
    signature: str = "",
    *,
    n_documents: Mapping[str, int] | None = None,
    report: Callable[[str], None] | None = None,
    executor: Executor | None = None,
    ties: bool = True,
    advise: bool = True,
) -> Comparison:
    """Compute the intervals of all samples, and the differences of some pairs of `systems`.

    `n_queries` are the queries of each condition, `n_documents` its documents if they are drawn. `gates` are applied to
    every pair, the second of which is the baseline. `report` receives the size of a comparison of many pairs, which may
    take minutes. Samples are resampled and pairs tested by the `executor`, or without one in this process. If `ties`,
    notes name the systems that do not differ from the best one, where it was compared with all others; if `advise`,
    they name options of the command that help. Raises `SettingsError` for a gate without values.
    """
    systems, gates = sorted(systems), list(gates)
    if report is not None and len(pairs) >= MANY_PAIRS:
        measures = {measure for by_measure in samples.values() for measure in by_measure}
        report(f"comparing {counted(len(pairs), 'pairs')} by {counted(len(measures), 'measures')}")
    intervals: list[tuple[str, str, str, float, float, float, float]] = []
    differences = [DIFFERENCES.empty_table()]
    notes: dict[tuple[str, str], list[str]] = {}
    leasts: dict[tuple[str, str], Least] = {}
    values: dict[tuple[str, str], dict[str, float]] = {}
    unit = "folds" if how.resample == "folds" else "queries"
    for condition, by_measure in samples.items():
        draws = Draws(how, n_queries[condition], (n_documents or {}).get(condition, 0))
        tasks = Tasks(draws, executor)
        if n_queries[condition] < FEW_QUERIES:
            few = counted(n_queries[condition], unit)
            notes[condition, ""] = [f"{condition}: {few}; {unreliable(unit)}."]
        if 0 < draws.n_documents < FEW_QUERIES:
            few = counted(draws.n_documents, "documents")
            notes[condition, "documents"] = [f"{condition}: {few}; {unreliable('documents')}."]
        for measure, found, every in _resampled(systems, by_measure, pairs, tasks, together=draws.are_expensive):
            resampled = {system: every[key] for system, key in found.own.items()}
            own_notes = notes[condition, measure] = []
            for system, each in resampled.items():
                intervals.append((system, condition, measure, each.value, *each.interval, each.standard_error))
            own_notes += undefined_notes(condition, measure, resampled)
            own_notes += alone_notes(condition, measure, resampled, unit)
            own_notes += without_notes(condition, measure, [system for system in systems if system not in resampled])
            if n_queries[condition] >= FEW_QUERIES:
                own_notes += few_notes(condition, measure, resampled, unit)
            own_notes += unpaired_notes(condition, measure, found.pairs, unit)
            number = {key: n for n, key in enumerate(every)}
            tests = tasks.tested([*every.values()], [(number[pair.one], number[pair.other]) for pair in found.pairs])
            exchanged = not np.isnan(tests[0][:, P_RANDOMIZATION]).all()
            n_exchanged = max(pair.n_both for pair in found.pairs) if exchanged else None
            least = leasts[condition, measure] = Least(how, n_exchanged, unit)
            own_notes += coarse_notes(condition, measure, tests[1], least, advise=advise)
            differences.append(_of_pairs(found.pairs, condition, measure, *tests))
            values[condition, measure] = {system: each.value for system, each in resampled.items()}
    table = pa.concat_tables(differences)
    by_pair = _by_pair(table) if gates else {}
    failed = tuple(failures(gates, pairs, values, by_pair))
    notes["", "replicates"] = replicate_notes(how)
    notes["", "gates"] = gate_notes(gates, by_pair, leasts, failed)
    compared = Comparison(_table(intervals, INTERVALS), table, how, (), signature, failed)
    for place in compared.measures if ties else ():
        notes[place] += tie_notes(compared, *place)
    return replace(compared, notes=tuple(chain.from_iterable(notes.values())))


def _resampled(
    systems: Sequence[str],
    by_measure: Mapping[str, Mapping[str, SampleOfQueries]],
    pairs: Sequence[tuple[str, str]],
    tasks: Tasks,
    *,
    together: bool,
) -> Iterator[tuple[str, _ByMeasure, dict[Key, SampleReplicates]]]:
    """Yield each measure with its samples resampled: one measure after the other, or all `together`."""
    ordered = {
        measure: _ByMeasure.of({system: own[system] for system in systems if system in own}, pairs)
        for measure, own in by_measure.items()
    }
    for measures in [[*ordered]] if together else [[measure] for measure in ordered]:
        work: dict[str, list[tuple[str, Key, bool]]] = defaultdict(list)
        for measure in measures:
            of_pairs = {key for pair in ordered[measure].pairs for key in (pair.one, pair.other)}
            for key in ordered[measure].samples:
                work[key[0]].append((measure, key, key in of_pairs))
        items = [
            OfSystem(
                system,
                [ordered[measure].samples[key] for measure, key, _ in own],
                [in_pairs for *_, in_pairs in own],
            )
            for system, own in work.items()
        ]
        found: dict[str, dict[Key, SampleReplicates]] = {measure: {} for measure in measures}
        for own, results in zip(work.values(), tasks.resampled(items), strict=True):
            for (measure, key, _), each in zip(own, results, strict=True):
                found[measure][key] = each
        for measure in measures:
            yield measure, ordered[measure], found[measure]


def _of_pairs(pairs: Sequence[ComparedSystems], condition: str, measure: str, rows: F64, p_adjusted: F64) -> pa.Table:
    """Return the tests of pairs as rows of `DIFFERENCES`."""
    names = [pa.array((pair.a for pair in pairs), pa.string()), pa.array((pair.b for pair in pairs), pa.string())]
    same = [pa.repeat(name, len(pairs)) for name in (condition, measure)]
    return pa.table([*names, *same, *map(pa.array, rows.T), pa.array(p_adjusted)], schema=DIFFERENCES)


def _by_pair(table: pa.Table) -> dict[tuple[str, str], dict[tuple[str, str], tuple[float, float]]]:
    """Return the differences, with their adjusted p values, by (condition, measure) and pair."""
    found: dict[tuple[str, str], dict[tuple[str, str], tuple[float, float]]] = defaultdict(dict)
    named = ("condition", "measure", "a", "b", "difference", "p_adjusted")
    for condition, measure, a, b, difference, p in zip(*(table[name].to_pylist() for name in named), strict=True):
        found[condition, measure][a, b] = (difference, p)
    return found


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)
