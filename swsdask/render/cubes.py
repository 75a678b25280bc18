"""Numbers as the page's tables need them: by measure, system, and condition or query."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.render.board import Board
from swsdask.render.faces import NOT_BY_QUERY

MOST_NUMBERS = 400_000
"""How many numbers of single queries a page holds at most, so that it stays quick to open."""


def by_condition(found: Board) -> dict[str, Any] | None:
    """All numbers over all queries; None where there is only one condition."""
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


def by_query(table: pa.Table, found: Board) -> tuple[dict[str, Any] | None, dict[str, int] | None]:
    """The numbers of each query in the first condition, and how many systems had to be left out.

    The systems are in the order of their rank; the measures of `faces.NOT_BY_QUERY` are not there. The first is None
    where the result has no numbers of single queries, the second where no system was left out.
    """
    first = pc.equal(table["condition"], found.conditions[0] if found.conditions else "")
    shown = pc.invert(pc.is_in(table["measure"], value_set=pa.array(sorted(NOT_BY_QUERY))))
    rows = table.filter(pc.and_(pc.and_(pc.is_valid(table["query"]), first), shown))
    if rows.num_rows == 0:
        return None, None
    queries, measures = (pc.unique(rows[name]) for name in ("query", "measure"))
    n = max(1, MOST_NUMBERS // (len(queries) * len(measures)))
    systems = pa.array(found.systems[:n])
    query, measure, system = (
        pc.index_in(rows[name], value_set=codes).combine_chunks()
        for name, codes in (("query", queries), ("measure", measures), ("system", systems))
    )
    kept = pc.is_valid(system).to_numpy(zero_copy_only=False)
    values = np.full((len(measures), len(systems), len(queries)), math.nan)
    place = tuple(codes.fill_null(0).to_numpy()[kept] for codes in (measure, system, query))
    values[place] = rows["value"].to_numpy()[kept]
    names = measures.to_pylist()
    cube = {
        "systems": systems.to_pylist(),
        "measures": names,
        "rows": queries.to_pylist(),
        "values": {name: [[number(v) for v in line] for line in values[k].tolist()] for k, name in enumerate(names)},
    }
    left_out = {"kept": n, "of": len(found.systems)} if n < len(found.systems) else None
    return cube, left_out


def number(value: float) -> float | int | str | None:
    """A number as JSON holds it: six significant digits, None where not defined, infinities as strings."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return int(value) if value == int(value) else float(f"{value:.6g}")
