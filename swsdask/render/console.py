"""The console that tables are printed to, and their form."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable

from rich import box
from rich.align import VerticalAlignMethod
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.table import Table

FULL_WIDTH = 10_000
_LEAST_WIDTH = 20


class _ResultConsole(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line handle a closed pipe: Rich would exit with the code of an internal error."""
        raise BrokenPipeError


def standard_console(full_width: int = FULL_WIDTH, *, by_columns: bool = False, wide: bool = False) -> Console:
    """A console for stdout, as wide as the terminal; if stdout is not a terminal, or if `wide`, `full_width` wide.

    `by_columns`: if stdout is not a terminal, the environment variable COLUMNS gives the width, if it is above 0.
    """
    said = by_columns and os.environ.get("COLUMNS", "").strip("0").isdigit()
    bounded = (sys.stdout.isatty() or said) and not wide
    width = max(_LEAST_WIDTH, shutil.get_terminal_size().columns) if bounded else full_width
    return _ResultConsole(width=width, highlight=False, markup=False, emoji=False)


def standard_table(
    headings: Iterable[str] = (),
    left: Collection[str] = (),
    *,
    edge: bool = False,
    overflow: OverflowMethod = "ellipsis",
    vertical: VerticalAlignMethod = "top",
) -> Table:
    """Return a table with a line below its headings, and empty lines around it if it has an `edge`.

    Columns are right-aligned, those of the headings in `left` left-aligned.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=edge)
    for heading in headings:
        justify: JustifyMethod = "left" if heading in left else "right"
        table.add_column(heading, justify=justify, overflow=overflow, vertical=vertical)
    return table
