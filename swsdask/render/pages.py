"""Parts that pages and the reports of official tools share: provenance, the marks of systems, tables of numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import TABLE, written
from swsdask.model.name_columns import distinct_names, places_of, rows_with
from swsdask.model.system_rows import SystemRows
from swsdask.model.trials import F64

_ELSEWHERE = ("signature", "swsdask", "runs", "notes")

OUTSIDE = {
    "drop": "Detections outside the evaluated excerpts are dropped.",
    "false_alarm": "Detections outside the evaluated excerpts are false alarms unless they match an occurrence.",
    "error": "Detections outside the evaluated excerpts are an error.",
}
"""A description of each value of the setting `outside`."""

COUNTS = {
    "rows": "Detections",
    "outside": "Outside the excerpts",
    "unknown_documents": "In unknown documents",
    "unknown_queries": "Of unknown queries, dropped",
    "rounded": "Times rounded to 0.1 ms",
}
"""The counts of a run in a manifest. Detections in unknown documents count as outside the excerpts too."""


def provenance(manifest: Mapping[str, object]) -> list[dict[str, object]]:
    """Make one table per nested entry of the manifest, and one for the other entries."""
    entries = {name: value for name, value in manifest.items() if name not in _ELSEWHERE}
    alone = {name: value for name, value in entries.items() if not isinstance(value, Mapping)}
    groups = {name: value for name, value in entries.items() if isinstance(value, Mapping) and value}
    tables = [*([("scored", alone)] if alone else []), *groups.items()]
    return [
        {
            "name": name.replace("_", " ").capitalize(),
            "rows": [{"name": key, "value": text} for key, text in _flat(value)],
        }
        for name, value in tables
    ]


def runs(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Return the counts of what was read, dropped or rounded: a row per system and a column per entry of `COUNTS`."""
    return {
        "outside": OUTSIDE.get(manifest.get("settings", {}).get("outside"), ""),
        "columns": list(COUNTS.values()),
        "rows": [
            {
                "system": system,
                "counts": [_total(run.get(name, 0)) for name in COUNTS],
                "files": [str(file) for file in run.get("files", ())],
            }
            for system, run in manifest.get("runs", {}).items()
        ],
    }


def _total(count: int | Mapping[str, int]) -> int:
    """Return a number, or the sum of numbers by id."""
    return sum(count.values()) if isinstance(count, Mapping) else count


def _flat(entries: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value with its path; lists on one line. Unset and empty values are left out."""
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            if value:
                yield f"{prefix}{name}", ", ".join(map(str, value))
        elif value is not None:
            yield f"{prefix}{name}", str(value)


COLOURS, DASHES = 6, 3
"""The number of colours and dash patterns of a page; systems beyond it differ by their number only."""


def mark(found: Leaderboard, system: str) -> dict[str, int]:
    """Return the marks of a system in every table and picture: its number, colour and dash pattern."""
    place = found.place(system)
    return {"number": place + 1, "colour": place % COLOURS, "dash": place // COLOURS % DASHES}


def cell(measure: str, value: float) -> dict[str, str]:
    """Return a number in a table that sorts: its text, and all its digits."""
    return {"text": written(measure, value), "sort": "" if math.isnan(value) else repr(value)}


MOST_DRAWN = 24
"""The maximum number of systems with curves on a page, over all conditions: the first of the leaderboard."""


def drawn(found: Leaderboard, condition: str) -> tuple[str, ...]:
    """Return the systems of a condition whose curves are on the page."""
    return found.ranked(condition)[: max(1, MOST_DRAWN // max(1, len(found.conditions)))]


MOST_NUMBERS = 300_000
"""The maximum number of numbers in the table of queries, and in that of conditions, so that a page opens quickly."""


def by_condition(found: Leaderboard) -> tuple[Mapping[str, object] | None, list[str]]:
    """Return all numbers over all queries, and what was left out for lack of room, as `by_query`.

    If there is no room for all measures of all systems, the first systems are shown with the measures of the
    leaderboard, or with the ranking measure alone. The numbers are None if there is only one condition.
    """
    if len(found.conditions) < 2:
        return None, []
    leading = [_leading(found.measures, found)]
    room = MOST_NUMBERS // (len(found.systems) * len(found.conditions))
    measures = next((each for each in (found.measures, found.columns) if 0 < len(each) <= room), leading)
    systems = found.systems[: max(1, MOST_NUMBERS // (len(measures) * len(found.conditions)))]
    conditions = found.conditions[: max(1, MOST_NUMBERS // (len(measures) * len(systems)))]
    cube = {
        "systems": list(systems),
        "measures": list(measures),
        "rows": list(conditions),
        "values": {
            measure: [
                numbers(np.array([found.value(condition, system, measure) for condition in conditions]))
                for system in systems
            ]
            for measure in measures
        },
    }
    every = {"systems": found.systems, "measures": found.measures, "conditions": found.conditions}
    return cube, _left_out(every, {"systems": systems, "measures": measures, "conditions": conditions})


def _leading(measures: Iterable[str], found: Leaderboard) -> str:
    """Return the measure that ranks systems, or the first one if there is no ranking measure."""
    names = [*measures]
    return next((name for name in found.by if name in names), names[0])


def _left_out(every: Mapping[str, Collection[str]], shown: Mapping[str, Collection[str]]) -> list[str]:
    """Phrases for all that is not shown as a whole, such as "the first 2 of 3 systems"."""
    return [
        f"{'' if things == 'measures' else 'the first '}{len(shown[things]):,} of {len(names):,} {things}"
        for things, names in every.items()
        if len(shown[things]) < len(names)
    ]


def by_query(
    scores: SystemRows, found: Leaderboard, texts: pa.Table | None = None
) -> tuple[dict[str, Any] | None, list[str]]:
    """The numbers of each query in the first condition, and what was left out for lack of room, as "2 of 3 systems".

    `texts` are rows of `QUERY_TEXTS`. The systems are in the order of their rank; only their rows are decoded. Measures
    whose description has `by_query` false are left out. If there is no room for all measures of one system, only the
    ranking measure is shown, for the first queries. The numbers are None if there are none by query.
    """
    kept: dict[str, pa.Table] = {}
    every: dict[str, None] = {}
    queries: dict[str, None] = {}
    names: list[str] = []
    only: list[str] = []
    for system in found.systems:
        own = _rows_by_query(scores.among([system]), found)
        every |= dict.fromkeys(distinct_names(own["measure"]))
        more_queries = queries | dict.fromkeys(distinct_names(own["query"]))
        if not kept and len(every) * len(more_queries) > MOST_NUMBERS:
            only = [_leading(every, found)]
        more_names = only or [*every]
        if kept and len(more_names) * len(more_queries) * (len(kept) + 1) > MOST_NUMBERS:
            break
        kept[system], names, queries = rows_with(own, measure=more_names), more_names, more_queries
    if not names:
        return None, []
    shown = [*queries][: max(1, MOST_NUMBERS // (len(names) * len(kept)))]
    values = np.full((len(names), len(kept), len(shown)), math.nan)
    for place, own in enumerate(kept.values()):
        at = places_of(own["query"], shown)
        rows = at >= 0
        values[places_of(own["measure"], names)[rows], place, at[rows]] = own["value"].to_numpy()[rows]
    # Most numbers are there many times; NaN is none of them.
    different = np.unique(values[~np.isnan(values)])
    known = dict(zip(different.tolist(), numbers(different), strict=True))
    cube = {
        "systems": [*kept],
        "measures": names,
        "rows": shown,
        "texts": _texts_of(shown, texts),
        "values": {
            name: [[known.get(value) for value in line] for line in values[k].tolist()] for k, name in enumerate(names)
        },
    }
    whole = {"systems": found.systems, "measures": every, "queries": queries}
    return cube, _left_out(whole, {"systems": kept, "measures": names, "queries": shown})


def numbers_by_query(scores: pa.Table, condition: str) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The numbers of a condition by measure, over all queries and of each query; `scores` are rows of one system."""
    numbers: dict[str | None, dict[str, float]] = {}
    for row in scores.filter(pc.equal(scores["condition"], condition)).to_pylist():
        numbers.setdefault(row["query"], {})[row["measure"]] = row["value"]
    overall = numbers.pop(None, {})
    return overall, {str(query): own for query, own in numbers.items()}


def _rows_by_query(rows: pa.Table, found: Leaderboard) -> pa.Table:
    """Return the rows that a page shows: by query, in the first condition, for measures that are shown by query."""
    hidden = {row.name for row in TABLE if not row.by_query}
    rows = rows_with(rows, condition=found.conditions[:1])
    rows = rows.filter(pc.is_valid(rows["query"]))
    return rows_with(rows, measure=[name for name in distinct_names(rows["measure"]) if name not in hidden])


def _texts_of(queries: Sequence[str], texts: pa.Table | None) -> list[str]:
    """Return the text of each query, "" where there is none."""
    known = {} if texts is None else dict(zip(*(texts[name].to_pylist() for name in ("query", "text")), strict=True))
    return [known.get(query, "") for query in queries]


Number: TypeAlias = float | int | str | None

_POWERS = np.array([10.0**power for power in range(301)])


def number(value: float) -> Number:
    """Return a number as JSON has it: six significant digits, None if undefined, infinities as strings."""
    return numbers(np.array([value]))[0]


def numbers(values: F64) -> list[Number]:
    """Numbers as JSON has them: six significant digits, None if undefined, infinities as strings.

    Numbers from 10**6 on are rounded to integers, and integers are written without a point.
    """
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    with np.errstate(divide="ignore"):
        decimals = np.clip(5.0 - np.floor(np.log10(np.abs(known))), 0, len(_POWERS) - 1)
    # An integer over a power of ten is the nearest number to that decimal fraction, so it prints as few digits.
    scale = _POWERS[decimals.astype(np.int64)]
    large = known * scale
    rounded = np.rint(large) / scale
    for place in np.flatnonzero(np.abs(large - np.floor(large)) == 0.5):
        rounded[place] = round(known[place].item(), int(decimals[place]))  # a tie may be of the product only
    found: list[Number] = [int(value) if value.is_integer() else value for value in rounded.tolist()]
    for place in np.flatnonzero(~finite):
        found[place] = None if np.isnan(values[place]) else "inf" if values[place] > 0 else "-inf"
    return found


def path(x: F64, y: F64) -> str:
    """Return the line through points as the data of an SVG path, to tenths of a unit."""
    between = "L".join(["%.1f %.1f"] * len(x))
    return f"M{between}" % tuple(np.column_stack([x, y]).ravel().tolist())
