"""`swsdask validate` and `convert`, of files to score; `report`, `plot` and `correlate`, of a directory of results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from swsdask.api.writing import FIGURES
from swsdask.cli.options import (
    Chosen,
    Corpus,
    Encoded,
    Engine,
    corpus_options,
    encoding_options,
    engine_options,
    measures_option,
    names,
    out_option,
    print_written,
    records_format_option,
    settings_options,
)
from swsdask.model.errors import one_line

if TYPE_CHECKING:
    from swsdask.model.errors import Problems
    from swsdask.model.schemas import RunPiece


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--reference", metavar="DIRECTORY", help="The runs' queries and documents must be those of this reference."
)
@corpus_options
@settings_options
@engine_options
@records_format_option
def validate(
    paths: tuple[str, ...],
    reference: str | None,
    chosen: Chosen,
    corpus: Corpus,
    engine: Engine,
    form: str,
) -> None:
    """Check references, runs, files of term discovery, folders and globs of them; list every problem with file:line.

    If one folder among them holds a reference, the runs' queries and documents must be its own, as with --reference;
    unless the settings of the scoring that it is for let unknown ones be, such as --set unknown_queries=drop.

    With --phones and --words (and what else is of the corpus) the files of a corpus are checked against each other, and
    class files against them, as `swsdask discover` would by the same --definition.

    Exit code 0: all well; 2: problems, which go to stderr. As csv or json they go to stdout, a record for each.
    """
    from dataclasses import asdict

    import swsdask as sws
    from swsdask.archive.store import is_archive
    from swsdask.model.errors import counted
    from swsdask.model.tables import records_as

    if not paths and not any(corpus.arguments().values()):
        raise click.UsageError("Give the files to check.")
    for path in paths:
        if is_archive(path):
            raise click.UsageError(f"{path} is an archive, checked when it was ingested: swsdask show {path}")
    report = sws.validate(
        paths,
        reference,
        **{name: value for name, value in corpus.arguments().items() if value is not None},
        **chosen.arguments(engine),
    )
    if form != "text":
        click.echo(records_as(form, [asdict(problem) for problem in report.problems]))
    else:
        for problem in report.problems:
            click.echo(str(problem), err=True)
    if report.total:
        click.echo(f"swsdask: {counted(report.total, 'problems')}", err=True)
        sys.exit(2)
    for file in report.files if form == "text" else ():
        counts = ", ".join(counted(count, what) for what, count in file.counts.items() if count)
        click.echo(f"{file.file}: {file.format.value if file.format else 'unknown'}: {counts}")


@click.command("convert")
@click.argument("run", metavar="RUN")
@click.argument("target", metavar="TARGET")
@click.option("--system", metavar="NAME", help="The system's name, in place of what the file says.")
@click.option(
    "--for-spreadsheets", "harmless", is_flag=True, help="In a table in text, put an apostrophe before formulas."
)
@click.option("--queries", metavar="FILE", help="RUN is a transcript, a CTM with scores: search it for these queries.")
@encoding_options
def convert(run: str, target: str, system: str | None, harmless: bool, queries: str | None, encoded: Encoded) -> None:
    """Rewrite a RUN as TARGET, whose name says the format.

    *.kwslist.xml, *.stdlist.xml, *.tsv, *.csv (all also .gz, .zst) or *.parquet. Times and scores keep every digit; a
    table in text that stays one keeps its columns and quotes too.

    With --queries, RUN is a transcript: the texts of the queries are found in its words by the default rules, and the
    score of a detection is the lowest of its words.
    """
    from swsdask.formats.runs.encoding import read_encoding
    from swsdask.formats.runs.write import convert
    from swsdask.model.errors import counted
    from swsdask.places.reading import readable

    source, encoding = readable(run), read_encoding(**encoded.arguments())
    if queries is not None and encoding:
        raise click.UsageError("--queries goes with a transcript in seconds: leave out the options of tables.")
    reader = None if queries is None else _searched(source, queries, system)
    rows = convert(source, target, system, encoding, harmless=harmless, reader=reader)
    click.echo(f"{target}: {counted(rows, 'detections')}")


def _searched(transcript: str, queries: str, system: str | None) -> Callable[[Problems], Iterator[RunPiece]]:
    """The reader of what is found in a transcript."""
    from swsdask.archive.memory import search_transcript
    from swsdask.archive.protocols import FindRule
    from swsdask.formats.in_memory import TableRun
    from swsdask.formats.reference.nist_xml import read_queries
    from swsdask.formats.values import system_of_file
    from swsdask.model.errors import Problems
    from swsdask.model.settings import EvaluationSettings
    from swsdask.places.reading import readable

    problems = Problems()
    listed = read_queries(readable(queries), problems)
    problems.raise_if_any()
    found = search_transcript(transcript, listed, FindRule.of(EvaluationSettings()))
    return TableRun(transcript, found, system or system_of_file(transcript)).read


@click.command("report")
@click.argument("results")
@click.argument("page", required=False)
def report(results: str, page: str | None) -> None:
    """Write a PAGE (RESULTS/report.html) from the directory that `swsdask score --out` wrote."""
    import swsdask as sws
    from swsdask.places.reading import joined
    from swsdask.render.outputs import read_outputs

    own = joined(results, "report.html")
    if page is None or os.path.abspath(page) == os.path.abspath(own):
        sws.renew_report(results)
    else:
        sws.report(read_outputs(results), page)
    click.echo(f"Written: {one_line(str(page or own))}")


@click.command("plot")
@click.argument("results")
@click.argument("figure")
@click.option("--kind", type=click.Choice(FIGURES), default="det", show_default=True, help="What is drawn.")
@click.option("--systems", type=names, metavar="A,B", help="These systems, in this order; default: the first ten.")
@click.option("--condition", metavar="NAME", default="all", help="The condition whose numbers are drawn (all).")
@click.option("--measure", metavar="NAME", help="With --kind leaderboard: the measure; default: what ranks systems.")
def plot(results: str, figure: str, kind: str, systems: list[str] | None, condition: str, measure: str | None) -> None:
    """Draw a FIGURE, such as det.svg, of RESULTS, which `swsdask score --out` wrote.

    It needs matplotlib: pip install 'swsdask[plot]'.
    """
    import swsdask as sws
    from swsdask.render.outputs import read_outputs

    sws.plot(read_outputs(results), figure, kind, systems=systems, condition=condition, measure=measure)
    click.echo(f"Written: {one_line(str(figure))}")


@click.command("correlate")
@click.argument("results")
@measures_option("Only these measures, e.g. atwv,cnxe,map,twv@0.5.")
@click.option("--condition", metavar="NAME", default="all", help="The condition whose numbers rank systems (all).")
@out_option("Write rank_correlation.parquet and rank_correlation.html into a directory or URL.")
@records_format_option
def correlate(results: str, measures: list[str] | None, condition: str, out: str | None, form: str) -> None:
    """Compare the rankings of systems under each pair of measures, from RESULTS, which `swsdask score --out` wrote.

    Kendall's tau-b is 1 where two measures rank systems alike and -1 where one reverses the other; tau_AP weighs the
    top of the ranking. Without --measures the requested ones, or, where all were, those that weigh misses
    against false alarms.
    """
    from swsdask.comparison.rank_correlation import rank_correlation
    from swsdask.model.leaderboard import board
    from swsdask.model.tables import records_as
    from swsdask.render.outputs import read_outputs
    from swsdask.render.rank_correlation import print_rank_correlation, write_rank_correlation

    result = read_outputs(results)
    found = rank_correlation(result, measures, condition)
    scores = board(result.table, result.asked)
    signature = str(result.manifest.get("signature", ""))
    if form == "text":
        print_rank_correlation(found, scores)
        click.echo(f"\nSignature: {signature}")
    else:
        click.echo(records_as(form, found.table.to_pylist()))
    if out is not None:
        write_rank_correlation(found, scores, out, signature)
        if form == "text":
            print_written(out, ["rank_correlation.parquet", "rank_correlation.html"])
