"""Resampling as weights, and inference from replicates: intervals of a measure and tests of a difference.

A replicate of an evaluation draws its queries again, with replacement. A replicate of n queries is n draws, so a vector
of n whole weights whose sum is n. A measure of the replicate is the same arithmetic as the measure itself, with every
query counted as often as it was drawn: detections are never read again. On request documents are drawn likewise,
independently of the queries (the pigeonhole bootstrap): the weight of a trial is that of its query times that of its
document.

Replicate r of a seed has the stream of random numbers (seed, r) of Philox, a counter-based generator; a draw is the
high half of one 64-bit word, times n, divided by 2^32 and rounded down. Queries and documents are numbered in the order
of their ids. So weights do not depend on the order of queries, systems or replicates, nor on workers.

Draws are not keyed by the ids themselves: a draw picks one of n queries, so its result depends on the set of queries
anyway, and the weights of a query would still change from one evaluation to another.

Intervals and tests use replicates and the addend of each query. Replicates in which the measure is not defined (NaN)
are left out. Tests are paired over queries and two-sided.

Sources: resampling: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 8; Bisani and Ney,
Bootstrap estimates for confidence intervals in ASR performance evaluation, ICASSP 2004; Owen, The Pigeonhole Bootstrap,
Annals of Applied Statistics 1 (2007); intervals: Efron and Tibshirani, sections 13.3 and 14.3; bootstrap test by the
distance from the observed difference: Hall and Wilson, Two Guidelines for Bootstrap Hypothesis Testing,
Biometrics 47 (1991); approximate randomization: Noreen, Computer Intensive Methods for Testing Hypotheses, 1989; max-T:
Westfall and Young, Resampling-Based Multiple Testing, 1993, section 2.6; Wilcoxon, Individual Comparisons by Ranking
Methods, Biometrics Bulletin 1 (1945); Holm, A Simple Sequentially Rejective Multiple Test Procedure,
Scandinavian Journal of Statistics 6 (1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import F64, I8, I32, Bool

ENUMERATED = 20
"""The maximum number of queries with a difference for which all assignments of signs are tried."""

EXACT_WILCOXON = 50
"""The maximum number of queries with a difference for which Wilcoxon's test is exact."""

_TOLERANCE = 1e-12
"""A relative tolerance: numbers closer than this are equal. 1 - 2/3 and 1/3 are rounded differently."""

_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class Exchanged:
    """The addend of each query in a measure of one system, and their sums under random signs, float64 [replicates].

    The signs are the same for all systems: a query has -1 if two systems are exchanged in it. `size`, the sum of the
    absolute addends, scales the rounding errors of sums; `largest`, the largest finite one, those of differences.
    """

    parts: F64
    sums: F64
    size: float
    largest: float

    @classmethod
    def of(cls, parts: F64, sums: F64) -> Self:
        """Take the addends and their sums under random signs."""
        sizes = abs(parts)
        return cls(parts, sums, float(sizes.sum()), float(sizes[np.isfinite(sizes)].max(initial=0.0)))


def standard_error(replicates: F64) -> float:
    """Return the standard deviation of the replicates; NaN for fewer than two, or if one is infinite."""
    there = _defined(replicates)
    return float(np.std(there, ddof=1)) if len(there) > 1 and np.isfinite(there).all() else math.nan


def percentile_interval(replicates: F64, level: float) -> tuple[float, float]:
    """The quantiles of the replicates that leave (1 - level) / 2 outside on either side, interpolated linearly."""
    return _quantiles(_defined(replicates), (1 - level) / 2, (1 + level) / 2)


def interval(value: float, replicates: F64, left_out: F64 | None, level: float) -> tuple[float, float]:
    """Return the BCa interval if the values without each of the queries are given, else the percentile interval."""
    if left_out is None:
        return percentile_interval(replicates, level)
    return bca_interval(value, replicates, left_out, level)


def bca_interval(value: float, replicates: F64, left_out: F64, level: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval.

    `left_out` are the values without each of the queries in turn.

    NaN if all replicates lie on one side of the value, or one of `left_out` is infinite. If all replicates are equal to
    the value, so are the ends. A replicate that differs from the value by rounding is equal to it: half of it is below.
    """
    there, without = _defined(replicates), _defined(left_out)
    near = _TOLERANCE * float(abs(there[np.isfinite(there)]).max(initial=0.0))
    below = (np.count_nonzero(there < value - near) + np.count_nonzero(there <= value + near)) / (
        2 * max(len(there), 1)
    )
    if not 0 < below < 1 or not np.isfinite(without).all():
        return math.nan, math.nan
    bias = _NORMAL.inv_cdf(below)
    from_mean = without.mean() - without if len(without) else np.zeros(1)
    squares = float((from_mean**2).sum())
    acceleration = float((from_mean**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0
    tails = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + _NORMAL.inv_cdf(tail)
        tails.append(_NORMAL.cdf(bias + shifted / (1 - acceleration * shifted)))
    return _quantiles(there, tails[0], tails[1])


def p_bootstrap(difference: float, replicates: F64, tolerance: float = 0.0) -> float:
    """Return the share of replicates at least as far from the difference as it is from 0; both counts have one added.

    A difference of at most `tolerance` counts as none. If the difference is infinite, the replicates without this
    infinity are counted.
    """
    there = _defined(replicates)
    if math.isnan(difference) or not len(there):
        return math.nan
    if math.isinf(difference):
        return (1 + int(np.count_nonzero(there != difference))) / (1 + len(there))
    return (1 + int(np.count_nonzero(abs(there - difference) >= bound_of(difference, tolerance)))) / (1 + len(there))


def bound_of(difference: float, tolerance: float = 0.0) -> float:
    """Return the least distance from a difference that counts as at least the difference's distance from 0."""
    return abs(difference) * (1 - _TOLERANCE) - tolerance


def rounding_of_values(one: float, other: float) -> float:
    """Return the largest difference of two values that count as equal."""
    return _TOLERANCE * (abs(one) + abs(other))


def p_randomization(one: Exchanged, other: Exchanged) -> float:
    """Return the share of exchanges of the two systems, query by query, whose difference is at least as large.

    All exchanges are counted if at most `ENUMERATED` queries differ; else those drawn, with one added to both counts.
    The sum of signed differences is the difference of signed sums, so n systems need n sums instead of n^2. Sums that
    differ by a rounding error are equal; this error scales with the addends, not with their difference.
    """
    parts = one.parts - other.parts
    tolerance = rounding(one, other)
    moved = parts[abs(parts) > rounding_of_differences(one, other)]
    if len(moved) <= ENUMERATED:
        return _share_of_exchanges(moved, abs(math.fsum(moved)) - tolerance)
    n_reach = int(np.count_nonzero(abs(one.sums - other.sums) >= abs(math.fsum(parts)) - tolerance))
    return (1 + n_reach) / (1 + len(one.sums))


def _share_of_exchanges(parts: F64, bound: float) -> float:
    """Return the share of all assignments of signs to `parts` whose sum is at least `bound` from 0.

    Every sum is one of the first half of the parts plus one of the second half. So 2^n sums are counted by looking up
    2^(n/2) numbers. Sums are symmetric about 0.
    """
    if not bound > 0:  # not a number, if a part is infinite
        return 1.0
    half = len(parts) // 2
    first, second = _signed_sums(parts[:half]), np.sort(_signed_sums(parts[half:]))
    n_below = int(np.searchsorted(second, bound - first, "left").sum())
    n_sums = len(first) * len(second)
    return 2 * (n_sums - n_below) / n_sums


def _signed_sums(parts: F64) -> F64:
    """Return the sums under all assignments of signs: float64 [2^n_parts]."""
    sums = np.zeros(1)
    for part in parts.tolist():
        sums = np.concatenate([sums + part, sums - part])
    return sums


def rounding(one: Exchanged, other: Exchanged) -> float:
    """Return the largest difference of two sums of exchanges that count as equal."""
    return _TOLERANCE * (one.size + other.size)


def rounding_of_differences(one: Exchanged, other: Exchanged) -> float:
    """Return the largest difference of the differences of two queries that count as equal."""
    return _TOLERANCE * (one.largest + other.largest)


def p_sign(parts: F64, tolerance: float = 0.0) -> float:
    """Return p of the exact sign test: queries with a difference of at most `tolerance` are left out."""
    n_up, n_down = int(np.count_nonzero(parts > tolerance)), int(np.count_nonzero(parts < -tolerance))
    return p_of_signs(n_up + n_down, min(n_up, n_down))


@lru_cache(maxsize=1 << 14)
def p_of_signs(n: int, few: int) -> float:
    """Return the exact two-sided p value if `few` of n signs are of the rarer kind.

    Among many pairs most values repeat.
    """
    ways, total = 1, 0
    for k in range(few + 1):
        total += ways
        ways = ways * (n - k) // (k + 1)
    return min(1.0, float(2 * total / 2**n))


def p_wilcoxon(parts: F64, tolerance: float = 0.0) -> float:
    """Wilcoxon's signed-rank test: queries without a difference are left out, equal differences share their rank.

    A difference of at most `tolerance` counts as none, and differences are equal if they exceed the least of them by no
    more than `tolerance`. Exact for up to `EXACT_WILCOXON` queries with a difference, else by the normal approximation,
    with its variance corrected for ties. It assumes that differences are distributed symmetrically about their median.
    """
    moved = parts[abs(parts) > tolerance]
    n = len(moved)
    if n == 0:
        return 1.0
    ascending = np.sort(abs(moved))
    begins = [0]
    while (after := int(np.searchsorted(ascending, ascending[begins[-1]] + tolerance, "right"))) < n:
        begins.append(after)
    sizes = np.diff([*begins, n])
    group = np.searchsorted(ascending[begins], abs(moved), "right") - 1
    twice = (2 * np.array(begins) + sizes + 1)[group]
    positive = int(twice[moved > 0].sum())
    if n <= EXACT_WILCOXON:
        ways = np.ones(1)
        for rank in twice.tolist():
            ways = (np.append(ways, np.zeros(rank)) + np.append(np.zeros(rank), ways)) / 2
        return min(1.0, 2 * float(min(ways[: positive + 1].sum(), ways[positive:].sum())))
    return p_of_ranks(n, positive, int((sizes**3 - sizes).sum()))


def p_of_ranks(n: int, positive: int, ties: int) -> float:
    """Return Wilcoxon's two-sided p value by the normal approximation.

    `positive` is twice the sum of the ranks of positive differences, `ties` the sum over ties of m of m^3 - m.
    """
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    return 2 * _NORMAL.cdf(-abs(positive / 2 - n * (n + 1) / 4) / math.sqrt(variance))


def holm(p: F64) -> F64:
    """Adjust p values by Holm's step-down procedure; NaN stays and does not count."""
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    left = np.arange(len(order), 0, -1)
    adjusted = p.copy()
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, left * p[order]))
    return adjusted


def all_finite(replicates: Iterable[F64]) -> Bool:
    """Return whether all differences are finite, by replicate: bool [replicates]; True without differences."""
    finite: Bool = np.array(True)
    for row in replicates:
        finite = finite & np.isfinite(row)
    return finite


@dataclass(frozen=True, eq=False)
class MaxT:
    """|t| of some differences, and the largest |t| of all of them in each replicate, float64 [replicates].

    Adjusted p values follow from the largest (Westfall and Young 1993, Section 2.6).
    """

    t: tuple[float, ...]
    largest: F64

    @classmethod
    def of(cls, each: Iterable[tuple[float, F64]]) -> Self:
        """Return the statistic from |t| of differences and of their replicates: `t_of_exchanges`, `t_of_bootstrap`."""
        t, largest = [], np.zeros(1)
        for own, of_replicates in each:
            t.append(own)
            largest = np.maximum(largest, of_replicates)
        return cls(tuple(t), largest)

    def merge(self, other: MaxT) -> MaxT:
        """Return the statistic of both, in order."""
        return MaxT((*self.t, *other.t), np.maximum(self.largest, other.largest))

    @property
    def p(self) -> list[float]:
        """The adjusted p value of each difference; NaN if no replicate counts."""
        ascending, n = np.sort(self.largest), len(self.largest)
        reach = n - np.searchsorted(ascending, np.array(self.t) * (1 - _TOLERANCE))
        return [(1 + count) / (1 + n) if n else math.nan for count in reach.tolist()]


def t_of_exchanges(one: Exchanged, other: Exchanged) -> tuple[float, F64]:
    """|t| of a difference of averages, and of its replicates, which exchange systems by query: float64 [replicates].

    That of the difference is less by a rounding error, as in `p_randomization`: equal sums count as reached. t is the
    sum of the differences of queries over the root of the sum of their squares, which no exchange changes. So the test
    by the largest of many t keeps its level even with few queries.
    """
    parts = one.parts - other.parts
    parts[abs(parts) <= rounding_of_differences(one, other)] = 0.0
    unit = math.sqrt(math.fsum(parts**2))
    if unit == 0.0:
        return 0.0, np.zeros(len(one.sums))
    own = max(abs(math.fsum(parts)) - rounding(one, other), 0.0)
    return own / unit, abs(one.sums - other.sums) / unit


def t_of_bootstrap(difference: float, replicates: F64) -> tuple[float, F64]:
    """|t| of a difference, its distance from 0 in standard errors; and |t| of replicates, their distance from it.

    The standard error is that of all replicates, so the largest of many t is too small with few queries.
    """
    error = standard_error(replicates)
    if not error > 0:
        return 0.0 if difference == 0 else math.inf, np.zeros(len(replicates))
    return abs(difference) / error, abs(replicates - difference) / error


def _defined(replicates: F64) -> F64:
    return replicates[~np.isnan(replicates)]


def _quantiles(values: F64, low: float, high: float) -> tuple[float, float]:
    if not len(values):
        return math.nan, math.nan
    finite = np.isfinite(values).all()  # no interpolation between a number and infinity
    ends = np.quantile(values, [low, high], method="linear" if finite else "nearest")
    return float(ends[0]), float(ends[1])


QUERIES, _SIGNS, DOCUMENTS = 0, 1, 2
"""The streams of a replicate."""

_WORDS = 1 << 20
"""The approximate number of random words that are used together: they stay in the processor's caches."""

_HALF_A_WORD = np.uint64(32)


def bootstrap_weights(seed: int, replicates: range, n: int, stream: int = QUERIES) -> I32:
    """Count how often each of n queries, or of n `DOCUMENTS`, is drawn in each replicate: int32 [n, n_replicates]."""
    weights = np.empty((n, len(replicates)), np.int32)
    for those, words in _streams(seed, replicates, n, stream):
        words >>= _HALF_A_WORD
        words *= np.uint64(n)
        words >>= _HALF_A_WORD
        words += np.arange(len(words), dtype=np.uint64)[:, np.newaxis] * np.uint64(n)
        drawn = np.bincount(words.view(np.int64).ravel(), minlength=words.size)
        weights[:, those] = drawn.reshape(words.shape).T
    return weights


def random_signs(seed: int, replicates: range, n_queries: int) -> I8:
    """1 or -1 with equal probability for each query in each replicate: int8 [n_queries, n_replicates]."""
    signs = np.empty((n_queries, len(replicates)), np.int8)
    for those, words in _streams(seed, replicates, -(-n_queries // 64), _SIGNS):
        octets = words.astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, count=n_queries, bitorder="little")
        signs[:, those] = 1 - 2 * bits.T.astype(np.int8)
    return signs


def left_out_weights(n_queries: int, replicates: range) -> I32:
    """Return the weights of the jackknife: replicate q leaves out query q. int32 [n_queries, n_replicates]."""
    weights = np.ones((n_queries, len(replicates)), np.int32)
    weights[replicates, range(len(replicates))] = 0
    return weights


def _streams(seed: int, replicates: range, n_words: int, stream: int) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
    """Yield the first words of a stream for some replicates at a time: their places, and uint64 [n_some, n_words]."""
    source = np.random.Philox(key=np.array([seed, 0], np.uint64), counter=[0, 0, 0, stream])
    state = source.state
    at_once = max(1, _WORDS // max(n_words, 1))
    for begin in range(0, len(replicates), at_once):
        some = replicates[begin : begin + at_once]
        words = np.empty((len(some), n_words), np.uint64)
        for row, number in enumerate(some):
            state["state"]["key"][1] = number
            source.state = state
            words[row] = source.random_raw(n_words)
        yield slice(begin, begin + len(some)), words
