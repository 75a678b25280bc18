"""A module that is imported when it is first used, for names in annotations.

`typing.get_type_hints` evaluates annotations in the module of their function. A name that is imported for type checkers
only is missing there, and one that is imported eagerly costs every start its import.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateImport:
    """A proxy of the module `name`, which is imported when an attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
