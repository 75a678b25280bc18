"""A comparison of systems: tables in a terminal, JSON and files.

With a comparison, a report also has intervals and ties in the leaderboard, and matrices of differences.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table
from rich.text import Text

from swsdask.model.comparison import DIFFERENCES, INTERVALS, Comparison, Resampling, written_p
from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import better, describe, signed, written
from swsdask.model.tables import Row, tables_as, tables_as_json
from swsdask.model.wording import counted
from swsdask.render.console import standard_console, standard_table
from swsdask.render.pages import mark

_P = ("p_bootstrap", "p_randomization", "p_sign", "p_wilcoxon", "p_adjusted")

MOST_PAIRS = 100
"""The number of pairs above which only those with the best system are printed."""

COMPARISON = "comparison.json"
"""The file with the parameters of a comparison and, unless they are long, its tables in JSON."""

MOST_RECORDS = 20_000
"""The number of rows of both tables up to which JSON, with about 330 bytes per row, has them too."""

COMPARED = ("intervals.parquet", "differences.parquet")
"""The tables of a comparison."""


def print_comparison(found: Comparison) -> None:
    """Print the intervals and differences of every condition and measure, the best system first; then the notes.

    If there are more than `MOST_PAIRS` pairs, only those with the best system are printed. Output goes to stdout, at
    full width unless stdout is a terminal.
    """
    console = standard_console()
    for condition, measure in found.measures:
        console.print(Text.assemble((condition, "bold"), f"  {describe(measure).heading}"))
        console.print(_intervals(found.intervals_of(condition, measure), measure, found.how.level))
        every = found.differences_of(condition, measure)
        pairs = every if len(every) <= MOST_PAIRS else _with_best(found, condition, measure)
        if pairs:
            console.print(_differences(pairs, measure, found.how.level))
        if len(pairs) < len(every):
            others = counted(len(every) - len(pairs), "more pairs")
            console.print(f"{others}: --out writes them, --format json prints them.")
        console.print()
    for line in _told(found):
        console.print(Text(line), soft_wrap=not console.is_terminal)


def _told(found: Comparison) -> list[str]:
    return [*found.notes, f"{made(found.how)}, over the pairs of a table.", f"Signature: {found.signature}"]


def made(how: Resampling) -> str:
    """Describe how a comparison was made."""
    units = "queries and documents" if how.resample == "documents" else how.resample
    drawn = f"{counted(how.replicates, 'replicates')} of the {units}, seed {how.seed}, {how.interval} intervals"
    return f"{drawn}; p adjusted: {'Holm' if how.adjust == 'holm' else 'max-T'}"


def _with_best(found: Comparison, condition: str, measure: str) -> Sequence[Row]:
    tied = found.tied(condition, measure)
    pairs = found.differences_of(condition, measure)
    return [row for row in pairs if tied is None or tied.best in (row["a"], row["b"])]


def _intervals(rows: Sequence[Row], measure: str, level: float) -> Table:
    table = _table(("System", describe(measure).heading, *_ends(level), "Std. error"), ("System",))
    merit = better(measure) or 1
    for row in sorted(rows, key=lambda row: (math.isnan(row["value"]), -merit * row["value"])):
        numbers = (written(measure, row[name]) for name in ("value", "low", "high", "standard_error"))
        table.add_row(Text(row["system"]), *numbers)
    return table


def _differences(rows: Sequence[Row], measure: str, level: float) -> Table:
    tests = ("p\nbootstrap", "p\nexchange", "p\nsign", "p\nWilcoxon", "p\nadjusted")
    table = _table(("A", "B", "A - B", *_ends(level), *tests), ("A", "B"))
    for row in rows:
        numbers = (written(measure, row[name]) for name in ("difference", "low", "high"))
        table.add_row(Text(row["a"]), Text(row["b"]), *numbers, *(_p(row[name]) for name in _P))
    return table


def _table(headings: Iterable[str], left: Sequence[str]) -> Table:
    return standard_table(headings, left, overflow="fold", vertical="bottom")


def _ends(level: float) -> tuple[str, str]:
    return f"{level:.4g}\nfrom", "\nto"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else written_p(value)


def comparison_as(form: str, found: Comparison) -> str:
    """Return a comparison as text.

    "json" is one object with the lists `intervals` and `differences`, null where a number is undefined; CSV has the
    differences; "markdown" and "latex" the systems with their numbers and intervals, a table for every condition.
    """
    if form in ("markdown", "latex"):
        return (found.to_markdown(None) if form == "markdown" else found.to_latex(None)) + "\n"
    return tables_as(form, found.tables, "differences")


def comparison_files(found: Comparison, folder: Path) -> list[str]:
    """Write `intervals.parquet`, `differences.parquet` and `comparison.json` into a folder. Returns their names.

    `comparison.json` has the parameters of the comparison and the rows of both tables, without the rows if there are
    more than `MOST_RECORDS`. Equal comparisons give equal bytes.
    """
    tables = {"intervals": found.interval_table, "differences": found.difference_table}
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    heading = {"signature": found.signature, "resampling": asdict(found.how), "notes": list(found.notes)}
    repeated = tables if sum(table.num_rows for table in tables.values()) <= MOST_RECORDS else {}
    (folder / COMPARISON).write_text(tables_as_json(repeated, heading), encoding="utf-8")
    return [*COMPARED, COMPARISON]


def read_comparison(content: bytes, intervals: pa.Table, differences: pa.Table) -> Comparison:
    """Return the comparison of a `comparison.json` and its tables.

    Raises `ValueError` or `KeyError` for another file.
    """
    found = json.loads(content)
    how, notes = Resampling(**found["resampling"]), tuple(found["notes"])
    return Comparison(intervals.cast(INTERVALS), differences.cast(DIFFERENCES), how, notes, found["signature"])


LEVELS = ((0.001, 70), (0.01, 50), (0.05, 32), (0.1, 14))
"""Limits of p, and the strength of the colour of a difference below each limit, in percent."""

MOST_SYSTEMS = 40
"""The maximum number of systems in a matrix."""


def interval_text(found: Comparison | None, condition: str, measure: str) -> dict[str, tuple[float, float, str]]:
    """Return the interval of each system and its text; empty for a measure that was not compared."""
    rows = [] if found is None else found.intervals_of(condition, measure)
    return {
        row["system"]: (row["low"], row["high"], f"{written(measure, row['low'])}…{written(measure, row['high'])}")
        for row in rows
        if not math.isnan(row["low"] + row["high"])
    }


def tied_with_best(found: Comparison | None, condition: str, measure: str) -> Sequence[str]:
    """Return the systems that do not differ significantly from the best one, without the best one."""
    tied = None if found is None else found.tied(condition, measure)
    return () if tied is None else tied.others


def differences(found: Comparison | None, board: Leaderboard, condition: str) -> dict[str, object] | None:
    """Return the matrix of every measure that was compared in a condition; None if none was."""
    measures = [measure for where, measure in found.measures if where == condition] if found is not None else []
    if found is None or not measures:
        return None
    matrices = [_matrix(found, board, condition, measure) for measure in measures]
    return {
        "matrices": [matrix for matrix in matrices if matrix["rows"]],
        "made": made(found.how),
        "level": f"{found.how.level:g}",
        "alpha": f"{found.how.alpha:g}",
        "notes": [note for note in found.notes if note.startswith((f"{condition}, ", f"{condition}:"))],
        "scale": [{"share": share, "text": f"p < {level:g}"} for level, share in LEVELS],
    }


def _matrix(found: Comparison, board: Leaderboard, condition: str, measure: str) -> dict[str, object]:
    """Return differences row - column of the best systems; rows and columns without any are left out."""
    pairs: dict[tuple[str, str], Row] = {}
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


def _cell(measure: str, pair: Row | None) -> dict[str, object]:
    if pair is None or math.isnan(pair["difference"]):
        return {"text": "", "sort": "", "title": "", "colour": "", "share": 0}
    difference, p = pair["difference"], pair["p_adjusted"]
    ends = f"{written(measure, pair['low'])} to {written(measure, pair['high'])}"
    share = next((share for level, share in LEVELS if p < level), 0)
    return {
        "text": signed(measure, difference),
        "sort": repr(difference),
        "title": f"{ends}, p adjusted {written_p(p)}",
        "colour": ("alike" if better(measure) * difference > 0 else "unlike") if share else "",
        "share": share,
    }
