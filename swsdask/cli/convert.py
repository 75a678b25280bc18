"""`swsdask convert`."""

from __future__ import annotations

import click

from swsdask.cli.options import encoding_options


@click.command(short_help="Rewrite a run in another format.")
@click.argument("run", metavar="RUN")
@click.argument("target", metavar="TARGET")
@click.option("--system", metavar="NAME", help="The system's name, in place of what the file says.")
@click.option(
    "--for-spreadsheets", "harmless", is_flag=True, help="In a table in text, put an apostrophe before formulas."
)
@encoding_options
def command(
    run: str, target: str, system: str | None, harmless: bool, frame_shift: float | None, negate_scores: bool
) -> None:
    """Rewrite a RUN as TARGET, whose name says the format.

    *.kwslist.xml, *.stdlist.xml, *.tsv, *.csv (all also .gz, .zst) or *.parquet. Times and scores keep every digit; a
    table in text that stays one keeps its columns and quotes too.
    """
    from swsdask.formats.pipes import readable
    from swsdask.formats.runs.encoding import Encoding
    from swsdask.formats.runs.write import convert
    from swsdask.model.errors import counted

    rows = convert(readable(run), target, system, Encoding(frame_shift, negate_scores), harmless=harmless)
    click.echo(f"{target}: {counted(rows, 'detections')}")
