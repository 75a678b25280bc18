"""Numbers of things, in sentences."""

from __future__ import annotations

import re

_PLURAL = re.compile(r"(ies|(?<=ss)es|s)\b")


def counted(number: float, things: str, form: str = ",") -> str:
    """`3 queries without targets`; where the number prints as 1, the first plural of `things` is made singular.

    `things` has its plural in -s, -ies or -sses.
    """
    printed = format(number, form)
    if printed == "1":
        things = _PLURAL.sub(lambda plural: "y" if plural[1] == "ies" else "", things, count=1)
    return f"{printed} {things}"
