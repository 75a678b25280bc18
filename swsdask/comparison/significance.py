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
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from swsdask.model.samples import weighted_sums
from swsdask.model.trials import F64, I8

ENUMERATED = 20
"""Up to how many queries with a difference all assignments of signs are tried."""

RANKED = 50
"""Up to how many queries with a difference Wilcoxon's test is exact."""

_HAIR = 1e-12
"""Relative: sums that are closer than this are equal."""

_NORMAL = NormalDist()


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


def p_randomization(parts: F64, signs: I8) -> float:
    """Return the share of exchanges of the two systems, query by query, whose sum of `parts` is at least as large.

    All assignments are tried for up to `ENUMERATED` parts that are not 0; else those of `signs`, int8 [n_queries,
    replicates], with one more counted on both sides.
    """
    moved = parts[parts != 0]
    sums = np.zeros(1)
    if len(moved) <= ENUMERATED:
        for part in moved.tolist():
            sums = np.concatenate([sums + part, sums - part])
        return int(np.count_nonzero(_reaches(abs(sums), abs(sums[0])))) / len(sums)
    sums = weighted_sums(signs, parts)
    observed = abs(float(weighted_sums(np.ones((len(parts), 1), np.int8), parts)[0]))
    return (1 + int(np.count_nonzero(_reaches(abs(sums), observed)))) / (1 + len(sums))


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


def max_t(differences: Sequence[float], replicates: Sequence[F64]) -> list[float]:
    """Adjusted by the largest of all |t| of a replicate, t being the distance from 0 (of a replicate: from the
    difference) in standard errors. Replicates count in which all differences are finite.
    """
    every = np.array(replicates)
    every = every[:, np.isfinite(every).all(axis=0)]
    observed = np.array(differences)
    errors = np.array([standard_error(row) for row in every])
    spread = errors > 0
    t = np.divide(abs(observed), errors, out=np.where(observed == 0, 0.0, np.inf), where=spread)
    far = abs(every - observed[:, np.newaxis])[spread] / errors[spread, np.newaxis]
    largest = far.max(axis=0, initial=0.0)
    counts = [int(np.count_nonzero(_reaches(largest, each))) for each in t.tolist()]
    return [(1 + count) / (1 + every.shape[1]) if every.shape[1] else math.nan for count in counts]


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
