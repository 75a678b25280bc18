"""Sums and highest values of many lists at once: list i has the rows offsets[i] .. offsets[i + 1] of a column.

Sums of floats and of wide integers are exact until they are rounded once, to floats. Further kernels compute running
sums along lists, sums over windows of a table, and moments about the points of a grid. Their additions have a fixed
order, so every bit is the same for all vector widths.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part
from swsdask.model.trials import F64, I64

_MOST_PARTS = 64
"""More parts than a sum of doubles can have: each part has 53 of 2098 bits."""

_LISTS = (column(float64), column(int64))


@part(int64(float64, float64[::1], int64), **NOTHING_NEW)
def _add(term: float, parts: F64, n: int) -> int:
    """Add a finite number to a sum of `n` ascending parts that do not overlap; return the new number of parts."""
    used = 0
    for place in range(n):
        other = parts[place]
        if abs(term) < abs(other):
            term, other = other, term
        # `low` is the rounding error of `high`, and exact because |term| >= |other|.
        high = term + other
        low = other - (high - term)
        if low != 0.0:
            parts[used] = low
            used += 1
        term = high
    if term != 0.0:
        parts[used] = term
        used += 1
    return used


@part(float64(column(float64), int64), **NOTHING_NEW)
def _rounded(parts: F64, n: int) -> float:
    """Return the sum of parts that do not overlap, rounded to the nearest float, ties to even."""
    if n == 0:
        return 0.0
    n -= 1
    high, low = parts[n], 0.0
    while n > 0 and low == 0.0:
        n -= 1
        before = high
        high = before + parts[n]
        low = parts[n] - (high - before)
    # If `low` is half a unit in the last place of `high`, the sign of the next part decides the rounding.
    if n > 0 and ((low < 0.0 and parts[n - 1] < 0.0) or (low > 0.0 and parts[n - 1] > 0.0)):
        twice = 2.0 * low
        away = high + twice
        if twice == away - high:
            high = away
    return float(high)


@kernel(float64[::1](*_LISTS))
def rounded_sums(terms: F64, offsets: I64) -> F64:
    """Return the sum of every list, rounded once to the nearest float as by `math.fsum`; float64 [n_lists].

    If numbers of a list are infinite or NaN, its sum is the IEEE 754 sum of these. If a partial sum overflows, the sum
    is NaN. (Shewchuk, Discrete & Computational Geometry 18, 1997.)
    """
    parts = np.empty(_MOST_PARTS, np.float64)
    sums = np.empty(len(offsets) - 1, np.float64)
    for number in range(len(sums)):
        n, infinite = 0, 0.0
        for row in range(offsets[number], offsets[number + 1]):
            if math.isfinite(terms[row]):
                n = _add(terms[row], parts, n)
            else:
                infinite += terms[row]
        sums[number] = infinite if infinite != 0.0 else _rounded(parts, n)
    return sums


@kernel(float64[::1](*_LISTS))
def running_sums(terms: F64, offsets: I64) -> F64:
    """Return the sum of each row and all previous rows of its list, added from the first row on; float64 [n]."""
    sums = np.empty(len(terms), np.float64)
    for number in range(len(offsets) - 1):
        total = 0.0
        for row in range(offsets[number], offsets[number + 1]):
            total += terms[row]
            sums[row] = total
    return sums


@kernel(float64[::1](*_LISTS))
def highest_behind(values: F64, offsets: I64) -> F64:
    """Return the highest value from each row to the end of its list; float64 [n]."""
    highest = values.copy()
    for number in range(len(offsets) - 1):
        for row in range(offsets[number + 1] - 2, offsets[number] - 1, -1):
            highest[row] = max(highest[row], highest[row + 1])
    return highest


DIGIT = 32
"""The number of bits of a digit."""

_FULL = 2**DIGIT - 1
_DROPPED = 11
"""The number of bits, of 64, that do not fit into the mantissa of a float."""


@kernel(float64[::1](int64[:, ::1], int64))
def rounded_integers(digits: I64, exponent: int) -> F64:
    """Return wide integers as floats, each rounded once to the nearest, ties to even; inf beyond the greatest float.

    `digits` int64 [n, n_digits] are >= 0, the lowest first: row i is the sum of digits[i, d] * 2^(32 d + `exponent`).
    `exponent` is at least -1074, so that no number below 2^-1022 is rounded.
    """
    n_digits = digits.shape[1]
    carried = np.zeros(n_digits + 4, np.uint64)
    numbers = np.zeros(len(digits), np.float64)
    for row in range(len(digits)):
        carry, top = 0, -1
        for place in range(n_digits + 2):
            carry += digits[row, place] if place < n_digits else 0
            carried[place + 2] = np.uint64(carry & _FULL)
            top = place + 2 if carry & _FULL else top
            carry >>= DIGIT
        if top < 0:
            continue
        # `bits` are the 64 highest bits of the number; `more` says whether any lower bit is set.
        high, middle, low = carried[top], carried[top - 1], carried[top - 2]
        n_bits = np.uint64(0)
        while high >> n_bits:
            n_bits += np.uint64(1)
        below = np.uint64(DIGIT) - n_bits
        bits = (((high << np.uint64(DIGIT)) | middle) << below) | (low >> n_bits)
        more = (low & ((np.uint64(1) << n_bits) - np.uint64(1))) != 0
        for place in range(2, top - 2):
            more = more or carried[place] != 0
        whole = bits >> np.uint64(_DROPPED)
        rest = bits & np.uint64(2**_DROPPED - 1)
        half = np.uint64(2 ** (_DROPPED - 1))
        if rest > half or (rest == half and (more or whole & np.uint64(1))):
            whole += np.uint64(1)
        scale = DIGIT * (top - 3) - int(below) + _DROPPED + exponent
        numbers[row] = math.ldexp(float(whole), scale)
    return numbers


_PAIRWISE = 128
_LANES = 8


@part()
def _pairwise_sum(terms: F64) -> float:
    """Return the pairwise sum of terms: halves are summed recursively, and up to `_PAIRWISE` terms in `_LANES` sums."""
    n = len(terms)
    if n < _LANES:
        total = 0.0
        for term in terms:
            total += term
        return total
    if n > _PAIRWISE:
        half = n // 2
        half -= half % _LANES
        return float(_pairwise_sum(terms[:half]) + _pairwise_sum(terms[half:]))
    lanes = terms[:_LANES].copy()
    whole = n - n % _LANES
    for begin in range(_LANES, whole, _LANES):
        for lane in range(_LANES):
            lanes[lane] += terms[begin + lane]
    a, b, c, d, e, f, g, h = lanes
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for row in range(whole, n):
        total += terms[row]
    return float(total)


@kernel(float64[::1](float64[:, ::1], float64[:, ::1], column(int64)))
def window_sums(weights: F64, table: F64, begins: I64) -> F64:
    """Return the sum of `weights` times the window of `table` of the same width that starts at each of `begins`.

    `weights` is float64 [n_rows, n], `table` float64 [n_rows, m]. The products of all rows, row after row, are one list
    of terms. They are summed pairwise, so that rounding errors grow with the logarithm of the number of terms.
    """
    n_rows, n = weights.shape
    terms = np.empty(n_rows * n, np.float64)
    sums = np.empty(len(begins), np.float64)
    for number in range(len(begins)):
        begin = begins[number]
        for row in range(n_rows):
            window = table[row, begin : begin + n]
            own = terms[row * n : (row + 1) * n]
            for place in range(n):
                own[place] = weights[row, place] * window[place]
        sums[number] = _pairwise_sum(terms)
    return sums


@kernel(float64[:, ::1](column(float64), column(float64), float64, int64, int64, int64))
def grid_moments(x: F64, weight: F64, per_unit: float, first: int, n_points: int, n_moments: int) -> F64:
    """Return, for each point p of a grid, the sums of weight (x - p)^k / k! over the numbers x nearest to p.

    The result is float64 [n_moments, n_points]; k is 0, 1, .... A unit has `per_unit` points, a power of two, and the
    first point is `first` / per_unit. Numbers are added in their order. A number halfway between two points belongs to
    the even one.
    """
    sums = np.zeros((n_moments, n_points), np.float64)
    for row in range(len(x)):
        point = np.rint(x[row] * per_unit)
        place = int(point) - first
        away = x[row] - point / per_unit
        term = weight[row]
        sums[0, place] += term
        for power in range(1, n_moments):
            term = term * away
            sums[power, place] += term
    factorial = 1.0
    for power in range(2, n_moments):
        factorial *= power
        for place in range(n_points):
            sums[power, place] /= factorial
    return sums
