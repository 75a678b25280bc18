"""`swsdask show`, `measures`, `settings`, `presets` and `completion`: the contents of archives and of swsdask."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from swsdask.archive.discovery import open_discovery
from swsdask.archive.protocols import Run
from swsdask.archive.version_list import Version, list_versions
from swsdask.cli.options import records_format_option
from swsdask.model.errors import counted, listed
from swsdask.model.layers import KEPT_NONE
from swsdask.model.tables import records_as
from swsdask.model.trials import given_score
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.render.console import standard_console, standard_table

MOST_LEVELS = 8
"""The number of conditions of a key that are listed."""


@click.command("show")
@click.argument("archive", metavar="ARCHIVE")
@click.option("--version", type=int, help="Show an earlier version.")
@click.option("--versions", is_flag=True, help="List all versions with what each changed.")
@click.option("--diff", type=int, nargs=2, metavar="A B", help="List how version B differs from version A.")
@records_format_option
def show(archive: str, version: int | None, versions: bool, diff: tuple[int, int] | None, form: str) -> None:
    """Show what an ARCHIVE contains: documents, queries, words, the conditions for --by, and every run with counts of
    what was dropped or rounded.

    For term discovery: the corpus, and every system with its classes and fragments. With csv or json: one record for
    every system or version.
    """
    from swsdask.archive.discovery import is_discovery

    if sum((version is not None, versions, diff is not None)) > 1:
        raise click.UsageError("Give one of --version, --versions and --diff.")
    if diff is not None and form != "text":
        raise click.UsageError("--diff prints text only.")
    if versions:
        _show_versions(archive, form)
    elif diff is not None:
        _show_difference(archive, *diff)
    elif is_discovery(archive):
        _show_discovery(archive, version, form)
    else:
        _show_detections(archive, version, form)


def _show_versions(archive: str, form: str) -> None:
    if form != "text":
        records = [
            {
                "version": each.number,
                "committed": datetime.fromtimestamp(each.committed, UTC).isoformat(timespec="seconds"),
                "systems": len(each.systems),
                **dict(zip(_CHANGES, _counts(each), strict=True)),
            }
            for each in list_versions(archive)
        ]
        click.echo(records_as(form, records))
        return
    headings = ("Version", "Committed (UTC)", "Systems", "Added", "Replaced", "Removed", "Settings changed")
    table = standard_table(headings, ("Committed (UTC)",))
    for each in list_versions(archive):
        committed = f"{datetime.fromtimestamp(each.committed, UTC):%Y-%m-%d %H:%M:%S}"
        counts = ("" if count is None else f"{count:,}" for count in _counts(each))
        table.add_row(f"{each.number}", committed, f"{len(each.systems):,}", *counts)
    _print(table)


_CHANGES = ("added", "replaced", "removed", "settings")


def _counts(version: Version) -> list[int | None]:
    """The numbers of `_CHANGES`; None if they are not known."""
    return [None if version.changed is None else len(getattr(version.changed, name)) for name in _CHANGES]


def _show_difference(archive: str, one: int, other: int) -> None:
    from swsdask.archive.discovery import is_discovery
    from swsdask.archive.store import open_archive
    from swsdask.archive.version_list import difference

    found = difference(archive, one, other)
    click.echo(f"{archive}, version {other} compared with version {one}")
    for what in ("added", "replaced", "removed"):
        for system in getattr(found, what):
            click.echo(f"  {what}: {system}")
    for each in found.settings:
        click.echo(f"  {each.setting}: {each.kept} before, {each.used} now")
    if not is_discovery(archive):
        before, now = (len(open_archive(archive, number).documents) for number in (one, other))
        if before != now:  # judged documents
            click.echo(f"  documents: {before:,} before, {now:,} now")
    if not (found.added or found.replaced or found.removed or found.settings):
        click.echo("  the same systems and settings")


def _print(table: Table) -> None:
    standard_console(160).print(table)


def _show_detections(archive: str, version: int | None, form: str) -> None:
    from swsdask.api.manifest import changed_settings
    from swsdask.archive.reference import build_reference, collection_statistics, requestable
    from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, audio_time
    from swsdask.archive.store import open_archive
    from swsdask.model.settings import OperatingPoint, Settings

    opened = open_archive(archive, version)
    if form != "text":
        click.echo(records_as(form, [_record(run) for run in opened.runs]))
        return
    settings = Settings() if opened.kept is None else opened.kept.settings()
    documents = opened.documents
    time = audio_time(documents, settings.evaluation.compat)
    hours = time.sum() / HALF_TICKS_PER_SECOND / 3600
    click.echo(f"{archive}, version {opened.version}")
    click.echo(f"  settings: {KEPT_NONE if opened.kept is None else changed_settings(settings)}")
    for note in settings.notes:
        click.echo(f"  {note}")
    click.echo(f"  {counted(len(time), 'documents')}, {hours:.2f} h evaluated")
    click.echo(f"  {counted(opened.queries.num_rows, 'queries')}, {counted(opened.words.num_rows, 'words')} spoken")
    reference = build_reference(opened, settings.evaluation.model_copy(update={"operating_point": OperatingPoint()}))
    held = collection_statistics(opened.queries, reference)
    relevant = f"{held['relevant_events']:,} relevant, {counted(held['occurrences'], 'occurrences')}"
    click.echo(f"  {counted(held['events'], 'events')} (query, document): {relevant}")
    if "oov_queries" in held:
        relevant = f"{held['relevant_oov_events']:,} relevant, {counted(held['oov_occurrences'], 'occurrences')}"
        events = counted(held["oov_events"], "events")
        click.echo(f"  out of vocabulary: {counted(held['oov_queries'], 'queries')}, {events}: {relevant}")
    click.echo("  conditions (--by):")
    for key, divides, levels in requestable(opened, settings.evaluation):
        shown = ", ".join(levels[:MOST_LEVELS]) + (", ..." if len(levels) > MOST_LEVELS else "")
        click.echo(f"    {key} ({divides}): {shown}")
    headings = (
        "System",
        "Detections",
        "Decisions",
        "Scores",
        "Outside",
        "Unknown documents",
        "Unknown queries",
        "Rounded",
    )
    table = standard_table(headings, ("System",))
    for run in opened.runs:
        low, high = map(given_score, run.scores.run)
        table.add_row(
            run.system,
            f"{run.rows:,}",
            "yes" if run.has_decisions else "no",
            f"{low:g} .. {high:g}" if run.rows else "",
            f"{run.outside:,}",
            f"{sum(run.unknown_documents.values()):,}",
            f"{sum(run.unknown_queries.values()):,}",
            f"{run.rounded:,}",
        )
    _print(table)
    reported = [run.system for run in opened.runs if run.resources is not None]
    if reported:
        of = f"{len(reported)} of {counted(len(opened.runs), 'runs')}"
        click.echo(f"  Resources are reported of {of}: {listed(reported)}")


def _record(run: Run) -> dict[str, object]:
    low, high = map(given_score, run.scores.run) if run.rows else (None, None)
    return {
        "system": run.system,
        "detections": run.rows,
        "decisions": run.has_decisions,
        "lowest": low,
        "highest": high,
        "outside": run.outside,
        "unknown_documents": sum(run.unknown_documents.values()),
        "unknown_queries": sum(run.unknown_queries.values()),
        "rounded": run.rounded,
    }


def _show_discovery(url: str, version: int | None, form: str) -> None:
    """Print the contents of an archive: its corpus, and its systems as they were read, before a definition applies."""
    from swsdask.formats.discovery import count_distinct

    archive = open_discovery(url, version)
    if form != "text":
        names = ("system", "n_classes", "n_fragments", "content", "read_from")
        click.echo(records_as(form, [{name: getattr(each, name) for name in names} for each in archive.systems]))
        return
    tables = archive.tables
    phones, words = tables.phones, tables.words
    click.echo(f"{url}, version {archive.version}, of term discovery")
    kept = {} if archive.kept is None else archive.kept.settings().discovery.listed()
    click.echo(f"  settings: {' '.join(f'{name}={value}' for name, value in kept.items()) or KEPT_NONE}")
    click.echo(
        f"  {counted(count_distinct(phones, 'file'), 'files')}, {counted(len(phones), 'phones')} "
        f"({counted(count_distinct(phones, 'label'), 'labels')}) in {_hours(phones)}, "
        f"{counted(len(words), 'words')} ({counted(count_distinct(words, 'label'), 'labels')})"
    )
    if tables.split is not None:
        click.echo(f"  split: {counted(len(tables.split), 'stretches')} of speech, {_hours(tables.split)}")
    for role, folds in (("folds", tables.folds), ("within", tables.within)):
        if folds is not None:
            stretches = f"{counted(len(folds), 'stretches')}, {_hours(folds)}"
            click.echo(f"  {role}: {counted(count_distinct(folds, 'fold'), 'folds')} of {stretches}")
    if tables.speakers is not None:
        of = counted(len(tables.speakers), "files")
        click.echo(f"  speakers: {counted(count_distinct(tables.speakers, 'speaker'), 'speakers')} of {of}")
    headings = ("System", "Classes", "Fragments", "Content", "Read from")
    shown = standard_table(headings, ("System", "Content", "Read from"))
    for each in archive.systems:
        shown.add_row(each.system, f"{each.n_classes:,}", f"{each.n_fragments:,}", each.content, each.read_from)
    _print(shown)


def _hours(table: pa.Table) -> str:
    ticks = pc.sum(pc.subtract(table["end"].cast(pa.int64()), table["start"].cast(pa.int64()))).as_py() or 0
    return f"{ticks / TICKS_PER_SECOND / 3600:.2f} h"


@click.command("measures")
@click.argument("name", required=False)
def measures(name: str | None) -> None:
    """List the measures, or print the definition of one: formula, source, and how official tools differ."""
    from swsdask.api.catalogue import define_measure, describe_measure, families
    from swsdask.measures.names import measure_name

    if name is None:
        for number, family in enumerate(families()):
            click.echo("\n" if number else "", nl=False)
            for row in family:
                click.echo(f"{row.name:26} {row.title}")
        return
    row = describe_measure(measure_name(name))
    direction = {1: "higher is better", -1: "lower is better", 0: ""}[row.better]
    click.echo(f"{row.name}: {row.title}")
    span = row.span and f"values {row.span}"
    click.echo("; ".join(each for each in (f"heading {row.heading}", direction, span, row.source) if each))
    for label, text in (("Formula", row.formula), ("Printed by", row.printed)):
        if text:
            click.echo(f"{label}: {text}")
    click.echo(f"\n{define_measure(row.name)}")


@click.command("settings")
@click.argument("name", required=False)
def settings(name: str | None) -> None:
    """List the settings with their defaults, or explain those whose names begin with NAME, such as evaluation.gap."""
    import swsdask as sws

    if name is None:
        for setting in sws.list_settings():
            click.echo(f"{setting.setting:48} {setting.default or '-'}")
        return
    for number, setting in enumerate(sws.list_settings(name)):
        click.echo("\n" if number else "", nl=False)
        click.echo(f"{setting.setting} = {setting.default or '(not set)'}")
        click.echo(f"    {setting.meaning}")
        click.echo(f"    Values: {setting.type}")
        if setting.presets:
            by_value: dict[str, list[str]] = {}
            for preset, value in setting.presets.items():
                by_value.setdefault(value, []).append(preset)
            for value, presets in by_value.items():
                click.echo(f"    {value} in {', '.join(presets)}")


@click.command("presets")
@click.argument("name", required=False)
def presets(name: str | None) -> None:
    """List the presets, or print the settings file of one."""
    from swsdask.model.layers import conf_directory, load_preset, preset_names

    if name is not None:
        load_preset(name)
        for each in name.split(","):
            click.echo((conf_directory() / f"{each}.toml").read_text(encoding="utf-8"), nl=False)
        return
    for preset in preset_names():
        about = (conf_directory() / f"{preset}.toml").read_text(encoding="utf-8").partition("\n")[0]
        click.echo(f"{preset:26} {about.removeprefix('# ')}")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and presets, for `eval "$(swsdask completion bash)"`."""
    from click.shell_completion import get_completion_class

    from swsdask.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "swsdask", "_SWSDASK_COMPLETE").source())
