"""Sums and highest values of many lists at once: rows offsets[i] .. offsets[i + 1] of a column are list i.

Exact sums of floats and wide integers become floats by one rounding. Sums also run along lists, and over windows of a
table; moments are sums about the points of a grid. The order of all other additions is fixed, so every bit is the same
whatever width of vectors a machine has.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part
from swsdask.model.trials import F64, I64

_MOST_PARTS = 64
"""More parts than a sum of doubles can have: each has 53 bits of 2098."""

_LISTS = (column(float64), column(int64))


@part(int64(float64, float64[::1], int64), **NOTHING_NEW)
def _add(term: float, parts: F64, n: int) -> int:
    """Add a finite number to a sum in `n` parts, ascending, that do not overlap; returns how many there are then."""
    used = 0
    for place in range(n):
        other = parts[place]
        if abs(term) < abs(other):
            term, other = other, term
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
    """The sum of parts that do not overlap, to the nearest float, of two equally near ones the even."""
    if n == 0:
        return 0.0
    n -= 1
    high, low = parts[n], 0.0
    while n > 0 and low == 0.0:
        n -= 1
        before = high
        high = before + parts[n]
        low = parts[n] - (high - before)
    if n > 0 and ((low < 0.0 and parts[n - 1] < 0.0) or (low > 0.0 and parts[n - 1] > 0.0)):
        twice = 2.0 * low
        away = high + twice
        if twice == away - high:
            high = away
    return float(high)


@kernel(float64[::1](*_LISTS))
def rounded_sums(terms: F64, offsets: I64) -> F64:
    """The sum of every list, rounded once, to the nearest float, as `math.fsum` does; float64 [n_lists].

    A list with a number that is not finite has the sum that IEEE 754 gives such numbers; one whose partial sums are
    beyond all floats has NaN. (Shewchuk, Discrete & Computational Geometry 18, 1997.)
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
    """The sum of each row and all rows in front of it in its list, added up from the first: float64 [n]."""
    sums = np.empty(len(terms), np.float64)
    for number in range(len(offsets) - 1):
        total = 0.0
        for row in range(offsets[number], offsets[number + 1]):
            total += terms[row]
            sums[row] = total
    return sums


@kernel(float64[::1](*_LISTS))
def highest_behind(values: F64, offsets: I64) -> F64:
    """The highest of each value and those behind it in its list: float64 [n]."""
    highest = values.copy()
    for number in range(len(offsets) - 1):
        for row in range(offsets[number + 1] - 2, offsets[number] - 1, -1):
            highest[row] = max(highest[row], highest[row + 1])
    return highest


DIGIT = 32
"""Bits of a digit."""

_FULL = 2**DIGIT - 1
_DROPPED = 11
"""Of 64 bits, those that a float has no room for."""


@kernel(float64[::1](int64[:, ::1], int64))
def rounded_integers(digits: I64, exponent: int) -> F64:
    """Wide integers as floats, each rounded once, to the nearest, of two equally near ones to the even; inf beyond all.

    `digits` int64 [n, n_digits], all >= 0, the lowest first: row i is the sum of digits[i, d] * 2^(32 d + `exponent`),
    `exponent` being -1074 or more.
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
    """The sum of terms, added up in two halves, and so on down to some `_PAIRWISE` of them, in `_LANES` sums."""
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
    """The sums of `weights` times as wide a window of `table`, float64 [n_rows, n] and [n_rows, m], from each begin.

    Rows follow one another in a sum, which is added up pairwise, so that rounding errors grow with the logarithm of its
    length.
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
    """The sums of weight (x - p)^k / k! over the numbers nearest to each point p of a grid.

    Returns float64 [n_moments, n_points]: k is 0, 1, ..., and points are `per_unit` to a unit, a power of two, from
    `first` / per_unit on. Numbers are added in their order; of two points that are equally near the even one is meant.
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
