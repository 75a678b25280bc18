"""Samples of systems with their replicates, and the numbers by query of a result, from which samples are made.

Resampling averages over queries needs only the numbers by query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.comparison.significance import (
    DOCUMENTS,
    Exchanged,
    bootstrap_weights,
    interval,
    left_out_weights,
    random_signs,
    standard_error,
)
from swsdask.model.comparison import Resampling
from swsdask.model.measures import better, measures_of_merit
from swsdask.model.results import Result
from swsdask.model.samples import (
    AVERAGED,
    Among,
    Averages,
    AveragesByHighest,
    Difference,
    Sample,
    SampleOfQueries,
    weighted_sums,
)
from swsdask.model.trials import F64, I8, I32, Bool

DIFFERENCE_MEASURES = {
    "loss_not_found": (None, "stwv"),
    "loss_within_query": ("stwv", "otwv"),
    "loss_across_queries": ("otwv", "mtwv"),
    "loss_threshold": ("mtwv", "atwv"),
    "calibration_loss": ("cnxe", "cnxe_min"),
}
"""Measures that are differences: one measure (None: 1) minus another."""

_TOLERANCE = 1e-9
"""A relative tolerance: an average that differs more from the measure over all queries is not the measure."""


def with_parts(measures: Iterable[str]) -> list[str]:
    """Return the measures and those that they are differences of."""
    named = [
        each for measure in measures for each in (measure, *DIFFERENCE_MEASURES.get(measure, ())) if each is not None
    ]
    return list(dict.fromkeys(named))


def needed_for(measures: Iterable[str]) -> list[str]:
    """Return the measures to score for resampling: the given ones, those they average, and the counts of queries."""
    names = [name for measure in with_parts(measures) for name in (measure, *AVERAGED.get(measure, ()))]
    return list(dict.fromkeys([*names, "beta", "n_target"]))


@dataclass(frozen=True, eq=False)
class QueryNumbers:
    """The numbers of a condition: `overall` by system and measure, `columns` the same by query.

    `queries` are in the order of their ids, and columns float64 [n_queries], NaN where a number is missing.
    """

    queries: tuple[str, ...]
    overall: dict[tuple[str, str], float]
    columns: dict[tuple[str, str], F64]

    @property
    def systems(self) -> list[str]:
        """The systems that have numbers, by name."""
        return sorted({system for system, _ in self.overall})

    def averages(self, measure: str) -> dict[str, Averages] | None:
        """Return the measure by system as averages; None unless it is an average for each system that has it."""
        found = {}
        for system in self.systems:
            value = self.overall.get((system, measure), math.nan)
            if math.isnan(value):
                continue
            sample = next(
                (s for s in self._forms(system, measure) if abs(s.value - value) <= _TOLERANCE * (1 + abs(value))), None
            )
            if sample is None:
                return None
            found[system] = sample
        return found or None

    def weighed(
        self, samples: Mapping[str, Mapping[str, Sample]], queries: Mapping[str, Collection[str]]
    ) -> dict[str, dict[str, SampleOfQueries]]:
        """Return samples by measure and system, extended from the `queries` of their system to weights of all queries.

        Only defined numbers are included. Averages stay averages: tests exchange systems query by query.
        """
        own = {
            system: np.array([query in ids for query in self.queries], np.bool_)
            for system, ids in ((system, frozenset(ids)) for system, ids in queries.items())
        }
        return {
            measure: {
                system: sample.among(own[system])
                if isinstance(sample, Averages | AveragesByHighest)
                else Among(sample, own[system], own[system])
                for system, sample in by_system.items()
                if not math.isnan(self.overall.get((system, measure), math.nan))
            }
            for measure, by_system in samples.items()
        }

    def differences(
        self, measure: str, samples: Mapping[str, Mapping[str, SampleOfQueries] | None]
    ) -> dict[str, SampleOfQueries] | None:
        """Return the measure by system as the difference of two that have `samples`; None if it is no difference."""
        if measure not in DIFFERENCE_MEASURES:
            return None
        before, after = DIFFERENCE_MEASURES[measure]
        of_before, of_after = ({} if name is None else samples.get(name) or {} for name in (before, after))
        return {
            system: Difference(of_before.get(system), of_after[system])
            for system in self.systems
            if system in of_after and (before is None or system in of_before)
            if not math.isnan(self.overall.get((system, measure), math.nan))
        } or None

    def _forms(self, system: str, measure: str) -> Iterator[Averages]:
        """Yield the possible forms of a measure as averages."""
        parts = AVERAGED.get(measure, ())
        forms: list[tuple[float, tuple[float, ...], tuple[str, ...]]] = [(0.0, (1.0,), (measure,))]
        if len(parts) == 1:
            forms.append((0.0, (1.0,), parts))
        elif parts:
            forms.append((1.0, (-1.0, -self.overall.get((system, "beta"), math.nan)), parts))
        for constant, factors, names in forms:
            columns = [self.columns[system, name] for name in names if (system, name) in self.columns]
            if len(columns) == len(names):
                yield Averages(constant, factors, np.array(columns))


def folds(result: Result) -> dict[str, list[str]]:
    """Return the conditions of the folds that a condition averages; a result of detections has none."""
    conditions = result.overall["condition"].unique().to_pylist()
    if result.overall.num_rows < result.score_rows.num_rows:
        return {}
    found = {whole: [fold for fold in conditions if fold.startswith(f"{whole}/")] for whole in conditions}
    return {whole: own for whole, own in found.items() if own}


def conditions(result: Result) -> list[str]:
    """Return the conditions of a result, without those of folds."""
    of_folds = {fold for own in folds(result).values() for fold in own}
    return [name for name in result.overall["condition"].unique().to_pylist() if name not in of_folds]


def query_numbers(result: Result, condition: str, measures: Iterable[str]) -> QueryNumbers:
    """Return the numbers of some measures in a condition of a result; if it averages folds, these are its queries."""
    table = result.table.filter(pc.equal(result.table["condition"], condition))
    own = folds(result).get(condition)
    if own:
        of_folds = result.table.filter(pc.is_in(result.table["condition"], value_set=pa.array(own, pa.string())))
        table = pa.concat_tables([table, of_folds.set_column(2, table.schema.field("query"), of_folds["condition"])])
    queries = sorted(query for query in pc.unique(table["query"]).to_pylist() if query is not None)
    table = table.filter(pc.is_in(table["measure"], value_set=pa.array(list(measures), pa.string())))
    whole = table.filter(pc.is_null(table["query"]))
    names = zip(whole["system"].to_pylist(), whole["measure"].to_pylist(), strict=True)
    overall = dict(zip(names, whole["value"].to_pylist(), strict=True))
    rows = table.filter(pc.is_valid(table["query"]))
    systems, kinds = (pc.unique(rows[name]).cast(pa.string()) for name in ("system", "measure"))
    place = [
        pc.index_in(rows[name], value_set=codes).to_numpy()
        for name, codes in (("system", systems), ("measure", kinds), ("query", pa.array(queries, pa.string())))
    ]
    values = np.full((len(systems), len(kinds), len(queries)), np.nan)
    values[tuple(place)] = rows["value"].to_numpy()
    there = np.zeros(values.shape[:2], np.bool_)
    there[place[0], place[1]] = True
    columns = {
        (system, kind): values[i, k]
        for i, system in enumerate(systems.to_pylist())
        for k, kind in enumerate(kinds.to_pylist())
        if there[i, k]
    }
    return QueryNumbers(tuple(queries), overall, columns)


def candidates(result: Result) -> list[str]:
    """Return the measures of a result by which systems may be ranked, the preferred first, or the requested ones."""
    there = result.overall["measure"].unique().to_pylist()
    return measures_of_merit(there, result.requested)


def averaged(result: Result) -> list[str]:
    """Return the measures of a result that are averages over queries, judged by the first condition."""
    there = result.overall["measure"].unique().to_pylist()
    ranked = [measure for measure in there if better(measure)]
    numbers = next((query_numbers(result, name, needed_for(ranked)) for name in conditions(result)), None)
    return [measure for measure in ranked if numbers is not None and numbers.averages(measure)]


BLOCK_BYTES = 256 << 20
"""The memory for the weights, or the signs, of the replicates that are computed together."""

_Numbers = TypeVar("_Numbers", I32, I8)


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of a condition, made on demand, in blocks of replicates that fit into memory.

    If one block has all replicates, it stays in the process that made it; otherwise blocks are made again each time.
    """

    how: Resampling
    n_queries: int
    n_documents: int = 0

    def __getstate__(self) -> dict[str, object]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def are_expensive(self) -> bool:
        """Whether replicates should be drawn once for all measures: their documents are, or blocks are made again."""
        return self.n_documents > 0 or 4 * self.n_queries * self.how.replicates > BLOCK_BYTES

    def weights(self) -> Iterator[I32]:
        """Yield the weights of each query, and of each document if these are drawn, in each replicate of a block."""
        return self._in_blocks("weights", self.how.replicates, self._weights, 4 * (self.n_queries + self.n_documents))

    def signs(self) -> Iterator[I8]:
        """Yield whether two systems are exchanged in each query of each replicate of a block."""
        return self._in_blocks("signs", self.how.replicates, self._signs, self.n_queries)

    def left_out(self) -> Iterator[I32]:
        """Yield the weights that leave out one query at a time."""
        return self._in_blocks(
            "left_out", self.n_queries, partial(left_out_weights, self.n_queries), 4 * self.n_queries
        )

    def _in_blocks(
        self, name: str, replicates: int, draw: Callable[[range], _Numbers], bytes_each: int
    ) -> Iterator[_Numbers]:
        at_once = max(1, BLOCK_BYTES // max(bytes_each, 1))
        if at_once < replicates:
            for begin in range(0, replicates, at_once):
                yield draw(range(begin, min(begin + at_once, replicates)))
            return
        if name not in self._held:
            self._held[name] = draw(range(replicates))
        yield self._held[name]

    @cached_property
    def _held(self) -> dict[str, Any]:
        return {}

    def _weights(self, replicates: range) -> I32:
        drawn = bootstrap_weights(self.how.seed, replicates, self.n_queries)
        if not self.n_documents:
            return drawn
        return np.vstack([drawn, bootstrap_weights(self.how.seed, replicates, self.n_documents, DOCUMENTS)])

    def _signs(self, replicates: range) -> I8:
        return random_signs(self.how.seed, replicates, self.n_queries)


def _over_blocks(functions: Sequence[Callable[[_Numbers], F64]], blocks: Iterable[_Numbers]) -> F64:
    """Return the values of functions of the numbers of replicates: float64 [n_functions, n_replicates]."""
    values = [
        np.array([function(block) for function in functions]).reshape(len(functions), block.shape[1])
        for block in blocks
    ]
    return np.concatenate(values, axis=1)


@dataclass(frozen=True, eq=False)
class SampleReplicates:
    """A sample with its replicates.

    `left_out` are the values without each of the queries in turn, if intervals need them; `exchanged` is None for a
    measure that is not an average over queries, and for a sample that is in no pair. `is_alone`: there is only one
    query to draw, so replicates do not vary.
    """

    value: float
    queries: Bool
    is_alone: bool
    replicates: F64
    left_out: F64 | None
    exchanged: Exchanged | None
    interval: tuple[float, float]
    standard_error: float
    n_undefined: int

    @classmethod
    def of(cls, samples: Sequence[SampleOfQueries], draws: Draws, in_pairs: Sequence[bool]) -> list[Self]:
        """Resample samples with the same random numbers; `in_pairs` is whether each is in a pair."""
        how = draws.how
        vary = [draws.n_documents > 0 or int(sample.queries.sum()) > 1 for sample in samples]
        replicates = np.full((len(samples), how.replicates), np.nan)
        if any(vary):
            drawn = [sample.replicates for sample, varies in zip(samples, vary, strict=True) if varies]
            replicates[vary] = _over_blocks(drawn, draws.weights())
        left_out: Sequence[F64 | None] = [None] * len(samples)
        if samples and how.interval == "bca":
            left_out = [*_over_blocks([sample.replicates for sample in samples], draws.left_out())]
        exchanged = _exchange(samples, draws, in_pairs)
        found = []
        for number, (sample, varies, own, without) in enumerate(zip(samples, vary, replicates, left_out, strict=True)):
            value = sample.value
            ends, error = interval(value, own, without, how.level), standard_error(own)
            undefined = int(np.isnan(own).sum())
            exchange = exchanged.get(number)
            found.append(cls(value, sample.queries, not varies, own, without, exchange, ends, error, undefined))
        return found


def _exchange(samples: Sequence[SampleOfQueries], draws: Draws, in_pairs: Sequence[bool]) -> dict[int, Exchanged]:
    """Return the addends and the sums of the samples that are in pairs and averages over queries, by their numbers."""
    parts = {
        number: np.nan_to_num(sample.parts)
        for number, (sample, paired) in enumerate(zip(samples, in_pairs, strict=True))
        if paired and sample.parts is not None
    }
    if not parts:
        return {}
    sums = _over_blocks([partial(weighted_sums, values=own) for own in parts.values()], draws.signs())
    return {number: Exchanged.of(own, of_own) for (number, own), of_own in zip(parts.items(), sums, strict=True)}


@dataclass(frozen=True, eq=False)
class OfSystem:
    """Samples of one system, which may share computations, and whether each is in pairs."""

    system: str
    samples: Sequence[SampleOfQueries]
    in_pairs: Sequence[bool]

    def __str__(self) -> str:
        return f"resampling system {self.system}"
