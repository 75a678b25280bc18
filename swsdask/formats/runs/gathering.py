"""Rows of tables gathered into pieces of runs: rows of several systems are separated, ids numbered, problems added.

The pieces of a run are joined at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.formats.runs.arrow import Names, RowFaults, TableRows, read_rows
from swsdask.formats.values import (
    FormatError,
    joined_names,
)
from swsdask.model.errors import Problems
from swsdask.model.schemas import RunHeader, RunPiece
from swsdask.model.units import document_fault, document_id, id_fault, name_fault


class Batch(NamedTuple):
    """Some rows of a table: Arrow columns as `read_rows` takes them, or `rows` already read, and the line of each row.

    If the table has no lines, rows are counted from `first_row`. `unread` has the lines that are no rows, with their
    faults; `faulty` has rows, counted from 0, with a fault that is already known. `file` is that of a table's part.
    """

    columns: Mapping[str, pa.Array]
    lines: NDArray[np.int64] | None
    first_row: int = 1
    unread: tuple[tuple[int, FormatError], ...] = ()
    faulty: tuple[tuple[int, FormatError], ...] = ()
    rows: TableRows | None = None
    file: str | None = None


_NEW = -1
"""The code of a text that is new."""


_REMEDIES = {
    "system": "Use a plain name, or name the system of the file: NAME=FILE.",
    "query": "Use the ids of the reference.",
    "document": "Use the ids of the reference.",
}
"""By the name of a column of ids: what to do about a text that is no id."""


class _Ids:
    """The distinct ids of a column, in order of first occurrence. `canonical` gives the id of a text in the column."""

    def __init__(self, name: str, fault_of: Callable[[str], str | None], canonical: Callable[[str], str]) -> None:
        self._name = name
        self._fault_of = fault_of
        self._canonical = canonical
        self._codes: dict[str, int] = {}
        self._code_of_text: dict[str, int] = {}
        self._ids: list[str] = []
        self._known = np.zeros(1, np.int32)

    def take_in(self, names: Names, faults: RowFaults) -> NDArray[np.int32]:
        """Return the codes of a column; the first row of every text that is no id becomes faulty.

        Most batches have only known texts; then the order of first occurrence need not be found.
        """
        known = self._looked_up(names.ids)
        codes = known[names.codes]
        if codes.min(initial=0) == _NEW:
            for number, row in zip(*(each.tolist() for each in _first_rows(names.codes)), strict=True):
                if number >= 0 and known[number] == _NEW:
                    known[number] = self._new_code(names.ids[number], row, faults)
            codes = known[names.codes]
        return codes

    def _looked_up(self, ids: list[str]) -> NDArray[np.int32]:
        """Return the code of each id, `_NEW` if it has none, and after them 0, for rows without an id."""
        begin = len(self._known) - 1 if ids is self._ids else 0
        more = [self._code_of_text.get(text, _NEW) for text in ids[begin:]]
        self._ids, self._known = ids, np.concatenate([self._known[:begin], np.array([*more, 0], np.int32)])
        return self._known

    def _new_code(self, text: str, row: int, faults: RowFaults) -> int:
        wrong = self._fault_of(text)
        if wrong:
            faults.note(row, FormatError(f"a {self._name}", wrong, _REMEDIES[self._name]))
        code = self._code_of_text[text] = self._codes.setdefault(self._canonical(text), len(self._codes))
        return code

    def all(self) -> list[str]:
        """Return the id of every code."""
        return list(self._codes)

    def joined(self) -> dict[str, str]:
        """Return the metadata that names texts of one id, see `joined_names`."""
        return joined_names(self._code_of_text) if len(self._codes) < len(self._code_of_text) else {}


class _Gathered(NamedTuple):
    """Good rows, in order, with the codes of the gathering. `line` is 0 if the table has no lines."""

    system: NDArray[np.int32]
    query: NDArray[np.int32]
    document: NDArray[np.int32]
    channel: NDArray[np.int8]
    start: NDArray[np.int32]
    duration: NDArray[np.int32]
    score: NDArray[np.float64]
    decision: NDArray[np.int8]
    rounded: NDArray[np.int8]
    line: NDArray[np.int64]

    @classmethod
    def empty(cls) -> _Gathered:
        """No rows."""
        ids = np.zeros(0, np.int32)
        small = np.zeros(0, np.int8)
        return cls(ids, ids, ids, small, ids, ids, np.zeros(0), small, small, np.zeros(0, np.int64))

    def take(self, rows: NDArray[np.bool_]) -> _Gathered:
        """Select rows."""
        return _Gathered._make(column[rows] for column in self)


class Gathering:
    """Gathers rows of one table into pieces of one system each, from about `rows_per_piece` rows at a time.

    `header` is that of rows without a system. If the user has `named` the run, all rows belong to it.
    Documents are audio files, whose ids lose a directory and an ending; ids of `judged` documents are kept whole.
    """

    def __init__(
        self,
        header: RunHeader,
        named: bool,
        file: str,
        problems: Problems,
        rows_per_piece: int,
        *,
        judged: bool = False,
    ) -> None:
        self._header = header
        self._named = named
        self._file = file
        self._problems = problems
        self._rows_per_piece = rows_per_piece
        self._judged = judged
        self._systems = _Ids("system", id_fault, str)
        self._decided: dict[int, bool] = {}
        self._begin()

    def _begin(self) -> None:
        self._rows = 0
        self._parts: list[_Gathered] = []
        self._queries = _Ids("query", id_fault, str)
        self._documents = _Ids("document", *((name_fault, str) if self._judged else (document_fault, document_id)))

    def _add(self, batch: Batch) -> None:
        """Add the good rows of a batch, and the problems of the others."""
        faults = RowFaults(len(batch.columns["query"] if batch.rows is None else batch.rows.score))
        for row, fault in batch.faulty:
            faults.note(row, fault)
        rows = read_rows(batch.columns, faults) if batch.rows is None else batch.rows
        system = np.zeros(len(faults.good), np.int32)
        if rows.system is not None:
            system = self._systems.take_in(rows.system, faults)
            others = np.flatnonzero(system > 0)
            if self._named and len(others):
                row = int(others[0])
                found = f"a row of {self._systems.all()[system[row]]!r} too"
                remedy = "Do not name the run: the table names its systems."
                faults.note(row, FormatError("a table of one system", found, remedy))
        query = self._queries.take_in(rows.query, faults)
        document = self._documents.take_in(rows.document, faults)
        self._note_undecided(system, rows.decision >= 0, faults)
        self._give(faults, batch)
        line = np.zeros(len(system), np.int64) if batch.lines is None else batch.lines
        values = (rows.channel, rows.start, rows.duration, rows.score, rows.decision, rows.rounded)
        part = _Gathered(system, query, document, *values, line)
        part = part if faults.good.all() else part.take(faults.good)
        self._parts.append(part)
        self._rows += len(part.query)

    def _give(self, faults: RowFaults, batch: Batch) -> None:
        """Add the problems of a batch, in the order of its rows."""
        lines = batch.lines if batch.lines is not None else np.arange(len(faults.good)) + batch.first_row
        found = [*batch.unread, *((int(lines[row]), fault) for row, fault in faults)]
        for line, fault in sorted(found, key=lambda pair: pair[0]):
            place = "" if batch.lines is not None else f" in row {line}"
            line_number = line if batch.lines is not None else None
            self._problems.add(batch.file or self._file, line_number, fault.expected, fault.found + place, fault.remedy)

    def _note_undecided(self, system: NDArray[np.int32], decided: NDArray[np.bool_], faults: RowFaults) -> None:
        """Check that all rows of a system have decisions, or none."""
        several = len(self._systems.all()) > 1
        for code in np.unique(system[faults.good]).tolist() if several else [0]:
            rows = (system == code) & faults.good if several else faults.good
            usual = self._decided.setdefault(code, bool(decided[rows.argmax()])) if rows.any() else False
            expected, found = ("a", "a row without one") if usual else ("no", "a row with a decision")
            for row in np.flatnonzero(rows & (decided != usual)).tolist():
                remedy = "Give all rows of a system a decision, or none."
                faults.note(row, FormatError(f"{expected} decision, as in the rows before", found, remedy))

    def pieces(self, batches: Iterable[Batch]) -> Iterator[RunPiece]:
        """Yield the pieces of all batches of a table; an empty one if there are no rows.

        Adds the problems of the rows.
        """
        taken = False
        for batch in batches:
            self._add(batch)
            if self._rows >= self._rows_per_piece:
                yield from self._take()
                taken = True
        if self._rows:
            yield from self._take()
        elif not taken:
            yield self._piece(self._header, _Gathered.empty())

    def _take(self) -> Iterator[RunPiece]:
        """Return the gathered rows, as one piece for each system, in the order of arrival."""
        rows = _Gathered._make(np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        systems = self._systems.all() if not self._named else []
        attributes = {**self._header.attributes, **self._documents.joined()}
        for code in _first_rows(rows.system)[0].tolist():
            system = systems[code] if systems else self._header.system
            header = replace(self._header, system=system, attributes=attributes)
            yield self._piece(header, rows.take(rows.system == code) if len(systems) > 1 else rows)
        self._begin()

    def _piece(self, header: RunHeader, rows: _Gathered) -> RunPiece:
        query, queries, query_lines = _compact(rows.query, self._queries.all(), rows.line)
        document, documents, document_lines = _compact(rows.document, self._documents.all(), rows.line)
        return RunPiece(
            header=header,
            file=self._file,
            queries=queries,
            query_lines=query_lines,
            documents=documents,
            document_lines=document_lines,
            query=query,
            document=document,
            channel=rows.channel,
            start=rows.start,
            duration=rows.duration,
            score=rows.score,
            decision=rows.decision,
            rounded=int(rows.rounded.sum()),
            listed=queries,
            judged=self._judged,
        )


def _first_rows(codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct codes (-1 and higher), in order of first occurrence, and the first row of each."""
    rows = len(codes)
    begins = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    begins = np.concatenate(([0], begins))[::-1] if rows else begins
    first = np.full(int(codes.max(initial=-1)) + 2, rows)
    first[codes[begins] + 1] = begins
    used = np.flatnonzero(first < rows)
    used = used[np.argsort(first[used], kind="stable")]
    return used - 1, first[used]


def _compact(
    codes: NDArray[np.int32], ids: list[str], lines: NDArray[np.int64]
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[int | None, ...]]:
    """Codes that number only the ids that occur, these ids, and the first line of each (None: line 0)."""
    used, first = _first_rows(codes)
    compact = np.arange(len(used), dtype=np.int32)
    if not np.array_equal(used, compact):
        code_of = np.zeros(len(ids), np.int32)
        code_of[used] = compact
        codes = code_of[codes]
    first_lines = (line or None for line in lines[first].tolist())
    return codes, tuple(ids[code] for code in used.tolist()), tuple(first_lines)


def join_pieces(pieces: Iterable[RunPiece]) -> RunPiece:
    """Join all pieces of a run, at least one. Every id is in its dictionary once, in order of first occurrence.

    Raises `FormatError` for pieces of several systems.
    """
    parts = list(pieces)
    systems = list(dict.fromkeys(piece.header.system for piece in parts))
    if len(systems) > 1:
        raise FormatError("rows of one system", f"rows of {systems[0]!r} and {systems[1]!r}", "Write them one by one.")
    attributes = {name: value for piece in parts for name, value in piece.header.attributes.items()}
    query, queries, query_lines = _join_columns([(piece.query, piece.queries, piece.query_lines) for piece in parts])
    document, documents, document_lines = _join_columns(
        [(piece.document, piece.documents, piece.document_lines) for piece in parts]
    )
    return RunPiece(
        header=replace(parts[0].header, attributes=attributes),
        file=parts[0].file,
        queries=queries,
        query_lines=query_lines,
        documents=documents,
        document_lines=document_lines,
        query=query,
        document=document,
        channel=np.concatenate([piece.channel for piece in parts]),
        start=np.concatenate([piece.start for piece in parts]),
        duration=np.concatenate([piece.duration for piece in parts]),
        score=np.concatenate([piece.score for piece in parts]),
        decision=np.concatenate([piece.decision for piece in parts]),
        rounded=sum(piece.rounded for piece in parts),
        listed=tuple(dict.fromkeys(query for piece in parts for query in piece.listed)),
    )


def _join_columns(
    columns: Sequence[tuple[NDArray[np.int32], tuple[str, ...], tuple[int | None, ...]]],
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[int | None, ...]]:
    """Columns of codes with dictionaries of their own as one column with one dictionary, and its lines."""
    codes: dict[str, int] = {}
    lines: dict[str, int | None] = {}
    joined = []
    for column, names, first_lines in columns:
        recode = np.array([codes.setdefault(name, len(codes)) for name in names], np.int32)
        joined.append(recode[column])
        lines = {**dict(zip(reversed(names), reversed(first_lines), strict=True)), **lines}
    return np.concatenate(joined), tuple(codes), tuple(lines[name] for name in codes)
