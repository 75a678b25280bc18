"""Verification of a whole archive: every file that a version names, by its size and hash.

Manifests come first, then their tables, then the files of the runs or systems in these tables: files that a damaged one
names are unknown until it is restored. Files without hashes are read and checked as in scoring. Last come cache files,
which are never used when damaged but indicate a fault of the disk, and the history of nights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from swsdask.archive.cache import cache_fault, cache_files
from swsdask.archive.cells import StoredCell, hash_parts
from swsdask.archive.change import Change, ChangePolicy, leased, merged_entries
from swsdask.archive.discovery import DISCOVERY, StoredDiscovery, StoredSystem, content_of
from swsdask.archive.nights import night_files, read_night, version_of_last_night
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION, StoredArchive
from swsdask.archive.stored_tables import StoredFile, StoredRun, read_file
from swsdask.archive.version_list import AnyKind, removed_meanwhile
from swsdask.archive.versions import Manifest, kind_of, latest, manifest_name, read_version, versions
from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen, run_tasks
from swsdask.model.errors import ArchiveError
from swsdask.model.limits import shortage
from swsdask.model.schemas import DETECTIONS

ROWS_PER_TASK = 4_000_000


@dataclass(frozen=True)
class Verified:
    """The findings of a verification.

    Attributes
    ----------
    files : int
        The number of files that were verified, by their hashes or, without these, by reading them.
    without_hash : int
        The number of files of the newest version that have no hash.
    damaged : dict of str to str
        The damaged files by name, with what was found in place of each. Repaired files are not included.
    repaired : tuple of str
        The files that were taken from the copy.
    adopted : int or None
        The new version with hashes of files that had none.
    """

    files: int
    without_hash: int
    damaged: dict[str, str]
    repaired: tuple[str, ...] = ()
    adopted: int | None = None


def verify(
    url: str,
    *,
    repair: str | None = None,
    adopt: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Verify all files of all versions of an archive, its cache files, and its nights.

    Other processes may commit and remove versions meanwhile. A removed version is left out, with the files that no
    other version names.

    Parameters
    ----------
    url : str
        The archive.
    repair : str, optional
        A copy of the archive. Its intact files replace damaged ones.
    adopt : bool
        Add hashes for files of earlier releases, if no file is damaged. Their current content counts as correct if it
        can be read and the reference has the content hash that it was ingested with.
    executor : Executor, optional
        Where the files are read. Default: in this process.
    progress : Progress, optional
        Receives the number of files done.

    Returns
    -------
    Verified
        What was found and done.

    Raises
    ------
    ArchiveError
        If there is no archive, or none of its manifests can be read, or `repair` is no archive.
    StoreError
        If a store does not let a file be read now. Nothing is known of the files then.
    """
    storage = Storage(url)
    copy = None if repair is None else Storage(repair)
    if copy is not None and not versions(copy):
        raise ArchiveError(f"{copy.url}: expected a copy of the archive; found none.")
    run = _Verification(storage, copy, executor or SerialExecutor(), or_unseen(progress))
    run.progress.begin("verifying", 0)
    kind = run.kind()
    while run.check_versions(kind):
        pass
    if run.manifests:
        newest = max(run.manifests)
        run.without_hash &= run.named[newest]
        if run.without_hash and not run.damaged:
            run.read_contents(_open_manifest(storage, kind, run.manifests[newest]))
            run.leave_out_removed()
    adopted = None
    if adopt and run.without_hash and not run.damaged:
        adopted = _adopt(storage, kind)
    run.check_each(cache_files(storage), _cache_file_fault)
    run.check_each(night_files(storage), _night_fault)
    return Verified(len(run.seen), len(run.without_hash), run.damaged, tuple(run.repaired), adopted)


@dataclass
class _Verification:
    """A verification in progress."""

    storage: Storage
    copy: Storage | None
    executor: Executor
    progress: Progress
    named: dict[int, set[str]] = field(default_factory=dict)
    """The files of each version that was verified: its manifest and, if that can be read, the files that it names."""
    manifests: dict[int, Manifest] = field(default_factory=dict)
    """The manifests that can be read."""
    seen: set[str] = field(default_factory=set)
    parts: dict[StoredFile, dict[str, Any]] = field(default_factory=dict)
    """The entries in each part of their table that was read."""
    without_hash: set[str] = field(default_factory=set)
    damaged: dict[str, str] = field(default_factory=dict)
    repaired: list[str] = field(default_factory=list)

    def _done(self, _: object) -> None:
        self.progress.advance(1)

    def kind(self) -> AnyKind:
        """Return the kind of archive, from any manifest of the archive or of the copy."""
        there = versions(self.storage)
        error = ArchiveError(f"{self.storage.url}: expected an archive; found none.")
        for storage in (self.storage, *([self.copy] if self.copy and there else [])):
            for version in reversed(versions(storage)):
                try:
                    found = kind_of(storage, version)
                except (ArchiveError, OSError) as damaged:
                    error = damaged if isinstance(damaged, ArchiveError) else error
                else:
                    return DISCOVERY if found is DISCOVERY.manifest else EVALUATION
        if versions(self.storage) != there:
            return self.kind()
        raise error

    def check_versions(self, kind: AnyKind) -> bool:
        """Verify the versions that were not verified yet. Return whether versions must be looked for again."""
        new = self._manifests(kind)
        self.check(file for manifest in new for file in manifest.files)
        files: list[StoredFile] = []
        for manifest in new:
            of_entries = list(_entry_files(self.storage, kind, manifest, self))
            self.named[manifest.version] |= {each.file for each in of_entries}
            files += of_entries
        self.check(files)
        return self.leave_out_removed()

    def leave_out_removed(self) -> bool:
        """Forget the versions that were removed meanwhile, and the files that no other version names.

        Returns whether versions must be looked for again: a version that was committed meanwhile may name a file whose
        fault is forgotten, and if no version is left, nothing is verified.
        """
        removed, gone = self._find_removed()
        faults = gone & self.damaged.keys()
        for version in removed:
            del self.named[version]
            self.manifests.pop(version, None)
        self.seen -= gone
        self.without_hash -= gone
        for name in faults:
            del self.damaged[name]
        return bool(faults) or (bool(removed) and not self.named)

    def _find_removed(self) -> tuple[list[int], set[str]]:
        """Return the versions that were removed meanwhile, and the files that no other version names."""
        removed = removed_meanwhile(self.storage, self.named)
        others = (files for version, files in self.named.items() if version not in removed)
        return removed, set[str]().union(*map(self.named.__getitem__, removed)).difference(*others)

    def _manifests(self, kind: AnyKind) -> list[Manifest]:
        """Return the manifests that were not read yet and can be read, ascending, repaired where possible."""
        found: list[Manifest] = []
        numbers = versions(self.storage)
        if (of_night := version_of_last_night(self.storage)) > max(numbers, default=0):
            numbers = [*numbers, of_night]
        for version in (number for number in numbers if number not in self.named):
            name = manifest_name(version)
            try:
                manifest = read_version(self.storage, version, kind.manifest)
            except ArchiveError as error:
                self.named[version] = {name}
                self.seen.add(name)
                self.damaged[name] = str(error)
                if removed_meanwhile(self.storage, [version]) or not self._repair_manifest(version, kind):
                    continue
                manifest = read_version(self.storage, version, kind.manifest)
            self.named[version] = {name, *(each.file for each in manifest.files)}
            self.seen.add(name)
            self.manifests[version] = manifest
            found.append(manifest)
        return found

    def check(self, files: Iterable[StoredFile]) -> None:
        """Verify files that were not seen yet, and repair those that are damaged.

        If an earlier version names a file without a hash and a later one with a hash, that hash is used.
        """
        new: dict[str, StoredFile] = {}
        for each in files:
            if each.file not in self.seen and (each.file not in new or new[each.file].hash is None):
                new[each.file] = each
        self.seen |= new.keys()
        self.without_hash |= {name for name, each in new.items() if each.hash is None}
        every = list(new.values())
        faults = run_tasks(self.executor, _fault, every, self.storage, lambda each: each.file, self._done)
        for stored, fault in zip(every, faults, strict=True):
            if fault is not None:
                self.damaged[stored.file] = fault
        faulty = [stored for stored in every if stored.file in self.damaged]
        _, gone = self._find_removed() if faulty else ([], set[str]())
        for stored in faulty:
            if stored.file not in gone:
                self._repair(stored)

    def check_each(self, names: Sequence[str], fault_of: Callable[[str, Storage], str | None]) -> None:
        """Verify files that have their own hashes, and repair those that are damaged."""
        self.seen.update(names)
        faults = run_tasks(self.executor, fault_of, names, self.storage, str, self._done)
        for name, fault in zip(names, faults, strict=True):
            if fault is not None:
                self.damaged[name] = fault
                if self.copy is not None and self.copy.exists(name) and fault_of(name, self.copy) is None:
                    self._replace(name, self.copy.read(name))

    def read_contents(self, archive: StoredArchive | StoredDiscovery) -> None:
        """Read all of an archive, to find damage in files without hashes."""
        try:
            if isinstance(archive, StoredDiscovery):
                _check_discovery(archive)
                return
            _check_reference_tables(archive)
            cells = [cell for run in archive.runs for cell in archive.cells(run.system, ROWS_PER_TASK)]
        except ArchiveError as error:
            self.damaged[_file_of(error, self.storage)] = str(error)
            return
        for fault in run_tasks(self.executor, _cell_fault, cells, None, lambda each: each.source, self._done):
            if fault is not None:
                self.damaged[_file_of(fault, self.storage)] = str(fault)

    def _repair_manifest(self, version: int, kind: AnyKind) -> bool:
        if self.copy is None:
            return False
        try:
            read_version(self.copy, version, kind.manifest)
            content = self.copy.read(manifest_name(version))
        except (ArchiveError, OSError):
            return False
        self._replace(manifest_name(version), content)
        return True

    def _repair(self, stored: StoredFile) -> None:
        if self.copy is None or stored.hash is None or _fault(stored, self.copy) is not None:
            return
        self._replace(stored.file, self.copy.read(stored.file))

    def _replace(self, name: str, content: bytes) -> None:
        self.storage.replace(name, content)
        self.repaired.append(name)
        del self.damaged[name]


def _fault(stored: StoredFile, storage: Storage) -> str | None:
    """Return how a file differs from what was written, as far as that is known; None if it does not."""
    try:
        return _compare_content(stored.file, storage, stored.fault)
    except FileNotFoundError:
        return "no such file"


def _cache_file_fault(name: str, storage: Storage) -> str | None:
    """Return the fault of a cache file. Another process may have removed the file."""
    try:
        return _compare_content(name, storage, partial(cache_fault, name))
    except FileNotFoundError:
        return None


def _night_fault(name: str, storage: Storage) -> str | None:
    """Return the fault of a night of the history."""

    def fault(content: pa.Buffer) -> str | None:
        try:
            read_night(content)
        except Exception as error:  # Damaged bytes can make a reader raise anything.
            return f"one that is not what was written ({error})"
        return None

    try:
        return _compare_content(name, storage, fault)
    except FileNotFoundError:
        return "no such file"


def _compare_content(name: str, storage: Storage, fault: Callable[[pa.Buffer], str | None]) -> str | None:
    """Return the fault of a file's content, or why it cannot be read.

    Raises `FileNotFoundError` and `ResourceError`.
    """
    try:
        with storage.open_parts(name) as parts:
            return fault(parts.read(0, parts.size))
    except FileNotFoundError:
        raise
    except (OSError, ArchiveError) as error:
        if (short := shortage(error, f"{storage.url}/{name}")) is not None:
            raise short from error
        return str(error)


def _entry_files(storage: Storage, kind: AnyKind, manifest: Manifest, run: _Verification) -> Iterator[StoredFile]:
    """Yield the files of the entries of a version, without entries of older parts that were replaced."""
    parts = [part for part in kind.parts_of(manifest) if part.file not in run.damaged]
    for part in parts:
        if part not in run.parts:
            try:
                run.parts[part] = kind.read(storage, part)
            except ArchiveError as error:
                run.damaged[part.file] = str(error)
    for entry in merged_entries(run.parts.get(part, {}) for part in parts).values():
        yield from kind.files(entry)


def _open_manifest(storage: Storage, kind: AnyKind, manifest: Any) -> StoredArchive | StoredDiscovery:
    return StoredArchive(storage, manifest) if kind is EVALUATION else StoredDiscovery(storage, manifest)


def _cell_fault(cell: StoredCell, _: None) -> ArchiveError | None:
    try:
        cell.read(DETECTIONS.names)
    except ArchiveError as error:
        return error
    return None


def _file_of(error: ArchiveError, storage: Storage) -> str:
    """Return the file that a read error names."""
    return str(error).removeprefix(f"{storage.url}/").split(": ", 1)[0].split(", system", 1)[0]


def _check_reference_tables(archive: StoredArchive) -> None:
    """Raise `ArchiveError` if tables cannot be read or are not those that were ingested."""
    inputs = ReferenceTables.of(archive).inputs
    _ = archive.stored_occurrences
    EVALUATION.check_same_inputs(archive.storage, archive.inputs, inputs)


def _check_discovery(archive: StoredDiscovery) -> None:
    """Raise `ArchiveError` if tables cannot be read or are not those that were ingested."""
    tables = archive.tables
    inputs = {role: content_of(getattr(tables, role)) for role in archive.inputs}
    DISCOVERY.check_same_inputs(archive.storage, archive.inputs, inputs)
    for each in archive.systems:
        file = archive.read_classes(each.system)
        if content_of(file.classes, file.fragments) != each.content:
            raise ArchiveError(
                f"{archive.storage.url}/{each.fragments.file}: expected what was ingested of {each.system!r}; found "
                "other classes or fragments."
            )


def _adopt(storage: Storage, kind: AnyKind) -> int:
    """Make a version whose files all have hashes. Returns its number."""
    with leased(storage) as lease:
        change = Change(kind, lease, None, {}, ChangePolicy(replace=True))
        while True:
            current, version = latest(storage, kind.manifest)
            assert current is not None
            entries = {system: _adopt_entry(storage, entry) for system, entry in kind.entries(storage, current).items()}
            tables = {name: _describe_file(storage, file) for name, file in current.tables.items()}
            if change.commit_part(replace(current, tables=tables), {}, entries, version=version) is not None:
                return version


def _describe_file(storage: Storage, stored: StoredFile) -> StoredFile:
    return stored if stored.hash is not None else StoredFile.of(stored.file, read_file(storage, stored))


def _adopt_entry(storage: Storage, entry: StoredRun | StoredSystem) -> StoredRun | StoredSystem:
    if isinstance(entry, StoredSystem):
        return replace(
            entry, classes=_describe_file(storage, entry.classes), fragments=_describe_file(storage, entry.fragments)
        )
    fragments = []
    for each in entry.fragments:
        if each.parts is None:
            with storage.open_parts(each.file.file) as parts:
                content = parts.read(0, parts.size)
            each = replace(each, file=StoredFile.of(each.file.file, content), parts=hash_parts(content))
        fragments.append(each)
    return replace(entry, fragments=tuple(fragments))
