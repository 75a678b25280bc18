"""Moments of scores within bins that widen with the distance from a centre, and the points that represent a bin.

`statistics.moments` defines bins and moments. The points of a bin are the nodes of Gauss quadrature for its moments up
to the fifth (Golub and Welsch 1969). They are the roots of the third orthogonal polynomial if the moments determine it
beyond rounding errors, else the roots of the second one. A bin with one distinct score has one point, the mean. Only
additions, multiplications, divisions and square roots are used, so every bit is the same for all mathematical libraries
and vector widths.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int32, int64

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part, several
from swsdask.model.trials import F64, I32, I64

SUMS = 8
"""The number of sums per bin."""

POSITION = 42
"""The number of low bits of a float that give its position in its bin: a binade has 2^(52 - 42) bins."""

FARTHEST = 2.0**1023
"""The greatest distance from the centre, in units: scores that are farther away count as this far."""

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
"""The bits of 2^52: with a whole number below 2^52 in the low bits, they are those of 2^52 plus that number. Many
processors lack vector instructions that convert 64-bit integers to floats, multiply them or shift them with sign."""

_BINS = (int64[::1], int64[:, ::1])


@part()
def _away(distance: float) -> np.uint64:
    """Return the bits of 1 + `distance`, a distance from the centre in units, at most `FARTHEST`."""
    far = distance + 1.0
    return np.float64(far if far < FARTHEST else FARTHEST).view(np.uint64)


@part()
def _nearest(x: float) -> np.int64:
    """Return the integer nearest to x, |x| < 2^51."""
    return np.float64(x + _MAGIC).view(np.int64) - _MAGIC_BITS


@kernel(int64(column(float64), float64, float64))
def reach(score: F64, centre: float, unit: float) -> int:
    """Return the number of bins on each side of the centre that hold all scores."""
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
    """Add the powers of every score, times `times` (1 or -1), to the sums of its bin; return the number of rows in use.

    `bounds` int64 [n_stretches + 1] cuts `score` into stretches; `layer` int32 [n_stretches] is -1 where a stretch is
    not counted. A layer has 2 * `n_side` places in `line` int32; its bin b has place n_side + b. `line` is one more
    than the row of the bin in `sums`, or 0 if the bin has no scores yet. `sums` is int64 [n, SUMS], where n is at least
    the number of places or the number of scores. Its first `n_lines` rows are in use. Its columns are the number of
    scores, and then the sums that `statistics.moments` defines. `unit` is a power of two.
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
                # (n ^ -1) - -1 is -n: this gives integers the sign of `times` without a multiplication.
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
    """Merge two tables of bins: `key` int64, ascending and distinct, and `sums` int64 [n, SUMS].

    Bins whose number of scores is 0 afterwards are dropped.
    """
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


_SAME_SCORE = 4e-15
"""A variance of u up to this is a rounding error."""

_ROUNDED = 4e-9
"""The accuracy of the third to fifth moments of u."""

_STEPS = 6
"""The number of Newton steps to a root from the bound nearest to it: five reduce the error from .3 to below 1e-16."""


@part(**NOTHING_NEW)
def _clipped(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


@part(**NOTHING_NEW)
def _polished(t: float, p: float, q: float, r: float) -> float:
    """Return a root of t^3 + p t^2 + q t + r, refined from an approximation by two Newton steps."""
    for _ in range(2):
        slope = (3.0 * t + 2.0 * p) * t + q
        if slope != 0.0:
            t -= (((t + p) * t + q) * t + r) / slope
    return t


@part(several(float64, float64, float64)(float64, float64, float64), error_model="numpy", **NOTHING_NEW)
def _roots(p: float, q: float, r: float) -> tuple[float, float, float]:
    """Return the roots of t^3 + p t^2 + q t + r, which are all real and distinct, in descending order.

    The substitution t = x - p / 3 gives x^3 - 3 a^2 x + 2 b, whose roots lie within 2 a of 0. The root that is farthest
    from the others has the sign of -b. Newton steps from 2 a on that side approach it and never pass it. The other two
    are the roots of a quadratic.
    """
    shift = p / 3.0
    square = max(shift * shift - q / 3.0, 0.0)
    b = shift * shift * shift - shift * q / 2.0 + r / 2.0
    x = -math.copysign(2.0 * math.sqrt(square), b)
    for _ in range(_STEPS):
        slope = 3.0 * (x * x - square)
        if slope != 0.0:
            x -= ((x * x - 3.0 * square) * x + 2.0 * b) / slope
    apart = math.sqrt(max(12.0 * square - 3.0 * x * x, 0.0))
    opposite = -(x + math.copysign(apart, x)) / 2.0
    # The smaller root is computed from the product of the two, because their sum would lose digits.
    between = (x * x - 3.0 * square) / opposite if opposite != 0.0 else 0.0
    first, middle, last = (x, between, opposite) if x > 0.0 else (opposite, between, x)
    return _polished(first - shift, p, q, r), _polished(middle - shift, p, q, r), _polished(last - shift, p, q, r)


@kernel(several(float64[::1], float64[::1], int64[::1])(column(int64), int64[:, ::1]), error_model="numpy")
def nodes(bins: I64, sums: I64) -> tuple[F64, F64, I64]:
    """Return the points of bins: positions z and weights > 0, float64 [n], and the row of each point's bin, int64 [n].

    `bins` int64 [n_bins] are numbers of bins and `sums` int64 [n_bins, SUMS] their sums. A bin has at most three
    points. Their moments up to the fifth are those of the bin, within the rounding of the moments.
    """
    z, weight = np.empty(3 * len(bins), np.float64), np.empty(3 * len(bins), np.float64)
    row = np.empty(3 * len(bins), np.int64)
    t, share = np.empty(3, np.float64), np.empty(3, np.float64)
    used = 0
    for number in range(len(bins)):
        n = float(sums[number, 0])
        m1 = (sums[number, 1] * 2.0**21 + sums[number, 2]) / n * 2.0**-41
        m2 = (sums[number, 3] + sums[number, 4] * 2.0**-28) / n * 2.0**-28
        variance = m2 - m1 * m1
        deviation, n_nodes = 0.0, 1
        t[0], share[0] = 0.0, 1.0
        if variance > _SAME_SCORE:
            deviation = math.sqrt(variance)
            m3, m4, m5 = (
                sums[number, 5] / n * 2.0**-29,
                sums[number, 6] / n * 2.0**-29,
                sums[number, 7] / n * 2.0**-29,
            )
            v, mean2 = variance, m1 * m1
            c3 = m3 - 3.0 * m1 * m2 + 2.0 * mean2 * m1
            c4 = m4 - 4.0 * m1 * m3 + 6.0 * mean2 * m2 - 3.0 * mean2 * mean2
            c5 = m5 - 5.0 * m1 * m4 + 10.0 * mean2 * m3 - 10.0 * mean2 * m1 * m2 + 4.0 * mean2 * mean2 * m1
            # For scores with mean 0 and variance 1, the orthogonal polynomials are 1, t, t^2 - skew t - 1 and the one
            # whose roots are found below. (t - b) (t - c) has the mean 1 + b c, which gives the share of node a.
            low, high = (-1.0 - m1) / deviation, (1.0 - m1) / deviation
            skew = _clipped((c3 if abs(c3) > _ROUNDED else 0.0) / (v * deviation), low, high)
            left = c4 * v - c3 * c3 - v * v * v
            if left > _ROUNDED * (v + abs(c3)):
                beta = min(left / (v * v * v), (high - low) * (high - low) / 4.0)
                mu4, mu5 = c4 / (v * v), c5 / (v * v * deviation)
                alpha = _clipped((mu5 - 2.0 * skew * mu4 + skew * skew * skew) / beta, low, high)
                a, b, c = _roots(-(skew + alpha), skew * alpha - beta - 1.0, alpha)
                t[0], t[1], t[2] = a, b, c
                share[0] = (1.0 + b * c) / ((a - b) * (a - c))
                share[1] = (1.0 + a * c) / ((b - a) * (b - c))
                share[2] = (1.0 + a * b) / ((c - a) * (c - b))
                n_nodes = 3
            else:
                a = (skew + math.copysign(math.sqrt(skew * skew + 4.0), skew)) / 2.0
                b = -1.0 / a
                t[0], t[1] = a, b
                share[0], share[1] = 1.0 / ((a - b) * a), 1.0 / ((b - a) * b)
                n_nodes = 2
        below = bins[number] < 0
        away = ~bins[number] if below else bins[number]
        first = math.ldexp(1.0, away >> (52 - POSITION))
        middle = 2 * (away & (_BINADE - 1)) + 1
        for node in range(n_nodes):
            if share[node] > 0.0:
                u = m1 + deviation * t[node]
                at = (first - 1.0) + first * ((middle + u) / (2 * _BINADE))
                z[used] = -at if below else at
                weight[used] = n * share[node]
                row[used] = number
                used += 1
    return z[:used].copy(), weight[:used].copy(), row[:used].copy()
