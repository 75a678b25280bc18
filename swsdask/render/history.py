"""The history of an archive in a terminal: a line per system, or a table and a plot of one."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdask.model.measures import better, describe, written

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT = 60, 10

Rows = Sequence[Mapping[str, Any]]


def print_history(rows: Rows, measure: str, n_nights: int, console: Console | None = None) -> None:
    """Print a line for every system: its numbers, and how they moved over the nights; the best now comes first."""
    by_system: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_system.setdefault(row["system"], []).append(row)
    finite = [row["value"] for row in rows if math.isfinite(row["value"])]
    span = (min(finite), max(finite)) if finite else (0.0, 1.0)
    table = Table("System", "Night", "Date", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(describe(measure).heading, justify="right")
    table.add_column("Change", justify="right")
    table.add_column(f"Nights 1 to {n_nights}")

    def merit(system: str) -> tuple[float, str]:
        value = better(measure) * by_system[system][-1]["value"]
        return (math.inf if math.isnan(value) else -value), system

    for system in sorted(by_system, key=merit):
        own = by_system[system]
        last, change = own[-1], own[-1]["value"] - own[-2]["value"] if len(own) > 1 else math.nan
        table.add_row(
            Text(system),
            str(last["night"]),
            last["date"],
            written(measure, last["value"]),
            _signed(measure, change),
            _sparkline(_standing(own, n_nights), span),
        )
    (console or _console()).print(table)


def print_system(rows: Rows, measure: str, n_nights: int, console: Console | None = None) -> None:
    """Print a row for every night that scored a system, and a plot over all nights."""
    console = console or _console()
    table = Table("Night", "Date", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(describe(measure).heading, justify="right")
    table.add_column("Change", justify="right")
    table.add_column("Run")
    table.add_column("Signature")
    before = math.nan
    for row in rows:
        change = _signed(measure, row["value"] - before)
        number = written(measure, row["value"])
        table.add_row(str(row["night"]), row["date"], number, change, row["content"][:8], Text(row["signature"]))
        before = row["value"]
    console.print(table)
    for line in plot(_standing(rows, n_nights), measure):
        console.print(Text(line), soft_wrap=True)


def plot(values: Sequence[float], measure: str) -> list[str]:
    """The lines of a plot of numbers night by night, NaN where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ["No night has a number."]
    low, high = min(finite), max(finite)
    shown = _thinned(values, _WIDTH)
    labels = [written(measure, high), written(measure, low)]
    width = max(map(len, labels))
    lines = []
    for line in range(_HEIGHT):
        label = labels[0] if line == 0 else labels[1] if line == _HEIGHT - 1 else ""
        marks = "".join("•" if _place(value, low, high, _HEIGHT) == _HEIGHT - 1 - line else " " for value in shown)
        lines.append(f"{label:>{width}} ┤{marks.rstrip()}")
    axis = f"nights 1 to {len(values)}"
    return [*lines, f"{'':>{width}} └{'─' * max(len(shown), len(axis))}", f"{'':>{width}}  {axis}"]


def _standing(rows: Rows, n_nights: int) -> list[float]:
    """The number that holds in every night."""
    scored = {row["night"]: row["value"] for row in rows}
    values, now = [], math.nan
    for night in range(1, n_nights + 1):
        now = scored.get(night, now)
        values.append(now)
    return values


def _sparkline(values: Sequence[float], span: tuple[float, float]) -> str:
    return "".join(
        _BLOCKS[_place(value, *span, len(_BLOCKS))] if math.isfinite(value) else " " for value in _thinned(values, 40)
    )


def _thinned(values: Sequence[float], width: int) -> list[float]:
    """Reduce the numbers to at most `width`, the last of every stretch."""
    if len(values) <= width:
        return list(values)
    return [values[(number + 1) * len(values) // width - 1] for number in range(width)]


def _place(value: float, low: float, high: float, steps: int) -> int:
    if not math.isfinite(value):
        return -1
    return min(int((value - low) / ((high - low) or 1.0) * steps), steps - 1)


def _signed(measure: str, change: float) -> str:
    return "" if math.isnan(change) else f"{'+' * (change > 0)}{written(measure, change)}"


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 10_000, highlight=False, markup=False, emoji=False)
