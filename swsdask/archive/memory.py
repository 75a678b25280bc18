"""An archive in memory, for scoring files without storing them, and reading of references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from swsdask.archive.cells import without_signed_zeros
from swsdask.archive.encode import Codes, Tally, encode_piece, file_order, note_claims
from swsdask.archive.fragments import concatenated, cut_rows, in_order, pair_starts
from swsdask.archive.occurrences import find_detections, find_occurrences
from swsdask.archive.protocols import FindRule, Run
from swsdask.archive.reference_tables import JudgedFiles, ReferenceTables, read_judged
from swsdask.formats.files import noted
from swsdask.formats.find import ReferenceFiles
from swsdask.formats.in_memory import Table
from swsdask.formats.recognise import expect
from swsdask.formats.reference.nist_xml import described, read_ecf, read_queries, spoken_encoding, texts_of
from swsdask.formats.reference.rttm import read_rttm
from swsdask.formats.reference.table import read_documents, read_occurrences
from swsdask.formats.runs.lines import CTM
from swsdask.formats.runs.read import read_run
from swsdask.model.errors import ArchiveError, Problems, choices
from swsdask.model.schemas import SEGMENTS, WORDS, RunPiece, RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections


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
        """The named columns, `query` and `score`. They were checked when they were read into memory."""
        wanted = Detections(**{name: getattr(self.detections, name) for name in {"query", "score", *columns}})
        return wanted if self.detections.position is None else without_signed_zeros(wanted)

    def confirm(self, columns: Sequence[str]) -> None:
        """Nothing."""


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
        """The occurrences of the queries."""
        return find_occurrences(self.words, self.queries, rule)

    def cells(self, system: str, rows_per_task: int) -> Iterator[MemoryCell]:
        """The run in cells of about equal size."""
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
        """The archive of the rows that were added.

        Raises `InputError` for trials that occur twice under `compat = "mediaeval"`.
        """
        for system in sorted(self._rows):
            ordered = in_order(concatenated(self._rows.pop(system)))
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
    """An archive of an evaluation and the runs of some sources. Raises as `RunsInMemory`."""
    runs = RunsInMemory(tables, settings)
    runs.add(sources)
    return runs.archive()


__all__ = ["JudgedFiles", "ReferenceFiles", "read_reference"]


def read_reference(files: ReferenceFiles | JudgedFiles | ReferenceTables) -> ReferenceTables:
    """The reference tables from official files, from tables or from judgments; given reference tables unchanged.

    Raises `InputError` with every problem of the files.
    """
    if isinstance(files, ReferenceTables):
        return files
    problems = Problems()
    if isinstance(files, JudgedFiles):
        judged = read_judged(files, problems)
        problems.raise_if_any()
        return judged
    if files.queries is None or files.tables:
        return reference_of_tables(files.ecf, files.rttm, files.queries)
    documents = read_ecf(files.ecf, problems)
    queries = read_queries(files.queries, problems)
    words, segments = read_rttm(files.rttm, problems, spoken_encoding(queries, files.queries, files.rttm))
    if files.lexicon or files.vocabulary:
        queries = described(queries, files.lexicon, files.vocabulary, problems)
    problems.raise_if_any()
    return ReferenceTables(documents, queries, words, segments)


def reference_of_tables(
    documents: Table | str, occurrences: Table | str, queries: Table | Iterable[str] | str | None
) -> ReferenceTables:
    """The reference tables from tables in files or in memory. Raises `InputError` with every problem of them."""
    problems = Problems()
    with noted(problems):
        excerpts = read_documents(documents, problems)
    with noted(problems):
        listed, words, judgments = read_occurrences(occurrences, queries, problems)
    problems.raise_if_any()
    return ReferenceTables(excerpts, listed, words, SEGMENTS.empty_table(), judgments)


def search_transcript(url: str, queries: pa.Table, rule: FindRule) -> pa.Table:
    """Search the words of a CTM with scores for queries; return the table of a run (`find_detections`).

    If no query has a text, the ids are the texts. Raises `InputError` with every problem of the CTM.
    """
    texts = texts_of(queries)
    texts = texts if any(texts) else queries["query"].to_pylist()
    problems = Problems()
    with noted(problems):
        expect(url, CTM)
        pieces = list(read_run(url, problems))
    problems.raise_if_any()
    words = pa.concat_tables([WORDS.empty_table(), *map(_words_of, pieces)])
    scores = np.concatenate([np.zeros(0), *(piece.score for piece in pieces)])
    place = queries.schema.get_field_index("text")
    with_texts = queries.set_column(place, "text", pa.array(texts, pa.string()))
    return find_detections(words, scores, with_texts, rule)


def _words_of(piece: RunPiece) -> pa.Table:
    """The rows of a CTM as words without a speaker."""
    columns = {
        "document": pa.array(piece.documents, pa.string()).take(pa.array(piece.document)),
        "channel": piece.channel,
        "speaker": pa.repeat("", len(piece)),
        "start": piece.start,
        "end": piece.start + piece.duration,
        "word": pa.array(piece.queries, pa.string()).take(pa.array(piece.query)),
        "subtype": pa.repeat("lex", len(piece)),
    }
    return pa.table(columns, schema=WORDS)
