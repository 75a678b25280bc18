"""Writing a corpus and what systems found in it into an archive: one committed version, or all is as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from swsdask.archive.discovery import (
    ROLES,
    DiscoveryManifest,
    StoredDiscovery,
    StoredSystem,
    stored_systems,
    systems_table,
)
from swsdask.archive.layout import table_name
from swsdask.archive.manifest import check_same_settings, commit, latest
from swsdask.archive.storage import Storage
from swsdask.archive.tables import table_hash
from swsdask.errors import ArchiveError, Problems
from swsdask.formats.class_file import ClassFile, read_classes
from swsdask.formats.corpus_files import CorpusTables
from swsdask.model.ids import id_fault
from swsdask.model.layers import Layers
from swsdask.model.wording import counted


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

    `corpus` are tables that were read (`formats.corpus_files.read_corpus_files`), None for those of the archive, which
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
    """The content hash of tables of `model.corpus_schemas`: of all but the lines they were read from."""
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
