"""Tables of a report: numbers by system, measure, condition and query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.leaderboard import Board
from swsdask.model.measures import TABLE, written
from swsdask.model.tables import distinct, places_of, rows_with

COLOURS, DASHES = 6, 3
"""The number of colours and dash patterns of a page; systems beyond it differ by their number only."""


def mark(found: Board, system: str) -> dict[str, int]:
    """The marks of a system in every table and picture: its number, colour and dash pattern."""
    place = found.systems.index(system)
    return {"number": place + 1, "colour": place % COLOURS, "dash": place // COLOURS % DASHES}


def cell(measure: str, value: float) -> dict[str, str]:
    """A number in a table that sorts: its text, and all its digits."""
    return {"text": written(measure, value), "sort": "" if math.isnan(value) else repr(value)}


MOST_DRAWN = 24
"""The maximum number of systems with curves on a page, over all conditions: the first of the leaderboard."""


def drawn(found: Board, condition: str) -> tuple[str, ...]:
    """The systems of a condition whose curves are on the page."""
    return found.ranked(condition)[: max(1, MOST_DRAWN // max(1, len(found.conditions)))]


MOST_NUMBERS = 300_000
"""The maximum number of per-query numbers on a page, so that it opens quickly."""


def by_condition(found: Board) -> dict[str, object] | None:
    """All numbers over all queries; None if there is only one condition."""
    if len(found.conditions) < 2:
        return None
    return {
        "systems": list(found.systems),
        "measures": list(found.measures),
        "rows": list(found.conditions),
        "values": {
            measure: [
                [number(found.value(condition, system, measure)) for condition in found.conditions]
                for system in found.systems
            ]
            for measure in found.measures
        },
    }


def by_query(
    table: pa.Table, found: Board, texts: pa.Table | None = None
) -> tuple[dict[str, Any] | None, dict[str, int] | None]:
    """The numbers of each query in the first condition, and the number of systems left out for lack of room.

    `texts` are rows of `QUERY_TEXTS`. The systems are in the order of their rank. Measures whose description has
    `by_query` false are left out. The first is None without numbers of queries, the second if no system was left out.
    """
    hidden = {row.name for row in TABLE if not row.by_query}
    names: dict[str, None] = {}
    queries: dict[str, None] = {}
    for batch in table.select(["condition", "query", "measure"]).to_batches():
        rows = rows_with(pa.Table.from_batches([batch]), condition=found.conditions[:1])
        rows = rows.filter(pc.is_valid(rows["query"]))
        own = [name for name in distinct(rows["measure"]) if name not in hidden]
        names |= dict.fromkeys(own)
        queries |= dict.fromkeys(distinct(rows_with(rows, measure=own)["query"]))
    if not names:
        return None, None
    n = max(1, MOST_NUMBERS // (len(queries) * len(names)))
    systems = found.systems[:n]
    rows = rows_with(table, system=systems, condition=found.conditions[:1], measure=[*names], query=[*queries])
    values = np.full((len(names), len(systems), len(queries)), math.nan)
    places = (("measure", [*names]), ("system", systems), ("query", [*queries]))
    values[tuple(places_of(rows[column], named) for column, named in places)] = rows["value"].to_numpy()
    # Most numbers are there many times; NaN is none of them.
    known = {value: number(value) for value in np.unique(values).tolist() if not math.isnan(value)}
    cube = {
        "systems": list(systems),
        "measures": [*names],
        "rows": [*queries],
        "texts": _texts_of([*queries], texts),
        "values": {
            name: [[known.get(value) for value in line] for line in values[k].tolist()] for k, name in enumerate(names)
        },
    }
    left_out = {"kept": n, "of": len(found.systems)} if n < len(found.systems) else None
    return cube, left_out


def _texts_of(queries: Sequence[str], texts: pa.Table | None) -> list[str]:
    """The text of each query, "" where there is none."""
    known = {} if texts is None else dict(zip(*(texts[name].to_pylist() for name in ("query", "text")), strict=True))
    return [known.get(query, "") for query in queries]


def number(value: float) -> float | int | str | None:
    """A number as JSON has it: six significant digits, None if undefined, infinities as strings."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return int(value) if value == int(value) else float(f"{value:.6g}")
