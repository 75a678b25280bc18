"""Systems compared: an interval for every number, and the difference of every two systems with its tests.

A pair of systems is compared over the queries that count for both. Queries are resampled, the same ones for all systems
and measures of a condition, so differences are paired. Systems are in the order of their names.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from swsdask.comparison.gates import Gate, failures
from swsdask.comparison.significance import (
    DOCUMENTS,
    Exchanged,
    bca_interval,
    bootstrap_weights,
    holm,
    left_out_weights,
    max_t,
    p_bootstrap,
    p_randomization,
    p_sign,
    p_wilcoxon,
    percentile_interval,
    random_signs,
    standard_error,
)
from swsdask.model.comparison import DIFFERENCES, INTERVALS, Comparison, Resampling
from swsdask.model.errors import SettingsError, counted, listed
from swsdask.model.samples import SampleOfQueries
from swsdask.model.trials import F64, I8, I32, Bool

FEW_QUERIES = 10
"""With fewer queries than this, intervals and tests are noted to say little."""

NAMED = 5
"""How many systems or pairs a note names; the others are counted."""

MANY_PAIRS = 1000
"""So many pairs are reported before they are compared."""

Samples = Mapping[str, Mapping[str, Mapping[str, SampleOfQueries]]]
"""By condition, measure and system."""


@dataclass(frozen=True, eq=False)
class _Draws:
    """The random numbers of a condition, made when they are needed."""

    how: Resampling
    n_queries: int
    n_documents: int = 0

    @cached_property
    def weights(self) -> I32:
        drawn = bootstrap_weights(self.how.seed, self.how.replicates, self.n_queries)
        if not self.n_documents:
            return drawn
        return np.vstack([drawn, bootstrap_weights(self.how.seed, self.how.replicates, self.n_documents, DOCUMENTS)])

    @cached_property
    def signs(self) -> I8:
        return random_signs(self.how.seed, self.how.replicates, self.n_queries)

    @cached_property
    def left_out(self) -> I32:
        return left_out_weights(self.n_queries)


@dataclass(frozen=True, eq=False)
class _Resampled:
    """A sample with its replicates, computed once."""

    sample: SampleOfQueries
    draws: _Draws = field(repr=False)

    @cached_property
    def value(self) -> float:
        return self.sample.value

    @cached_property
    def queries(self) -> Bool:
        return self.sample.queries

    @cached_property
    def replicates(self) -> F64:
        if self.is_alone:
            return np.full(self.draws.how.replicates, np.nan)
        return self.sample.replicates(self.draws.weights)

    @property
    def is_alone(self) -> bool:
        """Whether one query is all that is drawn: it is the same each time, which says nothing."""
        return not self.draws.n_documents and int(self.queries.sum()) < 2

    @cached_property
    def left_out(self) -> F64:
        return self.sample.replicates(self.draws.left_out)

    @cached_property
    def exchanged(self) -> Exchanged | None:
        """None for a measure that is no average over queries."""
        parts = self.sample.parts
        return None if parts is None else Exchanged.of(np.nan_to_num(parts), self.draws.signs)

    def interval(self) -> tuple[float, float]:
        left_out = self.left_out if self.draws.how.interval == "bca" else None
        return _interval(self.value, self.replicates, left_out, self.draws.how)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two systems by one measure, over the queries that both have; differences are a - b.

    Replicates are subtracted when they are needed: those of all pairs of some hundred systems exceed a memory.
    """

    a: str
    b: str
    one: _Resampled
    other: _Resampled
    only_one: int

    @property
    def value(self) -> float:
        return self.one.value - self.other.value

    @property
    def replicates(self) -> F64:
        with np.errstate(invalid="ignore"):  # infinities of both
            return self.one.replicates - self.other.replicates

    @property
    def left_out(self) -> F64:
        with np.errstate(invalid="ignore"):
            return self.one.left_out - self.other.left_out


@dataclass(frozen=True)
class _Replicates:
    """The replicates of pairs, one pair after the other."""

    pairs: Sequence[_Pair]

    def __iter__(self) -> Iterator[F64]:
        return (pair.replicates for pair in self.pairs)


def compare(
    samples: Samples,
    n_queries: Mapping[str, int],
    systems: Iterable[str],
    how: Resampling,
    pair: tuple[str, str] | None = None,
    baseline: str | None = None,
    gates: Iterable[Gate] = (),
    signature: str = "",
    pairs: Sequence[tuple[str, str]] = (),
    n_documents: Mapping[str, int] | None = None,
    report: Callable[[str], None] | None = None,
) -> Comparison:
    """Intervals of all samples, the differences of all pairs, of one `pair`, or of all others and a `baseline`.

    `pairs` names others. `n_queries` are the queries of each condition, `n_documents` its documents if they are
    drawn. `gates` are applied to every pair, the second of which is the baseline. `report` receives the size of a
    comparison of many pairs, which may take minutes. Raises `SettingsError` for an unknown system, for two equal ones,
    and for a gate without values.
    """
    systems = sorted(systems)
    pairs = pairs or _pairs(systems, pair, baseline)
    if report is not None and len(pairs) >= MANY_PAIRS:
        measures = {measure for by_measure in samples.values() for measure in by_measure}
        report(f"comparing {counted(len(pairs), 'pairs')} by {counted(len(measures), 'measures')}")
    intervals: list[tuple[str, str, str, float, float, float, float]] = []
    differences: list[tuple[Any, ...]] = []
    notes: dict[tuple[str, str], list[str]] = {}
    values: dict[tuple[str, str], dict[str, float]] = {}
    tested: dict[tuple[str, str], dict[tuple[str, str], tuple[float, float]]] = {}
    for condition, by_measure in samples.items():
        draws = _Draws(how, n_queries[condition], (n_documents or {}).get(condition, 0))
        if n_queries[condition] < FEW_QUERIES:
            few = counted(n_queries[condition], "folds" if how.resample == "folds" else "queries")
            notes[condition, ""] = [f"{condition}: {few}; intervals and tests of so few say little."]
        if 0 < draws.n_documents < FEW_QUERIES:
            few = counted(draws.n_documents, "documents")
            notes[condition, "documents"] = [f"{condition}: {few}; intervals and tests of so few say little."]
        for measure, by_system in by_measure.items():
            told = notes[condition, measure] = []
            resampled = {system: _Resampled(by_system[system], draws) for system in systems if system in by_system}
            for system, each in resampled.items():
                low, high = each.interval()
                row = (system, condition, measure, each.value, low, high, standard_error(each.replicates))
                intervals.append(row)
            told += _undefined_notes(condition, measure, resampled)
            told += _alone_notes(condition, measure, resampled)
            told += _without_notes(condition, measure, [system for system in systems if system not in resampled])
            if n_queries[condition] >= FEW_QUERIES:
                told += _few_notes(condition, measure, resampled)
            found = _paired([each for each in pairs if each[0] in resampled and each[1] in resampled], resampled)
            told += _left_out_notes(condition, measure, found)
            rows = dict(zip(((p.a, p.b) for p in found), _tests(found, draws), strict=True))
            differences += [(*names, condition, measure, *row) for names, row in rows.items()]
            values[condition, measure] = {system: each.value for system, each in resampled.items()}
            tested[condition, measure] = {names: (row[0], row[-1]) for names, row in rows.items()}
    failed = tuple(failures(gates, pairs, values, tested))
    compared = Comparison(_table(intervals, INTERVALS), _table(differences, DIFFERENCES), how, (), signature, failed)
    for place in compared.measures:
        notes[place] += _ties(compared, *place)
    return replace(compared, notes=tuple(note for told in notes.values() for note in told))


def _pairs(systems: Sequence[str], pair: tuple[str, str] | None, baseline: str | None) -> list[tuple[str, str]]:
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


def _paired(pairs: Iterable[tuple[str, str]], resampled: Mapping[str, _Resampled]) -> list[_Pair]:
    """Pair systems; one that has queries which the other lacks is resampled over those of both."""
    narrowed: dict[tuple[str, bytes], _Resampled] = {}

    def over(system: str, queries: Bool) -> _Resampled:
        key = system, queries.tobytes()
        if key not in narrowed:
            narrowed[key] = _Resampled(resampled[system].sample.of(queries), resampled[system].draws)
        return narrowed[key]

    found = []
    for a, b in pairs:
        one, other = resampled[a], resampled[b]
        only_one = int(np.count_nonzero(one.queries != other.queries))
        if only_one:
            both = one.queries & other.queries
            one, other = over(a, both), over(b, both)
        found.append(_Pair(a, b, one, other, only_one))
    return found


def _tests(pairs: Sequence[_Pair], draws: _Draws) -> list[tuple[float, ...]]:
    """Difference, low, high, p_bootstrap, p_randomization, p_sign, p_wilcoxon and p_adjusted of each pair."""
    how = draws.how
    p = [p_bootstrap(pair.value, pair.replicates) for pair in pairs]
    if how.adjust == "holm":
        adjusted = holm(p)
    else:
        tested = [number for number, each in enumerate(p) if not math.isnan(each)]
        found = max_t([pairs[k].value for k in tested], _Replicates([pairs[k] for k in tested]))
        adjusted = [math.nan] * len(pairs)
        for number, each in zip(tested, found, strict=True):
            adjusted[number] = each
    rows: list[tuple[float, ...]] = []
    for pair, own, together in zip(pairs, p, adjusted, strict=True):
        of_queries = (math.nan, math.nan, math.nan)
        one, other = pair.one.exchanged, pair.other.exchanged
        if one is not None and other is not None and not math.isnan(pair.value):
            parts = one.parts - other.parts
            of_queries = (p_randomization(one, other), p_sign(parts), p_wilcoxon(parts))
        low, high = _interval(pair.value, pair.replicates, pair.left_out if how.interval == "bca" else None, how)
        rows.append((pair.value, low, high, own, *of_queries, together))
    return rows


def _interval(value: float, replicates: F64, left_out: F64 | None, how: Resampling) -> tuple[float, float]:
    if left_out is None:
        return percentile_interval(replicates, how.level)
    return bca_interval(value, replicates, left_out, how.level)


def _undefined_notes(condition: str, measure: str, resampled: Mapping[str, _Resampled]) -> list[str]:
    """Note in how many replicates a measure is not defined; systems with equally many are named together."""
    by_number: dict[int, list[str]] = defaultdict(list)
    for system, each in resampled.items():
        if not math.isnan(each.value) and not each.is_alone:
            by_number[int(np.isnan(each.replicates).sum())].append(system)
    return [
        f"{condition}, {measure}: not defined in {counted(number, 'replicates')} of {listed(systems, NAMED)}, "
        "which are left out."
        for number, systems in sorted(by_number.items())
        if number
    ]


def _without_notes(condition: str, measure: str, systems: Sequence[str]) -> list[str]:
    """Note the systems that cannot be compared because they lack a measure."""
    return [f"{condition}, {measure}: not defined for {listed(systems, NAMED)}."] if systems else []


def _few_notes(condition: str, measure: str, resampled: Mapping[str, _Resampled]) -> list[str]:
    """Note the systems that have few of the queries of a condition that has more."""
    few = [system for system, each in resampled.items() if np.count_nonzero(each.queries) < FEW_QUERIES]
    if not few:
        return []
    return [
        f"{condition}, {measure}: fewer than {FEW_QUERIES} queries of {listed(few, NAMED)}; intervals and tests of so "
        "few say little."
    ]


def _alone_notes(condition: str, measure: str, resampled: Mapping[str, _Resampled]) -> list[str]:
    """Note the systems that have a single query: one that is drawn again and again does not vary."""
    alone = [system for system, each in resampled.items() if each.is_alone]
    return [f"{condition}, {measure}: one query of {listed(alone, NAMED)}: no interval and no test."] if alone else []


def _left_out_notes(condition: str, measure: str, pairs: Sequence[_Pair]) -> list[str]:
    """Note the pairs from which queries are left out; those with equally many are named together."""
    by_number: dict[tuple[int, int], list[str]] = defaultdict(list)
    for pair in pairs:
        if pair.only_one:
            by_number[pair.only_one, int(pair.one.queries.sum())].append(f"{pair.a} and {pair.b}")
    return [
        f"{condition}, {measure}: {counted(number, 'queries')} left out of {listed(names, NAMED)}: "
        f"the measure counts them for only one of the two, and {n_both:,} for both."
        for (number, n_both), names in sorted(by_number.items())
    ]


def _ties(found: Comparison, condition: str, measure: str) -> list[str]:
    """The systems that do not differ from the best one, where it was compared with all others."""
    tied = found.tied(condition, measure)
    if tied is None:
        return []
    others = listed(tied.others, NAMED) or "none"
    return [f"{condition}, {measure}: best is {tied.best}; tied with it at level {found.how.level:g}: {others}."]


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)
