"""The report: one self-contained HTML file.

Curves and bars are SVG made here rather than by a plotting library in the page: the page opens at once, follows the
reader's light or dark colours, and prints sharply.

A section shows the losses of each system, as stacked bars, and its costliest queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from swsdask.model.comparison import Comparison
from swsdask.model.errors import FEW, counted, listed
from swsdask.model.layers import matching_presets
from swsdask.model.leaderboard import Board
from swsdask.model.measures import describe, distinct_headings, written
from swsdask.model.name_columns import names_of, rows_with
from swsdask.model.results import RankCorrelation, Result
from swsdask.model.system_rows import SystemRows
from swsdask.places.reading import Location
from swsdask.places.writing import replacing
from swsdask.render.comparison import differences, interval_text, tied_with_best
from swsdask.render.det import figures
from swsdask.render.discovery import page as discovery_page
from swsdask.render.environment import environment, script, style
from swsdask.render.pages import by_condition, by_query, cell, drawn, mark, provenance, runs
from swsdask.render.rank_correlation import compared
from swsdask.render.sections import KINDS, RETRIEVAL_CURVES, calibration, processing_load, retrieval

BARS = ("stwv", "otwv", "mtwv", "atwv")
"""The measures that bars of a leaderboard show, the widest first."""

MOST_MEASURED = 100
"""The maximum number of systems in the table of all measures."""

MOST_PLACES = 960
"""The maximum number of lines of leaderboards on a page, over the sections of all conditions but the first."""

_BESIDE = 32
"""The size of the rest of a section, in lines of its leaderboard."""

_BAR_WIDTH = 140


def _along(value: float) -> float:
    """Return the position of a number on a bar."""
    return round(_BAR_WIDTH * min(1.0, max(0.0, value)), 1)


def write_report(result: Result, place: Location, correlations: Sequence[RankCorrelation] = ()) -> None:
    """Write the report of a result as one HTML file; see `page`. Raises `OSError` if it cannot be written."""
    with replacing(place) as file:
        file.write(page(result, correlations).encode())


def page(result: Result, correlations: Sequence[RankCorrelation] = ()) -> str:
    """The report as text: leaderboards, DET curves, queries, settings, counts of dropped input, notes; and the rank
    correlations of the conditions in `correlations`. A result of term discovery has a page of its own.

    Equal results give equal text. All text of the result is escaped, and a content security policy lets the browser
    run the page's own script only.
    """
    if result.manifest.get("kind") == "discovery":
        return discovery_page(result)
    template = environment().get_template("report.html.j2")
    whole = result.board
    found = whole.of_first(max(1, MOST_PLACES // (_BESIDE + len(whole.systems))))
    shown = dict.fromkeys(system for condition in found.conditions for system in drawn(found, condition))
    curves = rows_with(result.curve_rows.among(shown), condition=found.conditions)
    plots = figures(curves, found)
    calibrated = calibration(curves, found)
    retrieved = retrieval(curves, found)
    ranked = {each.condition: compared(each, found) for each in correlations}
    queries, queries_left_out = by_query(result.score_rows, found, result.text_table)
    conditions, conditions_left_out = by_condition(whole)
    return template.render(
        title=_title(found),
        verdict=_verdict(found, result.comparison),
        preset=" or ".join(matching_presets(result.manifest.get("settings", {}))),
        date=str(result.manifest.get("run", {}).get("began", ""))[:10],
        facts=found.facts(found.conditions[0]) if found.conditions else [],
        signature=str(result.manifest.get("signature", "")),
        version=str(result.manifest.get("swsdask", "")),
        notes=result.notes,
        sections=[
            {
                **_section(found, condition, plots.get(condition, []), result.comparison),
                "losses": losses(found, condition),
                "differences": differences(result.comparison, found, condition),
                "calibration": calibrated.get(condition),
                "retrieval": retrieved.get(condition),
                "compared": ranked.get(condition),
            }
            for condition in found.conditions
        ],
        ece_kinds=KINDS,
        retrieval_curves=RETRIEVAL_CURVES,
        bar_width=_BAR_WIDTH,
        worst=None if queries is None else worst_queries(result.score_rows, found, queries["systems"]),
        by_query=queries is not None,
        by_query_left_out=" and ".join(queries_left_out),
        n_conditions=len(whole.conditions),
        by_condition_left_out=" and ".join(conditions_left_out),
        load=processing_load(found, result.manifest),
        runs=runs(result.manifest),
        provenance=provenance(result.manifest),
        data={"faces": _faces(found, queries), "by_condition": conditions, "by_query": queries},
        style=style(),
        **script(),
    )


def _title(found: Board) -> str:
    if len(found.systems) == 1:
        return found.systems[0]
    return counted(len(found.systems), "systems")


def _verdict(found: Board, comparison: Comparison | None) -> str:
    """Say in one sentence which system is first and by how much; "" without a second system or a ranking measure."""
    ranked = found.ranked(found.conditions[0]) if found.conditions else ()
    condition, measure = found.conditions[0] if ranked else "", next(iter(found.by), "")
    values = {system: found.value(condition, system, measure) for system in ranked}
    if len(ranked) < 2 or any(math.isnan(values[system]) for system in ranked[:2]):
        return ""
    first, second = ranked[:2]
    heading, value = describe(measure).heading, written(measure, values[first])
    if values[first] == values[second]:
        equal = [system for system in ranked if values[system] == values[first]]
        return f"{listed(equal, FEW)} share the first place by {heading} with {value}."
    ahead = written(measure, abs(values[first] - values[second]))
    said = f"{first} is first by {heading} with {value}, {ahead} ahead of {second}"
    if comparison is None:
        return f"{said}."
    for row in comparison.differences_of(condition, measure):
        if {row["a"], row["b"]} == {first, second} and not math.isnan(row["low"] + row["high"]):
            low, high = sorted(abs(end) if row["low"] * row["high"] > 0 else end for end in (row["low"], row["high"]))
            sure = "" if row["p_adjusted"] < comparison.how.alpha else "; the difference is not significant"
            level = f"{comparison.how.level:g}"
            return f"{said} ({level} interval {written(measure, low)} to {written(measure, high)}{sure})."
    return f"{said}."


def _section(
    found: Board, condition: str, plots: list[dict[str, object]], comparison: Comparison | None
) -> dict[str, object]:
    systems = found.ranked(condition)
    columns = found.columns
    bars = [measure for measure in BARS if measure in found.measures]
    best = {measure: found.best(condition, measure) for measure in columns}
    tied = {measure: tied_with_best(comparison, condition, measure) for measure in columns}
    intervals = {measure: interval_text(comparison, condition, measure) for measure in dict.fromkeys([*columns, *bars])}
    whisker = next((measure for measure in reversed(bars) if intervals[measure]), None)
    rows = []
    for system in systems:
        values = {measure: found.value(condition, system, measure) for measure in {*columns, *bars}}
        cells = [
            {
                **cell(measure, values[measure]),
                "best": values[measure] == best[measure],
                "tied": system in tied[measure],
                "interval": intervals[measure].get(system, (0, 0, ""))[2],
            }
            for measure in columns
        ]
        rows.append(
            {
                "system": system,
                **mark(found, system),
                "cells": cells,
                "bars": [{"measure": m, "width": _along(values[m])} for m in bars if values[m] > 0],
                "bars_text": ", ".join(f"{describe(m).heading} {written(m, values[m])}" for m in reversed(bars)),
                "whisker": [_along(end) for end in intervals[whisker][system][:2]]
                if whisker and system in intervals[whisker]
                else None,
            }
        )
    others = [
        {
            "name": measure,
            "title": describe(measure).title,
            "cells": [cell(measure, found.value(condition, system, measure)) for system in systems[:MOST_MEASURED]],
        }
        for measure in found.measures
    ]
    return {
        "name": condition,
        "facts": found.facts(condition),
        "columns": [
            {"parts": heading.split("_") if heading == measure else [heading], "title": describe(measure).title}
            for measure, heading in zip(columns, distinct_headings(columns), strict=True)
        ],
        "rows": rows,
        "has_bars": bool(bars),
        "whisker": describe(whisker).heading if whisker else "",
        "has_ties": any(tied.values()),
        "measured": rows[:MOST_MEASURED],
        "measures": others,
        "figures": plots,
    }


def _faces(found: Board, queries: dict[str, Any] | None) -> list[dict[str, object]]:
    """Return the formats by which the page's script writes each measure; `digits` None: six significant ones."""
    measures = list(dict.fromkeys([*found.measures, *(queries["measures"] if queries else ())]))
    return [
        {
            "measure": measure,
            "name": name,
            "title": describe(measure).title,
            "digits": describe(measure).digits,
        }
        for measure, name in zip(measures, distinct_headings(measures), strict=True)
    ]


WIDTH = 220
"""The size of a bar, in units of the picture."""

LISTED = 10
"""The number of queries that are listed for a system."""

OPEN = 6
"""The number of systems whose queries are shown unfolded."""

TWV = ("atwv", "loss_threshold", "loss_across_queries", "loss_within_query", "loss_not_found")
"""The parts of a bar from the left: what is reached, then what is lost; together they are 1."""

CNXE = ("cnxe_min", "calibration_loss")
"""The parts of C_nxe."""


def losses(found: Board, condition: str) -> dict[str, object] | None:
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


def _boxes(parts: Sequence[str], values: Sequence[float], low: float, high: float) -> list[dict[str, object]]:
    """The parts side by side. A negative one has no width, and shortens the next ones, not those before it."""
    boxes, begin, drawn = [], 0.0, 0.0
    for part, value in zip(parts, values, strict=True):
        if math.isnan(value):
            break
        left, right = (WIDTH * (min(max(at, low), high) - low) / (high - low) for at in (begin, begin + value))
        left = max(left, drawn)
        if right > left:
            boxes.append({"part": part, "x": round(left, 1), "width": round(right - left, 1)})
            drawn = right
        begin += value
    return boxes


def worst_queries(scores: SystemRows, found: Board, systems: Sequence[str]) -> dict[str, object] | None:
    """List the queries of each system with the lowest ATWV in the first condition, ascending, equal ones by id.

    Queries with ATWV 1 cost nothing and are not listed. None without ATWV by query.
    """
    rows = rows_with(scores.among(systems), condition=found.conditions[:1], measure=["atwv"])
    rows = rows.filter(pc.and_(pc.is_valid(rows["query"]), pc.less(rows["value"], 1)))
    values: dict[str, list[tuple[float, str]]] = {system: [] for system in systems}
    names = (names_of(rows[column]) for column in ("system", "query"))
    for system, query, value in zip(*names, rows["value"].to_pylist(), strict=True):
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
