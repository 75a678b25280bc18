"""`python -m swsdask`: the command line."""

from __future__ import annotations

from swsdask.cli import console

console()
