"""Replay points near onsets, what each earns, and how many points rank before those that earn something.

Onsets are sorted; a used one is removed from two linked structures (to the next unused one on either side, with halved
paths), so that finding the nearest takes about the time of a binary search, however many are used. The Monte Carlo
study of GAP ranks random lists of points in the same way.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int16, int32, int64, void

from swsdask.kernels.compilation import column, kernel, part, several
from swsdask.kernels.ladder import cut_rungs, find_slots
from swsdask.kernels.rows import first_not_below
from swsdask.model.ranked_measures import Penalty
from swsdask.model.trials import F64, I16, I32, I64, Bool

PENALTY = (column(float64), column(float64), float64)
"""The types of the parts of a `Penalty` in signatures."""


@part()
def earned(distance: float, penalty: Penalty) -> float:
    """The value of a penalty function at a signed distance."""
    at, value, sigma = penalty
    last = len(at) - 1
    if distance < at[0] or distance > at[last]:
        return 0.0
    if sigma > 0.0:
        return math.exp(-0.5 * (distance / sigma) ** 2)
    right = max(1, first_not_below(at, distance))
    low, high = at[right - 1], at[right]
    rise = value[right] - value[right - 1]
    if rise >= 0.0:
        return float(value[right] - rise * ((high - distance) / (high - low)))
    return float(value[right - 1] + rise * ((distance - low) / (high - low)))


@part()
def _unused(link: I64, place: int) -> int:
    while link[place] != place:
        link[place] = link[link[place]]
        place = link[place]
    return place


@part()
def renew(before: I64, after: I64) -> None:
    """Make all onsets unused: `before`, `after` int64 [n_onsets + 1]."""
    for place in range(len(before)):
        before[place] = place
        after[place] = place


@part()
def use_nearest(point: int, place: int, onsets: I64, before: I64, after: I64, penalty: Penalty) -> float:
    """Return the gain of a point from the nearest unused onset, which is then used unless the gain is 0.

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


_BLOCK = 512

_NEAR = several(int64[::1], int32[::1])(
    column(int32),
    column(int32),
    column(int32),
    int64,
    column(int64),
    column(int32),
    column(int64),
    column(int64),
    float64,
    float64,
    int64,
)
_BEFORE = void(
    column(int32),
    column(int16),
    column(float64),
    column(int32),
    column(int32),
    column(int32),
    column(int64),
    column(float64),
    column(int32),
    column(int32),
    int64[:, ::1],
)


@kernel(_NEAR)
def near_onsets(
    query: I32,
    document: I32,
    start: I32,
    step: int,
    of_query: I64,
    group_document: I32,
    begins: I64,
    onset: I64,
    low: float,
    high: float,
    n_documents: int,
) -> tuple[I64, I32]:
    """The rows of points with low <= point - onset <= high for some onset of their query and document, and its group.

    `query`, `document` (-1: none) and `start` are columns of points; the point of a start is the last whole `step` up
    to it. A group is a (query, document) with onsets: those of query q are of_query[q] .. of_query[q + 1], each with
    its document (int32) and its onsets, ascending, onset[begins[g] : begins[g + 1]].
    """
    rows = np.empty(len(query), np.int64)
    groups = np.empty(len(query), np.int32)
    group_of = np.empty(n_documents, np.int32)
    group_of[:] = -1
    found, q = 0, -1
    for row in range(len(query)):
        if query[row] != q:
            if q >= 0:
                for group in range(of_query[q], of_query[q + 1]):
                    group_of[group_document[group]] = -1
            q = query[row]
            for group in range(of_query[q], of_query[q + 1]):
                group_of[group_document[group]] = group
        if document[row] < 0 or group_of[document[row]] < 0:
            continue
        group = group_of[document[row]]
        begin, end = begins[group], begins[group + 1]
        point = start[row] // step * step
        first = begin + first_not_below(onset[begin:end], point - high)
        if first < end and onset[first] <= point - low:
            rows[found], groups[found] = row, group
            found += 1
    return rows[:found].copy(), groups[:found].copy()


_RUN = 16
"""Rows that are sorted by insertion."""


@part()
def _ranks_behind(row: int, other: int, first: I32, score: F64, second: I32, third: I32) -> bool:
    """Whether a row comes after another one; not if they are equal."""
    if first[row] != first[other]:
        return bool(first[row] > first[other])
    if score[row] != score[other]:
        return bool(score[row] < score[other])
    if second[row] != second[other]:
        return bool(second[row] > second[other])
    return bool(third[row] > third[other])


@kernel(int64[::1](column(int32), column(float64), column(int32), column(int32)))
def in_rank_order(first: I32, score: F64, second: I32, third: I32) -> I64:
    """The order of rows by `first`, by falling `score`, then by `second` and `third`; equal rows stay: int64 [n].

    Runs are merged from the bottom up; two that are in order already are not compared further.
    """
    n = len(first)
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for place in range(n):
        order[place] = place
    for begin in range(0, n, _RUN):
        for place in range(begin + 1, min(begin + _RUN, n)):
            row, at = order[place], place
            while at > begin and _ranks_behind(order[at - 1], row, first, score, second, third):
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
    width = _RUN
    while width < n:
        for begin in range(0, n - width, 2 * width):
            middle, end = begin + width, min(begin + 2 * width, n)
            if not _ranks_behind(order[middle - 1], order[middle], first, score, second, third):
                continue
            for place in range(begin, middle):  # a slice would compile how numba words its errors, a second of it
                merged[place] = order[place]
            left, right = begin, middle
            for place in range(begin, end):
                if left == middle:
                    break
                if right < end and _ranks_behind(merged[left], order[right], first, score, second, third):
                    order[place] = order[right]
                    right += 1
                else:
                    order[place] = merged[left]
                    left += 1
        width *= 2
    return order


@kernel(float64[::1](column(int32), column(int64), column(int64), column(int64), *PENALTY))
def use_onsets(group: I32, point: I64, begins: I64, onset: I64, at: F64, value: F64, sigma: float) -> F64:
    """Return the gain of each point from the onsets of its group, float64.

    `group` int32 (clustered) and `point` int64 are columns of points, those of a group in rank order. `begins` and
    `onset` are as `near_onsets` has them; `at`, `value`, `sigma` are those of a `Penalty`.
    """
    penalty = Penalty(at, value, sigma)
    gain = np.empty(len(point), np.float64)
    longest = 0
    for g in group:
        longest = max(longest, begins[g + 1] - begins[g])
    before, after = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for number in range(len(point)):
        g = group[number]
        own = onset[begins[g] : begins[g + 1]]
        if number == 0 or group[number - 1] != g:
            renew(before[: len(own) + 1], after[: len(own) + 1])
        place = first_not_below(own, point[number])
        gain[number] = use_nearest(point[number], place, own, before, after, penalty)
    return gain


@part()
def _ranks_after(place: int, start: int, than_place: int, than_start: int) -> bool:
    """Whether a point ranks after another of equal score: by its document's place (-1 comes last), then start."""
    if place != than_place:
        return than_place >= 0 and (place < 0 or place > than_place)
    return start > than_start


@part()
def _ascending(scores: F64) -> tuple[F64, I64]:
    """The distinct ones of falling scores, ascending with inf behind them, and where each comes first (inf: -1)."""
    rungs = np.empty(len(scores) + 1, np.float64)
    first = np.empty(len(scores) + 1, np.int64)
    n = 0
    for place in range(len(scores) - 1, -1, -1):
        if n == 0 or scores[place] != rungs[n - 1]:
            n += 1
        rungs[n - 1], first[n - 1] = scores[place], place
    rungs[n], first[n] = np.inf, -1
    return rungs[: n + 1], first[: n + 1]


@kernel(_BEFORE)
def count_before(
    query: I32,
    group: I16,
    score: F64,
    document: I32,
    places: I32,
    start: I32,
    offsets: I64,
    of_score: F64,
    of_place: I32,
    of_start: I32,
    counts: I64,
) -> None:
    """Add every point to `counts` int64 [n, n_groups] of the first of its query's chosen points that ranks after it.

    The first columns are those of the points, `group` being that of their `document` (-1: none); `places` has the place
    of each document in their order, the last one -1, of no document.
    The chosen points of query q, in rank order, are rows offsets[q] .. offsets[q + 1] of the columns `of_score`,
    `of_place`, `of_start`.
    """
    slots = np.empty(_BLOCK, np.int32)
    row = 0
    while row < len(query):
        q, at = query[row], row
        while row < len(query) and query[row] == q:
            row += 1
        begin, end = offsets[q], offsets[q + 1]
        if begin == end:
            continue
        scores, first = _ascending(of_score[begin:end])
        rungs = cut_rungs(scores)
        while at < row:
            block = score[at : min(at + _BLOCK, row)]
            find_slots(block, rungs, slots)
            for number in range(len(block)):
                slot = slots[number]
                if slot == 0:
                    continue
                chosen = begin + first[slot - 1]
                if block[number] == scores[slot - 1]:
                    stop = begin + first[slot - 2] if slot > 1 else end
                    p, t = places[document[at + number]], start[at + number]
                    while chosen < stop:
                        middle = (chosen + stop) >> 1
                        if _ranks_after(of_place[middle], of_start[middle], p, t):
                            stop = middle
                        else:
                            chosen = middle + 1
                    if chosen == end:
                        continue
                counts[chosen, group[at + number]] += 1
            at += len(block)


_TABLE = float64[:, ::1]


@kernel(int64[:, ::1](column(float64), boolean[:, ::1], _TABLE, _TABLE, _TABLE))
def ranked_lists(weight: F64, intended: Bool, anywhere: F64, near: F64, place: F64) -> I64:
    """Every point once per list: int64 [n_lists, n_points], a list's points in the order of their ranks.

    Points are emitted one by one, each among those not yet emitted: where `intended` bool [n_lists, n_points] says so
    with probabilities in proportion to `weight` float64 [n_points] (while any with weight are left), else all alike.
    The one that is emitted takes a rank among the free ones, rank k with a probability in proportion to 1 / k.

    Weighted drawing without replacement is a race: the point with the least exponential time, divided by its weight,
    comes first. `anywhere`, `near` and `place`, float64 [n_lists, n_points], hold standard exponential times. A point
    that was emitted in one race is skipped in the other, which does not change the odds of the remaining points.
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


@kernel(float64[::1](int64[:, ::1], column(int64), *PENALTY))
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
        first = first_not_below(onsets, point - penalty.at[-1])
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
