"""Rows that compiled scanners read: pieces of a run in the making, and blocks of ordinary lines.

The scanner of NIST's XML adds many rows to a piece; other rows are added one at a time. The arrays grow. The lines of a
table in text are ordinary unless they have faults (`kernels.table`); a block of ordinary lines becomes rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from swsdask.formats.runs.arrow import Names, TableRows
from swsdask.formats.text import Lines, Window
from swsdask.formats.values import Detection, FormatError, joined_names
from swsdask.kernels import table
from swsdask.kernels.text import NO_ROOM, PADDING, encode_text, fill_slots
from swsdask.kernels.xml import (
    DECIDED,
    DOCUMENTS,
    INSIDE,
    LINE,
    LISTS,
    POSITION,
    QUERY,
    ROOM,
    ROUNDED,
    ROWS,
    STATE_SIZE,
    UNREAD,
    scan_rows,
)
from swsdask.model.errors import Problems
from swsdask.model.schemas import RunHeader, RunPiece
from swsdask.model.units import document_fault, document_id, id_fault

Number = TypeVar("Number", bound=np.generic)


def longer(column: NDArray[Number], size: int) -> NDArray[Number]:
    """Return a copy of a column with room for `size` rows."""
    grown = np.empty(size, column.dtype)
    grown[: len(column)] = column
    return grown


class Columns(NamedTuple):
    """The columns of a `RunPiece`, with room for more rows than are filled."""

    query: NDArray[np.int32]
    document: NDArray[np.int32]
    channel: NDArray[np.int8]
    start: NDArray[np.int32]
    duration: NDArray[np.int32]
    score: NDArray[np.float64]
    decision: NDArray[np.int8]

    @classmethod
    def empty(cls, size: int) -> Self:
        """Room for `size` rows."""
        return cls(
            np.empty(size, np.int32),
            np.empty(size, np.int32),
            np.empty(size, np.int8),
            np.empty(size, np.int32),
            np.empty(size, np.int32),
            np.empty(size, np.float64),
            np.empty(size, np.int8),
        )

    def longer(self, size: int) -> Columns:
        """Return a copy with room for `size` rows."""
        return Columns._make(longer(column, size) for column in self)


class Texts:
    """The distinct texts of a column, with the first line of each (see `kernels.text`)."""

    def __init__(self) -> None:
        self.slots = np.full(4096, -1, np.int32)
        self.hashes = np.empty(2048, np.uint64)
        self.ends = np.empty(2048, np.int64)
        self.arena = np.empty(1 << 16, np.uint8)
        self.lines = np.empty(2048, np.int64)

    def clear(self) -> None:
        """Forget all of them."""
        self.slots[:] = -1

    def truncate(self, entries: int) -> None:
        """Forget all but the first `entries`."""
        fill_slots(entries, self.hashes, self.slots)

    @property
    def dictionary(self) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
        """The arrays that kernels take."""
        return self.slots, self.hashes, self.ends, self.arena

    def make_room(self, entries: int) -> None:
        """Make room for more texts than the present `entries`."""
        self.arena = longer(self.arena, 2 * len(self.arena))
        if entries == len(self.hashes):
            self.hashes = longer(self.hashes, 2 * entries)
            self.ends = longer(self.ends, 2 * entries)
            self.lines = longer(self.lines, 2 * entries)
            self.slots = np.empty(4 * entries, np.int32)
            fill_slots(entries, self.hashes, self.slots)

    def encode(self, name: str, line: int, entries: int) -> int:
        """Return the code of a text among `entries`; a new one, whose first line is `line`, gets the code `entries`."""
        text = np.frombuffer(name.encode() + bytes(PADDING), np.uint8)
        while True:
            code = encode_text(text, entries, *self.dictionary)
            if code != NO_ROOM:
                break
            self.make_room(entries)
        if code == entries:
            self.lines[code] = line
        return code

    def names(self, entries: int, first: int = 0) -> list[tuple[str, int]]:
        """Return the texts in order of their codes from `first` on, each with its line."""
        begin = int(self.ends[first - 1]) if first else 0
        ends = (self.ends[first:entries] - begin).tolist()
        data = self.arena[begin : begin + (ends[-1] if ends else 0)].tobytes()
        begins = [0, *ends][: entries - first]
        lines = self.lines[first:entries].tolist()
        return [(data[begin:end].decode(), line) for begin, end, line in zip(begins, ends, lines, strict=True)]


_FEW = 1 << 14
_DRAINED = 4096
"""The numbers of lists, and of scores to read, that are taken from the scanner at a time."""


class PieceBuilder:
    """Gathers the rows of one file into pieces of `rows_per_piece` rows.

    A piece must be taken as soon as it is full. Its problems are kept until then, and reported in the order of their
    lines. `state` is the scanner's (see `kernels.xml`).
    """

    def __init__(self, header: RunHeader, file: str, rows_per_piece: int, problems: Problems) -> None:
        self._header = header
        self._file = file
        self._rows_per_piece = rows_per_piece
        self._problems = problems
        self._found = Problems(problems.limit)
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._state[DECIDED] = -1
        self._lists = np.empty((_DRAINED, 7), np.int64)
        self._unread = np.empty((_DRAINED, 3), np.int64)
        self._files = Texts()
        self._taken = 0
        self._begin(None, _FEW)

    def _begin(self, query: tuple[str, int] | None, capacity: int) -> None:
        """An empty piece; `query` is the list that stays open, and its line."""
        self._columns = Columns.empty(min(capacity, self._rows_per_piece))
        self._files.clear()
        self._queries = [query[0]] if query else []
        self._query_lines = [query[1]] if query else []
        self._continued = len(self._queries)
        self._attributes: dict[str, str] = {}
        self._state[QUERY] = len(self._queries) - 1
        self._state[[ROWS, DOCUMENTS, ROUNDED]] = 0

    @property
    def rows(self) -> int:
        """Rows of the piece so far."""
        return int(self._state[ROWS])

    @property
    def is_full(self) -> bool:
        """Whether the piece must be taken before another row comes."""
        return self.rows == self._rows_per_piece

    @property
    def inside(self) -> bool:
        """Whether a list is open."""
        return bool(self._state[INSIDE])

    def scan(self, window: Window, words: NDArray[np.uint8]) -> int:
        """Run the scanner in `window` until it stops. Returns the reason: `ROOM` only if the piece is full."""
        text = np.frombuffer(window.data, np.uint8)
        files = self._files
        self._state[POSITION] = window.position
        self._state[LINE] = window.line
        while True:
            self._state[[LISTS, UNREAD]] = 0
            why = scan_rows(
                text,
                window.end,
                words,
                self._state,
                *self._columns,
                *files.dictionary,
                files.lines,
                self._lists,
                self._unread,
            )
            self._read_scores(window.data)
            self._note_lists(window.data)
            if why != ROOM or self.is_full:
                break
            self._make_room()
        window.position = int(self._state[POSITION])
        window.line = int(self._state[LINE])
        return why

    def _read_scores(self, data: bytes) -> None:
        for row, begin, end in self._unread[: self._state[UNREAD]].tolist():
            self._columns.score[row] = float(data[begin:end])

    def _note_lists(self, data: bytes) -> None:
        for *spans, line in self._lists[: self._state[LISTS]].tolist():
            query, search_time, oov_count = (
                data[begin:end].decode() if begin >= 0 else None
                for begin, end in zip(spans[::2], spans[1::2], strict=True)
            )
            self._note_list(query or "", line, search_time, oov_count)

    def _note_list(self, query: str, line: int, search_time: str | None, oov_count: str | None) -> None:
        self._queries.append(query)
        self._query_lines.append(line)
        if search_time is not None:
            self._attributes[f"search_time.{query}"] = search_time
        if oov_count is not None:
            self._attributes[f"oov_count.{query}"] = oov_count

    def _make_room(self) -> None:
        if self.rows == len(self._columns.query):
            self._columns = self._columns.longer(min(4 * self.rows, self._rows_per_piece))
        else:
            self._files.make_room(int(self._state[DOCUMENTS]))

    def open_list(self, query: str, line: int, search_time: str | None, oov_count: str | None) -> None:
        """Begin the list of a query."""
        self._note_list(query, line, search_time, oov_count)
        self._state[QUERY] += 1
        self._state[INSIDE] = 1

    def close_list(self) -> None:
        """End the list of a query."""
        self._state[INSIDE] = 0

    def add(self, detection: Detection, line: int) -> None:
        """Add one row. It is a problem if only this row or only the rows before have a decision."""
        has_decision = int(detection.decision is not None)
        if self._state[DECIDED] not in (-1, has_decision):
            expected, found = "no decision, as in", "a row with a decision"
            if self._state[DECIDED]:
                expected, found = "a decision, as in", "a row without one"
            remedy = "Give all rows of a system a decision, or none."
            self.fault(line, FormatError(f"{expected} the rows before", found, remedy))
            return
        row = self.rows
        if row == len(self._columns.query):
            self._make_room()
        entries = int(self._state[DOCUMENTS])
        code = self._files.encode(detection.document, line, entries)
        columns = self._columns
        columns.query[row] = self._state[QUERY]
        columns.document[row] = code
        columns.channel[row] = detection.channel
        columns.start[row] = detection.start
        columns.duration[row] = detection.duration
        columns.score[row] = detection.score
        columns.decision[row] = -1 if detection.decision is None else detection.decision
        self._state[DOCUMENTS] = max(entries, code + 1)
        self._state[ROWS] += 1
        self._state[ROUNDED] += detection.rounded
        self._state[DECIDED] = has_decision

    def fault(self, line: int, fault: FormatError) -> None:
        """Note a fault of a line."""
        self._found.add(self._file, line, fault.expected, fault.found, fault.remedy)

    def take(self) -> RunPiece:
        """Return the piece so far, and begin another."""
        rows = self.rows
        listed = self._queries[self._continued :]
        for name, line in zip(listed, self._query_lines[self._continued :], strict=True):
            wrong = id_fault(name)
            if wrong:
                self.fault(line, FormatError("a query id", wrong, "Use the ids of the query list."))
        queries, query_lines, query_codes = _distinct(self._queries, self._query_lines)
        files = self._files.names(int(self._state[DOCUMENTS]))
        for name, line in files:
            wrong = document_fault(name)
            if wrong:
                self.fault(line, FormatError("a file that names a document", wrong, "Use the file names of the ECF."))
        documents, document_lines, document_codes = _distinct(
            [document_id(name) for name, _ in files], [line for _, line in files]
        )
        joined = joined_names(name for name, _ in files) if len(documents) < len(files) else {}
        columns = self._columns
        piece = RunPiece(
            header=replace(self._header, attributes={**self._header.attributes, **self._attributes, **joined}),
            file=self._file,
            queries=queries,
            query_lines=query_lines,
            documents=documents,
            document_lines=document_lines,
            query=query_codes[columns.query[:rows]],
            document=document_codes[columns.document[:rows]],
            channel=columns.channel[:rows],
            start=columns.start[:rows],
            duration=columns.duration[:rows],
            score=columns.score[:rows],
            decision=columns.decision[:rows],
            rounded=int(self._state[ROUNDED]),
            listed=tuple(listed),
        )
        self._give_problems()
        self._taken += 1
        stays_open = (self._queries[-1], self._query_lines[-1]) if self.inside else None
        self._begin(stays_open, max(rows, _FEW))
        return piece

    def finish(self) -> Iterator[RunPiece]:
        """Yield the last piece, if it holds anything or is the only one; the last problems in any case."""
        if self.rows or len(self._queries) > self._continued or not self._taken:
            yield self.take()
        self._give_problems()

    def _give_problems(self) -> None:
        for problem in sorted(self._found, key=lambda problem: (problem.line or 0, problem.expected, problem.found)):
            self._problems.add(problem.file, problem.line, problem.expected, problem.found, problem.remedy)
        self._problems.total += self._found.total - sum(1 for _ in self._found)
        self._found = Problems(self._problems.limit)


def _distinct(names: list[str], lines: list[int]) -> tuple[tuple[str, ...], tuple[int, ...], NDArray[np.int32]]:
    """Return the distinct names, the first line of each, and the index of every name among them."""
    first_lines: dict[str, int] = {}
    numbers: dict[str, int] = {}
    codes = np.empty(len(names), np.int32)
    for place, (name, line) in enumerate(zip(names, lines, strict=True)):
        codes[place] = numbers.setdefault(name, len(numbers))
        first_lines.setdefault(name, line)
    return tuple(first_lines), tuple(first_lines.values()), codes


_VALUES = {
    "system": table.SYSTEM,
    "query": table.QUERY,
    "document": table.DOCUMENT,
    "channel": table.CHANNEL,
    "start": table.START,
    "duration": table.DURATION,
    "end": table.END,
    "score": table.SCORE,
    "decision": table.DECISION,
}
_IDS = (table.SYSTEM, table.QUERY, table.DOCUMENT)
_NEWLINE = ord("\n")


class OrdinaryLines:
    """Reads lines of `size` values; `columns` has the indices of the known values."""

    def __init__(self, delimiter: str, size: int, columns: Mapping[str, int]) -> None:
        self._delimiter = ord(delimiter)
        self._values = np.full(size, table.OTHER, np.int64)
        for name, place in columns.items():
            self._values[place] = _VALUES[name]
        self._texts = Texts()
        self._state = np.zeros(table.STATE_SIZE, np.int64)
        self._ids: list[str] = []

    def read(self, block: Lines) -> TableRows | None:
        """Return the rows of a block, one for each line; None if any of them is not ordinary (`kernels.table`).

        The `Names` in the rows list the ids of all blocks so far.
        """
        data = block.data.replace(b"\r\n", b"\n") if b"\r" in block.data else block.data
        if b'"' in data or b"\r" in data:
            return None
        text = np.frombuffer(data + bytes(PADDING), np.uint8)
        rows = int(np.count_nonzero(text == _NEWLINE))
        texts, state = self._texts, self._state
        state[[table.POSITION, table.ROWS]] = 0
        known = int(state[table.ENTRIES])
        codes = np.empty((len(_IDS), rows), np.int32)
        found = TableRows(
            system=None,
            query=Names(codes[table.QUERY], []),
            document=Names(codes[table.DOCUMENT], []),
            channel=np.ones(rows, np.int8),
            start=np.zeros(rows, np.int32),
            duration=np.zeros(rows, np.int32),
            score=np.empty(rows, np.float64),
            decision=np.full(rows, -1, np.int8),
            rounded=np.empty(rows, np.int8),
        )
        while True:
            why = table.scan_lines(
                text,
                self._delimiter,
                self._values,
                state,
                codes,
                np.zeros((3, 3), np.int64),
                found.channel,
                found.start,
                found.duration,
                found.score,
                found.decision,
                found.rounded,
                *texts.dictionary,
            )
            if why == table.ODD:  # its block is read elsewhere, and must leave no ids behind
                state[table.ENTRIES] = known
                texts.truncate(known)
                return None
            if why == table.ALL:
                break
            texts.make_room(int(state[table.ENTRIES]))
        self._ids += [name for name, _ in texts.names(int(state[table.ENTRIES]), len(self._ids))]
        system, query, document = (Names(codes[kind], self._ids) for kind in _IDS)
        has_system = table.SYSTEM in self._values
        return found._replace(system=system if has_system else None, query=query, document=document)
