"""Removal of files that belong to no version of an archive, while writers may be active, and of old versions.

Files stay behind when a writer is killed or a task is run twice. The name of the writer distinguishes them from files
of active writers (`archive.change`). For files without a writer, the age does: unfinished files of manifests, histories
and leases, files of earlier releases, and cache files of runs that no version has.

Over years an archive gets many versions. This module lists their changes and removes those that are no longer needed.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from swsdask.archive.change import ArchiveKind, held_by
from swsdask.archive.discovery import DISCOVERY
from swsdask.archive.kept import kept_for
from swsdask.archive.local import PART
from swsdask.archive.nights import version_of_last_night
from swsdask.archive.storage import PROBE, Storage
from swsdask.archive.store import EVALUATION
from swsdask.archive.stored_tables import StoredFile
from swsdask.archive.versions import (
    DETECTION_FILES,
    KEPT,
    TABLES,
    TEMPORARY,
    Manifest,
    kind_of,
    lease_writer,
    manifest_name,
    opened,
    read_version,
    versions,
)
from swsdask.model.errors import ArchiveError, SettingsError, check_whole
from swsdask.model.layers import Layers, Override, overrides

DAY_S = 86_400.0

_FOLDERS = (TABLES, DETECTION_FILES, TEMPORARY, KEPT)
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
    is_kept = kept_for(name.split("/")[1] for name in named if name.startswith(f"{DETECTION_FILES}/"))

    def is_left(name: str, changed: float) -> bool:
        if name in named or is_kept(name) or not _LEFT.fullmatch(name):
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
    """The time some seconds ago. Raises `SettingsError` for NaN: compared with it, every writer counts as stopped."""
    if math.isnan(seconds):
        raise SettingsError(f"older_than_s={seconds}: expected a number of seconds.")
    return time.time() - seconds


AnyKind = ArchiveKind[Any, Any]
"""The kind of an archive that may be of either kind."""

_Parts = dict[StoredFile, dict[str, Any]]
"""The entries in each part of their table that was read."""


def archive_kind(storage: Storage) -> AnyKind:
    """Return the kind of archive. Raises `ArchiveError` if there is none."""
    while there := versions(storage):
        with unless_removed(storage, there[-1]):
            return DISCOVERY if kind_of(storage, there[-1]) is DISCOVERY.manifest else EVALUATION
    raise ArchiveError(f"{storage.url}: expected an archive; found none.")


def removed_meanwhile(storage: Storage, known: Iterable[int]) -> list[int]:
    """The known versions that another process removed. It never removes the newest: a missing newest one was lost."""
    there = set(versions(storage))
    return [version for version in known if version not in there and version < max(there, default=0)]


@contextmanager
def unless_removed(storage: Storage, version: int) -> Iterator[None]:
    """End the context without an error if reading a version fails because another process removed it meanwhile."""
    try:
        yield
    except (ArchiveError, OSError):
        if not removed_meanwhile(storage, [version]):
            raise


def named_files(storage: Storage, without: Collection[int] = ()) -> Iterator[StoredFile]:
    """Every file that a version names, once per version, without the versions in `without`.

    Versions that other processes remove meanwhile name nothing. As a newer version may name the same files, versions
    that were committed meanwhile are read too.

    Raises `ArchiveError` for any version that cannot be read, including those in `without`.
    """
    kind = archive_kind(storage)
    known: _Parts = {}
    seen: set[int] = set()
    while new := [version for version in versions(storage) if version not in seen]:
        seen.update(new)
        for version in new:
            with unless_removed(storage, version):
                manifest = read_version(storage, version, kind.manifest)
                if version not in without:
                    yield from (*manifest.files, *_files_of_entries(storage, kind, manifest, known))


def _files_of_entries(storage: Storage, kind: AnyKind, manifest: Manifest, known: _Parts) -> Iterator[StoredFile]:
    for entry in kind.entries(storage, manifest, known=known).values():
        yield from kind.files(entry)


@dataclass(frozen=True)
class VersionDifference:
    """The difference between two versions: names of systems, and changed settings."""

    added: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    settings: tuple[Override, ...]


@dataclass(frozen=True)
class Version:
    """A version: its number, time of commit (seconds since 1970), systems, and changes since the version before.

    The changes of the oldest version are not known (None) if those before it have expired.
    """

    number: int
    committed: float
    systems: tuple[str, ...]
    changed: VersionDifference | None


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


def list_versions(url: str) -> Iterator[Version]:
    """Every version of an archive, ascending, without those that another process removes meanwhile.

    Raises `ArchiveError` for a version that cannot be read.
    """
    storage = Storage(url)
    kind = archive_kind(storage)
    numbers = versions(storage)
    committed = storage.modified()
    known: _Parts = {}
    before: _State | None = None
    for number in numbers:
        with unless_removed(storage, number):
            now = _State.of(storage, kind, read_version(storage, number, kind.manifest), known)
            since = _State({}, None) if number == 1 else before
            changed = None if since is None else _difference(since, now)
            yield Version(number, committed[manifest_name(number)], tuple(now.contents), changed)
            before = now


def difference(url: str, one: int, other: int) -> VersionDifference:
    """Compare two versions: what `other` has and `one` has not. Raises `ArchiveError` for a missing version."""
    storage = Storage(url)
    kind = archive_kind(storage)
    known: _Parts = {}
    manifests = (opened(storage, number, kind.manifest) for number in (one, other))
    return _difference(*(_State.of(storage, kind, manifest, known) for manifest in manifests))


@dataclass(frozen=True)
class _State:
    """The content hashes of a version's systems, and the settings that it keeps."""

    contents: dict[str, str]
    kept: Layers | None

    @classmethod
    def of(cls, storage: Storage, kind: AnyKind, manifest: Manifest, known: _Parts) -> Self:
        """Summarise a manifest; `known` are parts of tables that were read before."""
        entries = kind.entries(storage, manifest, known=known)
        return cls({system: kind.content(entry) for system, entry in entries.items()}, manifest.kept)


def _difference(before: _State, now: _State) -> VersionDifference:
    there, here = before.contents, now.contents
    return VersionDifference(
        added=tuple(system for system in here if system not in there),
        replaced=tuple(system for system in here if there.get(system, here[system]) != here[system]),
        removed=tuple(system for system in there if system not in here),
        settings=overrides(before.kept.settings(), now.kept.settings()) if before.kept and now.kept else (),
    )
