"""Archives of term discovery: one corpus, as its files say it, and what any number of systems found in it.

    manifest-00000001.json         one per committed version, which says kind: discovery; the highest is the archive
    tables/NAME-TOKEN.parquet      phones, words, split, folds, within, speakers; systems; and of each system its
                                   classes and fragments

Tables have the schemas of `model.corpus_schemas`: what was read, before any definition is applied, so that one archive
serves them all. Files are immutable and a version names all of its own, as in archives of detections.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from swsdask.archive.layout import FORMAT_VERSION, HASH_VERSION, TABLES, manifest_name
from swsdask.archive.manifest import DISCOVERY, opened, remove_unnamed, versions, whole_json
from swsdask.archive.storage import Storage
from swsdask.errors import ArchiveError
from swsdask.formats.class_file import ClassFile
from swsdask.formats.corpus_files import CorpusFiles, CorpusTables
from swsdask.model.layers import Layers

SYSTEMS = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("n_classes", pa.int64(), nullable=False),
        pa.field("n_fragments", pa.int64(), nullable=False),
        pa.field("ends_blank", pa.bool_(), nullable=False),
        pa.field("read_from", pa.string(), nullable=False),
        pa.field("classes", pa.string(), nullable=False),
        pa.field("fragments", pa.string(), nullable=False),
    ]
)
"""One row per system, sorted: the hash of what was read, how much, and from where; the files of its two tables."""

ROLES = tuple(role.name for role in fields(CorpusFiles))


@dataclass(frozen=True)
class StoredSystem:
    """One system in an archive: a row of `SYSTEMS`."""

    system: str
    content: str
    n_classes: int
    n_fragments: int
    ends_blank: bool
    read_from: str
    classes: str
    fragments: str


@dataclass(frozen=True)
class DiscoveryManifest:
    """One version of an archive of term discovery.

    `tables` are the files of its tables by name, `inputs` the content hashes of its corpus by role, `read_from` the
    files that was read from, for messages. `settings` is what it keeps of the settings that it was made with
    (`model.layers.Layers.kept`; None in archives of releases that kept none).
    """

    version: int
    tables: dict[str, str]
    inputs: dict[str, str]
    read_from: dict[str, str]
    settings: dict[str, Any] | None = None
    kind: str = DISCOVERY
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

        Raises `ArchiveError` for one of another kind, or of a version of the format that is not known here.
        """
        said = whole_json(content, where)
        if said is None:
            return None
        if said.get("kind") != DISCOVERY:
            expected = "expected an archive of term discovery; found one of detections"
            raise ArchiveError(f"{where}: {expected}. Score it with `swsdask score`.")
        try:
            return cls(**said)
        except TypeError as error:
            raise ArchiveError(f"{where}: not a manifest of an archive: {error}.") from None


@dataclass(frozen=True)
class StoredDiscovery:
    """An archive of term discovery at one version. Tables are read when they are first asked for."""

    storage: Storage
    manifest: DiscoveryManifest = field(repr=False)

    @property
    def version(self) -> int:
        """The version that is open."""
        return self.manifest.version

    @property
    def kept(self) -> Layers | None:
        """The settings that the archive keeps; None if it is of a release that kept none."""
        return self.manifest.kept

    @property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the corpus, by role (phones, words, split, folds, within, speakers)."""
        return self.manifest.inputs

    @cached_property
    def tables(self) -> CorpusTables:
        """The corpus, for `discovery.corpus.build_corpus`. Raises `ArchiveError` if a file is gone or damaged."""
        there = {role: self.storage.read_table(self.manifest.tables[role]) for role in ROLES if role in self.inputs}
        return CorpusTables(CorpusFiles(**self.manifest.read_from), **there)

    @cached_property
    def systems(self) -> tuple[StoredSystem, ...]:
        """The systems, sorted by name."""
        return tuple(stored_systems(self.storage, self.manifest).values())

    def read_classes(self, system: str) -> ClassFile:
        """What a system found, for `discovery.fragments.build_fragments`. Raises `ArchiveError` if there is none."""
        stored = {each.system: each for each in self.systems}
        if system not in stored:
            there = ", ".join(stored) or "none"
            raise ArchiveError(f"{self.storage.url}: no system {system!r}; there are: {there}.")
        found = stored[system]
        classes, fragments = (self.storage.read_table(name) for name in (found.classes, found.fragments))
        return ClassFile(found.read_from, classes, fragments, found.ends_blank)


def open_discovery(
    url: str, version: int | None = None, storage_options: Mapping[str, Any] | None = None
) -> StoredDiscovery:
    """The archive of term discovery at a URL, at its current version or a given one.

    Raises `ArchiveError` if there is none, not that version, or one of detections.
    """
    storage = Storage(url, storage_options or {})
    return StoredDiscovery(storage, opened(storage, version, DiscoveryManifest.from_json))


def is_discovery(url: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether what can be seen at a URL is an archive of term discovery, by its highest manifest."""
    storage = Storage(url, storage_options or {})
    highest = max(versions(storage), default=None)
    if highest is None:
        return False
    said = whole_json(storage.read(manifest_name(highest)), f"{url}/{manifest_name(highest)}")
    return said is not None and said.get("kind") == DISCOVERY


def vacuum_discovery(url: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Remove the files that no version names, left by writers that were stopped; their names.

    Only while nobody writes: the files of a commit under way are not yet named either.
    """
    storage = Storage(url, storage_options or {})
    named = set[str]()
    for version in versions(storage):
        archive = open_discovery(url, version, storage_options)
        named.update(archive.manifest.tables.values())
        named.update(name for each in archive.systems for name in (each.classes, each.fragments))
    return remove_unnamed(storage, (TABLES,), named)


def stored_systems(storage: Storage, manifest: DiscoveryManifest) -> dict[str, StoredSystem]:
    """The systems of a version by name, sorted."""
    if "systems" not in manifest.tables:
        return {}
    rows = storage.read_table(manifest.tables["systems"]).to_pylist()
    return {row["system"]: StoredSystem(**row) for row in rows}


def systems_table(systems: Iterable[StoredSystem]) -> pa.Table:
    """The table of some systems (`SYSTEMS`)."""
    ordered = sorted(systems, key=lambda each: each.system)
    return pa.Table.from_pylist([asdict(each) for each in ordered], SYSTEMS)
