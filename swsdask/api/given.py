"""What callers give in many forms, in one."""

from __future__ import annotations

import os
from collections.abc import Iterable

Location = str | os.PathLike[str]
"""A path or an fsspec URL."""


def as_names(given: str | Iterable[str] | None) -> list[str] | None:
    """One name or several as a list; None as it is."""
    return [given] if isinstance(given, str) else None if given is None else list(given)


def locations(given: Location | Iterable[Location]) -> list[str]:
    """One place or several as strings."""
    return [os.fspath(given)] if isinstance(given, str | os.PathLike) else [os.fspath(place) for place in given]
