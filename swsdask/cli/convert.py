"""`swsdask convert`."""

from __future__ import annotations

import click


@click.command(short_help="Rewrite a run in another format.")
@click.argument("run", metavar="RUN")
@click.argument("target", metavar="TARGET")
@click.option("--system", metavar="NAME", help="The system's name, in place of what the file says.")
def command(run: str, target: str, system: str | None) -> None:
    """Rewrite a RUN as TARGET, whose name tells the format.

    *.kwslist.xml, *.stdlist.xml, *.tsv, *.csv (all also .gz, .zst) or *.parquet. Times and scores keep every digit; a
    table in text that stays one keeps its columns and quotes too.
    """
    from swsdask.formats.run_convert import convert
    from swsdask.model.wording import counted

    click.echo(f"{target}: {counted(convert(run, target, system), 'detections')}")
