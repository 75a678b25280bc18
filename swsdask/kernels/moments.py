"""Sums of the powers of scores' positions within bins that widen with the distance from a centre."""

from __future__ import annotations

import numpy as np
from numba import float64, int32, int64

from swsdask.kernels.compilation import column, kernel, part, several
from swsdask.model.trials import F64, I32, I64

SUMS = 8
"""How many sums a bin has."""

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
