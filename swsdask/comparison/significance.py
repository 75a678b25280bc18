"""Intervals of a measure and tests of a difference, from replicates and from what each query adds.

Replicates in which the measure is not defined (NaN) are left out. Tests are paired over queries and two-sided.

Sources: intervals: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, sections 13.3 and 14.3; approximate
randomization: Noreen, Computer Intensive Methods for Testing Hypotheses, 1989; max-T: Westfall and Young,
Resampling-Based Multiple Testing, 1993, section 2.6; Wilcoxon, Individual Comparisons by Ranking Methods,
Biometrics Bulletin 1 (1945); Holm, A Simple Sequentially Rejective Multiple Test Procedure,
Scandinavian Journal of Statistics 6 (1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from swsdask.model.samples import weighted_sums
from swsdask.model.trials import F64, I8, Bool

ENUMERATED = 20
"""Up to how many queries with a difference all assignments of signs are tried."""

RANKED = 50
"""Up to how many queries with a difference Wilcoxon's test is exact."""

_HAIR = 1e-12
"""Relative: sums that are closer than this are equal."""

_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class Exchanged:
    """What each query adds to a measure of one system, and the sums of these under random signs, float64 [replicates].

    Of two systems the signs are the same: a query has -1 where the two are exchanged.
    """

    parts: F64
    sums: F64

    @classmethod
    def of(cls, parts: F64, signs: I8) -> Self:
        """Take the sums; `signs` are int8 [n_queries, replicates]."""
        return cls(parts, weighted_sums(signs, parts))


def standard_error(replicates: F64) -> float:
    """The standard deviation of the replicates; NaN for fewer than two, or where one is infinite."""
    there = _defined(replicates)
    return float(np.std(there, ddof=1)) if len(there) > 1 and np.isfinite(there).all() else math.nan


def percentile_interval(replicates: F64, level: float) -> tuple[float, float]:
    """The quantiles of the replicates that leave out (1 - level) / 2 on either side, interpolated linearly."""
    return _quantiles(_defined(replicates), (1 - level) / 2, (1 + level) / 2)


def bca_interval(value: float, replicates: F64, left_out: F64, level: float) -> tuple[float, float]:
    """The bias-corrected and accelerated interval; `left_out` are the values without each of the queries in turn.

    NaN where all replicates lie on one side of the value, or one of `left_out` is infinite. Where replicates are all
    equal to the value, so are the ends.
    """
    there, without = _defined(replicates), _defined(left_out)
    below = (np.count_nonzero(there < value) + np.count_nonzero(there <= value)) / (2 * max(len(there), 1))
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


def p_bootstrap(difference: float, replicates: F64) -> float:
    """Return the share of replicates as far from the difference as it is from 0; both counts have one added."""
    there = _defined(replicates)
    if not math.isfinite(difference) or not len(there):
        return math.nan
    return (1 + int(np.count_nonzero(_reaches(abs(there - difference), abs(difference))))) / (1 + len(there))


def p_randomization(one: Exchanged, other: Exchanged) -> float:
    """Return the share of exchanges of the two systems, query by query, whose difference is at least as large.

    All exchanges are tried where at most `ENUMERATED` queries differ; else those drawn, with one more counted on both
    sides. The sum of signed differences is the difference of signed sums, so that of n systems n sums are taken and
    not n^2. Sums are equal that differ by rounding, which is as large as the parts are and not as their difference.
    """
    parts = one.parts - other.parts
    hair = _HAIR * float(abs(one.parts).sum() + abs(other.parts).sum())
    moved = parts[parts != 0]
    if len(moved) <= ENUMERATED:
        sums = np.zeros(1)
        for part in moved.tolist():
            sums = np.concatenate([sums + part, sums - part])
        return int(np.count_nonzero(abs(sums) >= abs(sums[0]) - hair)) / len(sums)
    n_reach = int(np.count_nonzero(abs(one.sums - other.sums) >= abs(math.fsum(parts)) - hair))
    return (1 + n_reach) / (1 + len(one.sums))


def p_sign(parts: F64) -> float:
    """The exact sign test: queries without a difference are left out."""
    n_up, n_down = int(np.count_nonzero(parts > 0)), int(np.count_nonzero(parts < 0))
    n, few = n_up + n_down, min(n_up, n_down)
    ways, total = 1, 0
    for k in range(few + 1):
        total += ways
        ways = ways * (n - k) // (k + 1)
    return min(1.0, float(2 * total / 2**n))


def p_wilcoxon(parts: F64) -> float:
    """Wilcoxon's signed-rank test: queries without a difference are left out, equal ones share their rank.

    Exact for up to `RANKED` queries with a difference, else by the normal approximation, its variance less what ties
    take away. It supposes that differences are spread evenly about their middle.
    """
    moved = parts[parts != 0]
    n = len(moved)
    if n == 0:
        return 1.0
    _, group, sizes = np.unique(abs(moved), return_inverse=True, return_counts=True)
    twice = (2 * np.cumsum(sizes) - sizes + 1)[group]
    positive = int(twice[moved > 0].sum())
    if n <= RANKED:
        ways = np.ones(1)
        for rank in twice.tolist():
            ways = (np.append(ways, np.zeros(rank)) + np.append(np.zeros(rank), ways)) / 2
        return min(1.0, 2 * float(min(ways[: positive + 1].sum(), ways[positive:].sum())))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((sizes**3 - sizes).sum()) / 48
    return 2 * _NORMAL.cdf(-abs(positive / 2 - n * (n + 1) / 4) / math.sqrt(variance))


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted by Holm's step-down procedure; NaN stays and does not count."""
    order = sorted((number for number, each in enumerate(p) if not math.isnan(each)), key=lambda number: p[number])
    adjusted, highest = list(p), 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p[number]))
        adjusted[number] = highest
    return adjusted


def max_t(differences: Sequence[float], replicates: Iterable[F64]) -> list[float]:
    """Adjusted by the largest of all |t| of a replicate, t being the distance from 0 (of a replicate: from the
    difference) in standard errors. Replicates count in which all differences are finite.

    `replicates` are iterated twice, so that those of many pairs need not be in memory at once.
    """
    finite: Bool = np.array(True)
    for row in replicates:
        finite = finite & np.isfinite(row)
    largest, t = np.zeros(np.count_nonzero(finite)), []
    for difference, row in zip(differences, replicates, strict=True):
        counted = row[finite]
        error = standard_error(counted)
        if error > 0:
            np.maximum(largest, abs(counted - difference) / error, out=largest)
            t.append(abs(difference) / error)
        else:
            t.append(0.0 if difference == 0 else math.inf)
    largest.sort()
    n = len(largest)
    reach = n - np.searchsorted(largest, np.array(t) * (1 - _HAIR))
    return [(1 + count) / (1 + n) if n else math.nan for count in reach.tolist()]


def _reaches(values: F64, bound: float) -> np.ndarray:
    return values >= bound * (1 - _HAIR)


def _defined(replicates: F64) -> F64:
    return replicates[~np.isnan(replicates)]


def _quantiles(values: F64, low: float, high: float) -> tuple[float, float]:
    if not len(values):
        return math.nan, math.nan
    finite = np.isfinite(values).all()  # there is nothing between a number and infinity
    ends = np.quantile(values, [low, high], method="linear" if finite else "nearest")
    return float(ends[0]), float(ends[1])
