"""The tests of pairs of systems, and the tasks of a comparison.

The samples of one system are a task, and so are the tests of some pairs. Tasks draw the weights themselves, from the
seed alone, so that weights are made once in each process and are never sent.

A few hundred systems make tens of thousands of pairs, each with thousands of replicates. Compiled code counts what the
tests need; `Pair.tested` computes the same by definition, for any replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from swsdask.comparison.resampled import Draws, OfSystem, SampleReplicates
from swsdask.comparison.significance import (
    ENUMERATED,
    EXACT_WILCOXON,
    MaxT,
    all_finite,
    bound_of,
    holm,
    interval,
    p_bootstrap,
    p_of_ranks,
    p_of_signs,
    p_randomization,
    p_sign,
    p_wilcoxon,
    rounding,
    rounding_of_differences,
    rounding_of_values,
    t_of_bootstrap,
    t_of_exchanges,
)
from swsdask.kernels.differences import (
    N_BOOTSTRAP,
    N_COUNTS,
    N_DOWN,
    N_REACH,
    N_UP,
    POSITIVE,
    TIES,
    compare_pair,
)
from swsdask.model.comparison import Resampling
from swsdask.model.trials import F64, Bool
from swsdask.model.wording import counted

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor

PAIRS_AT_ONCE = 1024
"""The pairs of a task: some tenths of a second with the default number of replicates."""

FEW_REPLICATES = 100
"""With fewer replicates, pairs are tested by definition."""

Item = TypeVar("Item")
Found = TypeVar("Found")
Shared = TypeVar("Shared")


class Tested(NamedTuple):
    """The difference of two samples, its interval, and its p values; tests by query are NaN if there are none."""

    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomization: float
    p_sign: float
    p_wilcoxon: float


_DIFFERENCE, _P_BOOTSTRAP, P_RANDOMIZATION = map(Tested._fields.index, ("difference", "p_bootstrap", "p_randomization"))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two samples over the queries that both have; differences are one - other.

    Replicates are subtracted on demand: those of all pairs of a few hundred systems do not fit in memory.
    """

    one: SampleReplicates
    other: SampleReplicates

    @property
    def difference(self) -> float:
        """The difference of the two values."""
        return self.one.value - self.other.value

    @property
    def tolerance(self) -> float:
        """The largest difference of the two values that counts as none."""
        return rounding_of_values(self.one.value, self.other.value)

    @property
    def replicates(self) -> F64:
        """The difference in each replicate."""
        with np.errstate(invalid="ignore"):  # infinities of both
            return self.one.replicates - self.other.replicates

    def t(self, counted: Bool) -> tuple[float, F64]:
        """|t| of the difference, and of its replicates that are `counted`: by exchanges, if there are finite ones."""
        one, other = self.one.exchanged, self.other.exchanged
        if one is not None and other is not None and np.isfinite(one.parts).all() and np.isfinite(other.parts).all():
            own, of_replicates = t_of_exchanges(one, other)
            return own, of_replicates[counted]
        return t_of_bootstrap(self.difference, self.replicates[counted])

    def tested(self, how: Resampling) -> Tested:
        """Return the difference with its tests."""
        replicates, left_out = self.replicates, None
        if self.one.left_out is not None and self.other.left_out is not None:
            with np.errstate(invalid="ignore"):
                left_out = self.one.left_out - self.other.left_out
        of_queries = (math.nan, math.nan, math.nan)
        one, other = self.one.exchanged, self.other.exchanged
        if one is not None and other is not None and not math.isnan(self.difference) and not self.one.is_alone:
            parts = one.parts - other.parts
            tolerance = rounding_of_differences(one, other)
            of_queries = (p_randomization(one, other), p_sign(parts, tolerance), p_wilcoxon(parts, tolerance))
        low, high = interval(self.difference, replicates, left_out, how.level)
        return Tested(self.difference, low, high, p_bootstrap(self.difference, replicates, self.tolerance), *of_queries)


class _Ends(NamedTuple):
    """The places of the ends of a percentile interval among n sorted replicates, as `numpy.quantile` interpolates.

    An end lies a share of the way from the replicate at `low` or `high` to the next one. If replicates are distributed
    normally, slightly more of them than needed lie beyond `deviations` standard deviations from the mean.
    """

    low: int
    high: int
    share_low: float
    share_high: float
    deviations: float

    @classmethod
    def of(cls, n: int, level: float) -> Self:
        low, high = ((n - 1) * tail for tail in ((1 - level) / 2, (1 + level) / 2))
        wanted = 1.5 * (low + 2) / n + 4 / n
        deviations = -NormalDist().inv_cdf(min(wanted, 0.5))
        return cls(math.floor(low), math.floor(high), low % 1, high % 1, deviations)

    def between(self, ends: F64) -> tuple[float, float]:
        """Return the interval from `ends`, the replicates at either end and the next ones."""
        low, after_low, high, after_high = ends.tolist()
        return _between(low, after_low, self.share_low), _between(high, after_high, self.share_high)


def _between(before: float, after: float, share: float) -> float:
    step = after - before
    return before + step * share if share < 0.5 else after - step * (1 - share)


def compare_pairs(pairs: Sequence[Pair], how: Resampling) -> F64:
    """Return the `Tested` of each pair, float64 [n_pairs, 7]."""
    found = np.empty((len(pairs), len(Tested._fields)))
    if not pairs:
        return found
    n = how.replicates
    ends = _Ends.of(n, how.level)
    room = np.empty((2, max(n, *(len(pair.one.queries) for pair in pairs))))
    for row, pair in zip(found, pairs, strict=True):
        plain = n >= FEW_REPLICATES and how.interval == "percentile" and math.isfinite(pair.difference)
        counts = _counted(pair, ends, room) if plain else None
        row[:] = pair.tested(how) if counts is None else counts
    return found


def _counted(pair: Pair, ends: _Ends, room: F64) -> Tested | None:
    """Return the tests of two systems with finite replicates, from counts.

    None if they must be tested by definition.
    """
    one, other = pair.one.exchanged, pair.other.exchanged
    neighbours, counts = np.empty(4), np.zeros(N_COUNTS, np.int64)
    none = np.zeros(0)
    exchanged = (none, none, none, none, 0.0, 0.0)
    if one is not None and other is not None:
        tolerances = rounding(one, other), rounding_of_differences(one, other)
        exchanged = (one.parts, other.parts, one.sums, other.sums, *tolerances)
    n = len(pair.one.replicates)
    if not compare_pair(
        pair.one.replicates,
        pair.other.replicates,
        pair.difference,
        bound_of(pair.difference, pair.tolerance),
        ends.low,
        ends.high,
        ends.deviations,
        *exchanged,
        room,
        neighbours,
        counts,
    ):
        return None
    number = counts.tolist()
    of_queries = (math.nan, math.nan, math.nan)
    if one is not None and other is not None:
        parts, n_moved = one.parts - other.parts, number[N_UP] + number[N_DOWN]
        of_queries = (
            p_randomization(one, other) if n_moved <= ENUMERATED else (1 + number[N_REACH]) / (1 + n),
            p_of_signs(n_moved, min(number[N_UP], number[N_DOWN])),
            p_wilcoxon(parts, exchanged[-1])
            if n_moved <= EXACT_WILCOXON
            else p_of_ranks(n_moved, number[POSITIVE], number[TIES]),
        )
    return Tested(pair.difference, *ends.between(neighbours), (1 + number[N_BOOTSTRAP]) / (1 + n), *of_queries)


SystemPair = tuple[int, int]
"""The positions of the two samples of a pair."""


@dataclass(frozen=True)
class _Pairs:
    """The pairs of a task."""

    places: Sequence[SystemPair]

    def bind(self, samples: Sequence[SampleReplicates]) -> list[Pair]:
        return [Pair(samples[one], samples[other]) for one, other in self.places]

    def __str__(self) -> str:
        return f"testing {counted(len(self.places), 'pairs')}"


class Tasks:
    """The computations of a condition as tasks of an executor; without one they run here, one after the other."""

    def __init__(self, draws: Draws, executor: Executor | None) -> None:
        self._executor = executor
        self._adjust = draws.how.adjust
        self._draws = self._known(draws)

    def resampled(self, systems: Sequence[OfSystem]) -> list[list[SampleReplicates]]:
        """Return the samples of each system, with their replicates."""
        return self._map(_resampled, systems, self._draws, "resampling")

    def tested(self, samples: Sequence[SampleReplicates], pairs: Sequence[SystemPair]) -> tuple[F64, F64]:
        """Return the `Tested` of each pair of samples, float64 [n_pairs, 7], and its p value adjusted for all pairs.

        With few queries the bootstrap finds too many differences: of averages the p value of exchanges is adjusted.
        """
        known = self._known(samples)
        found = self._map(_tested, _parts(pairs), (known, self._draws), "tests")
        rows = np.concatenate([np.empty((0, len(Tested._fields))), *(part.rows for part in found)])
        exchanged = rows[:, P_RANDOMIZATION]
        p = np.where(np.isnan(exchanged) | np.isnan(rows[:, _P_BOOTSTRAP]), rows[:, _P_BOOTSTRAP], exchanged)
        if self._adjust == "holm":
            return rows, holm(p)
        defined = np.flatnonzero(~np.isnan(p) & np.isfinite(rows[:, _DIFFERENCE]))
        finite = self._known(reduce(np.logical_and, (part.finite for part in found), np.array(True)))
        t = self._map(_largest_t, _parts([pairs[number] for number in defined.tolist()]), (known, finite), "tests")
        adjusted = np.minimum(1.0, p * np.count_nonzero(~np.isnan(p)))  # infinite differences have no t
        adjusted[defined] = np.nan
        if t:
            adjusted[defined] = reduce(MaxT.merge, t).p
        return rows, adjusted

    def _known(self, value: Shared) -> Shared:
        return value if self._executor is None else self._executor.share(value)

    def _map(
        self, function: Callable[[Item, Shared], Found], items: Sequence[Item], shared: Shared, name: str
    ) -> list[Found]:
        if self._executor is None:
            return [function(item, shared) for item in items]
        return list(self._executor.map(function, items, shared, name=name))


class _PartTested(NamedTuple):
    """The tests of some pairs, and the replicates in which all their differences are finite."""

    rows: F64
    finite: Bool


def _parts(pairs: Sequence[SystemPair]) -> list[_Pairs]:
    return [_Pairs(pairs[begin : begin + PAIRS_AT_ONCE]) for begin in range(0, len(pairs), PAIRS_AT_ONCE)]


def _resampled(system: OfSystem, draws: Draws) -> list[SampleReplicates]:
    return SampleReplicates.of(system.samples, draws, system.in_pairs)


def _tested(part: _Pairs, shared: tuple[Sequence[SampleReplicates], Draws]) -> _PartTested:
    samples, draws = shared
    pairs = part.bind(samples)
    by_other = sorted(range(len(pairs)), key=lambda number: part.places[number][::-1])
    rows = np.empty((len(pairs), len(Tested._fields)))
    rows[by_other] = compare_pairs([pairs[number] for number in by_other], draws.how)  # shared samples stay in caches
    if draws.how.adjust != "max-t":
        return _PartTested(rows, np.array(True))
    has_t = ~np.isnan(rows[:, _P_BOOTSTRAP]) & np.isfinite(rows[:, _DIFFERENCE])
    return _PartTested(rows, all_finite(pairs[number].replicates for number in np.flatnonzero(has_t).tolist()))


def _largest_t(part: _Pairs, shared: tuple[Sequence[SampleReplicates], Bool]) -> MaxT:
    samples, finite = shared
    return MaxT.of(pair.t(finite) for pair in part.bind(samples))
