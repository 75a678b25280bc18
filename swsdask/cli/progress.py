"""Progress on stderr: a bar on a terminal, log lines elsewhere. Every command has -q and -v, which change this."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from swsdask.cli.options import QUIET, VERBOSE
from swsdask.execution.executor import Progress, Unseen
from swsdask.model.safe_text import one_line, visible, without_secrets
from swsdask.model.wording import counted


class LogLines:
    """One line when a phase begins, and at most one every ten seconds; with `verbose`, also its duration at the end.

    A line begins with the time unless stderr is a terminal.
    """

    EVERY_S = 10.0

    def __init__(self, unit: str = "rows", *, verbose: bool = False) -> None:
        self._unit = unit
        self._verbose = verbose
        self._rows = self._done = 0
        self._phase = ""
        self._began = self._said = time.monotonic()

    def begin(self, phase: str, rows: int) -> None:
        """Log the phase."""
        self.close()
        self._phase, self._rows, self._done = phase, rows, 0
        self._began = self._said = time.monotonic()
        self._say(f"{phase}: {counted(rows, self._unit)}" if rows else phase)

    def advance(self, rows: int) -> None:
        """Log rows done, rows/s and time left, at most every ten seconds."""
        self._done += rows
        now = time.monotonic()
        if now - self._said >= self.EVERY_S:
            self._said = now
            rate = self._done / (now - self._began)
            of = f"/{self._rows:,}" if self._rows else ""
            left = f", {(self._rows - self._done) / rate:.0f} s left" if self._rows and rate else ""
            self._say(f"{self._phase}: {self._done:,}{of} {self._unit}, {_speed(rate, self._unit)}{left}")

    def close(self) -> None:
        """Log how long the last phase took."""
        if self._verbose and self._phase:
            self._say(f"{self._phase}: {time.monotonic() - self._began:.1f} s")

    def _say(self, line: str) -> None:
        stamp = "" if sys.stderr.isatty() else f"{datetime.now(UTC).isoformat(timespec='seconds')} "
        print(f"{stamp}swsdask: {_plain(line)}", file=sys.stderr, flush=True)  # noqa: T201


class _Messages(logging.Handler):
    """Messages while a bar is shown: warnings above it; the progress of compiling kernels, once per machine, in it."""

    def __init__(self, bar: Bar) -> None:
        super().__init__()
        self._bar = bar

    def emit(self, record: logging.LogRecord) -> None:
        self._bar.say(record.getMessage(), lasting=record.levelno >= logging.WARNING)


class Bar:
    """A bar of rich with rows/s and the time left. It moves the cursor, so its texts are made plain beforehand."""

    def __init__(self, unit: str = "rows") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._unit = unit
        self._phase = ""
        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(file=getattr(sys.stderr, "bare", sys.stderr)),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._bar.start()
        self._task = self._bar.add_task("", rate="", total=None)
        self._messages = _Messages(self)
        self._logger = logging.getLogger("swsdask")
        self._level = self._logger.level
        self._logger.addHandler(self._messages)
        self._logger.setLevel(logging.DEBUG)

    def begin(self, phase: str, rows: int) -> None:
        """Start the bar anew."""
        self._phase = _plain(phase)
        self._bar.reset(self._task, total=rows or None, description=self._phase, rate="")

    def say(self, message: str, *, lasting: bool) -> None:
        """Show a message in place of the phase, or above the bar, where it stays."""
        message = _plain(message)
        if lasting:
            self._bar.console.print(message, markup=False, highlight=False)
        else:
            self._bar.update(self._task, description=message)

    def advance(self, rows: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, description=self._phase)
        self._bar.advance(self._task, rows)
        speed = self._bar.tasks[0].speed
        self._bar.update(self._task, rate=_speed(speed, self._unit) if speed else "")

    def close(self) -> None:
        """Remove the bar."""
        self._logger.removeHandler(self._messages)
        self._logger.setLevel(self._level)
        self._bar.stop()


def _plain(text: str) -> str:
    """Return a text in one line, without control characters and secrets."""
    return one_line(visible(without_secrets(text)))


def _speed(rate: float, unit: str) -> str:
    return f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s"


@contextmanager
def progress(unit: str = "rows") -> Iterator[Progress]:
    """Provide a bar if stderr is a terminal, otherwise log lines; `unit` is counted. -q: nothing; -v: log lines."""
    context = click.get_current_context(silent=True)
    quiet, verbose = (context is not None and context.meta.get(key, False) for key in (QUIET, VERBOSE))
    if quiet:
        yield Unseen()
        return
    shown = Bar(unit) if sys.stderr.isatty() and not verbose else LogLines(unit, verbose=verbose)
    try:
        yield shown
    finally:
        shown.close()
