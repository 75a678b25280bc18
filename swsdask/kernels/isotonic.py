"""Pooling adjacent violators: the closest rates that never fall as the score rises."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from swsdask.kernels.signatures import column
from swsdask.model.trials import I64


@njit(int64[::1](column(int64), column(int64), column(int64)), cache=True, nogil=True)
def pool_adjacent_violators(offsets: I64, target: I64, nontarget: I64) -> I64:
    """The first row of every block, int64, ascending; each list of rows offsets[i] .. offsets[i + 1] is on its own.

    `target` and `nontarget` int64 [n] count the trials of each row, by ascending score. A row joins the block before it
    unless its share of targets is higher, exactly: the product of the two totals is below 2^63.
    """
    first = np.empty(len(target), np.int64)
    targets, nontargets = np.empty_like(first), np.empty_like(first)
    end = 0
    for part in range(len(offsets) - 1):
        begin = end
        for row in range(offsets[part], offsets[part + 1]):
            first[end], targets[end], nontargets[end] = row, target[row], nontarget[row]
            end += 1
            while end - begin > 1 and targets[end - 2] * nontargets[end - 1] >= targets[end - 1] * nontargets[end - 2]:
                end -= 1
                targets[end - 1] += targets[end]
                nontargets[end - 1] += nontargets[end]
    return first[:end].copy()
