"""Removal of files that belong to no version of an archive, while writers may be active, and of old versions.

Files stay behind when a writer is killed or a task is run twice. The name of the writer distinguishes them from files
of active writers (`archive.change`). For files without a writer, the age does: unfinished files of manifests, histories
and leases, files of earlier releases, and cache files of runs that no version has.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from swsdask.archive.cache import cached_for
from swsdask.archive.change import held_by
from swsdask.archive.local import PART
from swsdask.archive.nights import version_of_last_night
from swsdask.archive.storage import PROBE, Storage
from swsdask.archive.stored_tables import StoredFile
from swsdask.archive.version_list import AnyKind, KnownParts, archive_kind, unless_removed
from swsdask.archive.versions import (
    CACHE,
    DETECTION_FILES,
    TABLES,
    TEMPORARY,
    Manifest,
    lease_writer,
    manifest_name,
    read_version,
    versions,
)
from swsdask.model.errors import ArchiveError, SettingsError, check_whole

DAY_S = 86_400.0

_FOLDERS = (TABLES, DETECTION_FILES, TEMPORARY, CACHE)
_LEFT = re.compile(rf"(?:{'|'.join(_FOLDERS)})/.+|.+\.[0-9a-f]{{16}}{re.escape(PART)}|{PROBE}[0-9a-f]{{16}}")


def vacuum(
    url: str,
    *,
    older_than_s: float = DAY_S,
    dry_run: bool = False,
    without: Collection[int] = (),
) -> list[str]:
    """Remove the files that no version needs, and empty folders. Writers may be active.

    Parameters
    ----------
    url : str
        The archive.
    older_than_s : float
        The time in seconds without a sign of life after which a writer counts as stopped, and the age from which files
        without a known writer are removed. A running writer renews its lease every ten minutes, or after its longest
        task if that takes longer.
    dry_run : bool
        Remove nothing.
    without : collection of int
        Versions that will be removed, so that they need no files.

    Returns
    -------
    list of str
        The names of the files, sorted.

    Raises
    ------
    SettingsError
        If `older_than_s` is NaN.
    ArchiveError
        If there is no archive, or one of its versions cannot be read. Its files are then unknown, and nothing is
        removed.
    """
    before = _ago(older_than_s)
    storage = Storage(url)
    if (last := version_of_last_night(storage)) > max(versions(storage), default=0):
        raise ArchiveError(
            f"{storage.url}/{manifest_name(last)}: expected the version that the last night was scored from; found "
            "none. Nothing is removed. Restore it from a copy of the archive (`swsdask verify ARCHIVE --repair COPY`)."
        )
    found = storage.modified()
    at_work = held_by(storage, before)
    named = {stored.file for stored in named_files(storage, without)}
    is_cached = cached_for(name.split("/")[1] for name in named if name.startswith(f"{DETECTION_FILES}/"))

    def is_left(name: str, changed: float) -> bool:
        if name in named or is_cached(name) or not _LEFT.fullmatch(name):
            return False
        writer = lease_writer(name)
        return changed < before if writer is None else writer not in at_work

    left = sorted(name for name, changed in found.items() if is_left(name, changed))
    if not dry_run:
        for name in left:
            storage.remove(name)
        storage.remove_empty_folders(_FOLDERS, before)
    return left


def _ago(seconds: float) -> float:
    """Return the time some seconds ago.

    Raises `SettingsError` for NaN: compared with it, every writer counts as stopped.
    """
    if math.isnan(seconds):
        raise SettingsError(f"older_than_s={seconds}: expected a number of seconds.")
    return time.time() - seconds


def named_files(storage: Storage, without: Collection[int] = ()) -> Iterator[StoredFile]:
    """Yield every file that a version names, once per version, without the versions in `without`.

    Versions that other processes remove meanwhile name nothing. As a newer version may name the same files, versions
    that were committed meanwhile are read too.

    Raises `ArchiveError` for any version that cannot be read, including those in `without`.
    """
    kind = archive_kind(storage)
    known: KnownParts = {}
    seen: set[int] = set()
    while new := [version for version in versions(storage) if version not in seen]:
        seen.update(new)
        for version in new:
            with unless_removed(storage, version):
                manifest = read_version(storage, version, kind.manifest)
                if version not in without:
                    yield from (*manifest.files, *_files_of_entries(storage, kind, manifest, known))


def _files_of_entries(storage: Storage, kind: AnyKind, manifest: Manifest, known: KnownParts) -> Iterator[StoredFile]:
    for entry in kind.entries(storage, manifest, known=known).values():
        yield from kind.files(entry)


@dataclass(frozen=True)
class Expired:
    """The versions that were or would be removed, and the files that only they used."""

    versions: tuple[int, ...]
    files: tuple[str, ...]


def expire(
    url: str,
    *,
    keep: int | None = None,
    older_than_s: float | None = None,
    dry_run: bool = False,
) -> Expired:
    """Remove old versions, and then the files that belong to no version. Writers may be active.

    Manifests are removed first, in ascending order. So an archive is intact after an interrupted expiry, and the next
    call, or `vacuum`, removes the rest.

    Parameters
    ----------
    url : str
        The archive.
    keep : int, optional
        The number of newest versions to keep, whatever their age. Default: 1.
    older_than_s : float, optional
        Keep versions that were committed at most this many seconds ago. Default: only `keep` decides.
    dry_run : bool
        Remove nothing.

    Returns
    -------
    Expired
        The versions and the files.

    Raises
    ------
    SettingsError
        If neither `keep` nor `older_than_s` is given, or `older_than_s` is NaN.
    ArchiveError
        If there is no archive, or one of its versions cannot be read. Then nothing is removed.
    """
    if keep is None and older_than_s is None:
        raise SettingsError("Give how many versions stay (--keep), up to which age they stay (--older-than), or both.")
    if keep is not None:
        keep = check_whole("keep", keep, 1)
    before = _ago(older_than_s or 0.0)
    storage = Storage(url)
    old = versions(storage)[: -(keep or 1)]
    committed = storage.modified()  # without a version that another process has just removed
    expired = tuple(number for number in old if committed.get(manifest_name(number), math.inf) <= before)
    files = vacuum(url, dry_run=True, without=expired)
    if not dry_run:
        for number in expired:
            storage.remove(manifest_name(number))
        files = vacuum(url)
    return Expired(expired, tuple(files))
