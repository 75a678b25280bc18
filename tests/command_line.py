"""The end of a command that a test called with the fixture `swsdask`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Outcome:
    code: int
    out: str
    err: str


def long_form(rows: Sequence[dict[str, object]]) -> dict[str, object]:
    """measure -> value of the numbers over all queries and conditions."""
    return {str(r["measure"]): r["value"] for r in rows if r["query"] is None and r["condition"] == "all"}
