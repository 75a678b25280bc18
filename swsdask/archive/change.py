"""Changes of an archive of either kind: one committed version adds or replaces entries.

A writer that loses a race reads again and commits on top of the winner's version, unless the two changes conflict. One
input may grow with the entries, as the collection of judged documents does. Then a new table replaces the old one, with
rows appended, so that existing row numbers stay valid. If two writers let it grow at once, one must start again
(`OutgrownError`).

The table of entries consists of one or more files, its parts. A commit writes one part with the entries that it adds or
replaces and with the entries of the newest parts that are less than `GROWTH` times as large. So each part is at least
`GROWTH` times as large as all newer ones together, n entries are in about log(n) / log(`GROWTH`) parts, and each of n
commits of one entry writes about `GROWTH` log(n) entries instead of all.

Leases of writers distinguish the files of active writers from abandoned ones (`archive.cleaning`).

Every writer has a name, which is part of the names of its files, and a lease: a file in its own folder below
`temporary`, created before all other files and removed after the commit. Cleaning lists first the files, then the
leases, then the manifests. A file without lease and version is then abandoned: if its writer were active, its lease
would exist; if the writer had committed, a manifest would name the file. A clock is needed only for the leases of
writers that were stopped: a lease expires if it was not renewed for a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import pyarrow as pa

from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import StoredFile, write_table
from swsdask.archive.versions import (
    TEMPORARY,
    AnyManifest,
    check_same_settings,
    commit,
    latest,
    lease_writer,
    manifest_name,
    new_token,
    table_name,
)
from swsdask.model.errors import ArchiveError
from swsdask.model.layers import Layers

RENEW_S = 600.0

_LIST_S, _MOST_LISTS = 0.2, 50
"""The interval in seconds, and the number of attempts, to list a version that a store has but does not list yet."""

_LEASE = "lease"


@dataclass
class Lease:
    """A writer's claim to files that no version names yet."""

    storage: Storage
    writer: str = field(default_factory=new_token)
    may_withdraw: bool = True
    """Whether no version can name a file of the writer. False once a commit is tried, as its answer may be lost."""
    _renewed: float = 0.0

    @property
    def folder(self) -> str:
        """The folder of the writer's temporary files."""
        return f"{TEMPORARY}/{self.writer}"

    @property
    def place(self) -> str:
        """The full path or URL of the lease file, for workers that write."""
        return self.storage.place(f"{self.folder}/{_LEASE}")

    def renew(self) -> None:
        """Show that the writer is still active, at most every ten minutes."""
        now = time.monotonic()
        if not self._renewed or now - self._renewed > RENEW_S:
            self.storage.write_temporary(f"{self.folder}/{_LEASE}", b"")
            self._renewed = now

    def check(self) -> None:
        """Raise `ArchiveError` if the lease was removed: then files may be gone."""
        if not self.storage.exists(f"{self.folder}/{_LEASE}"):
            raise ArchiveError(
                f"{self.storage.url}: expected the lease of this writer; found it removed, by a `swsdask vacuum` that "
                "took it for one of a writer that was stopped. Nothing was committed: write again."
            )

    def withdraw(self) -> None:
        """Remove the writer's files, unless a version may name them."""
        if self.may_withdraw:
            for name in self.storage.modified():
                if lease_writer(name) == self.writer:
                    self.storage.remove(name)


@contextmanager
def leased(storage: Storage) -> Iterator[Lease]:
    """Hold a lease from before the first file is written until after the commit. After a failure, remove the files."""
    lease = Lease(storage)
    lease.renew()
    try:
        yield lease
    except BaseException:
        lease.withdraw()
        raise
    finally:
        with suppress(ArchiveError):  # After a commit this is no failure; `archive.cleaning` removes what is left.
            storage.remove(lease.folder)


def held_by(storage: Storage, before: float) -> set[str | None]:
    """Return the active writers: those with a temporary file that was changed at or after a time."""
    temporary = storage.modified(TEMPORARY)
    return {lease_writer(name) for name, changed in temporary.items() if changed >= before}


Entry = TypeVar("Entry")

GROWTH = 8
"""A larger value gives fewer parts, each of which is a request when an archive is opened. A smaller one makes commits
write less."""


@dataclass(frozen=True)
class ArchiveKind(Generic[AnyManifest, Entry]):
    """A kind of archive: its manifest, and the table of its entries by system.

    Parameters
    ----------
    manifest : type
        The type of its manifest.
    table : str
        The name of the table of entries: runs, or systems.
    read, write : callable
        Read a part of that table, and write entries as a part into a file with a given name.
    content : callable
        Returns the content hash of an entry.
    files : callable
        Returns the files of an entry.
    entry, source, parts : str
        Words for messages: an entry, the source of the archive, and the parts of that source.
    later : tuple of str
        The roles of inputs that archives of earlier releases lack.
    """

    manifest: type[AnyManifest]
    table: str
    read: Callable[[Storage, StoredFile], dict[str, Entry]]
    write: Callable[[Storage, str, Iterable[Entry]], StoredFile]
    content: Callable[[Entry], str]
    files: Callable[[Entry], tuple[StoredFile, ...]]
    entry: str
    source: str
    parts: str
    later: tuple[str, ...] = ()

    def parts_of(self, manifest: AnyManifest) -> tuple[StoredFile, ...]:
        """Return the parts of the table of entries, the oldest first.

        The entry of a system in the newest part counts.
        """
        return (manifest.tables[self.table], *manifest.newer) if self.table in manifest.tables else ()

    def entries(
        self,
        storage: Storage,
        manifest: AnyManifest,
        *,
        verify: bool = True,
        known: dict[StoredFile, dict[str, Entry]] | None = None,
    ) -> dict[str, Entry]:
        """Return the entries of a version by system, sorted.

        `known` are parts that were read before, to which those read now are added: versions share most parts.
        """
        parts, known = self.parts_of(manifest), {} if known is None else known
        for part in (each for each in parts if each not in known):
            known[part] = self.read(storage, part if verify else part.unverified)
        return merged_entries(known[part] for part in parts)

    def check_same_inputs(self, storage: Storage, held: Mapping[str, str], ours: Mapping[str, str]) -> None:
        """Raise `ArchiveError` if an archive was made of inputs that differ from `ours`."""
        known = [role for role in ours if role in held or role not in self.later]
        different = [role for role in known if held.get(role) != ours[role]]
        if different:
            raise ArchiveError(
                f"{storage.url}: expected the {self.source} that this archive was made with; found one that differs "
                f"in {', '.join(different)}. An archive has one {self.source}: make another archive for another "
                f"{self.source}."
            )


def merged_entries(parts: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    """Return the entries of parts, the oldest first, by system, sorted."""
    found: dict[str, Entry] = {}
    for part in parts:
        found |= part
    return dict(sorted(found.items()))


class OutgrownError(ArchiveError):
    """Another writer let the growing input grow meanwhile, so files that use its row numbers are invalid."""


@dataclass(frozen=True)
class Growth:
    """A table that replaces the one of its name with more rows, and its content hash."""

    name: str
    table: pa.Table
    content: str


@dataclass(frozen=True)
class ChangePolicy:
    """The changes that a command may make to an existing archive, and the settings that the archive keeps.

    Parameters
    ----------
    replace : bool, default False
        Whether an entry replaces one with the same name but different content.
    keep : Layers, optional
        The settings that a new archive keeps. An existing one must keep equal settings, unless `change_settings`.
    change_settings : bool, default False
        Whether an existing archive keeps these settings from now on.
    """

    replace: bool = False
    keep: Layers | None = None
    change_settings: bool = False

    def check_settings(self, storage: Storage, kept: Layers | None) -> None:
        """Raise `ArchiveError` if an archive keeps other settings, and these must not be changed."""
        if not self.change_settings:
            check_same_settings(storage, kept, self.keep)

    def settings_of_new(self) -> dict[str, object] | None:
        """Return the settings in the manifest of a new archive."""
        return None if self.keep is None else self.keep.to_store()

    def settings_after(self, held: dict[str, object] | None) -> dict[str, object] | None:
        """Return the settings in the manifest of an existing archive, which has the settings `held`."""
        return self.keep.to_store() if self.keep is not None and self.change_settings else held


ADD_ONLY = ChangePolicy()
"""Entries are added; nothing is replaced, and settings are not compared."""


class Change(Generic[AnyManifest, Entry]):
    """A change of an archive, and the state before it: `base`, or the tables of a new archive.

    Parameters
    ----------
    kind : ArchiveKind
        The kind of archive.
    lease : Lease
        The lease of the writer, held until after the commit.
    blank : Manifest, optional
        The manifest of a new archive, without tables; None: the archive must exist.
    made_of : mapping of str to pa.Table
        The tables of a new archive. Nothing is written yet.
    policy : ChangePolicy
        The changes that are allowed.
    grows : str, optional
        The role of the input that may grow, so that it may differ from the input of the archive.

    Raises
    ------
    ArchiveError
        If the existing archive has different inputs or settings, if there is none and none can be made, or if the
        storage cannot be written safely.
    """

    def __init__(
        self,
        kind: ArchiveKind[AnyManifest, Entry],
        lease: Lease,
        blank: AnyManifest | None,
        made_of: Mapping[str, pa.Table],
        policy: ChangePolicy,
        grows: str | None = None,
    ) -> None:
        self.kind = kind
        self.lease = lease
        self.storage = lease.storage
        self.policy = policy
        self.grows = grows
        self.growth: Growth | None = None
        self._grown: StoredFile | None = None
        base, _ = latest(self.storage, kind.manifest)
        if base is not None:
            if blank is not None:
                ours = {role: content for role, content in blank.inputs.items() if role != grows}
                kind.check_same_inputs(self.storage, base.inputs, ours)
            policy.check_settings(self.storage, base.kept)
        elif blank is None:
            raise ArchiveError(f"{self.storage.url}: expected an archive; found none. Give {kind.parts} to make one.")
        self.made_of = made_of if base is None else None
        self.base: AnyManifest = base or blank  # type: ignore[assignment]
        self._parts: dict[StoredFile, dict[str, Entry]] = {}
        existing = merged_entries(self._read(self.base).values())
        self.before = {system: kind.content(entry) for system, entry in existing.items()}

    def is_new(self, system: str, content: str) -> bool:
        """Return whether an entry must be written: False if the archive already has it.

        Raises `ArchiveError` if it has a different entry of that name that must not be replaced.
        """
        return self._is_change(system, content, self.before.get(system))

    def grow(self, growth: Growth) -> None:
        """Let the growing input grow: a new archive gets the larger table; in an existing one it replaces the table."""
        assert self.grows is not None
        if self.made_of is None:
            self.growth = growth
        else:
            self.made_of = {**self.made_of, growth.name: growth.table}
            self.base = replace(self.base, inputs={**self.base.inputs, self.grows: growth.content})

    def commit(self, entries: Mapping[str, Entry]) -> AnyManifest:
        """Commit a version with `entries` added or replaced, unless the archive already has them all.

        Raises `ArchiveError` if another writer has meanwhile made an archive with different inputs or settings, or a
        different entry of the same name; `OutgrownError` if it let an input grow.
        """
        kind = self.kind
        tried, waited = -1, 0
        while True:
            current, version = latest(self.storage, kind.manifest)
            if version == tried:
                waited += 1
                self._wait_for_list(version, waited)
            tried = version
            on = current or self._write_base()
            if self.grows is not None and on.inputs.get(self.grows) != self.base.inputs.get(self.grows):
                self._remove_grown()
                raise OutgrownError(
                    f"{self.storage.url}: another command added documents meanwhile. Run this one again."
                )
            kind.check_same_inputs(self.storage, on.inputs, self.base.inputs)
            self.policy.check_settings(self.storage, on.kept)
            settings = self.policy.settings_after(on.settings)
            parts = self._read(on)
            existing = merged_entries(parts.values())
            contents = {system: kind.content(entry) for system, entry in existing.items()}
            changes = {
                system: entry
                for system, entry in entries.items()
                if self._is_change(system, kind.content(entry), contents.get(system))
            }
            if current is not None and not changes and settings == on.settings:
                return current
            made = self.commit_part(self._write_growth(on), parts, changes, version=version, settings=settings)
            if made is not None:
                return made

    def _wait_for_list(self, version: int, waited: int) -> None:
        """Wait until a store lists a version that it has. Raise `ArchiveError` if it never does."""
        if waited > _MOST_LISTS:
            raise ArchiveError(
                f"{self.storage.url}: the store has {manifest_name(version)} and does not list it. Check the name of "
                "the folder, or run the command again."
            )
        time.sleep(_LIST_S)

    def commit_part(
        self,
        on: AnyManifest,
        parts: Mapping[StoredFile, Mapping[str, Entry]],
        added: Mapping[str, Entry],
        **fields: object,
    ) -> AnyManifest | None:
        """Write entries as a new part after the others, and commit. None if another writer committed that version."""
        older, written = dict(parts), []
        while older and len(older[newest := next(reversed(older))]) < GROWTH * len(added):
            added = {**older.pop(newest), **added}
        if added or not older:
            name = table_name(self.kind.table, self.lease.writer)
            written = [self.kind.write(self.storage, name, added.values())]
        first, *newer = (*older, *written)
        tables = {**on.tables, self.kind.table: first}
        manifest = replace(on, tables=tables, newer=tuple(newer), **fields)  # type: ignore[arg-type]
        self.lease.check()
        self.lease.may_withdraw = False
        if commit(self.storage, manifest):
            return manifest
        self.lease.may_withdraw = True
        for part in written:
            self.storage.remove(part.file)
        return None

    def _read(self, manifest: AnyManifest) -> dict[StoredFile, dict[str, Entry]]:
        """Return the parts of a version. Each part is read once, as versions of other writers share most of them."""
        parts = self.kind.parts_of(manifest)
        self._parts = {
            part: self._parts[part] if part in self._parts else self.kind.read(self.storage, part) for part in parts
        }
        return self._parts

    def _write_base(self) -> AnyManifest:
        """Return the base. Its tables are written once."""
        if self.made_of and not self.base.tables:
            written = {
                name: write_table(self.storage, table_name(name, self.lease.writer), table)
                for name, table in self.made_of.items()
            }
            self.base = replace(self.base, tables=written)
        return self.base

    def _write_growth(self, on: AnyManifest) -> AnyManifest:
        """Return a version with the table that has grown. The table is written once."""
        growth = self.growth
        if growth is None:
            return on
        assert self.grows is not None
        if self._grown is None:
            self._grown = write_table(self.storage, table_name(growth.name, self.lease.writer), growth.table)
        tables, inputs = {**on.tables, growth.name: self._grown}, {**on.inputs, self.grows: growth.content}
        return replace(on, tables=tables, inputs=inputs)

    def _remove_grown(self) -> None:
        if self._grown is not None:
            self.storage.remove(self._grown.file)

    def _is_change(self, system: str, content: str, held: str | None) -> bool:
        if held is None or held == content:
            return held is None
        where = f"{self.storage.url}: {self.kind.entry} {system!r}"
        if not self.policy.replace:
            raise ArchiveError(
                f"{where} with other content is there. Ingest it under another name, or replace it (--replace)."
            )
        if held != self.before.get(system):
            raise ArchiveError(f"{where} was changed by another writer meanwhile. Look at it, then ingest again.")
        return True
