"""`swsdask validate`."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Check files and list everything that is wrong with them.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--reference", metavar="DIRECTORY", help="The runs' queries and documents must be those of this reference."
)
def command(paths: tuple[str, ...], reference: str | None) -> None:
    """Check references, runs and folders of a reference; list every problem with file and line.

    Exit code 0: all well; 2: problems, which go to stderr.
    """
    from swsdask import api
    from swsdask.archive.store import is_archive
    from swsdask.model.wording import counted

    for path in paths:
        if is_archive(path):
            raise click.UsageError(f"{path} is an archive, checked when it was ingested: swsdask show {path}")
    report = api.validate(paths, reference)
    for problem in report.problems:
        click.echo(str(problem), err=True)
    if report.total:
        click.echo(f"swsdask: {counted(report.total, 'problems')}", err=True)
        sys.exit(2)
    for file in report.files:
        counts = ", ".join(counted(count, what) for what, count in file.counts.items() if count)
        click.echo(f"{file.file}: {file.format.value if file.format else 'unknown'}: {counts}")
