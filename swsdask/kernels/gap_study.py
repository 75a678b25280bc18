"""The Monte Carlo study of GAP: ranked lists of points, and the GAP of such lists."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit

from swsdask.kernels.gap import PENALTY, renew, use_nearest
from swsdask.kernels.signatures import column
from swsdask.model.penalty import Penalty
from swsdask.model.trials import F64, I64, Bool

_TABLE = float64[:, ::1]


@njit(int64[:, ::1](column(float64), boolean[:, ::1], _TABLE, _TABLE, _TABLE), cache=True, nogil=True)
def ranked_lists(weight: F64, intended: Bool, anywhere: F64, near: F64, place: F64) -> I64:
    """Every point once per list: int64 [n_lists, n_points], a list's points in the order of their ranks.

    Points are emitted one by one, each among those not yet emitted: where `intended` bool [n_lists, n_points] says so
    with probabilities in proportion to `weight` float64 [n_points] (while any with weight are left), else all alike.
    The one that is emitted takes a rank among the free ones, rank k with a probability in proportion to 1 / k.

    Drawing without replacement by weights is a race: whose exponential time, divided by the weight, is least comes
    first. So `anywhere`, `near` and `place`, float64 [n_lists, n_points], hold standard exponential times, and what has
    come in first in one race is passed over in the other: nobody's chances among those still running depend on it.
    """
    n_lists, n_points = intended.shape
    lists = np.empty((n_lists, n_points), np.int64)
    n_near = np.count_nonzero(weight)
    times = np.empty(n_points, np.float64)
    for number in range(n_lists):
        by_chance = np.argsort(anywhere[number])
        for point in range(n_points):
            times[point] = near[number, point] / weight[point] if weight[point] > 0.0 else np.inf
        by_intent = np.argsort(times)
        for rank in range(n_points):
            times[rank] = place[number, rank] * (rank + 1)
        by_rank = np.argsort(times)
        emitted = np.zeros(n_points, np.bool_)
        chance, intent = 0, 0
        for turn in range(n_points):
            while intent < n_near and emitted[by_intent[intent]]:
                intent += 1
            while emitted[by_chance[chance]]:
                chance += 1
            point = by_intent[intent] if intended[number, turn] and intent < n_near else by_chance[chance]
            emitted[point] = True
            lists[number, by_rank[turn]] = point
    return lists


@njit(float64[::1](int64[:, ::1], column(int64), *PENALTY), cache=True, nogil=True)
def gap_of_lists(lists: I64, onsets: I64, at: F64, value: F64, sigma: float) -> F64:
    """The GAP of ranked lists of points 0 .. n_points - 1, int64 [n_lists, length]: float64 [n_lists].

    `onsets` int64, ascending, at least one; `at`, `value` and `sigma` are those of a `Penalty`. GAP = (1 / N) sum over
    ranks k with R_k > 0 of (R_1 + ... + R_k) / k, where R_k is what the point at rank k earns.
    """
    penalty = Penalty(at, value, sigma)
    n = len(onsets)
    places = np.searchsorted(onsets, np.arange(lists.max() + 1))
    reached = np.zeros(len(places), np.bool_)
    for point in range(len(places)):
        first = np.searchsorted(onsets, point - penalty.at[-1])
        reached[point] = first < n and onsets[first] <= point - penalty.at[0]
    before, after = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    found = np.empty(len(lists), np.float64)
    for number in range(len(lists)):
        renew(before, after)
        earned, total = 0.0, 0.0
        for rank in range(lists.shape[1]):
            point = lists[number, rank]
            if reached[point]:
                gain = use_nearest(point, places[point], onsets, before, after, penalty)
                if gain > 0.0:
                    earned += gain
                    total += earned / (rank + 1)
        found[number] = total / n
    return found
