"""The versions of an archive over years: what each changed, and the removal of those that are no longer needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from swsdask.archive.change import Kind
from swsdask.archive.storage import Storage
from swsdask.archive.vacuum import archive_kind, vacuum
from swsdask.archive.versions import Manifest, manifest_name, opened, read_version, versions
from swsdask.model.errors import SettingsError
from swsdask.model.layers import Layers, Override, overrides


@dataclass(frozen=True)
class Difference:
    """What one version has that another has not: systems by name, and settings that the archive keeps otherwise."""

    added: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    settings: tuple[Override, ...]


@dataclass(frozen=True)
class Version:
    """A version: its number, when it was committed (seconds since 1970), its systems, and what it changed."""

    number: int
    committed: float
    systems: tuple[str, ...]
    changed: Difference


@dataclass(frozen=True)
class Expired:
    """The versions that were removed, or would be, and the files that no version names without them."""

    versions: tuple[int, ...]
    files: tuple[str, ...]


def expire(
    url: str,
    *,
    keep: int | None = None,
    older_than_s: float | None = None,
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Expired:
    """Remove old versions, and then the files that no version names. Writers may be at work.

    Manifests are removed first, the oldest before the others: an archive whose expiry was interrupted is whole, and the
    next call, or `archive.vacuum`, removes the rest.

    Parameters
    ----------
    url : str
        The archive.
    keep : int, optional
        How many of the newest versions stay, whatever their age. Default: the newest.
    older_than_s : float, optional
        The age, in seconds since the commit, up to which versions stay. Default: no age.
    dry_run : bool
        Remove nothing.
    storage_options : mapping, optional
        Of the file system.

    Returns
    -------
    Expired
        The versions and the files.

    Raises
    ------
    SettingsError
        If neither `keep` nor `older_than_s` is given.
    ArchiveError
        If there is no archive, or one of its versions cannot be read: then nothing is removed.
    """
    if keep is None and older_than_s is None:
        raise SettingsError("Give how many versions stay (--keep), up to which age they stay (--older-than), or both.")
    if keep is not None and keep < 1:
        raise SettingsError(f"keep={keep}: expected at least 1, for the newest version stays.")
    storage = Storage(url, storage_options or {})
    before = time.time() - (older_than_s or 0)
    committed = storage.modified()
    old = versions(storage)[: -(keep or 1)]
    expired = tuple(number for number in old if committed[manifest_name(number)] <= before)
    files = vacuum(url, dry_run=True, without=expired, storage_options=storage_options)
    if not dry_run:
        for number in expired:
            storage.remove(manifest_name(number))
        files = vacuum(url, storage_options=storage_options)
    return Expired(expired, tuple(files))


def list_versions(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[Version]:
    """Every version of an archive, from the first on. Raises `ArchiveError` for one that cannot be read."""
    storage = Storage(url, storage_options or {})
    kind = archive_kind(storage)
    committed = storage.modified()
    before = _State({}, None)
    for number in versions(storage):
        now = _State.of(storage, kind, read_version(storage, number, kind.manifest))
        yield Version(number, committed[manifest_name(number)], tuple(now.contents), _difference(before, now))
        before = now


def difference(url: str, one: int, other: int, storage_options: Mapping[str, Any] | None = None) -> Difference:
    """Compare two versions: what `other` has and `one` has not. Raises `ArchiveError` for a missing version."""
    storage = Storage(url, storage_options or {})
    kind = archive_kind(storage)
    return _difference(*(_State.of(storage, kind, opened(storage, number, kind.manifest)) for number in (one, other)))


@dataclass(frozen=True)
class _State:
    """The content hashes of a version's systems, and the settings that it keeps."""

    contents: dict[str, str]
    kept: Layers | None

    @classmethod
    def of(cls, storage: Storage, kind: Kind[Any, Any], manifest: Manifest) -> Self:
        """Summarise a manifest."""
        entries = kind.entries(storage, manifest)
        return cls({system: kind.content(entry) for system, entry in entries.items()}, manifest.kept)


def _difference(before: _State, now: _State) -> Difference:
    there, here = before.contents, now.contents
    return Difference(
        added=tuple(system for system in here if system not in there),
        replaced=tuple(system for system in here if there.get(system, here[system]) != here[system]),
        removed=tuple(system for system in there if system not in here),
        settings=overrides(before.kept.settings(), now.kept.settings()) if before.kept and now.kept else (),
    )
