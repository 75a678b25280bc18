"""Section of a report: where each system loses, as stacked bars, and the queries that cost it most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.leaderboard import Board
from swsdask.model.measures import describe, written
from swsdask.model.tables import rows_with
from swsdask.render.tables import cell, mark

WIDTH = 220
"""Of a bar, in units of the picture."""

LISTED = 10
"""Queries of a system."""

OPEN = 6
"""Systems whose queries are not folded away."""

TWV = ("atwv", "loss_threshold", "loss_across_queries", "loss_within_query", "loss_not_found")
"""The parts of a bar from the left: what is reached, then what is lost; together they are 1."""

CNXE = ("cnxe_min", "calibration_loss")
"""The parts of C_nxe."""


def losses(found: Board, condition: str) -> dict[str, Any] | None:
    """The bars and numbers of each system; None if the result has none of the parts."""
    stacks = [parts for parts in (TWV, CNXE) if set(parts) <= set(found.measures)]
    systems = found.ranked(condition)
    values = {parts: [[found.value(condition, s, m) for m in parts] for s in systems] for parts in stacks}
    stacks = [parts for parts in stacks if not np.isnan(values[parts]).all()]
    if not stacks:
        return None
    ends = {parts: _ends(values[parts]) for parts in stacks}
    return {
        "width": WIDTH,
        "stacks": [
            {
                "about": "ATWV, and what is lost" if parts is TWV else "C_nxe",
                "low": f"{ends[parts][0]:g}",
                "high": f"{ends[parts][1]:g}",
                "columns": [{"heading": describe(m).heading, "title": describe(m).title, "part": m} for m in parts],
            }
            for parts in stacks
        ],
        "rows": [
            {
                "system": system,
                **mark(found, system),
                "stacks": [
                    {
                        "boxes": _boxes(parts, values[parts][row], *ends[parts]),
                        "text": ", ".join(
                            f"{describe(m).heading} {written(m, value)}"
                            for m, value in zip(parts, values[parts][row], strict=True)
                        ),
                        "cells": [cell(m, value) for m, value in zip(parts, values[parts][row], strict=True)],
                    }
                    for parts in stacks
                ],
            }
            for row, system in enumerate(systems)
        ],
    }


def _ends(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The ends of the scale that bars of one kind share: 0 and 1, or wider in steps of a half, -1 and 2 at most."""
    sums = np.nan_to_num(np.array(rows), posinf=1e9, neginf=-1e9)
    low, high = float(sums[:, 0].min()), float(sums.sum(axis=1).max())
    return max(-1.0, min(0.0, math.floor(2 * low) / 2)), min(2.0, max(1.0, math.ceil(2 * high - 1e-9) / 2))


def _boxes(parts: Sequence[str], values: Sequence[float], low: float, high: float) -> list[dict[str, Any]]:
    """The parts side by side; a negative one has no width, and the next begins where it ends."""
    boxes, begin = [], 0.0
    for part, value in zip(parts, values, strict=True):
        if math.isnan(value):
            break
        left, right = (WIDTH * (min(max(at, low), high) - low) / (high - low) for at in (begin, begin + value))
        if right > left:
            boxes.append({"part": part, "x": round(left, 1), "width": round(right - left, 1)})
        begin += value
    return boxes


def worst_queries(table: pa.Table, found: Board, systems: Sequence[str]) -> dict[str, Any] | None:
    """List the queries of each system with the lowest ATWV in the first condition, ascending, equal ones by id.

    Queries of 1 cost nothing and are not listed. None without ATWV by query.
    """
    rows = rows_with(table, condition=found.conditions[:1], measure=["atwv"], system=systems)
    rows = rows.filter(pc.is_valid(rows["query"]))
    values: dict[str, list[tuple[float, str]]] = {system: [] for system in systems}
    for system, query, value in zip(*(rows[name].to_pylist() for name in ("system", "query", "value")), strict=True):
        if value < 1:
            values[system].append((value, query))
    listed = [
        {
            "system": system,
            **mark(found, system),
            "queries": [{"query": query, "text": written("atwv", value)} for value, query in sorted(own)[:LISTED]],
            "others": max(0, len(own) - LISTED),
        }
        for system, own in values.items()
        if own
    ]
    return {"open": listed[:OPEN], "folded": listed[OPEN:]} if listed else None
