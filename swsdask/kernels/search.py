"""Places in sorted arrays, and the order of integers.

numpy has these functions too. What numba makes of them takes many times as long to compile, for it serves every type of
number, NaN among them.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from swsdask.kernels.compilation import NOTHING_NEW, column, part
from swsdask.model.trials import F64, I32, I64


@part(**NOTHING_NEW)
def first_not_below(ascending: I32 | I64 | F64, number: float | np.int64) -> int:
    """The first place of an ascending array at which a number, not NaN, can be inserted in order."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@part(**NOTHING_NEW)
def first_above(ascending: I32 | I64 | F64, number: float | np.int64) -> int:
    """The last place of an ascending array at which a number, not NaN, can be inserted in order."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@part(int64[::1](column(int64)))
def ascending_order(keys: I64) -> I64:
    """The places of integers in ascending order, equal ones as they come: stretches are merged, from single ones on."""
    n = len(keys)
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for place in range(n):
        order[place] = place
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            left, right = begin, middle
            for place in range(begin, end):
                if right == end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order
