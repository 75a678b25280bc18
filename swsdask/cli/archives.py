"""`swsdask ingest`, `validate`, `verify`, `vacuum`, `expire` and `bench`: files and archives, from input to removal."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict

import click

from swsdask.cli.options import (
    Age,
    CorpusOptions,
    EncodingOptions,
    EngineOptions,
    ReferenceOptions,
    SettingsOptions,
    corpus_options,
    encoding_options,
    engine_options,
    measures_option,
    reference_and_runs,
    reference_options,
    runs_of_arguments,
    settings_options,
)
from swsdask.cli.outputs import format_option, records_format_option
from swsdask.model.errors import ArchiveError
from swsdask.model.wording import counted


@click.command("ingest")
@click.argument("archive", metavar="ARCHIVE")
@click.argument("paths", nargs=-1, metavar="[REFERENCE] [RUN]...")
@reference_options
@click.option("--run", "runs", multiple=True, metavar="RUN", help="A RUN to add without a REFERENCE. Repeatable.")
@settings_options
@click.option("--replace", is_flag=True, help="Replace a run in the archive whose content changed.")
@click.option(
    "--change-settings", is_flag=True, help="Replace the settings that the archive keeps with the given ones."
)
@click.option("--rehash", is_flag=True, help="Read all files, even those unchanged since they were ingested.")
@click.option("--buckets", type=click.IntRange(1), help="Number of query buckets of a new archive (64).")
@click.option(
    "--codec",
    type=click.Choice(["lz4", "zstd", "snappy", "gzip", "brotli", "none"]),
    default="lz4",
    help="Compression of new runs: lz4 reads faster, zstd is smaller.",
)
@encoding_options
@engine_options
def ingest(
    archive: str,
    paths: tuple[str, ...],
    reference: ReferenceOptions,
    runs: tuple[str, ...],
    chosen: SettingsOptions,
    replace: bool,
    change_settings: bool,
    rehash: bool,
    buckets: int | None,
    codec: str,
    encoded: EncodingOptions,
    engine: EngineOptions,
) -> None:
    """Write a REFERENCE (once) and RUNs into the ARCHIVE at a path or URL.

    RUNs are files, directories, globs, URLs, or NAME=FILE each. With --ecf, --rttm and --queries, with --documents and
    --occurrences, or with --qrels, all arguments are RUNs. To add runs to an existing archive without its reference,
    use --run.

    A new archive stores the settings, and `swsdask score ARCHIVE` uses them. Settings given later must be the same.
    A run that the archive already has, with the same content, is left as it is. A file that did not change since it was
    ingested (by size, and ETag or modification time) is not read again. Either everything is committed or nothing.
    """
    import swsdask as sws
    from swsdask.archive.store import is_archive, open_archive
    from swsdask.cli.progress import progress
    from swsdask.model.layers import KEPT_NONE

    directory, others = reference_and_runs(paths, given=bool(reference)) if paths else (None, [])
    before = open_archive(archive) if is_archive(archive) else None
    with progress() as shown:
        written = sws.ingest(
            archive,
            directory,
            **reference.files(),
            runs=runs_of_arguments([*others, *runs]) or None,
            **chosen.arguments(engine),
            **encoded.arguments(),
            replace=replace,
            change_settings=change_settings,
            rehash=rehash,
            buckets=buckets,
            codec=codec,
            progress=shown,
        )
    if written.version > 1 + (0 if before is None else before.version):
        before = open_archive(archive, written.version - 1)  # other processes committed in the meantime
    there = {} if before is None else {run.system: run.content for run in before.runs}
    click.echo(f"{archive}: version {written.version}, {counted(len(written.runs), 'runs')}")
    if before is not None and before.inputs != written.inputs:  # judged documents
        click.echo(f"  documents: {len(before.documents):,} before, {len(written.documents):,} now")
    new = [run for run in written.runs if there.get(run.system) != run.content]
    for run in new:
        click.echo(f"  {run.system}: {counted(run.rows, 'detections')}")
    if len(new) < len(written.runs):
        click.echo(f"  {counted(len(written.runs) - len(new), 'runs')} already there")
    if written.kept is None:
        click.echo(f"{KEPT_NONE} With --change-settings it keeps those given now.")


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--reference", metavar="DIRECTORY", help="The runs' queries and documents must be those of this reference."
)
@corpus_options
@encoding_options
@settings_options
@engine_options
@records_format_option
def validate(
    paths: tuple[str, ...],
    reference: str | None,
    chosen: SettingsOptions,
    corpus: CorpusOptions,
    encoded: EncodingOptions,
    engine: EngineOptions,
    form: str,
) -> None:
    """Check references, runs, files of term discovery, folders and globs of them; list every problem with file:line.

    If one folder among them is a reference, the runs may only contain its queries and documents, as with --reference,
    unless the settings allow unknown ones, such as --set unknown_queries=drop.

    With --phones and --words (and --split, --folds, --within or --speakers), the files of a corpus are checked against
    each other, and class files against them, as `swsdask discover` does with the same --definition.

    Exit code 0: no problems; 2: stderr lists the problems. With csv or json, stdout has one record for each.
    """
    import swsdask as sws
    from swsdask.archive.store import is_archive
    from swsdask.cli.progress import progress
    from swsdask.model.tables import records_as

    if not paths and not any(corpus.arguments().values()):
        raise click.UsageError("Give the files to check.")
    for path in paths:
        with suppress(ArchiveError):  # A file can be read where its folder cannot be listed.
            if is_archive(path):
                raise click.UsageError(f"{path} is an archive, checked when it was ingested: swsdask show {path}")
    with progress("files") as shown:
        report = sws.validate(
            paths,
            reference,
            **corpus.arguments(),
            **encoded.arguments(),
            **chosen.arguments(engine),
            progress=shown,
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


@click.command("verify")
@click.argument("archive", metavar="ARCHIVE")
@click.option("--repair", metavar="COPY", help="Replace damaged files with those of a copy of the archive.")
@click.option("--adopt", is_flag=True, help="Add hashes to files that an earlier release wrote without them.")
@engine_options
def verify(
    archive: str,
    repair: str | None,
    adopt: bool,
    engine: EngineOptions,
) -> None:
    """Read every file of all versions of an ARCHIVE and of its history, and list the damaged ones.

    Damaged files below kept/ are never used: their content is computed again. Remove them, and check the disk.

    Exit code 0: no file is damaged; 2: stderr lists the damaged files.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress

    settings = {"engine": engine.settings()}
    with progress("files") as shown:
        found = sws.verify(archive, repair=repair, adopt=adopt, settings=settings, progress=shown)
    for name, instead in found.damaged.items():
        click.echo(f"{archive}/{name}: damaged: found {instead}", err=True)
    for name in found.repaired:
        click.echo(f"{archive}/{name}: repaired")
    lines = [f"{counted(found.files, 'files')}, {len(found.damaged)} damaged"]
    if found.repaired:
        lines.append(f"{len(found.repaired)} repaired")
    if found.adopted is not None:
        lines.append(f"version {found.adopted} keeps hashes of {counted(found.without_hash, 'files')} that had none")
    elif found.without_hash:
        lines.append(f"{found.without_hash} without hashes: --adopt adds them")
    click.echo(f"{archive}: {', '.join(lines)}")
    if found.damaged:
        sys.exit(2)


@click.command("vacuum")
@click.argument("archive", metavar="ARCHIVE")
@click.option(
    "--older-than",
    metavar="AGE",
    type=Age("h"),
    default="24h",
    show_default=True,
    help="Time without activity after which a writer counts as stopped: 36h or 7d; hours without a unit.",
)
@click.option("--dry-run", is_flag=True, help="List the files; remove nothing.")
def vacuum(archive: str, older_than: float, dry_run: bool) -> None:
    """Remove the files of an ARCHIVE that belong to no version, left by interrupted writers.

    It is safe to run while others write. Nothing is removed if a version cannot be read: `swsdask verify` says why.
    """
    import swsdask as sws

    names = sws.vacuum(archive, older_than_s=older_than, dry_run=dry_run)
    for name in names:
        click.echo(name)
    click.echo(f"{archive}: {counted(len(names), 'files')} {'to remove' if dry_run else 'removed'}")


@click.command("expire")
@click.argument("archive", metavar="ARCHIVE")
@click.option("--keep", metavar="N", type=click.IntRange(1), help="Keep the N newest versions.")
@click.option(
    "--older-than",
    metavar="AGE",
    type=Age("d"),
    help="Remove only versions that are older: 36h or 365d; days without a unit.",
)
@click.option("--dry-run", is_flag=True, help="List the versions and files; remove nothing.")
def expire(archive: str, keep: int | None, older_than: float | None, dry_run: bool) -> None:
    """Remove old versions of an ARCHIVE, and the files that only they use. It is safe to run while others write.

    The newest version always stays. With both options, a version is removed only if it is older than AGE and not among
    the N newest. Nothing is removed if a version cannot be read: `swsdask verify` says why.
    `swsdask show --versions` lists the versions.
    """
    import swsdask as sws

    found = sws.expire(archive, keep=keep, older_than_s=older_than, dry_run=dry_run)
    for number in found.versions:
        click.echo(f"version {number}")
    for name in found.files:
        click.echo(name)
    both = f"{counted(len(found.versions), 'versions')}, {counted(len(found.files), 'files')}"
    click.echo(f"{archive}: {both} {'to remove' if dry_run else 'removed'}")


MORE_WORKERS = (2, 4, 8, 16, 32)
"""The numbers of workers for which the time is estimated."""


@click.command("bench")
@click.argument("archive", metavar="ARCHIVE")
@measures_option("Count only the statistics that these measures need, e.g. atwv,mtwv.")
@engine_options
@format_option
def bench(archive: str, measures: list[str] | None, engine: EngineOptions, form: str) -> None:
    """Score an ARCHIVE without its cache, and report what each phase costs compared with a bare read of the detections.

    CPU is the time of this process, without worker processes. Phases that workers share take less time with more
    workers; the estimate assumes that each worker has its own processor and reads as fast.
    """
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.render.archives import print_phases

    with progress() as shown:
        evaluation = sws.open(archive, settings={"engine": engine.settings()})
        found = sws.benchmark(evaluation, measures, progress=shown)
    phases = found.to_arrow().to_pylist()
    if form == "json":
        click.echo(json.dumps(phases))
        return
    of = f"{counted(found.systems, 'systems')}, {counted(found.rows, 'detections')}, {found.file_size / 1e6:,.1f} MB"
    click.echo(f"{of}, {counted(found.workers, 'workers')}")
    print_phases(phases)
    more = [workers for workers in MORE_WORKERS if workers > found.workers]
    estimates = ", ".join(f"{found.seconds_with(workers):.2f} s with {workers}" for workers in more)
    click.echo(
        f"Scoring took {found.seconds_with(found.workers):.2f} s with {counted(found.workers, 'workers')}; "
        f"at best it takes {estimates}."
    )
