"""The versions of an archive, from which other processes may remove old ones meanwhile, and their differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from swsdask.archive.change import ArchiveKind
from swsdask.archive.discovery import DISCOVERY
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION
from swsdask.archive.stored_tables import StoredFile
from swsdask.archive.versions import Manifest, kind_of, manifest_name, open_version, read_version, versions
from swsdask.model.errors import ArchiveError
from swsdask.model.layers import Layers, Override, overrides

AnyKind = ArchiveKind[Any, Any]
"""The kind of an archive that may be of either kind."""

KnownParts = dict[StoredFile, dict[str, Any]]
"""The entries in each part of their table that was read."""


def archive_kind(storage: Storage) -> AnyKind:
    """Return the kind of archive. Raises `ArchiveError` if there is none."""
    while existing := versions(storage):
        with unless_removed(storage, existing[-1]):
            return DISCOVERY if kind_of(storage, existing[-1]) is DISCOVERY.manifest else EVALUATION
    raise ArchiveError(f"{storage.url}: expected an archive; found none.")


def removed_meanwhile(storage: Storage, known: Iterable[int]) -> list[int]:
    """Return the known versions that another process removed.

    It never removes the newest: a missing newest one was lost.
    """
    existing = set(versions(storage))
    return [version for version in known if version not in existing and version < max(existing, default=0)]


@contextmanager
def unless_removed(storage: Storage, version: int) -> Iterator[None]:
    """End the context without an error if reading a version fails because another process removed it meanwhile."""
    try:
        yield
    except (ArchiveError, OSError):
        if not removed_meanwhile(storage, [version]):
            raise


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


def list_versions(url: str) -> Iterator[Version]:
    """Yield every version of an archive, ascending, without those that another process removes meanwhile.

    Raises `ArchiveError` for a version that cannot be read.
    """
    storage = Storage(url)
    kind = archive_kind(storage)
    numbers = versions(storage)
    committed = storage.modified()
    known: KnownParts = {}
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
    known: KnownParts = {}
    manifests = (open_version(storage, number, kind.manifest) for number in (one, other))
    return _difference(*(_State.of(storage, kind, manifest, known) for manifest in manifests))


@dataclass(frozen=True)
class _State:
    """The content hashes of a version's systems, and the settings that it keeps."""

    contents: dict[str, str]
    kept: Layers | None

    @classmethod
    def of(cls, storage: Storage, kind: AnyKind, manifest: Manifest, known: KnownParts) -> Self:
        """Summarise a manifest; `known` are parts of tables that were read before."""
        entries = kind.entries(storage, manifest, known=known)
        return cls({system: kind.content(entry) for system, entry in entries.items()}, manifest.kept)


def _difference(before: _State, now: _State) -> VersionDifference:
    earlier, later = before.contents, now.contents
    return VersionDifference(
        added=tuple(system for system in later if system not in earlier),
        replaced=tuple(system for system in later if earlier.get(system, later[system]) != later[system]),
        removed=tuple(system for system in earlier if system not in later),
        settings=overrides(before.kept.settings(), now.kept.settings()) if before.kept and now.kept else (),
    )
