"""Sections of a report that a comparison adds: whiskers and ties of the leaderboard, matrices of differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from swsdask.model.comparison import Comparison
from swsdask.model.leaderboard import Board
from swsdask.model.measures import better, describe, written
from swsdask.render.comparison import made
from swsdask.render.tables import mark

LEVELS = ((0.001, 70), (0.01, 50), (0.05, 32), (0.1, 14))
"""How strongly a difference is coloured, in percent, for p below a number."""

MOST_SYSTEMS = 40
"""The maximum number of systems in a matrix."""


def interval_text(found: Comparison | None, condition: str, measure: str) -> dict[str, tuple[float, float, str]]:
    """The interval of each system and its text; of a measure that was not compared none."""
    rows = [] if found is None else found.intervals_of(condition, measure)
    return {
        row["system"]: (row["low"], row["high"], f"{written(measure, row['low'])}…{written(measure, row['high'])}")
        for row in rows
        if not math.isnan(row["low"] + row["high"])
    }


def tied_with_best(found: Comparison | None, condition: str, measure: str) -> Sequence[str]:
    """The systems that do not differ from the best one, itself not among them."""
    tied = None if found is None else found.tied(condition, measure)
    return () if tied is None else tied.others


def differences(found: Comparison | None, board: Board, condition: str) -> dict[str, Any] | None:
    """The matrix of every measure that was compared in a condition; None if none was."""
    measures = [measure for where, measure in found.measures if where == condition] if found is not None else []
    if found is None or not measures:
        return None
    matrices = [_matrix(found, board, condition, measure) for measure in measures]
    return {
        "matrices": [matrix for matrix in matrices if matrix["rows"]],
        "made": made(found.how),
        "level": f"{found.how.level:g}",
        "notes": [note for note in found.notes if note.startswith((f"{condition}, ", f"{condition}:"))],
        "scale": [{"share": share, "text": f"p < {level:g}"} for level, share in LEVELS],
    }


def _matrix(found: Comparison, board: Board, condition: str, measure: str) -> dict[str, Any]:
    """Differences row - column of the best systems; rows and columns without any are left out."""
    pairs: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in found.differences_of(condition, measure):
        pairs[row["a"], row["b"]] = row
        turned = {"difference": 0.0 - row["difference"], "low": -row["high"], "high": -row["low"]}
        pairs[row["b"], row["a"]] = {**row, **turned}
    value = {row["system"]: better(measure) * row["value"] for row in found.intervals_of(condition, measure)}
    ranked = sorted((s for s in board.systems if s in value), key=lambda s: (math.isnan(value[s]), -value[s]))
    rows = [system for system in ranked if any(system in pair for pair in pairs)]
    shown = rows[:MOST_SYSTEMS]
    columns = [system for system in shown if any((other, system) in pairs for other in shown)]
    return {
        "measure": measure,
        "heading": describe(measure).heading,
        "columns": [{"system": system, **mark(board, system)} for system in columns],
        "rows": [
            {
                "system": system,
                **mark(board, system),
                "cells": [_cell(measure, pairs.get((system, other))) for other in columns],
            }
            for system in shown
        ],
        "left_out": len(rows) - len(shown),
    }


def _cell(measure: str, pair: Mapping[str, Any] | None) -> dict[str, Any]:
    if pair is None or math.isnan(pair["difference"]):
        return {"text": "", "sort": "", "title": "", "colour": "", "share": 0}
    difference, p = pair["difference"], pair["p_adjusted"]
    ends = f"{written(measure, pair['low'])} to {written(measure, pair['high'])}"
    share = next((share for level, share in LEVELS if p < level), 0)
    return {
        "text": f"{'+' if difference > 0 else ''}{written(measure, difference)}",
        "sort": repr(difference),
        "title": f"{ends}, p adjusted {p:.4f}",
        "colour": ("alike" if better(measure) * difference > 0 else "unlike") if share else "",
        "share": share,
    }
