"""Versions of an archive: manifests, names of files, and commits.

A version is a manifest, a JSON file that is written only if its name is free: one of two writers wins, and the other
reads again. It names every file of the version, with size and hash, and these are written before it. So an interrupted
writer leaves the existing versions unchanged. The manifest has a hash of its own content. The current version is the
highest manifest.

    manifest-00000001.json         one per committed version; the highest is the archive
    tables/NAME-WRITERTOKEN.parquet
                                   documents, queries, words, segments, occurrences, runs, and judgments where there
                                   are any; of term discovery phones, words, split, folds, within, speakers, systems,
                                   and each system's classes, fragments
    detections/CONTENT/FIRST-LAST-PART-WRITERTOKEN.parquet
                                   rows of the run with that content hash, of the buckets FIRST to LAST
    kept/...                       merged statistics and results (`archive.cache`), which no manifest names
    temporary/WRITER/              the lease of a writer (`archive.change`), and rows on their way into their buckets;
                                   gone when the writer ends

A query's bucket is a hash of its id modulo the number of buckets. No id is part of a path; WRITER and TOKEN are 16
random hexadecimal digits each, so that no file is ever written twice. Row groups are cut only where the (query,
document) changes.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
import xxhash
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import REMEDY, StoredFile
from swsdask.model.errors import ArchiveError, check_choice, check_whole
from swsdask.model.hashes import hash_json
from swsdask.model.layers import Layers, overrides
from swsdask.model.trials import I64
from swsdask.model.wording import listed
from swsdask.places.reading import ARCHIVED, join_path, no_folder

FORMAT_VERSION = 3
IN_ONE_TABLE = 2
"""The format of archives with all entries in one table, which every commit copied; still read."""
WITHOUT_HASHES = 1
"""The format of archives without sizes and hashes of files; still read."""
HASH_VERSION = 1
"""The hash of `buckets_of`: xxh3_64 of the id's UTF-8 bytes, seed 0."""

BUCKETS = 64
"""Query buckets of a new archive, unless others are requested."""
MOST_BUCKETS = 1 << 20
"""The maximum number of query buckets: each is a task of ingesting and has a place in every table of queries."""

TEMPORARY = "temporary"
TABLES = "tables"
DETECTION_FILES = "detections"
CACHE = "kept"
"""The folder of the cache (`archive.cache`)."""

_WRITER = re.compile(r"-([0-9a-f]{16})[0-9a-f]{16}\.parquet$|^temporary/([0-9a-f]{16})/")
_OWN_HASH = "hash"

AnyManifest = TypeVar("AnyManifest", bound="Manifest")


CODECS = ("lz4", "zstd", "snappy", "gzip", "brotli", "none")
"""The compressions of Parquet."""


@dataclass(frozen=True)
class Layout:
    """The layout of an archive's files, which never changes a number.

    `buckets` applies to a new archive (None: `BUCKETS`) and cannot be changed later: another number is an error. A
    fragment has about `rows_per_fragment` rows, which are sorted in memory, and a row group at most `rows_per_group`.
    `rows_in_memory` rows are gathered before they are spilled; a run with fewer rows is not spilled. `codec` is one of
    `CODECS`.
    """

    buckets: int | None = None
    rows_per_group: int = 1_000_000
    rows_per_fragment: int = 8_000_000
    rows_in_memory: int = 4_000_000
    codec: str = "lz4"

    def __post_init__(self) -> None:
        check_choice("codec", self.codec, CODECS)
        if self.buckets is not None:
            object.__setattr__(self, "buckets", check_whole("buckets", self.buckets, 1, MOST_BUCKETS))


def manifest_name(version: int) -> str:
    """Return the file of a version's manifest."""
    return f"manifest-{version:08d}.json"


def manifest_version(name: str) -> int | None:
    """Return the version whose manifest a file is, or None."""
    found = ARCHIVED.fullmatch(name)
    return int(found[1]) if found else None


def new_token() -> str:
    """Return a random part of a file name, unique to the file."""
    return secrets.token_hex(8)


def table_name(table: str, writer: str) -> str:
    """Return a new file name for a table that a writer writes."""
    return f"{TABLES}/{table}-{writer}{new_token()}.parquet"


def fragment_name(content: str, first: int, last: int, part: int, writer: str) -> str:
    """Return a new file name for a writer's rows of a run, of the buckets `first` to `last`."""
    return f"{DETECTION_FILES}/{content}/{first:05d}-{last:05d}-{part:05d}-{writer}{new_token()}.parquet"


def lease_writer(name: str) -> str | None:
    """Return the writer of a file, from the name of the file; None for files of releases whose writers had no lease."""
    found = _WRITER.search(name)
    return (found[1] or found[2]) if found else None


def buckets_of(query_ids: Iterable[str], buckets: int) -> I64:
    """Return the bucket of every query, 0 to `buckets` - 1. `HASH_VERSION` names the hash."""
    return np.array([xxhash.xxh3_64_intdigest(identifier.encode()) % buckets for identifier in query_ids], np.int64)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One version of an archive, of either kind.

    Parameters
    ----------
    version : int
        The number of the version, from 1 on.
    tables : dict of str to StoredFile
        The files of its tables by name.
    newer : tuple of StoredFile
        Further files of the table of entries (`archive.change`), the newest last.
    inputs : dict of str to str
        The content hashes of the inputs, by role.
    settings : dict, optional
        The settings that it keeps (`model.layers.Layers.to_store`); None in archives of releases that kept none.
    """

    kind: ClassVar[str]
    described: ClassVar[str]
    command: ClassVar[str]
    needed: ClassVar[tuple[str, ...]]

    version: Annotated[int, Field(ge=1)]
    tables: dict[str, StoredFile]
    inputs: dict[str, str]
    newer: tuple[StoredFile, ...] = ()
    settings: dict[str, Any] | None = None

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    @property
    def kept(self) -> Layers | None:
        """The settings that the archive keeps; None for archives of releases that kept none."""
        return None if self.settings is None else Layers(**self.settings)

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """The files of all tables."""
        return (*self.tables.values(), *self.newer)

    def to_json(self) -> bytes:
        """Return the content of the manifest's file."""
        said = {
            **asdict(self),
            "kind": self.kind,
            "format_version": FORMAT_VERSION,
            "hash_version": HASH_VERSION,
        }
        return (json.dumps({**said, _OWN_HASH: hash_json(said)}, indent=2, sort_keys=True) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Self:
        """Read the manifest of a file.

        Raises
        ------
        ArchiveError
            If the file is damaged, of another kind of archive, or in an unknown version of the format.
        """
        said = parse_manifest(content, where)
        kind = said.pop("kind", DETECTIONS_KIND)
        if kind != cls.kind:
            other = next((each for each in (EvaluationManifest, DiscoveryManifest) if each.kind == kind), None)
            if other is None:
                raise ArchiveError(f"{where}: expected an archive of {cls.described}; found one of {kind!r}.")
            raise ArchiveError(
                f"{where}: expected an archive of {cls.described}; found one of {other.described}. Score it with "
                f"`swsdask {other.command}`."
            )
        try:
            found_manifest: Self = TypeAdapter(cls).validate_json(json.dumps(said))
            _ = found_manifest.kept
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ArchiveError(f"{where}: not a manifest of an archive: {place}: {first['msg']}. {REMEDY}") from None
        except TypeError as error:
            raise ArchiveError(f"{where}: not a manifest of an archive: settings: {error}. {REMEDY}") from None
        missing = [name for name in cls.needed if name not in found_manifest.tables]
        if missing:
            raise ArchiveError(f"{where}: expected the table {missing[0]!r}; found none. {REMEDY}")
        return found_manifest


DETECTIONS_KIND = "detections"


@dataclass(frozen=True, kw_only=True)
class EvaluationManifest(Manifest):
    """One version of an archive of detections.

    `find_gap` (ticks), `text_filters` and `finder` are those with which its occurrences were found; `finder` is the
    tool and the version of its rule (`archive.occurrences.finder_of`; empty: unknown). `buckets` is the number of query
    buckets.
    """

    kind = DETECTIONS_KIND
    described = "detections"
    command = "score"
    needed = ("documents", "queries", "words", "segments", "occurrences", "runs")

    buckets: Annotated[int, Field(ge=1, le=MOST_BUCKETS)]
    find_gap: Annotated[int, Field(ge=0)]
    text_filters: tuple[str, ...]
    finder: str = ""


@dataclass(frozen=True, kw_only=True)
class DiscoveryManifest(Manifest):
    """One version of an archive of term discovery. `read_from` are the files that its corpus was read from, by role."""

    kind = "discovery"
    described = "term discovery"
    command = "discover"
    needed = ("phones", "words", "systems")

    read_from: dict[str, str]


def parse_manifest(content: bytes, where: str) -> dict[str, object]:
    """Parse the file of a manifest and convert its tables to the current format. Its own hash is verified and dropped.

    Raises `ArchiveError` for a damaged manifest and for an unknown version of the format.
    """
    try:
        said: dict[str, Any] = dict(json.loads(content))
    except (ValueError, TypeError, RecursionError):
        raise _damaged(where, "a damaged one") from None
    version = said.pop("format_version", None)
    if version not in (FORMAT_VERSION, IN_ONE_TABLE, WITHOUT_HASHES) or said.get("hash_version") != HASH_VERSION:
        raise ArchiveError(
            f"{where}: expected archive format {FORMAT_VERSION} with hash {HASH_VERSION}; found "
            f"{version} with {said.get('hash_version')}. Read it with the release that wrote it."
        )
    own = said.pop(_OWN_HASH, None)
    if version != WITHOUT_HASHES and own != hash_json({**said, "format_version": version}):
        raise _damaged(where, "one whose content is not what was written (its hash differs)")
    del said["hash_version"]
    if version == WITHOUT_HASHES and isinstance(said.get("tables"), dict):
        said["tables"] = {name: {"file": file} for name, file in said["tables"].items()}
    return said


def _damaged(where: str, found: str) -> ArchiveError:
    return ArchiveError(
        f"{where}: expected a whole manifest; found {found}. Restore it from a copy (`swsdask verify ARCHIVE --repair "
        "COPY`); without one, remove it if there is a version before, which is then the newest."
    )


def versions(storage: Storage) -> list[int]:
    """Return the versions that have a manifest, damaged or not, ascending.

    A manifest that is not a file counts as damaged.
    """
    found = (manifest_version(name) for name in storage.names())
    return sorted(version for version in found if version is not None)


def read_version(storage: Storage, version: int, kind: type[AnyManifest]) -> AnyManifest:
    """Return the manifest of a version. Raises `ArchiveError` for a damaged one."""
    content, where = _content(storage, version)
    manifest = kind.from_json(content, where)
    if manifest.version != version:
        raise _damaged(where, f"that of version {manifest.version}")
    return manifest


def _content(storage: Storage, version: int) -> tuple[bytes, str]:
    """Return the content of the manifest of a version, and its place."""
    name = manifest_name(version)
    where = f"{storage.url}/{name}"
    try:
        return storage.read(name), where
    except OSError as error:
        raise ArchiveError(f"{where}: cannot be read: {error}.") from None


def latest(storage: Storage, kind: type[AnyManifest]) -> tuple[AnyManifest | None, int]:
    """Return the manifest of the highest version, None if there is none, and the version to commit on top of it.

    Both describe one moment: if another writer commits after it, committing that version fails. Raises `ArchiveError`
    if the manifest is damaged: commits are atomic, so its content is lost, not unfinished.
    """
    highest = max(versions(storage), default=0)
    return (None, 1) if highest == 0 else (read_version(storage, highest, kind), highest + 1)


def open_version(
    storage: Storage, version: int | None, kind: type[AnyManifest], there: Sequence[int] | None = None
) -> AnyManifest:
    """Return the manifest of the current version, or of a given one.

    `there` are the versions, if they are already listed.

    Raises `ArchiveError` if there is no such version.
    """
    there = versions(storage) if there is None else there
    if there and version in (None, *there):
        return read_version(storage, there[-1] if version is None else version, kind)
    expected = f"{manifest_name(1)} or later" if version is None else manifest_name(version)
    remedy = "Name one of these, or none for the newest." if there else "Ingest first."
    found = listed([*map(str, there)]) or f"none{no_folder(join_path(storage.url, manifest_name(1)))}"
    raise ArchiveError(f"{storage.url}: expected an archive with {expected}; versions found: {found}. {remedy}")


def kind_of(storage: Storage, version: int | None = None) -> type[Manifest] | None:
    """Return the kind of the archive in a folder, from its highest manifest or that of a version; None without one."""
    there = versions(storage) if version is None else [version]
    if not there:
        return None
    said = parse_manifest(*_content(storage, there[-1])).get("kind")
    return DiscoveryManifest if said == DiscoveryManifest.kind else EvaluationManifest


def check_same_settings(storage: Storage, there: Layers | None, ours: Layers | None) -> None:
    """Raise `ArchiveError` if the settings `there` that an archive keeps differ from `ours`; either may be None."""
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


def commit(storage: Storage, manifest: Manifest) -> bool:
    """Commit the version. Return False, without any change, if another writer committed it first.

    Raises `ArchiveError` if the storage fails. The error says so if the version was committed nevertheless.
    """
    name, content = manifest_name(manifest.version), manifest.to_json()
    try:
        return storage.write_new(name, content)
    except ArchiveError as error:
        if _holds(storage, name, content):
            raise ArchiveError(
                f"{storage.url}: version {manifest.version} was committed and can be read, but the storage failed "
                f"afterwards, and a power cut might undo it: {error}"
            ) from error
        raise


def _holds(storage: Storage, name: str, content: bytes) -> bool:
    try:
        return storage.read(name) == content
    except Exception:
        return False
