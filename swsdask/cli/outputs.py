"""The outputs of commands: the options that choose them, and what is printed of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import click

from swsdask.cli.options import Command, split_names, writable_place
from swsdask.model.safe_text import one_line

if TYPE_CHECKING:
    from swsdask.model.results import Result

CSV = ("csv", "spreadsheet")
"""Forms of CSV: plain, and with an apostrophe before cells that a spreadsheet would read as formulas."""


def format_of(
    forms: Sequence[str], help_text: str = "The form of the output on stdout."
) -> Callable[[Command], Command]:
    """--format, one of `forms`. The first is the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], help=help_text)


format_option = format_of(["text", "json"])
records_format_option = format_of(["text", *CSV, "json"])


def out_option(help_text: str) -> Callable[[Command], Command]:
    """--out, a directory or URL to write into."""
    return click.option("--out", metavar="DIRECTORY", callback=writable_place, help=help_text)


def outputs_option(command: Command) -> Command:
    """--outputs A,B: the files that --out writes."""
    return click.option(
        "--outputs",
        type=_output_names,
        metavar="A,B",
        help="With --out: only these of scores, json, curves and report. Default: all, json up to 200,000 numbers.",
    )(command)


def check_output(out: str | None, outputs: Collection[str] | None, *, dry_run: bool, form: str, printed: str) -> None:
    """Raise `click.UsageError` for --outputs without --out, and for --dry-run with another format than `printed`."""
    if outputs is not None and out is None:
        raise click.UsageError("--outputs goes with --out DIRECTORY, where they are written.")
    if dry_run and form != printed:
        raise click.UsageError(f"--dry-run prints the plan in words: leave --format {form} out.")


def print_written(out: str, written: Sequence[str]) -> None:
    """Print the files that were written."""
    click.echo(f"\nWritten to {one_line(out)}: {', '.join(written)}")


def print_outputs(out: str, written: Sequence[str], result: Result, outputs: Collection[str] | None) -> None:
    """Print the files of a result that were written, and whether one was left out for its size."""
    from swsdask.render.outputs import OUTPUTS, written_by_default

    print_written(out, written)
    if outputs is None and "json" not in written_by_default(result):
        click.echo(
            f"No scores.json for {result.score_rows.num_rows:,} numbers: --outputs {','.join(OUTPUTS)} writes it."
        )


def print_result_as(form: str, result: Result) -> None:
    """Print a result to stdout, and its notes and signature to stderr."""
    from swsdask.render.outputs import result_as

    for part in result_as(form, result):
        click.echo(part, nl=False)
    for note in (*result.notes, f"Signature: {result.manifest['signature']}"):
        click.echo(one_line(note), err=True)


def _output_names(given: str) -> list[str]:
    from swsdask.render.outputs import known_outputs

    return known_outputs(split_names(given))
