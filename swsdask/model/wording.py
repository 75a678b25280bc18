"""Wording of messages: numbers of things, lists of names, and the names that are nearest to an unknown one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

LISTED = 20
"""The number of ids that a note spells out; the others are counted."""

FEW = 3
"""The number of names that a sentence gives as examples."""

LONGEST = 600
"""The number of characters of a value that a message holds."""


def cut(text: str) -> str:
    """Return the text, without its middle if it is too long to read."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


def listed(ids: Sequence[str], most: int = LISTED) -> str:
    """Return the first ids, and how many more there are."""
    more = len(ids) - most
    return ", ".join(ids[:most]) + (f" and {more} more" if more > 0 else "")


def choices(known: Iterable[str], instead_of: str) -> str:
    """Return the known names; if there are more than `LISTED`, those nearest to the given one, and how many more."""
    names = list(known)
    if len(names) <= LISTED:
        return ", ".join(names) or "none"
    near = get_close_matches(instead_of, names, n=FEW, cutoff=0.0)
    return f"{', '.join(near)} and {len(names) - len(near):,} more"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar to the given one, "" if there is none."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.0)), "")


_PLURAL = re.compile(r"(ies|(?<=ss)es|s)\b")


def counted(number: float, things: str, form: str = ",") -> str:
    """`3 queries without targets`; where the number prints as 1, the first plural of `things` is made singular.

    `things` has its plural in -s, -ies or -sses.
    """
    printed = format(number, form)
    if printed == "1":
        things = _PLURAL.sub(lambda plural: "y" if plural[1] == "ies" else "", things, count=1)
    return f"{printed} {things}"
