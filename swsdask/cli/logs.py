"""Logs of long-running commands: lines for people, or JSON for machines; always on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FIELDS = ("evaluation", "system", "phase", "rows", "seconds")
"""What a line tells beside time, level and message, where it is known."""


def log_options(command: Command) -> Command:
    """--log-format, -q, -v."""
    command = click.option("-v", "--verbose", is_flag=True, help="Log every phase of the work.")(command)
    command = click.option("-q", "--quiet", is_flag=True, help="Log warnings and errors only.")(command)
    told = "Lines for people (text), or an object per line (json)."
    return click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help=told)(command)


def configure(log_format: str, quiet: bool, verbose: bool) -> None:
    """Send what swsdask logs to stderr."""
    handler = _Stderr()
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logger = logging.getLogger("swsdask")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)


class LoggedPhases:
    """Progress as log lines of level DEBUG: one for each phase that ended, with its rows and seconds."""

    def __init__(self, evaluation: str) -> None:
        self._evaluation = evaluation
        self._phase: tuple[str, int] | None = None
        self._began = 0.0

    def begin(self, phase: str, rows: int) -> None:
        """Log the phase before, and begin one."""
        self.end()
        self._phase, self._began = (phase, rows), time.monotonic()

    def advance(self, rows: int) -> None:
        """Nothing: phases are logged when they end."""

    def end(self) -> None:
        """Log the last phase."""
        if self._phase is not None:
            phase, rows = self._phase
            told = {"evaluation": self._evaluation, "phase": phase, "seconds": round(time.monotonic() - self._began, 3)}
            logging.getLogger("swsdask.nightly").debug(phase, extra={**told, **({"rows": rows} if rows else {})})
            self._phase = None


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        said = {"time": _time(record), "level": record.levelname.lower(), **told, "message": record.getMessage()}
        return json.dumps(said, ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        where = ", ".join(str(getattr(record, name)) for name in ("evaluation", "system") if hasattr(record, name))
        stamp = "" if sys.stderr.isatty() else f"{_time(record)} "
        told = f"{record.getMessage()}" + (f" ({record.seconds:.1f} s)" if hasattr(record, "seconds") else "")
        return f"{stamp}swsdask: {where + ': ' if where else ''}{told}"


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
