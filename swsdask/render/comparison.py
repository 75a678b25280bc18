"""A comparison of systems: tables in a terminal, JSON, and files."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdask.model.comparison import Comparison
from swsdask.model.errors import counted
from swsdask.model.measures import better, describe, written
from swsdask.places.reading import Place
from swsdask.places.writing import together

_P = ("p_bootstrap", "p_randomization", "p_sign", "p_wilcoxon", "p_adjusted")

Rows = Sequence[Mapping[str, Any]]


def print_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print for every condition and measure its intervals, the best system first, and its differences; then the notes.

    Without `console`: to stdout, at full width if that is no terminal.
    """
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False, markup=False, emoji=False)
    intervals, differences = found.interval_table.to_pylist(), found.difference_table.to_pylist()
    for condition, measure in dict.fromkeys((row["condition"], row["measure"]) for row in intervals):
        console.print(Text.assemble((condition, "bold"), f"  {describe(measure).heading}"))
        console.print(_intervals(_of(intervals, condition, measure), measure, found.how.level))
        pairs = _of(differences, condition, measure)
        if pairs:
            console.print(_differences(pairs, measure, found.how.level))
        console.print()
    for line in _told(found):
        console.print(Text(line), soft_wrap=not console.is_terminal)


def _told(found: Comparison) -> list[str]:
    how = found.how
    made = f"{counted(how.replicates, 'replicates')} of the queries, seed {how.seed}, {how.interval} intervals"
    return [
        *found.notes,
        f"{made}; p adjusted: {'Holm' if how.adjust == 'holm' else 'max-T'}, over the pairs of a table.",
        f"Signature: {found.signature}",
    ]


def _of(rows: Rows, condition: str, measure: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if (row["condition"], row["measure"]) == (condition, measure)]


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


def comparison_json(found: Comparison) -> str:
    """One JSON object with the lists `intervals` and `differences`; null where a number is not defined."""
    tables = {"intervals": found.interval_table, "differences": found.difference_table}
    return json.dumps({name: _records(table) for name, table in tables.items()}, ensure_ascii=False, indent=1) + "\n"


def _records(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


def write_comparison(found: Comparison, directory: Place) -> list[str]:
    """Write `intervals.parquet`, `differences.parquet` and `comparison.json`; their names.

    Equal comparisons give equal bytes. Raises `OSError` where the directory cannot be written.
    """
    with together(directory) as hidden:
        (hidden / "comparison.json").write_text(comparison_json(found), encoding="utf-8")
        for name, table in (("differences", found.difference_table), ("intervals", found.interval_table)):
            pq.write_table(table, hidden / f"{name}.parquet", compression="zstd")
    return ["intervals.parquet", "differences.parquet", "comparison.json"]
