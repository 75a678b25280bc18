"""The console that tables are printed to."""

from __future__ import annotations

import os
import shutil
import sys

from rich.console import Console

FULL_WIDTH = 10_000
_LEAST_WIDTH = 20


class _ResultConsole(Console):
    def on_broken_pipe(self) -> None:
        """Leave to the command line that nobody reads on: Rich would exit with the code of an internal error."""
        raise BrokenPipeError


def standard_console(full_width: int = FULL_WIDTH, *, wide: bool = False) -> Console:
    """A console for stdout, as wide as the terminal, or as the variable COLUMNS says.

    Its width is `full_width` where stdout is no terminal and COLUMNS says nothing or 0, and in any case if `wide`.
    """
    columns = os.environ.get("COLUMNS", "")
    bounded = (sys.stdout.isatty() or columns.strip("0").isdigit()) and not wide
    width = max(_LEAST_WIDTH, shutil.get_terminal_size().columns) if bounded else full_width
    return _ResultConsole(width=width, highlight=False, markup=False, emoji=False)
