"""The counts and order statistics that the tests of two systems need.

Percentile intervals need two neighbours at each end of thousands of sorted differences. Only the differences beyond a
limit, which is estimated from the spread, are sorted. If there are enough of them, they include the needed ones. So the
limit affects the time, but never the result.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int64

from swsdask.kernels.compilation import column, kernel, part
from swsdask.model.trials import F64, I64

N_BOOTSTRAP, N_UP, N_DOWN, N_REACH, POSITIVE, TIES = range(6)
"""The places of counts: replicates at least as far from the difference as it is from 0; queries in which the first
system has more, and less; exchanges whose difference is at least as large; twice the sum of the ranks of the queries of
`N_UP`; the sum of n^3 - n over ties of n queries."""

N_COUNTS = 6

_STRIDE = 8
"""The spread is computed from every eighth difference."""

_SORTED = 4
"""At most an eighth of all differences is sorted, plus this number times the number of needed ones."""


@part(error_model="numpy")
def _spread(values: F64) -> tuple[float, float]:
    """Return the approximate mean and standard deviation, computed from some of the values."""
    total, squares, n = 0.0, 0.0, 0
    for place in range(0, len(values), _STRIDE):
        total += values[place]
        n += 1
    mean = total / n
    for place in range(0, len(values), _STRIDE):
        squares += (values[place] - mean) ** 2
    return mean, math.sqrt(squares / n)


@part(error_model="numpy")
def _lowest(values: F64, sign: float, limit: float, most: int, room: F64) -> int:
    """Write the values, times `sign`, up to a limit into `room`, sorted; return their number, 0 if above `most`."""
    n = 0
    for value in values:
        n += sign * value <= limit
    if n > most:
        return 0
    n = 0
    for value in values:
        if sign * value <= limit:
            room[n] = sign * value
            n += 1
    room[:n].sort()
    return n


@part(error_model="numpy")
def _ranked(parts: F64, others: F64, hair: float, room: F64, counts: I64) -> None:
    """Count the queries with a difference of either sign, and sum ranks by size. Equal sizes have their mean rank.

    Differences are rounded. So a difference of at most a `hair` counts as 0, and sizes are equal if they exceed the
    smallest of them by at most a `hair`.
    """
    n_up, n_down, n = 0, 0, len(parts)
    for query in range(n):
        difference = parts[query] - others[query]
        if difference > hair:
            room[n_up] = difference
            n_up += 1
        elif difference < -hair:
            n_down += 1
            room[n - n_down] = -difference
    up, down = room[:n_up], room[n - n_down : n]
    up.sort()
    down.sort()
    counts[N_UP], counts[N_DOWN] = n_up, n_down
    i, j, before, positive, ties = 0, 0, 0, 0, 0
    while i < n_up or j < n_down:
        size = up[i] if j == n_down or (i < n_up and up[i] <= down[j]) else down[j]
        first_up, first_down = i, j
        while i < n_up and up[i] <= size + hair:
            i += 1
        while j < n_down and down[j] <= size + hair:
            j += 1
        n_equal = i - first_up + j - first_down
        positive += (i - first_up) * (2 * before + n_equal + 1)
        ties += n_equal * n_equal * n_equal - n_equal
        before += n_equal
    counts[POSITIVE], counts[TIES] = positive, ties


@part(error_model="numpy")
def _n_reach(sums: F64, others: F64, parts: F64, of_others: F64, hair: float) -> int:
    """Count the exchanges whose absolute difference is at least that of the systems themselves, less a `hair`."""
    # Kahan's summation: `lost` is the rounding error of the previous addition.
    total, lost = 0.0, 0.0
    for query in range(len(parts)):
        added = parts[query] - of_others[query] - lost
        new = total + added
        lost = (new - total) - added
        total = new
    bound, n = abs(total) - hair, 0
    for replicate in range(len(sums)):
        n += abs(sums[replicate] - others[replicate]) >= bound
    return n


_COLUMN = column(float64)
_REPLICATES = (_COLUMN, _COLUMN, float64, float64, int64, int64, float64)
_EXCHANGES = (_COLUMN, _COLUMN, _COLUMN, _COLUMN, float64, float64)


@kernel(boolean(*_REPLICATES, *_EXCHANGES, float64[:, ::1], float64[::1], int64[::1]), error_model="numpy")
def compare_pair(
    replicates: F64,
    others: F64,
    difference: float,
    bound: float,
    low: int,
    high: int,
    deviations: float,
    parts: F64,
    of_others: F64,
    sums: F64,
    others_sums: F64,
    hair: float,
    hair_of_differences: float,
    room: F64,
    ends: F64,
    counts: I64,
) -> bool:
    """Write the numbers that the tests of two systems need into `ends`, float64 [4], and `counts`, int64 [`N_COUNTS`].

    `replicates` and `others` float64 [n] are those of the two systems. `ends` are the differences of replicates at
    `low`, low + 1, `high` and high + 1 in sorted order. They are sought more than `deviations` standard deviations from
    the mean. Replicates whose distance from the `difference` is at least the `bound` are counted. `parts` and
    `of_others` float64 [n_queries] are the addends of the queries. `sums` and `others_sums` float64 [n] are the sums
    under exchanges. Without exchanges all four are empty. Sums that differ by at most a `hair` are equal, and so are
    differences of queries that differ by at most a `hair_of_differences`. `room` is float64 [2, the greater of n and
    n_queries].

    Returns False if a difference is not finite or if the ends are not found. In this case the output is not valid.
    """
    n = len(replicates)
    found, sorted_room = room[0, :n], room[1]
    finite = True
    for replicate in range(n):
        found[replicate] = replicates[replicate] - others[replicate]
        finite &= abs(found[replicate]) < np.inf
    if not finite:
        return False
    n_bootstrap = 0
    for replicate in range(n):
        n_bootstrap += abs(found[replicate] - difference) >= bound
    counts[N_BOOTSTRAP] = n_bootstrap
    mean, deviation = _spread(found)
    below = _lowest(found, 1.0, mean - deviations * deviation, _SORTED * (low + 2) + n // 8, sorted_room)
    if below < low + 2:
        return False
    ends[0], ends[1] = sorted_room[low], sorted_room[low + 1]
    from_top = n - 1 - high
    if from_top < 1:  # high + 1 would be beyond the highest difference, at a level of nearly 1
        return False
    above = _lowest(found, -1.0, -(mean + deviations * deviation), _SORTED * (from_top + 1) + n // 8, sorted_room)
    if above < from_top + 1:
        return False
    ends[2], ends[3] = -sorted_room[from_top], -sorted_room[from_top - 1]
    if len(sums):
        _ranked(parts, of_others, hair_of_differences, sorted_room, counts)
        counts[N_REACH] = _n_reach(sums, others_sums, parts, of_others, hair)
    return True
