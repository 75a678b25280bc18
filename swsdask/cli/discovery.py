"""`swsdask discover`: scoring classes of fragments, and storing them."""

from __future__ import annotations

import click

from swsdask.cli.options import (
    Arguments,
    CorpusOptions,
    EngineOptions,
    corpus_options,
    discovery_settings_options,
    engine_options,
    measures_option,
    runs_of_arguments,
    settings_of_options,
    verify_option,
)
from swsdask.cli.outputs import check_output, format_option, out_option, outputs_option, print_outputs, print_result_as
from swsdask.model.wording import counted

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

    check_output(out, outputs, dry_run=dry_run, form=form, printed="text")
    if tde_output and out is None:
        raise click.UsageError("--tde-output goes with --out DIRECTORY, where it is written.")
    if tde_output and measures is not None:
        raise click.UsageError("--tde-output has all measures: leave --measures out.")
    if corpus.within and corpus.speakers:
        raise click.UsageError("--within and --speakers both define the folds within talkers: give one.")
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
        print_result_as(form, result)
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
    from swsdask.model.layers import KEPT_NONE

    with progress("files") as shown:
        written = sws.ingest_discovery(
            archive,
            runs_of_arguments(classes) or None,
            **given,
            replace=replace,
            change_settings=change_settings,
            progress=shown,
        )
    click.echo(f"{archive}: version {written.version}, {counted(len(written.systems), 'systems')}")
    for each in written.systems:
        sizes = f"{counted(each.n_classes, 'classes')}, {counted(each.n_fragments, 'fragments')}"
        click.echo(f"  {each.system}: {sizes}")
    if written.kept is None:
        click.echo(f"{KEPT_NONE} With --change-settings it keeps those given now.")
