"""Places in sorted arrays; and rows of a run on their way into an archive: their hashes, and which excerpts hold them.

numpy finds places in sorted arrays too, and the order of integers. What numba makes of that takes many times as long to
compile, for it serves every type of number, NaN among them.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, uint64, void
from numpy.typing import NDArray

from swsdask.kernels.compilation import NOTHING_NEW, column, inlined, kernel, part
from swsdask.model.trials import F64, I32, I64

TRACK_BITS = 32
"""How many bits the time has in (document, channel, time) in one integer."""

_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_SHIFTS = np.array([30, 27, 31, 32], np.uint64)


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


@inlined()
def _mix(value: np.uint64) -> np.uint64:
    """A bijection of 64 bits in which every input bit moves every output bit (splitmix64's finaliser)."""
    value = (value ^ (value >> _SHIFTS[0])) * _FACTORS[0]
    value = (value ^ (value >> _SHIFTS[1])) * _FACTORS[1]
    value ^= value >> _SHIFTS[2]
    return value


@inlined(uint64(int64, int64), **NOTHING_NEW)
def _both(high: int, low: int) -> np.uint64:
    """Two integers of up to 32 bits as one."""
    both: np.uint64 = (np.uint64(np.uint32(high)) << _SHIFTS[3]) | np.uint64(np.uint32(low))
    return both


@kernel(
    uint64(
        uint64,
        uint64,
        column(uint64),
        column(uint64),
        column(int32),
        column(int32),
        column(int8),
        column(int32),
        column(int32),
        column(uint64),
        column(int8),
    ),
    **NOTHING_NEW,
)
def sum_of_hashes(
    total: np.uint64,
    factor: np.uint64,
    query_hash: NDArray[np.uint64],
    document_hash: NDArray[np.uint64],
    query: NDArray[np.int32],
    document: NDArray[np.int32],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    duration: NDArray[np.int32],
    score: NDArray[np.uint64],
    decision: NDArray[np.int8],
) -> np.uint64:
    """The total times `factor`, and a row's hash added, for one row after the other: modulo 2^64.

    `query_hash` and `document_hash` are the hashes of the ids that codes stand for, `score` the bits of scores.
    """
    for row in range(len(query)):
        value = _mix(query_hash[query[row]] + document_hash[document[row]])
        value = _mix(value ^ _both(start[row], duration[row]))
        value = _mix(value ^ score[row])
        value = _mix(value ^ _both(channel[row], decision[row]))
        total = total * factor + value
    return total


OUT, IN = range(2)
"""Where a row lies: not inside an excerpt, or inside (see `place_rows`)."""


@inlined(int64(int64, int64, int64), **NOTHING_NEW)
def _packed(document: int, channel: int, time: int) -> np.int64:
    return ((np.int64(document) * 256 + channel + 128) << TRACK_BITS) + time


@kernel(
    void(
        column(int64),
        column(int64),
        column(float64),
        float64,
        column(int32),
        column(int8),
        column(int32),
        column(int64),
        int8[::1],
    ),
    **NOTHING_NEW,
)
def place_rows(
    begins: NDArray[np.int64],
    reaches: NDArray[np.int64],
    added: NDArray[np.float64],
    ticks_per_second: float,
    document: NDArray[np.int32],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    end: NDArray[np.int64],
    place: NDArray[np.int8],
) -> None:
    """Where each row lies, in `place`, among `begins`, `reaches` and `added` of `archive.reference_tables.Excerpts`.

    A row that ends where its excerpt does has 1 more if begin + duration in doubles lies above the end, and 2 more if
    it lies above that of the excerpt.
    """
    last = np.int64(-1)
    for row in range(len(document)):
        begin = _packed(document[row], channel[row], start[row])
        # Most rows are in the excerpt of the row before, or in the next one.
        if last + 1 < len(begins) and begins[last + 1] <= begin:
            last += 1
        if (last >= 0 and begins[last] > begin) or (last + 1 < len(begins) and begins[last + 1] <= begin):
            last = np.int64(first_above(begins, begin)) - 1
        beyond = reaches[last] - _packed(document[row], channel[row], end[row]) if last >= 0 else np.int64(-1)
        place[row] = OUT if beyond < 0 else IN
        if beyond == 0:
            own = start[row] / ticks_per_second + (end[row] - start[row]) / ticks_per_second
            place[row] += np.int8(own > end[row] / ticks_per_second) + 2 * np.int8(own > added[last])
