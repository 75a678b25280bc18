"""An archive of term discovery: the content of the files of one corpus, and the classes that systems found in it.

Tables have the schemas of `model.discovery`: what was read, before any definition is applied, so that one archive
serves them all. Files are immutable and a version names all of its own, with size and hash, as in archives of
detections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from swsdask.archive.change import ADD_ONLY, ArchiveKind, Change, ChangePolicy, leased
from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import (
    StoredFile,
    Verification,
    check_range,
    check_spans,
    damaged,
    read_table,
    verification,
    write_table,
)
from swsdask.archive.versions import DiscoveryManifest, kind_of, open_version, table_name
from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen, run_tasks
from swsdask.formats.discovery import ClassFile, CorpusFiles, CorpusTables, read_classes
from swsdask.formats.files import noted
from swsdask.model.discovery import ALIGNMENT, CLASSES, FRAGMENTS, SPEAKERS, STRETCHES
from swsdask.model.errors import ArchiveError, Problems
from swsdask.model.hashes import hash_tables
from swsdask.model.layers import Layers
from swsdask.model.safe_text import without_secrets
from swsdask.model.units import id_fault


def _schema(file: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("system", pa.string(), nullable=False),
            pa.field("content", pa.string(), nullable=False),
            pa.field("n_classes", pa.int64(), nullable=False),
            pa.field("n_fragments", pa.int64(), nullable=False),
            pa.field("ends_blank", pa.bool_(), nullable=False),
            pa.field("read_from", pa.string(), nullable=False),
            pa.field("classes", file, nullable=False),
            pa.field("fragments", file, nullable=False),
        ]
    )


SYSTEMS = _schema(pa.struct([("file", pa.string()), ("size", pa.int64()), ("hash", pa.string())]))
"""One row per system, sorted: content hash, numbers of classes and fragments, source, and the files of its tables."""

EARLIER_SYSTEMS = _schema(pa.string())
"""The schema of the table in releases whose files have no hashes."""

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
    classes: StoredFile
    fragments: StoredFile


def read_systems_table(storage: Storage, stored: StoredFile) -> dict[str, StoredSystem]:
    """Return the systems of a table by name, in its order. Raises `ArchiveError` if it is missing or damaged."""
    rows = read_table(storage, stored, SYSTEMS, EARLIER_SYSTEMS).to_pylist()
    systems = {}
    for row in rows:
        files = {name: _file(row[name]) for name in ("classes", "fragments")}
        if any(not isinstance(each.file, str) for each in files.values()) or row["system"] in systems:
            raise damaged(storage, stored.file, "one that no writer writes", f", system {row['system']!r}")
        systems[row["system"]] = StoredSystem(**{**row, **files})
    return systems


def _file(entry: str | Mapping[str, Any]) -> StoredFile:
    return StoredFile(entry) if isinstance(entry, str) else StoredFile(**entry)


def write_systems_table(storage: Storage, name: str, systems: Iterable[StoredSystem]) -> StoredFile:
    """Write the table of some systems, sorted by name."""
    ordered = sorted(systems, key=lambda each: each.system)
    return write_table(storage, name, pa.Table.from_pylist([asdict(each) for each in ordered], SYSTEMS))


DISCOVERY: ArchiveKind[DiscoveryManifest, StoredSystem] = ArchiveKind(
    manifest=DiscoveryManifest,
    table="systems",
    read=read_systems_table,
    write=write_systems_table,
    content=lambda stored: stored.content,
    files=lambda stored: (stored.classes, stored.fragments),
    entry="a system",
    source="corpus",
    parts="phones and words",
)

_SCHEMAS = {
    "phones": ALIGNMENT,
    "words": ALIGNMENT,
    "split": STRETCHES,
    "folds": STRETCHES,
    "within": STRETCHES,
    "speakers": SPEAKERS,
}


@dataclass(frozen=True)
class StoredDiscovery:
    """An archive of term discovery at one version. Tables are read when they are first needed.

    Files that have hashes are verified when read, unless `verify` is False.
    """

    storage: Storage
    manifest: DiscoveryManifest = field(repr=False)
    verify: bool = True

    @property
    def version(self) -> int:
        """The version that is open."""
        return self.manifest.version

    @property
    def kept(self) -> Layers | None:
        """The settings that the archive keeps; None for archives of releases that kept none."""
        return self.manifest.kept

    @property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the corpus, by role (phones, words, split, folds, within, speakers)."""
        return self.manifest.inputs

    @cached_property
    def tables(self) -> CorpusTables:
        """The corpus, for `discovery.corpus.build_corpus`. Raises `ArchiveError` if a file is missing or damaged."""
        there = {role: self._corpus_table(role) for role in ROLES if role in self.inputs}
        return CorpusTables(CorpusFiles(**self.manifest.read_from), **there)

    def _corpus_table(self, role: str) -> pa.Table:
        if role not in self.manifest.tables:
            raise ArchiveError(f"{self.storage.url}: expected the table {role!r} in the manifest; found none.")
        stored = self._file(self.manifest.tables[role])
        table = read_table(self.storage, stored, _SCHEMAS[role])
        if role != "speakers":
            check_spans(self.storage, stored, table, ("start", "end"))
        if _SCHEMAS[role] is STRETCHES:
            check_range(self.storage, stored, table, "fold", None)
        return table

    def _file(self, stored: StoredFile) -> StoredFile:
        return stored if self.verify else stored.unverified

    @property
    def verification(self) -> Verification:
        """Whether what is read is verified by hashes."""
        of_entries = (file for each in self.systems for file in DISCOVERY.files(each))
        return verification((*self.manifest.files, *of_entries), self.verify)

    @cached_property
    def systems(self) -> tuple[StoredSystem, ...]:
        """The systems, sorted by name."""
        return tuple(DISCOVERY.entries(self.storage, self.manifest, verify=self.verify).values())

    def read_classes(self, system: str) -> ClassFile:
        """Read the classes of a system, for `discovery.corpus.build_fragments`. Raises `ArchiveError` if unknown."""
        stored = {each.system: each for each in self.systems}
        if system not in stored:
            there = ", ".join(stored) or "none"
            raise ArchiveError(f"{self.storage.url}: no system {system!r}; there are: {there}.")
        return read_stored_classes(self.storage, stored[system], verify=self.verify)


def read_stored_classes(storage: Storage, stored: StoredSystem, *, verify: bool) -> ClassFile:
    """Read the classes of a system. Raises `ArchiveError` if one of its files is missing or damaged."""
    tables = {}
    for name, schema, file, rows in (
        ("classes", CLASSES, stored.classes, stored.n_classes),
        ("fragments", FRAGMENTS, stored.fragments, stored.n_fragments),
    ):
        tables[name] = read_table(storage, file if verify else file.unverified, schema)
        if len(tables[name]) != rows:
            raise damaged(storage, file.file, f"{len(tables[name]):,} {name} instead of {rows:,}")
    check_range(storage, stored.fragments, tables["fragments"], "cluster", len(tables["classes"]))
    check_spans(storage, stored.fragments, tables["fragments"], ("start", "end"))
    return ClassFile(stored.read_from, tables["classes"], tables["fragments"], stored.ends_blank)


def open_discovery(
    url: str,
    version: int | None = None,
    *,
    verify: bool = True,
) -> StoredDiscovery:
    """Open the archive of term discovery at a URL, at its current version or a given one.

    Raises
    ------
    ArchiveError
        If there is no archive or no such version, if it is an archive of detections, or if its manifest is damaged.
    """
    storage = Storage(url)
    return StoredDiscovery(storage, open_version(storage, version, DiscoveryManifest), verify)


def is_discovery(url: str) -> bool:
    """Return whether a URL is an archive of term discovery, by its highest manifest."""
    return kind_of(Storage(url)) is DiscoveryManifest


def ingest_discovery(
    url: str,
    corpus: CorpusTables | None,
    class_files: Mapping[str, str],
    *,
    policy: ChangePolicy = ADD_ONLY,
    check: Callable[[ClassFile, str], object] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> StoredDiscovery:
    """Write systems into the archive at a URL, created from `corpus` if it does not exist, and open the result.

    `corpus` has the tables of a corpus (`read_corpus_files` of `formats.discovery`), or is None for those of an
    existing archive. If the archive exists, its tables must be equal. `class_files` are paths or URLs by system. A
    system that the archive already has, with the same content, is left as it is; the `policy` says whether one with the
    same name but different content is replaced, and which settings the archive keeps. Every class file is a task.
    `check` receives each file and the name of its system, and raises `InputError` with the problems under the
    definition that the archive keeps.

    Raises `InputError` with every problem of the class files; `ArchiveError` if the archive or the storage does not
    allow the change. In both cases the archive is unchanged.
    """
    storage = Storage(url)
    storage.check_writable()
    executor, shown = executor or SerialExecutor(), or_unseen(progress)
    tables = {} if corpus is None else {role: getattr(corpus, role) for role in ROLES}
    made_of = {role: table for role, table in tables.items() if table is not None}
    blank = None
    if corpus is not None:
        blank = DiscoveryManifest(
            version=0,
            tables={},
            inputs={role: content_of(table) for role, table in made_of.items()},
            read_from={role: without_secrets(getattr(corpus.files, role)) for role in made_of},
            settings=policy.settings_of_new(),
        )
    with leased(storage) as lease:
        change = Change(DISCOVERY, lease, blank, made_of, policy)
        executor.check([lease.place])

        def done(_: object) -> None:
            lease.renew()
            shown.advance(1)

        shown.begin("class files", len(class_files))
        work = [*class_files.items()]
        writer = _Writer(storage, lease.writer, change.before, policy.replace, check)
        found = run_tasks(executor, _ingest_class_file, work, writer, lambda each: f"system {each[0]}", done)
        problems = Problems()
        for each in found:
            problems.extend(each.problems)
        problems.raise_if_any()
        added = {
            system: each.entry
            for system, each in zip(class_files, found, strict=True)
            if change.is_new(system, each.content) and each.entry is not None
        }
        return StoredDiscovery(storage, change.commit(added))


class _Writer(NamedTuple):
    """Shared by the tasks of an ingest. `there` are the contents that the archive has, by system."""

    storage: Storage
    writer: str
    there: Mapping[str, str]
    replace: bool
    check: Callable[[ClassFile, str], object] | None


class _FromFile(NamedTuple):
    """A class file: its content (empty if it has problems), its entry if its tables were written, and its problems."""

    content: str
    entry: StoredSystem | None
    problems: Problems


def _ingest_class_file(named: tuple[str, str], into: _Writer) -> _FromFile:
    """Read the class file of a system, and write its tables if the archive lacks them and may have them."""
    system, url = named
    problems = Problems()
    if wrong := id_fault(system):
        problems.add(url, None, "the name of a system", wrong, "Give it a plain name.")
    file = read_classes(url, problems)
    if into.check is not None and not problems:
        with noted(problems):
            into.check(file, system)
    if problems:
        return _FromFile("", None, problems)
    content = content_of(file.classes, file.fragments)
    there = into.there.get(system)
    if there is not None and (there == content or not into.replace):
        return _FromFile(content, None, problems)
    entry = StoredSystem(
        system=system,
        content=content,
        n_classes=len(file.classes),
        n_fragments=len(file.fragments),
        ends_blank=file.ends_blank,
        read_from=without_secrets(file.url),
        classes=write_table(into.storage, table_name("classes", into.writer), file.classes),
        fragments=write_table(into.storage, table_name("fragments", into.writer), file.fragments),
    )
    return _FromFile(content, entry, problems)


def content_of(*tables: pa.Table) -> str:
    """Return the content hash of tables of `model.discovery`, without the line numbers."""
    plain = []
    for table in tables:
        for name in table.column_names:
            column = table[name]
            if pa.types.is_dictionary(column.type):
                whole = column.cast(pa.string()).dictionary_encode().unify_dictionaries().combine_chunks()
                plain.append(pa.table({name: whole.dictionary}))
                table = table.set_column(table.column_names.index(name), name, whole.indices)
        plain.append(table.drop_columns(["line"]))
    return hash_tables(*plain)
