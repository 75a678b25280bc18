"""The geometry of a DET plot: normal-deviate axes, curves thin enough to draw, lines of equal TWV.

The axes place a probability p at the p-quantile of the normal distribution, so that normally distributed scores
give a straight line (Martin et al., The DET curve in assessment of detection task performance, 1997). The frame is
NIST's: 0.0001 to 40 % false alarms, 5 to 98 % misses, extended downwards if a system has a lower miss rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from swsdask.model.trials import F64, I64

WIDTH, HEIGHT = 760, 566
LEFT, RIGHT, TOP, BOTTOM = 64, 18, 14, 60
X_TICKS = (1e-6, 1e-5, 4e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
Y_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98)
LOWEST_MISS = 0.05
TWV_LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

_probit: Callable[[float], float] = NormalDist().inv_cdf
_normal = NormalDist().cdf


@dataclass(frozen=True)
class Axis:
    """One axis: its ticks, first to last, and the positions of the ends in the drawing."""

    ticks: tuple[float, ...]
    low: float
    high: float

    @cached_property
    def first(self) -> float:
        """The deviate of the first tick."""
        return _probit(self.ticks[0])

    @cached_property
    def scale(self) -> float:
        """Drawing units per unit of deviate."""
        return (self.high - self.low) / (_probit(self.ticks[-1]) - self.first)

    def position(self, p: float) -> float:
        """The position of a probability; one outside the frame is placed just outside it."""
        deviate = _probit(min(max(p, self.ticks[0] / 2), (1 + self.ticks[-1]) / 2))
        return self.low + (deviate - self.first) * self.scale

    def clamped(self, p: float) -> float:
        """The same, but a probability outside the frame is placed on its edge."""
        return self.position(min(max(p, self.ticks[0]), self.ticks[-1]))

    def fitted(self, p: F64) -> Axis:
        """The ticks around the given probabilities, at least four, over the whole length; the same axis without any."""
        if not len(p):
            return self
        first = int(np.searchsorted(self.ticks, p.min(), "right")) - 1
        last = max(int(np.searchsorted(self.ticks, p.max())), min(first + 3, len(self.ticks) - 1))
        first = max(0, min(first, last - 3))
        return Axis(self.ticks[first : last + 1], self.low, self.high)

    def cells(self, p: F64, n: int) -> I64:
        """The index of the part of the axis, one of `n`, with each probability: 0 below the axis, n + 1 above it."""
        edges = np.linspace(_probit(self.ticks[0]), _probit(self.ticks[-1]), n + 1)
        return np.searchsorted([_normal(edge) for edge in edges.tolist()], p, "right")


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of a curve that are drawn, and their values."""

    x: list[float]
    y: list[float]
    threshold: list[float]
    p_fa: list[float]
    p_miss: list[float]

    @property
    def path(self) -> str:
        """The curve as the data of an SVG path."""
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(self.x, self.y, strict=True))


@dataclass(frozen=True)
class Frame:
    """The two axes of a plot."""

    x: Axis
    y: Axis

    def fitted(self, x: F64, y: F64) -> Frame:
        """The part of the frame, from tick to tick, that shows the points inside it."""
        inside = (x >= self.x.ticks[0]) & (x <= self.x.ticks[-1]) & (y >= self.y.ticks[0]) & (y <= self.y.ticks[-1])
        return Frame(self.x.fitted(x[inside]), self.y.fitted(y[inside]))

    def curve(self, threshold: ArrayLike, p_fa: ArrayLike, p_miss: ArrayLike, limit: int) -> Curve:
        """A curve of at most about `limit` points, from the highest threshold down.

        The frame is divided into cells, and only the first and the last point in a cell are kept, so that the ends and
        every visible step remain. Points where a rate is not defined are left out.
        """
        columns = np.array([threshold, p_fa, p_miss], np.float64)
        columns = columns[:, ~np.isnan(columns).any(axis=0)]
        columns = columns[:, np.argsort(-columns[0], kind="stable")]
        n = max(limit // 4, 1)
        cell = self.x.cells(columns[1], n) * (n + 2) + self.y.cells(columns[2], n)
        first = np.diff(cell, prepend=-1) != 0
        kept = first | np.append(first[1:], True)
        thresholds, x, y = columns[:, kept].tolist()
        return Curve([self.x.position(p) for p in x], [self.y.position(p) for p in y], thresholds, x, y)

    def line_of_equal_value(self, twv: float, beta: float) -> str:
        """The line of equal TWV, P_miss = 1 - TWV - beta P_fa (2013 measures document, Eq. 6), as SVG path data.

        It is "" if the line lies outside the frame.
        """
        end = (1.0 - twv) / beta
        deviates = np.linspace(_probit(self.x.ticks[0]), _probit(min(max(end, 2e-6), 0.99)), 120)
        x = np.array([_normal(deviate) for deviate in deviates.tolist()])
        y = 1.0 - twv - beta * x
        inside = np.flatnonzero((y > self.y.ticks[0] / 2) & (y < (1 + self.y.ticks[-1]) / 2) & (x <= self.x.ticks[-1]))
        points = (f"{self.x.position(x[i]):.1f} {self.y.position(y[i]):.1f}" for i in inside.tolist())
        return "M" + "L".join(points) if len(inside) > 1 else ""


def frame(lowest_miss: float) -> Frame:
    """NIST's frame, extended downwards to `lowest_miss`, the lowest miss probability that is marked."""
    fitting = [tick for tick in Y_TICKS if tick <= min(LOWEST_MISS, lowest_miss)]
    bottom = fitting[-1] if fitting else Y_TICKS[0]
    y_ticks = tuple(tick for tick in Y_TICKS if tick >= bottom)
    return Frame(Axis(X_TICKS, LEFT, WIDTH - RIGHT), Axis(y_ticks, HEIGHT - BOTTOM, TOP))


def percent(p: float) -> str:
    """A probability in percent, with at most four decimals."""
    return f"{100 * p:.4f}".rstrip("0").rstrip(".")
