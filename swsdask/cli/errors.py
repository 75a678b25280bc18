"""`swsdask errors`."""

from __future__ import annotations

import click

from swsdask.cli.options import (
    encoding_options,
    engine_options,
    explicit_settings,
    given_runs,
    reference_and_runs,
    reference_options,
    settings_options,
    verify_option,
    writable_place,
)


@click.command(short_help="List the queries that cost systems most, and their errors to listen to.")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] RUN...")
@reference_options
@settings_options
@click.option("--top", type=click.IntRange(1), default=20, help="How many queries of each system (20).")
@click.option("--false-alarms", type=click.IntRange(0, 100), default=10, help="How many of each query (10).")
@encoding_options
@engine_options
@verify_option
@click.option(
    "--out",
    metavar="DIRECTORY",
    callback=writable_place,
    help="Write tables, Audacity labels, Praat TextGrids and CTM-like text into a local directory.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout.")
def command(
    paths: tuple[str, ...],
    ecf: str | None,
    rttm: str | None,
    queries: str | None,
    preset: str | None,
    settings_file: str | None,
    assignments: tuple[str, ...],
    compat: str | None,
    top: int,
    false_alarms: int,
    frame_shift: float | None,
    negate_scores: bool,
    executor: str | None,
    cluster: str | None,
    workers: int | None,
    rows_per_task: int | None,
    verify: bool,
    out: str | None,
    form: str,
) -> None:
    """List the queries that cost each system most: P_miss + beta P_fa of the query.

    REFERENCE and RUNs are those of `swsdask score`. Each query has its highest false alarms, the queries that really
    occur there, and its missed targets; --out writes them as files to listen by.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.render.listening import errors_json, print_errors, write_errors

    reference, runs = reference_and_runs(paths, given=any((ecf, rttm, queries)))
    evaluation = sws.open(
        reference,
        ecf=ecf,
        rttm=rttm,
        queries=queries,
        preset=preset,
        compat=compat,
        settings=explicit_settings(settings_file, assignments, executor, cluster, workers, rows_per_task),
        verify=verify,
    )
    with progress() as shown:
        found = sws.errors(
            evaluation,
            runs=given_runs(runs) or None,
            queries=top,
            false_alarms=false_alarms,
            frame_shift=frame_shift,
            negate_scores=negate_scores,
            progress=shown,
        )
    if form == "json":
        click.echo(errors_json(found), nl=False)
    else:
        print_errors(found)
    if out is not None:
        written = write_errors(found, out)
        if form == "text":
            click.echo(f"Written to {out}: {', '.join(written)}")
