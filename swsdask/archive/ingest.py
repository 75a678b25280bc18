"""Reading files into an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from swsdask.archive.judged import JudgedFiles
from swsdask.archive.layout import Layout
from swsdask.archive.reading import RunFile, read_reference, sources_of
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive
from swsdask.archive.tasks import Executor
from swsdask.archive.writing import write_runs
from swsdask.formats.reference import ReferenceFiles
from swsdask.model.layers import Layers
from swsdask.model.settings import EvaluationSettings


def ingest(
    url: str,
    reference_files: ReferenceFiles | JudgedFiles | None,
    run_files: Sequence[RunFile],
    settings: EvaluationSettings,
    *,
    replace: bool = False,
    keep: Layers | None = None,
    change_settings: bool = False,
    layout: Layout | None = None,
    executor: Executor | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> StoredArchive:
    """Write a reference and runs into the archive at a URL, made if there is none; see `archive.writing.write_runs`.

    Raises `InputError` with everything that is wrong with the files, `ArchiveError` if the archive or the storage does
    not admit the change. In either case the archive is as it was.
    """
    return write_runs(
        Storage(url, storage_options or {}),
        None if reference_files is None else read_reference(reference_files),
        sources_of(run_files),
        settings,
        replace=replace,
        keep=keep,
        change_settings=change_settings,
        layout=layout,
        executor=executor,
        progress=progress,
    )
