"""`swsdask vacuum`."""

from __future__ import annotations

import click


@click.command(short_help="Remove the files of an archive that no version names.")
@click.argument("archive", metavar="ARCHIVE")
@click.option(
    "--older-than",
    metavar="HOURS",
    type=click.FloatRange(0),
    default=24,
    show_default=True,
    help="After how long without a sign of life a writer counts as stopped.",
)
@click.option("--dry-run", is_flag=True, help="List the files; remove nothing.")
def command(archive: str, older_than: float, dry_run: bool) -> None:
    """Remove the files of an ARCHIVE that no version names: those of writers that were stopped. Others may write.

    Nothing is removed if a version cannot be read: `swsdask verify` says why.
    """
    import swsdask as sws
    from swsdask.model.errors import counted

    names = sws.vacuum(archive, older_than_s=older_than * 3600, dry_run=dry_run)
    for name in names:
        click.echo(name)
    click.echo(f"{archive}: {counted(len(names), 'files')} {'to remove' if dry_run else 'removed'}")
