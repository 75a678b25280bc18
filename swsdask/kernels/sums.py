"""Sums and highest values of many lists at once: rows offsets[i] .. offsets[i + 1] of a column are list i.

Exact sums of floats and wide integers become floats by one rounding. Sums also run along lists, and over windows of a
table; and sums of the powers of scores' positions are taken within bins that widen with the distance from a centre. The
order of all other additions is fixed, so every bit is the same whatever width of vectors a machine has.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int32, int64

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part, several
from swsdask.model.trials import F64, I32, I64

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


SUMS = 8
"""The number of sums of a bin."""

POSITION = 42
"""The low bits of a float that are the position in its bin: a binade has 2^(52 - 42) bins."""

FARTHEST = 2.0**1023
"""Scores farther from the centre than so many units count as so far."""

_BLOCK = 256
_POSITION = np.uint64(POSITION)
_LOW = np.uint64(2**POSITION - 1)
_MIDDLE = 2 ** (POSITION - 1)
_BINADE = 1 << (52 - POSITION)
_FIRST = 1023 * _BINADE
_HALF = np.uint64(POSITION // 2)
_LOW_HALF = np.uint64(2 ** (POSITION // 2) - 1)
_MIDDLE_HIGH = _MIDDLE >> (POSITION // 2)
_MAGIC = 1.5 * 2.0**52
_MAGIC_BITS = 0x4338000000000000
_WHOLE = 2.0**52
_WHOLE_BITS = np.uint64(0x4330000000000000)
"""With a whole number below 2^52 in its low bits, the bits of that number and 2^52: many processors have no other
instruction that makes floats of several 64-bit integers at once, none that multiplies them or shifts in their sign."""

_BINS = (int64[::1], int64[:, ::1])


@part()
def _away(distance: float) -> np.uint64:
    """The bits of 1 + a distance from the centre, in units."""
    far = distance + 1.0
    return np.float64(far if far < FARTHEST else FARTHEST).view(np.uint64)


@part()
def _nearest(x: float) -> np.int64:
    """The nearest integer, |x| < 2^51."""
    return np.float64(x + _MAGIC).view(np.int64) - _MAGIC_BITS


@kernel(int64(column(float64), float64, float64))
def reach(score: F64, centre: float, unit: float) -> int:
    """Count the bins on either side of the centre out to the farthest of the scores."""
    n_side = 0
    per_unit = 1.0 / unit
    for row in range(len(score)):
        n_side = max(n_side, int(_away(abs((score[row] - centre) * per_unit)) >> _POSITION))
    return max(n_side - _FIRST + 1, 0)


@kernel(
    int64(
        column(int64),
        column(int32),
        column(float64),
        float64,
        float64,
        int64,
        int64,
        int32[::1],
        int64[:, ::1],
        int64,
    )
)
def add_powers(
    bounds: I64,
    layer: I32,
    score: F64,
    centre: float,
    unit: float,
    times: int,
    n_side: int,
    line: I32,
    sums: I64,
    n_lines: int,
) -> int:
    """Add `times` (1 or -1) the powers of every score to the sums of its bin; returns how many bins have sums now.

    `bounds` int64 [n_stretches + 1] cuts `score`; `layer` int32 [n_stretches], -1 where a stretch is not counted. A
    layer has 2 * `n_side` places in `line` int32, of which bin b has place n_side + b: one more than the row of `sums`
    that is the bin's, 0 for a bin without scores yet. `sums` int64 [>= n_places or scores, SUMS] has `n_lines` rows in
    use, and says how many scores, and then what `statistics.moments` says. The unit is a power of two.
    """
    place = np.empty(_BLOCK, np.int64)
    p1, p1_low = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    p2, p2_low = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    p3, p4, p5 = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    per_unit = 1.0 / unit
    sign, negative = float(times), (times - 1) >> 1
    for stretch in range(len(layer)):
        if layer[stretch] < 0:
            continue
        origin = (2 * layer[stretch] + 1) * n_side
        end = bounds[stretch + 1]
        for at in range(bounds[stretch], end, _BLOCK):
            block = score[at : min(at + _BLOCK, end)]
            for row in range(len(block)):
                z = (block[row] - centre) * per_unit
                bits = _away(abs(z))
                away = np.int64(bits >> _POSITION) - _FIRST
                place[row] = origin + (~away if z < 0.0 else away)
                position = bits & _LOW
                u = (np.uint64(position | _WHOLE_BITS).view(np.float64) - (_WHOLE + _MIDDLE)) / _MIDDLE
                u2 = u * u
                square = u2 * 2.0**28
                rest = square - ((square + _MAGIC) - _MAGIC)
                # (n ^ -1) - -1 is -n.
                p1[row] = ((np.int64(position >> _HALF) - _MIDDLE_HIGH) ^ negative) - negative
                p1_low[row] = (np.int64(position & _LOW_HALF) ^ negative) - negative
                p2[row] = _nearest(sign * square)
                p2_low[row] = _nearest(sign * (rest * 2.0**28))
                p3[row] = _nearest(sign * (u2 * u * 2.0**29))
                p4[row] = _nearest(sign * (u2 * u2 * 2.0**29))
                p5[row] = _nearest(sign * (u2 * u2 * u * 2.0**29))
            for row in range(len(block)):
                at_line = line[np.uint64(place[row])]
                if at_line == 0:
                    sums[n_lines] = 0
                    n_lines += 1
                    at_line = n_lines
                    line[np.uint64(place[row])] = at_line
                own = np.uint64(at_line - 1)
                sums[own, 0] += times
                sums[own, 1] += p1[row]
                sums[own, 2] += p1_low[row]
                sums[own, 3] += p2[row]
                sums[own, 4] += p2_low[row]
                sums[own, 5] += p3[row]
                sums[own, 6] += p4[row]
                sums[own, 7] += p5[row]
    return n_lines


@kernel(several(*_BINS)(column(int64), int64[:, ::1], column(int64), int64[:, ::1]))
def merge_sums(key: I64, sums: I64, other_key: I64, other_sums: I64) -> tuple[I64, I64]:
    """Two tables of bins as one: `key` int64 ascending, distinct, and `sums` int64 [n, SUMS]; bins of no scores go."""
    n, m = len(key), len(other_key)
    joined = np.empty(n + m, np.int64)
    total = np.empty((n + m, SUMS), np.int64)
    i = j = used = 0
    while i < n or j < m:
        ours = j == m or (i < n and key[i] <= other_key[j])
        theirs = i == n or (j < m and other_key[j] <= key[i])
        joined[used] = key[i] if ours else other_key[j]
        for power in range(SUMS):
            total[used, power] = (sums[i, power] if ours else 0) + (other_sums[j, power] if theirs else 0)
        i += ours
        j += theirs
        used += total[used, 0] != 0
    return joined[:used].copy(), total[:used].copy()
