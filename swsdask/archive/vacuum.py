"""Removal of the files that no version of an archive names, beside writers that are at work.

Files stay behind where a writer was killed, and where tasks were run twice. Their writers distinguish them from those
of writers at work (`archive.lease`); of files without a writer (unfinished files of manifests, histories and leases,
what earlier releases left, what is kept of runs that no version holds) their age does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from swsdask.archive.change import Kind
from swsdask.archive.discovery import DISCOVERY
from swsdask.archive.kept_statistics import kept_for
from swsdask.archive.lease import held_by
from swsdask.archive.local import PART
from swsdask.archive.storage import PROBE, Storage
from swsdask.archive.store import EVALUATION
from swsdask.archive.tables import StoredFile
from swsdask.archive.versions import (
    DETECTION_FILES,
    KEPT,
    TABLES,
    TEMPORARY,
    kind_of,
    read_version,
    versions,
    writer_of,
)
from swsdask.model.errors import ArchiveError

DAY_S = 86_400.0

_FOLDERS = (TABLES, DETECTION_FILES, TEMPORARY, KEPT)
_LEFT = re.compile(rf"(?:{'|'.join(_FOLDERS)})/.+|.+\.[0-9a-f]{{16}}{re.escape(PART)}|{PROBE}[0-9a-f]{{16}}")


def vacuum(
    url: str,
    *,
    older_than_s: float = DAY_S,
    dry_run: bool = False,
    without: Collection[int] = (),
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """Remove the files that no version needs, and empty folders. Writers may be at work.

    Parameters
    ----------
    url : str
        The archive.
    older_than_s : float
        After how many seconds without a sign of life a writer counts as stopped; and the age of files of no known
        writer. Ten minutes pass between the signs of a writer at work, and as long as its longest task takes.
    dry_run : bool
        Remove nothing.
    without : collection of int
        Versions that need no files, for they are to be removed.
    storage_options : mapping, optional
        Of the file system.

    Returns
    -------
    list of str
        The names of the files, sorted.

    Raises
    ------
    ArchiveError
        If there is no archive, or one of its versions cannot be read: then nothing is known of its files, and nothing
        is removed.
    """
    storage = Storage(url, storage_options or {})
    before = time.time() - older_than_s
    found = storage.modified()
    at_work = held_by(storage, before)
    named = {stored.file for stored in named_files(storage, without)}
    is_kept = kept_for(name.split("/")[1] for name in named if name.startswith(f"{DETECTION_FILES}/"))

    def is_left(name: str, changed: float) -> bool:
        if name in named or is_kept(name) or not _LEFT.fullmatch(name):
            return False
        writer = writer_of(name)
        return changed < before if writer is None else writer not in at_work

    left = sorted(name for name, changed in found.items() if is_left(name, changed))
    if not dry_run:
        for name in left:
            storage.remove(name)
        storage.remove_empty_folders(_FOLDERS, before)
    return left


def archive_kind(storage: Storage) -> Kind[Any, Any]:
    """Return the kind of archive. Raises `ArchiveError` for none."""
    kind = kind_of(storage)
    if kind is None:
        raise ArchiveError(f"{storage.url}: expected an archive; found none.")
    return DISCOVERY if kind is DISCOVERY.manifest else EVALUATION


def named_files(storage: Storage, without: Collection[int] = ()) -> Iterator[StoredFile]:
    """Every file that a version names, once per version; those of the versions `without` are left out.

    Raises `ArchiveError` for a version that cannot be read, also one of these.
    """
    kind = archive_kind(storage)
    for version in versions(storage):
        manifest = read_version(storage, version, kind.manifest)
        if version in without:
            continue
        yield from manifest.tables.values()
        for entry in kind.entries(storage, manifest).values():
            yield from kind.files(entry)
