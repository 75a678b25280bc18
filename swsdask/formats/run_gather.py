"""Rows of a table, which may be of several systems, gathered into pieces of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.errors import Problems
from swsdask.formats.run_arrow import Names, RowFaults, read_rows
from swsdask.formats.run_values import FormatError
from swsdask.model.ids import document_fault, document_id, id_fault, name_fault
from swsdask.model.runs import RunHeader, RunPiece


class Batch(NamedTuple):
    """Some rows of a table: Arrow columns as `run_arrow.read_rows` wants them, and the line of each row.

    Where the table has no lines, rows are counted from `first_row`. `unread` are the lines that are no rows, and why.
    """

    columns: Mapping[str, pa.Array]
    lines: NDArray[np.int64] | None
    first_row: int = 1
    unread: tuple[tuple[int, FormatError], ...] = ()


class _Ids:
    """The distinct ids of a column, in the order they came. `canonical` is the id that a text in the column names."""

    def __init__(self, name: str, fault_of: Callable[[str], str | None], canonical: Callable[[str], str]) -> None:
        self._name = name
        self._fault_of = fault_of
        self._canonical = canonical
        self._codes: dict[str, int] = {}
        self._code_of_text: dict[str, int] = {}

    def take_in(self, names: Names, faults: RowFaults) -> NDArray[np.int32]:
        """The codes of a column; the first row of every text that is no id becomes faulty."""
        code_of = np.zeros(len(names.ids) + 1, np.int32)
        numbers, first_rows = _first_rows(names.codes)
        for number, row in zip(numbers.tolist(), first_rows.tolist(), strict=True):
            if number >= 0:
                code_of[number] = self._code(names.ids[number], row, faults)
        return code_of[names.codes]

    def _code(self, text: str, row: int, faults: RowFaults) -> int:
        code = self._code_of_text.get(text)
        if code is None:
            wrong = self._fault_of(text)
            if wrong:
                faults.note(row, FormatError(f"a {self._name}", wrong, "Use the ids of the reference."))
            code = self._codes.setdefault(self._canonical(text), len(self._codes))
            self._code_of_text[text] = code
        return code

    def all(self) -> list[str]:
        """The id of every code."""
        return list(self._codes)


class _Gathered(NamedTuple):
    """Good rows, in order, with codes of the gathering's own. `line` is 0 where the table has no lines."""

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
        """Some of the rows."""
        return _Gathered._make(column[rows] for column in self)


class Gathering:
    """Gathers rows of one table into pieces of one system each, from about `rows_per_piece` rows at a time.

    `header` is that of rows whose system the table does not tell. If the user has `named` the run, all are its rows.
    Documents are audio files, whose ids lose a directory and an ending, or, of `judged` documents, whole ids.
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
        faults = RowFaults(len(batch.columns["query"]))
        rows = read_rows(batch.columns, faults)
        system = np.zeros(len(faults.good), np.int32)
        if rows.system is not None:
            system = self._systems.take_in(rows.system, faults)
            if self._named and len(self._systems.all()) > 1:
                found = f"a row of {self._systems.all()[1]!r} too"
                remedy = "Give no name: the table names its systems."
                faults.note(int(np.flatnonzero(system == 1)[0]), FormatError("a table of one system", found, remedy))
        query = self._queries.take_in(rows.query, faults)
        document = self._documents.take_in(rows.document, faults)
        self._note_undecided(system, rows.decision >= 0, faults)
        self._give(faults, batch)
        line = np.zeros(len(system), np.int64) if batch.lines is None else batch.lines
        values = (rows.channel, rows.start, rows.duration, rows.score, rows.decision, rows.rounded)
        part = _Gathered(system, query, document, *values, line).take(faults.good)
        self._parts.append(part)
        self._rows += len(part.query)

    def _give(self, faults: RowFaults, batch: Batch) -> None:
        """Add the problems of a batch, in the order of its rows."""
        lines = batch.lines if batch.lines is not None else np.arange(len(faults.good)) + batch.first_row
        found = [*batch.unread, *((int(lines[row]), fault) for row, fault in faults)]
        for line, fault in sorted(found, key=lambda pair: pair[0]):
            place = "" if batch.lines is not None else f" in row {line}"
            told = line if batch.lines is not None else None
            self._problems.add(self._file, told, fault.expected, fault.found + place, fault.remedy)

    def _note_undecided(self, system: NDArray[np.int32], decided: NDArray[np.bool_], faults: RowFaults) -> None:
        """All rows of a system have decisions, or none."""
        for code in np.unique(system[faults.good]).tolist():
            rows = np.flatnonzero((system == code) & faults.good)
            usual = self._decided.setdefault(code, bool(decided[rows[0]]))
            expected, found = ("a", "a row without one") if usual else ("no", "a row with a decision")
            for row in rows[decided[rows] != usual].tolist():
                remedy = "Give all rows of a system a decision, or none."
                faults.note(row, FormatError(f"{expected} decision, as in the rows before", found, remedy))

    def pieces(self, batches: Iterable[Batch]) -> Iterator[RunPiece]:
        """The pieces of all batches of a table; one without rows if there are none. Adds the problems of the rows."""
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
        """What was gathered, as one piece for each system, in the order they came."""
        rows = _Gathered._make(np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        systems = self._systems.all() if not self._named else []
        for code in _first_rows(rows.system)[0].tolist():
            header = replace(self._header, system=systems[code]) if systems else self._header
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
    """The codes from -1 up that occur, in the order they come, and the row where each comes first."""
    rows = len(codes)
    first = np.full(int(codes.max(initial=-1)) + 2, rows)
    first[codes[::-1] + 1] = np.arange(rows)[::-1]
    used = np.flatnonzero(first < rows)
    used = used[np.argsort(first[used], kind="stable")]
    return used - 1, first[used]


def _compact(
    codes: NDArray[np.int32], ids: list[str], lines: NDArray[np.int64]
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[int | None, ...]]:
    """Codes of only the ids that occur, these ids, and the line where each comes first (None: line 0)."""
    used, first = _first_rows(codes)
    code_of = np.zeros(len(ids), np.int32)
    code_of[used] = np.arange(len(used), dtype=np.int32)
    first_lines = (line or None for line in lines[first].tolist())
    return code_of[codes], tuple(ids[code] for code in used.tolist()), tuple(first_lines)
