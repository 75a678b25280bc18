"""The calibration of the systems of a condition, laid out for the template: a table and the plots of each system.

The plots show the cost of a system over the prior, for its own and recalibrated scores: two side by side, of the
empirical cross entropy in bits (Ramos and Gonzalez-Rodriguez, Cross-entropy analysis of the information in forensic
speaker recognition, 2008), and below them two of the applied probability of error (Brummer and du Preez, Application-
independent evaluation of speaker detection, 2006). The right plots divide by the cost of a system whose scores are all
0; for cross entropy at the prior of the evaluation that is C_nxe (2013 measures document, Eq. 40). With rare targets
the curves of the left plots lie close to 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from swsdask.model.leaderboard import Board
from swsdask.model.measures import describe, written
from swsdask.model.tables import rows_with
from swsdask.render.tables import cell, drawn, mark

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

Points = Sequence[tuple[float, float]]


def plots(curves: Mapping[str, Points], prior_log_odds: float) -> list[dict[str, Any]]:
    """The plots, each with its curves as the data of SVG paths; those of a cost need its curve "default".

    A curve is its points (prior log-odds, cost) by ascending x, clipped at the top of the frame.
    """
    drawn = []
    for cost, title in TITLES.items():
        by_kind = {kind: curves.get(f"{cost}_{kind}", ()) for kind in KINDS}
        if len(by_kind["default"]) < 2:
            continue
        ends = by_kind["default"][0][0], by_kind["default"][-1][0]
        no_scores = _entropy if cost == "ece" else _error_rate
        relative = {
            kind: [(x, y / floor) for x, y in points if (floor := no_scores(x)) > 0.0]
            for kind, points in by_kind.items()
        }
        drawn += [
            _plot(title, by_kind, ends, prior_log_odds, _QUARTERS if cost == "ece" else _TENTHS),
            _plot("Divided by that of no scores", relative, ends, prior_log_odds, _QUARTERS),
        ]
    return drawn


def _error_rate(prior_log_odds: float) -> float:
    """The error rate of always deciding for the more probable class."""
    return math.exp(-abs(prior_log_odds)) / (1.0 + math.exp(-abs(prior_log_odds)))


def _entropy(prior_log_odds: float) -> float:
    """The entropy of the class, in bits."""
    rarer = _error_rate(prior_log_odds)
    return -(rarer * math.log2(rarer) + (1.0 - rarer) * math.log1p(-rarer) / math.log(2.0)) if rarer > 0.0 else 0.0


def _plot(
    title: str, curves: Mapping[str, Points], ends: tuple[float, float], prior: float, y_ticks: Sequence[float]
) -> dict[str, Any]:
    across = (WIDTH - RIGHT - LEFT) / (ends[1] - ends[0])
    down = (HEIGHT - BOTTOM - TOP) / y_ticks[-1]

    def x_of(x: float) -> float:
        return round(LEFT + (x - ends[0]) * across, 1)

    def y_of(y: float) -> float:
        return round(HEIGHT - BOTTOM - min(y, 2 * y_ticks[-1]) * down, 1)

    return {
        "about": "Costs against the prior log-odds of",
        "title": title,
        "x_title": "Prior log-odds",
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "x_ticks": [{"at": x_of(tick), "label": f"{tick:g}"} for tick in _ticks(*ends)],
        "y_ticks": [{"at": y_of(tick), "label": f"{tick:g}"} for tick in y_ticks],
        "prior": x_of(prior) if ends[0] <= prior <= ends[1] else None,
        "curves": [
            {"kind": kind, "path": "M" + "L".join(f"{x_of(x)} {y_of(y)}" for x, y in curves[kind])}
            for kind in KINDS
            if curves[kind]
        ],
    }


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


def calibration(curves: pa.Table, found: Board) -> dict[str, dict[str, Any]]:
    """The section of each condition that has C_nxe."""
    sections = {}
    for condition in found.conditions:
        systems = found.ranked(condition)
        columns = [measure for measure in COLUMNS if measure in found.measures]
        if all(math.isnan(found.value(condition, system, "cnxe")) for system in systems):
            continue
        with_curves = drawn(found, condition)
        points = rows_with(curves, curve=CURVES, condition=[condition], system=with_curves)
        pictures = [
            {**mark(found, system), "name": system, "plots": plots}
            for system in with_curves
            if (plots := _plots(points, found, condition, system))
        ]
        threshold = found.value(condition, systems[0], "bayes_threshold") if systems else math.nan
        sections[condition] = {
            "threshold": None if math.isnan(threshold) else written("bayes_threshold", threshold),
            "columns": [
                {"heading": describe(measure).heading, "title": describe(measure).title} for measure in columns
            ],
            "rows": [
                {
                    "system": system,
                    **mark(found, system),
                    "cells": [cell(m, found.value(condition, system, m)) for m in columns],
                }
                for system in systems
            ],
            "open": pictures[:DRAWN],
            "folded": pictures[DRAWN:],
            "not_drawn": len(systems) - len(with_curves) if pictures else 0,
        }
    return sections


def _plots(points: pa.Table, found: Board, condition: str, system: str) -> list[dict[str, Any]]:
    """The plots of a system; none if its result has no curves."""
    own = rows_with(points, system=[system])
    kinds = own["curve"].to_pylist()
    rows = list(zip(kinds, own["x"].to_pylist(), own["y"].to_pylist(), strict=True))
    curves = {name: sorted((x, y) for kind, x, y in rows if kind == name) for name in CURVES}
    threshold = found.value(condition, system, "bayes_threshold")
    return plots({name: curve for name, curve in curves.items() if curve}, -threshold)
