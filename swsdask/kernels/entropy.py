"""Costs of trials in nats, softplus(x) = log(1 + e^x): single costs, their sums, and the rates of least cost.

softplus has no branches, so that the processor computes several values at once. A block of rows passes through one
short step after another. In a single loop over all steps, the operations of a row would wait for one another, and those
of the next rows would be too far ahead for the processor to begin them meanwhile.

softplus is computed as max(x, 0) + log1p(e^-|x|) from additions, multiplications and one division, never from the
logarithm of a sigmoid. IEEE 754 determines the bits of these operations, so the bits of a cost are the same for all
mathematical libraries and vector widths. The error is at most 2 units in the last place. The ends are exact: 0 from
about -745.2 down, x itself from about 36.8 up.

- e^-a: a = -(n log 2 + r) with an integer n and |r| <= log(2) / 2. The Taylor polynomial of e^r is multiplied by two
  powers of two, so that numbers below 2^-1022 are rounded instead of lost.
- log1p(t), 0 <= t <= 1: f = t, or f = (1 + t) / 2 - 1 with log 2 added separately where t > sqrt(2) - 1. With
  s = f / (2 + f), |s| <= .172, log(1 + f) is 2 artanh(s) = f - s (f - R), R = 2 s^2 / 3 + 2 s^4 / 5 + ...

A logistic regression needs the sum of weighted costs, x = slope s + offset of a score s, and its derivatives. The terms
of a block of rows are computed first, several at once, because they do not depend on a sum. Then row r of a block is
added to partial sum r modulo `_LANES`, also several at once. So the order of additions, and with it every bit, does not
depend on the vector width of the machine. Rounding errors grow with the number of blocks instead of rows.

Exact sums of costs are wide integers of 32-bit digits. Isotonic regression pools adjacent violators: it finds the
closest rates that never fall as the score rises.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int32, int64, void

from swsdask.kernels.compilation import column, kernel, part, several
from swsdask.kernels.sums import DIGIT
from swsdask.model.trials import F64, I32, I64
from swsdask.model.units import INFINITE

BLOCK = 1024
"""The rows of a block: few enough that its numbers stay in the processor's nearest cache."""

_MAGIC = 1.5 * 2.0**52
"""The sum of this and a number below 2^51 in size has the nearest integer in its low bits."""

_PER_LOG_2 = 1.4426950408889634
_LOG_2 = 0.6931471805599453
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
"""log 2 in two parts. The first has 32 bits, so n times it is exact."""

_FARTHEST = 750.0
_ONE_STEP = -1000.0
_HALVED = 0.41421356237309503


@part(error_model="numpy")
def _power(n: float) -> float:
    """Return 2^n for an integer n, -1022 <= n <= 1023."""
    return np.int64(np.float64(n + (_MAGIC + 1023.0)).view(np.int64) << 52).view(np.float64)


@part(error_model="numpy")
def _steps(a: float) -> float:
    """Return the integer n of e^-a = 2^n e^r."""
    a = a if a < _FARTHEST else _FARTHEST
    return float((_MAGIC - a * _PER_LOG_2) - _MAGIC)


@part(error_model="numpy")
def _rest(a: float, n: float) -> float:
    """Return r of e^-a = 2^n e^r."""
    a = a if a < _FARTHEST else _FARTHEST
    return (-a - n * _LOG_2_HIGH) - n * _LOG_2_LOW


@part(error_model="numpy")
def _taylor(r: float) -> float:
    """Return (e^r - 1 - r) / r^2."""
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    return p * r + 0.5


@part(error_model="numpy")
def _scaled(n: float, r: float, p: float) -> float:
    """Return 2^n e^r, where p = (e^r - 1 - r) / r^2."""
    first = n if n > _ONE_STEP else _ONE_STEP
    return (1.0 + (r + r * r * p)) * _power(first) * _power(n - first)


@part(error_model="numpy")
def _beyond(t: float) -> float:
    """Return f, where log(1 + t) is log(1 + f), plus log 2 where t > sqrt(2) - 1."""
    return (t - 1.0) * 0.5 if t > _HALVED else t


@part(error_model="numpy")
def _log1p(t: float, f: float, s: float) -> float:
    """Return log(1 + t) from f = _beyond(t) and s = f / (2 + f)."""
    z = s * s
    q = 2.0 / 21.0
    q = q * z + 2.0 / 19.0
    q = q * z + 2.0 / 17.0
    q = q * z + 2.0 / 15.0
    q = q * z + 2.0 / 13.0
    q = q * z + 2.0 / 11.0
    q = q * z + 2.0 / 9.0
    q = q * z + 2.0 / 7.0
    q = q * z + 2.0 / 5.0
    q = q * z + 2.0 / 3.0
    return (_LOG_2 if t > _HALVED else 0.0) + (f - s * (f - z * q))


@part(void(column(float64), float64[::1]), error_model="numpy")
def decays(x: F64, decay: F64) -> None:
    """Write e^-|x| of every row of a block of at most `BLOCK` rows into `decay`."""
    steps, rest = np.empty(BLOCK), np.empty(BLOCK)
    for row in range(len(x)):
        a = abs(x[row])
        steps[row] = _steps(a)
        rest[row] = _rest(a, steps[row])
    for row in range(len(x)):
        decay[row] = _taylor(rest[row])
    for row in range(len(x)):
        decay[row] = _scaled(steps[row], rest[row], decay[row])


@part(void(column(float64), column(float64), float64[::1]), error_model="numpy")
def costs_of_decays(x: F64, decay: F64, cost: F64) -> None:
    """Write log(1 + e^x) of every row of a block, given e^-|x|, into `cost`; inf for inf and for `INFINITE`.

    The infinity is added. LLVM would make a separate branch of replacing x, and then compute one cost at a time.
    """
    beyond, ratio = np.empty(BLOCK), np.empty(BLOCK)
    for row in range(len(x)):
        beyond[row] = _beyond(decay[row])
        ratio[row] = beyond[row] / (2.0 + beyond[row])
    for row in range(len(x)):
        cost[row] = _log1p(decay[row], beyond[row], ratio[row])
    for row in range(len(x)):
        infinite = np.inf if x[row] >= INFINITE else 0.0
        cost[row] = ((x[row] if x[row] > 0.0 else 0.0) + infinite) + cost[row]


@kernel(float64[::1](column(float64)), error_model="numpy")
def softplus(x: F64) -> F64:
    """Return log(1 + e^x) of every number, float64; inf for inf and for `INFINITE`."""
    cost = np.empty(len(x), np.float64)
    decay = np.empty(BLOCK)
    for begin in range(0, len(x), BLOCK):
        block = x[begin : begin + BLOCK]
        decays(block, decay)
        costs_of_decays(block, decay, cost[begin : begin + BLOCK])
    return cost


@kernel(float64[::1](column(float64)), error_model="numpy")
def sigmoid(x: F64) -> F64:
    """Return 1 / (1 + e^-x) of every number, float64."""
    share = np.empty(len(x), np.float64)
    decay = np.empty(BLOCK)
    for begin in range(0, len(x), BLOCK):
        block = x[begin : begin + BLOCK]
        decays(block, decay)
        for row in range(len(block)):
            share[begin + row] = (1.0 if block[row] >= 0.0 else decay[row]) / (1.0 + decay[row])
    return share


_LANES = 16
"""A divisor of `BLOCK`."""


@part(error_model="numpy")
def _block_sum(terms: F64, n_terms: int) -> float:
    """Return the sum of the first `n_terms` terms. Later terms, up to a multiple of `_LANES`, are set to 0."""
    padded = -(-n_terms // _LANES) * _LANES
    terms[n_terms:padded] = 0.0
    lanes = np.zeros(_LANES)
    for first in range(0, padded, _LANES):
        for lane in range(_LANES):
            lanes[lane] += terms[first + lane]
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    return total


@kernel(float64(column(float64), column(float64), float64, float64), error_model="numpy")
def logistic_cost(score: F64, weight: F64, slope: float, offset: float) -> float:
    """Return the sum of weight * softplus(slope * score + offset); `score` and `weight` are float64 [n]."""
    shifted, decay, terms = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    total = 0.0
    for begin in range(0, len(score), BLOCK):
        scores, weights = score[begin : begin + BLOCK], weight[begin : begin + BLOCK]
        x = shifted[: len(scores)]
        for row in range(len(scores)):
            x[row] = slope * scores[row] + offset
        decays(x, decay)
        costs_of_decays(x, decay, terms)
        for row in range(len(scores)):
            terms[row] = weights[row] * terms[row]
        total += _block_sum(terms, len(scores))
    return total


@kernel(several(*[float64] * 6)(column(float64), column(float64), float64, float64), error_model="numpy")
def logistic_expansion(
    score: F64, weight: F64, slope: float, offset: float
) -> tuple[float, float, float, float, float, float]:
    """Return the cost and its derivatives, all of which are sums over rows.

    Returns
    -------
    tuple of float
        The cost; its first derivatives by slope and by offset; its second derivatives by slope twice, by both, by
        offset twice.
    """
    costs, slopes, offsets = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    slopes_twice, both, offsets_twice = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    shifted, decay = np.empty(BLOCK), np.empty(BLOCK)
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for begin in range(0, len(score), BLOCK):
        scores, weights = score[begin : begin + BLOCK], weight[begin : begin + BLOCK]
        n_rows = len(scores)
        x = shifted[:n_rows]
        for row in range(n_rows):
            x[row] = slope * scores[row] + offset
        decays(x, decay)
        costs_of_decays(x, decay, costs)
        for row in range(n_rows):
            small = decay[row]
            inverse = 1.0 / (1.0 + small)
            costs[row] = weights[row] * costs[row]
            first = weights[row] * ((1.0 if x[row] >= 0.0 else small) * inverse)
            second = weights[row] * (small * inverse * inverse)
            slopes[row] = first * scores[row]
            offsets[row] = first
            moved = second * scores[row]
            slopes_twice[row] = moved * scores[row]
            both[row] = moved
            offsets_twice[row] = second
        total = (
            total[0] + _block_sum(costs, n_rows),
            total[1] + _block_sum(slopes, n_rows),
            total[2] + _block_sum(offsets, n_rows),
            total[3] + _block_sum(slopes_twice, n_rows),
            total[4] + _block_sum(both, n_rows),
            total[5] + _block_sum(offsets_twice, n_rows),
        )
    return total


_FULL = 2**DIGIT - 1
_FRACTION = 2**52 - 1
_ONE = np.uint64(1)


@part()
def _split(bits: I64, first: int, n: int, place: I32, low: I64, high: I64) -> None:
    """Split `n` floats >= 0, given by their bits, into low * 2^(32 * place) + high * 2^(32 * (place + 1)).

    The unit is 2^(32 * first - 1074); all numbers are multiples of it. low < 2^32 and high < 2^53.
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

    `bounds` int64 [n_stretches + 1] cuts `score` into stretches, none of them empty. `line` int32 [n_stretches] is the
    row of a stretch in `digits` int64 [n_lines, n_digits]. The lowest digit comes first: a row represents the sum over
    d of digits[d] * 2^(32 * (first + d) - 1074). Digits are in 0 .. 2^32 - 1 on return. They must have room for every
    cost and for the sums, which must be >= 0 in the end. inf counts as 2^1024.

    Rows are added to two sums alternately, so that no row waits for the previous one.
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
    """Return the first row of every block, int64, ascending; lists of rows offsets[i] .. offsets[i + 1] are separate.

    `target` and `nontarget` int64 [n] count the trials of each row, by ascending score. A block is joined to the
    previous one unless its share of targets is higher. Shares are compared exactly, because the product of the two
    totals is below 2^63.
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
