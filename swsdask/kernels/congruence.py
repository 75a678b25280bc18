"""What mapping a detection to an occurrence is worth, as whole numbers, so that sums are exact and ties are ties."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_PAIR = 3.0
"""A mapped pair counts 1 + congruence, where both left alone count -1 each."""
_SCORE, _TIME = 1e-6, 1e-8
_LEAST_SPAN = 1e-5
_LEAST_TICKS = 0.1
_MOST = 1e12
"""Score congruence is cut at this: it is 1 at most unless the declared range of scores is grossly wrong."""
_BITS = 61


@njit()
def score_congruence(score: float, lowest: float, highest: float) -> float:
    """(score - lowest) / max(highest - lowest, 1e-5), computed on halves so that no difference overflows."""
    congruence = (0.5 * score - 0.5 * lowest) / max(0.5 * highest - 0.5 * lowest, 0.5 * _LEAST_SPAN)
    return min(max(congruence, -_MOST), _MOST)


@njit()
def time_congruence(start: int, end: int, occurrence_start: int, occurrence_end: int) -> float:
    """Overlap (negative: the gap) over the occurrence's duration, at least 1e-5 s; arguments in ticks."""
    overlap = min(end, occurrence_end) - max(start, occurrence_start)
    return overlap / max(np.float64(occurrence_end - occurrence_start), _LEAST_TICKS)


@njit()
def weight_scale(greatest_score_congruence: float) -> float:
    """The power of two that makes every weight of a component less than 2^61, 2^59 unless the score range is wrong."""
    bound = _PAIR + _SCORE * max(greatest_score_congruence, 1.0) + _TIME
    return math.ldexp(1.0, _BITS - math.frexp(bound)[1])


@njit()
def pair_weight(score_part: float, time_part: float, scale: float) -> int:
    """3 + 1e-6 score congruence + 1e-8 time congruence, in units of 1 / `scale`; 0 where that is not above 0."""
    small = max(_SCORE * score_part + _TIME * time_part, -_PAIR)
    return int(np.int64(_PAIR * scale) + np.int64(np.rint(small * scale)))
