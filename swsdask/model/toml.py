"""Reading TOML: whatever a file holds, it is a table or one error that says what is wrong, and in which line."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from typing import Any

_INTEGERS = range(-(1 << 63), 1 << 63)
"""Those of TOML; Python cannot print ones of thousands of digits."""


def read_toml(content: bytes) -> dict[str, Any]:
    """Return the content of a TOML file.

    Parameters
    ----------
    content : bytes
        The file. A byte order mark is passed over.

    Returns
    -------
    dict
        The tables and values, with integers of 64 bits.

    Raises
    ------
    tomllib.TOMLDecodeError
        If it is no TOML, or nested so deeply that it cannot be read.

    Examples
    --------
    >>> read_toml(b"workers = 2")
    {'workers': 2}
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise tomllib.TOMLDecodeError(f"Not text in UTF-8 (at line {line})") from None
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(f"Nested too deeply {_where(text, RecursionError)}") from None
    except ValueError:  # of int(), which limits digits
        raise tomllib.TOMLDecodeError(f"An integer of more than 64 bits {_where(text, ValueError)}") from None
    if (key := _long_integer(found)) is not None:
        raise tomllib.TOMLDecodeError(f"An integer of more than 64 bits (key {key})")
    return found


def _where(text: str, kind: type[Exception]) -> str:
    """The first line that raises this kind of error, which no line above it does, however these lines break off."""
    lines = text.split("\n")

    def raises(number: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            return False
        except kind:
            return True
        return False

    return f"(at line {bisect_left(range(len(lines)), True, key=raises)})"


def _long_integer(table: dict[str, Any]) -> str | None:
    """The key of an integer that has more than 64 bits."""
    waiting: list[tuple[str, Any]] = list(table.items())
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(key, each) for each in value]
        elif isinstance(value, int) and value not in _INTEGERS:
            return key
    return None
