"""Weighted points that stand for the scores of a bin: Gauss quadrature from its moments.

Three points with the moments up to the fifth that a bin's scores have (two, or one, where the scores are no more than
that) lie among the scores and have weights >= 0 (Golub and Welsch 1969). So a sum over the points of weight * f(score)
is that of a sum over scores, for any smooth f; it is convex where that is; it is exact for straight lines, and for
bins of one distinct score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.model.trials import F64
from swsdask.statistics.bins import Bins, Zoom

_SAME_SCORE = 4e-15
"""A variance of u below this is rounding."""

_ROUNDED = 4e-9
"""Third to fifth moments of u are known to this."""


@dataclass(frozen=True, eq=False)
class Points:
    """Weighted scores: `z` and `weight` > 0 float64, equally long, by bins in ascending order.

    z = (score - centre) / unit, `unit` a power of two. `n` is the sum of the weights, exactly.
    """

    z: F64
    weight: F64
    centre: float
    unit: float
    n: int


def quadrature(bins: Bins, zoom: Zoom) -> Points:
    """The points of some bins, whatever their layers."""
    sums = bins.sums
    n = sums[:, 0].astype(np.float64)
    m1 = (sums[:, 1] * 2.0**21 + sums[:, 2]) / n * 2.0**-41
    m2 = (sums[:, 3] + sums[:, 4] * 2.0**-28) / n * 2.0**-28
    m3, m4, m5 = (sums[:, power] / n * 2.0**-29 for power in (5, 6, 7))
    variance = m2 - m1 * m1
    variance = np.where(variance > _SAME_SCORE, variance, 0.0)
    c3 = m3 - 3 * m1 * m2 + 2 * m1**3
    c4 = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    c5 = m5 - 5 * m1 * m4 + 10 * m1**2 * m3 - 10 * m1**3 * m2 + 4 * m1**5
    t, share = _nodes(variance, c3, c4, c5, m1)
    u = m1[:, np.newaxis] + np.sqrt(variance)[:, np.newaxis] * t
    number = bins.bin[:, np.newaxis]
    away = np.where(number < 0, ~number, number)
    first = np.ldexp(1.0, away >> 10)
    z = (first - 1.0) + first * (((2 * (away & 1023) + 1) + u) / 2048)
    z = np.where(number < 0, -z, z)
    weight = n[:, np.newaxis] * share
    used = weight > 0
    return Points(z[used], weight[used], zoom.centre, zoom.unit, int(sums[:, 0].sum()))


def _nodes(variance: F64, c3: F64, c4: F64, c5: F64, mean: F64) -> tuple[F64, F64]:
    """Three nodes of every bin in standard deviations from its mean, and their shares: float64 [n_bins, 3]."""
    several = variance > 0
    v = np.where(several, variance, 1.0)
    deviation = np.sqrt(v)
    low, high = (-1.0 - mean) / deviation, (1.0 - mean) / deviation
    skew = np.clip(np.where(np.abs(c3) > _ROUNDED, c3, 0.0) / (v * deviation), low, high)
    left = c4 * v - c3 * c3 - v * v * v
    three = several & (left > _ROUNDED * (v + np.abs(c3)))
    beta = np.where(three, np.minimum(left / v**3, (high - low) ** 2 / 4), 1.0)
    mu4, mu5 = c4 / v**2, c5 / (v * v * deviation)
    alpha = np.clip((mu5 - 2 * skew * mu4 + skew**3) / beta, low, high)
    root = np.sqrt(skew * skew + 4.0)
    two = (skew + np.copysign(root, skew)) / 2
    two = np.stack([two, -1.0 / two, np.zeros_like(two)], axis=1)
    t = np.where(three[:, np.newaxis], _roots(-(skew + alpha), skew * alpha - beta - 1.0, alpha), two)
    a, b, c = t.T
    shares = np.stack(
        [(1 + b * c) / ((a - b) * (a - c)), (1 + a * c) / ((b - a) * (b - c)), (1 + a * b) / ((c - a) * (c - b))],
        axis=1,
    )
    shares[:, 2] = np.where(three, shares[:, 2], 0.0)
    t = np.where(several[:, np.newaxis], t, 0.0)
    shares = np.where(several[:, np.newaxis], shares, [1.0, 0.0, 0.0])
    return t, shares


def _roots(p: F64, q: F64, r: F64) -> F64:
    """The roots of t^3 + p t^2 + q t + r, all real and distinct: float64 [n, 3]."""
    shift = p / 3
    a = np.sqrt(np.maximum(shift * shift - q / 3, 0.0))
    b = shift**3 - shift * q / 2 + r / 2
    angle = np.arccos(np.clip(-b / np.where(a > 0, a**3, 1.0), -1.0, 1.0)) / 3
    turns = np.arange(3) * (2 * np.pi / 3)
    t = 2 * a[:, np.newaxis] * np.cos(angle[:, np.newaxis] - turns) - shift[:, np.newaxis]
    p, q, r = p[:, np.newaxis], q[:, np.newaxis], r[:, np.newaxis]
    for _ in range(2):
        slope = (3 * t + 2 * p) * t + q
        t = t - np.where(slope != 0, (((t + p) * t + q) * t + r) / np.where(slope != 0, slope, 1.0), 0.0)
    return t
