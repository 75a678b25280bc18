"""Spoken term detection scoring: the official numbers, exactly, for one run or for an archive of thousands.

Examples
--------
The examples of this package read the files that ``swsdask demo --out demo --hours 1 --queries 20`` writes.

>>> import swsdask as sws
>>> evaluation = sws.open("demo/files", preset="sws2013")
>>> result = sws.score(evaluation, ["atwv", "mtwv"], runs="demo/files/runs")
>>> result.scores[["system", "measure", "value"]].head(2)
       system measure     value
0  calibrated    atwv  0.503781
1  calibrated    mtwv  0.552503
"""

from __future__ import annotations

from ast import ImportFrom, parse
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.3.0.dev0"

_STUB = parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))

_MODULES = {
    public.name: statement.module
    for statement in _STUB.body
    if isinstance(statement, ImportFrom)
    for public in statement.names
}
"""The module of every public name, from the stub beside this file, which type checkers read too."""

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used: kernels and Dask take long to load."""
    if name not in _MODULES:
        raise AttributeError(f"module 'swsdask' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
