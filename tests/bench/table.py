"""The rows that benches make, and the table they become."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HEADER = ("bench", "what", "ours", "over", "theirs", "ratio", "target", "", "peak", "peak of theirs")


@dataclass(frozen=True)
class Row:
    """One comparison. `ours` and `theirs` are amounts of `unit`; `ratio` is what the target is about.

    `least` and `most` are the target (None: nothing is asked). Peaks are resident memory in bytes, 0 where they say
    nothing.
    """

    what: str
    ours: float
    over: str
    theirs: float
    ratio: float
    unit: str = "s"
    least: float | None = None
    most: float | None = None
    peak: int = 0
    peak_of_theirs: int = 0

    @property
    def missed(self) -> bool:
        """Whether the ratio is not what it should be."""
        return (self.least is not None and not self.ratio >= self.least) or (
            self.most is not None and not self.ratio <= self.most
        )

    def cells(self, bench: str) -> tuple[str, ...]:
        """The row as text, in the order of `HEADER`."""
        least = "" if self.least is None else f">= {self.least:g}"
        most = "" if self.most is None else f"<= {self.most:g}"
        target = f"{least} {most}".strip()
        verdict = "" if not target else "MISSED" if self.missed else "met"
        return (
            bench,
            self.what,
            _amount(self.ours, self.unit),
            self.over,
            _amount(self.theirs, self.unit),
            "" if math.isnan(self.ratio) else f"{self.ratio:.3g}",
            target,
            verdict,
            _memory(self.peak),
            _memory(self.peak_of_theirs),
        )


def _amount(value: float, unit: str) -> str:
    if math.isnan(value):
        return ""
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"


def _memory(peak: int) -> str:
    return f"{peak / 2**20:,.0f} MiB" if peak else ""


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with columns of even width."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]
    texts = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)
