"""`swsdask show`: the contents of archives, and their versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from swsdask.cli.outputs import records_format_option
from swsdask.model.wording import counted, listed

if TYPE_CHECKING:
    import pyarrow as pa

    from swsdask.archive.protocols import Run
    from swsdask.archive.version_list import Version

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
    from swsdask.archive.version_list import list_versions
    from swsdask.model.tables import records_as
    from swsdask.render.archives import print_versions

    records = [_record_of_version(each) for each in list_versions(archive)]
    if form == "text":
        print_versions(records)
    else:
        click.echo(records_as(form, records))


_CHANGES = ("added", "replaced", "removed", "settings")


def _record_of_version(version: Version) -> dict[str, object]:
    """Return the record of a version; the numbers of its changes are None if they are not known."""
    changed = version.changed
    return {
        "version": version.number,
        "committed": datetime.fromtimestamp(version.committed, UTC).isoformat(timespec="seconds"),
        "systems": len(version.systems),
        **{name: None if changed is None else len(getattr(changed, name)) for name in _CHANGES},
    }


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


def _show_detections(archive: str, version: int | None, form: str) -> None:
    from swsdask.api.manifest import changed_settings
    from swsdask.archive.reference import build_reference, collection_statistics, requestable
    from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, audio_time
    from swsdask.archive.store import open_archive
    from swsdask.model.layers import KEPT_NONE
    from swsdask.model.settings import OperatingPoint, Settings
    from swsdask.model.tables import records_as
    from swsdask.render.archives import print_runs

    opened = open_archive(archive, version)
    records = [_record_of_run(run) for run in opened.runs]
    if form != "text":
        click.echo(records_as(form, records))
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
    print_runs(records)
    reported = [run.system for run in opened.runs if run.resources is not None]
    if reported:
        of = f"{len(reported)} of {counted(len(opened.runs), 'runs')}"
        click.echo(f"  Resources are reported of {of}: {listed(reported)}")


def _record_of_run(run: Run) -> dict[str, object]:
    from swsdask.model.trials import given_score

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
    from swsdask.archive.discovery import open_discovery
    from swsdask.formats.discovery import count_distinct
    from swsdask.model.layers import KEPT_NONE
    from swsdask.model.tables import records_as
    from swsdask.render.archives import print_discoverers

    archive = open_discovery(url, version)
    names = ("system", "n_classes", "n_fragments", "content", "read_from")
    records = [{name: getattr(each, name) for name in names} for each in archive.systems]
    if form != "text":
        click.echo(records_as(form, records))
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
    print_discoverers(records)


def _hours(table: pa.Table) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    from swsdask.model.units import TICKS_PER_SECOND

    ticks = pc.sum(pc.subtract(table["end"].cast(pa.int64()), table["start"].cast(pa.int64()))).as_py() or 0
    return f"{ticks / TICKS_PER_SECOND / 3600:.2f} h"
