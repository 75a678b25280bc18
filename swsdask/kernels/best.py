"""The best detection of every trial that several detections fall into."""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, njit

from swsdask.kernels.signatures import column
from swsdask.model.trials import F64, I8, I32, I64


@njit()
def _is_better(row: int, other: int, score: F64, start: I32, duration: I32, channel: I8, decision: I8) -> bool:
    """By score, then the earlier start, the longer duration, the lower channel, YES before NO, the earlier row."""
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


@njit(
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
    ),
    cache=True,
    nogil=True,
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
