"""How faults that are raised deep inside become problems with a place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace

from swsdask.errors import InputError, Problems
from swsdask.formats.run_values import FormatError


@contextmanager
def noted(problems: Problems) -> Iterator[None]:
    """Add to `problems` what an `InputError` raised within says, and go on behind."""
    try:
        yield
    except InputError as error:
        for problem in error.problems:
            problems.add(*astuple(problem))
        problems.total += error.total - len(error.problems)


@contextmanager
def noted_at(problems: Problems, file: str, line: int) -> Iterator[None]:
    """Add to `problems` what a `FormatError` raised within says, and go on behind."""
    try:
        yield
    except FormatError as error:
        problems.add(file, line, error.expected, error.found, error.remedy)


def reached(error: InputError, line: int) -> InputError:
    """The same error, told at the line that was reached wherever it has none."""
    return InputError(*(replace(problem, line=problem.line or line) for problem in error.problems))
