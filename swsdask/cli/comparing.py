"""`swsdask compare` and `errors`: comparing systems, and listing their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from swsdask.cli.options import (
    EncodingOptions,
    EngineOptions,
    FiniteRange,
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
from swsdask.cli.outputs import CSV, format_of, out_option, print_written
from swsdask.model.errors import GateError
from swsdask.model.safe_text import one_line

if TYPE_CHECKING:
    from swsdask.api.opening import Evaluation


@click.command("compare")
@click.argument("paths", nargs=-1, metavar="[WHERE] [A B | RUN...]")
@reference_options
@settings_options
@measures_option("Only these: atwv, mtwv, otwv, stwv, map, cnxe, cnxe_min, ap, twv@0.5, ...")
@click.option("--baseline", metavar="A", help="Compare each of the others with this system.")
@by_option()
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=0, help="The seed of the replicates (0).")
@click.option(
    "--resample",
    type=click.Choice(["queries", "documents"]),
    default="queries",
    help="Resample queries, or documents as well.",
)
@click.option("--replicates", type=click.IntRange(1), help="Number of replicates (10000; with documents 1000).")
@click.option(
    "--level",
    type=FiniteRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="The confidence level of intervals.",
)
@click.option(
    "--interval",
    type=click.Choice(["percentile", "bca"]),
    default="percentile",
    help="The method of bootstrap intervals.",
)
@click.option(
    "--adjust", type=click.Choice(["holm", "max-t"]), default="holm", help="Adjust p for the number of pairs."
)
@click.option(
    "--fail-if",
    "gates",
    metavar="GATE",
    multiple=True,
    help="Exit with code 3 if A is worse than B, or a system worse than the baseline: 'atwv drops .005 with p < .05', "
    "'cnxe rises .01 in CONDITION'. Repeatable.",
)
@encoding_options
@engine_options
@verify_option
@out_option("Write intervals.parquet, differences.parquet and comparison.json into a directory or URL.")
@format_of(
    ["text", *CSV, "markdown", "latex", "json"],
    "The output on stdout: tables and notes, the numbers with their intervals (markdown, latex), the differences "
    "(csv, spreadsheet), or both (json).",
)
def compare(
    paths: tuple[str, ...],
    reference: ReferenceOptions,
    chosen: SettingsOptions,
    measures: list[str] | None,
    baseline: str | None,
    by: tuple[str, ...],
    seed: int,
    resample: Literal["queries", "documents"],
    replicates: int | None,
    level: float,
    interval: Literal["percentile", "bca"],
    adjust: Literal["holm", "max-t"],
    gates: tuple[str, ...],
    encoded: EncodingOptions,
    engine: EngineOptions,
    verify: bool,
    out: str | None,
    form: str,
) -> None:
    """Compare systems by resampling the queries of WHERE: confidence intervals, tests of differences.

    WHERE is a directory that `swsdask score --out` wrote, or an archive. Then A and B are two of its systems; without
    them, every pair is compared. Or WHERE is a reference directory, or replaced by --ecf, --rttm and --queries, or by
    --qrels. Then RUNs are files, as for `swsdask score`. If there are more than 100 pairs, those with the best system
    are printed; --out and the other formats have all.

    Exit code 3: a gate of --fail-if failed; stderr names the systems, the measure and the numbers.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.render.comparison import comparison_as, print_comparison
    from swsdask.render.outputs import is_result as found_result

    where, names = reference_and_runs(paths, given=bool(reference))
    is_result = where is not None and found_result(where)
    if is_result and (any(chosen.arguments(engine).values()) or by):
        raise click.UsageError(f"{where} has been scored: settings and --by go with an archive or a reference.")
    if is_result and len(names) not in (0, 2):
        raise click.UsageError(f"Name two systems of {where}, or none; found {len(names)}: {', '.join(names)}.")
    source: str | Evaluation
    runs: list[str] | dict[str, str] = []
    if where is not None and is_result:
        source = where
    else:
        source, runs = open_evaluation(where, names, reference, chosen, engine, verify)
    of_systems = isinstance(source, str) or bool(source.systems)
    with progress() as shown:
        found = sws.compare(
            source,
            measures,
            pair=(names[0], names[1]) if of_systems and len(names) == 2 else None,
            baseline=baseline,
            runs=runs or None,
            by=by,
            **encoded.arguments(),
            seed=seed,
            resample=resample,
            replicates=replicates,
            level=level,
            interval=interval,
            adjust=adjust,
            fail_if=gates,
            progress=shown,
        )
    if form == "text":
        print_comparison(found)
    else:
        click.echo(comparison_as(form, found), nl=False)
        for note in found.notes:
            click.echo(one_line(note), err=True)
    if out is not None:
        written = sws.write_comparison(found, out)
        if form == "text":
            print_written(out, written)
    if found.failures:
        raise GateError("\n".join(map(str, found.failures)))


@click.command("errors")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] RUN...")
@reference_options
@settings_options
@click.option("--top", type=click.IntRange(1), default=20, help="Number of queries of each system (20).")
@by_option()
@click.option(
    "--false-alarms", type=click.IntRange(0, 100), default=10, help="Number of false alarms of each query (10)."
)
@encoding_options
@engine_options
@verify_option
@out_option("Write tables, Audacity labels, Praat TextGrids and CTM-like text into a directory or URL.")
@format_of(
    ["text", *CSV, "json"],
    "The output on stdout: the queries of each system (text, csv, spreadsheet), or these and their events (json).",
)
def errors(
    paths: tuple[str, ...],
    reference: ReferenceOptions,
    chosen: SettingsOptions,
    top: int,
    by: tuple[str, ...],
    false_alarms: int,
    encoded: EncodingOptions,
    engine: EngineOptions,
    verify: bool,
    out: str | None,
    form: str,
) -> None:
    """List the costliest queries of each system: P_miss + beta P_fa of the query.

    REFERENCE and RUNs are as for `swsdask score`. For each query, list its highest-scoring false alarms, the queries
    that occur there, and its missed targets. --out writes them as label files for audio tools.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.render.worst_queries import errors_as, print_errors, write_errors

    where, runs = reference_and_runs(paths, given=bool(reference))
    evaluation, given = open_evaluation(where, runs, reference, chosen, engine, verify)
    with progress() as shown:
        found = sws.errors(
            evaluation,
            runs=given or None,
            by=by,
            top=top,
            false_alarms=false_alarms,
            **encoded.arguments(),
            progress=shown,
        )
    if form == "text":
        print_errors(found)
    else:
        click.echo(errors_as(form, found), nl=False)
    if out is not None:
        written = write_errors(found, out)
        if form == "text":
            print_written(out, written)
