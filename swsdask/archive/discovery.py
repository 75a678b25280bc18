"""An archive of term discovery: one corpus, and the classes of any number of systems.

Archives of term discovery: one corpus, as its files say it, and what any number of systems found in it.

    manifest-00000001.json         one per committed version, which says kind: discovery; the highest is the archive
    tables/NAME-TOKEN.parquet      phones, words, split, folds, within, speakers; systems; and of each system its
                                   classes and fragments

Tables have the schemas of `model.corpus`: what was read, before any definition is applied, so that one archive
serves them all. Files are immutable and a version names all of its own, as in archives of detections.

Writing a corpus and what systems found in it into an archive: one committed version, or all is as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from swsdask.archive.reference_tables import table_hash
from swsdask.archive.storage import Storage
from swsdask.archive.versions import (
    DISCOVERY,
    FORMAT_VERSION,
    HASH_VERSION,
    TABLES,
    check_same_settings,
    commit,
    latest,
    manifest_name,
    opened,
    remove_unnamed,
    table_name,
    versions,
    whole_json,
)
from swsdask.formats.discovery.classes import ClassFile, read_classes
from swsdask.formats.discovery.corpus import CorpusFiles, CorpusTables
from swsdask.model.errors import ArchiveError, Problems, counted
from swsdask.model.layers import Layers
from swsdask.model.units import id_fault

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


def ingest_discovery(
    url: str,
    corpus: CorpusTables | None,
    class_files: Mapping[str, str],
    *,
    replace: bool = False,
    keep: Layers | None = None,
    change_settings: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> StoredDiscovery:
    """Write what systems found into the archive at a URL, made of `corpus` if there is none; open it as it then is.

    `corpus` are tables that were read (`formats.discovery.corpus.read_corpus_files`), None for those of the archive,
    which
    must then be there; if it is, they must be its. `class_files` are paths or URLs by system. A system that is there
    already with the same content is left as it is; another one of the same name is replaced only if `replace`. A new
    archive keeps the layers `keep` of the settings; one that is there must keep settings that are equal, or takes these
    if `change_settings`. Memory holds one class file at a time.

    Raises `InputError` with everything that is wrong with the class files, whatever the definition; `ArchiveError` if
    the archive or the storage does not admit the change. In either case the archive is as it was.
    """
    storage = Storage(url, storage_options or {})
    storage.check_writable()
    writer = _Writer.begin(storage, corpus, replace=replace, keep=keep, change_settings=change_settings)
    try:
        for system, file in writer.read(class_files):
            writer.add(system, file)
            if progress is not None:
                progress(f"wrote {counted(len(file.fragments), 'fragments')} of {system}")
    except BaseException:
        writer.withdraw()
        raise
    return StoredDiscovery(storage, writer.commit())


def content_of(*tables: pa.Table) -> str:
    """The content hash of tables of `model.corpus`: of all but the lines they were read from."""
    plain = []
    for table in tables:
        for name in table.column_names:
            column = table[name]
            if pa.types.is_dictionary(column.type):
                whole = column.cast(pa.string()).dictionary_encode().unify_dictionaries().combine_chunks()
                plain.append(pa.table({name: whole.dictionary}))
                table = table.set_column(table.column_names.index(name), name, whole.indices)
        plain.append(table.drop_columns(["line"]))
    return table_hash(*plain)


@dataclass
class _Writer:
    """An ingest under way: the version it began with, or a blank one with the tables it is to be made of."""

    storage: Storage
    base: DiscoveryManifest
    made_of: dict[str, pa.Table]
    replace: bool
    keep: Layers | None
    change_settings: bool
    before: dict[str, StoredSystem]
    added: dict[str, StoredSystem]
    written: list[str]

    @classmethod
    def begin(
        cls,
        storage: Storage,
        corpus: CorpusTables | None,
        *,
        replace: bool,
        keep: Layers | None,
        change_settings: bool,
    ) -> _Writer:
        base, _ = latest(storage, DiscoveryManifest.from_json)
        tables = {} if corpus is None else {role: getattr(corpus, role) for role in ROLES}
        made_of = {role: table for role, table in tables.items() if table is not None}
        inputs = {role: content_of(table) for role, table in made_of.items()}
        if base is not None:
            if corpus is not None:
                _check_same_corpus(storage, base.inputs, inputs)
            if not change_settings:
                check_same_settings(storage, base.kept, keep)
            return cls(storage, base, {}, replace, keep, change_settings, stored_systems(storage, base), {}, [])
        if corpus is None:
            raise ArchiveError(f"{storage.url}: expected an archive; found none. Give phones and words to make one.")
        read_from = {role: getattr(corpus.files, role) for role in made_of}
        blank = DiscoveryManifest(0, {}, inputs, read_from, None if keep is None else keep.kept())
        return cls(storage, blank, made_of, replace, keep, change_settings, {}, {}, [])

    def read(self, class_files: Mapping[str, str]) -> Iterator[tuple[str, ClassFile]]:
        """The class files, one after the other. Raises `InputError` behind the last with what is wrong with any."""
        problems = Problems()
        for system, url in class_files.items():
            before = len(problems)
            if wrong := id_fault(system):
                problems.add(url, None, "the name of a system", wrong, "Give it a plain name.")
            file = read_classes(url, problems)
            if len(problems) == before:
                yield system, file
        problems.raise_if_any()

    def add(self, system: str, file: ClassFile) -> None:
        """Write what a system found, unless it is there."""
        content = content_of(file.classes, file.fragments)
        if not self._is_change(system, content, self.before.get(system)):
            return
        self.added[system] = StoredSystem(
            system=system,
            content=content,
            n_classes=len(file.classes),
            n_fragments=len(file.fragments),
            ends_blank=file.ends_blank,
            read_from=file.url,
            classes=self._write("classes", file.classes),
            fragments=self._write("fragments", file.fragments),
        )

    def commit(self) -> DiscoveryManifest:
        """Make a version with what was added; nothing is made if the archive has it all already."""
        while True:
            current, version = latest(self.storage, DiscoveryManifest.from_json)
            on = current or self._made()
            _check_same_corpus(self.storage, on.inputs, self.base.inputs)
            if not self.change_settings:
                check_same_settings(self.storage, on.kept, self.keep)
            kept = self.keep.kept() if self.keep is not None and self.change_settings else on.settings
            there = stored_systems(self.storage, on)
            changes = {
                system: each
                for system, each in self.added.items()
                if self._is_change(system, each.content, there.get(system))
            }
            if current is not None and not changes and kept == on.settings:
                return current
            name = self._write("systems", systems_table({**there, **changes}.values()))
            manifest = replace(on, version=version, tables={**on.tables, "systems": name}, settings=kept)
            if commit(self.storage, manifest):
                return manifest

    def withdraw(self) -> None:
        """Remove what was added, before a commit was tried."""
        for name in self.written:
            self.storage.remove(name)

    def _made(self) -> DiscoveryManifest:
        """The base with its tables written, which is done once."""
        if self.made_of and not self.base.tables:
            self.base = replace(self.base, tables={role: self._write(role, t) for role, t in self.made_of.items()})
        return self.base

    def _write(self, table: str, rows: pa.Table) -> str:
        name = table_name(table)
        self.written.append(name)
        self.storage.write_table(name, rows)
        return name

    def _is_change(self, system: str, content: str, there: StoredSystem | None) -> bool:
        if there is None or there.content == content:
            return there is None
        where = f"{self.storage.url}: a system {system!r}"
        if not self.replace:
            raise ArchiveError(
                f"{where} with other content is there. Ingest it under another name, or ask to replace it."
            )
        if there != self.before.get(system):
            raise ArchiveError(f"{where} was changed by another writer meanwhile. Look at it, then ingest again.")
        return True


def _check_same_corpus(storage: Storage, there: Mapping[str, str], ours: Mapping[str, str]) -> None:
    different = [role for role in ours if there.get(role) != ours[role]]
    if different:
        raise ArchiveError(
            f"{storage.url}: expected the corpus that this archive was made with; found another "
            f"{', '.join(different)}. An archive is one corpus: make another archive for another corpus."
        )
