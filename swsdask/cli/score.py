"""`swsdask score`: scoring runs of detections."""

from __future__ import annotations

import click

from swsdask.cli.options import (
    Arguments,
    EncodingOptions,
    EngineOptions,
    ReferenceOptions,
    SettingsOptions,
    by_option,
    encoding_options,
    engine_options,
    measures_option,
    open_evaluation,
    reference_and_runs,
    reference_options,
    settings_options,
    verify_option,
)
from swsdask.cli.outputs import CSV, check_output, format_of, out_option, outputs_option, print_outputs, print_result_as


@click.command("score")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] RUN...")
@reference_options
@settings_options
@measures_option("Only these measures, e.g. atwv,twv@0.5,p_miss@0.001.")
@by_option(
    "Conditions: a query attribute, n_words, n_true, source_type, talker, query_pattern:REGEX, ...; "
    "`swsdask show ARCHIVE` lists them. Repeatable."
)
@encoding_options
@engine_options
@verify_option
@click.option(
    "--no-cache",
    "cache",
    flag_value=False,
    default=True,
    help="Compute everything again: neither read nor write the cache of the archive.",
)
@click.option("--buckets", type=click.IntRange(1), help="Number of query buckets of a temporary archive.")
@out_option("Write scores, curves and report.html into a directory or URL.")
@outputs_option
@click.option(
    "--alignment", is_flag=True, help="Also write alignment.parquet: every trial of a run and every missed target."
)
@click.option(
    "--kwseval-output",
    is_flag=True,
    help="Also write KWSEval's SYSTEM.sum.txt and .bsum.txt, with --alignment SYSTEM.alignment.csv and .det.dat too.",
)
@click.option(
    "--mediaeval-output", is_flag=True, help="Also write score.out: the lines that MediaEval's tool prints (QUESST)."
)
@click.option(
    "--stdeval-output",
    is_flag=True,
    help="Also write STDEval's reports, SYSTEM.occ.txt and SYSTEM.ali.csv; with --alignment and --by source_type.",
)
@click.option("--trec-output", is_flag=True, help="Also write SYSTEM.trec_eval.txt: the lines of trec_eval -q.")
@click.option(
    "--top", type=click.IntRange(1), metavar="N", help="Show N systems. Default: as many as fit the terminal."
)
@format_of(
    ["table", *CSV, "markdown", "latex", "json"],
    "The output on stdout: the leaderboard (table, markdown, latex), or all numbers (csv, spreadsheet, json).",
)
@click.option("--wide", is_flag=True, help="Print all columns of the table, however narrow the terminal is.")
@click.option("--dry-run", is_flag=True, help="Check input and settings and print the plan; score nothing.")
def score(
    paths: tuple[str, ...],
    reference: ReferenceOptions,
    chosen: SettingsOptions,
    measures: list[str] | None,
    by: tuple[str, ...],
    encoded: EncodingOptions,
    engine: EngineOptions,
    verify: bool,
    cache: bool,
    buckets: int | None,
    out: str | None,
    outputs: list[str] | None,
    alignment: bool,
    kwseval_output: bool,
    mediaeval_output: bool,
    stdeval_output: bool,
    trec_output: bool,
    top: int | None,
    form: str,
    wide: bool,
    dry_run: bool,
) -> None:
    """Score RUNs (files, directories, globs or URLs, or NAME=FILE or NAME=DIRECTORY each) against a REFERENCE.

    REFERENCE is a directory that holds one ECF, one RTTM and one query list, or the tables documents.csv and
    occurrences.csv, or an archive. With --ecf, --rttm and --queries, with --documents and --occurrences, or with
    --qrels, all arguments are RUNs. With an archive, RUNs may be names of its systems; without RUNs all are scored.
    """
    import swsdask as sws
    from swsdask.api.official import measures_of_tool
    from swsdask.cli.progress import progress

    check_output(out, outputs, dry_run=dry_run, form=form, printed="table")
    if alignment and out is None:
        raise click.UsageError("--alignment goes with --out DIRECTORY, where alignment.parquet is written.")
    options_of_tools = {
        "--kwseval-output": "kwseval" if kwseval_output else None,
        "--mediaeval-output": "mediaeval" if mediaeval_output else None,
        "--stdeval-output": "stdeval" if stdeval_output else None,
        "--trec-output": "trec_eval" if trec_output else None,
    }
    of_tools = {option: tool for option, tool in options_of_tools.items() if tool is not None}
    if of_tools and out is None:
        raise click.UsageError(f"{next(iter(of_tools))} goes with --out DIRECTORY, where its files are written.")
    if len(of_tools) > 1:
        raise click.UsageError(f"{' and '.join(of_tools)}: give one of them.")
    if stdeval_output and not (alignment and "source_type" in by):
        raise click.UsageError("--stdeval-output goes with --alignment and --by source_type, which its reports need.")
    tool = next(iter(of_tools.values()), None)
    if form != "table" and (top is not None or wide):
        option = "--wide" if top is None else "--top"
        raise click.UsageError(
            f"{option} is for the table of the terminal: --format {form} has all systems and columns."
        )
    where, runs = reference_and_runs(paths, given=bool(reference))
    evaluation, given = open_evaluation(where, runs, reference, chosen, engine, verify)
    if mediaeval_output and evaluation.settings.evaluation.trials != "document":
        raise click.UsageError("--mediaeval-output goes with document trials: --preset quesst2014, or trials=document.")
    arguments: Arguments = {
        "measures": measures_of_tool(tool, measures),
        "runs": given or None,
        "by": by,
        **encoded.arguments(),
    }
    if dry_run:
        click.echo(sws.plan(evaluation, **arguments))
        return
    with progress() as shown:
        result = sws.score(evaluation, **arguments, alignment=alignment, buckets=buckets, cache=cache, progress=shown)
    if out is not None:
        written = sws.write(result, out, outputs=outputs, tool=tool, evaluation=evaluation)
    if form != "table":
        print_result_as(form, result)
    else:
        from swsdask.render.terminal import print_leaderboard

        print_leaderboard(result, top=top, wide=wide)
        if out is not None:
            print_outputs(out, written, result, outputs)
