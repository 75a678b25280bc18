"""A result of term discovery in a terminal."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdask.model.discovery_measures import COUNTS, FAMILIES, SINGLE, WORDS
from swsdask.model.errors import counted
from swsdask.model.results import Result
from swsdask.render.discovery import Scores, shown

_UNBOUNDED = 10_000
_SPREAD = {"": "Mean", "_std": "Std", "_min": "Min", "_max": "Max"}


def print_discovery(result: Result, console: Console | None = None) -> None:
    """Print a table per condition, then the signature and the notes.

    One system is shown with a row per measure and its spread over folds, several with a row each and the means.
    Without `console` it is printed to stdout, in full width unless stdout is a terminal.
    """
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False, markup=False, emoji=False)
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
    """A row per measure; without spread if `whole`, which has no folds."""
    system = found.systems[0]
    spread = [""] if whole else list(_SPREAD)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("Measure")
    for end in spread:
        table.add_column("Value" if whole else _SPREAD[end], justify="right")
    for group in found.groups():
        for measure, _ in group["columns"]:
            numbers = [(measure, found.value(condition, system, measure + end)) for end in spread]
            cells = [
                shown(name, value) if at == 0 or measure not in COUNTS else ""
                for at, (name, value) in enumerate(numbers)
            ]
            table.add_row(_named(measure), *cells)
    return table


def _named(measure: str) -> str:
    """A measure in words: matching_f_score is `Matching F-score`."""
    if measure in COUNTS or measure in SINGLE:
        return {**COUNTS, **SINGLE}[measure]
    family, _, end = measure.partition("_")
    return f"{FAMILIES[family]} {WORDS[end]}"


def _of_several(found: Scores, condition: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("System", overflow="fold", max_width=40, vertical="bottom")
    for group in found.groups():
        for _, heading in group["columns"]:
            above = f"{group['heading']}\n" if group["heading"] else ""
            table.add_column(f"{above}{heading}", justify="right", no_wrap=True, vertical="bottom")
    for system in found.systems:
        numbers = (
            shown(measure, found.value(condition, system, measure))
            for group in found.groups()
            for measure, _ in group["columns"]
        )
        table.add_row(Text(system), *numbers)
    return table
