"""Runs as tables in text, tab or comma separated, and in JSON lines; the names of columns of all tables.

The first line of a table names its columns, in any order: `query`, `document`, `start`, `duration` or `end`, `score`;
`system` (default: the name of the file), `channel` (default: 1), `decision` (YES or NO; absent or empty: none). Times
are in seconds; if there are both, `duration` counts and `end` is ignored. In a table without times, trials are
documents, which keep their whole names; so do the judged documents of a table with a column `relevance` (see
`formats.reference.table`). A column may have the name of NIST's XML instead, such as `kwid` or `tbeg`
(`OTHER_NAMES`). Other columns are ignored; the header's attribute `ignored_columns` names them.

A line of JSON lines is an object with the same names; the keys of the first line are the columns, and later lines may
not add any of these names. A decision may also be true or false.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from swsdask.formats.files import noted
from swsdask.formats.runs.builder import OrdinaryLines
from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.gathering import Batch, Gathering
from swsdask.formats.text import Lines, read_lines
from swsdask.formats.values import FormatError, check_columns, read_header, shown
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.schemas import WITHOUT_CHANNELS, WITHOUT_TIMES, RunPiece
from swsdask.model.wording import counted

NEEDED = ("query", "document", "start", "duration", "score")
"""The columns of detections; in place of `duration` there may be `end`."""

TIMES = ("start", "duration", "end")
OPTIONAL = ("system", "channel", "decision")
IDS = ("system", "query", "document", "channel", "decision")
"""The columns with few distinct values."""

OTHER_NAMES = {
    "kwid": "query",
    "termid": "query",
    "file": "document",
    "tbeg": "start",
    "dur": "duration",
}
"""Other names of columns, from the attributes in NIST's XML; they count if no column has the proper name."""

_JSON_WORDS: Mapping[object, str] = {None: "", True: "YES", False: "NO"}


def read_text_table(
    file: str,
    problems: Problems,
    rows_per_piece: int,
    system: str | None,
    encoding: Encoding = PLAIN,
    part: Iterator[Lines] | None = None,
) -> Iterator[RunPiece]:
    """Yield the pieces of a table in text; the delimiter is a tab if the first line has one, else a comma.

    If only a part of the table is read, `part` has its lines, without the first line of the table.
    """
    with noted(problems):
        blocks = read_lines(file)
        delimiter, names, rest = first_line(next(blocks))
        try:
            columns, ignored = choose_columns(names)
            header = read_header({**ignored, **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(file, 1, fault.expected, fault.found, fault.remedy)
            return
        gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=are_judged(names))
        lines = Separated(problems, delimiter, len(names), columns)
        ordinary = None if encoding else OrdinaryLines(delimiter, len(names), columns)
        yield from gathering.pieces(_text_batches(part or chain((rest,), blocks), ordinary, lines, encoding, problems))


def _text_batches(
    blocks: Iterator[Lines], ordinary: OrdinaryLines | None, lines: Separated, encoding: Encoding, problems: Problems
) -> Iterator[Batch]:
    """Yield the rows of each block, read by compiled code if all of its lines are `ordinary`."""
    with noted(problems):
        for block in blocks:
            rows = None if ordinary is None else ordinary.read(block)
            if rows is None:
                yield from (encoding.decode(with_times(each)) for each in lines.batches(iter([block])))
            else:
                yield Batch({}, np.arange(len(rows.score)) + block.first, rows=rows)


def read_json_lines(
    file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
) -> Iterator[RunPiece]:
    """Yield the pieces of a table in JSON lines."""
    with noted(problems):
        blocks = read_lines(file)
        head = next(blocks)
        names = json_names(head, file)
        try:
            columns, ignored = choose_columns(names)
            header = read_header({**ignored, **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(file, 1, fault.expected, fault.found, fault.remedy)
            return
        gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=are_judged(names))
        keys = {name: names[place] for name, place in columns.items()}
        batches = json_batches(chain((head,), blocks), frozenset(names), keys, problems)
        yield from gathering.pieces(encoding.decode(with_times(each)) for each in batches)


def json_names(head: Lines, file: str) -> list[str]:
    """Return the keys of the first line of JSON lines. Raises `InputError` if it is not an object."""
    first = next((line for line in head.data.split(b"\n") if line.strip()), b"")
    try:
        return list(_object(first))
    except FormatError as fault:
        raise InputError(Problem(file, 1, fault.expected, fault.found, fault.remedy)) from None


def json_batches(
    blocks: Iterator[Lines], names: frozenset[str], keys: Mapping[str, str], problems: Problems
) -> Iterator[Batch]:
    """Yield the rows of each block; `names` are the keys of the first line, `keys` those of the columns."""
    with noted(problems):
        for block in blocks:
            rows: list[dict[str, str]] = []
            lines: list[int] = []
            unread: list[tuple[int, FormatError]] = []
            for line, text in enumerate(block.data.split(b"\n"), block.first):
                if text.strip():
                    try:
                        row = _object(text)
                        if not row.keys() <= names:
                            _check_others(sorted(row.keys() - names))
                        rows.append(row)
                        lines.append(line)
                    except FormatError as fault:
                        unread.append((line, fault))
            texts = {name: pa.array([row.get(key, "") for row in rows], pa.string()) for name, key in keys.items()}
            columns = {name: column.dictionary_encode() if name in IDS else column for name, column in texts.items()}
            yield Batch(columns, np.array(lines, np.int64), unread=tuple(unread))


def _check_others(others: Sequence[str]) -> None:
    """Raise `FormatError` for columns of detections among the keys of a line that the first line does not have."""
    known = [name for name in others if name.strip().lower() in (*NEEDED, *OPTIONAL, "relevance")]
    if known:
        remedy = "Give the first line all keys that any line has; a value may be null."
        raise FormatError("the keys of the first line", f"{shown(known[0])} too", remedy)


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object in JSON. Raises `FormatError` for a key that it has twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise FormatError("each key once", f"{shown(twice)} twice", "Remove one of the two.")
    return found


_JSON = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_each_once)


def _object(line: bytes) -> dict[str, str]:
    """Return the values of an object in JSON as texts: numbers with every digit, "" for null. Raises `FormatError`."""
    remedy = 'Write an object per line: {"query": ..., "document": ..., "score": ...}.'
    text = line.decode()
    try:
        found = _JSON.decode(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is no character
    except (ValueError, RecursionError):
        raise FormatError("an object in JSON", shown(text), remedy) from None
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise FormatError("an object of texts and numbers", shown(text), remedy)
    texts: dict[str, str] = {name: _JSON_WORDS.get(value, value) for name, value in found.items()}
    return texts


def first_line(block: Lines) -> tuple[str, list[str], Lines]:
    """Return the delimiter of a table, the names of its columns, and the lines after the first."""
    head, _, rest = block.data.partition(b"\n")
    delimiter = "\t" if b"\t" in head else ","
    line = head.decode().strip("\r")
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a carriage return inside, or a name that is too long
        names = line.split(delimiter)
    return delimiter, names, Lines(block.first + 1, rest)


def proper_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns, stripped and in lower case, with proper names in place of `OTHER_NAMES`.

    Examples
    --------
    >>> proper_names(["kwid", " File", "tbeg", "start"])
    ['query', 'document', 'tbeg', 'start']
    """
    plain = [name.strip().lower() for name in names]
    proper = (OTHER_NAMES.get(name, name) for name in plain)
    return [name if one in plain else one for name, one in zip(plain, proper, strict=True)]


def names_columns(line: str) -> bool:
    """Return whether the first line of a text names the columns of a run or of judgments."""
    names = proper_names([name.strip(' "') for name in re.split(r"[\t,]", line)])
    return "query" in names and not {"score", "relevance"}.isdisjoint(names)


def are_judged(names: Sequence[str]) -> bool:
    """Return whether a table has whole names of documents: it has a column `relevance`, or no times."""
    plain = proper_names(names)
    return "relevance" in plain or not any(name in plain for name in TIMES)


def choose_columns(names: Sequence[str], *, judged: bool = False) -> tuple[dict[str, int], dict[str, str]]:
    """Return the indices of the columns of detections, and attributes that record ignored and missing columns.

    Case and blanks around a name are ignored; it may be one of `OTHER_NAMES`. Judged documents need no times. Raises
    `FormatError` for a missing or repeated column.
    """
    plain = proper_names(names)
    columns = (
        NEEDED
        if "duration" in plain
        else [name if name != "duration" or "end" not in plain else "end" for name in NEEDED]
    )
    known = {name: plain.index(name) for name in (*columns, *OPTIONAL) if name in plain}
    no_times = judged or are_judged(names)
    spelled = [name if name.strip().lower() == proper else proper for name, proper in zip(names, plain, strict=True)]
    check_columns(spelled, [name for name in columns if not (no_times and name in TIMES)], list(known))
    ignored = [name.strip() for name, simple in zip(names, plain, strict=True) if simple not in known]
    attributes = {"ignored_columns": ", ".join(ignored)} if ignored else {}
    if not any(name in known for name in TIMES):
        attributes[WITHOUT_TIMES] = "true"
    elif "channel" not in known:
        attributes[WITHOUT_CHANNELS] = "true"
    return known, attributes


class Separated:
    """Lines of delimited values; `columns` has the indices of the known ones.

    A line has `size` values, which `form` names in messages. It may have `more`, which are ignored, if no value is
    quoted.
    """

    def __init__(
        self,
        problems: Problems,
        delimiter: str,
        size: int,
        columns: Mapping[str, int],
        *,
        form: str = "",
        more: bool = False,
    ) -> None:
        self._problems = problems
        self._size = size
        self._expected = counted(size, "values") + (form and f", {form}")
        self._more = more
        self._delimiter = delimiter
        self._columns = columns
        self._parsing = {"delimiter": delimiter, "quote_char": delimiter != " " and '"', "ignore_empty_lines": False}
        text = {name: pa.dictionary(pa.int32(), pa.string()) if name in IDS else pa.string() for name in columns}
        self._conversion = pa_csv.ConvertOptions(
            include_columns=[str(place) for place in columns.values()],
            column_types={str(place): text[name] for name, place in columns.items()},
            strings_can_be_null=False,
            check_utf8=False,
        )

    def batches(self, blocks: Iterator[Lines]) -> Iterator[Batch]:
        """Yield the rows of each block, and their lines. An error that ends the blocks early becomes a problem."""
        with noted(self._problems):
            for block in blocks:
                if block.data:
                    yield self._batch(block)

    def _batch(self, block: Lines) -> Batch:
        unread: list[tuple[int, FormatError]] = []
        longer = False

        def leave_out(row: pa_csv.InvalidRow) -> str:
            nonlocal longer
            longer = longer or row.actual_columns > self._size
            found = f"{row.actual_columns} in {shown(row.text)}"
            fault = FormatError(self._expected, found, "Is a delimiter or a closing quote missing?")
            unread.append((block.first + row.number - 1, fault))
            return "skip"

        reading = pa_csv.ReadOptions(
            column_names=[str(place) for place in range(self._size)],
            use_threads=False,
            block_size=len(block.data) + 1,
        )
        parsing = pa_csv.ParseOptions(**self._parsing, invalid_row_handler=leave_out)
        table = pa_csv.read_csv(pa.BufferReader(block.data), reading, parsing, self._conversion)
        if longer and self._more:
            return self._batch(self._shortened(block))
        lines = np.arange(table.num_rows + len(unread)) + block.first
        lines = np.delete(lines, [line - block.first for line, _ in unread])
        columns = {
            name: column.combine_chunks() for name, column in zip(self._columns, table.itercolumns(), strict=True)
        }
        return _without_blank_lines(Batch(columns, lines, unread=tuple(unread)))

    def _shortened(self, block: Lines) -> Lines:
        """Return the lines without what follows their last value."""
        delimiter = self._delimiter.encode()
        values = (line.split(delimiter, self._size)[: self._size] for line in block.data.split(b"\n"))
        return Lines(block.first, b"\n".join(map(delimiter.join, values)))


def with_times(batch: Batch) -> Batch:
    """Set absent times to 0."""
    absent = [name for name in NEEDED if name in TIMES and name not in batch.columns]
    absent = [name for name in absent if name != "duration" or "end" not in batch.columns]
    zeros = pa.array(np.zeros(len(batch.columns["query"])))
    return batch._replace(columns={**batch.columns, **dict.fromkeys(absent, zeros)})


def _without_blank_lines(batch: Batch) -> Batch:
    """Return the rows with at least one value."""
    ids = batch.columns["query" if "query" in batch.columns else "document"]
    if "" not in ids.dictionary.to_pylist() or batch.lines is None:
        return batch
    empty = [pc.equal(column, "").to_numpy(zero_copy_only=False) for column in batch.columns.values()]
    kept = ~np.logical_and.reduce(empty)
    columns = {name: column.filter(pa.array(kept)) for name, column in batch.columns.items()}
    return batch._replace(columns=columns, lines=batch.lines[kept])
