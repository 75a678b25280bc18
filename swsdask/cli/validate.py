"""`swsdask validate`."""

from __future__ import annotations

import sys
from typing import Any

import click

from swsdask.cli.options import corpus_options, explicit_settings, settings_options


@click.command(short_help="Check files and list everything that is wrong with them.")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--reference", metavar="DIRECTORY", help="The runs' queries and documents must be those of this reference."
)
@corpus_options
@settings_options
def command(
    paths: tuple[str, ...],
    reference: str | None,
    definition: Any,
    preset: str | None,
    settings_file: str | None,
    assignments: tuple[str, ...],
    compat: str | None,
    **corpus: str | None,
) -> None:
    """Check references, runs, files of term discovery, folders and globs of them; list every problem with file:line.

    If one folder among them holds a reference, the runs' queries and documents must be its own, as with --reference;
    unless the settings of the scoring that it is for let unknown ones be, such as --set unknown_queries=drop.

    With --phones and --words (and what else is of the corpus) the files of a corpus are checked against each other, and
    class files against them, as `swsdask discover` would by the same --definition.

    Exit code 0: all well; 2: problems, which go to stderr.
    """
    import swsdask as sws
    from swsdask.archive.store import is_archive
    from swsdask.model.errors import counted

    if not paths and not any(corpus.values()):
        raise click.UsageError("Give the files to check.")
    for path in paths:
        if is_archive(path):
            raise click.UsageError(f"{path} is an archive, checked when it was ingested: swsdask show {path}")
    report = sws.validate(
        paths,
        reference,
        **corpus,
        definition=definition or "document",
        preset=preset,
        compat=compat,
        settings=explicit_settings(settings_file, assignments),
    )
    for problem in report.problems:
        click.echo(str(problem), err=True)
    if report.total:
        click.echo(f"swsdask: {counted(report.total, 'problems')}", err=True)
        sys.exit(2)
    for file in report.files:
        counts = ", ".join(counted(count, what) for what, count in file.counts.items() if count)
        click.echo(f"{file.file}: {file.format.value if file.format else 'unknown'}: {counts}")
