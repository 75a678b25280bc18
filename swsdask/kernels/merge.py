"""Merging sorted rows of (score, query, group)."""

from __future__ import annotations

import numpy as np
from numba import float64, int16, int32, int64, njit

from swsdask.kernels.signatures import column
from swsdask.model.trials import F64, I16, I32, I64

_ROWS = (column(float64), column(int32), column(int16))


@njit(int64[::1](*_ROWS, *_ROWS), cache=True, nogil=True)
def merge_order(score: F64, query: I32, group: I16, other_score: F64, other_query: I32, other_group: I16) -> I64:
    """The sorted order of two tables of rows one behind the other, each sorted by its three columns: int64 [n + m]."""
    n, m = len(score), len(other_score)
    order = np.empty(n + m, np.int64)
    i, j = 0, 0
    for place in range(n + m):
        if j == m:
            ours = True
        elif i == n:
            ours = False
        elif score[i] != other_score[j]:
            ours = score[i] < other_score[j]
        elif query[i] != other_query[j]:
            ours = query[i] < other_query[j]
        else:
            ours = group[i] <= other_group[j]
        if ours:
            order[place] = i
            i += 1
        else:
            order[place] = n + j
            j += 1
    return order
