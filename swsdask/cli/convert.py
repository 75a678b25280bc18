"""`swsdask convert` and `calibrate`: rewriting runs in other formats, and with calibrated scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import click

from swsdask.cli.options import (
    EncodingOptions,
    EngineOptions,
    ReferenceOptions,
    SettingsOptions,
    encoding_options,
    engine_options,
    named_place,
    open_evaluation,
    reference_options,
    settings_options,
)
from swsdask.model.errors import Problems
from swsdask.model.safe_text import one_line
from swsdask.model.wording import FEW, counted, listed

if TYPE_CHECKING:
    from swsdask.calibration.applying import Applied
    from swsdask.calibration.maps import Calibration
    from swsdask.model.schemas import RunPiece


EXAMPLES = """\b
Examples:
  swsdask calibrate DEVRUN --on DEV --preset sws2013 --out calibration.toml
  swsdask calibrate --apply calibration.toml EVALRUN... --out calibrated
"""


@click.command("convert")
@click.argument("run", metavar="RUN")
@click.argument("target", metavar="TARGET")
@click.option("--system", metavar="NAME", help="The name of the system, instead of the one in the file.")
@click.option(
    "--for-spreadsheets", "harmless", is_flag=True, help="In a table in text, put an apostrophe before formulas."
)
@click.option("--queries", metavar="FILE", help="RUN is a transcript, a CTM with scores: search it for these queries.")
@encoding_options
def convert(
    run: str, target: str, system: str | None, harmless: bool, queries: str | None, encoded: EncodingOptions
) -> None:
    """Rewrite a RUN as TARGET. The ending of TARGET determines the format.

    *.kwslist.xml, *.stdlist.xml, *.tsv, *.csv (all also .gz, .zst) or *.parquet. Scores keep every digit, times those
    down to 0.1 ms. A table in text that stays one keeps every digit, its columns and its quotes.

    With --queries, RUN is a transcript: the texts of the queries are found in its words by the default rules, and the
    score of a detection is the lowest of its words.
    """
    from swsdask.formats.runs.encoding import read_encoding
    from swsdask.formats.runs.write import convert
    from swsdask.places.reading import readable

    source, encoding = readable(run), read_encoding(**encoded.arguments())
    if queries is not None and encoding:
        raise click.UsageError("--queries goes with a transcript in seconds: leave out the options of tables.")
    reader = None if queries is None else _search_transcript(source, queries, system)
    done = convert(source, target, system, encoding, harmless=harmless, reader=reader)
    click.echo(f"{target}: {counted(done.rows, 'detections')}")
    _print_losses(done.rounded, done.dropped)


def _print_losses(rounded: int, dropped: Iterable[str]) -> None:
    """Print what a written run lacks: digits of times, columns and attributes."""
    if rounded:
        click.echo(f"  rounded: {counted(rounded, 'times')} finer than 0.1 ms")
    for part in dropped:
        click.echo(f"  not written: {part}")


def _search_transcript(transcript: str, queries: str, system: str | None) -> Callable[[Problems], Iterator[RunPiece]]:
    """Return the reader of the detections that are found in a transcript."""
    from swsdask.archive.protocols import FindRule
    from swsdask.archive.reference_files import search_transcript
    from swsdask.formats.in_memory import TableRun
    from swsdask.formats.reference.nist_xml import read_queries
    from swsdask.formats.values import system_of_file
    from swsdask.model.settings import EvaluationSettings
    from swsdask.places.reading import readable

    problems = Problems()
    listed = read_queries(readable(queries), problems)
    problems.raise_if_any()
    found = search_transcript(transcript, listed, FindRule.of(EvaluationSettings()))
    return TableRun(transcript, found, system or system_of_file(transcript)).read


@click.command("calibrate", epilog=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--on", metavar="REFERENCE", help="The evaluation to fit on, as for `swsdask score`.")
@reference_options
@click.option(
    "--method",
    type=click.Choice(["affine", "pav"]),
    help="affine (default): gamma score + delta. pav: the best increasing steps, which need more data.",
)
@click.option("--apply", "calibration", metavar="FILE", help="Apply this calibration to RUNs instead of fitting one.")
@click.option(
    "--out",
    metavar="PLACE",
    callback=named_place,
    help="The calibration file (calibration.toml); with --apply a directory, or for one RUN a file.",
)
@click.option("--keep-decisions", is_flag=True, help="With --apply: leave decisions as they are.")
@settings_options
@encoding_options
@engine_options
def calibrate(
    runs: tuple[str, ...],
    on: str | None,
    reference: ReferenceOptions,
    method: Literal["affine", "pav"] | None,
    calibration: str | None,
    out: str | None,
    keep_decisions: bool,
    chosen: SettingsOptions,
    encoded: EncodingOptions,
    engine: EngineOptions,
) -> None:
    """Fit a map from a RUN's scores to log-likelihood ratios on a development evaluation, or apply it to other runs.

    Fitting writes a small TOML file and reports the gain. Nothing is written if gamma is not positive and finite:
    scores decrease with confidence, are uninformative, or separate the classes perfectly.

    Applying writes each RUN under its name and in its own format: XML, a table in text or Parquet, compressed by
    gzip or Zstandard or not. Runs in other formats become tables in text, and lose another compression. A table in
    text keeps its columns, quotes and times as they are, unless --frame-shift or --segments converts them. Scores
    and declared minimum and maximum scores are mapped. Decisions are recomputed: YES at or above the Bayes
    threshold of the evaluation used for fitting, or of the operating point set by --preset, --settings or --set;
    --keep-decisions keeps the old ones. Trials missing from a run are imputed its lowest score, which is mapped
    like the others. If the setting `impute` is a number, score the new run with the mapped number, which is
    printed.
    """
    import swsdask as sws
    from swsdask.calibration.maps import Calibration
    from swsdask.cli.progress import progress

    if calibration is not None:
        if on or reference or method:
            raise click.UsageError("--apply fits nothing: leave out --on, --ecf, --rttm, --queries and --method.")
        if out is None:
            raise click.UsageError("--apply needs --out: a directory, or for one RUN a file.")
        held = Calibration.read(calibration)
        with progress() as shown:
            done = sws.apply_calibration(
                held,
                runs,
                out,
                preset=chosen.preset,
                settings=chosen.arguments(engine)["settings"],
                keep_decisions=keep_decisions,
                **encoded.arguments(),
                progress=shown,
            )
        _print_applied(held, done, negated=encoded.negate_scores)
        return
    if keep_decisions:
        raise click.UsageError("--keep-decisions goes with --apply.")
    if len(runs) > 1:
        raise click.UsageError("A calibration is fitted on one RUN; --on names the evaluation.")
    if on is None and not reference:
        raise click.UsageError("Fitting needs --on REFERENCE, or --ecf, --rttm and --queries; applying --apply FILE.")
    evaluation, given = open_evaluation(on, runs, reference, chosen, engine)
    run = given if isinstance(given, dict) else given[0]
    with progress() as shown:
        fitted = sws.calibrate(evaluation, run, method=method or "affine", **encoded.arguments(), progress=shown)
    path = out or "calibration.toml"
    fitted.write(path)
    _print_fitted(fitted, path)
    for note in evaluation.notes:
        click.echo(f"Note: {note}")


def _print_fitted(fitted: Calibration, path: str) -> None:
    on = fitted.fitted_on
    click.echo(f"{on.system}: {fitted.map}")
    click.echo(f"  C_nxe {on.cnxe:.4f} before, {on.cnxe_calibrated:.4f} after")
    click.echo(f"  targets: {on.n_given_target:,} given, {on.n_imputed_target:,} imputed at {on.impute_score:g}")
    click.echo(
        f"  non-targets: {on.n_given_nontarget:,} given, {on.n_imputed_nontarget:,} imputed at {on.impute_score:g}"
    )
    click.echo(f"  Bayes threshold: {fitted.bayes_threshold:.4f}")
    click.echo(f"Written: {one_line(str(path))}")


def _print_applied(held: Calibration, done: list[Applied], *, negated: bool) -> None:
    for run in done:
        reach = f", {run.lowest:g} .. {run.highest:g}" if run.rows else ""
        click.echo(f"{run.target}: {run.rows:,} detections, {run.accepted:,} decided YES{reach}")
        _print_losses(run.rounded, run.dropped)
    others = [system for run in done for system in run.systems if system != held.fitted_on.system]
    if others:
        click.echo(f"fitted on {held.fitted_on.system}, applied to {listed(others, FEW)}")
    if held.fitted_on.negated and not negated:
        click.echo(
            "fitted on costs (--negate-scores), applied without it: give it too if the scores of these runs are costs"
        )
    if isinstance(held.fitted_on.impute, float):
        mapped = float(held(held.fitted_on.impute))
        click.echo(
            f"impute = {held.fitted_on.impute:g} becomes {mapped!r}: score these runs with --set impute={mapped!r}"
        )
