"""Tables of detections in text, tab or comma separated, and results in Kaldi's form.

A table's columns, in any order, named by its first line: `query`, `document`, `start`, `duration`, `score`; `system`
(absent: the file's name names it), `channel` (absent: 1), `decision` (YES or NO; absent or empty: none). Times are in
seconds; a table with a column `relevance`, of judged documents (see `formats.trec`), may have none, and its documents
keep their names. Other columns are passed over; the header's attribute `ignored_columns` names them.

Kaldi's form has no first line; a line is query, document, start, end and score, with blanks between.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from swsdask.errors import Problems
from swsdask.formats.lines import Lines, read_lines
from swsdask.formats.noting import noted
from swsdask.formats.run_encoding import PLAIN, Encoding
from swsdask.formats.run_gather import Batch, Gathering
from swsdask.formats.run_header import read_header
from swsdask.formats.run_values import FormatError, shown
from swsdask.model.runs import RunPiece
from swsdask.model.wording import counted

NEEDED = ("query", "document", "start", "duration", "score")
TIMES = ("start", "duration")
OPTIONAL = ("system", "channel", "decision")
IDS = ("system", "query", "document", "channel", "decision")
"""The columns that have few different values."""

_KALDI_COLUMNS = ("query", "document", "start", "end", "score")
_UNEVEN_BLANKS = re.compile(rb"[\t\r]|  | $|^ ", re.MULTILINE)


def read_text_table(
    file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
) -> Iterator[RunPiece]:
    """The pieces of a table in text; tabs separate if the first line has one, else commas."""
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
        yield from gathering.pieces(
            encoding.decoded(with_times(each)) for each in lines.batches(chain((rest,), blocks))
        )


def read_kaldi_results(
    file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
) -> Iterator[RunPiece]:
    """The pieces of results in Kaldi's form."""
    try:
        header = read_header(encoding.attributes, file, system)
    except FormatError as fault:
        problems.add(file, None, fault.expected, fault.found, fault.remedy)
        return
    gathering = Gathering(header, True, file, problems, rows_per_piece)
    columns = {name: place for place, name in enumerate(_KALDI_COLUMNS)}
    lines = Separated(problems, " ", len(columns), columns)
    even = (Lines(block.first, with_even_blanks(block.data)) for block in read_lines(file))
    yield from gathering.pieces(map(encoding.decoded, lines.batches(even)))


def first_line(block: Lines) -> tuple[str, list[str], Lines]:
    """What separates the values of a table, the names of its columns, and the lines behind the first."""
    head, _, rest = block.data.partition(b"\n")
    delimiter = "\t" if b"\t" in head else ","
    names = next(csv.reader([head.decode().strip("\r")], delimiter=delimiter), [])
    return delimiter, names, Lines(block.first + 1, rest)


def are_judged(names: Sequence[str]) -> bool:
    """Whether the rows of a table with such columns are judged documents: it has `relevance`."""
    return "relevance" in (name.strip().lower() for name in names)


def choose_columns(names: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Where the columns of detections are among those named, and the attributes that name the others.

    Capital letters and blanks around a name do not count. Judged documents need no times. Raises `FormatError` if one
    is missing or there twice.
    """
    plain = [name.strip().lower() for name in names]
    needed = [name for name in NEEDED if name not in TIMES or not are_judged(names)]
    known = {name: plain.index(name) for name in (*NEEDED, *OPTIONAL) if name in plain}
    missing = [name for name in needed if name not in known]
    twice = [name for name in known if plain.count(name) > 1]
    if missing or twice:
        found = f"{shown(', '.join(names))}, no {' or '.join(missing)}" if missing else f"two columns {twice[0]}"
        remedy = "The first line names the columns; times are in seconds."
        raise FormatError(f"the columns {', '.join(NEEDED)}", found, remedy)
    ignored = [name.strip() for name, simple in zip(names, plain, strict=True) if simple not in known]
    return known, {"ignored_columns": ", ".join(ignored)} if ignored else {}


class Separated:
    """Lines of values with a delimiter between them; `columns` tells where the known ones are among all."""

    def __init__(self, problems: Problems, delimiter: str, size: int, columns: Mapping[str, int]) -> None:
        self._problems = problems
        self._size = size
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
        """The rows of each block, and their lines. What ends the blocks too early becomes a problem."""
        with noted(self._problems):
            for block in blocks:
                if block.data:
                    yield self._batch(block)

    def _batch(self, block: Lines) -> Batch:
        unread: list[tuple[int, FormatError]] = []

        def leave_out(row: pa_csv.InvalidRow) -> str:
            found = f"{row.actual_columns} in {shown(row.text)}"
            fault = FormatError(counted(self._size, "values"), found, "Is a delimiter or a closing quote missing?")
            unread.append((block.first + row.number - 1, fault))
            return "skip"

        reading = pa_csv.ReadOptions(
            column_names=[str(place) for place in range(self._size)],
            use_threads=False,
            block_size=len(block.data) + 1,
        )
        parsing = pa_csv.ParseOptions(**self._parsing, invalid_row_handler=leave_out)
        table = pa_csv.read_csv(pa.BufferReader(block.data), reading, parsing, self._conversion)
        lines = np.arange(table.num_rows + len(unread)) + block.first
        lines = np.delete(lines, [line - block.first for line, _ in unread])
        columns = {
            name: column.combine_chunks() for name, column in zip(self._columns, table.itercolumns(), strict=True)
        }
        return _without_blank_lines(Batch(columns, lines, unread=tuple(unread)))


def with_times(batch: Batch) -> Batch:
    """The same rows, those without times at 0."""
    absent = [name for name in TIMES if name not in batch.columns and "end" not in batch.columns]
    zeros = pa.array(np.zeros(len(batch.columns["query"])))
    return batch._replace(columns={**batch.columns, **dict.fromkeys(absent, zeros)})


def _without_blank_lines(batch: Batch) -> Batch:
    """The rows of which any value is there."""
    if "" not in batch.columns["query"].dictionary.to_pylist() or batch.lines is None:
        return batch
    empty = [pc.equal(column, "").to_numpy(zero_copy_only=False) for column in batch.columns.values()]
    kept = ~np.logical_and.reduce(empty)
    columns = {name: column.filter(pa.array(kept)) for name, column in batch.columns.items()}
    return batch._replace(columns=columns, lines=batch.lines[kept])


def with_even_blanks(lines: bytes) -> bytes:
    """Lines with one blank between values, and none around them."""
    if not _UNEVEN_BLANKS.search(lines):
        return lines
    return b"\n".join(b" ".join(line.split()) for line in lines.split(b"\n"))
