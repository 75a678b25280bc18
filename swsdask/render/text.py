"""The leaderboard in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from swsdask.model.leaderboard import FACTS, LEADERBOARD, Board, board
from swsdask.model.measures import describe, written
from swsdask.model.results import Result

_UNBOUNDED = 10_000


def print_leaderboard(result: Result, console: Console | None = None) -> None:
    """Print one table per condition, the best system first, then the signature and the notes.

    The columns are the requested measures, or, if every measure was requested, those of `tables.LEADERBOARD`, and the
    other measures are named. A table that is wider than the terminal continues below. Without `console` it is printed
    to stdout, in full width unless stdout is a terminal.
    """
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False, markup=False, emoji=False)
    found = board(result.table, result.asked)
    if result.asked is not None:
        groups = [[measure] for measure in found.measures]
    else:
        groups = [[measure for measure in group if measure in found.measures] for group in LEADERBOARD]
    for condition in found.conditions:
        _print_condition(console, found, condition, groups)
    _print_line(console, "Signature", str(result.manifest.get("signature", "")))
    columns = {measure for group in groups for measure in group} | set(FACTS)
    _print_line(console, "Also scored", ", ".join(m for m in found.measures if m not in columns))
    for note in result.notes:
        _print_line(console, "Note", note)


def _print_condition(console: Console, found: Board, condition: str, groups: Sequence[Sequence[str]]) -> None:
    systems = found.ranked(condition)
    facts = (f"  {fact}" for fact in found.facts(condition))
    console.print(Text.assemble((condition, "bold"), *facts))
    table = _table(found, condition, systems, [])
    columns: list[str] = []
    for group in groups:
        wider = _table(found, condition, systems, [*columns, *group])
        if (
            columns
            and Measurement.get(console, console.options.update(width=_UNBOUNDED), wider).maximum > console.width
        ):
            console.print(table)
            columns = []
            wider = _table(found, condition, systems, group)
        table = wider
        columns.extend(group)
    console.print(table)
    console.print()


def _table(found: Board, condition: str, systems: Sequence[str], columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("System", overflow="fold", max_width=40, vertical="bottom")
    for measure in columns:
        heading = describe(measure).heading.replace(" ", "\n")
        table.add_column(heading, justify="right", style="bold" if measure == "atwv" else "", no_wrap=True)
    for system in systems:
        numbers = (written(measure, found.value(condition, system, measure)) for measure in columns)
        table.add_row(Text(system), *numbers)
    return table


def _print_line(console: Console, label: str, text: str) -> None:
    if text:
        console.print(Text.assemble((f"{label}: ", "bold"), text), soft_wrap=not console.is_terminal)
