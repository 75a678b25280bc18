"""Penalty functions of GAP: what a replay point earns, by its signed distance from an onset.

A distance is (point - onset): negative where replay starts early. All functions are 0 beyond their ends. They are named
as the source names them (Liu and Oard, One-Sided Measures, SIGIR 2006), though their value is what is earned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdask.model.units import TICKS_PER_SECOND

F64 = NDArray[np.float64]


class Penalty(NamedTuple):
    """A function of the signed distance, in any one unit, with values in [0, 1]; 0 outside `at`[0] .. `at`[-1].

    Within, where `sigma` is 0, straight lines between (`at`, `value`), float64, at least two, `at` ascending and
    distinct; else exp(-d^2 / 2 sigma^2), whatever `value`.
    """

    at: F64
    value: F64
    sigma: float


def table(points: Sequence[tuple[float, float]]) -> Penalty:
    """Straight lines between (distance, value): at least two, by ascending distance."""
    columns = np.array(points, np.float64).T
    return Penalty(columns[0].copy(), columns[1].copy(), 0.0)


def triangular(early: float, late: float) -> Penalty:
    """1 at the onset, falling to 0 at `early` before and `late` after it; symmetric: 1 - |d| / width."""
    return table([(-early, 0.0), (0.0, 1.0), (late, 0.0)])


def rectangular(width: float) -> Penalty:
    """1 where |d| <= width."""
    return table([(-width, 1.0), (width, 1.0)])


def gaussian(sigma: float, cut: float) -> Penalty:
    """exp(-d^2 / 2 sigma^2) where |d| <= cut."""
    return Penalty(np.array([-cut, cut]), np.ones(2), sigma)


class ReplayRule(NamedTuple):
    """How GAP takes time, in ticks: times are rounded down to multiples of `step`, distances judged by `penalty`."""

    step: int
    penalty: Penalty


DEFAULT_WIDTH_S = 105.0
"""Seven steps of 15 s: the triangle that the source finds the best overall choice."""

DEFAULT_REPLAY = ReplayRule(1, triangular(DEFAULT_WIDTH_S * TICKS_PER_SECOND, DEFAULT_WIDTH_S * TICKS_PER_SECOND))
