"""Results in a terminal: the leaderboard, and the table of term discovery."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from swsdask.model.discovery import COUNTS, FAMILIES, SINGLE, WORDS
from swsdask.model.leaderboard import FACTS, MOST_TABLES, Leaderboard, importance
from swsdask.model.measures import describe, written
from swsdask.model.results import Result
from swsdask.model.wording import counted
from swsdask.render.console import FULL_WIDTH, standard_console, standard_table
from swsdask.render.discovery import Scores, as_printed

LEAST_SHOWN = 5
"""The number of systems that are shown in any terminal, however low."""

_AROUND = 8
"""Lines of a screen beside those of systems, for each table: headings, a condition, the files that were written."""

_WIDEST_NAME = 40
"""Columns of the terminal, beyond which the name of a system or condition is folded."""


class _Lines(NamedTuple):
    """The lines of a table below a `title`: the name of each, and the condition and system whose numbers it has."""

    title: Text
    heading: str
    numbers: dict[str, tuple[str, str]]

    def first(self, number: int | None) -> _Lines:
        """Return the first lines."""
        return self._replace(numbers=dict(islice(self.numbers.items(), number)))


def print_leaderboard(
    result: Result, console: Console | None = None, top: int | None = None, *, wide: bool = False
) -> None:
    """Print the signature and the notes, then one table per condition, the best system first.

    If there is only one system, one table has a line per condition.
    Of each condition the first `top` systems are shown; None: as many as a screen of the terminal has room for, of the
    first `MOST_TABLES` conditions, or all if it is no terminal. The columns are the requested measures, or, if every
    measure was requested, those of `model.leaderboard.columns_of`, and the other measures are named. Where the terminal
    is too narrow, requested measures continue below, and of the others the least important columns are left out and
    named. Without `console` it is printed to stdout, in full width unless stdout is a terminal or the variable COLUMNS
    is set; `wide`: in any case.
    """
    if console is None:
        console = standard_console(by_columns=True, wide=wide)
    found = result.numbers
    by_condition = found.of_one_system
    if console.is_terminal and top is None:
        found = found.of_first(max(MOST_TABLES, console.height - _AROUND) if by_condition else MOST_TABLES)
    tables = [_conditions_of(found)] if by_condition else [_systems_in(found, each) for each in found.conditions]
    groups: Sequence[Sequence[str]] = found.groups
    if by_condition:
        requested = {measure for group in groups for measure in group}
        groups = [[each for each in FACTS if each in found.measures and each not in requested], *groups]
    narrow: list[list[str]] = []
    if result.requested is None:
        groups, narrow = _fitting(console, found, tables, groups)
    _print_line(console, "Signature", str(result.manifest.get("signature", "")))
    columns = {measure for group in (*groups, *narrow) for measure in group} | set(FACTS)
    _print_line(console, "Also scored", ", ".join(m for m in found.measures if m not in columns))
    for note in result.notes:
        _print_line(console, "Note", note)
    left_out = ", ".join(measure for group in narrow for measure in group)
    _print_line(console, "Not shown, the terminal is too narrow (--wide shows them)", left_out)
    room = console.height // max(1, len(tables)) if console.is_terminal and not by_condition else None
    for lines in tables:
        console.print()
        _print_table(console, found, lines, groups, top, room)
    if len(found.conditions) < len(result.numbers.conditions):
        n_conditions = counted(len(result.numbers.conditions), "conditions")
        console.print(f"\n{len(found.conditions)} of {n_conditions}; --top {len(found.systems)} shows all.")


def _systems_in(found: Leaderboard, condition: str) -> _Lines:
    facts = (f"  {fact}" for fact in found.facts(condition))
    ranked = {system: (condition, system) for system in found.ranked(condition)}
    return _Lines(Text.assemble((condition, "bold"), *facts), "System", ranked)


def _conditions_of(found: Leaderboard) -> _Lines:
    (system,) = found.systems
    there = {condition: (condition, system) for condition in found.conditions if found.ranked(condition)}
    return _Lines(Text(system, "bold"), "Condition", there)


def _fitting(
    console: Console, found: Leaderboard, tables: Sequence[_Lines], groups: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """The groups of columns that fit into every table, and the others: less important ones go first."""
    kept = [list(group) for group in groups]
    while len(kept) > 1 and any(len(_parts(console, found, lines, kept)) > 1 for lines in tables):
        kept.remove(max(kept, key=importance))
    return kept, [list(group) for group in groups if list(group) not in kept]


def _print_table(
    console: Console,
    found: Leaderboard,
    lines: _Lines,
    groups: Sequence[Sequence[str]],
    top: int | None,
    room: int | None,
) -> None:
    """Print lines, in several tables if not all columns fit: `top` systems, or as many as there is `room` for."""
    console.print(lines.title)
    parts = _parts(console, found, lines, groups)
    if top is None and room is not None:
        top = max(LEAST_SHOWN, room // max(1, len(parts)) - _AROUND)
    shown = lines if len(found.systems) == 1 else lines.first(top)
    for columns in parts:
        console.print(_table(found, shown, columns, unbounded=console.width >= FULL_WIDTH))
    if len(shown.numbers) < len(lines.numbers):
        n_systems = counted(len(lines.numbers), "systems")
        console.print(f"{len(shown.numbers)} of {n_systems}; --top {len(lines.numbers)} shows all.")


def _parts(console: Console, found: Leaderboard, lines: _Lines, groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the columns of the tables that `groups` need: groups side by side as far as the console is wide."""
    if console.width >= FULL_WIDTH:  # To measure the tables would take longer than to print them.
        return [[measure for group in groups for measure in group]]
    parts: list[list[str]] = [[]]
    for group in groups:
        wider = _table(found, lines, [*parts[-1], *group])
        width = Measurement.get(console, console.options.update(width=FULL_WIDTH), wider).maximum
        if parts[-1] and width > console.width:
            parts.append([*group])
        else:
            parts[-1] += group
    return parts


def _table(found: Leaderboard, lines: _Lines, columns: Sequence[str], *, unbounded: bool = False) -> Table:
    """Return a table of some columns; `unbounded` if there is room for all columns."""
    table = standard_table()
    table.add_column(lines.heading, overflow="fold", max_width=_WIDEST_NAME, vertical="bottom")
    for measure in columns:
        heading = describe(measure).heading.replace(" ", "\n")
        table.add_column(heading, justify="right", style="bold" if measure == "atwv" else "", no_wrap=True)
    rows = [(name, *(written(m, found.value(*of, m)) for m in columns)) for name, of in lines.numbers.items()]
    if unbounded and all(cell_len(name) <= _WIDEST_NAME and "\n" not in name for name in lines.numbers):
        # One row of many lines looks the same, and takes rich a third of the time.
        rows = [tuple("\n".join(column) for column in zip(*rows, strict=True))] if rows else []
    for name, *numbers in rows:
        table.add_row(Text(name), *numbers)
    return table


def _print_line(console: Console, label: str, text: str) -> None:
    if text:
        console.print(Text.assemble((f"{label}: ", "bold"), text), soft_wrap=not console.is_terminal)


_SPREAD = {"": "Mean", "_std": "Std", "_min": "Min", "_max": "Max"}


def print_discovery(result: Result, console: Console | None = None) -> None:
    """Print a table per condition, then the signature and the notes.

    One system is shown with a row per measure and its spread over folds, several with a row each and the means.
    Without `console` it is printed to stdout, in full width unless stdout is a terminal.
    """
    if console is None:
        console = standard_console()
    found = Scores.of(result.table)
    for condition in found.conditions:
        n_folds = len(result.manifest["folds"][condition]["names"])
        whole = result.manifest["definition"] == "tdev2"
        folds = "" if whole else f"  {counted(n_folds, 'folds')}"
        only = f"  {found.systems[0]}" if len(found.systems) == 1 else ""
        console.print(Text.assemble((condition, "bold"), only, folds))
        console.print(_of_one(found, condition, whole) if only else _of_several(found, condition))
        console.print()
    for label, text in [("Signature", str(result.manifest.get("signature", ""))), *(("Note", n) for n in result.notes)]:
        console.print(Text.assemble((f"{label}: ", "bold"), text), soft_wrap=not console.is_terminal)


def _of_one(found: Scores, condition: str, whole: bool) -> Table:
    """Return a row per measure; without spread if `whole`, which has no folds."""
    system = found.systems[0]
    spread = [""] if whole else list(_SPREAD)
    table = standard_table(("Measure", *("Value" if whole else _SPREAD[end] for end in spread)), ("Measure",))
    for group in found.groups():
        for measure, _ in group["columns"]:
            numbers = [(measure, found.value(condition, system, measure + end)) for end in spread]
            cells = [
                as_printed(name, value) if at == 0 or measure not in COUNTS else ""
                for at, (name, value) in enumerate(numbers)
            ]
            table.add_row(_named(measure), *cells)
    return table


def _named(measure: str) -> str:
    """Return a measure in words: matching_f_score is `Matching F-score`."""
    if measure in COUNTS or measure in SINGLE:
        return {**COUNTS, **SINGLE}[measure]
    family, _, end = measure.partition("_")
    return f"{FAMILIES[family]} {WORDS[end]}"


def _of_several(found: Scores, condition: str) -> Table:
    table = standard_table()
    table.add_column("System", overflow="fold", max_width=40, vertical="bottom")
    for group in found.groups():
        for _, heading in group["columns"]:
            above = f"{group['heading']}\n" if group["heading"] else ""
            table.add_column(f"{above}{heading}", justify="right", no_wrap=True, vertical="bottom")
    for system in found.systems:
        numbers = (
            as_printed(measure, found.value(condition, system, measure))
            for group in found.groups()
            for measure, _ in group["columns"]
        )
        table.add_row(Text(system), *numbers)
    return table
