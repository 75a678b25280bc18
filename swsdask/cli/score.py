"""`swsdask score`."""

from __future__ import annotations

from typing import Any

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


@click.command(short_help="Score runs against a reference, or an archive's own runs.")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] RUN...")
@reference_options
@qrels_option
@settings_options
@click.option("--measures", metavar="A,B", help="Only these measures, e.g. atwv,twv@0.5,p_miss@0.001.")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY[,KEY]",
    help="Conditions: a query attribute, source_type, document_language, query_pattern:REGEX, ... Repeatable.",
)
@encoding_options
@engine_options
@verify_option
@click.option(
    "--no-cache",
    "cache",
    flag_value=False,
    default=True,
    help="Count everything anew: neither use nor fill what an archive keeps of earlier scoring.",
)
@click.option("--buckets", type=click.IntRange(1), help="Query buckets of the temporary archive, where one is made.")
@click.option(
    "--out",
    metavar="DIRECTORY",
    callback=writable_place,
    help="Write scores, curves and report.html into a directory or URL.",
)
@click.option(
    "--alignment", is_flag=True, help="Also write alignment.parquet: every trial and every missed occurrence."
)
@click.option(
    "--mediaeval-output", is_flag=True, help="Also write score.out: the lines that MediaEval's tool prints (QUESST)."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout.")
@click.option("--dry-run", is_flag=True, help="Check input and settings and print the plan; score nothing.")
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
    by: tuple[str, ...],
    frame_shift: float | None,
    negate_scores: bool,
    executor: str | None,
    cluster: str | None,
    workers: int | None,
    rows_per_task: int | None,
    verify: bool,
    cache: bool,
    buckets: int | None,
    out: str | None,
    alignment: bool,
    mediaeval_output: bool,
    form: str,
    dry_run: bool,
) -> None:
    """Score RUNs (files, directories, globs, URLs; or NAME=FILE each) against a REFERENCE.

    REFERENCE is a directory that holds one ECF, one RTTM and one query list, or an archive; with --ecf, --rttm and
    --queries, or with --qrels, all arguments are RUNs. Of an archive, RUNs may be the names of systems; without RUNs
    all are scored.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress

    if alignment and out is None:
        raise click.UsageError("--alignment goes with --out DIRECTORY, where alignment.parquet is written.")
    if mediaeval_output and out is None:
        raise click.UsageError("--mediaeval-output goes with --out DIRECTORY, where score.out is written.")
    if dry_run and form == "json":
        raise click.UsageError("--dry-run prints the plan in words: leave --format json out.")
    reference, runs = reference_and_runs(paths, given=any((ecf, rttm, queries, qrels)))
    given = given_runs(runs)
    evaluation = sws.open(
        reference,
        ecf=ecf,
        rttm=rttm,
        queries=queries,
        qrels=qrels,
        collection=given if qrels else None,
        preset=preset,
        compat=compat,
        settings=explicit_settings(settings_file, assignments, executor, cluster, workers, rows_per_task),
        verify=verify,
    )
    if mediaeval_output and evaluation.settings.evaluation.trials != "document":
        raise click.UsageError("--mediaeval-output goes with document trials: --preset quesst2014, or trials=document.")
    asked: dict[str, Any] = {
        "measures": _names(measures, mediaeval_output) if measures else None,
        "runs": given or None,
        "by": by,
        "frame_shift": frame_shift,
        "negate_scores": negate_scores,
    }
    if dry_run:
        click.echo(sws.plan(evaluation, **asked))
        return
    with progress() as shown:
        result = sws.score(evaluation, **asked, alignment=alignment, buckets=buckets, cache=cache, progress=shown)
    if out is not None:
        written = sws.write(result, out, mediaeval=evaluation if mediaeval_output else None)
    if form == "json":
        from swsdask.render.outputs import scores_json

        click.echo(scores_json(result), nl=False)
    else:
        from swsdask.render.text import print_leaderboard

        print_leaderboard(result)
        if out is not None:
            click.echo(f"\nWritten to {out}: {', '.join(written)}")


def _names(measures: str, mediaeval_output: bool) -> list[str]:
    """The requested measures, and those that MediaEval's output needs."""
    names = [name.strip().lower() for name in measures.split(",") if name.strip()]
    if mediaeval_output:
        from swsdask.render.mediaeval_output import MEASURES, TOOL_MEASURES

        names += [name for name in (*MEASURES, *TOOL_MEASURES) if name not in names]
    return names
