"""Changing an archive, of either kind: entries are added to what it begins with, as one committed version.

A writer that loses a race reads again and tries on top of what won, as long as the two do not contradict each other.
One kind of input may grow with the entries, as the collection of judged documents does: then a table is put in the
place of the one there, with more rows behind its own, so that what was written by their places stays right. Of two
writers that let it grow at once one must begin anew (`OutgrownError`).

The table of entries is in one or several files, its parts. A commit writes a part of what it adds or replaces, together
with those of the newest parts that are less than `GROWTH` times as large: so a part is at least that many times as
large as all that are newer, n entries are in about log(n) / log(`GROWTH`) parts, and n commits of one entry each write
some `GROWTH` log(n) entries each, not all that were there before.

Leases of writers: how files of a writer at work are distinguished from abandoned ones (`archive.cleaning`).

Every writer has a name, which is part of the names of the files that it writes, and a lease: a file in a folder of its
own below `temporary`, made before anything else and removed at the end, after the commit. Whoever cleans lists the
files first, then the leases, then the manifests. A file without a version is then known to be abandoned: were its
writer still at work, its lease would have been there; had the writer committed, a manifest would name the file. No
clock is needed but for leases of writers that were stopped, which expire when they have not been renewed for a day.
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
"""A store that has a version and does not list it yet is asked again after so many seconds, so often."""

_LEASE = "lease"


@dataclass
class Lease:
    """The right of a writer to files that no version names yet."""

    storage: Storage
    writer: str = field(default_factory=new_token)
    may_withdraw: bool = True
    """Whether no version can name a file of the writer: until a commit is tried, of which the answer may be lost."""
    _renewed: float = 0.0

    @property
    def folder(self) -> str:
        """The folder of the writer's temporary files."""
        return f"{TEMPORARY}/{self.writer}"

    @property
    def place(self) -> str:
        """The file of the lease, where workers that write see it."""
        return self.storage.place(f"{self.folder}/{_LEASE}")

    def renew(self) -> None:
        """Say that the writer is still at work, at most every ten minutes."""
        now = time.monotonic()
        if not self._renewed or now - self._renewed > RENEW_S:
            self.storage.write_temporary(f"{self.folder}/{_LEASE}", b"")
            self._renewed = now

    def check(self) -> None:
        """Raise `ArchiveError` if the lease has been taken away: then files may be gone."""
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
    """Hold a lease from before the first file is written until after the commit; what fails is withdrawn."""
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
    """The writers that are at work: those with a temporary file that was changed at a time, or later."""
    temporary = storage.modified(TEMPORARY)
    return {lease_writer(name) for name, changed in temporary.items() if changed >= before}


Entry = TypeVar("Entry")

GROWTH = 8
"""Larger: fewer parts, each of which is a request when an archive is opened. Smaller: commits write less."""


@dataclass(frozen=True)
class ArchiveKind(Generic[AnyManifest, Entry]):
    """A kind of archive: its manifest, and the table of its entries by system.

    Parameters
    ----------
    manifest : type
        Its manifest.
    table : str
        The name of the table of entries: runs, or systems.
    read, write : callable
        Read a part of that table; write entries as one, into a file of a name.
    content : callable
        The content hash of an entry.
    files : callable
        The files of an entry.
    entry, source, parts : str
        What an entry is called, what the archive is made of, and what makes that up.
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
        """The parts of the table of entries, the oldest first: of a system the entry in the newest part counts."""
        return (manifest.tables[self.table], *manifest.newer) if self.table in manifest.tables else ()

    def entries(self, storage: Storage, manifest: AnyManifest, *, verify: bool = True) -> dict[str, Entry]:
        """The entries of a version by system, sorted."""
        parts = self.parts_of(manifest)
        return merged_entries(self.read(storage, part if verify else part.unverified) for part in parts)

    def check_same_inputs(self, storage: Storage, there: Mapping[str, str], ours: Mapping[str, str]) -> None:
        """Raise `ArchiveError` if an archive was made of other inputs than `ours`."""
        known = [role for role in ours if role in there or role not in self.later]
        different = [role for role in known if there.get(role) != ours[role]]
        if different:
            raise ArchiveError(
                f"{storage.url}: expected the {self.source} that this archive was made with; found one that differs "
                f"in {', '.join(different)}. An archive has one {self.source}: make another archive for another "
                f"{self.source}."
            )


def merged_entries(parts: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    """The entries of parts, the oldest first, by system, sorted."""
    found: dict[str, Entry] = {}
    for part in parts:
        found |= part
    return dict(sorted(found.items()))


class OutgrownError(ArchiveError):
    """Another writer let the growing input grow meanwhile: what was written by the places of its rows is of no use."""


@dataclass(frozen=True)
class Growth:
    """A table with more rows than the one of its name, and its content hash."""

    name: str
    table: pa.Table
    content: str


class Change(Generic[AnyManifest, Entry]):
    """A change of an archive, and its state before that: `base`, or tables to make one of.

    Parameters
    ----------
    kind : ArchiveKind
        The kind of archive.
    lease : Lease
        The writer's, which it holds until after the commit.
    blank : Manifest, optional
        What a new archive says, without tables; None: the archive must be there.
    made_of : mapping of str to pa.Table
        The tables of a new archive. Nothing is written yet.
    replace : bool
        Whether an entry of other content replaces the one of its name.
    keep : Layers, optional
        The settings that a new archive keeps, and one that is there if `change_settings`.
    grows : str, optional
        The role of the input that may grow, and so differ from that of the archive.

    Raises
    ------
    ArchiveError
        If the archive there has other inputs or keeps other settings, if there is none and none can be made, or where
        the storage cannot be written safely.
    """

    def __init__(
        self,
        kind: ArchiveKind[AnyManifest, Entry],
        lease: Lease,
        blank: AnyManifest | None,
        made_of: Mapping[str, pa.Table],
        *,
        replace: bool,
        keep: Layers | None = None,
        change_settings: bool = False,
        grows: str | None = None,
    ) -> None:
        self.kind = kind
        self.lease = lease
        self.storage = lease.storage
        self.replace = replace
        self.keep = keep
        self.change_settings = change_settings
        self.grows = grows
        self.growth: Growth | None = None
        self._grown: StoredFile | None = None
        base, _ = latest(self.storage, kind.manifest)
        if base is not None:
            if blank is not None:
                ours = {role: content for role, content in blank.inputs.items() if role != grows}
                kind.check_same_inputs(self.storage, base.inputs, ours)
            if not change_settings:
                check_same_settings(self.storage, base.kept, keep)
        elif blank is None:
            raise ArchiveError(f"{self.storage.url}: expected an archive; found none. Give {kind.parts} to make one.")
        self.made_of = made_of if base is None else None
        self.base: AnyManifest = base or blank  # type: ignore[assignment]
        self._parts: dict[StoredFile, dict[str, Entry]] = {}
        there = merged_entries(self._read(self.base).values())
        self.before = {system: kind.content(entry) for system, entry in there.items()}

    def is_new(self, system: str, content: str) -> bool:
        """Whether an entry must be written: False if it is there already.

        Raises `ArchiveError` if another entry of that name is there and is not to be replaced.
        """
        return self._is_change(system, content, self.before.get(system))

    def grow(self, growth: Growth) -> None:
        """Let the growing input grow: a new archive is made of the larger table, one that is there gets it."""
        assert self.grows is not None
        if self.made_of is None:
            self.growth = growth
        else:
            self.made_of = {**self.made_of, growth.name: growth.table}
            self.base = replace(self.base, inputs={**self.base.inputs, self.grows: growth.content})

    def commit(self, entries: Mapping[str, Entry]) -> AnyManifest:
        """Make a version with `entries` added or replaced; nothing is made if the archive has them all already.

        Raises `ArchiveError` if another writer has made, meanwhile, an archive of other inputs or with other settings,
        or another entry of the same name; `OutgrownError` if it let an input grow.
        """
        kind = self.kind
        tried, waited = -1, 0
        while True:
            current, version = latest(self.storage, kind.manifest)
            if version == tried:
                waited += 1
                self._wait_for_list(version, waited)
            tried = version
            on = current or self._made()
            if self.grows is not None and on.inputs.get(self.grows) != self.base.inputs.get(self.grows):
                self._remove_grown()
                raise OutgrownError(
                    f"{self.storage.url}: another command added documents meanwhile. Run this one again."
                )
            kind.check_same_inputs(self.storage, on.inputs, self.base.inputs)
            if not self.change_settings:
                check_same_settings(self.storage, on.kept, self.keep)
            kept = self.keep.kept() if self.keep is not None and self.change_settings else on.settings
            parts = self._read(on)
            there = merged_entries(parts.values())
            contents = {system: kind.content(entry) for system, entry in there.items()}
            changes = {
                system: entry
                for system, entry in entries.items()
                if self._is_change(system, kind.content(entry), contents.get(system))
            }
            if current is not None and not changes and kept == on.settings:
                return current
            made = self.made(self._larger(on), parts, changes, version=version, settings=kept)
            if made is not None:
                return made

    def _wait_for_list(self, version: int, waited: int) -> None:
        """Wait, for a store has a version and does not list it yet; raise `ArchiveError` where it never does."""
        if waited > _MOST_LISTS:
            raise ArchiveError(
                f"{self.storage.url}: the store has {manifest_name(version)} and does not list it. Check the name of "
                "the folder, or run the command again."
            )
        time.sleep(_LIST_S)

    def made(
        self,
        on: AnyManifest,
        parts: Mapping[StoredFile, Mapping[str, Entry]],
        added: Mapping[str, Entry],
        **said: object,
    ) -> AnyManifest | None:
        """Write entries as a part behind others, and commit; None if another writer made that version."""
        older, written = dict(parts), []
        while older and len(older[newest := next(reversed(older))]) < GROWTH * len(added):
            added = {**older.pop(newest), **added}
        if added or not older:
            name = table_name(self.kind.table, self.lease.writer)
            written = [self.kind.write(self.storage, name, added.values())]
        first, *newer = (*older, *written)
        tables = {**on.tables, self.kind.table: first}
        manifest = replace(on, tables=tables, newer=tuple(newer), **said)  # type: ignore[arg-type]
        self.lease.check()
        self.lease.may_withdraw = False
        if commit(self.storage, manifest):
            return manifest
        self.lease.may_withdraw = True
        for part in written:
            self.storage.remove(part.file)
        return None

    def _read(self, manifest: AnyManifest) -> dict[StoredFile, dict[str, Entry]]:
        """The parts of a version, each read once: what another writer commits meanwhile shares most of them."""
        parts = self.kind.parts_of(manifest)
        self._parts = {
            part: self._parts[part] if part in self._parts else self.kind.read(self.storage, part) for part in parts
        }
        return self._parts

    def _made(self) -> AnyManifest:
        """The base with its tables written, which is done once."""
        if self.made_of and not self.base.tables:
            written = {
                name: write_table(self.storage, table_name(name, self.lease.writer), table)
                for name, table in self.made_of.items()
            }
            self.base = replace(self.base, tables=written)
        return self.base

    def _larger(self, on: AnyManifest) -> AnyManifest:
        """A version with the table that has grown, which is written once."""
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

    def _is_change(self, system: str, content: str, there: str | None) -> bool:
        if there is None or there == content:
            return there is None
        where = f"{self.storage.url}: {self.kind.entry} {system!r}"
        if not self.replace:
            raise ArchiveError(
                f"{where} with other content is there. Ingest it under another name, or replace it (--replace)."
            )
        if there != self.before.get(system):
            raise ArchiveError(f"{where} was changed by another writer meanwhile. Look at it, then ingest again.")
        return True
