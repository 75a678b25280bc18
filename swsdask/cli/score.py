"""`swsdask score` and `discover`: scoring runs of detections, and classes of fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from swsdask.cli.options import (
    Arguments,
    CorpusOptions,
    EncodingOptions,
    EngineOptions,
    ReferenceOptions,
    SettingsOptions,
    corpus_options,
    discovery_settings_options,
    encoding_options,
    engine_options,
    format_option,
    measures_option,
    open_evaluation,
    out_option,
    outputs_option,
    print_outputs,
    reference_and_runs,
    reference_options,
    result_format_option,
    runs_of_arguments,
    settings_of_options,
    settings_options,
    verify_option,
)
from swsdask.model.errors import one_line

if TYPE_CHECKING:
    from swsdask.model.results import Result


@click.command("score")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] RUN...")
@reference_options
@settings_options
@measures_option("Only these measures, e.g. atwv,twv@0.5,p_miss@0.001.")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY[,KEY]",
    help="Conditions: a query attribute, n_words, n_true, source_type, talker, query_pattern:REGEX, ...; "
    "`swsdask show ARCHIVE` lists them. Repeatable.",
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
@result_format_option
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

    if outputs is not None and out is None:
        raise click.UsageError("--outputs goes with --out DIRECTORY, where they are written.")
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
    if dry_run and form != "table":
        raise click.UsageError(f"--dry-run prints the plan in words: leave --format {form} out.")
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
        _print_as(form, result)
    else:
        from swsdask.render.terminal import print_leaderboard

        print_leaderboard(result, top=top, wide=wide)
        if out is not None:
            print_outputs(out, written, result, outputs)


def _print_as(form: str, result: Result) -> None:
    """Print a result to stdout, and its notes and signature to stderr."""
    from swsdask.render.outputs import result_as

    for part in result_as(form, result):
        click.echo(part, nl=False)
    for note in (*result.notes, f"Signature: {result.manifest['signature']}"):
        click.echo(one_line(note), err=True)


TABLE = "discovery"
"""The table of a settings file that --set applies to."""


@click.command("discover")
@click.argument("classes", nargs=-1, metavar="CLASSES...")
@corpus_options
@click.option(
    "--n-folds", type=int, metavar="N", help="Without --folds: the number of parts (10); 1 is the whole corpus."
)
@click.option(
    "--archive", metavar="ARCHIVE", help="Score systems of an archive: CLASSES are their names; default: all."
)
@click.option("--ingest", metavar="ARCHIVE", help="Write the corpus and CLASSES into an archive; score nothing.")
@click.option("--replace", is_flag=True, help="With --ingest: replace systems of the archive whose content changed.")
@click.option(
    "--change-settings",
    is_flag=True,
    help="With --ingest: replace the settings that the archive keeps with the given ones.",
)
@measures_option("Only these measures or families, e.g. ned,coverage,token.")
@discovery_settings_options
@engine_options
@verify_option
@out_option("Write scores, histograms and report.html into a directory or URL.")
@outputs_option
@click.option("--tde-output", is_flag=True, help="Also write the files that the official tool writes, into OUT/tde.")
@format_option
@click.option("--dry-run", is_flag=True, help="Check input and settings and print the plan; score nothing.")
def discover(
    classes: tuple[str, ...],
    corpus: CorpusOptions,
    n_folds: int | None,
    archive: str | None,
    ingest: str | None,
    replace: bool,
    change_settings: bool,
    measures: list[str] | None,
    settings_file: str | None,
    assignments: tuple[str, ...],
    engine: EngineOptions,
    verify: bool,
    out: str | None,
    outputs: list[str] | None,
    tde_output: bool,
    form: str,
    dry_run: bool,
) -> None:
    """Score what systems discovered: CLASSES are class files, folders or globs, or NAME=FILE each.

    A class file has blocks "Class N", then lines "file onset offset", each block ended by an empty line. Measures are
    NED, coverage, and precision, recall and F-score of matching, grouping, type, token and boundary.

    --ingest ARCHIVE stores many systems with their corpus, and --archive ARCHIVE scores them. --definition and
    --n-folds default to those of the first --ingest.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress

    if outputs is not None and out is None:
        raise click.UsageError("--outputs goes with --out DIRECTORY, where they are written.")
    if tde_output and out is None:
        raise click.UsageError("--tde-output goes with --out DIRECTORY, where it is written.")
    if tde_output and measures is not None:
        raise click.UsageError("--tde-output has all measures: leave --measures out.")
    if corpus.within and corpus.speakers:
        raise click.UsageError("--within and --speakers both define the folds within talkers: give one.")
    if dry_run and form == "json":
        raise click.UsageError("--dry-run prints the plan in words: leave --format json out.")
    if replace and ingest is None:
        raise click.UsageError("--replace goes with --ingest ARCHIVE, where it replaces systems.")
    if change_settings and ingest is None:
        raise click.UsageError("--change-settings goes with --ingest ARCHIVE, whose settings it changes.")
    if ingest is not None:
        if archive is not None or measures is not None or out is not None or dry_run:
            without = "--archive, --measures, --out and --dry-run"
            raise click.UsageError(f"--ingest scores nothing: leave {without} out.")
        settings = settings_of_options(settings_file, assignments, table_name=TABLE)
        given = {**corpus.arguments(), "n_folds": n_folds, "settings": settings}
        _ingest(ingest, classes, given, replace, change_settings)
        return
    if archive is None and not (classes and corpus.phones and corpus.words):
        raise click.UsageError("Give CLASSES, --phones and --words, or --archive ARCHIVE.")
    given = {**corpus.arguments(), "archive": archive, "n_folds": n_folds, "measures": measures}
    systems = list(classes) or None if archive is not None else runs_of_arguments(classes)
    settings = settings_of_options(settings_file, assignments, engine, TABLE)
    with progress("cells") as shown:
        if dry_run:
            click.echo(sws.plan_discovery(systems, **given, settings=settings))
            return
        result = sws.discover(systems, **given, settings=settings, verify=verify, progress=shown)
    if out is not None:
        written = sws.write(result, out, outputs=outputs, tool="tde" if tde_output else None)
    if form == "json":
        _print_as(form, result)
    else:
        from swsdask.render.terminal import print_discovery

        print_discovery(result)
        if out is not None:
            print_outputs(out, written, result, outputs)


def _ingest(
    archive: str,
    classes: tuple[str, ...],
    given: Arguments,
    replace: bool,
    change_settings: bool,
) -> None:
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.model.errors import counted
    from swsdask.model.layers import KEPT_NONE

    with progress("files") as shown:
        written = sws.ingest_discovery(
            archive,
            runs_of_arguments(classes) or None,
            **given,
            replace_systems=replace,
            change_settings=change_settings,
            progress=shown,
        )
    click.echo(f"{archive}: version {written.version}, {counted(len(written.systems), 'systems')}")
    for each in written.systems:
        sizes = f"{counted(each.n_classes, 'classes')}, {counted(each.n_fragments, 'fragments')}"
        click.echo(f"  {each.system}: {sizes}")
    if written.kept is None:
        click.echo(f"{KEPT_NONE} With --change-settings it keeps those given now.")
