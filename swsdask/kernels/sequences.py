"""Numbers for sequences of labels, equal for equal sequences and no others.

A sequence is a range of rows of one column of labels. It is found by its hash and compared label by label, so two that
share a hash are still told apart. A table of sequences is `slots` int32 [a power of two, at least twice as many], -1
where empty, and where its entries are: columns `entry_first`, `entry_last` int64.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit

from swsdask.kernels.signatures import column, several
from swsdask.model.trials import I32, I64

_SEED = np.uint64(14695981039346656037)
_FACTOR = np.uint64(11400714819323198485)
_HALF = np.uint64(32)


@njit()
def _slot_of(first: int, last: int, label: I32, slots: I32, entry_first: I64, entry_last: I64) -> np.int64:
    """The slot of the entry equal to a sequence, or the empty one where it belongs."""
    key = _SEED
    for row in range(first, last):
        key = (key ^ np.uint64(label[row])) * _FACTOR
        key ^= key >> _HALF
    mask = len(slots) - 1
    slot = np.int64(key) & mask
    size = last - first
    while slots[slot] >= 0:
        entry = slots[slot]
        begin = entry_first[entry]
        if entry_last[entry] - begin == size:
            same = 0
            while same < size and label[begin + same] == label[first + same]:
                same += 1
            if same == size:
                break
        slot = (slot + 1) & mask
    return slot


@njit(
    several(int32[::1], int32[::1], int64[::1], int64[::1])(column(int64), column(int64), column(int32)),
    cache=True,
    nogil=True,
)
def number_sequences(first: I64, last: I64, label: I32) -> tuple[I32, I32, I64, I64]:
    """The number of each sequence label[first:last], int32 in order of first appearance without gaps, and the table.

    The table is `slots`, `entry_first`, `entry_last`; entry k is the first sequence of number k.
    """
    size = 2
    while size < 2 * len(first):
        size *= 2
    slots = np.full(size, -1, np.int32)
    numbers = np.empty(len(first), np.int32)
    entry_first, entry_last = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    entries = 0
    for row in range(len(first)):
        slot = _slot_of(first[row], last[row], label, slots, entry_first, entry_last)
        if slots[slot] < 0:
            slots[slot] = entries
            entry_first[entries], entry_last[entries] = first[row], last[row]
            entries += 1
        numbers[row] = slots[slot]
    return numbers, slots, entry_first[:entries].copy(), entry_last[:entries].copy()


@njit(
    int32[::1](column(int64), column(int64), column(int32), column(int32), column(int64), column(int64)),
    cache=True,
    nogil=True,
)
def find_sequences(first: I64, last: I64, label: I32, slots: I32, entry_first: I64, entry_last: I64) -> I32:
    """The number that each sequence has in a table of the same labels, int32; -1 where the table has it not."""
    numbers = np.empty(len(first), np.int32)
    for row in range(len(first)):
        numbers[row] = slots[_slot_of(first[row], last[row], label, slots, entry_first, entry_last)]
    return numbers
