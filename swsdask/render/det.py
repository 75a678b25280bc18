"""DET plots of a result, laid out for the template, with labels and operating points; and their geometry.

Normal-deviate axes, curves thin enough to draw, lines of equal TWV. The axes place a probability p at the p-quantile of
the normal distribution, so that normally distributed scores give a straight line (Martin et al., The DET curve in
assessment of detection task performance, 1997). The frame is NIST's: 0.0001 to 40 % false alarms, 5 to 98 % misses,
extended downwards if a system has a lower miss rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from swsdask.model.leaderboard import Leaderboard
from swsdask.model.name_columns import rows_by, rows_with
from swsdask.model.tables import Row
from swsdask.model.trials import F64, I64
from swsdask.render.pages import drawn, mark, number, numbers, path

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
        """Return the position of a probability; one outside the frame is placed just outside it."""
        return float(self.positions(np.array([p]))[0])

    def positions(self, p: F64) -> F64:
        """Return the positions of probabilities."""
        near = np.clip(p, self.ticks[0] / 2, (1 + self.ticks[-1]) / 2)
        deviates = np.array([_probit(each) for each in near.tolist()])
        return self.low + (deviates - self.first) * self.scale

    def clamped(self, p: float) -> float:
        """Return the same, but a probability outside the frame is placed on its edge."""
        return self.position(min(max(p, self.ticks[0]), self.ticks[-1]))

    def fitted(self, p: F64) -> Axis:
        """Return the ticks around the given probabilities, at least four, over the whole length.

        Without any it is the same axis.
        """
        if not len(p):
            return self
        first = int(np.searchsorted(self.ticks, p.min(), "right")) - 1
        last = max(int(np.searchsorted(self.ticks, p.max())), min(first + 3, len(self.ticks) - 1))
        first = max(0, min(first, last - 3))
        return Axis(self.ticks[first : last + 1], self.low, self.high)

    def cells(self, p: F64, n: int) -> I64:
        """Return the part of the axis with each probability, from 1 to `n`; 0 below the axis, n + 1 above it."""
        edges = np.linspace(_probit(self.ticks[0]), _probit(self.ticks[-1]), n + 1)
        return np.searchsorted([_normal(edge) for edge in edges.tolist()], p, "right")


@dataclass(frozen=True, eq=False)
class DrawnCurve:
    """The points of a curve that are drawn, in tenths of a unit, and their values."""

    x: F64
    y: F64
    threshold: F64
    p_fa: F64
    p_miss: F64


@dataclass(frozen=True)
class Frame:
    """The two axes of a plot."""

    x: Axis
    y: Axis

    def fitted(self, x: F64, y: F64) -> Frame:
        """Return the part of the frame, from tick to tick, that shows the points inside it."""
        inside = (x >= self.x.ticks[0]) & (x <= self.x.ticks[-1]) & (y >= self.y.ticks[0]) & (y <= self.y.ticks[-1])
        return Frame(self.x.fitted(x[inside]), self.y.fitted(y[inside]))

    def curve(self, threshold: ArrayLike, p_fa: ArrayLike, p_miss: ArrayLike, limit: int) -> DrawnCurve:
        """Return a curve of at most about `limit` points, from the highest threshold down.

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
        values = columns[:, kept]
        return DrawnCurve(self.x.positions(values[1]).round(1), self.y.positions(values[2]).round(1), *values)

    def line_of_equal_value(self, twv: float, beta: float) -> str:
        """Return the line of equal TWV, P_miss = 1 - TWV - beta P_fa (2013 measures document, Eq. 6), as SVG path data.

        It is "" if the line lies outside the frame.
        """
        end = (1.0 - twv) / beta
        deviates = np.linspace(_probit(self.x.ticks[0]), _probit(min(max(end, 2e-6), 0.99)), 120)
        x = np.array([_normal(deviate) for deviate in deviates.tolist()])
        y = 1.0 - twv - beta * x
        inside = np.flatnonzero((y > self.y.ticks[0] / 2) & (y < (1 + self.y.ticks[-1]) / 2) & (x <= self.x.ticks[-1]))
        return path(self.x.positions(x[inside]), self.y.positions(y[inside])) if len(inside) > 1 else ""


def frame_down_to(lowest_miss: float) -> Frame:
    """Return NIST's frame, extended downwards to `lowest_miss`, the lowest miss probability that is marked."""
    fitting = [tick for tick in Y_TICKS if tick <= min(LOWEST_MISS, lowest_miss)]
    bottom = fitting[-1] if fitting else Y_TICKS[0]
    y_ticks = tuple(tick for tick in Y_TICKS if tick >= bottom)
    return Frame(Axis(X_TICKS, LEFT, WIDTH - RIGHT), Axis(y_ticks, HEIGHT - BOTTOM, TOP))


def percent(p: float) -> str:
    """Return a probability in percent, with at most four decimals."""
    return f"{100 * p:.4f}".rstrip("0").rstrip(".")


KINDS = {"det": "averaged over queries", "det_pooled": "all trials pooled"}
"""The curves that are drawn, and the meaning of their rates."""

OPERATING_POINTS = {
    "det": {
        "actual": ("the system's own decisions", "actual_threshold", "p_fa", "p_miss"),
        "best": ("at the best single threshold", "mtwv_threshold", "mtwv_p_fa", "mtwv_p_miss"),
    },
    "det_pooled": {
        "actual": ("the system's own decisions", "actual_threshold", "p_fa_pooled", "p_miss_pooled"),
    },
}
"""The marks on a curve: a description, and the measures that give the threshold, P_fa and P_miss."""

MOST_POINTS = 60_000
"""The maximum number of points on a page, over all curves: more curves have fewer points each."""

DRAWN = 12
"""The number of systems that a plot shows at first; others can be selected."""


def figures(curves: pa.Table, found: Leaderboard) -> dict[str, list[dict[str, object]]]:
    """Return the plots of every condition, in the order of `KINDS`."""
    with_curves = {condition: drawn(found, condition) for condition in found.conditions}
    n_curves = 2 * len(KINDS) * sum(map(len, with_curves.values()))
    limit = min(1200, max(100, MOST_POINTS // max(1, n_curves)))
    plots: dict[str, list[dict[str, object]]] = {}
    for kind in KINDS:
        points = {
            condition: rows_with(curves, curve=[kind], condition=[condition], system=systems)
            for condition, systems in with_curves.items()
        }
        for title, frame in _frames(points, found, kind).items():
            for condition, own in points.items():
                if own.num_rows:
                    plot = _figure(own, found, condition, kind, frame, limit)
                    plot["not_drawn"] = len(found.ranked(condition)) - len(with_curves[condition])
                    place = sum(map(len, plots.values()))
                    plots.setdefault(condition, []).append({**plot, "title": title, "id": str(place)})
    return plots


def _frames(points: Mapping[str, pa.Table], found: Leaderboard, kind: str) -> dict[str, Frame]:
    """Return the frames of one kind of curve by title, the same for all conditions, so that these can be compared.

    The first frame fits the curves. DET curves also have NIST's frame, extended to every operating point.
    """
    marks = [
        point
        for condition in points
        for system in drawn(found, condition)
        for point in _marks(found, condition, system, kind).values()
    ]
    full = frame_down_to(min((each["miss"] for each in marks), default=1.0))
    x = np.concatenate([*(own["x"].to_numpy() for own in points.values()), [each["fa"] for each in marks]])
    y = np.concatenate([*(own["y"].to_numpy() for own in points.values()), [each["miss"] for each in marks]])
    fitted = full.fitted(x, y)
    frames = {KINDS[kind]: fitted}
    if kind == "det" and full != fitted:
        frames[f"{KINDS[kind]}, on NIST's axes"] = full
    return frames


def _figure(
    points: pa.Table, found: Leaderboard, condition: str, kind: str, frame: Frame, limit: int
) -> dict[str, object]:
    marks = {system: _marks(found, condition, system, kind) for system in drawn(found, condition)}
    beta = found.beta(condition) if kind == "det" else None
    systems: list[dict[str, object]] = []
    data = []
    rows_of = rows_by(points, "system")
    for system in marks:
        if system not in rows_of:
            continue
        own = rows_of[system]
        curve = frame.curve(own["threshold"], own["x"], own["y"], limit)
        if not len(curve.x):
            continue
        placed = {
            name: {
                **point,
                "x": round(frame.x.clamped(point["fa"]), 1),
                "y": round(frame.y.clamped(point["miss"]), 1),
                "text": f"P_miss {point['miss']:.4g}, P_fa {point['fa']:.4g}",
            }
            for name, point in marks[system].items()
        }
        systems.append(
            {
                **mark(found, system),
                "name": system,
                "path": path(curve.x, curve.y),
                "shown": len(systems) < DRAWN,
                "actual": placed.get("actual"),
                "best": placed.get("best"),
            }
        )
        data.append(
            {
                "number": mark(found, system)["number"],
                "name": system,
                "x": curve.x.tolist(),
                "y": curve.y.tolist(),
                "threshold": numbers(curve.threshold),
                "p_fa": numbers(curve.p_fa),
                "p_miss": numbers(curve.p_miss),
                "points": [
                    {**{key: point[key] for key in ("x", "y", "kind")}, **{k: number(point[k]) for k in _NUMBERS}}
                    for point in placed.values()
                ],
            }
        )
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "x_ticks": _ticks(frame.x, bare={4e-5, 2e-4}, minor={5e-4, 2e-3, 5e-3, 0.02}),
        "y_ticks": _ticks(frame.y),
        "lines": _lines(frame, beta) if beta is not None else [],
        "systems": systems,
        "marks": [name for name in OPERATING_POINTS[kind] if any(system[name] for system in systems)],
        "hidden": max(0, len(systems) - DRAWN),
        "data": {"beta": beta, "systems": data},
    }


_NUMBERS = ("threshold", "fa", "miss")


def _marks(found: Leaderboard, condition: str, system: str, kind: str) -> dict[str, Row]:
    """Return the operating points of a system that lie on a kind of curve."""
    marks = {}
    for name, (words, *measures) in OPERATING_POINTS[kind].items():
        threshold, fa, miss = (found.value(condition, system, measure) for measure in measures)
        if not (math.isnan(fa) or math.isnan(miss)):
            marks[name] = {"kind": words, "threshold": threshold, "fa": fa, "miss": miss}
    return marks


def _ticks(axis: Axis, bare: Set[float] = frozenset(), minor: Set[float] = frozenset()) -> list[dict[str, object]]:
    """Return ticks with their labels; bare ones have none, and minor ones are hidden on narrow screens."""
    return [
        {
            "at": round(axis.position(tick), 1),
            "label": "" if tick in bare else percent(tick),
            "minor": tick in minor,
        }
        for tick in axis.ticks
    ]


def _lines(frame: Frame, beta: float) -> list[dict[str, object]]:
    """Return lines of equal TWV, each labelled where it starts."""
    lines = []
    for level in TWV_LEVELS:
        line = frame.line_of_equal_value(level, beta)
        if line:
            start = float(line[1:].split("L")[0].split()[1])
            if start > TOP + 12:
                lines.append({"path": line, "label": f"TWV {level:.1f}", "at": start})
    return lines
