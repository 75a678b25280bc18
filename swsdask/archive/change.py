"""Changing an archive: the reference it begins with, and runs that are added, as one committed version.

A writer that loses a race reads again and tries on top of what won, as long as the two do not contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from swsdask.archive.encode import Codes
from swsdask.archive.layout import BUCKETS, Layout, table_name
from swsdask.archive.manifest import Manifest, check_same_settings, commit, latest
from swsdask.archive.occurrences import find_occurrences, finder_of
from swsdask.archive.storage import Storage
from swsdask.archive.stored_runs import StoredRun, from_table, to_table
from swsdask.archive.tables import ReferenceTables
from swsdask.errors import ArchiveError
from swsdask.model.finding import FindRule
from swsdask.model.layers import Layers
from swsdask.model.settings import EvaluationSettings
from swsdask.model.wording import counted


class Change:
    """What a writer wants of an archive, and what was there when it began: `base`, or tables to make one of."""

    def __init__(
        self,
        storage: Storage,
        base: Manifest,
        made_of: Mapping[str, pa.Table] | None = None,
        *,
        replace: bool,
        keep: Layers | None = None,
        change_settings: bool = False,
    ) -> None:
        self.storage = storage
        self.base = base
        self.made_of = made_of
        self.replace = replace
        self.keep = keep
        self.change_settings = change_settings
        self.before = {system: stored.run.content for system, stored in _runs(storage, base).items()}

    @classmethod
    def begin(
        cls,
        storage: Storage,
        tables: ReferenceTables | None,
        settings: EvaluationSettings,
        layout: Layout,
        *,
        replace: bool,
        keep: Layers | None = None,
        change_settings: bool = False,
    ) -> Change:
        """Begin with the archive that is there, or with a new one of `tables`, of which nothing is written yet.

        `keep` are the settings that a new archive keeps, and one that is there if `change_settings`. Raises
        `ArchiveError` if the archive there has another reference, keeps other settings or has other buckets than the
        layout asks for, if there is neither, or where the storage cannot be written safely.
        """
        storage.check_writable()
        base, _ = latest(storage, Manifest.from_json)
        if base is not None:
            if tables is not None:
                _check_same_reference(storage, base.inputs, tables.inputs)
            if not change_settings:
                check_same_settings(storage, base.kept, keep)
            if layout.buckets not in (None, base.buckets):
                raise ArchiveError(
                    f"{storage.url}: expected {counted(base.buckets, 'query buckets')}, which this archive was made "
                    f"with; found {layout.buckets}. Leave that out, or make another archive."
                )
            return cls(storage, base, replace=replace, keep=keep, change_settings=change_settings)
        if tables is None:
            raise ArchiveError(
                f"{storage.url}: expected an archive; found none. Give ECF, RTTM and queries to make one."
            )
        rule = FindRule.of(settings)
        made_of = {
            "documents": tables.documents,
            "queries": tables.queries,
            "words": tables.words,
            "segments": tables.segments,
            "occurrences": find_occurrences(tables.words, tables.queries, rule),
        }
        blank = Manifest(
            version=0,
            buckets=layout.buckets or BUCKETS,
            find_gap=rule.find_gap,
            text_filters=rule.text_filters,
            tables={},
            inputs=tables.inputs,
            settings=None if keep is None else keep.kept(),
            finder=finder_of(rule),
        )
        return cls(storage, blank, made_of, replace=replace, keep=keep, change_settings=change_settings)

    def codes(self) -> Codes:
        """The codes of the archive's queries and documents."""
        if self.made_of is not None:
            return Codes.of(self.made_of["documents"], self.made_of["queries"], self.made_of["words"])
        names = ("documents", "queries", "words")
        return Codes.of(*(self.storage.read_table(self.base.tables[name]) for name in names))

    def is_new(self, system: str, content: str) -> bool:
        """Whether a run must be written: False if it is there already.

        Raises `ArchiveError` if another run of that name is there and is not to be replaced.
        """
        return self._is_change(system, content, self.before.get(system))

    def commit(self, runs: Iterable[StoredRun]) -> Manifest:
        """Make a version with `runs` added or replaced; nothing is made if the archive has them all already.

        Raises `ArchiveError` if another writer has made, meanwhile, an archive of another reference or with other
        settings, or another run of the same name.
        """
        runs = list(runs)
        while True:
            current, version = latest(self.storage, Manifest.from_json)
            on = current or self._made()
            _check_same_reference(self.storage, on.inputs, self.base.inputs)
            if not self.change_settings:
                check_same_settings(self.storage, on.kept, self.keep)
            kept = self.keep.kept() if self.keep is not None and self.change_settings else on.settings
            there = _runs(self.storage, on)
            changes = {
                stored.run.system: stored
                for stored in runs
                if self._is_change(stored.run.system, stored.run.content, _content(there, stored.run.system))
            }
            if current is not None and not changes and kept == on.settings:
                return current
            name = table_name("runs")
            self.storage.write_table(name, to_table({**there, **changes}.values()))
            manifest = replace(on, version=version, tables={**on.tables, "runs": name}, settings=kept)
            if commit(self.storage, manifest):
                return manifest

    def _made(self) -> Manifest:
        """The base with its tables written, which is done once."""
        if self.made_of is not None and not self.base.tables:
            names = {table: table_name(table) for table in self.made_of}
            for table, name in names.items():
                self.storage.write_table(name, self.made_of[table])
            self.base = replace(self.base, tables=names)
        return self.base

    def _is_change(self, system: str, content: str, there: str | None) -> bool:
        if there is None or there == content:
            return there is None
        where = f"{self.storage.url}: a run of {system!r}"
        if not self.replace:
            raise ArchiveError(
                f"{where} with other content is there. Ingest it under another name, or replace it (--replace)."
            )
        if there != self.before.get(system):
            raise ArchiveError(f"{where} was changed by another writer meanwhile. Look at it, then ingest again.")
        return True


def _runs(storage: Storage, manifest: Manifest) -> dict[str, StoredRun]:
    if "runs" not in manifest.tables:
        return {}
    return {stored.run.system: stored for stored in from_table(storage.read_table(manifest.tables["runs"]))}


def _content(runs: Mapping[str, StoredRun], system: str) -> str | None:
    return runs[system].run.content if system in runs else None


def _check_same_reference(storage: Storage, there: Mapping[str, str], ours: Mapping[str, str]) -> None:
    different = [role for role in ours if there.get(role) != ours[role]]
    if different:
        raise ArchiveError(
            f"{storage.url}: expected the reference that this archive was made with; found one that "
            f"differs in {', '.join(different)}. An archive is one evaluation: make another archive for another "
            "reference."
        )
