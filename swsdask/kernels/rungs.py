"""Where a score stands among rungs, in about constant time and exactly whatever the rungs are.

Rungs are ascending distinct scores with inf behind them. The *slot* of a score is the number of rungs <= it: slot 0
lies below the first rung, slot r + 1 begins at rung r, and slot n - 1 (n rungs with the inf) at the last finite one.

The line of scores is cut into equal buckets, `BUCKETS` per rung, between fences that outliers do not move (three times
the quartiles' distance beyond them); what lies beyond a fence falls into the outermost bucket. A bucket's first rung is
looked up and the few rungs inside it are searched. The map from scores to buckets is computed with one subtraction and
one multiplication, both monotone in floating point, so no rounding can put a score on the wrong side of a rung of
another bucket. Buckets are equal either in the score or in its float key (the integer of its bits, which is about
logarithmic): whichever crowds the rungs less.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, njit

from swsdask.kernels.signatures import column, record
from swsdask.model.trials import F64, I32

BUCKETS = 8
_REACH = 3.0
_MAGNITUDE = 2**63 - 1
_ONE = np.uint64(1)


class Rungs(NamedTuple):
    """Rungs with their buckets: `first` int32 [n_buckets + 1] is the number of rungs in front of each bucket."""

    scores: F64
    first: I32
    logarithmic: bool
    low: float
    scale: float


RUNGS = record(Rungs, column(float64), int32[::1], boolean, float64, float64)
"""The type of `Rungs` in signatures."""


@njit()
def _place(score: float, logarithmic: bool) -> float:
    """The score itself, or its float key: monotone either way, and the same for 0.0 and -0.0."""
    if not logarithmic:
        return score
    bits = np.float64(score).view(np.int64)
    return float(bits if bits >= 0 else -(bits & _MAGNITUDE))


@njit()
def _bucket(score: float, logarithmic: bool, low: float, scale: float, n_buckets: int) -> int:
    x = (_place(score, logarithmic) - low) * scale
    last = n_buckets - 1.0
    x = x if x > 0.0 else 0.0
    return int(x if x < last else last)


@njit()
def _cut(scores: F64, logarithmic: bool) -> Rungs:
    n = len(scores) - 1
    n_buckets = max(1, BUCKETS * n)
    first = np.zeros(n_buckets + 1, np.int32)
    low, scale = 0.0, 0.0
    if n > 0:
        lower = _place(scores[n // 4], logarithmic)
        upper = _place(scores[3 * n // 4], logarithmic)
        reach = _REACH * (upper - lower)
        low = max(_place(scores[0], logarithmic), lower - reach)
        span = min(_place(scores[n - 1], logarithmic), upper + reach) - low
        scale = n_buckets / span if span > 0.0 else 0.0
    for rung in range(n):
        first[_bucket(scores[rung], logarithmic, low, scale, n_buckets) + 1] += 1
    for bucket in range(n_buckets):
        first[bucket + 1] += first[bucket]
    return Rungs(scores, first, logarithmic, low, scale)


@njit()
def _crowding(rungs: Rungs) -> int:
    """The sum of squares of the rungs per bucket."""
    squares = 0
    for bucket in range(len(rungs.first) - 1):
        squares += (rungs.first[bucket + 1] - rungs.first[bucket]) ** 2
    return squares


@njit()
def cut_rungs(scores: F64) -> Rungs:
    """Rungs ready to be searched. `scores`: float64, ascending, distinct, the last one inf and no other."""
    evenly = _cut(scores, False)
    crowding = _crowding(evenly)
    if crowding <= 2 * len(scores):
        return evenly
    logarithmically = _cut(scores, True)
    return logarithmically if _crowding(logarithmically) < crowding else evenly


@njit()
def find_slots(score: F64, rungs: Rungs, slot: I32) -> None:
    """Write the slot of every score (finite) into `slot`, as long as `score`.

    Places are unsigned: those that may be negative would each be looked at for it.
    """
    scores, first, logarithmic, low, scale = rungs
    n_buckets = len(first) - 1
    for row in range(len(score)):
        s = score[row]
        bucket = np.uint64(_bucket(s, logarithmic, low, scale, n_buckets))
        begin, end = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if end - begin <= _ONE:
            slot[row] = begin + np.uint64(scores[begin] <= s)
        else:
            while begin < end:
                middle = (begin + end) >> _ONE
                if scores[middle] <= s:
                    begin = middle + _ONE
                else:
                    end = middle
            slot[row] = begin
