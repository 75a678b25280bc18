"""`swsdask compare`."""

from __future__ import annotations

from typing import Literal

import click

from swsdask.cli.options import (
    encoding_options,
    engine_options,
    explicit_settings,
    given_runs,
    qrels_option,
    reference_and_runs,
    reference_options,
    settings_options,
    verify_option,
    writable_place,
)


@click.command(short_help="Compute intervals of numbers, and tests of differences between systems.")
@click.argument("paths", nargs=-1, metavar="[WHERE] [A B | RUN...]")
@reference_options
@qrels_option
@settings_options
@click.option(
    "--measures", metavar="A,B", help="Only these: atwv, mtwv, otwv, stwv, map, cnxe, cnxe_min, ap, twv@0.5, ..."
)
@click.option("--baseline", metavar="A", help="Compare each of the others with this system.")
@click.option("--by", multiple=True, metavar="KEY[,KEY]", help="Conditions, as for `swsdask score`. Repeatable.")
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=0, help="Another seed, other replicates (0).")
@click.option("--replicates", type=click.IntRange(1), default=10_000, help="How often queries are drawn (10000).")
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, help="Of intervals.")
@click.option("--interval", type=click.Choice(["percentile", "bca"]), default="percentile", help="How they are made.")
@click.option("--adjust", type=click.Choice(["holm", "max-t"]), default="holm", help="How p of many pairs is adjusted.")
@click.option(
    "--fail-if",
    "gates",
    metavar="GATE",
    multiple=True,
    help="End with exit code 3 if A is worse than B, or another than the baseline: 'atwv drops .005 with p < .05', "
    "'cnxe rises .01 in CONDITION'. Repeatable.",
)
@encoding_options
@engine_options
@verify_option
@click.option(
    "--out",
    metavar="DIRECTORY",
    callback=writable_place,
    help="Write intervals.parquet, differences.parquet and comparison.json into a directory or URL.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout.")
def command(
    paths: tuple[str, ...],
    ecf: str | None,
    rttm: str | None,
    queries: str | None,
    qrels: str | None,
    preset: str | None,
    settings_file: str | None,
    assignments: tuple[str, ...],
    compat: str | None,
    measures: str | None,
    baseline: str | None,
    by: tuple[str, ...],
    seed: int,
    replicates: int,
    level: float,
    interval: Literal["percentile", "bca"],
    adjust: Literal["holm", "max-t"],
    gates: tuple[str, ...],
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
    """Compare systems by drawing the queries of WHERE again and again: intervals of numbers, tests of differences.

    WHERE is a directory that `swsdask score --out` wrote, or an archive: then A and B are two of its systems, and
    without them every two are compared. Or it is a reference directory, or --ecf, --rttm and --queries, or --qrels, are
    given: then RUNs are files, as for `swsdask score`.

    Exit code 3: a gate of --fail-if failed; stderr names the systems, the measure and the numbers.
    """
    import swsdask as sws
    from swsdask.api.comparing import is_result as found_result
    from swsdask.cli.progress import progress
    from swsdask.model.errors import GateError
    from swsdask.render.comparison import comparison_json, print_comparison, write_comparison

    given = any((ecf, rttm, queries, qrels))
    where, names = reference_and_runs(paths, given)
    is_result = where is not None and found_result(where)
    explicit = explicit_settings(settings_file, assignments, executor, cluster, workers, rows_per_task)
    if is_result and (preset or compat or explicit or by):
        raise click.UsageError(f"{where} has been scored: settings and --by go with an archive or a reference.")
    if is_result and len(names) not in (0, 2):
        raise click.UsageError(f"Name two systems of {where}, or none; found {len(names)}: {', '.join(names)}.")
    source = (
        where
        if where is not None and is_result
        else sws.open(
            where,
            ecf=ecf,
            rttm=rttm,
            queries=queries,
            qrels=qrels,
            collection=given_runs(names) if qrels else None,
            preset=preset,
            compat=compat,
            settings=explicit,
            verify=verify,
        )
    )
    of_systems = isinstance(source, str) or bool(source.systems)
    with progress() as shown:
        found = sws.compare(
            source,
            [name.strip().lower() for name in measures.split(",") if name.strip()] if measures else None,
            pair=(names[0], names[1]) if of_systems and len(names) == 2 else None,
            baseline=baseline,
            runs=None if is_result else given_runs(names) or None,
            by=by,
            frame_shift=frame_shift,
            negate_scores=negate_scores,
            seed=seed,
            replicates=replicates,
            level=level,
            interval=interval,
            adjust=adjust,
            fail_if=gates,
            progress=shown,
        )
    if form == "json":
        click.echo(comparison_json(found), nl=False)
    else:
        print_comparison(found)
    if out is not None:
        written = write_comparison(found, out)
        if form == "text":
            click.echo(f"\nWritten to {out}: {', '.join(written)}")
    if found.failures:
        raise GateError("\n".join(map(str, found.failures)))
