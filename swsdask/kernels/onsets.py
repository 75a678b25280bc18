"""Replay points near onsets, what they earn, and how many points rank before those that earn something."""

from __future__ import annotations

import numpy as np
from numba import float64, int16, int32, int64, njit, void

from swsdask.kernels.gap import PENALTY, renew, use_nearest
from swsdask.kernels.rungs import cut_rungs, find_slots
from swsdask.kernels.signatures import column, several
from swsdask.model.penalty import Penalty
from swsdask.model.trials import F64, I16, I32, I64

_BLOCK = 512

_NEAR = several(int64[::1], int32[::1])(
    column(int32),
    column(int32),
    column(int64),
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
    column(int64),
    column(float64),
    column(int32),
    column(int32),
    int64[:, ::1],
)


@njit(_NEAR, cache=True, nogil=True)
def near_onsets(
    query: I32,
    document: I32,
    point: I64,
    of_query: I64,
    group_document: I32,
    begins: I64,
    onset: I64,
    low: float,
    high: float,
    n_documents: int,
) -> tuple[I64, I32]:
    """The rows of points with low <= point - onset <= high for some onset of their query and document, and its group.

    `query`, `document` (-1: none) and `point` are columns of points. A group is a (query, document) with onsets: those
    of query q are of_query[q] .. of_query[q + 1], each with its document (int32) and its onsets, ascending,
    onset[begins[g] : begins[g + 1]].
    """
    rows = np.empty(len(query), np.int64)
    groups = np.empty(len(query), np.int32)
    group_of = np.full(n_documents, -1, np.int32)
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
        first = begin + np.searchsorted(onset[begin:end], point[row] - high)
        if first < end and onset[first] <= point[row] - low:
            rows[found], groups[found] = row, group
            found += 1
    return rows[:found].copy(), groups[:found].copy()


@njit(
    float64[::1](column(int32), column(int64), column(int64), column(int64), *PENALTY),
    cache=True,
    nogil=True,
)
def use_onsets(group: I32, point: I64, begins: I64, onset: I64, at: F64, value: F64, sigma: float) -> F64:
    """What each point earns of the onsets of its group, float64.

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
        place = int(np.searchsorted(own, point[number]))
        gain[number] = use_nearest(point[number], place, own, before, after, penalty)
    return gain


@njit()
def _ranks_after(place: int, start: int, than_place: int, than_start: int) -> bool:
    """Whether a point ranks after another of equal score: by its document's place (-1 comes last), then start."""
    if place != than_place:
        return than_place >= 0 and (place < 0 or place > than_place)
    return start > than_start


@njit()
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


@njit(_BEFORE, cache=True, nogil=True)
def count_before(
    query: I32,
    group: I16,
    score: F64,
    place: I32,
    start: I32,
    offsets: I64,
    of_score: F64,
    of_place: I32,
    of_start: I32,
    counts: I64,
) -> None:
    """Add every point to `counts` int64 [n, n_groups] of the first of its query's chosen points that ranks after it.

    The first columns are those of the points, `group` being that of their documents, `place` their order (-1: none).
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
                    p, t = place[at + number], start[at + number]
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
