"""From detections to trials: the best detection of a place, which places are targets, and stretches.

A stretch is a range of adjacent rows that share their query and their group of documents.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int16, int32, int64, njit

from swsdask.kernels.compilation import column, kernel, several
from swsdask.model.trials import F64, I8, I16, I32, I64


@njit()
def _is_better(row: int, other: int, score: F64, start: I32, duration: I32, channel: I8, decision: I8) -> bool:
    """Whether a row precedes another: by score, earlier start, longer duration, lower channel, YES, earlier row."""
    if score[row] != score[other]:
        return bool(score[row] > score[other])
    if start[row] != start[other]:
        return bool(start[row] < start[other])
    if duration[row] != duration[other]:
        return bool(duration[row] > duration[other])
    if channel[row] != channel[other]:
        return bool(channel[row] < channel[other])
    if decision[row] != decision[other]:
        return bool(decision[row] > decision[other])
    return row < other


@kernel(
    int64[::1](
        column(int32),
        column(int64),
        column(float64),
        column(int32),
        column(int32),
        column(int8),
        column(int8),
        int64,
        int64,
    )
)
def best_rows(
    query: I32,
    place: I64,
    score: F64,
    start: I32,
    duration: I32,
    channel: I8,
    decision: I8,
    n_queries: int,
    n_places: int,
) -> I64:
    """The row of the best detection of every (query, place) that has any, by query as they come and by place.

    Rows are clustered by query; `place` is the number of the document or segment of each, 0 .. n_places - 1, or -1 for
    none. Best is the highest score; of equals the earlier start, then the longer duration, the lower channel, YES
    before NO, the earlier row. Raises `ValueError` if a query comes back after another.
    """
    best = np.full(n_places, -1, np.int64)
    touched = np.empty(n_places, np.int64)
    ended = np.zeros(n_queries, np.bool_)
    rows = np.empty(len(query), np.int64)
    n_touched, count = 0, 0
    for row in range(len(query) + 1):
        if row > 0 and (row == len(query) or query[row] != query[row - 1]):
            ended[query[row - 1]] = True
            for chosen in np.sort(touched[:n_touched]):
                rows[count] = best[chosen]
                best[chosen] = -1
                count += 1
            n_touched = 0
        if row == len(query):
            break
        if ended[query[row]]:
            raise ValueError("the rows are not clustered by query")
        here = place[row]
        if here < 0:
            continue
        if best[here] < 0:
            touched[n_touched] = here
            n_touched += 1
            best[here] = row
        elif _is_better(row, best[here], score, start, duration, channel, decision):
            best[here] = row
    return rows[:count]


_BLOCK = 1024


@kernel(boolean(column(int32), column(int32), int64))
def pairs_ascend(query: I32, place: I32, n_places: int) -> bool:
    """Whether the rows' pairs (query, place) ascend, so that none is there twice, and places are 0 .. n_places - 1."""
    if len(query) > 0 and not 0 <= place[0] < n_places:
        return False
    for first in range(1, len(query), _BLOCK):
        end = min(first + _BLOCK, len(query))
        queries, before = query[first:end], query[first - 1 : end - 1]
        places, place_before = place[first:end], place[first - 1 : end - 1]
        wrong = 0
        for row in range(len(queries)):
            more = (queries[row] > before[row]) | ((queries[row] == before[row]) & (places[row] > place_before[row]))
            wrong += (not more) | (places[row] < 0) | (places[row] >= n_places)
        if wrong > 0:
            return False
    return True


_TARGETS = several(int64[::1], int32[::1])


@kernel(
    _TARGETS(column(int32), column(int32), column(int64), column(int64), int64),
    _TARGETS(column(int32), column(int64), column(int64), column(int64), int64),
)
def target_rows(
    query: I32, place: I32 | I64, target_of_query: I64, target_place: I64, n_places: int
) -> tuple[I64, I32]:
    """The rows that are targets, ascending, and the number of the target of each.

    Rows are clustered by query, no (query, place) is there twice; places are 0 .. n_places - 1. The targets of a query
    are those from target_of_query[query] to target_of_query[query + 1].
    """
    rows = np.empty(len(target_place), np.int64)
    numbers = np.empty(len(target_place), np.int32)
    number_of_place = np.full(n_places, -1, np.int32)
    current, begin, end, count = np.int64(-1), np.int64(0), np.int64(0), 0
    for row in range(len(query)):
        if query[row] != current:
            for past in range(begin, end):
                number_of_place[target_place[past]] = -1
            current = np.int64(query[row])
            begin, end = target_of_query[current], target_of_query[current + 1]
            for coming in range(begin, end):
                number_of_place[target_place[coming]] = coming
        number = number_of_place[np.uint64(place[row])]
        if number >= 0:
            rows[count] = row
            numbers[count] = number
            count += 1
    return rows[:count].copy(), numbers[:count].copy()


@kernel(int64[::1](column(int32), column(int16)))
def stretch_begins(query: I32, group: I16) -> I64:
    """The rows where stretches begin, ascending int64; an empty `group` has all rows in one group of documents.

    Changes are first counted in a block, which the compiler does several rows at once: most blocks have none.
    """
    begins = np.empty(len(query), np.int64)
    found = 0
    if len(query) > 0:
        begins[0] = 0
        found = 1
    for first in range(1, len(query), _BLOCK):
        end = min(first + _BLOCK, len(query))
        queries, before = query[first:end], query[first - 1 : end - 1]
        changes = 0
        for row in range(len(queries)):
            changes += queries[row] != before[row]
        groups, group_before = group[first:end], group[first - 1 : end - 1]
        for row in range(len(groups)):
            changes += groups[row] != group_before[row]
        if changes == 0:
            continue
        for row in range(len(queries)):
            if queries[row] != before[row] or (len(groups) > 0 and groups[row] != group_before[row]):
                begins[found] = first + row
                found += 1
    return begins[:found].copy()
