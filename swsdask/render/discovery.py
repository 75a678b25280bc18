"""The report page of term discovery: measures with their spread over folds, figures, and exemplars.

Figures show measures over folds as dots and ranges, class sizes and fragment lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from swsdask.model.discovery import ABOUT, COUNTS, ENDINGS, FAMILIES, SINGLE, WORDS
from swsdask.model.results import Result
from swsdask.model.wording import counted
from swsdask.render.environment import TEMPLATES, environment, script, style
from swsdask.render.pages import COLOURS, provenance

Marks = Mapping[str, Mapping[str, int]]
"""The number and the colour of each system."""

WIDTH, LEFT, RIGHT, TOP, ROW, FOOT = 400, 34, 16, 6, 22, 24
"""The width and margins of a panel of spreads, and the height of a row."""

TALLY_WIDTH, TALLY_HEIGHT, TALLY_LEFT, TALLY_FOOT = 400, 150, 8, 36
"""The size of a histogram."""

WIDEST_BAR = 52

MOST_SYSTEMS = 12
"""The number of systems that are drawn; the tables have all."""

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)


class Numbers(Protocol):
    """The data from which spreads are drawn."""

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
) -> list[dict[str, object]]:
    """Return a panel per measure: each system's folds as ticks, their range, mean and standard deviation.

    Empty if there are no spreads. The axis begins at 0 and ends at the first tick beyond the largest number.
    """
    return [
        _panel(found, condition, marks, measure, heading)
        for measure, heading in measures
        if any((condition, system, f"{measure}_std") in found.values for system in found.systems)
    ]


def _panel(found: Numbers, condition: str, marks: Marks, measure: str, heading: str) -> dict[str, object]:
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
        row: dict[str, object] = {"system": system, **marks[system], "y": TOP + ROW * place + ROW / 2, "mean": None}
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
    """Return the step between ticks, and the end of an axis that reaches `most` in at most five steps."""
    step = next((step for step in _STEPS if most <= 5 * step), 10.0 ** math.ceil(math.log10(max(most, 1.0) / 5)))
    return step, step * max(1, math.ceil(round(most / step, 9)))


def tallies(curves: pa.Table, systems: Sequence[str], marks: Marks) -> list[dict[str, object]]:
    """Return the histograms of class sizes and fragment lengths of each drawn system; None for an empty one."""
    drawn: list[dict[str, object]] = []
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
"""Fragments with this number of phones or more share one bar."""


def _doubling(x: float) -> tuple[int, str]:
    """Return the bar of a class size: 1, 2, 3-4, 5-8, ..."""
    bar = max(0, math.ceil(math.log2(x))) if x > 0 else 0
    low, high = 2 ** (bar - 1) + 1, 2**bar
    return bar, str(high) if bar < 2 else f"{low:,}-{high:,}"


def _single(x: float) -> tuple[int, str]:
    bar = min(int(x), _LONGEST)
    return bar, f"{bar}+" if bar == _LONGEST else str(bar)


def _histogram(
    own: pa.Table, curve: str, bar_of: Callable[[float], tuple[int, str]], across: str, things: str
) -> dict[str, object] | None:
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


_HEADINGS = {"all": "All", "within_talker": "Within talker"}


@dataclass(frozen=True)
class Scores:
    """The numbers of a result by (condition, system, measure), and the names of each in the result's order."""

    values: Mapping[tuple[str, str, str], float]
    conditions: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Scores:
        """Return the numbers of a table of `model.results.SCORES`."""
        columns = [table[name].to_pylist() for name in ("condition", "system", "measure")]
        values = dict(zip(zip(*columns, strict=True), table["value"].to_pylist(), strict=True))
        conditions, systems, measures = (tuple(dict.fromkeys(column)) for column in columns)
        return cls(values, tuple(name for name in conditions if "/" not in name), systems, measures)

    def value(self, condition: str, system: str, measure: str) -> float:
        """Return one number; NaN if there is none."""
        return self.values.get((condition, system, measure), math.nan)

    def groups(self) -> list[dict[str, Any]]:
        """Return the measures that have numbers, by family: a heading, and (measure, heading) of each."""
        there = set(self.measures)
        found = [
            {"family": name, "heading": "", "columns": [(name, heading)]}
            for name, heading in SINGLE.items()
            if name in there
        ]
        for family, heading in FAMILIES.items():
            columns = [(f"{family}_{end}", short) for end, short in ENDINGS.items() if f"{family}_{end}" in there]
            if columns:
                found.append({"family": family, "heading": heading, "columns": columns})
        counts = [(name, heading) for name, heading in COUNTS.items() if name in there]
        return [*found, *([{"family": "", "heading": "", "columns": counts}] if counts else [])]


def as_printed(measure: str, value: float) -> str:
    """Return a number as printed: counts as integers, others with three decimals, `-` if undefined."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if measure in COUNTS else f"{value:.3f}"


def page(result: Result) -> str:
    """Return the report as text."""
    found = Scores.of(result.table)
    manifest = result.manifest
    marks = {system: {"number": at + 1, "colour": at % COLOURS} for at, system in enumerate(found.systems)}
    return (
        environment()
        .get_template("discovery.html.j2")
        .render(
            title=found.systems[0] if len(found.systems) == 1 else counted(len(found.systems), "systems"),
            facts=[counted(manifest["corpus"][what], what) for what in ("files", "phones", "words")],
            signature=str(manifest.get("signature", "")),
            version=str(manifest.get("swsdask", "")),
            notes=result.notes,
            sections=[
                {
                    "name": _HEADINGS.get(condition, condition),
                    "folds": len(manifest["folds"].get(condition, {}).get("names", ())),
                    "groups": found.groups(),
                    "rows": _rows(found, condition, marks),
                    "panels": [row for of in _drawn(found) if (row := spread_panels(found, condition, marks, of))],
                }
                for condition in found.conditions
            ],
            about=ABOUT,
            tallies=tallies(result.curve_table, found.systems, marks),
            classes=[
                {"system": system, **marks[system], **kinds} for system, kinds in manifest.get("classes", {}).items()
            ],
            read=_read(manifest),
            provenance=provenance(
                {name: manifest[name] for name in manifest if name not in ("kind", "classes", "folds")}
            ),
            data={"faces": []},
            style=style() + Markup((TEMPLATES / "discovery.css").read_text(encoding="utf-8")),
            **script(),
        )
    )


def _drawn(found: Scores) -> list[list[tuple[str, str]]]:
    """Return the measures whose spread is drawn, with headings, in rows: single ones, then each family."""
    rows = [[(name, heading) for name, heading in SINGLE.items() if name in found.measures]]
    for family, heading in FAMILIES.items():
        names = ((f"{family}_{end}", f"{heading} {word}") for end, word in WORDS.items())
        rows.append([(name, words) for name, words in names if name in found.measures])
    return rows


def _rows(found: Scores, condition: str, marks: Mapping[str, Mapping[str, int]]) -> list[dict[str, object]]:
    """Return a row per system, of cells with a number and its spread."""
    rows = []
    for system in found.systems:
        cells = []
        for group in found.groups():
            for measure, _ in group["columns"]:
                value, std = (found.value(condition, system, name) for name in (measure, f"{measure}_std"))
                spread = "" if math.isnan(std) else f"± {std:.3f}"
                sort = "" if math.isnan(value) else repr(value)
                cells.append({"text": as_printed(measure, value), "spread": spread, "sort": sort})
        rows.append({"system": system, **marks[system], "cells": cells})
    return rows


def _read(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Return the counts of each system's input, and of what was dropped or clipped."""
    runs: Mapping[str, Any] = manifest.get("runs", {})
    reasons = list(dict.fromkeys(reason for run in runs.values() for reason in run["dropped"]))
    clipped: Sequence[str] = ["Clipped"] if any(run["clipped"] for run in runs.values()) else []
    columns = [
        "Classes",
        "Fragments read",
        "Members",
        "Distinct",
        *(f"Dropped: {reason}" for reason in reasons),
        *clipped,
    ]
    rows = []
    for system, run in runs.items():
        counts = [run["classes"], run["rows"], run["members"], run["fragments"]]
        counts += [run["dropped"].get(reason, 0) for reason in reasons] + ([run["clipped"]] if clipped else [])
        rows.append({"system": system, "counts": counts, "files": run["files"]})
    return {"columns": columns, "rows": rows}
