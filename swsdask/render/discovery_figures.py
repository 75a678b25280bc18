"""The pictures of a discovery report: measures over folds as dots and ranges, class sizes and fragment lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

Marks = Mapping[str, Mapping[str, int]]
"""The number and the colour of each system."""

WIDTH, LEFT, RIGHT, TOP, ROW, FOOT = 400, 34, 16, 6, 22, 24
"""Of a panel of spreads: its width, margins, and the height of a system's row."""

TALLY_WIDTH, TALLY_HEIGHT, TALLY_LEFT, TALLY_FOOT = 400, 150, 8, 36
"""Of a histogram."""

WIDEST_BAR = 52

MOST_SYSTEMS = 12
"""Systems that are drawn; the tables have all."""

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)


class Numbers(Protocol):
    """What spreads are drawn from."""

    @property
    def values(self) -> Mapping[tuple[str, str, str], float]:
        """Numbers by (condition, system, measure)."""
        ...

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems in their order."""
        ...


def spread_panels(
    found: Numbers, condition: str, marks: Marks, measures: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """A panel per measure: each system's folds as ticks, their range, mean and standard deviation.

    Empty where there are no spreads. The axis begins at 0 and ends where the largest number needs it to.
    """
    return [
        _panel(found, condition, marks, measure, heading)
        for measure, heading in measures
        if any((condition, system, f"{measure}_std") in found.values for system in found.systems)
    ]


def _panel(found: Numbers, condition: str, marks: Marks, measure: str, heading: str) -> dict[str, Any]:
    systems = found.systems[:MOST_SYSTEMS]
    folds: dict[str, list[float]] = {system: [] for system in systems}
    for (where, system, name), value in found.values.items():
        if name == measure and where.startswith(f"{condition}/") and system in folds and not math.isnan(value):
            folds[system].append(value)
    most = max((value for each in folds.values() for value in each), default=1.0)
    step, end = _axis(most)

    def x(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * value / end, 1)

    rows = []
    for place, system in enumerate(systems):
        mean, std, least, high = (
            found.values.get((condition, system, measure + part), math.nan) for part in ("", "_std", "_min", "_max")
        )
        row: dict[str, Any] = {"system": system, **marks[system], "y": TOP + ROW * place + ROW / 2, "mean": None}
        if not math.isnan(mean):
            row |= {
                "mean": x(mean),
                "range": (x(least), x(high)),
                "deviation": (x(max(0.0, mean - std)), x(min(end, mean + std))),
                "folds": [x(value) for value in folds[system]],
                "text": f"{mean:.3f} ± {std:.3f}, {least:.3f} to {high:.3f}",
            }
        rows.append(row)
    bottom = TOP + ROW * len(systems)
    ticks = [step * number for number in range(round(end / step) + 1)]
    return {
        "measure": measure,
        "heading": heading,
        "width": WIDTH,
        "height": bottom + FOOT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": bottom,
        "ticks": [{"at": x(tick), "label": f"{tick:.2f}".rstrip("0").rstrip(".") or "0"} for tick in ticks],
        "rows": rows,
    }


def _axis(most: float) -> tuple[float, float]:
    """The step between ticks, and the end of an axis that reaches `most` in at most five steps."""
    step = next((step for step in _STEPS if most <= 5 * step), 10.0 ** math.ceil(math.log10(max(most, 1.0) / 5)))
    return step, step * max(1, math.ceil(round(most / step, 9)))


def tallies(curves: pa.Table, systems: Sequence[str], marks: Marks) -> list[dict[str, Any]]:
    """Of each system drawn, the histograms of class sizes and fragment lengths; None where there is nothing to draw."""
    drawn = []
    for system in systems[:MOST_SYSTEMS]:
        own = curves.filter(pc.equal(curves["system"], system))
        drawn.append(
            {
                "system": system,
                **marks[system],
                "sizes": _histogram(own, "class_size", _doubling, "members of a class", "classes"),
                "lengths": _histogram(own, "fragment_length", _single, "phones of a fragment", "fragments"),
            }
        )
    return drawn


_LONGEST = 24
"""Fragments of so many phones or more are one bar."""


def _doubling(x: float) -> tuple[int, str]:
    """The bar of a class size: 1, 2, 3-4, 5-8, ..."""
    bar = max(0, math.ceil(math.log2(x))) if x > 0 else 0
    low, high = 2 ** (bar - 1) + 1, 2**bar
    return bar, str(high) if bar < 2 else f"{low:,}-{high:,}"


def _single(x: float) -> tuple[int, str]:
    bar = min(int(x), _LONGEST)
    return bar, f"{bar}+" if bar == _LONGEST else str(bar)


def _histogram(own: pa.Table, curve: str, bar_of: Any, across: str, things: str) -> dict[str, Any] | None:
    rows = own.filter(pc.equal(own["curve"], curve))
    heights: dict[int, float] = {}
    for x, y in zip(rows["x"].to_pylist(), rows["y"].to_pylist(), strict=True):
        bar, _ = bar_of(x)
        heights[bar] = heights.get(bar, 0.0) + y
    if not heights:
        return None
    first, count = min(heights), max(heights) - min(heights) + 1
    step = min(WIDEST_BAR, (TALLY_WIDTH - 2 * TALLY_LEFT) / count)
    most = max(heights.values())
    bottom = TALLY_HEIGHT - TALLY_FOOT
    every = max(1, math.ceil(count * 30 / TALLY_WIDTH)) if curve == "fragment_length" else max(1, math.ceil(count / 5))
    bars = []
    for bar in range(first, first + count):
        label = bar_of(float(bar) if curve == "fragment_length" else float(2**bar))[1]
        height = round(heights.get(bar, 0.0) / most * (bottom - 16), 1)
        bars.append(
            {
                "x": round(TALLY_LEFT + (bar - first) * step + 0.5, 1),
                "middle": round(TALLY_LEFT + (bar - first + 0.5) * step, 1),
                "y": round(bottom - height, 1),
                "height": height,
                "width": round(max(1.0, step - 1), 1),
                "label": label if (bar - first) % every == 0 else "",
                "text": f"{label}: {heights.get(bar, 0.0):,.0f} {things}",
            }
        )
    return {
        "width": TALLY_WIDTH,
        "height": TALLY_HEIGHT,
        "left": TALLY_LEFT,
        "bottom": bottom,
        "bars": bars,
        "across": across,
        "most": f"{most:,.0f}",
        "things": things,
    }
