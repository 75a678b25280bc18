"""Errors that users see: each says where, what was expected, what was found and what to do.

`exit_code` of a class is that of the command line: 1 a fault of swsdask, 2 bad input or settings, 3 a gate
failed, 4 the cluster failed (the work can be resumed). `Problems` collects what is wrong with a file before one error
is raised; `counted` writes numbers of things in sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from swsdask.model.shown_text import one_line, without_secrets

NO_MEMORY = "Give the process more memory, or set a smaller rows_per_task or fewer workers."
"""What to do where memory is not enough."""

SHOWN = 10
"""How many problems an error message spells out; the others are counted."""

LISTED = 20
"""How many ids a note spells out; the others are counted."""

FEW = 3
"""How many names suffice to show what a sentence is about."""

LONGEST = 600
"""How many characters of a value a message holds."""

MOST_KEPT = 1000
"""The number of problems that an error keeps by default."""


class SwsdaskError(Exception):
    """The base of every error that swsdask raises on purpose.

    Attributes
    ----------
    exit_code : int
        The exit code of the command line.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, *said: object) -> None:
        super().__init__(*(without_secrets(each) if isinstance(each, str) else each for each in said))


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input.

    `file` is the path or URL as the user gave it, `line` counts from 1 (None where lines have no meaning). Secrets are
    struck out (`model.shown_text`). `str` of it is one line.
    """

    file: str
    line: int | None
    expected: str
    found: str
    remedy: str

    def __post_init__(self) -> None:
        for name in ("file", "found"):
            object.__setattr__(self, name, without_secrets(getattr(self, name)))

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return one_line(f"{where}: expected {cut(self.expected)}; found {cut(self.found)}. {cut(self.remedy)}")


def cut(text: str) -> str:
    """Text without the middle of it where it is too long to read."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class InputError(SwsdaskError):
    """An input file or table is not what it must be.

    Attributes
    ----------
    problems : tuple of Problem
        The problems in file order, each with its file, line, what was expected, what was found, and the remedy.
    total : int
        The number of problems, of which `problems` may keep only the first.

    Examples
    --------
    >>> import swsdask as sws
    >>> sws.open("nowhere")
    Traceback (most recent call last):
    swsdask.model.errors.InputError: nowhere: expected a file or folder; found nothing there. Check the path.
    """

    exit_code = 2

    def __init__(self, *problems: Problem, total: int | None = None) -> None:
        self.problems = problems
        self.total = len(problems) if total is None else total
        super().__init__(str(self))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_input_error, (self.problems, self.total)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        more = self.total - len(lines)
        if more > 0:
            lines.append(f"... and {more} more; `swsdask validate` lists them all")
        return "\n".join(lines)


def _rebuild_input_error(problems: tuple[Problem, ...], total: int) -> InputError:
    return InputError(*problems, total=total)


class SettingsError(SwsdaskError):
    """A setting, preset or argument is unknown or malformed, or contradicts another.

    Examples
    --------
    >>> import swsdask as sws
    >>> sws.open("demo/files", settings={"evaluation": {"tolerance": 1}})
    Traceback (most recent call last):
    swsdask.model.errors.SettingsError: setting evaluation.tolerance: unknown key. Nearest valid key: tolerance_s.
    """

    exit_code = 2


class ArchiveError(SwsdaskError):
    """An archive cannot be read or written as requested: no archive there, a run of that name differs, a lost race."""

    exit_code = 2

    def __str__(self) -> str:
        return one_line(super().__str__())


class ExecutionError(SwsdaskError):
    """A task failed: says which cell, system and file; the cause is chained."""


class ClusterError(SwsdaskError):
    """The cluster could not be reached or lost its workers. What was done is not lost: run the command again."""

    exit_code = 4


class GateError(SwsdaskError):
    """A system is worse than a gate of the command line allows."""

    exit_code = 3


class InsecureConnection(UserWarning):
    """A scheduler is reached over a network without encryption."""


class Problems:
    """A collector of problems: readers go on after a problem so that all of them can be reported.

    At most `limit` are kept; the others are counted.
    """

    def __init__(self, limit: int = MOST_KEPT) -> None:
        self.limit = limit
        self.total = 0
        self._kept: list[Problem] = []

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._kept)

    def __len__(self) -> int:
        return self.total

    def add(self, file: str, line: int | None, expected: str, found: str, remedy: str) -> None:
        """Note one problem."""
        self.total += 1
        if len(self._kept) < self.limit:
            self._kept.append(Problem(file, line, expected, found, remedy))

    def extend(self, others: Problems) -> None:
        """Note the problems of another collector."""
        self.total += others.total
        self._kept += others._kept[: max(0, self.limit - len(self._kept))]

    def raise_if_any(self) -> None:
        """Raise `InputError` with all problems noted so far, if there are any."""
        if self.total:
            raise InputError(*self._kept, total=self.total)


_PLURAL = re.compile(r"(ies|(?<=ss)es|s)\b")


def listed(ids: Sequence[str], most: int = LISTED) -> str:
    """The first ids, and how many more there are."""
    more = len(ids) - most
    return ", ".join(ids[:most]) + (f" and {more} more" if more > 0 else "")


def counted(number: float, things: str, form: str = ",") -> str:
    """`3 queries without targets`; where the number prints as 1, the first plural of `things` is made singular.

    `things` has its plural in -s, -ies or -sses.
    """
    printed = format(number, form)
    if printed == "1":
        things = _PLURAL.sub(lambda plural: "y" if plural[1] == "ies" else "", things, count=1)
    return f"{printed} {things}"
