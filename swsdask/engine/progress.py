"""What work reports to while it goes on."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A phase of so many rows begins; rows of it are done."""

    def begin(self, phase: str, rows: int) -> None:
        """A new phase."""
        ...

    def advance(self, rows: int) -> None:
        """So many more rows of the phase are done."""
        ...


class Unseen:
    """Progress that nobody looks at."""

    def begin(self, phase: str, rows: int) -> None:
        """Nothing."""

    def advance(self, rows: int) -> None:
        """Nothing."""
