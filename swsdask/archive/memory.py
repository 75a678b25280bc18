"""An archive in memory, for scoring files without storing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from swsdask.archive.cells import without_signed_zeros
from swsdask.archive.encode import Codes, Tally, encode_piece, file_order, note_claims
from swsdask.archive.fragments import concatenate, cut_rows, in_order, pair_starts
from swsdask.archive.occurrences import find_occurrences
from swsdask.archive.protocols import FindRule, Run
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.model.errors import ArchiveError, Problems
from swsdask.model.schemas import RunPiece, RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections
from swsdask.model.wording import choices


@dataclass(frozen=True, eq=False)
class MemoryCell:
    """Some rows of a run in memory."""

    system: str
    source: str
    detections: Detections
    is_distant = False

    @property
    def rows(self) -> int:
        """The number of detections."""
        return len(self.detections)

    @property
    def parts(self) -> tuple[int, ...]:
        """All rows are in order."""
        return (self.rows,)

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:  # noqa: ARG002
        """Return the named columns, `query` and `score`. They were checked when they were read into memory."""
        wanted = Detections(**{name: getattr(self.detections, name) for name in {"query", "score", *columns}})
        return wanted if self.detections.position is None else without_signed_zeros(wanted)

    def confirm(self, columns: Sequence[str]) -> None:
        """Do nothing: the rows were checked when they were read into memory."""


@dataclass(frozen=True, eq=False)
class MemoryArchive:
    """Implements `archive.protocols.Archive`. `detections` has all rows and columns of each run in canonical order."""

    tables: ReferenceTables
    runs: tuple[Run, ...]
    detections: Mapping[str, Detections] = field(repr=False)
    place = None
    is_distant = False

    @property
    def documents(self) -> pa.Table:
        """The evaluated excerpts."""
        return self.tables.documents

    @property
    def queries(self) -> pa.Table:
        """The query list."""
        return self.tables.queries

    @property
    def words(self) -> pa.Table:
        """The words that were spoken."""
        return self.tables.words

    @property
    def segments(self) -> pa.Table:
        """The segments of talkers (`model.schemas.SEGMENTS`)."""
        return self.tables.segments

    @property
    def judgments(self) -> pa.Table:
        """The judged documents (`model.schemas.JUDGMENTS`)."""
        return self.tables.judgments

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the reference, by role."""
        return self.tables.inputs

    @property
    def verification(self) -> None:
        """Nothing is stored."""
        return None

    def occurrences(self, rule: FindRule) -> pa.Table:
        """Return the occurrences of the queries."""
        return find_occurrences(self.words, self.queries, rule)

    def cells(self, system: str, rows_per_task: int) -> Iterator[MemoryCell]:
        """Yield the run in cells of about equal size."""
        if system not in self.detections:
            raise ArchiveError(f"no run of {system!r} here; there are: {choices(sorted(self.detections), system)}.")
        rows = self.detections[system]
        files = next(run.files for run in self.runs if run.system == system)
        for part in cut_rows(pair_starts(rows), len(rows), rows_per_task):
            yield MemoryCell(system, ", ".join(files), rows.take(part))


class RunsInMemory:
    """Runs in the codes of an archive, read source after source. Picklable.

    The order of the sources does not matter, unless the order in files counts (`archive.encode`).
    """

    def __init__(self, tables: ReferenceTables, settings: EvaluationSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._codes = Codes.of(tables.documents, tables.queries, tables.words)
        self._sources: list[RunSource] = []
        self._order = file_order(self._sources, self._codes, settings)
        self._rows: dict[str, list[Detections]] = {}
        self._tallies: dict[str, Tally] = {}

    def add(self, sources: Iterable[RunSource]) -> None:
        """Add the rows of some sources, or none of them.

        Raises `InputError` with every problem of the sources, with unknown queries and documents if the settings make
        them errors, and with systems that are in two of the sources.
        """
        problems = Problems()
        rows: dict[str, list[Detections]] = {}
        tallies: dict[str, Tally] = {}
        claims: dict[str, list[RunSource]] = {}
        for source in sources:
            for piece in self._pieces(source, problems):
                system = piece.header.system
                part, tally = encode_piece(piece, self._codes)
                rows.setdefault(system, []).append(part)
                earlier = tallies.get(system) or self._tallies.get(system)
                tallies[system] = tally if earlier is None else earlier + tally
                if source not in claims.setdefault(system, []):
                    claims[system].append(source)
        note_claims(claims, problems)
        for tally in tallies.values():
            tally.note_faults(self._settings, problems, judged=len(self._tables.judgments) > 0)
        problems.raise_if_any()
        self._tallies |= tallies
        for system, parts in rows.items():
            self._rows.setdefault(system, []).extend(parts)

    def _pieces(self, source: RunSource, problems: Problems) -> Iterator[RunPiece]:
        if self._order is None:
            return source.read(problems)
        self._sources.append(source)
        return self._order.read(len(self._sources) - 1, problems)

    def archive(self) -> MemoryArchive:
        """Return the archive of the rows that were added.

        Raises `InputError` for trials that occur twice under `compat = "mediaeval"`.
        """
        for system in sorted(self._rows):
            ordered = in_order(concatenate(self._rows.pop(system)))
            self._rows[system] = [ordered]
            if self._order is not None:
                self._order.check_once(system, ordered)
        detections = {system: rows for system, (rows,) in self._rows.items()}
        return MemoryArchive(
            self._tables, tuple(self._tallies[name].run() for name in sorted(self._tallies)), detections
        )


def read_into_memory(
    tables: ReferenceTables, sources: Sequence[RunSource], settings: EvaluationSettings
) -> MemoryArchive:
    """Return an archive of an evaluation and the runs of some sources. Raises as `RunsInMemory`."""
    runs = RunsInMemory(tables, settings)
    runs.add(sources)
    return runs.archive()
