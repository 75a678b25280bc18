"""The DET plots of a result, laid out for the template: the geometry of `det.py`, with labels and operating points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import pyarrow as pa

from swsdask.model.leaderboard import Board
from swsdask.model.tables import rows_with
from swsdask.render import det
from swsdask.render.tables import drawn, mark, number

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


def figures(curves: pa.Table, found: Board) -> dict[str, list[dict[str, Any]]]:
    """The plots of every condition, in the order of `KINDS`."""
    with_curves = {condition: drawn(found, condition) for condition in found.conditions}
    n_curves = 2 * len(KINDS) * sum(map(len, with_curves.values()))
    limit = min(1200, max(100, MOST_POINTS // max(1, n_curves)))
    plots: dict[str, list[dict[str, Any]]] = {}
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
                    number = sum(map(len, plots.values()))
                    plots.setdefault(condition, []).append({**plot, "title": title, "id": str(number)})
    return plots


def _frames(points: Mapping[str, pa.Table], found: Board, kind: str) -> dict[str, det.Frame]:
    """The frames of one kind of curve by title, the same for all conditions, so that these compare.

    The first frame fits the curves; of DET curves NIST's, wide enough for every operating point, is the second.
    """
    marks = [
        mark
        for condition in points
        for system in drawn(found, condition)
        for mark in _marks(found, condition, system, kind).values()
    ]
    full = det.frame(min((each["miss"] for each in marks), default=1.0))
    x = np.concatenate([*(own["x"].to_numpy() for own in points.values()), [each["fa"] for each in marks]])
    y = np.concatenate([*(own["y"].to_numpy() for own in points.values()), [each["miss"] for each in marks]])
    fitted = full.fitted(x, y)
    frames = {KINDS[kind]: fitted}
    if kind == "det" and full != fitted:
        frames[f"{KINDS[kind]}, on NIST's axes"] = full
    return frames


def _figure(points: pa.Table, found: Board, condition: str, kind: str, frame: det.Frame, limit: int) -> dict[str, Any]:
    marks = {system: _marks(found, condition, system, kind) for system in drawn(found, condition)}
    beta = found.beta(condition) if kind == "det" else None
    systems: list[dict[str, Any]] = []
    data = []
    for system in marks:
        own = rows_with(points, system=[system])
        curve = frame.curve(own["threshold"], own["x"], own["y"], limit)
        if not curve.x:
            continue
        placed = {
            name: {
                **mark,
                "x": round(frame.x.clamped(mark["fa"]), 1),
                "y": round(frame.y.clamped(mark["miss"]), 1),
                "text": f"P_miss {mark['miss']:.4g}, P_fa {mark['fa']:.4g}",
            }
            for name, mark in marks[system].items()
        }
        systems.append(
            {
                **mark(found, system),
                "name": system,
                "path": curve.path,
                "shown": len(systems) < DRAWN,
                "actual": placed.get("actual"),
                "best": placed.get("best"),
            }
        )
        data.append(
            {
                "number": mark(found, system)["number"],
                "name": system,
                "x": [round(x, 1) for x in curve.x],
                "y": [round(y, 1) for y in curve.y],
                "threshold": [number(value) for value in curve.threshold],
                "p_fa": [number(p) for p in curve.p_fa],
                "p_miss": [number(p) for p in curve.p_miss],
                "points": [
                    {**{key: mark[key] for key in ("x", "y", "kind")}, **{k: number(mark[k]) for k in _NUMBERS}}
                    for mark in placed.values()
                ],
            }
        )
    return {
        "width": det.WIDTH,
        "height": det.HEIGHT,
        "left": det.LEFT,
        "right": det.WIDTH - det.RIGHT,
        "top": det.TOP,
        "bottom": det.HEIGHT - det.BOTTOM,
        "x_ticks": _ticks(frame.x, bare={4e-5, 2e-4}, minor={5e-4, 2e-3, 5e-3, 0.02}),
        "y_ticks": _ticks(frame.y),
        "lines": _lines(frame, beta) if beta is not None else [],
        "systems": systems,
        "marks": [name for name in OPERATING_POINTS[kind] if any(system[name] for system in systems)],
        "hidden": max(0, len(systems) - DRAWN),
        "data": {"beta": beta, "systems": data},
    }


_NUMBERS = ("threshold", "fa", "miss")


def _marks(found: Board, condition: str, system: str, kind: str) -> dict[str, dict[str, Any]]:
    """The operating points of a system that lie on a kind of curve."""
    marks = {}
    for name, (words, *measures) in OPERATING_POINTS[kind].items():
        threshold, fa, miss = (found.value(condition, system, measure) for measure in measures)
        if not (math.isnan(fa) or math.isnan(miss)):
            marks[name] = {"kind": words, "threshold": threshold, "fa": fa, "miss": miss}
    return marks


def _ticks(axis: det.Axis, bare: Set[float] = frozenset(), minor: Set[float] = frozenset()) -> list[dict[str, Any]]:
    """Ticks with their labels; bare ones have none, and minor ones are hidden on narrow screens."""
    return [
        {
            "at": round(axis.position(tick), 1),
            "label": "" if tick in bare else det.percent(tick),
            "minor": tick in minor,
        }
        for tick in axis.ticks
    ]


def _lines(frame: det.Frame, beta: float) -> list[dict[str, Any]]:
    """Lines of equal TWV, each labelled where it starts."""
    lines = []
    for level in det.TWV_LEVELS:
        path = frame.line_of_equal_value(level, beta)
        if path:
            start = float(path[1:].split("L")[0].split()[1])
            if start > det.TOP + 12:
                lines.append({"path": path, "label": f"TWV {level:.1f}", "at": start})
    return lines
