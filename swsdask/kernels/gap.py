"""Onsets that are used once: which one is nearest to a replay point, and what the point earns.

Onsets are sorted; a used one is taken out of two linked structures (to the next unused one on either side, with halved
paths), so that looking for the nearest takes about the time of finding one's place, however many are used.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, njit

from swsdask.kernels.signatures import column
from swsdask.model.penalty import Penalty
from swsdask.model.trials import I64

PENALTY = (column(float64), column(float64), float64)
"""The types of the parts of a `Penalty` in signatures."""


@njit()
def earned(distance: float, penalty: Penalty) -> float:
    """The value of a penalty function at a signed distance."""
    at, value, sigma = penalty
    last = len(at) - 1
    if distance < at[0] or distance > at[last]:
        return 0.0
    if sigma > 0.0:
        return math.exp(-0.5 * (distance / sigma) ** 2)
    right = max(1, int(np.searchsorted(at, distance)))
    low, high = at[right - 1], at[right]
    rise = value[right] - value[right - 1]
    if rise >= 0.0:
        return float(value[right] - rise * ((high - distance) / (high - low)))
    return float(value[right - 1] + rise * ((distance - low) / (high - low)))


@njit()
def _unused(link: I64, place: int) -> int:
    while link[place] != place:
        link[place] = link[link[place]]
        place = link[place]
    return place


@njit()
def renew(before: I64, after: I64) -> None:
    """Make all onsets unused: `before`, `after` int64 [n_onsets + 1]."""
    for place in range(len(before)):
        before[place] = place
        after[place] = place


@njit()
def use_nearest(point: int, place: int, onsets: I64, before: I64, after: I64, penalty: Penalty) -> float:
    """What a point earns of the nearest unused onset, which is then used, unless it is nothing.

    `place` is the number of onsets < `point`. Of two equally near ones it is the one that earns more, then the earlier.
    """
    n = len(onsets)
    early, late = _unused(after, place), _unused(before, place)
    by_early = earned(float(point - onsets[early]), penalty) if early < n else 0.0
    by_late = earned(float(point - onsets[late - 1]), penalty) if late > 0 else 0.0
    takes_late = late > 0
    if takes_late and early < n:
        to_late, to_early = point - onsets[late - 1], onsets[early] - point
        takes_late = to_late < to_early or (to_late == to_early and by_late >= by_early)
    gain = by_late if takes_late else by_early
    if gain > 0.0:
        taken = late - 1 if takes_late else early
        after[taken] = taken + 1
        before[taken + 1] = taken
    return gain
