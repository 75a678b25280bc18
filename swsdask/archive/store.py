"""An archive on storage: opened at one version, read in cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from swsdask.archive.cells import Bounds, RowGroups, StoredCell
from swsdask.archive.change import ArchiveKind
from swsdask.archive.occurrences import find_occurrences, finder_of
from swsdask.archive.protocols import FindRule, Run
from swsdask.archive.reference_tables import n_documents, spoken_elsewhere
from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import (
    StoredFile,
    StoredRun,
    Verification,
    check_range,
    check_spans,
    read_runs_table,
    read_table,
    verification,
    write_runs_table,
)
from swsdask.archive.versions import EvaluationManifest, manifest_name, open_version, versions
from swsdask.formats.reference.rttm import GENDERS
from swsdask.model.errors import ArchiveError
from swsdask.model.layers import Layers
from swsdask.model.schemas import DOCUMENTS, FOUND_OCCURRENCES, JUDGMENTS, OCCURRENCES, QUERIES, SEGMENTS, WORDS
from swsdask.model.wording import choices

EVALUATION: ArchiveKind[EvaluationManifest, StoredRun] = ArchiveKind(
    manifest=EvaluationManifest,
    table="runs",
    read=read_runs_table,
    write=write_runs_table,
    content=lambda stored: stored.run.content,
    files=lambda stored: tuple(fragment.file for fragment in stored.fragments),
    entry="a run of",
    source="reference",
    parts="ECF, RTTM and queries",
    later=(GENDERS,),
)


@dataclass(frozen=True)
class StoredArchive:
    """Implements `archive.protocols.Archive` on storage. Tables are read when they are first needed.

    Files that have hashes are verified when read, unless `verify` is False. `beside` are runs of other versions, under
    their own names, that count as runs of this one.
    """

    storage: Storage
    manifest: EvaluationManifest
    verify: bool = True
    beside: tuple[StoredRun, ...] = ()

    @property
    def version(self) -> int:
        """The version that is open."""
        return self.manifest.version

    @property
    def place(self) -> str:
        """The manifest of the version, where workers find it."""
        return self.storage.place(manifest_name(self.version))

    @property
    def is_distant(self) -> bool:
        """Whether the storage is distant."""
        return self.storage.is_distant

    @property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the reference, by role."""
        return self.manifest.inputs

    @property
    def kept(self) -> Layers | None:
        """The settings that the archive keeps; None for archives of releases that kept none."""
        return self.manifest.kept

    @cached_property
    def documents(self) -> pa.Table:
        """The evaluated excerpts."""
        table, file = self._table("documents", DOCUMENTS)
        check_spans(self.storage, file, table, ("start", "end"))
        return table

    @cached_property
    def queries(self) -> pa.Table:
        """The query list."""
        return self._table("queries", QUERIES)[0]

    @cached_property
    def words(self) -> pa.Table:
        """The words that were spoken."""
        table, file = self._table("words", WORDS)
        check_spans(self.storage, file, table, ("start", "end"))
        return table

    @cached_property
    def segments(self) -> pa.Table:
        """The segments of talkers (`model.schemas.SEGMENTS`)."""
        table, file = self._table("segments", SEGMENTS)
        check_spans(self.storage, file, table, ("start", "end"))
        return table

    @cached_property
    def judgments(self) -> pa.Table:
        """The judged documents; archives of other references have no such table."""
        return (
            self._table("judgments", JUDGMENTS)[0] if "judgments" in self.manifest.tables else JUDGMENTS.empty_table()
        )

    @cached_property
    def stored_runs(self) -> tuple[StoredRun, ...]:
        """The runs with their files."""
        own = EVALUATION.entries(self.storage, self.manifest, verify=self.verify).values()
        return tuple(sorted((*own, *self.beside), key=lambda stored: stored.run.system))

    @cached_property
    def _by_system(self) -> dict[str, StoredRun]:
        return {each.run.system: each for each in self.stored_runs}

    @cached_property
    def n_codes(self) -> tuple[int, int]:
        """The numbers of queries and of documents that have codes."""
        others = spoken_elsewhere(self.documents, self.words)
        return self.queries.num_rows, n_documents(self.documents) + len(others)

    @property
    def verification(self) -> Verification:
        """Whether what is read is verified by hashes."""
        of_entries = (file for each in self.stored_runs for file in EVALUATION.files(each))
        return verification((*self.manifest.files, *of_entries), self.verify)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, sorted by system."""
        return tuple(stored.run for stored in self.stored_runs)

    def occurrences(self, rule: FindRule) -> pa.Table:
        """The occurrences of the queries: as stored, or found in the words if those were found by another rule."""
        stored = (self.manifest.finder, self.manifest.find_gap, self.manifest.text_filters)
        if (finder_of(rule), rule.find_gap, rule.text_filters) == stored:
            return self.stored_occurrences
        return find_occurrences(self.words, self.queries, rule)

    @cached_property
    def stored_occurrences(self) -> pa.Table:
        """The occurrences of the queries by the rule of the settings that the archive was made with.

        A word does not end before it starts, but an occurrence may: NIST's tools join words in the order of the RTTM,
        and a part of a word may begin before a part of the previous word. 0.1.0 first wrote occurrences without their
        speakers, and without a finder, so that scoring finds them again.
        """
        schemas = (FOUND_OCCURRENCES,) if self.manifest.finder else (FOUND_OCCURRENCES, OCCURRENCES)
        table, file = self._table("occurrences", *schemas)
        check_range(self.storage, file, table, "query", self.queries.num_rows)
        check_spans(self.storage, file, table, ("start", "first_word_end"), ("last_word_start", "end"))
        return table

    def cells(self, system: str, rows_per_task: int) -> Iterator[StoredCell]:
        """Yield the run in cells of whole row groups, as many as fit in `rows_per_task` rows, at least one."""
        stored = self._by_system
        if system not in stored:
            there = choices(sorted(stored), system)
            raise ArchiveError(f"{self.storage.url}: no run of {system!r}; there are: {there}.")
        run, fragments = stored[system].run, stored[system].fragments
        bounds = Bounds.of(run, *self.n_codes)
        rows = 0
        gathered: dict[int, list[int]] = {}

        def cell() -> StoredCell:
            groups = (RowGroups.of(fragments[each], numbers, verify=self.verify) for each, numbers in gathered.items())
            return StoredCell(self.storage, system, rows, tuple(groups), bounds)

        for place, fragment in enumerate(fragments):
            for number, size in enumerate(fragment.groups):
                if gathered and rows + size > rows_per_task:
                    yield cell()
                    rows, gathered = 0, {}
                gathered.setdefault(place, []).append(number)
                rows += size
        if gathered:
            yield cell()

    def fetch(self) -> None:
        """If every read is a request, fetch all tables at the same time."""
        self.storage.fetch({each.file: each.size for each in self.manifest.files})

    def _file(self, name: str) -> StoredFile:
        file = self.manifest.tables[name]
        return file if self.verify else file.unverified

    def _table(self, name: str, *schemas: pa.Schema) -> tuple[pa.Table, StoredFile]:
        file = self._file(name)
        return read_table(self.storage, file, *schemas), file


def open_archive(url: str, version: int | None = None, *, verify: bool = True) -> StoredArchive:
    """Open the archive at a URL, at its current version or a given one.

    Raises
    ------
    ArchiveError
        If there is none, or not that version, or its manifest is damaged.
    """
    storage = Storage(url)
    return StoredArchive(storage, open_version(storage, version, EvaluationManifest), verify)


def find_archive(url: str, version: int | None, *, verify: bool) -> StoredArchive | None:
    """Open the archive at a URL, as `open_archive`; None if there is no archive."""
    storage = Storage(url)
    there = _versions_at(storage)
    return StoredArchive(storage, open_version(storage, version, EvaluationManifest, there), verify) if there else None


def is_archive(url: str) -> bool:
    """Return whether there is an archive at a URL. Raises `ArchiveError` if a place for archives cannot be listed."""
    return bool(_versions_at(Storage(url)))


def _versions_at(storage: Storage) -> list[int]:
    """Return the versions of the archive at a place, none if there is no archive.

    A web server that cannot be listed has none. A store that cannot be listed at the moment may have one, and
    whoever took it for empty would begin a new one.
    """
    try:
        return versions(storage)
    except ArchiveError:
        if storage.takes_archives:
            raise
        return []
