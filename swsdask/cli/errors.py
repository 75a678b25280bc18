"""`swsdask errors`."""

from __future__ import annotations

import click

from swsdask.cli.options import (
    Chosen,
    Encoded,
    Engine,
    Reference,
    encoding_options,
    engine_options,
    format_option,
    open_evaluation,
    out_option,
    reference_and_runs,
    reference_options,
    settings_options,
    verify_option,
)


@click.command("errors")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] RUN...")
@reference_options
@settings_options
@click.option("--top", type=click.IntRange(1), default=20, help="How many queries of each system (20).")
@click.option("--by", multiple=True, metavar="KEY[,KEY]", help="Conditions, as for `swsdask score`. Repeatable.")
@click.option("--false-alarms", type=click.IntRange(0, 100), default=10, help="How many of each query (10).")
@encoding_options
@engine_options
@verify_option
@out_option("Write tables, Audacity labels, Praat TextGrids and CTM-like text into a local directory.")
@format_option
def errors(
    paths: tuple[str, ...],
    reference: Reference,
    chosen: Chosen,
    top: int,
    by: tuple[str, ...],
    false_alarms: int,
    encoded: Encoded,
    engine: Engine,
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

    where, runs = reference_and_runs(paths, given=bool(reference))
    evaluation, given = open_evaluation(where, runs, reference, chosen, engine, verify)
    with progress() as shown:
        found = sws.errors(
            evaluation,
            runs=given or None,
            by=by,
            queries=top,
            false_alarms=false_alarms,
            **encoded.arguments(),
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
