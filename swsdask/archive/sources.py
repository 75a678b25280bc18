"""Where the rows of runs come from, and which of them may be one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from swsdask.errors import Problems
from swsdask.model.runs import RunPiece


class RunSource(Protocol):
    """A file with runs, or a part of one. Picklable."""

    @property
    def file(self) -> str:
        """The path or URL as the user gave it."""
        ...

    @property
    def system(self) -> str | None:
        """The name of the system, where the user gave one; else the file says it."""
        ...

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """The rows, in pieces; what is wrong with them is added to `problems`."""
        ...

    def line_of(self, system: str, row: int) -> int | None:
        """The line in the file of one of a system's rows here, counted from 0, where that can be told."""
        ...


def note_claims(claims: Mapping[str, Sequence[RunSource]], problems: Problems) -> None:
    """Add a problem for each system that two files say they are of.

    `claims` are the sources in which rows of a system were found. Parts of one file belong together, and so do files
    that the user gave the same name; two files that merely carry the same name could be two runs, or one run twice.
    """
    for system, sources in sorted(claims.items()):
        files = list(dict.fromkeys(source.file for source in sources))
        if len(files) > 1 and any(source.system is None for source in sources):
            for file in files[1:]:
                found = f"a run of {system!r}, as in {files[0]}"
                remedy = "Leave one out, or give each as NAME=FILE (in Python {name: file})."
                problems.add(file, None, "a run of another system", found, remedy)
