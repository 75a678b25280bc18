"""Trials of places: whether every row is one, and which are targets."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, njit

from swsdask.kernels.signatures import column, several
from swsdask.model.trials import I32, I64

_BLOCK = 1024


@njit(boolean(column(int32), column(int32), int64), cache=True, nogil=True)
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


@njit(
    [
        _TARGETS(column(int32), column(int32), column(int64), column(int64), int64),
        _TARGETS(column(int32), column(int64), column(int64), column(int64), int64),
    ],
    cache=True,
    nogil=True,
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
