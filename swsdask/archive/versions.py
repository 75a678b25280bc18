"""Versions of an archive: manifests, names of files, and commits.

Versions of an archive: what a manifest says, and how one is committed.

A version is a JSON file that is written only if its name is free: of two writers one wins, and the other reads again.
It names every file of the version, all of which are written before it; so whatever happens to a writer, the versions
that were there stay as they were. The archive is its highest manifest.

How an archive's files are named.

    manifest-00000001.json         one per committed version; the highest is the archive
    tables/NAME-TOKEN.parquet      documents, queries, words, segments, occurrences, runs
    detections/CONTENT/FIRST-LAST-PART-TOKEN.parquet
                                   rows of the run with that content hash, of the buckets FIRST to LAST
    temporary/TOKEN/               rows on their way into their buckets; gone when an ingest ends

A query's bucket is a hash of its id modulo the number of buckets. No id stands in a path; tokens are random, so that
no file is ever written twice. Row groups are cut only where the (query, document) changes.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import xxhash

from swsdask.archive.storage import Storage
from swsdask.model.errors import ArchiveError
from swsdask.model.layers import Layers, overrides
from swsdask.model.trials import I64

FORMAT_VERSION = 1
HASH_VERSION = 1
"""The hash of `bucket_of`: xxh3_64 of the id's UTF-8 bytes, seed 0."""

BUCKETS = 64
"""Query buckets of a new archive, unless others are asked for."""

TEMPORARY = "temporary"
TABLES = "tables"
DETECTION_FILES = "detections"

_MANIFEST = re.compile(r"manifest-(\d{8})\.json")


@dataclass(frozen=True)
class Layout:
    """How an archive's files are cut and encoded. It never changes a number.

    `buckets` counts for a new archive (None: `BUCKETS`), which keeps them; asking another number of an archive is an
    error. A fragment has about `rows_per_fragment` rows, which are sorted in memory; a row group at most
    `rows_per_group`; `rows_in_memory` are gathered before they are spilled. `codec` is lz4 or zstd.
    """

    buckets: int | None = None
    rows_per_group: int = 1_000_000
    rows_per_fragment: int = 8_000_000
    rows_in_memory: int = 2_000_000
    codec: str = "lz4"


def manifest_name(version: int) -> str:
    """The file of a version's manifest."""
    return f"manifest-{version:08d}.json"


def manifest_version(name: str) -> int | None:
    """The version whose manifest a file is, or None."""
    found = _MANIFEST.fullmatch(name)
    return int(found[1]) if found else None


def new_token() -> str:
    """A part of a file name that no other file has."""
    return secrets.token_hex(8)


def table_name(table: str) -> str:
    """A new file name for a table."""
    return f"{TABLES}/{table}-{new_token()}.parquet"


def fragment_name(content: str, first: int, last: int, part: int) -> str:
    """A new file name for rows of a run, of the buckets `first` to `last`."""
    return f"{DETECTION_FILES}/{content}/{first:05d}-{last:05d}-{part:05d}-{new_token()}.parquet"


def buckets_of(query_ids: Iterable[str], buckets: int) -> I64:
    """The bucket of every query, 0 to `buckets` - 1. `HASH_VERSION` names the hash."""
    return np.array([xxhash.xxh3_64_intdigest(identifier.encode()) % buckets for identifier in query_ids], np.int64)


DISCOVERY = "discovery"
"""What the manifests of archives of term discovery say that they are; those of detections say nothing."""


class AnyManifest(Protocol):
    """What a commit needs of a manifest."""

    @property
    def version(self) -> int:
        """The version it makes."""
        ...

    def to_json(self) -> bytes:
        """The manifest's file."""
        ...


Read = TypeVar("Read", bound=AnyManifest)


@dataclass(frozen=True)
class Manifest:
    """One version of an archive of detections.

    `find_gap` (ticks) and `text_filters` are those by which its occurrences were found, `finder` whose rule found
    them, and its version (`archive.occurrences.finder_of`; empty: not said). `tables` are the files of its tables by
    name, `inputs` the content hashes of its reference by role, `settings` what it keeps of the settings that it was
    made with (`model.layers.Layers.kept`; None in archives of releases that kept none).
    """

    version: int
    buckets: int
    find_gap: int
    text_filters: tuple[str, ...]
    tables: dict[str, str]
    inputs: dict[str, str]
    settings: dict[str, Any] | None = None
    finder: str = ""
    format_version: int = FORMAT_VERSION
    hash_version: int = HASH_VERSION

    @property
    def kept(self) -> Layers | None:
        """The settings that the archive keeps; None if it is of a release that kept none."""
        return None if self.settings is None else Layers(**self.settings)

    def to_json(self) -> bytes:
        """The manifest's file."""
        return (json.dumps(asdict(self), indent=2, sort_keys=True) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Self | None:
        """The manifest in a file, None if the file is not whole.

        Raises `ArchiveError` for a manifest of a version of the format that is not known here.
        """
        said = whole_json(content, where)
        if said is None:
            return None
        if said.get("kind") == DISCOVERY:
            raise ArchiveError(
                f"{where}: expected an archive of detections; found one of term discovery. Score it with `swsdask "
                "discover`."
            )
        try:
            return cls(**{**said, "text_filters": tuple(said["text_filters"])})
        except (TypeError, KeyError) as error:
            raise ArchiveError(f"{where}: not a manifest of an archive: {error}.") from None


def whole_json(content: bytes, where: str) -> dict[str, Any] | None:
    """What a manifest's file says, None if the file is not whole.

    Raises `ArchiveError` for a manifest of a version of the format that is not known here.
    """
    try:
        said: dict[str, Any] = dict(json.loads(content))
    except (ValueError, TypeError):
        return None
    if said.get("format_version") != FORMAT_VERSION or said.get("hash_version") != HASH_VERSION:
        raise ArchiveError(
            f"{where}: expected archive format {FORMAT_VERSION} with hash {HASH_VERSION}; found "
            f"{said.get('format_version')} with {said.get('hash_version')}. Read it with the release that wrote it."
        )
    return said


def versions(storage: Storage) -> list[int]:
    """The versions that have a manifest, whole or not, ascending."""
    found = (manifest_version(name) for name in storage.files(below=False))
    return sorted(version for version in found if version is not None)


def read_version(storage: Storage, version: int, read: Callable[[bytes, str], Read | None]) -> Read | None:
    """The manifest of a version, as `read` makes it of a file and its name; None if it is not whole."""
    name = manifest_name(version)
    return read(storage.read(name), f"{storage.url}/{name}")


def latest(storage: Storage, read: Callable[[bytes, str], Read | None]) -> tuple[Read | None, int]:
    """The manifest of the highest version, None if there is none, and the version to commit on top of it.

    Both are of one moment: if another writer commits after it, committing that version fails. Raises `ArchiveError` if
    the manifest is damaged: commits are whole or not at all, so what it said is lost, not unfinished.
    """
    highest = max(versions(storage), default=0)
    if highest == 0:
        return None, 1
    found = read_version(storage, highest, read)
    if found is None:
        raise ArchiveError(
            f"{storage.url}/{manifest_name(highest)}: expected a whole manifest; found a damaged one. Restore it from "
            "a copy, or remove it to go back to the version before."
        )
    return found, highest + 1


def opened(storage: Storage, version: int | None, read: Callable[[bytes, str], Read | None]) -> Read:
    """The manifest of the current version, or of a given one. Raises `ArchiveError` if there is none, or not that."""
    if version is None:
        manifest, _ = latest(storage, read)
        expected = f"{manifest_name(1)} or later"
    else:
        manifest = read_version(storage, version, read) if version in versions(storage) else None
        expected = manifest_name(version)
    if manifest is None:
        there = ", ".join(map(str, versions(storage))) or "none"
        raise ArchiveError(
            f"{storage.url}: expected an archive with {expected}; versions found: {there}. Ingest first."
        )
    return manifest


def remove_unnamed(storage: Storage, folders: Sequence[str], named: Collection[str]) -> list[str]:
    """Remove the files in some folders that are not `named`; their names."""
    ours = tuple(f"{folder}/" for folder in folders)
    orphans = [name for name in storage.files(below=True) if name.startswith(ours) and name not in named]
    for name in orphans:
        storage.remove(name)
    return orphans


def check_same_settings(storage: Storage, there: Layers | None, ours: Layers | None) -> None:
    """Raise `ArchiveError` if an archive keeps settings `there` that differ from `ours`; either may say nothing."""
    if there is None or ours is None:
        return
    found = "; ".join(
        f"{each.setting}: kept {each.kept}, given {each.used}" for each in overrides(there.settings(), ours.settings())
    )
    if found:
        raise ArchiveError(
            f"{storage.url}: expected the settings that this archive keeps; found others: {found}. Leave them out, or "
            "change what it keeps (--change-settings; in Python change_settings=True)."
        )


def commit(storage: Storage, manifest: AnyManifest) -> bool:
    """Make the version the archive's; False, and nothing has happened, if another writer made it first."""
    return storage.write_new(manifest_name(manifest.version), manifest.to_json())
