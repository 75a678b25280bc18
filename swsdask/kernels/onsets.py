"""Replay points near onsets, their gains, and the number of points that rank before each point with a gain.

Onsets are sorted. Two linked structures lead from each place to the next unused onset on either side. Path halving
keeps them short, so finding the nearest unused onset takes about the time of a binary search, however many are used.
The Monte Carlo study of GAP ranks random lists of points in the same way.
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
    """Return the value of a penalty function at a signed distance."""
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
    """Mark all onsets as unused in `before` and `after`, int64 [n_onsets + 1]."""
    for place in range(len(before)):
        before[place] = place
        after[place] = place


@part()
def use_nearest(point: int, place: int, onsets: I64, before: I64, after: I64, penalty: Penalty) -> float:
    """Return the gain of a point from the nearest unused onset. The onset is then used, unless the gain is 0.

    `place` is the number of onsets < `point`. Of two equally near onsets, the one with the greater gain is taken; if
    the gains are equal, the earlier one.
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
_ONE = np.uint64(1)

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
    """Return the rows of points with low <= point - onset <= high for an onset of their query and document, and groups.

    `query`, `document` (-1: none) and `start` are columns of points; a point is its start rounded down to a multiple of
    `step`. A group is a (query, document) with onsets. The groups of query q are of_query[q] .. of_query[q + 1]. Group
    g has the document `group_document` [g] and the onsets onset[begins[g] : begins[g + 1]], ascending. The results are
    the rows, int64, and the group of each, int32.
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
"""The number of rows of a run, which is sorted by insertion."""


@part()
def _ranks_behind(row: int, other: int, first: I32, score: F64, second: I32, third: I32) -> bool:
    """Return whether a row comes after another one. Equal rows do not."""
    if first[row] != first[other]:
        return bool(first[row] > first[other])
    if score[row] != score[other]:
        return bool(score[row] < score[other])
    if second[row] != second[other]:
        return bool(second[row] > second[other])
    return bool(third[row] > third[other])


@kernel(int64[::1](column(int32), column(float64), column(int32), column(int32)))
def in_rank_order(first: I32, score: F64, second: I32, third: I32) -> I64:
    """Return the order of rows by `first`, descending `score`, `second` and `third`, int64 [n].

    Equal rows keep their order. Runs are merged from the bottom up. Two runs that are in order already are skipped.
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
            for place in range(begin, middle):  # a slice would compile numba's error messages, for a second
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

    `group` int32 and `point` int64 are columns of points. They are clustered by group, and in rank order within a
    group. `begins` and `onset` are those of `near_onsets`; `at`, `value` and `sigma` are the fields of a `Penalty`.
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
    """Return whether a point ranks after another of equal score: by its document's place (-1 is last), then start."""
    if place != than_place:
        return than_place >= 0 and (place < 0 or place > than_place)
    return start > than_start


@part()
def _ascending(scores: F64, none: int) -> tuple[F64, I64]:
    """Return the distinct values of descending scores, ascending and then inf: rungs; and the place for each slot.

    A slot is the number of rungs <= a score. Its place is that of the first of the scores equal to its highest rung;
    `none` for slot 0, which has no rung.
    """
    rungs = np.empty(len(scores) + 1, np.float64)
    first = np.empty(len(scores) + 1, np.int64)
    first[0] = none
    n = 0
    for place in range(len(scores) - 1, -1, -1):
        if n == 0 or scores[place] != rungs[n - 1]:
            n += 1
        rungs[n - 1], first[n] = scores[place], place
    rungs[n] = np.inf
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
    """Count every point in the row of `counts` of the first chosen point of its query that ranks after it.

    `counts` is int64 [n + 1, n_groups]; its last row counts points that rank after all chosen points of their query,
    if there are any. `query`, `group`, `score`, `document` and `start` are columns of points; `group` is
    that of the `document` (-1: none). `places` is the place of each document in the order of documents; its last entry,
    for no document, is -1. The chosen points of query q, in rank order, are the rows offsets[q] .. offsets[q + 1] of
    the columns `of_score`, `of_place` and `of_start`.
    """
    slots = np.empty(_BLOCK, np.int32)
    none = len(counts) - 1
    row = 0
    while row < len(query):
        q, at = query[row], row
        while row < len(query) and query[row] == q:
            row += 1
        begin, end = offsets[q], offsets[q + 1]
        if begin == end:
            continue
        scores, first = _ascending(of_score[begin:end], none - begin)
        rungs = cut_rungs(scores)
        while at < row:
            block = score[at : min(at + _BLOCK, row)]
            find_slots(block, rungs, slots)
            for number in range(len(block)):
                slot = np.uint64(slots[number])
                chosen = begin + first[slot]
                # Chosen points of the same score rank before or after the point by document and start.
                if block[number] == scores[slot - np.uint64(slot > 0)]:
                    stop = begin + first[slot - _ONE] if slot > _ONE else end
                    p, t = places[document[at + number]], start[at + number]
                    while chosen < stop:
                        middle = (chosen + stop) >> 1
                        if _ranks_after(of_place[middle], of_start[middle], p, t):
                            stop = middle
                        else:
                            chosen = middle + 1
                    chosen = none if chosen == end else chosen
                counts[np.uint64(chosen), np.uint64(group[at + number])] += 1
            at += len(block)


_TABLE = float64[:, ::1]


@kernel(int64[:, ::1](column(float64), boolean[:, ::1], _TABLE, _TABLE, _TABLE))
def ranked_lists(weight: F64, intended: Bool, anywhere: F64, near: F64, place: F64) -> I64:
    """Return random lists that contain every point once, in the order of ranks; int64 [n_lists, n_points].

    The points of a list are drawn one by one without replacement. Where `intended` bool [n_lists, n_points] is true,
    the probability of a point is proportional to its `weight` float64 [n_points], while points with a weight are left.
    Otherwise all points have the same probability. The point that is drawn gets one of the free ranks; the probability
    of rank k is proportional to 1 / k.

    Weighted drawing without replacement is a race: points come in ascending order of an exponential time divided by
    their weight. `anywhere`, `near` and `place`, float64 [n_lists, n_points], hold standard exponential times. A point
    that was drawn in one race is skipped in the other, which does not change the odds of the remaining points.
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
    """Return the GAP of ranked lists of points 0 .. n_points - 1, int64 [n_lists, length]; float64 [n_lists].

    `onsets` int64 are ascending, and there is at least one; `at`, `value` and `sigma` are the fields of a `Penalty`.
    GAP = (1 / N) sum over ranks k with R_k > 0 of (R_1 + ... + R_k) / k, where R_k is the gain of the point at rank k
    and N the number of onsets.
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
