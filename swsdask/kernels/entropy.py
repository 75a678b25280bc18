"""Sums of costs without rounding, as wide integers of 32-bit digits; and isotonic regression by pooling adjacent
violators: the closest rates that never fall as the score rises.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int32, int64, void

from swsdask.kernels.compilation import column, kernel, part
from swsdask.kernels.softplus import BLOCK, costs_of_decays, decays
from swsdask.kernels.sums import DIGIT
from swsdask.model.trials import F64, I32, I64

_FULL = 2**DIGIT - 1
_FRACTION = 2**52 - 1
_ONE = np.uint64(1)


@part()
def _split(bits: I64, first: int, n: int, place: I32, low: I64, high: I64) -> None:
    """The bits of `n` floats >= 0 as integers: low * 2^(32 * place) + high * 2^(32 * (place + 1)).

    They are in units of 2^(32 * first - 1074), of which numbers are multiples; low < 2^32, high < 2^53.
    """
    for row in range(n):
        exponent = bits[row] >> 52
        whole = (bits[row] & _FRACTION) | (min(exponent, 1) << 52)
        position = max(max(exponent, 1) - 1 - DIGIT * first, 0)
        shift = position & (DIGIT - 1)
        place[row] = position >> 5
        low[row] = (whole << shift) & _FULL
        high[row] = whole >> (DIGIT - shift)


@part()
def _add(digits: I64, place: int, low: int, high: int) -> None:
    at = np.uint64(place)
    digits[at] += low
    digits[at + _ONE] += high


@kernel(
    void(column(int64), column(int32), column(float64), float64, int64, int64, int64, int64[:, ::1]),
    error_model="numpy",
)
def add_costs(
    bounds: I64, line: I32, score: F64, log_odds: float, side: int, times: int, first: int, digits: I64
) -> None:
    """Add `times` (1 or -1) softplus(side * (score + log_odds)) of every score to the sum of its stretch's line.

    `bounds` int64 [n_stretches + 1] cuts `score`, no stretch is empty; `line` int32 [n_stretches] is the row of
    `digits` int64 [n_lines, n_digits], the lowest first: a sum is that of digits[d] * 2^(32 * (first + d) - 1074). Its
    digits come out in 0 .. 2^32 - 1; they must have room for every cost and for the sums, which must not be < 0 in the
    end. inf counts as 2^1024.

    Rows take turns at two sums, so that none waits for the row before it.
    """
    signed, decay, costs = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    bits = costs.view(np.int64)
    place = np.empty(BLOCK, np.int32)
    low, high = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    n_digits = digits.shape[1]
    even, odd = np.zeros(n_digits, np.int64), np.zeros(n_digits, np.int64)
    stretch = 0
    for at in range(0, len(score), BLOCK):
        block = score[at : at + BLOCK]
        x = signed[: len(block)]
        for row in range(len(block)):
            x[row] = side * (block[row] + log_odds)
        decays(x, decay)
        costs_of_decays(x, decay, costs)
        _split(bits, first, len(block), place, low, high)
        begin = 0
        while begin < len(block):
            end = min(bounds[stretch + 1] - at, len(block))
            for row in range(begin, end - 1, 2):
                _add(even, place[row], low[row], high[row])
                _add(odd, place[row + 1], low[row + 1], high[row + 1])
            if (end - begin) & 1:
                _add(even, place[end - 1], low[end - 1], high[end - 1])
            total = digits[line[stretch]]
            carry = 0
            for digit in range(n_digits):
                carry += total[digit] + times * (even[digit] + odd[digit])
                even[digit] = odd[digit] = 0
                total[digit] = carry & _FULL
                carry >>= DIGIT
            if end == bounds[stretch + 1] - at:
                stretch += 1
            begin = end


@kernel(int64[::1](column(int64), column(int64), column(int64)))
def pool_adjacent_violators(offsets: I64, target: I64, nontarget: I64) -> I64:
    """The first row of every block, int64, ascending; each list of rows offsets[i] .. offsets[i + 1] is on its own.

    `target` and `nontarget` int64 [n] count the trials of each row, by ascending score. A row joins the block before it
    unless its share of targets is higher, exactly: the product of the two totals is below 2^63.
    """
    first = np.empty(len(target), np.int64)
    targets, nontargets = np.empty_like(first), np.empty_like(first)
    end = 0
    for number in range(len(offsets) - 1):
        begin = end
        for row in range(offsets[number], offsets[number + 1]):
            first[end], targets[end], nontargets[end] = row, target[row], nontarget[row]
            end += 1
            while end - begin > 1 and targets[end - 2] * nontargets[end - 1] >= targets[end - 1] * nontargets[end - 2]:
                end -= 1
                targets[end - 1] += targets[end]
                nontargets[end - 1] += nontargets[end]
    return first[:end].copy()
