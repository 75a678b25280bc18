"""The detections that lie near an occurrence, in the order in which alignment walks them."""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, njit

from swsdask.kernels.signatures import column, several
from swsdask.model.trials import F64, I8, I32, I64

_NEAR = several(int64[::1], int32[::1], float64[::1], float64[::1])(
    column(int32),
    column(int32),
    column(int8),
    column(int32),
    column(int32),
    column(float64),
    column(int8),
    column(int64),
    column(int32),
    column(int8),
    column(int64),
    column(int64),
    column(int64),
    int64,
)


@njit(_NEAR, cache=True, nogil=True)
def near_occurrences(
    query: I32,
    document: I32,
    channel: I8,
    start: I32,
    duration: I32,
    score: F64,
    evaluated: I8,
    group_of_query: I64,
    group_document: I32,
    group_channel: I8,
    occurrence_of_group: I64,
    opens: I64,
    reach: I64,
    n_documents: int,
) -> tuple[I64, I32, F64, F64]:
    """Semi-join of detections with occurrences, in one pass and any order of rows.

    A group is a (query, document, channel) with occurrences; the groups are numbered in that order.
    `query`, `document`, `channel`, `start`, `duration`, `score`: columns of the detections; rows with 0 in `evaluated`
    are passed over, an empty `evaluated` lets all of them count. `group_of_query` int64 [n_queries + 1] and
    `occurrence_of_group` int64 [n_groups + 1] say where the groups of a query and the occurrences of a group begin;
    `opens` is twice (start - tolerance) of every occurrence, `reach` the greatest of twice (end + tolerance) among it
    and those before it in its group.

    Returns the rows whose mid-point lies within the tolerance of an occurrence (in the order of rows) and their groups,
    and per group the lowest and highest score of all its detections (inf, -inf without any).
    """
    n_groups = len(group_document)
    lowest = np.full(n_groups, np.inf)
    highest = np.full(n_groups, -np.inf)
    near = np.empty(len(query), np.int64)
    near_group = np.empty(len(query), np.int32)
    group_of_document = np.full(n_documents + 1, -1, np.int32)
    selective = len(evaluated) > 0
    current, begin, end = np.int64(-1), np.int64(0), np.int64(0)
    count = 0
    for row in range(len(query)):
        if query[row] != current:
            for past in range(begin, end):
                group_of_document[group_document[past] + 1] = -1
            current = np.int64(query[row])
            begin, end = group_of_query[current], group_of_query[current + 1]
            for coming in range(end - 1, begin - 1, -1):
                group_of_document[group_document[coming] + 1] = coming
        group = np.int64(group_of_document[np.uint32(document[row] + 1)])
        if group < 0:
            continue
        while group < end and group_document[group] == document[row] and group_channel[group] < channel[row]:
            group += 1
        if group == end or group_document[group] != document[row] or group_channel[group] != channel[row]:
            continue
        if selective and evaluated[row] == 0:
            continue
        lowest[group] = min(lowest[group], score[row])
        highest[group] = max(highest[group], score[row])
        middle = 2 * np.int64(start[row]) + duration[row]
        low, high = occurrence_of_group[group], occurrence_of_group[group + 1]
        while high - low > 1:
            half = (low + high) // 2
            if opens[half] <= middle:
                low = half
            else:
                high = half
        if opens[low] <= middle <= reach[low]:
            near[count] = row
            near_group[count] = group
            count += 1
    return near[:count], near_group[:count], lowest, highest
