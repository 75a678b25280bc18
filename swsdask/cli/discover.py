"""`swsdask discover`."""

from __future__ import annotations

from typing import Any

import click

from swsdask.cli.options import (
    Corpus,
    Engine,
    corpus_options,
    discovery_settings_options,
    engine_options,
    explicit_settings,
    format_option,
    given_runs,
    measures_option,
    out_option,
    outputs_option,
    print_outputs,
    verify_option,
)

TABLE = "discovery"
"""The table of a settings file that --set is for."""


@click.command("discover")
@click.argument("classes", nargs=-1, metavar="CLASSES...")
@corpus_options
@click.option("--n-folds", type=int, metavar="N", help="Without --folds: how many parts (10); 1 is the corpus as one.")
@click.option("--archive", metavar="ARCHIVE", help="Score systems of an archive, by name: CLASSES, or all.")
@click.option("--ingest", metavar="ARCHIVE", help="Write the corpus and CLASSES into an archive; score nothing.")
@click.option("--replace", is_flag=True, help="With --ingest: a system with other content replaces the one there.")
@click.option("--change-settings", is_flag=True, help="With --ingest: an archive that is there keeps those given now.")
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
    corpus: Corpus,
    n_folds: int | None,
    archive: str | None,
    ingest: str | None,
    replace: bool,
    change_settings: bool,
    measures: list[str] | None,
    settings_file: str | None,
    assignments: tuple[str, ...],
    engine: Engine,
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

    Runs of many systems are kept with their corpus by --ingest ARCHIVE, and scored by --archive ARCHIVE, by the
    --definition and in the --n-folds that were given first unless others are.
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
        raise click.UsageError("--within and --speakers both say what is within talkers: give one.")
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
        settings = explicit_settings(settings_file, assignments, table_name=TABLE)
        given = {**corpus.arguments(), "n_folds": n_folds, "settings": settings}
        _ingest(ingest, classes, given, replace, change_settings)
        return
    if archive is None and not (classes and corpus.phones and corpus.words):
        raise click.UsageError("Give CLASSES, --phones and --words, or --archive ARCHIVE.")
    given = {**corpus.arguments(), "archive": archive, "n_folds": n_folds, "measures": measures}
    systems = list(classes) or None if archive is not None else given_runs(classes)
    settings = explicit_settings(settings_file, assignments, engine, TABLE)
    with progress("cells") as shown:
        if dry_run:
            click.echo(sws.plan_discovery(systems, **given, settings=settings))
            return
        result = sws.discover(systems, **given, settings=settings, verify=verify, progress=shown)
    if out is not None:
        written = sws.write(result, out, outputs=outputs, tool="tde" if tde_output else None)
    if form == "json":
        from swsdask.render.outputs import scores_json

        click.echo(scores_json(result), nl=False)
    else:
        from swsdask.render.text import print_discovery

        print_discovery(result)
        if out is not None:
            print_outputs(out, written, result, outputs)


def _ingest(
    archive: str,
    classes: tuple[str, ...],
    given: dict[str, Any],
    replace: bool,
    change_settings: bool,
) -> None:
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.model.errors import counted
    from swsdask.model.layers import KEPT_NONE

    with progress() as shown:
        written = sws.ingest_discovery(
            archive,
            given_runs(classes) or None,
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
