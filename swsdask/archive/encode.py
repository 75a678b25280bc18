"""Encoding of pieces of runs, in the order of their files, into rows with the codes of an archive; tallies and hashes.

The order of the input matters only under `compat = "mediaeval"`, and if `average_precision.ties` is "input" or
`average_precision.duplicates` is "first". Then rows keep their `position`: the number of their source (a file, or a
part of one, in order), then the number of the row among the rows of its system in that source. Positions ascend in the
same order however files are cut into parts. MediaEval's tool refuses a trial that a run has twice, and so does its
mode; otherwise the best detection counts.

The content hash of a run covers the content of its rows and the resources reported beside it, not their format. Every
row is hashed with the ids of its query and document, and the hashes are added modulo 2^128 (as two lanes of 64 bits).
So the hash depends neither on the order of rows nor on how the input was cut, compressed, coded or formatted, and the
hashes of parts add up. All rows count as read, including those with unknown queries and documents. The hash protects
against accidents, not against an adversary.

Where rows have positions, numbers depend on the order of the rows and on the sign of zeros, so both are hashed: the
hashes are the coefficients of a polynomial. Its value for two parts follows from the values of each, so this hash does
not depend on how the input was cut either. The same run has different hashes with and without positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from swsdask.archive.protocols import Run
from swsdask.archive.reference_tables import Excerpts, document_ids, spoken_elsewhere
from swsdask.kernels.rows import sum_of_hashes
from swsdask.model.errors import SHOWN, InputError, Problem, Problems
from swsdask.model.hashes import hash_repr
from swsdask.model.resources import Resources
from swsdask.model.safe_text import without_secrets
from swsdask.model.schemas import WITHOUT_TIMES, RunHeader, RunPiece, RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import UNKNOWN_DOCUMENT, Detections, ScoreRange, finite_scores
from swsdask.model.units import DocumentCodes, document_id, id_hash
from swsdask.model.wording import counted

CONTENT_VERSION = 1
_LANES = 2
_MODULUS = 1 << 64
_AT = 0x9E3779B97F4A7C15
"""The point at which the polynomial of rows in order is evaluated. It is odd, so that no hash of a row is lost."""


class RowSum:
    """The sum of the hashes of some rows; with `positions`, it depends on their order."""

    def __init__(self, rows: int = 0, lanes: tuple[int, ...] = (0,) * _LANES, positions: bool = False) -> None:
        self.rows = rows
        self.lanes = lanes
        self.positions = positions

    @classmethod
    def of(cls, piece: RunPiece) -> Self:
        """Return the sum over a piece."""
        in_order = piece.position is not None
        score = (piece.score if in_order else canonical_scores(piece.score)).view(np.uint64)
        columns = (piece.query, piece.document, piece.channel, piece.start, piece.duration, score, piece.decision)
        lanes = (
            sum_of_hashes(
                np.uint64(0),
                np.uint64(_AT if in_order else 1),
                _id_hashes(piece.queries, 2 * lane),
                _id_hashes(piece.documents, 2 * lane + 1),
                *columns,
            )
            for lane in range(_LANES)
        )
        return cls(len(piece), tuple(map(int, lanes)), in_order)

    def __add__(self, other: RowSum) -> RowSum:
        positions = self.positions or other.positions
        behind = pow(_AT, other.rows, _MODULUS) if positions else 1
        lanes = zip(self.lanes, other.lanes, strict=True)
        sums = tuple((mine * behind + theirs) % _MODULUS for mine, theirs in lanes)
        return RowSum(self.rows + other.rows, sums, positions)

    def digest(self, declared: tuple[float, float] | None, resources: Resources | None = None) -> str:
        """The hash of the rows, the declared score range and the resources of the system, in 32 hexadecimal digits."""
        optional = (*(() if resources is None else (resources.to_json(),)), *(("positions",) if self.positions else ()))
        said = (CONTENT_VERSION, self.rows, self.lanes, declared, *optional)
        return hash_repr(said)


def canonical_scores(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make scores finite (`model.units`), and negative zeros positive."""
    return finite_scores(score) + 0.0


def _id_hashes(ids: tuple[str, ...], seed: int) -> NDArray[np.uint64]:
    return np.array([xxhash.xxh3_64_intdigest(identifier.encode(), seed) for identifier in ids], np.uint64)


def note_claims(claims: Mapping[str, Sequence[RunSource]], problems: Problems) -> None:
    """Add a problem for each system that occurs in two files.

    `claims` are the sources in which rows of a system were found. Parts of one file belong together, and so do files
    that the user gave the same name. Two files that only contain the same name could be two runs, or one run twice.
    """
    for system, sources in sorted(claims.items()):
        files = list(dict.fromkeys(source.file for source in sources))
        if len(files) > 1 and any(source.system is None for source in sources):
            for file in files[1:]:
                found = f"a run of {system!r}, as in {files[0]}"
                remedy = (
                    "Leave one out, or give each as NAME=FILE (in Python {name: file}); the parts of one run in "
                    "Parquet by their folder, as NAME=FOLDER."
                )
                problems.add(file, None, "a run of another system", found, remedy)


_ROW_BITS = 40


@dataclass(frozen=True, eq=False)
class FileOrder:
    """The sources of some runs, in the order of the files, and the codes for their rows.

    `once`: no trial may occur twice.
    """

    sources: Sequence[RunSource]
    codes: Codes
    once: bool

    def read(self, number: int, problems: Problems) -> Iterator[RunPiece]:
        """Yield the pieces of a source, by its number, with the positions of their rows."""
        rows: Counter[str] = Counter()
        for piece in self.sources[number].read(problems):
            system = piece.header.system
            begin = (number << _ROW_BITS) + rows[system]
            rows[system] += len(piece)
            yield replace(piece, position=np.arange(begin, begin + len(piece)))

    def check_once(self, system: str, rows: Detections) -> None:
        """Raise `InputError` for trials (query, document) that occur twice in a system's rows, in canonical order.

        Does nothing unless `once`.
        """
        if not self.once:
            return
        assert rows.document is not None
        assert rows.position is not None
        same = (
            (rows.query[1:] == rows.query[:-1]) & (rows.document[1:] == rows.document[:-1]) & (rows.document[1:] >= 0)
        )
        again = np.flatnonzero(same)
        if not len(again):
            return
        later = np.maximum(rows.position[again], rows.position[again + 1])
        first = np.argsort(later)[:SHOWN]
        problems = (self._problem(system, rows, int(again[i]), int(later[i])) for i in first.tolist())
        raise InputError(*problems, total=len(again))

    def place_of(self, system: str, position: int) -> tuple[str, int | None]:
        """Return the file and, if known, the line of a system's row."""
        source = self.sources[position >> _ROW_BITS]
        return source.file, source.line_of(system, position & ((1 << _ROW_BITS) - 1))

    def _problem(self, system: str, rows: Detections, row: int, position: int) -> Problem:
        assert rows.document is not None
        file, line = self.place_of(system, position)
        query, document = self.codes.query_ids[rows.query[row]], self.codes.document_ids[rows.document[row]]
        return Problem(
            file=file,
            line=line,
            expected="every trial once",
            found=f"query {query} in document {document} again",
            remedy="Keep one of the two, or score without compat=mediaeval: then the best one counts.",
        )


def depends_on_file_order(settings: EvaluationSettings) -> bool:
    """Return whether numbers depend on the order of the rows in the files of a run."""
    ranking = settings.average_precision
    return settings.compat == "mediaeval" or ranking.ties == "input" or ranking.duplicates == "first"


def file_order(sources: Sequence[RunSource], codes: Codes, settings: EvaluationSettings) -> FileOrder | None:
    """Return the file order of some sources if it counts, otherwise None."""
    return FileOrder(sources, codes, settings.compat == "mediaeval") if depends_on_file_order(settings) else None


_UNKNOWN_QUERY = -1
_Key = TypeVar("_Key")


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of ids: small, picklable, equal for every run of an archive."""

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    n_evaluated: int
    """The number of documents in the ECF. They come first; the other documents only have words."""
    excerpts: Excerpts

    @classmethod
    def of(cls, documents: pa.Table, queries: pa.Table, words: pa.Table) -> Self:
        """Return the codes of an evaluation."""
        evaluated = document_ids(documents)
        every = evaluated + spoken_elsewhere(documents, words)
        return cls(tuple(queries["query"].to_pylist()), every, len(evaluated), Excerpts.of(documents))

    @cached_property
    def query(self) -> dict[str, int]:
        """Query id to code."""
        return {identifier: code for code, identifier in enumerate(self.query_ids)}

    @cached_property
    def document(self) -> DocumentCodes:
        """Document id to code."""
        return DocumentCodes(self.document_ids)


@dataclass(frozen=True)
class Sighting:
    """The number of rows in which something occurs, and the place of the first."""

    rows: int
    file: str
    line: int | None


@dataclass(frozen=True)
class Tally:
    """Counts over some pieces of one run. Tallies can be added, with the earlier piece on the left."""

    header: RunHeader
    files: tuple[str, ...]
    read: RowSum = field(default_factory=RowSum)
    rows: int = 0
    outside: int = 0
    rounded: int = 0
    scores: tuple[float, float] = (np.inf, -np.inf)
    decisions: dict[bool, Sighting] = field(default_factory=dict)
    """Rows as read, by whether they have a decision; the kind that occurs first comes first."""
    unknown_documents: dict[str, Sighting] = field(default_factory=dict)
    unknown_queries: dict[str, Sighting] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            header=_join_headers(self.header, other.header),
            files=tuple(dict.fromkeys(self.files + other.files)),
            read=self.read + other.read,
            rows=self.rows + other.rows,
            outside=self.outside + other.outside,
            rounded=self.rounded + other.rounded,
            scores=_hull(self.scores, other.scores),
            decisions=_add_sightings(self.decisions, other.decisions),
            unknown_documents=_add_sightings(self.unknown_documents, other.unknown_documents),
            unknown_queries=_add_sightings(self.unknown_queries, other.unknown_queries),
        )

    @property
    def content(self) -> str:
        """The run's content hash."""
        return self.read.digest(self.header.declared_scores, self.header.resources)

    def run(self) -> Run:
        """Return the run, after all pieces have been added. A run without rows has the score range (0, 0)."""
        return Run(
            system=self.header.system,
            rows=self.rows,
            content=self.content,
            has_decisions=False not in self.decisions,
            scores=ScoreRange(self.header.declared_scores, self.scores if self.rows else (0.0, 0.0)),
            files=tuple(dict.fromkeys(map(without_secrets, self.files))),
            attributes=self.header.attributes,
            resources=self.header.resources,
            unknown_documents={name: seen.rows for name, seen in sorted(self.unknown_documents.items())},
            unknown_queries={name: seen.rows for name, seen in sorted(self.unknown_queries.items())},
            rounded=self.rounded,
            outside=self.outside,
        )

    def note_faults(self, settings: EvaluationSettings, problems: Problems, *, judged: bool = False) -> None:
        """Add a problem if only some rows have decisions, and one for each unknown id if the settings make it an error.

        `judged`: the reference is a collection of judged documents, so a missing document cannot count as outside.
        """
        if len(self.decisions) > 1:
            _note_mixed(self.decisions, problems)
        if settings.unknown_queries == "error":
            remedy = "Correct the id, or set unknown_queries=drop."
            _note(self.unknown_queries, "a query of the list", remedy, problems)
        if settings.unknown_documents == "error":
            remedy = "Correct the id, or set unknown_documents=outside."
            whole = [name for name in self.unknown_documents if document_id(name) != name]
            if whole:
                bare = document_id(whole[0])
                remedy = f"Ids of its documents have no folder and no extension: write {bare} for {whole[0]}."
            if judged:
                remedy = (
                    "Of runs that come in batches, the collection has the judged documents and those of open()'s "
                    "collection: give these runs there too."
                )
            _note(self.unknown_documents, "a document of the reference", remedy, problems)


def encode_piece(piece: RunPiece, codes: Codes) -> tuple[Detections, Tally]:
    """Return the rows of known queries in the archive's codes, with all columns, in the given order, and their tally.

    Documents without excerpts and words get the code -1. Documents without excerpts count as unknown even if they have
    words.
    """
    query_code = _or_missing(map(codes.query.get, piece.queries), _UNKNOWN_QUERY)
    documents = (codes.document.get(name, judged=piece.judged) for name in piece.documents)
    document_code = _or_missing(documents, UNKNOWN_DOCUMENT)
    query = query_code[piece.query]
    rows = Detections(
        query=query,
        score=canonical_scores(piece.score) if piece.position is None else finite_scores(piece.score),
        document=document_code[piece.document],
        channel=piece.channel,
        start=piece.start,
        duration=piece.duration,
        decision=piece.decision,
        position=piece.position,
        unknown_document=_hashes(piece, document_code),
    )
    document = piece.document
    known = query != _UNKNOWN_QUERY
    if not known.all():
        rows, document = rows.take(known), document[known]
    rows = _with_inside(rows, codes, timed=WITHOUT_TIMES not in piece.header.attributes)
    unknown_queries = _sightings(piece, query_code, piece.query, piece.queries, piece.query_lines)
    lines = dict(zip(piece.queries, piece.query_lines, strict=True))
    for name in piece.listed:
        if name not in codes.query:
            unknown_queries.setdefault(name, Sighting(0, piece.file, lines.get(name)))
    assert rows.inside is not None
    return rows, Tally(
        header=piece.header,
        files=(piece.file,),
        read=RowSum.of(piece),
        rows=len(rows),
        outside=int(np.count_nonzero(rows.inside == 0)),
        rounded=piece.rounded,
        scores=(float(rows.score.min()), float(rows.score.max())) if len(rows) else (np.inf, -np.inf),
        decisions=_decisions(piece),
        unknown_documents=_sightings(
            piece,
            np.where(document_code < codes.n_evaluated, document_code, UNKNOWN_DOCUMENT),
            document,
            piece.documents,
            piece.document_lines,
        ),
        unknown_queries=unknown_queries,
    )


def _with_inside(rows: Detections, codes: Codes, *, timed: bool) -> Detections:
    assert rows.document is not None
    if not timed:
        evaluated = (rows.document >= 0) & (rows.document < codes.n_evaluated)
        return replace(rows, inside=evaluated.astype(np.int8))
    assert rows.channel is not None
    assert rows.start is not None
    assert rows.duration is not None
    end = rows.start.astype(np.int64) + rows.duration
    return replace(rows, inside=codes.excerpts.inside(rows.document, rows.channel, rows.start, end))


def _or_missing(codes: Iterable[int | None], missing: int) -> NDArray[np.int32]:
    return np.array([missing if code is None else code for code in codes], np.int32)


def _hashes(piece: RunPiece, code: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return the hashes of the ids of unknown documents, 0 for the others; None if all are known."""
    if (code >= 0).all():
        return None
    pairs = zip(piece.documents, code.tolist(), strict=True)
    return np.array([id_hash(name) if each < 0 else 0 for name, each in pairs], np.int64)[piece.document]


def _sightings(
    piece: RunPiece,
    code: NDArray[np.int32],
    column: NDArray[np.int32],
    ids: Sequence[str],
    lines: Sequence[int | None],
) -> dict[str, Sighting]:
    """Return the unknown ids (code < 0) in a column."""
    if not (code < 0).any():
        return {}
    rows = np.bincount(column, minlength=len(ids))
    unknown = np.flatnonzero((code < 0) & (rows > 0))
    return {ids[i]: Sighting(int(rows[i]), piece.file, lines[i]) for i in unknown.tolist()}


def _decisions(piece: RunPiece) -> dict[bool, Sighting]:
    decided = piece.decision >= 0
    found = {}
    for row in sorted({0, int(np.argmax(decided != decided[0]))}) if len(piece) else ():
        rows = int(np.count_nonzero(decided == decided[row]))
        line = None if row else piece.document_lines[piece.document[0]]
        found[bool(decided[row])] = Sighting(rows, piece.file, line)
    return found


def _add_sightings(earlier: dict[_Key, Sighting], later: dict[_Key, Sighting]) -> dict[_Key, Sighting]:
    added = dict(earlier)
    for name, seen in later.items():
        first = earlier.get(name)
        added[name] = seen if first is None else replace(first, rows=first.rows + seen.rows)
    return added


def _join_headers(earlier: RunHeader, later: RunHeader) -> RunHeader:
    """Join the headers of two parts of a run: the hull of declared ranges; for other attributes the earlier wins."""
    ranges = [header.declared_scores for header in (earlier, later) if header.declared_scores is not None]
    return RunHeader(
        system=earlier.system,
        declared_scores=_hull(ranges[0], ranges[-1]) if ranges else None,
        attributes={**later.attributes, **earlier.attributes},
        resources=earlier.resources or later.resources,
    )


def _hull(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def _note_mixed(decisions: dict[bool, Sighting], problems: Problems) -> None:
    (decided, first), (_, other) = decisions.items()
    where = first.file if first.line is None else f"{first.file}:{first.line}"
    expected, found = ("a", "a row without one") if decided else ("no", "a row with a decision")
    remedy = "Give all rows of a system a decision, or none."
    problems.add(other.file, other.line, f"{expected} decision, as in {where}", found, remedy)


def _note(unknown: dict[str, Sighting], expected: str, remedy: str, problems: Problems) -> None:
    for name, seen in sorted(unknown.items(), key=lambda item: (item[1].file, item[1].line or 0, item[0])):
        found = f"{name!r} in {counted(seen.rows, 'rows')}" if seen.rows else f"{name!r}, listed without detections"
        problems.add(seen.file, seen.line, expected, found, remedy)
