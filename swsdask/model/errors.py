"""Errors that users see: each says where, what was expected, what was found and what to do.

`exit_code` of a class is the exit code of the command line: 1 a fault of swsdask, 2 bad input or settings, 3 a gate
failed, 4 the cluster failed (the work can be resumed). `Problems` collects the faults of a file before one error
is raised. Their texts are safe to show, see `model.safe_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import ClassVar, SupportsIndex

from swsdask.model.safe_text import one_line, without_secrets
from swsdask.model.wording import cut

SHOWN = 10
"""The number of problems that an error message spells out; the others are counted."""

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
    """A fault of an input.

    `file` is the path or URL as the user gave it, `line` counts from 1 (None where lines have no meaning). A
    `transient` problem is a failure to reach the file, not a fault of its content: reading it again may succeed.
    Secrets are struck out (`model.safe_text`). Its `str` is one line.
    """

    file: str
    line: int | None
    expected: str
    found: str
    remedy: str
    transient: bool = False

    def __post_init__(self) -> None:
        for name in ("file", "found"):
            object.__setattr__(self, name, without_secrets(getattr(self, name)))

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return one_line(f"{where}: expected {cut(self.expected)}; found {cut(self.found)}. {cut(self.remedy)}")


class InputError(SwsdaskError):
    """An input file or table is not valid.

    Attributes
    ----------
    problems : tuple of Problem
        The problems in file order, each with its file, line, what was expected, what was found, and the remedy.
    total : int
        The number of all problems; `problems` may keep only the first of them.

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

    @property
    def transient(self) -> bool:
        """Whether a file could not be reached, so that reading it again may succeed."""
        return any(problem.transient for problem in self.problems)

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


class StoreError(SwsdaskError):
    """A store does not let a file of an archive be read now: no permission, no connection. The file may be whole."""

    exit_code = 2

    def __str__(self) -> str:
        return one_line(super().__str__())


class ExecutionError(SwsdaskError):
    """A task failed: says which cell, system and file; the cause is chained."""


class ResourceError(SwsdaskError):
    """Too little memory, or too few threads or open files, for this process or a worker: says what to do."""

    exit_code = 2


class ClusterError(SwsdaskError):
    """The cluster could not be reached or lost its workers. Completed work is kept: run the command again."""

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
        """Note one problem, by its parts."""
        self.note(Problem(file, line, expected, found, remedy))

    def note(self, problem: Problem) -> None:
        """Note one problem."""
        self.total += 1
        if len(self._kept) < self.limit:
            self._kept.append(problem)

    def extend(self, others: Problems) -> None:
        """Note the problems of another collector."""
        self.total += others.total
        self._kept += others._kept[: max(0, self.limit - len(self._kept))]

    def raise_if_any(self) -> None:
        """Raise `InputError` with all problems noted so far, if there are any."""
        if self.total:
            raise InputError(*self._kept, total=self.total)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raise `SettingsError` for an argument that is not one of the known values."""
    if value not in known:
        raise SettingsError(f"{name} is {cut(repr(value))}; expected one of {', '.join(known)}.")


def check_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return an argument as an integer.

    Raises `SettingsError` for one that is no integer, less than `least`, or more than `most`.
    """
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        whole = index(value)
        if least <= whole and (most is None or whole <= most):
            return whole
    those = f"{least} or more" if most is None else f"from {least} to {most:,}"
    raise SettingsError(f"{name} is {cut(repr(value))}; expected a whole number, {those}.")
