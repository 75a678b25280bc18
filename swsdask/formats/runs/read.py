"""Runs in any format, recognised by content: NIST's XML, tables, Kaldi's and TREC's results.

A large run is divided so that several workers can read it: plain XML in UTF-8 after the end tags of lists, a plain
table in text after lines. The file is scanned once, to find the end tags and to count the lines; that takes a
small part of the time of reading it.

Tools that copy a text print numbers as the files spell them, although 10.00 and 10 are the same time. These texts are
read from runs in NIST's XML and from a reference in RTTM, and become columns of an alignment beside its numbers. If two
rows differ only in spelling, the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.files import file_size, noted, open_bytes, open_once, open_plain
from swsdask.formats.recognise import RUNS, AnyFormat, Format, expect, sniff
from swsdask.formats.runs.arrow import RowFaults, read_rows
from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.lines import TREC, LineFormat
from swsdask.formats.runs.parquet import ENDING as PARQUET
from swsdask.formats.runs.parquet import Files, divide_folder, parts_of, read_parquet_folder, read_parquet_table
from swsdask.formats.runs.resources import with_resources
from swsdask.formats.runs.table import choose_columns, first_line, read_json_lines, read_text_table
from swsdask.formats.runs.xml import DIALECTS, ROW_NAMES, Root, cut_off, read_body, read_root, read_xml_run, xml_window
from swsdask.formats.text import (
    BLOCK,
    Window,
    decode_blocks,
    read_blocks,
    read_lines,
    utf8_begin,
    utf8_blocks,
    whole_lines,
    with_newlines,
)
from swsdask.formats.values import FormatError
from swsdask.formats.xml_stream import Start, read_elements
from swsdask.model.errors import InputError, Problems
from swsdask.model.resources import Resources
from swsdask.model.schemas import RunPiece
from swsdask.model.units import TICKS_PER_SECOND, document_id, ticks
from swsdask.places.reading import storage_fault

_MARKUP_ENDS = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_MARKUP = re.compile(rb"<[!?]")


@dataclass(frozen=True)
class Span:
    """Whole lists of a file: from byte `begin`, in `line`, up to `end` (None: to the end of the file).

    Without a `root` they are lines of a table, whose first line names the columns.
    """

    root: Root | None
    begin: int
    line: int
    end: int | None


def read_span(
    file: str, span: Span | Files, problems: Problems, rows_per_piece: int, system: str | None
) -> Iterator[RunPiece]:
    """Return the pieces of some lists, lines or files of a file or folder.

    `system` is the name of the run, if given.
    """
    if isinstance(span, Files):
        pieces = read_parquet_folder(file, problems, rows_per_piece, system, some=span)
        return (piece for piece in pieces if len(piece))
    if span.root is None:
        return _read_lines_of_table(file, span, problems, rows_per_piece, system)
    blocks = decode_blocks(file_blocks(file, span.begin, span.end), "utf-8")
    window = xml_window(blocks, span.line)
    return read_body(window, span.root, file, problems, rows_per_piece, to_the_end=span.end is None)


def _read_lines_of_table(
    file: str, span: Span, problems: Problems, rows_per_piece: int, system: str | None
) -> Iterator[RunPiece]:
    lines = whole_lines(file, file_blocks(file, span.begin, span.end), span.line)
    for piece in read_text_table(file, problems, rows_per_piece, system, part=lines):
        if len(piece) or span.line == _FIRST_ROW:
            yield piece


def spans(file: str, n_parts: int, system: str | None) -> Sequence[Span | Files]:
    """Divide a file or folder into at most `n_parts` spans of about equal size; none if it cannot be divided.

    `system` is the name of the run, if given.
    """
    if n_parts < 2:
        return []
    try:
        if parts_of(file):
            return divide_folder(file, n_parts, system)
        first = next(file_blocks(file, 0, BLOCK), b"")
        begin = utf8_begin(first)
        if len(first) < BLOCK or begin is None:
            return []
        if expect(file, *RUNS) is Format.TABLE:
            return _spans_of_table(file, first, n_parts, system)
        head = xml_window(utf8_blocks(file_blocks(file, 0, None), xml=True))
        root = read_root(head, file, system)
        body = begin + head.offset
        step = (file_size(file) - body) // n_parts
        cuts = list(_Survey(file, root, body, head.line).cuts([body + n * step for n in range(1, n_parts)]))
    except (FormatError, InputError):
        return []
    begins = [(body, head.line), *cuts]
    ends = [*(offset for offset, _ in cuts), None]
    return [Span(root, offset, line, end) for (offset, line), end in zip(begins, ends, strict=True)] if cuts else []


_NEWLINE = ord("\n")
_FIRST_ROW = 2
"""The line after the names of the columns."""


def _spans_of_table(file: str, first: bytes, n_parts: int, system: str | None) -> list[Span]:
    """Return the spans of a table; none if quotes may contain newlines, or if a named run has a column of systems."""
    body = first.find(b"\n") + 1
    _, names, _ = first_line(next(read_lines(file)))
    if not body or (system is not None and "system" in choose_columns(names)[0]):
        return []
    step = (file_size(file) - body) // n_parts
    wanted = [body + n * step for n in range(1, n_parts)]
    begins = [(body, _FIRST_ROW)]
    offset, line = 0, 1
    for block in file_blocks(file, 0, None):
        if b'"' in block:
            return []
        while wanted and (end := block.find(b"\n", max(wanted[0] - offset - 1, 0)) + 1):
            begins.append((offset + end, line + block.count(b"\n", 0, end)))
            wanted = [place for place in wanted if place > begins[-1][0]]
        # bytes.count is several times slower.
        offset, line = offset + len(block), line + int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
    ends = [*(begin for begin, _ in begins[1:]), None]
    found = [Span(None, begin, number, end) for (begin, number), end in zip(begins, ends, strict=True)]
    return found if len(found) > 1 else []


def file_blocks(url: str, begin: int, end: int | None) -> Iterator[bytes]:
    """Bytes `begin` to `end` of a file as it is stored, in blocks. Raises `InputError` if it cannot be read."""
    try:
        with open_plain(url) as stream:
            stream.seek(begin)
            while block := stream.read(BLOCK if end is None else min(BLOCK, end - begin)):
                yield block
                begin += len(block)
    except Exception as error:
        raise storage_fault(url, error) from None


class _Survey:
    """Goes through the lists of a file, from offset `body`, which is in `line`."""

    def __init__(self, file: str, root: Root, body: int, line: int) -> None:
        self._window = Window(file_blocks(file, body, None), 0, line)
        self._body = body
        self._end_tag = f"</{root.dialect.list}>".encode()

    def cuts(self, wanted: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the offsets and lines of the ends of lists at or after the offsets `wanted`, which ascend.

        Raises `FormatError` for an unfinished part; reading the whole file reports it.
        """
        window = self._window
        while wanted:
            # Every tag that begins before the last `<` is complete.
            whole = max(window.data.rfind(b"<", window.position, window.end), window.position)
            plain = self._markup(whole)
            while wanted and (end := self._list_end(wanted[0], plain)):
                window.skip(end - window.position)
                cut = self._body + window.offset
                yield cut, window.line
                wanted = [offset for offset in wanted if offset > cut]
            window.skip(plain - window.position)
            if plain < whole:
                self._pass_markup()
            elif not window.more():
                return

    def _markup(self, stop: int) -> int:
        """Find the next comment, CDATA or processing instruction before `stop`; return `stop` if there is none."""
        window = self._window
        if window.data.find(b"!", window.position, stop) < 0 and window.data.find(b"?", window.position, stop) < 0:
            return stop
        found = _MARKUP.search(window.data, window.position, stop)
        return found.start() if found else stop

    def _pass_markup(self) -> None:
        window = self._window
        for begin, end in _MARKUP_ENDS.items():
            if window.data.startswith(begin, window.position):
                while (found := window.data.find(end, window.position + len(begin))) < 0:
                    if not window.more():
                        raise cut_off(window, end.decode())
                window.skip(found + len(end) - window.position)
                return
        raise FormatError("a comment", "a declaration", "Take it out.")

    def _list_end(self, wanted: int, stop: int) -> int:
        """Find the first list end before `stop` at or after offset `wanted`; return 0 if there is none."""
        window = self._window
        first = window.position + max(0, wanted - self._body - window.offset - len(self._end_tag))
        found = window.data.find(self._end_tag, first, stop)
        return found + len(self._end_tag) if found >= 0 else 0


ROWS_PER_PIECE = 1_000_000


def read_run(
    url: str,
    problems: Problems,
    *,
    rows_per_piece: int = ROWS_PER_PIECE,
    system: str | None = None,
    encoding: Encoding | None = None,
    judged: bool = False,
) -> Iterator[RunPiece]:
    """The rows of a run, in file order, in pieces of about `rows_per_piece` rows; a table may hold several systems.

    `system` is the name of the run, if the user gives one; else that in the file, else that of the file, without
    endings. `encoding` has the units of a table's times and scores. Text of no known format is a TREC run if documents
    are `judged`. Problems are added to `problems`, and the rest is read as far as possible: after a problem the pieces
    are not the run. Memory is bounded by the size of a piece.
    """
    with noted(problems), open_once(url) as url:
        found = expect(url, *RUNS, otherwise=TREC if judged else None)
        read = found.read if isinstance(found, LineFormat) else _TABLES.get(found)
        if encoding and (read is None or (isinstance(found, LineFormat) and not found.encoded)):
            expected = "a table: only tables can have frames for times, negated scores or utterances"
            problems.add(url, None, expected, found.value, "Leave out --frame-shift, --negate-scores and --segments.")
        elif read is None:
            yield from _read_xml(url, problems, rows_per_piece, system)
        else:
            yield from read(url, problems, rows_per_piece, system, encoding or PLAIN)


_TABLES: Mapping[AnyFormat, Callable[[str, Problems, int, str | None, Encoding], Iterator[RunPiece]]] = {
    Format.TABLE: read_text_table,
    Format.JSON_LINES: read_json_lines,
    Format.PARQUET: read_parquet_table,
    Format.PARQUET_FOLDER: read_parquet_folder,
}


def _read_xml(url: str, problems: Problems, rows_per_piece: int, system: str | None) -> Iterator[RunPiece]:
    with open_bytes(url) as stream:
        window = xml_window(with_newlines(utf8_blocks(read_blocks(stream), xml=True)))
        yield from read_xml_run(window, url, problems, rows_per_piece, system)


BYTES_PER_DETECTION = 90
"""The approximate size of a detection in an official file, to estimate the work before anything is read."""

_BYTES_IN_PARQUET = 15


@dataclass(frozen=True)
class RunFile:
    """A file or folder with runs, or some of the lists, lines or files in one, a `span`: a source of rows. Picklable.

    `system` is the name of the run, if the user gives one; else it is in the file. `encoding` has the units of a
    table's times and scores, `resources` are those of the file's only system. Where documents are `judged`, text of no
    known format is a TREC run.
    """

    file: str
    system: str | None = None
    encoding: Encoding | None = None
    span: Span | Files | None = None
    resources: Resources | None = None
    judged: bool = False
    in_memory: ClassVar[bool] = False

    @property
    def rows_about(self) -> int:
        """The approximate number of rows of a whole file, by its size."""
        size = sum(parts_of(self.file).values()) or file_size(self.file)
        return size // (_BYTES_IN_PARQUET if self.file.rstrip("/").endswith(PARQUET) else BYTES_PER_DETECTION)

    def read(self, problems: Problems, *, rows_per_piece: int = ROWS_PER_PIECE) -> Iterator[RunPiece]:
        """Return the rows, as from `read_run`; line numbers are those of the whole file."""
        if self.span is None:
            pieces = read_run(
                self.file,
                problems,
                rows_per_piece=rows_per_piece,
                system=self.system,
                encoding=self.encoding,
                judged=self.judged,
            )
        else:
            pieces = read_span(self.file, self.span, problems, rows_per_piece, self.system)
        return pieces if self.resources is None else with_resources(pieces, self.resources, problems)

    def line_of(self, system: str, row: int) -> int | None:
        """The line of one of a system's rows, counted from 0; None if unknown or if no piece begins with the row."""
        before = 0
        for piece in self.read(Problems(), rows_per_piece=max(row, 1)):
            if piece.header.system == system:
                if before == row:
                    return piece.document_lines[int(piece.document[0])]
                before += len(piece)
        return None

    def parts(self, n_parts: int) -> list[RunFile]:
        """Divide a file into at most `n_parts` parts of about equal size; read one after the other, they are the run.

        Only folders and large XML files and tables in text are divided, uncompressed and in UTF-8; any other file, or
        one with problems, is one part. Each part checks only within its own rows that all have decisions, or none:
        the code that joins the parts must check the whole.
        """
        found = [] if self.encoding else spans(self.file, n_parts, self.system)
        return [replace(self, span=span) for span in found] or [self]


TEXTS = ("start_text", "end_text", "score_text", "reference_start_text")
"""The columns that are added to an alignment; null if no file has the number."""

Units = Callable[[str], Sequence[str]]
"""A function that splits a word of the reference as a tool does."""

_ROWS_AT_ONCE = 65_536
_OF_TARGETS = ["document", "channel", "reference_start", "word"]
_OF_DETECTIONS = ["system", "query", "document", "channel", "start", "end", "score"]


def spelled_starts(rttm: str, encoding: str, units: Units | None) -> list[pa.Table]:
    """Return the starts of targets as an RTTM spells them; none for another file.

    If a word is split into several `units`, each has its share of the time, in thousandths of a second. Without
    `units` the starts are those of the records of speakers, which make the segments.
    """
    return list(_starts(rttm, encoding, units)) if _is(rttm, Format.RTTM) else []


def with_texts(
    alignment: pa.Table, files: Iterable[str], targets: list[pa.Table], words: Mapping[str, str]
) -> pa.Table:
    """Return the alignment of one system with the columns `TEXTS`, from the files of its run and from `spelled_starts`.

    `words` has the word with which the targets of each query begin; segments have none.
    """
    system = alignment["system"][0].as_py() if len(alignment) else ""
    detections = [*_detections(system, files)]
    queries = alignment["query"].unique()
    first = pa.array([words.get(query, "").casefold() for query in queries.to_pylist()], pa.string())
    sought = alignment.append_column("word", first.take(pc.index_in(alignment["query"], queries)))
    alignment = _join_texts(alignment, sought, detections, _OF_DETECTIONS, TEXTS[:3])
    return _join_texts(alignment, sought, targets, _OF_TARGETS, TEXTS[3:])


def _join_texts(
    alignment: pa.Table, sought: pa.Table, parts: list[pa.Table], keys: list[str], texts: tuple[str, ...]
) -> pa.Table:
    """The alignment with the texts of the rows of `parts` that have the keys `sought`; times are compared as ticks."""
    if not parts:
        nulls = pa.nulls(len(alignment), pa.string())
        for name in texts:
            alignment = alignment.append_column(name, nulls)
        return alignment
    given = pa.concat_tables(parts).group_by(keys, use_threads=False).aggregate([(name, "first") for name in texts])
    columns = {name: sought[name] for name in keys}
    for name in keys:
        if name.endswith(("start", "end")):
            columns[name] = pc.round(pc.multiply(sought[name], TICKS_PER_SECOND)).cast(pa.int32())
    columns["row"] = pa.array(np.arange(len(alignment)))
    found = pa.table(columns).join(given, keys, join_type="left outer").sort_by("row")
    for name in texts:
        alignment = alignment.append_column(name, found[f"{name}_first"])
    return alignment


def _detections(system: str, files: Iterable[str]) -> Iterator[pa.Table]:
    """Keys and texts of the detections of a run."""
    for file in files:
        if _is(file, Format.RUN_XML):
            rows: list[tuple[str, ...]] = []
            for row in _rows(file):
                rows.append(row)
                if len(rows) == _ROWS_AT_ONCE:
                    yield _table_of_texts(system, rows)
                    rows = []
            if rows:
                yield _table_of_texts(system, rows)


def _is(file: str, form: Format) -> bool:
    """Return whether a file can be read and has a format: a URL may be stored without the secrets that open it."""
    try:
        return sniff(file) == form
    except (InputError, OSError):
        return False


def _rows(file: str) -> Iterator[tuple[str, ...]]:
    """Yield the query of each detection, its document, channel, start, duration and score."""
    query = ""
    names = [ROW_NAMES[name] for name in ("document", "channel", "start", "duration", "score")]
    for element in read_elements(file):
        if isinstance(element, Start):
            dialect, name = DIALECTS[element.path[0]], element.path[-1]
            if name == dialect.list:
                query = element.attributes[dialect.query]
            elif name == dialect.row:
                yield (query, *(element.attributes[each] for each in names))


def _table_of_texts(system: str, texts: list[tuple[str, ...]]) -> pa.Table:
    query, document, channel, start, duration, score = map(pa.array, zip(*texts, strict=True))
    columns = {"query": query, "document": document, "channel": channel}
    rows = read_rows({**columns, "start": start, "duration": duration, "score": score}, RowFaults(len(texts)))
    ends = [f"{float(text[3]) + float(text[4]):.15g}" for text in texts]
    names = ([document_id(name) for name in rows.document.ids], rows.query.ids)
    documents, queries = (
        pa.array(ids, pa.string()).take(pa.array(codes))
        for ids, codes in zip(names, (rows.document.codes, rows.query.codes), strict=True)
    )
    numbers = (rows.channel, rows.start, rows.start + rows.duration, rows.score + 0.0)  # -0.0 is found as 0.0
    values = [pa.repeat(system, len(texts)), queries, documents, *map(pa.array, numbers), start, pa.array(ends), score]
    return pa.Table.from_arrays(values, names=[*_OF_DETECTIONS, *TEXTS[:3]])


def _starts(rttm: str, encoding: str, units: Units | None) -> Iterator[pa.Table]:
    """Keys and texts of the starts of an RTTM's words; without `units`, of its speakers."""
    kind = "SPEAKER" if units is None else "LEXEME"
    for block in read_lines(rttm, encoding):
        rows = []
        for line in block.data.decode().split("\n"):
            if line[: len(kind)].upper() == kind:
                _, document, channel, start, duration, word, *_ = line.split()
                spoken = [""] if units is None else [unit.casefold() for unit in units(word)]
                for unit, text in zip(spoken, _share_time(start, duration, len(spoken)), strict=True):
                    rows.append((document_id(document), int(channel), ticks(text)[0], unit, text))
        if rows:
            kinds = (pa.string(), pa.int8(), pa.int32(), pa.string(), pa.string())
            columns = [pa.array(column, each) for column, each in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield pa.Table.from_arrays(columns, names=[*_OF_TARGETS, *TEXTS[3:]])


def _share_time(start: str, duration: str, units: int) -> list[str]:
    """Return the starts of the units of a word."""
    share = round(float(duration) / max(units, 1), 3)
    return [start] if units == 1 else [f"{float(start) + share * number:.3f}" for number in range(units)]
