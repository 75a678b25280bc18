"""An archive on storage: opened at one version, read in cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from swsdask.archive.fragments import StoredRun, from_table, read_groups
from swsdask.archive.occurrences import find_occurrences, finder_of
from swsdask.archive.protocols import Run
from swsdask.archive.storage import Storage
from swsdask.archive.versions import DETECTION_FILES, TABLES, TEMPORARY, Manifest, opened, remove_unnamed, versions
from swsdask.model.errors import ArchiveError
from swsdask.model.finding import FindRule
from swsdask.model.layers import Layers
from swsdask.model.trials import Detections


@dataclass(frozen=True)
class StoredCell:
    """Some row groups of some fragments of one run: where to read, not what."""

    storage: Storage
    system: str
    rows: int
    groups: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def source(self) -> str:
        """The files."""
        return ", ".join(f"{self.storage.url}/{file}" for file, _ in self.groups)

    def read(self, columns: Sequence[str]) -> Detections:
        """The named columns, `query` and `score`. Raises `ArchiveError` if a file is gone or cannot be read."""
        wanted = list(dict.fromkeys(("query", "score", *columns)))
        found: dict[str, list[Any]] = {name: [] for name in wanted}
        for file, numbers in self.groups:
            try:
                with self.storage.open_parquet(file) as parquet:
                    if "position" in wanted and "position" not in parquet.schema_arrow.names:
                        raise self._without_order()
                    for name, arrays in read_groups(parquet, numbers, wanted).items():
                        found[name] += arrays
            except (OSError, pa.ArrowException) as error:
                raise self.storage.unreadable(file, error) from error
        return Detections(
            **{name: arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for name, arrays in found.items()}
        )

    def _without_order(self) -> ArchiveError:
        return ArchiveError(
            f"{self.storage.url}: expected a run of {self.system!r} with the order of its rows, which "
            "compat=mediaeval, average_precision.ties=input and average_precision.duplicates=first need; found one "
            "ingested without. "
            "Ingest it again under that setting: --compat mediaeval --change-settings --replace, or "
            "--set average_precision.ties=input --change-settings --replace."
        )


@dataclass(frozen=True)
class StoredArchive:
    """Implements `archive.base.Archive` on storage. Tables are read when they are first asked for."""

    storage: Storage
    manifest: Manifest

    @property
    def version(self) -> int:
        """The version that is open."""
        return self.manifest.version

    @property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the reference, by role."""
        return self.manifest.inputs

    @property
    def kept(self) -> Layers | None:
        """The settings that the archive keeps; None if it is of a release that kept none."""
        return self.manifest.kept

    @cached_property
    def documents(self) -> pa.Table:
        """The evaluated excerpts."""
        return self._table("documents")

    @cached_property
    def queries(self) -> pa.Table:
        """The query list."""
        return self._table("queries")

    @cached_property
    def words(self) -> pa.Table:
        """What was spoken."""
        return self._table("words")

    @cached_property
    def segments(self) -> pa.Table:
        """Who spoke when."""
        return self._table("segments")

    @cached_property
    def stored_runs(self) -> tuple[StoredRun, ...]:
        """The runs with their files."""
        return tuple(from_table(self._table("runs")))

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, sorted by system."""
        return tuple(stored.run for stored in self.stored_runs)

    def occurrences(self, rule: FindRule) -> pa.Table:
        """Where the queries were spoken: as stored, or found in the words if that was by another rule."""
        stored = (self.manifest.finder, self.manifest.find_gap, self.manifest.text_filters)
        if (finder_of(rule), rule.find_gap, rule.text_filters) == stored:
            return self._table("occurrences")
        return find_occurrences(self.words, self.queries, rule)

    def cells(self, system: str, rows_per_task: int) -> Iterator[StoredCell]:
        """The run in cells of whole row groups, as many as fit in `rows_per_task` rows, at least one."""
        stored = {each.run.system: each for each in self.stored_runs}
        if system not in stored:
            raise ArchiveError(
                f"{self.storage.url}: no run of {system!r}; there are: {', '.join(sorted(stored)) or 'none'}."
            )
        rows = 0
        gathered: dict[str, list[int]] = {}
        for fragment in stored[system].fragments:
            for number, size in enumerate(fragment.groups):
                if gathered and rows + size > rows_per_task:
                    yield self._cell(system, rows, gathered)
                    rows, gathered = 0, {}
                gathered.setdefault(fragment.file, []).append(number)
                rows += size
        if gathered:
            yield self._cell(system, rows, gathered)

    def _cell(self, system: str, rows: int, gathered: Mapping[str, Sequence[int]]) -> StoredCell:
        groups = tuple((file, tuple(numbers)) for file, numbers in gathered.items())
        return StoredCell(self.storage, system, rows, groups)

    def _table(self, name: str) -> pa.Table:
        file = self.manifest.tables[name]
        return self.storage.read_table(file)


def open_archive(
    url: str, version: int | None = None, storage_options: Mapping[str, Any] | None = None
) -> StoredArchive:
    """The archive at a URL, at its current version or a given one.

    Raises `ArchiveError` if there is none, or not that version.
    """
    storage = Storage(url, storage_options or {})
    return StoredArchive(storage, opened(storage, version, Manifest.from_json))


def is_archive(url: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether an archive can be seen at a URL."""
    try:
        return bool(versions(Storage(url, storage_options or {})))
    except ArchiveError:
        return False


def vacuum(url: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Remove the files that no version names, left by writers that were stopped; their names.

    Only while nobody writes: the files of a commit under way are not yet named either.
    """
    storage = Storage(url, storage_options or {})
    named = set[str]()
    for version in versions(storage):
        archive = open_archive(url, version, storage_options)
        named.update(archive.manifest.tables.values())
        named.update(fragment.file for stored in archive.stored_runs for fragment in stored.fragments)
    return remove_unnamed(storage, (DETECTION_FILES, TABLES, TEMPORARY), named)
