"""A comparison of systems: tables in a terminal, JSON, files, and what it adds to a report.

A report gains whiskers and ties of the leaderboard, and matrices of differences.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdask.model.comparison import DIFFERENCES, INTERVALS, Comparison, Resampling
from swsdask.model.errors import counted
from swsdask.model.leaderboard import Board
from swsdask.model.measures import better, describe, written
from swsdask.render.records import as_json, tables_as
from swsdask.render.tables import mark

_P = ("p_bootstrap", "p_randomization", "p_sign", "p_wilcoxon", "p_adjusted")

MOST_PAIRS = 100
"""Of more pairs, only those with the best system are printed."""

COMPARISON = "comparison.json"
"""The file of a directory that holds a comparison."""

Rows = Sequence[Mapping[str, Any]]


def print_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print for every condition and measure its intervals, the best system first, and its differences; then the notes.

    Of more than `MOST_PAIRS` pairs, those with the best system are printed. Without `console`: to stdout, at full width
    if that is no terminal.
    """
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False, markup=False, emoji=False)
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
    of = "queries and documents" if how.resample == "documents" else how.resample
    drawn = f"{counted(how.replicates, 'replicates')} of the {of}, seed {how.seed}, {how.interval} intervals"
    return f"{drawn}; p adjusted: {'Holm' if how.adjust == 'holm' else 'max-T'}"


def _with_best(found: Comparison, condition: str, measure: str) -> Rows:
    tied = found.tied(condition, measure)
    pairs = found.differences_of(condition, measure)
    return [row for row in pairs if tied is None or tied.best in (row["a"], row["b"])]


def _intervals(rows: Rows, measure: str, level: float) -> Table:
    table = _new(("System", describe(measure).heading, *_ends(level), "Std. error"), left=1)
    merit = better(measure) or 1
    for row in sorted(rows, key=lambda row: (math.isnan(row["value"]), -merit * row["value"])):
        numbers = (written(measure, row[name]) for name in ("value", "low", "high", "standard_error"))
        table.add_row(Text(row["system"]), *numbers)
    return table


def _differences(rows: Rows, measure: str, level: float) -> Table:
    table = _new(
        ("A", "B", "A - B", *_ends(level), "p\nbootstrap", "p\nexchange", "p\nsign", "p\nWilcoxon", "p\nadjusted"),
        left=2,
    )
    for row in rows:
        numbers = (written(measure, row[name]) for name in ("difference", "low", "high"))
        table.add_row(Text(row["a"]), Text(row["b"]), *numbers, *(_p(row[name]) for name in _P))
    return table


def _new(headings: Iterable[str], left: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right", overflow="fold", vertical="bottom")
    return table


def _ends(level: float) -> tuple[str, str]:
    return f"{level:.4g}\nfrom", "\nto"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def comparison_as(form: str, found: Comparison) -> str:
    """A comparison as text.

    "json" is one object with the lists `intervals` and `differences`, null where a number is undefined; CSV has the
    differences; "markdown" and "latex" the systems with their numbers and intervals, a table for every condition.
    """
    if form in ("markdown", "latex"):
        return (found.to_markdown(None) if form == "markdown" else found.to_latex(None)) + "\n"
    return tables_as(form, found.tables, "differences")


def comparison_files(found: Comparison, folder: Path) -> list[str]:
    """Write `intervals.parquet`, `differences.parquet` and `comparison.json` into a folder; their names.

    `comparison.json` has beside the two lists how they were made. Equal comparisons give equal bytes.
    """
    tables = {"intervals": found.interval_table, "differences": found.difference_table}
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    told = {"signature": found.signature, "resampling": asdict(found.how), "notes": list(found.notes)}
    text = as_json({**told, **{name: table.to_pylist() for name, table in tables.items()}}, indent=1)
    (folder / COMPARISON).write_text(f"{text}\n", encoding="utf-8")
    return ["intervals.parquet", "differences.parquet", COMPARISON]


def read_comparison(content: bytes) -> Comparison:
    """The comparison of a `comparison.json`. Raises `ValueError` or `KeyError` for another file."""
    found = json.loads(content)
    intervals, differences = (
        pa.Table.from_pylist(
            [{key: _read(value, schema.field(key).type) for key, value in row.items()} for row in found[name]], schema
        )
        for name, schema in (("intervals", INTERVALS), ("differences", DIFFERENCES))
    )
    how, notes = Resampling(**found["resampling"]), tuple(found["notes"])
    return Comparison(intervals, differences, how, notes, found["signature"])


def _read(value: Any, kind: pa.DataType) -> object:
    """A value of a row as it was before `as_json`."""
    return float("nan" if value is None else value) if pa.types.is_floating(kind) else value


LEVELS = ((0.001, 70), (0.01, 50), (0.05, 32), (0.1, 14))
"""How strongly a difference is coloured, in percent, for p below a number."""

MOST_SYSTEMS = 40
"""The maximum number of systems in a matrix."""


def interval_text(found: Comparison | None, condition: str, measure: str) -> dict[str, tuple[float, float, str]]:
    """The interval of each system and its text; of a measure that was not compared none."""
    rows = [] if found is None else found.intervals_of(condition, measure)
    return {
        row["system"]: (row["low"], row["high"], f"{written(measure, row['low'])}…{written(measure, row['high'])}")
        for row in rows
        if not math.isnan(row["low"] + row["high"])
    }


def tied_with_best(found: Comparison | None, condition: str, measure: str) -> Sequence[str]:
    """The systems that do not differ from the best one, itself not among them."""
    tied = None if found is None else found.tied(condition, measure)
    return () if tied is None else tied.others


def differences(found: Comparison | None, board: Board, condition: str) -> dict[str, object] | None:
    """The matrix of every measure that was compared in a condition; None if none was."""
    measures = [measure for where, measure in found.measures if where == condition] if found is not None else []
    if found is None or not measures:
        return None
    matrices = [_matrix(found, board, condition, measure) for measure in measures]
    return {
        "matrices": [matrix for matrix in matrices if matrix["rows"]],
        "made": made(found.how),
        "level": f"{found.how.level:g}",
        "notes": [note for note in found.notes if note.startswith((f"{condition}, ", f"{condition}:"))],
        "scale": [{"share": share, "text": f"p < {level:g}"} for level, share in LEVELS],
    }


def _matrix(found: Comparison, board: Board, condition: str, measure: str) -> dict[str, object]:
    """Differences row - column of the best systems; rows and columns without any are left out."""
    pairs: dict[tuple[str, str], Mapping[str, object]] = {}
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


def _cell(measure: str, pair: Mapping[str, Any] | None) -> dict[str, object]:
    if pair is None or math.isnan(pair["difference"]):
        return {"text": "", "sort": "", "title": "", "colour": "", "share": 0}
    difference, p = pair["difference"], pair["p_adjusted"]
    ends = f"{written(measure, pair['low'])} to {written(measure, pair['high'])}"
    share = next((share for level, share in LEVELS if p < level), 0)
    return {
        "text": f"{'+' if difference > 0 else ''}{written(measure, difference)}",
        "sort": repr(difference),
        "title": f"{ends}, p adjusted {p:.4f}",
        "colour": ("alike" if better(measure) * difference > 0 else "unlike") if share else "",
        "share": share,
    }
