"""Writing of runs, and conversion between formats.

Scores keep every digit, times the digits down to 0.1 ms, so that reading the file gives the same rows. A file whose
name ends in .gz or .zst is compressed. In NIST's XML whole columns become text at a time.

A table in text can also be rewritten with new values: its columns, quotes and other digits are kept.

A value is quoted if it was quoted, or if the new delimiter requires it. Blank lines are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from swsdask.formats.files import writing
from swsdask.formats.recognise import RUNS, Format, expect
from swsdask.formats.runs.arrow import join_pieces
from swsdask.formats.runs.encoding import ENCODING_ATTRIBUTES, Encoding
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.table import choose_columns, first_line
from swsdask.formats.runs.xml import DIALECTS, Dialect
from swsdask.formats.text import read_lines
from swsdask.formats.values import FormatError, shown, system_of_file
from swsdask.model.errors import InputError, Problem, Problems, SettingsError
from swsdask.model.safe_text import without_formula
from swsdask.model.schemas import JOINED, WITHOUT_CHANNELS, WITHOUT_TIMES, RunHeader, RunPiece
from swsdask.model.trials import F64
from swsdask.model.units import AUDIO_EXTENSIONS, TICKS_PER_SECOND, document_id
from swsdask.model.wording import counted
from swsdask.places.reading import is_folder, is_local, parted
from swsdask.places.writing import together

NewValues = Callable[[F64], Mapping[str, pa.StringArray]]
"""A function from the scores of rows to new values of columns; columns that the table lacks are added at the end."""

_TABLE = re.compile(r"\.(?:(tsv)|csv)(\.gz|\.zst)?$", re.IGNORECASE)


def delimiter_of(url: str) -> str | None:
    """Return the delimiter of a table in text, by its name; None if it is not the name of one."""
    named = _TABLE.search(url)
    return named and ("\t" if named[1] else ",")


def stays_table(source: str, target: str) -> bool:
    """Return whether a run is a table in text and stays one."""
    return delimiter_of(target) is not None and expect(source, *RUNS) is Format.TABLE


def system_to_add(source: str, target: str) -> str | None:
    """Return the name of a table's system, if only the name of its file has it and the name of the target differs."""
    _, names, _ = first_line(next(read_lines(source)))
    columns, _ = choose_columns(names)
    name = system_of_file(source)
    return None if "system" in columns or system_of_file(target) == name else name


def rewrite_table(source: str, target: str, new_values: NewValues, *, harmless: bool = False) -> None:
    """Write a table in text, which was read without problems, to another place with new values.

    `harmless`: see `without_formula`. The name of the target determines the delimiter and the compression. Raises
    `InputError` if it cannot be written.
    """
    to = delimiter_of(target) or "\t"
    blocks = read_lines(source)
    first = next(blocks)
    delimiter, names, rest = first_line(first)
    columns, _ = choose_columns(names)
    added = [name for name in new_values(np.zeros(0)) if name not in columns]
    places = {**columns, **{name: len(names) + number for number, name in enumerate(added)}}
    rewriting = Rewriting(delimiter, to, len(names), len(added), places, new_values, harmless)
    head = first.data.decode().partition("\n")[0]
    with writing(target) as sink:
        sink.write(rewriting.line([*_values(head, delimiter), *added], head))
        for block in chain((rest,), blocks):
            text = rewriting.in_columns(block.data)
            sink.write(rewriting.line_by_line(block.data) if text is None else text)


class Rewriting(NamedTuple):
    """The rewriting of the lines of a table into those of another.

    The table has `width` columns, to which `n_added` are added; `places` has the numbers of the columns by name.
    """

    delimiter: str
    to: str
    width: int
    n_added: int
    places: Mapping[str, int]
    new_values: NewValues
    harmless: bool

    def in_columns(self, data: bytes) -> bytes | None:
        """Rewrite lines, whole columns at a time; None if some have quotes or need them, or are not ordinary."""
        quotes = b'"' in data or (self.to != self.delimiter and self.to.encode() in data)
        if self.harmless or quotes or b"\r" in data:
            return None
        names = [str(number) for number in range(self.width)]
        try:
            table = pa_csv.read_csv(
                pa.py_buffer(data),
                pa_csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
                pa_csv.ParseOptions(delimiter=self.delimiter, quote_char=False),
                pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
            )
            columns = next(iter(table.combine_chunks().to_batches()), None)
            if columns is None:
                return None
            scores = columns[self.places["score"]].cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        new = {self.places[name]: texts for name, texts in self.new_values(scores).items()}
        if any(pc.any(pc.match_substring_regex(texts, f'["{self.to}]')).as_py() for texts in new.values()):
            return None
        both = (new[place] if place in new else columns[place] for place in range(self.width + self.n_added))
        lines = pc.binary_join_element_wise(*both, self.to)
        (text,) = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")
        return memoryview(text.as_buffer()).tobytes() + b"\n"

    def line_by_line(self, data: bytes) -> bytes:
        """Rewrite any lines; blank ones are left out."""
        lines = [line for line in data.decode().split("\n") if line.strip(f'\r "{self.delimiter}')]
        rows = [[*_values(line, self.delimiter), *[""] * self.n_added] for line in lines]
        scores = np.array([float(_plain(row[self.places["score"]])) for row in rows], np.float64)
        for name, texts in self.new_values(scores).items():
            place = self.places[name]
            for row, text in zip(rows, texts.to_pylist(), strict=True):
                row[place] = f'"{text}"' if row[place].startswith('"') else text
        return b"".join(self.line(row, line) for row, line in zip(rows, lines, strict=True))

    def line(self, values: Sequence[str], source: str) -> bytes:
        """Values as a line with the same ending as their source."""
        if self.harmless:
            values = [value if (safe := without_formula(_plain(value))) == _plain(value) else safe for value in values]
        text = self.to.join(value if value.startswith('"') else quoted(value, self.to) for value in values)
        return f"{text}\r\n".encode() if source.endswith("\r") else f"{text}\n".encode()


def _values(line: str, delimiter: str) -> list[str]:
    """Return the values of a line, with their quotes."""
    line = line.removesuffix("\r")
    if '"' not in line:
        return line.split(delimiter)
    return [found[1] for found in re.finditer(rf'(?:^|{delimiter})((?:"(?:[^"]|"")*")|[^{delimiter}]*)', line)]


def _plain(value: str) -> str:
    return value[1:-1].replace('""', '"') if value.startswith('"') else value


def quoted(text: str, delimiter: str) -> str:
    """Return a text as a value of a table: quoted if it contains the delimiter or a quote."""
    if delimiter not in text and '"' not in text:
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


_COLUMNS = {
    "system": pa.string(),
    "query": pa.string(),
    "document": pa.string(),
    "channel": pa.int8(),
    "start": pa.float64(),
    "duration": pa.float64(),
    "score": pa.float64(),
    "decision": pa.string(),
}
_PLACES = ("channel", "start", "duration")
_DECISIONS = pa.array([None, "NO", "YES"])


def write_kwslist(pieces: Iterable[RunPiece], url: str) -> None:
    """Write the pieces of one run as a `kwslist`: a list for each query, in order of first occurrence.

    Keeps the run's columns in memory. Raises `InputError` for pieces of several systems, and if it cannot be written.
    """
    _write_joined(pieces, DIALECTS["kwslist"], url)


def write_stdlist(pieces: Iterable[RunPiece], url: str) -> None:
    """Write pieces of one run as a `stdlist`."""
    _write_joined(pieces, DIALECTS["stdlist"], url)


_ROOTS: dict[Callable[[Iterable[RunPiece], str], None], str] = {write_kwslist: "kwslist", write_stdlist: "stdlist"}
"""The root element that each function writes."""


def write_lists(pieces: Iterable[RunPiece], dialect: Dialect, url: str) -> None:
    """Write the pieces of one run as they come, so that memory is bounded by the largest.

    The pieces should come from a list of detections, where the rows of a query are consecutive: see
    `lists_of_detections`.
    Raises `InputError` if it cannot be written.
    """
    with writing(url) as sink:
        for text in lists_of_detections(pieces, dialect):
            sink.write(text)


def write_run_table(pieces: Iterable[RunPiece], url: str, *, harmless: bool = False) -> None:
    """Write pieces of one or more runs as a table (`formats.runs.table`): .tsv or .csv, also compressed, or .parquet.

    Written piece by piece, so that memory is bounded by the largest. `harmless`: see `without_formula`. Tables do not
    keep queries without rows, and only Parquet with one system keeps the header. Raises `InputError` for another
    ending, and if the file cannot be written.
    """
    delimiter = delimiter_of(url)
    if delimiter is None and not url.lower().endswith(".parquet"):
        raise InputError(Problem(url, None, "a name that ends in .tsv, .csv or .parquet", shown(url), "Choose one."))
    with writing(url) as sink:
        if delimiter is None:
            _write_parquet(pieces, sink)
        else:
            _write_text(pieces, delimiter, sink, without_formula if harmless else str)


def _write_joined(pieces: Iterable[RunPiece], dialect: Dialect, url: str) -> None:
    parts = list(pieces)
    try:
        run = join_pieces(parts)
    except FormatError as fault:
        raise InputError(Problem(parts[0].file, None, fault.expected, fault.found, fault.remedy)) from None
    write_lists([run], dialect, url)


def _write_text(pieces: Iterable[RunPiece], delimiter: str, sink: pa.NativeFile, written: Callable[[str], str]) -> None:
    """Write a table in text. `written` converts ids, which are quoted if they contain the delimiter or a quote."""
    names, pieces = _columns_of(pieces)
    sink.write(f"{delimiter.join(names)}\n".encode())
    for piece in pieces:
        columns = {
            "system": _named([quoted(written(piece.header.system), delimiter)], np.zeros(len(piece), np.int8)),
            "query": _named([quoted(written(name), delimiter) for name in piece.queries], piece.query),
            "document": _named([quoted(written(name), delimiter) for name in _file_names(piece)], piece.document),
            "channel": pa.array(piece.channel).cast(pa.string()),
            "start": seconds_text(piece.start),
            "duration": seconds_text(piece.duration),
            "score": pa.array(piece.score).cast(pa.string()),
            "decision": pc.fill_null(_DECISIONS, "").take(pa.array(piece.decision + 1)),
        }
        lines = pc.binary_join_element_wise(*(columns[name] for name in names), delimiter)
        sink.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _columns_of(pieces: Iterable[RunPiece]) -> tuple[list[str], Iterator[RunPiece]]:
    """Return the columns of the table of runs, and the pieces. Runs without times have no columns of `_PLACES`."""
    rest = iter(pieces)
    first = [*islice(rest, 1)]
    untimed = any(map(_is_untimed, first))
    return [name for name in _COLUMNS if not (untimed and name in _PLACES)], chain(first, rest)


def _is_untimed(piece: RunPiece) -> bool:
    return WITHOUT_TIMES in piece.header.attributes


def _file_names(piece: RunPiece) -> list[str]:
    """Return the documents as a table names them: without times, in full."""
    return [name if _is_untimed(piece) else file_name(name) for name in piece.documents]


def _named(names: Sequence[str], codes: NDArray[np.integer]) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(codes))


def _write_parquet(pieces: Iterable[RunPiece], sink: pa.NativeFile) -> None:
    names, pieces = _columns_of(pieces)
    schema = pa.schema([(name, _COLUMNS[name]) for name in names])
    said: dict[str, dict[str, str]] = {}
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for piece in pieces:
            writer.write_table(_table(piece, schema))
            said.setdefault(piece.header.system, {}).update(header_attributes(piece.header))
        if len(said) == 1:
            writer.add_key_value_metadata(next(iter(said.values())))


def _table(piece: RunPiece, schema: pa.Schema) -> pa.Table:
    columns = {
        "system": _named([piece.header.system], np.zeros(len(piece), np.int8)),
        "query": _named(piece.queries, piece.query),
        "document": _named(_file_names(piece), piece.document),
        "channel": pa.array(piece.channel),
        "start": pa.array(piece.start / TICKS_PER_SECOND),
        "duration": pa.array(piece.duration / TICKS_PER_SECOND),
        "score": pa.array(piece.score),
        "decision": _DECISIONS.take(pa.array(piece.decision + 1)),
    }
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


class Converted(NamedTuple):
    """A run that was written: the numbers of rows and of times finer than 0.1 ms, and what is lost: see `Losses`."""

    rows: int
    rounded: int
    dropped: tuple[str, ...]


def convert(
    source: str,
    target: str,
    system: str | None = None,
    encoding: Encoding | None = None,
    *,
    harmless: bool = False,
    reader: Callable[[Problems], Iterator[RunPiece]] | None = None,
) -> Converted:
    """Rewrite a run (path or URL) in the format of the target's name.

    A table in text that stays one keeps its columns, its quotes and every digit. The run is read twice, so that nothing
    is written of a run with problems. `system` replaces the name in the file; the target of a table with another
    `encoding` has times in seconds and scores that rise with confidence. `harmless`: for spreadsheets, see
    `model.safe_text.without_formula`. `reader` reads the source instead of `read_run`. Raises `InputError`
    with every problem of the source, and then leaves the target unchanged; `SettingsError` if the target of a
    `harmless` conversion is no table in text.
    """
    write = writer_of(target)
    if harmless:
        if delimiter_of(target) is None:
            raise SettingsError(f"{target}: only .tsv and .csv are made harmless for spreadsheets.")
        write = partial(write_run_table, harmless=True)
    folder, name = parted(target)
    if is_local(target) and not is_folder(folder or "."):
        raise InputError(Problem(target, None, "a folder to write into", f"no folder {folder}", "Create it first."))
    problems = Problems()
    read = reader or partial(read_run, source, system=system, encoding=encoding)
    rows, losses = 0, Losses(target)
    for piece in read(problems):
        rows += len(piece)
        losses.add(piece)
    problems.raise_if_any()
    with together(folder or ".") as hidden:
        unfinished = str(hidden / name)
        if reader is None and not encoding and stays_table(source, target):
            added = system or system_to_add(source, target)
            rewrite_table(source, unfinished, partial(in_system, added), harmless=harmless)
            losses = Losses(target)
        else:
            write(read(problems), unfinished)
    return Converted(rows, losses.rounded, losses.dropped)


class Losses:
    """Gathers what a file of a name does not keep of a run whose pieces are added.

    `rounded` counts times finer than 0.1 ms.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._header: RunHeader | None = None
        self._listed: set[str] = set()
        self._detected: set[str] = set()
        self.rounded = 0

    def add(self, piece: RunPiece) -> None:
        """Add the next piece."""
        self.rounded += piece.rounded
        self._header = piece.header
        if piece.listed:
            there = np.flatnonzero(np.bincount(piece.query, minlength=len(piece.queries)))
            self._listed.update(piece.listed)
            self._detected.update(piece.queries[query] for query in there.tolist())

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns of a table, the attributes with a value, and the queries that are not written."""
        if self._header is None:
            return ()
        columns = self._header.attributes.get("ignored_columns")
        parts = [f"the columns {columns}"] if columns else []
        said = header_attributes(self._header)
        root = _ROOTS.get(writer_of(self._target))
        if delimiter_of(self._target) is not None:
            lost = said.keys() - {"system_id", WITHOUT_TIMES}
        else:
            lost = set() if root is None else said.keys() & _of_other_dialect(said, root)
        # The names of a query's search time and count have its id after a dot.
        valued = {name.partition(".")[0] for name in lost if said[name] not in ("", _UNKNOWN_TIME, _UNKNOWN_COUNT)}
        if valued:
            parts.append(f"the attributes {', '.join(sorted(valued))}")
        if root is None and (n_empty := len(self._listed - self._detected)):
            parts.append(f"{counted(n_empty, 'queries')} without detections")
        return tuple(parts)


def in_system(system: str | None, scores: F64) -> dict[str, pa.StringArray]:
    """Return the values of a column that has the name of the system; none if the table keeps what it has."""
    return {} if system is None else {"system": pa.repeat(system, len(scores))}


def writer_of(target: str) -> Callable[[Iterable[RunPiece], str], None]:
    """Return the writer of the format of a file's name. Raises `InputError` if the name has none."""
    name = target.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".stdlist.xml"):
        return write_stdlist
    if name.endswith(".xml"):
        return write_kwslist
    if name.endswith((".tsv", ".csv")) or target.lower().endswith(".parquet"):
        return write_run_table
    raise InputError(
        Problem(
            target,
            None,
            "a name that ends in .kwslist.xml, .stdlist.xml, .tsv, .csv (also .gz, .zst) or .parquet",
            repr(os.path.basename(target)),
            "Choose one.",
        )
    )


_ROWS_AT_A_TIME = 1 << 18
_NAME = re.compile(r"(?!xml)[A-Za-z_][A-Za-z0-9_-]*")
_SECONDS = pa.decimal128(15, 4)
_UNKNOWN_TIME = "-1"
_UNKNOWN_COUNT = "NA"
_REQUIRED = {
    "kwslist": {"kwlist_filename": "", "language": ""},
    "stdlist": {"termlist_filename": "", "indexing_time": _UNKNOWN_TIME, "language": "", "index_size": ""},
}
"""The attributes of each root element that NIST's schema requires, with the values of a run that does not give them.

The first is the name of the file of queries. A time of -1 is not taken as a time when the list is read: see
`swsdask.model.resources.times_of_list`.
"""


def lists_of_detections(pieces: Iterable[RunPiece], dialect: Dialect) -> Iterator[bytes]:
    """Yield the pieces of one run, at least one, as XML: a list for every query of a piece that has rows or is listed.

    A list continues in the next piece if its query is first there. A query has several lists if its rows are in several
    pieces with rows of other queries between them.
    """
    open_list: str | None = None
    root = ""
    for piece in pieces:
        if not root:
            root = f"<{dialect.root}{_root_attributes(piece.header, dialect)}>"
            yield f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'.encode()
        order = np.argsort(piece.query, kind="stable")
        ends = np.searchsorted(piece.query, np.arange(len(piece.queries)), "right", sorter=order).tolist()
        rows = _Rows(piece, order, dialect.row)
        listed = frozenset(piece.listed)
        for query, (begin, end) in zip(piece.queries, pairwise([0, *ends]), strict=True):
            if query != open_list:
                if begin == end and query not in listed:
                    continue
                if open_list is not None:
                    yield f"</{dialect.list}>\n".encode()
                yield f"<{dialect.list}{_list_attributes(query, piece.header, dialect)}>\n".encode()
                open_list = query
            yield from rows.up_to(end)
    if open_list is not None:
        yield f"</{dialect.list}>\n".encode()
    yield f"</{dialect.root}>\n".encode()


class _Rows:
    """The rows of a run in an order, as text."""

    def __init__(self, run: RunPiece, order: NDArray[np.int64], tag: str) -> None:
        self._run = run
        self._order = order
        self._documents = pa.array(
            [f'<{tag} file={_quoted(file_name(name))} channel="' for name in run.documents], pa.string()
        )
        self._next = 0
        self._first = self._end = 0
        self._text = memoryview(b"")
        self._offsets = np.zeros(1, np.int32)

    def up_to(self, end: int) -> Iterator[bytes]:
        """Yield the rows before number `end` that were not yielded yet."""
        while self._next < end:
            if self._next == self._end:
                self._write_more()
            stop = min(end, self._end)
            yield bytes(self._text[self._offsets[self._next - self._first] : self._offsets[stop - self._first]])
            self._next = stop

    def _write_more(self) -> None:
        self._first, self._end = self._end, min(self._end + _ROWS_AT_A_TIME, len(self._order))
        rows = self._order[self._first : self._end]
        run = self._run
        decisions = pa.array(['"/>\n', '" decision="NO"/>\n', '" decision="YES"/>\n'])
        text = pc.binary_join_element_wise(
            self._documents.take(pa.array(run.document[rows])),
            pa.array(run.channel[rows]).cast(pa.string()),
            '" tbeg="',
            seconds_text(run.start[rows]),
            '" dur="',
            seconds_text(run.duration[rows]),
            '" score="',
            pa.array(run.score[rows]).cast(pa.string()),
            decisions.take(pa.array(run.decision[rows] + 1)),
            "",
        )
        _, offsets, data = text.buffers()
        self._text = memoryview(data)
        self._offsets = np.frombuffer(offsets, np.int32)


def seconds_text(ticks: NDArray[np.int32]) -> pa.Array:
    """Ticks as text in seconds, exact."""
    words = np.zeros((len(ticks), 2), np.int64)
    words[:, 0] = ticks
    return pa.Decimal128Array.from_buffers(_SECONDS, len(ticks), [None, pa.py_buffer(words)]).cast(pa.string())


def file_name(document: str) -> str:
    """A file name of a document: its id, with an audio ending added if the id has one that reading would remove."""
    return document if document_id(document) == document else document + AUDIO_EXTENSIONS[0]


def header_attributes(header: RunHeader) -> dict[str, str]:
    """All attributes of a header except those that say how its table was read: they do not apply to the new file."""
    of_table = ("ignored_columns", WITHOUT_CHANNELS, JOINED, *ENCODING_ATTRIBUTES)
    said = {name: value for name, value in header.attributes.items() if name not in of_table}
    said["system_id"] = header.system
    if header.declared_scores:
        said["min_score"], said["max_score"] = (repr(score) for score in header.declared_scores)
    return said


def _root_attributes(header: RunHeader, dialect: Dialect) -> str:
    """Return the attributes of a header for the whole run, those that may be names in XML.

    KWSEval refuses a list with attributes that its schema does not have, so those that only the other dialect requires
    are left out, except for the name of the file of queries, which is kept under this dialect's name.
    """
    said = header_attributes(header)
    own = _REQUIRED[dialect.root]
    lost = _of_other_dialect(said, dialect.root)
    (file,) = (next(iter(names)) for root, names in _REQUIRED.items() if root != dialect.root)
    if file in said:
        said = {next(iter(own)): said.pop(file), **said}
    said = {name: value for name, value in said.items() if name not in lost}
    return "".join(f" {name}={_quoted(value)}" for name, value in {**own, **said}.items() if _NAME.fullmatch(name))


def _of_other_dialect(said: Mapping[str, str], root: str) -> set[str]:
    """Return the attributes that only the other dialect requires, if a list in that dialect has these attributes."""
    (other,) = (names for each, names in _REQUIRED.items() if each != root)
    file, *rest = other
    return set(rest) - _REQUIRED[root].keys() if file in said else set()


def _list_attributes(query: str, header: RunHeader, dialect: Dialect) -> str:
    said = {
        dialect.query: query,
        dialect.search_time: header.attributes.get(f"search_time.{query}", _UNKNOWN_TIME),
        dialect.oov_count: header.attributes.get(f"oov_count.{query}", _UNKNOWN_COUNT),
    }
    return "".join(f" {name}={_quoted(value)}" for name, value in said.items())


def _quoted(value: str) -> str:
    return quoteattr(value, {blank: f"&#{ord(blank)};" for blank in "\t\n\r"})
