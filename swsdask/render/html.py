"""The report: one self-contained HTML file.

Curves and bars are SVG made here rather than by a plotting library in the page: the page opens at once, follows the
reader's light or dark colours, and prints sharply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from swsdask.model.comparison import Comparison
from swsdask.model.layers import matching_presets
from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import describe, distinct_headings, written
from swsdask.model.name_columns import rows_with
from swsdask.model.results import RankCorrelation, Result
from swsdask.model.wording import FEW, counted, listed
from swsdask.places.reading import Location
from swsdask.places.writing import replacing
from swsdask.render.comparison import differences, interval_text, tied_with_best
from swsdask.render.det import figures
from swsdask.render.discovery import page as discovery_page
from swsdask.render.environment import environment, script, style
from swsdask.render.losses import losses
from swsdask.render.pages import by_condition, by_query, cell, drawn, mark, provenance, runs
from swsdask.render.rank_correlation import compared
from swsdask.render.sections import KINDS, RETRIEVAL_CURVES, calibration, processing_load, retrieval
from swsdask.render.worst_queries import worst_queries

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
    whole = result.numbers
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


def _title(found: Leaderboard) -> str:
    if len(found.systems) == 1:
        return found.systems[0]
    return counted(len(found.systems), "systems")


def _verdict(found: Leaderboard, comparison: Comparison | None) -> str:
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
    found: Leaderboard, condition: str, plots: list[dict[str, object]], comparison: Comparison | None
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


def _faces(found: Leaderboard, queries: dict[str, Any] | None) -> list[dict[str, object]]:
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
