"""The section of a report that shows the losses of each system as stacked bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import describe, written
from swsdask.render.pages import cell, mark

BAR_WIDTH = 220
"""The size of a bar, in units of the picture."""

TWV = ("atwv", "loss_threshold", "loss_across_queries", "loss_within_query", "loss_not_found")
"""The parts of a bar from the left: what is reached, then what is lost; together they are 1."""

CNXE = ("cnxe_min", "calibration_loss")
"""The parts of C_nxe."""


def losses(found: Leaderboard, condition: str) -> dict[str, object] | None:
    """Return the bars and numbers of each system; None if the result has none of the parts."""
    stacks = [parts for parts in (TWV, CNXE) if set(parts) <= set(found.measures)]
    systems = found.ranked(condition)
    values = {parts: [[found.value(condition, s, m) for m in parts] for s in systems] for parts in stacks}
    stacks = [parts for parts in stacks if not np.isnan(values[parts]).all()]
    if not stacks:
        return None
    ends = {parts: _ends(values[parts]) for parts in stacks}
    return {
        "width": BAR_WIDTH,
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


def _boxes(parts: Sequence[str], values: Sequence[float], low: float, high: float) -> list[dict[str, object]]:
    """Return the parts side by side. A negative one has no width, and shortens the next ones, not those before it."""
    boxes, begin, drawn = [], 0.0, 0.0
    for part, value in zip(parts, values, strict=True):
        if math.isnan(value):
            break
        left, right = (BAR_WIDTH * (min(max(at, low), high) - low) / (high - low) for at in (begin, begin + value))
        left = max(left, drawn)
        if right > left:
            boxes.append({"part": part, "x": round(left, 1), "width": round(right - left, 1)})
            drawn = right
        begin += value
    return boxes
