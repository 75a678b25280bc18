"""Writing of runs as lists of detections in NIST's XML, whole columns at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.files import writing
from swsdask.formats.runs.encoding import ENCODING_ATTRIBUTES
from swsdask.formats.runs.gathering import join_pieces
from swsdask.formats.runs.xml import DIALECTS, Dialect
from swsdask.formats.values import FormatError
from swsdask.model.errors import InputError, Problem
from swsdask.model.schemas import JOINED, WITHOUT_CHANNELS, RunHeader, RunPiece
from swsdask.model.units import AUDIO_EXTENSIONS, document_id

_ROWS_AT_A_TIME = 1 << 18
_NAME = re.compile(r"(?!xml)[A-Za-z_][A-Za-z0-9_-]*")
_SECONDS = pa.decimal128(15, 4)
UNKNOWN_TIME = "-1"
UNKNOWN_COUNT = "NA"
_REQUIRED = {
    "kwslist": {"kwlist_filename": "", "language": ""},
    "stdlist": {"termlist_filename": "", "indexing_time": UNKNOWN_TIME, "language": "", "index_size": ""},
}
"""The attributes of each root element that NIST's schema requires, with the values of a run that does not give them.

The first is the name of the file of queries. A time of -1 is not taken as a time when the list is read: see
`swsdask.model.resources.times_of_list`.
"""


def write_kwslist(pieces: Iterable[RunPiece], url: str) -> None:
    """Write the pieces of one run as a `kwslist`: a list for each query, in order of first occurrence.

    Keeps the run's columns in memory. Raises `InputError` for pieces of several systems, and if it cannot be written.
    """
    _write_joined(pieces, DIALECTS["kwslist"], url)


def write_stdlist(pieces: Iterable[RunPiece], url: str) -> None:
    """Write pieces of one run as a `stdlist`."""
    _write_joined(pieces, DIALECTS["stdlist"], url)


def write_lists(pieces: Iterable[RunPiece], dialect: Dialect, url: str) -> None:
    """Write the pieces of one run as they come, so that memory is bounded by the largest.

    The pieces should come from a list of detections, where the rows of a query are consecutive: see
    `lists_of_detections`.
    Raises `InputError` if it cannot be written.
    """
    with writing(url) as sink:
        for text in lists_of_detections(pieces, dialect):
            sink.write(text)


def _write_joined(pieces: Iterable[RunPiece], dialect: Dialect, url: str) -> None:
    parts = list(pieces)
    try:
        run = join_pieces(parts)
    except FormatError as fault:
        raise InputError(Problem(parts[0].file, None, fault.expected, fault.found, fault.remedy)) from None
    write_lists([run], dialect, url)


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
    lost = attributes_of_other_dialect(said, dialect.root)
    (file,) = (next(iter(names)) for root, names in _REQUIRED.items() if root != dialect.root)
    if file in said:
        said = {next(iter(own)): said.pop(file), **said}
    said = {name: value for name, value in said.items() if name not in lost}
    return "".join(f" {name}={_quoted(value)}" for name, value in {**own, **said}.items() if _NAME.fullmatch(name))


def attributes_of_other_dialect(said: Mapping[str, str], root: str) -> set[str]:
    """Return the attributes that only the other dialect requires, if a list in that dialect has these attributes."""
    (other,) = (names for each, names in _REQUIRED.items() if each != root)
    file, *rest = other
    return set(rest) - _REQUIRED[root].keys() if file in said else set()


def _list_attributes(query: str, header: RunHeader, dialect: Dialect) -> str:
    said = {
        dialect.query: query,
        dialect.search_time: header.attributes.get(f"search_time.{query}", UNKNOWN_TIME),
        dialect.oov_count: header.attributes.get(f"oov_count.{query}", UNKNOWN_COUNT),
    }
    return "".join(f" {name}={_quoted(value)}" for name, value in said.items())


def _quoted(value: str) -> str:
    return quoteattr(value, {blank: f"&#{ord(blank)};" for blank in "\t\n\r"})
