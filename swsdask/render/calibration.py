"""The calibration of the systems of a condition, laid out for the template: a table and the plots of each system."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from swsdask.model.leaderboard import Board
from swsdask.model.measures import describe, written
from swsdask.model.tables import rows_with
from swsdask.render import ece
from swsdask.render.tables import cell, drawn, mark

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
        points = rows_with(curves, curve=ece.CURVES, condition=[condition], system=with_curves)
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
    curves = {name: sorted((x, y) for kind, x, y in rows if kind == name) for name in ece.CURVES}
    threshold = found.value(condition, system, "bayes_threshold")
    return ece.plots({name: curve for name, curve in curves.items() if curve}, -threshold)
