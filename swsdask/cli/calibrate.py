"""`swsdask calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from swsdask.cli.options import (
    Chosen,
    Encoded,
    Engine,
    Reference,
    encoding_options,
    engine_options,
    open_evaluation,
    reference_options,
    settings_options,
)
from swsdask.model.errors import counted, one_line

if TYPE_CHECKING:
    from swsdask.api.calibrating import Applied
    from swsdask.api.calibration_maps import Calibration


EXAMPLES = """\b
Examples:
  swsdask calibrate DEVRUN --on DEV --preset sws2013 --out calibration.toml
  swsdask calibrate --apply calibration.toml EVALRUN... --out calibrated
"""


@click.command("calibrate", epilog=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--on", metavar="REFERENCE", help="The evaluation to fit on, as for `swsdask score`.")
@reference_options
@click.option(
    "--method",
    type=click.Choice(["affine", "pav"]),
    help="affine (default): gamma score + delta. pav: the best rising steps, which need more data.",
)
@click.option("--apply", "calibration", metavar="FILE", help="Apply this calibration to RUNs instead of fitting one.")
@click.option(
    "--out",
    metavar="PLACE",
    help="The calibration file (calibration.toml); with --apply a directory, or for one RUN a file.",
)
@click.option("--keep-decisions", is_flag=True, help="With --apply: leave decisions as they are.")
@settings_options
@encoding_options
@engine_options
def calibrate(
    runs: tuple[str, ...],
    on: str | None,
    reference: Reference,
    method: Literal["affine", "pav"] | None,
    calibration: str | None,
    out: str | None,
    keep_decisions: bool,
    chosen: Chosen,
    encoded: Encoded,
    engine: Engine,
) -> None:
    """Fit on a development evaluation how a RUN's scores become log-likelihood ratios, and apply that to other runs.

    Fitting writes a small TOML file and reports the gain. Where gamma would not be a positive number (scores that
    fall, that hold no information, or that keep targets and others wholly apart) nothing is written.

    Applying writes each RUN in its own format and compression, under its name (Kaldi's results become a table); a table
    in text keeps its columns, quotes and times as they are. Scores and declared minimum and maximum scores are mapped.
    Decisions are made anew: YES at or above the Bayes threshold of the evaluation that was fitted on, or of the
    operating point that --preset, --settings or --set gives; --keep-decisions leaves them. Trials that a run does not
    give are imputed its least score, which is mapped with the others; where the setting `impute` is a number, score the
    new run with the mapped number, which is printed.
    """
    import swsdask as sws
    from swsdask.api.calibration_maps import Calibration
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
        _print_applied(held, done)
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


def _print_applied(held: Calibration, done: list[Applied]) -> None:
    for run in done:
        reach = f", {run.lowest:g} .. {run.highest:g}" if run.rows else ""
        click.echo(f"{run.target}: {run.rows:,} detections, {run.accepted:,} decided YES{reach}")
        if run.rounded:
            click.echo(f"  rounded: {counted(run.rounded, 'times')} finer than 0.1 ms")
        if run.ignored:
            click.echo(f"  not written: the columns {run.ignored}")
        others = [system for system in run.systems if system != held.fitted_on.system]
        if others:
            click.echo(f"  fitted on {held.fitted_on.system}, applied to {', '.join(others)}")
    if isinstance(held.fitted_on.impute, float):
        mapped = float(held(held.fitted_on.impute))
        click.echo(
            f"impute = {held.fitted_on.impute:g} becomes {mapped!r}: score these runs with --set impute={mapped!r}"
        )
