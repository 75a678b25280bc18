"""Writing an evaluation into an archive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from swsdask.api.arguments import Location, Runs, named_runs, rows_about, run_files
from swsdask.api.opening import judged_files, layers_of, reference_files
from swsdask.api.runs import working
from swsdask.archive.store import StoredArchive, is_archive, open_archive
from swsdask.archive.versions import Layout
from swsdask.archive.write import ingest as ingest_files
from swsdask.execution.executor import Executor, Progress
from swsdask.formats.run_encoding import Encoding


def ingest(
    archive: Location,
    reference: Location | None = None,
    *,
    ecf: Location | None = None,
    rttm: Location | None = None,
    queries: Location | None = None,
    qrels: Location | None = None,
    runs: Runs = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: Mapping[str, Any] | None = None,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    replace_runs: bool = False,
    change_settings: bool = False,
    buckets: int | None = None,
    codec: str = "lz4",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> StoredArchive:
    """Write a reference and runs into the archive at a path or URL, made if there is none; the new version.

    A new archive keeps its settings, and `open` takes them from it. Those of an archive that is there count for later
    runs too; others are an `ArchiveError` unless `change_settings`, which makes the archive keep them.

    A run that is there already, with the same content, is left alone; one whose content differs is an `ArchiveError`
    unless `replace_runs`. Either everything is committed or nothing. With judgments, `qrels`, documents are those that
    were judged and those of `runs`: an archive of judgments takes later runs of these documents only. `frame_shift` and
    `negate_scores` are as for `score`.
    """
    layers = layers_of(preset, compat, settings, judged=qrels is not None)
    kept = open_archive(os.fspath(archive)).kept if is_archive(os.fspath(archive)) else None
    layers = layers if kept is None else layers.over(kept)
    resolved = layers.settings()
    given = reference is not None or any((ecf, rttm, queries))
    judged = None if qrels is None else judged_files(qrels, runs, (reference, ecf, rttm, queries))
    runs = named_runs(runs)
    layout = Layout(buckets=buckets, codec=codec)
    with working(resolved, executor, rows_about(run_files(runs)), progress) as workers:
        return ingest_files(
            os.fspath(archive),
            reference_files(reference, ecf, rttm, queries) if given else judged,
            run_files(runs, Encoding(frame_shift, negate_scores)),
            resolved.evaluation,
            replace=replace_runs,
            keep=layers,
            change_settings=change_settings,
            layout=layout,
            executor=workers,
            progress=None if progress is None else lambda label: progress.begin(label, 0),
        )
