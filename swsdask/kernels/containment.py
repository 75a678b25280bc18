"""Fragments inside stretches of their file: which one holds each, and what is left of them there.

Stretches are columns sorted by (file, start) that do not overlap within one file; those of file f are rows
first[f]:first[f + 1]. Times are int32 ticks of 0.1 ms.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit

from swsdask.kernels.placing import shared_seconds
from swsdask.kernels.signatures import column
from swsdask.model.trials import I32, I64

_FRAGMENTS = (column(int32), column(int32), column(int32))
_STRETCHES = (column(int64), column(int32), column(int32))


@njit(int64[::1](*_FRAGMENTS, *_STRETCHES), cache=True, nogil=True)
def holding(file: I32, start: I32, end: I32, first: I64, stretch_start: I32, stretch_end: I32) -> I64:
    """The row of the stretch that each fragment lies entirely inside, int64; -1 where there is none."""
    holder = np.full(len(file), -1, np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        last = low + np.searchsorted(stretch_start[low:high], start[row], side="right") - 1
        if last >= low and end[row] <= stretch_end[last]:
            holder[row] = last
    return holder


@njit(int64[::1](*_FRAGMENTS, *_STRETCHES), cache=True, nogil=True)
def sharing_most(file: I32, start: I32, end: I32, first: I64, stretch_start: I32, stretch_end: I32) -> I64:
    """The row of the stretch that shares most time with each fragment (in doubles, as tde has it), int64.

    Of several the first; -1 where there is none.
    """
    best = np.full(len(file), -1, np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        stretch = low + np.searchsorted(stretch_end[low:high], start[row], side="right")
        most = 0.0
        while stretch < high and stretch_start[stretch] < end[row]:
            shared = shared_seconds(start[row], end[row], stretch_start[stretch], stretch_end[stretch])
            if shared > most:
                best[row], most = stretch, shared
            stretch += 1
    return best
