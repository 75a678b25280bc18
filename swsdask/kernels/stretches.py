"""Where stretches begin: rows one after the other that share their query and their group of documents."""

from __future__ import annotations

import numpy as np
from numba import int16, int32, int64, njit

from swsdask.kernels.signatures import column
from swsdask.model.trials import I16, I32, I64

_BLOCK = 1024


@njit(int64[::1](column(int32), column(int16)), cache=True, nogil=True)
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
