"""Stretches: rows one after the other that share their query and their group of documents."""

from __future__ import annotations

import numpy as np
from numba import int16, int32, int64, njit

from swsdask.kernels.signatures import column
from swsdask.model.trials import I16, I32, I64


@njit(int64[::1](column(int32), column(int16)), cache=True, nogil=True)
def stretch_bounds(query: I32, group: I16) -> I64:
    """Where stretches begin, and the end of the last: int64 [n_stretches + 1], [0] without rows."""
    n = len(query)
    count = 1 if n > 0 else 0
    for row in range(1, n):
        count += (query[row] != query[row - 1]) | (group[row] != group[row - 1])
    bounds = np.empty(count + 1, np.int64)
    bounds[0] = 0
    bounds[count] = n
    found = 1
    if count > 1:
        for row in range(1, n):
            if query[row] != query[row - 1] or group[row] != group[row - 1]:
                bounds[found] = row
                found += 1
    return bounds
