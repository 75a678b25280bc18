"""Sections of a report: ranked retrieval with precision-recall curves, and processing load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from swsdask.model.leaderboard import Board
from swsdask.model.measures import describe, written
from swsdask.model.tables import rows_with
from swsdask.model.trials import F64
from swsdask.render import calibration
from swsdask.render.calibration import DRAWN
from swsdask.render.tables import cell, drawn, mark

COLUMNS = (
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

CURVES = {"precision_recall": "raw", "precision_recall_interpolated": "interpolated"}
"""The curves and their descriptions."""

_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)

Position = TypeVar("Position", float, F64)


def retrieval(curves: pa.Table, found: Board) -> dict[str, dict[str, Any]]:
    """The section of each condition that has average precision."""
    at_ranks = [measure for measure in found.measures if measure.startswith("precision_at_rank@")]
    columns = [measure for measure in (*COLUMNS, *at_ranks) if measure in found.measures]
    sections = {}
    for condition in found.conditions:
        systems = found.ranked(condition)
        if all(math.isnan(found.value(condition, s, m)) for s in systems for m in ("ap", "map") if m in columns):
            continue
        with_curves = drawn(found, condition)
        points = rows_with(curves, curve=[*CURVES], condition=[condition], system=with_curves)
        pictures = [
            {**mark(found, system), "name": system, "plots": [plot]}
            for system in with_curves
            if (plot := _plot(rows_with(points, system=[system])))
        ]
        sections[condition] = {
            "columns": [{"heading": _heading(measure), "title": describe(measure).title} for measure in columns],
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


def _heading(measure: str) -> str:
    family, _, point = measure.partition("@")
    return f"P@{point}" if family == "precision_at_rank" else describe(measure).heading


def _plot(points: pa.Table) -> dict[str, Any] | None:
    """Both curves of a system; None if it has none."""
    raw, steps = (rows_with(points, curve=[name]) for name in CURVES)
    if not raw.num_rows:
        return None
    recall, precision = (np.repeat(steps[axis].to_numpy(), 2) for axis in ("x", "y"))
    stairs = np.append(0.0, recall[:-1])
    return {
        "about": "Precision against recall of",
        "title": "Precision",
        "x_title": "Recall",
        "width": calibration.WIDTH,
        "height": calibration.HEIGHT,
        "left": calibration.LEFT,
        "right": calibration.WIDTH - calibration.RIGHT,
        "top": calibration.TOP,
        "bottom": calibration.HEIGHT - calibration.BOTTOM,
        "x_ticks": [{"at": round(_x(tick), 1), "label": f"{tick:g}"} for tick in _TICKS],
        "y_ticks": [{"at": round(_y(tick), 1), "label": f"{tick:g}"} for tick in _TICKS],
        "prior": None,
        "curves": [
            {"kind": "precision_recall", "path": _path(raw["x"].to_numpy(), raw["y"].to_numpy())},
            {"kind": "precision_recall_interpolated", "path": _path(stairs, precision)},
        ],
    }


def _path(recall: F64, precision: F64) -> str:
    """A line through points. Of those that follow each other within half a unit of the picture the first is drawn."""
    places = np.stack([_x(recall), _y(precision)])
    moved = np.any(np.diff(np.rint(2.0 * places)) != 0.0, axis=0)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places[:, np.append(True, moved)].T.tolist())


def _x(recall: Position) -> Position:
    return calibration.LEFT + recall * (calibration.WIDTH - calibration.RIGHT - calibration.LEFT)


def _y(precision: Position) -> Position:
    return (
        calibration.HEIGHT
        - calibration.BOTTOM
        - precision * (calibration.HEIGHT - calibration.BOTTOM - calibration.TOP)
    )


MEASURES = ("isf", "ssf", "pmu_index", "pmu_search", "pl")

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


def processing_load(found: Board, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of processing load, a row per system that reports it, and of hardware, a row per type of node."""
    columns = [measure for measure in MEASURES if measure in found.measures]
    condition = found.conditions[0] if found.conditions else ""
    runs = manifest.get("runs", {})
    return {
        "columns": [{"heading": describe(measure).heading, "title": describe(measure).title} for measure in columns],
        "rows": [
            {
                "system": system,
                "texts": [written(measure, found.value(condition, system, measure)) for measure in columns],
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
