"""The commands `nightly` and `history`. Log messages go to stderr as text or JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TypeVar

import click

from swsdask.cli import describe_unforeseen, traceback_if_asked
from swsdask.cli.options import FiniteRange
from swsdask.cli.outputs import records_format_option
from swsdask.ending import ended_by
from swsdask.model.errors import SettingsError, SwsdaskError
from swsdask.model.safe_text import one_line
from swsdask.model.wording import choices

Command = TypeVar("Command", bound=Callable[..., object])

FIELDS = ("evaluation", "system", "phase", "rows", "seconds")
"""The fields of a log line besides time, level and message, if they are known."""


def log_options(command: Command) -> Command:
    """--log-format, -q, -v."""
    command = click.option("-v", "--verbose", is_flag=True, help="Log every phase of the work.")(command)
    command = click.option("-q", "--quiet", is_flag=True, help="Log warnings and errors only.")(command)
    help_text = "Lines for people (text), or an object per line (json)."
    return click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help=help_text)(command)


@contextmanager
def write_logs(log_format: str, quiet: bool, verbose: bool) -> Iterator[Stderr]:
    """Write the log messages of swsdask, and warnings, to stderr within the context; yield their handler.

    A signal that ends the context is logged too.
    """
    handler = Stderr()
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logger = logging.getLogger("swsdask")
    level, propagated, shown = logger.level, logger.propagate, warnings.showwarning

    def log_warning(message: Warning | str, *_: object, **__: object) -> None:
        logger.warning(str(message))

    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    warnings.showwarning = log_warning
    try:
        yield handler
    except BaseException as error:
        if (ended := ended_by(error)) is not None:
            with suppress(OSError):
                logger.error(str(ended))
            ended.is_logged = True
        raise
    finally:
        warnings.showwarning = shown
        logger.removeHandler(handler)
        logger.propagate = propagated
        logger.setLevel(level)


class LoggedPhases:
    """Progress as log lines of level DEBUG: one for each phase that ended, with its rows and seconds."""

    def __init__(self, evaluation: str) -> None:
        self._evaluation = evaluation
        self._phase: tuple[str, int] | None = None
        self._began = 0.0

    def begin(self, phase: str, rows: int) -> None:
        """Log the previous phase, and begin a new one."""
        self.end()
        self._phase, self._began = (phase, rows), time.monotonic()

    def advance(self, rows: int) -> None:
        """Do nothing: phases are logged when they end."""

    def end(self) -> None:
        """Log the last phase."""
        if self._phase is not None:
            phase, rows = self._phase
            fields = {
                "evaluation": self._evaluation,
                "phase": phase,
                "seconds": round(time.monotonic() - self._began, 3),
            }
            logging.getLogger("swsdask.nightly").debug(phase, extra={**fields, **({"rows": rows} if rows else {})})
            self._phase = None


class Stderr(logging.Handler):
    """Writes to stderr. Records that do not name their evaluation are of the current one."""

    evaluation: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if self.evaluation is not None and not hasattr(record, "evaluation"):
            record.evaluation = self.evaluation
        click.echo(self.format(record), err=True)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        entry = {"time": _time(record), "level": record.levelname.lower(), **fields, "message": record.getMessage()}
        return json.dumps(entry, ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        where = ", ".join(str(getattr(record, name)) for name in ("evaluation", "system") if hasattr(record, name))
        stamp = "" if sys.stderr.isatty() else f"{_time(record)} "
        text = f"{record.getMessage()}" + (f" ({record.seconds:.1f} s)" if hasattr(record, "seconds") else "")
        return f"{stamp}swsdask: {one_line(where) + ': ' if where else ''}{text}"


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


REFUSED = 5
"""The exit code of a night that refused some runs."""

_WORST_FIRST = (1, 2, 4, 3, REFUSED)


@click.command("nightly")
@click.argument("file", required=False)
@click.option("--example", is_flag=True, help="Print a commented FILE.")
@click.option("--only", metavar="NAME", help="Process only this evaluation.")
@click.option("--dry-run", is_flag=True, help="Print what the night would do; write nothing.")
@click.option(
    "--wait",
    metavar="MINUTES",
    type=FiniteRange(0),
    default=0,
    help="Wait for another process that works on an evaluation. The lease of a killed one expires after 60 minutes.",
)
@log_options
def nightly(
    file: str | None,
    example: bool,
    only: str | None,
    dry_run: bool,
    wait: float,
    log_format: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run one nightly update of the evaluations in FILE: ingest new runs, score them, publish the board.

    FILE is a path or URL; relative paths in it begin in its folder. A run with problems is refused and stops no other.
    The next call repeats an interrupted update and writes identical files. If nothing is new, nothing changes.

    Exit codes: 0 fine, 2 bad settings, a reference, inbox or archive that cannot be read; 3 a gate failed; 4 the
    cluster failed; 5 some runs were refused.
    """
    from swsdask.nightly.settings import example as example_file

    if example:
        click.echo(example_file(), nl=False)
        return
    if file is None:
        raise click.UsageError("Give a FILE of settings; --example prints one.")
    with write_logs(log_format, quiet, verbose) as handler:
        _run_file(file, only, dry_run, wait, handler)


def _run_file(file: str, only: str | None, dry_run: bool, wait: float, handler: Stderr) -> None:
    """Run the nights of a file, and end the command with their code."""
    from swsdask.nightly.lease import BusyError
    from swsdask.nightly.overview import publish_overview
    from swsdask.nightly.settings import load_nightly
    from swsdask.nightly.steps import LOG, notify, plan_night, run_night
    from swsdask.render.nightly import night_lines

    try:
        settings = load_nightly(file)
        evaluations = settings.only(only)
    except SwsdaskError as error:
        LOG.error(str(error))
        sys.exit(error.exit_code)
    today = datetime.now(UTC).date()
    codes: set[int] = set()
    for job in evaluations:
        phases, handler.evaluation = LoggedPhases(job.name), job.name
        try:
            if dry_run:
                click.echo("\n".join(plan_night(job)))
                continue
            outcome = run_night(job, today, phases, wait * 60)
        except BusyError as error:
            LOG.warning(str(error), extra={"evaluation": job.name})
            continue
        except Exception as error:  # The other evaluations go on.
            message, code = _reason(error)
            LOG.error(message, extra={"evaluation": job.name})
            codes.add(code)
            continue
        phases.end()
        for each in filter(None, (outcome.missed, outcome)):
            record = each.record
            if record is None:
                click.echo(f"{job.name}: nothing is new")
                continue
            click.echo("\n".join(night_lines(job.name, job.out, record)))
            codes |= ({3} if record.gates else set()) | ({REFUSED} if record.refused else set())
            if settings.notify:
                notify(settings.notify, each.latest)
    handler.evaluation = None
    if not dry_run:
        try:
            page = publish_overview(settings)
        except Exception as error:
            message, code = _reason(error)
            LOG.error(message)
            codes.add(code)
        else:
            if page is not None:
                click.echo(f"all evaluations: {page}")
    if codes:
        sys.exit(next(code for code in _WORST_FIRST if code in codes))


def _reason(error: Exception) -> tuple[str, int]:
    """Return the message and the exit code of an error. Raise it again if the command is to end at once."""
    if isinstance(error, BrokenPipeError) or ended_by(error) is not None:
        raise error
    if isinstance(error, SwsdaskError):
        return str(error), error.exit_code
    traceback_if_asked()
    return describe_unforeseen(error)


@click.command("history")
@click.argument("archive")
@click.argument("system", required=False)
@click.option("--measure", metavar="NAME", help="The measure (default: the one that ranks).")
@click.option("--condition", metavar="NAME", default="all", show_default=True, help="The condition.")
@records_format_option
def history(archive: str, system: str | None, measure: str | None, condition: str, form: str) -> None:
    """Print the numbers of an ARCHIVE night by night: one line per system, or a table and a plot of one SYSTEM.

    csv and json have one record per night and system.
    """
    from swsdask.archive.nights import read_history
    from swsdask.archive.storage import Storage
    from swsdask.measures.names import name_in_gate
    from swsdask.model.tables import records_as
    from swsdask.render.nightly import print_history, print_system

    past = read_history(Storage(archive))
    if not past.nights:
        raise SettingsError(f"{archive}: expected a history; found none. `swsdask nightly` makes one.")
    found = past.leaderboard()
    if not found.systems:
        raise SettingsError(f"{archive}: no night has scored a system yet.")
    moves = (move.measure for night in reversed(past.nights) for move in reversed(night.record.moves) if move.measure)
    measure = name_in_gate(measure) if measure else next(moves, next(iter(found.by), ""))
    rows = past.rows_of(measure, condition)
    if not rows:
        raise SettingsError(
            f"{archive}: no night has {measure!r} in the condition {condition!r}. Measures: "
            f"{choices(found.measures, measure)}. Conditions: {choices(found.conditions, condition)}."
        )
    own = [row for row in rows if system in (None, row["system"])]
    if not own:
        raise SettingsError(f"{archive}: no night has {system!r}. Systems: {choices(found.systems, str(system))}.")
    if form != "text":
        click.echo(records_as(form, own))
    elif system is None:
        print_history(own, measure, len(past.nights))
    else:
        print_system(own, measure, len(past.nights))
