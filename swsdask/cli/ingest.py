"""`swsdask ingest`."""

from __future__ import annotations

import click

from swsdask.cli.options import (
    encoding_options,
    engine_options,
    explicit_settings,
    given_runs,
    qrels_option,
    reference_options,
    settings_options,
)


@click.command(short_help="Write a reference and runs into an archive.")
@click.argument("archive", metavar="ARCHIVE")
@click.argument("reference", required=False, metavar="[REFERENCE]")
@reference_options
@qrels_option
@click.option(
    "--run", "runs", multiple=True, metavar="RUN", help="A file, directory, glob or URL, or NAME=FILE. Repeatable."
)
@settings_options
@click.option(
    "--replace", is_flag=True, help="Let a run whose content changed take the place of the one in the archive."
)
@click.option(
    "--change-settings", is_flag=True, help="Let an archive that is there keep the settings given now, from now on."
)
@click.option("--buckets", type=click.IntRange(1), help="Query buckets of a new archive (64).")
@click.option(
    "--codec", type=click.Choice(["lz4", "zstd"]), default="lz4", help="Of new runs: lz4 reads faster, zstd is smaller."
)
@encoding_options
@engine_options
def command(
    archive: str,
    reference: str | None,
    ecf: str | None,
    rttm: str | None,
    queries: str | None,
    qrels: str | None,
    runs: tuple[str, ...],
    preset: str | None,
    settings_file: str | None,
    assignments: tuple[str, ...],
    compat: str | None,
    replace: bool,
    change_settings: bool,
    buckets: int | None,
    codec: str,
    frame_shift: float | None,
    negate_scores: bool,
    executor: str | None,
    cluster: str | None,
    workers: int | None,
    rows_per_task: int | None,
) -> None:
    """Write a reference (once) and runs into the ARCHIVE at a path or URL.

    A new archive keeps the settings, and `swsdask score ARCHIVE` uses them; given again later, they must be the same.
    A run that is there already with the same content is left alone. Either everything is committed or nothing.
    """
    import swsdask as sws
    from swsdask.archive.store import is_archive, open_archive
    from swsdask.cli.progress import progress
    from swsdask.model.errors import counted
    from swsdask.model.layers import KEPT_NONE

    there = {run.system: run.content for run in open_archive(archive).runs} if is_archive(archive) else {}
    with progress() as shown:
        written = sws.ingest(
            archive,
            reference,
            ecf=ecf,
            rttm=rttm,
            queries=queries,
            qrels=qrels,
            runs=given_runs(runs) or None,
            preset=preset,
            compat=compat,
            settings=explicit_settings(settings_file, assignments, executor, cluster, workers, rows_per_task),
            frame_shift=frame_shift,
            negate_scores=negate_scores,
            replace_runs=replace,
            change_settings=change_settings,
            buckets=buckets,
            codec=codec,
            progress=shown,
        )
    click.echo(f"{archive}: version {written.version}, {counted(len(written.runs), 'runs')}")
    for run in written.runs:
        known = ", already there" if there.get(run.system) == run.content else ""
        click.echo(f"  {run.system}: {counted(run.rows, 'detections')}{known}")
    if written.kept is None:
        click.echo(f"{KEPT_NONE} With --change-settings it keeps those given now.")
