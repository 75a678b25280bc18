"""Where the work runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from swsdask.engine.executor import Executor
from swsdask.engine.open import open_executor
from swsdask.engine.progress import Progress
from swsdask.model.settings import Settings


@contextmanager
def working(
    settings: Settings, given: Executor | None, total_rows: int, progress: Progress | None
) -> Iterator[Executor]:
    """The executor that was given, which stays open, or one of the settings."""
    if given is not None:
        yield given
    else:
        with open_executor(settings.engine, total_rows, progress) as executor:
            yield executor
