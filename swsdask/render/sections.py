"""Sections of a report, laid out for the template: calibration, ranked retrieval, and processing load.

Calibration of the systems of a condition is a table and the plots of each system. The plots show the cost of a system
over the prior, for its own and recalibrated scores: two side by side, of the empirical cross entropy in bits (Ramos and
Gonzalez-Rodriguez, Cross-entropy analysis of the information in forensic speaker recognition, 2008), and below them two
of the applied probability of error (Brümmer and du Preez, Application-independent evaluation of speaker detection,
2006). The right plots divide by the cost of a system whose scores are all 0; for cross entropy at the prior of the
evaluation that is C_nxe (2013 measures document, Eq. 40). With rare targets the curves of the left plots lie close to
0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import describe, written
from swsdask.model.name_columns import rows_by, rows_with
from swsdask.model.trials import F64
from swsdask.render.pages import cell, drawn, mark, path

KINDS = {
    "default": "without any scores",
    "pav": "best rising map (PAV)",
    "affine": "best affine map",
    "actual": "as given",
}
"""The kinds of curves, in drawing order, and their descriptions."""

TITLES = {"ece": "Cross entropy (bits)", "ape": "Error rate"}
"""The costs that are drawn over the prior, and the titles of their axes."""

CURVES = tuple(f"{cost}_{kind}" for cost in TITLES for kind in KINDS)
"""All curves, by their names in `model.results.CURVES`."""

WIDTH, HEIGHT = 320, 240
LEFT, RIGHT, TOP, BOTTOM = 54, 8, 8, 50
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
_TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_MOST_X_TICKS = 8

Position = TypeVar("Position", float, F64)


def plots(curves: Mapping[str, F64], prior_log_odds: float) -> list[dict[str, object]]:
    """Return the plots, with curves as the data of SVG paths. A cost without the curve "default" has no plots.

    `curves` has rows of (prior log-odds, cost) by ascending x; they are clipped at the top of the frame.
    """
    drawn = []
    for cost, title in TITLES.items():
        by_kind = {kind: curves.get(f"{cost}_{kind}", _NO_POINTS) for kind in KINDS}
        if len(by_kind["default"]) < 2:
            continue
        ends = by_kind["default"][0, 0], by_kind["default"][-1, 0]
        no_scores = _entropy if cost == "ece" else _error_rate
        relative = {kind: _relative(points, no_scores(points[:, 0])) for kind, points in by_kind.items()}
        drawn += [
            _plot(title, by_kind, ends, prior_log_odds, _QUARTERS if cost == "ece" else _TENTHS),
            _plot("Divided by that of no scores", relative, ends, prior_log_odds, _QUARTERS),
        ]
    return drawn


_NO_POINTS = np.empty((0, 2))


def _relative(points: F64, floor: F64) -> F64:
    """Points whose costs are divided by a positive `floor`."""
    positive = floor > 0.0
    return np.column_stack([points[positive, 0], points[positive, 1] / floor[positive]])


def _error_rate(prior_log_odds: F64) -> F64:
    """Return the error rate of always deciding for the more probable class."""
    return np.exp(-np.abs(prior_log_odds)) / (1.0 + np.exp(-np.abs(prior_log_odds)))


def _entropy(prior_log_odds: F64) -> F64:
    """Return the entropy of the class, in bits."""
    rarer = _error_rate(prior_log_odds)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -(rarer * np.log2(rarer) + (1.0 - rarer) * np.log1p(-rarer) / math.log(2.0))
    return np.where(rarer > 0.0, entropy, 0.0)


@dataclass(frozen=True)
class _Frame:
    """The axes of a plot: x from `low` to `high`, y from 0 to the last of its ticks."""

    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    low: float = 0.0
    high: float = 1.0

    def x_of(self, x: Position) -> Position:
        """Return the place of x in the picture."""
        return LEFT + (x - self.low) * ((WIDTH - RIGHT - LEFT) / (self.high - self.low))

    def y_of(self, y: Position) -> Position:
        """Return the place of y in the picture."""
        return HEIGHT - BOTTOM - y * ((HEIGHT - BOTTOM - TOP) / self.y_ticks[-1])

    def plot(
        self, about: str, title: str, x_title: str, curves: Mapping[str, str], prior: float | None = None
    ) -> dict[str, object]:
        """The plot as the template needs it; `curves` are the data of an SVG path by kind, `prior` is a place."""
        return {
            "about": about,
            "title": title,
            "x_title": x_title,
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
            "x_ticks": [{"at": round(self.x_of(tick), 1), "label": f"{tick:g}"} for tick in self.x_ticks],
            "y_ticks": [{"at": round(self.y_of(tick), 1), "label": f"{tick:g}"} for tick in self.y_ticks],
            "prior": prior,
            "curves": [{"kind": kind, "path": line} for kind, line in curves.items()],
        }


def _plot(
    title: str, curves: Mapping[str, F64], ends: tuple[float, float], prior: float, y_ticks: Sequence[float]
) -> dict[str, object]:
    frame = _Frame(_ticks(*ends), y_ticks, *ends)
    paths = {
        kind: path(frame.x_of(points[:, 0]), frame.y_of(np.minimum(points[:, 1], 2 * y_ticks[-1])))
        for kind, points in curves.items()
        if len(points)
    }
    line = round(frame.x_of(prior), 1) if ends[0] <= prior <= ends[1] else None
    return frame.plot("Costs against the prior log-odds of", title, "Prior log-odds", paths, line)


def _ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2, 5, 10, ... between two ends, few enough that each has a label."""
    steps = (digit * 10.0**power for power in range(9) for digit in (1, 2, 5))
    step = next(step for step in steps if (high - low) / step <= _MOST_X_TICKS)
    first = -int(-low // step)
    return [number * step for number in range(first, int(high // step) + 1)]


COLUMNS = (
    "cnxe",
    "cnxe_min",
    "calibration_loss",
    "cnxe_min_pav",
    "calibration_loss_pav",
    "cnxe_gamma",
    "cnxe_delta",
    "twv_bayes",
    "mtwv",
    "n_given_target",
    "n_imputed_target",
    "n_given_nontarget",
    "n_imputed_nontarget",
    "impute_score",
)
"""The columns of the table."""

DRAWN = 12
"""The number of systems per condition whose curves are open; the others' are collapsed."""


def calibration(curves: pa.Table, found: Leaderboard) -> dict[str, dict[str, object]]:
    """Return the section of each condition that has C_nxe."""
    sections = {}
    for condition in found.conditions:
        systems = found.ranked(condition)
        columns = [measure for measure in COLUMNS if measure in found.measures]
        if all(math.isnan(found.value(condition, system, "cnxe")) for system in systems):
            continue
        with_curves = drawn(found, condition)
        points = rows_by(rows_with(curves, curve=CURVES, condition=[condition], system=with_curves), "system")
        pictures = [
            {**mark(found, system), "name": system, "plots": plots}
            for system in with_curves
            if system in points and (plots := _plots(points[system], found, condition, system))
        ]
        threshold = found.value(condition, systems[0], "bayes_threshold") if systems else math.nan
        sections[condition] = {
            "threshold": None if math.isnan(threshold) else written("bayes_threshold", threshold),
            **_table_and_pictures(found, condition, columns, systems, pictures, len(with_curves)),
        }
    return sections


def _table_and_pictures(
    found: Leaderboard,
    condition: str,
    columns: Sequence[str],
    systems: Sequence[str],
    pictures: Sequence[Mapping[str, object]],
    n_drawn: int,
) -> dict[str, object]:
    """Return the numbers of systems in a condition, and their pictures, the first of which are open."""
    return {
        "columns": [{"heading": _heading(measure), "title": describe(measure).title} for measure in columns],
        "rows": [
            {
                "system": system,
                **mark(found, system),
                "cells": [cell(measure, found.value(condition, system, measure)) for measure in columns],
            }
            for system in systems
        ],
        "open": pictures[:DRAWN],
        "folded": pictures[DRAWN:],
        "not_drawn": len(systems) - n_drawn if pictures else 0,
    }


def _plots(points: pa.Table, found: Leaderboard, condition: str, system: str) -> list[dict[str, object]]:
    """Return the plots of a system; none if none of its curves has two points."""
    curves = {name: _by_prior(own) for name, own in rows_by(points, "curve").items()}
    threshold = found.value(condition, system, "bayes_threshold")
    return plots(curves, -threshold)


def _by_prior(points: pa.Table) -> F64:
    x, y = (points[axis].to_numpy() for axis in ("x", "y"))
    return np.column_stack([x, y])[np.lexsort([y, x])]


RETRIEVAL_COLUMNS = (
    "ap",
    "map",
    "map_n_averaged",
    "map_n_no_relevant",
    "map_n_missing",
    "r_precision",
    "precision",
    "recall",
    "f1",
    "best_f1",
    "best_f1_threshold",
)
"""The columns of the table; precisions at ranks follow them."""

RETRIEVAL_CURVES = {"precision_recall": "raw", "precision_recall_interpolated": "interpolated"}
"""The curves and their descriptions."""

_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_UNIT_SQUARE = _Frame(_TICKS, _TICKS)
"""The frame of precision against recall, both from 0 to 1."""


def retrieval(curves: pa.Table, found: Leaderboard) -> dict[str, dict[str, object]]:
    """Return the section of each condition that has average precision."""
    at_ranks = [measure for measure in found.measures if measure.startswith("precision_at_rank@")]
    columns = [measure for measure in (*RETRIEVAL_COLUMNS, *at_ranks) if measure in found.measures]
    sections = {}
    for condition in found.conditions:
        systems = found.ranked(condition)
        if all(math.isnan(found.value(condition, s, m)) for s in systems for m in ("ap", "map") if m in columns):
            continue
        with_curves = drawn(found, condition)
        rows = rows_with(curves, curve=[*RETRIEVAL_CURVES], condition=[condition], system=with_curves)
        points = rows_by(rows, "system")
        pictures = [
            {**mark(found, system), "name": system, "plots": [plot]}
            for system in with_curves
            if system in points and (plot := _precision_recall(points[system]))
        ]
        sections[condition] = _table_and_pictures(found, condition, columns, systems, pictures, len(with_curves))
    return sections


def _heading(measure: str) -> str:
    family, _, point = measure.partition("@")
    return f"P@{point}" if family == "precision_at_rank" else describe(measure).heading


def _precision_recall(points: pa.Table) -> dict[str, object] | None:
    """Return both curves of a system; None if it has none."""
    raw, steps = (rows_with(points, curve=[name]) for name in RETRIEVAL_CURVES)
    if not raw.num_rows:
        return None
    recall, precision = (np.repeat(steps[axis].to_numpy(), 2) for axis in ("x", "y"))
    stairs = np.append(0.0, recall[:-1])
    lines = (_path(raw["x"].to_numpy(), raw["y"].to_numpy()), _path(stairs, precision))
    curves = dict(zip(RETRIEVAL_CURVES, lines, strict=True))
    return _UNIT_SQUARE.plot("Precision against recall of", "Precision", "Recall", curves)


def _path(recall: F64, precision: F64) -> str:
    """Return a line through points.

    Of consecutive points within half a unit of the picture, only the first is drawn.
    """
    places = np.stack([_UNIT_SQUARE.x_of(recall), _UNIT_SQUARE.y_of(precision)])
    moved = np.any(np.diff(np.rint(2.0 * places)) != 0.0, axis=0)
    return path(*places[:, np.append(True, moved)])


LOAD_MEASURES = ("isf", "ssf", "pmu_index", "pmu_search", "pl")

HARDWARE = {
    "count": "Nodes",
    "brand": "Brand",
    "cpu": "CPU",
    "cores": "Cores",
    "clock_ghz": "Clock (GHz)",
    "ram_gb": "RAM (GB)",
    "os": "Operating system",
}
"""The entries of a manifest for each type of node."""

_WORDS = ("brand", "cpu", "os")
_PHASES = {"both": "indexing and searching", "indexing": "indexing", "searching": "searching"}


def processing_load(found: Leaderboard, manifest: Mapping[str, Any]) -> dict[str, object]:
    """The tables of processing load, a row per system that reports it, and of hardware, a row per type of node."""
    columns = [measure for measure in LOAD_MEASURES if measure in found.measures]
    condition = found.conditions[0] if found.conditions else ""
    runs = manifest.get("runs", {})
    return {
        "columns": [{"heading": describe(measure).heading, "title": describe(measure).title} for measure in columns],
        "rows": [
            {
                "system": system,
                "cells": [cell(measure, found.value(condition, system, measure)) for measure in columns],
            }
            for system in found.systems
            if any((condition, system, measure) in found.values for measure in columns)
        ],
        "hardware_columns": [{"heading": heading, "words": name in _WORDS} for name, heading in HARDWARE.items()],
        "hardware": [
            {
                "system": system,
                "phase": _PHASES[node.get("phase", "both")],
                "cells": [{"text": _text(node.get(name, 1)), "words": name in _WORDS} for name in HARDWARE],
            }
            for system, run in runs.items()
            for node in (run.get("resources") or {}).get("hardware", ())
        ],
    }


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}"
