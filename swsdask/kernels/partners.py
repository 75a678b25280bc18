"""Which fragments of a group have another there that they do not overlap."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, njit

from swsdask.kernels.signatures import column
from swsdask.model.trials import I32, I64, Bool


@njit()
def _mark_within_file(low: int, high: int, start: I32, end: I32, marked: Bool) -> None:
    """Mark the fragments low:high of one file, sorted by start, that have a partner.

    Let y begin after x. They share at most half of the shorter one iff y begins at or after the middle of x and x ends
    at or before the middle of y. So x has a partner behind it iff of those that begin at or after its middle the one
    with the latest middle has it late enough; and y has one before it iff of those whose middles are at or before its
    start the one that ends first ends early enough.
    """
    size = high - low
    middle = np.empty(size, np.int64)
    for i in range(size):
        middle[i] = np.int64(start[low + i]) + end[low + i]
    latest = middle.copy()
    for i in range(size - 2, -1, -1):
        latest[i] = max(latest[i], latest[i + 1])
    by_middle = np.argsort(middle)
    middles = middle[by_middle]
    earliest = np.empty(size, np.int64)
    for i in range(size):
        own = np.int64(end[low + by_middle[i]])
        earliest[i] = own if i == 0 else min(own, earliest[i - 1])
    for i in range(size):
        half = (middle[i] + 1) >> 1
        behind = np.searchsorted(start[low:high], half)
        before = np.searchsorted(middles, 2 * np.int64(start[low + i]), side="right")
        marked[low + i] = (behind < size and latest[behind] >= 2 * np.int64(end[low + i])) or (
            before > 0 and 2 * earliest[before - 1] <= middle[i]
        )


@njit(boolean[::1](column(int64), column(int32), column(int32), column(int32)), cache=True, nogil=True)
def have_partner(begins: I64, file: I32, start: I32, end: I32) -> Bool:
    """Whether each fragment has one in its group that is of another file, or shares at most half of the shorter one.

    Group g has the rows begins[g]:begins[g + 1] of `file`, `start`, `end` (ticks), sorted by (file, start). The time
    for a group of n is n log n: no pairs are looked at.
    """
    marked = np.empty(len(file), np.bool_)
    for group in range(len(begins) - 1):
        low, high = begins[group], begins[group + 1]
        if low == high:
            continue
        if file[low] != file[high - 1]:
            marked[low:high] = True
        else:
            _mark_within_file(low, high, start, end, marked)
    return marked
