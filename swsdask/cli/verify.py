"""`swsdask verify`."""

from __future__ import annotations

import sys

import click

from swsdask.cli.options import engine_options, explicit_settings


@click.command(short_help="Verify the files of an archive by their hashes.")
@click.argument("archive", metavar="ARCHIVE")
@click.option("--repair", metavar="COPY", help="Take whole files from a copy of the archive in place of damaged ones.")
@click.option("--adopt", is_flag=True, help="Give hashes to the files that an earlier release wrote without.")
@engine_options
def command(
    archive: str,
    repair: str | None,
    adopt: bool,
    executor: str | None,
    cluster: str | None,
    workers: int | None,
    rows_per_task: int | None,
) -> None:
    """Read every file of all versions of an ARCHIVE, and list those that are not what was written.

    Exit code 0: all are; 2: some are damaged, which go to stderr.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.execution.open import open_executor
    from swsdask.model.errors import counted
    from swsdask.model.settings import build_settings

    engine = build_settings({}, None, explicit_settings(None, (), executor, cluster, workers, rows_per_task)).engine
    with progress("files") as shown, open_executor(engine, None, shown) as workplace:
        found = sws.verify(archive, repair=repair, adopt=adopt, executor=workplace, progress=shown)
    for name, instead in found.damaged.items():
        click.echo(f"{archive}/{name}: damaged: {instead}", err=True)
    for name in found.repaired:
        click.echo(f"{archive}/{name}: repaired")
    lines = [f"{counted(found.files, 'files')}, {len(found.damaged)} damaged"]
    if found.repaired:
        lines.append(f"{len(found.repaired)} repaired")
    if found.adopted is not None:
        lines.append(f"version {found.adopted} keeps hashes of {counted(found.without_hash, 'files')} that had none")
    elif found.without_hash:
        lines.append(f"{found.without_hash} without hashes: --adopt adds them")
    click.echo(f"{archive}: {', '.join(lines)}")
    if found.damaged:
        sys.exit(2)
