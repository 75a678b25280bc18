"""Writing of lists of detections in NIST's XML: whole columns become text at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.runs.xml import Dialect
from swsdask.model.schemas import RunHeader, RunPiece
from swsdask.model.units import AUDIO_EXTENSIONS, document_id

_ROWS_AT_A_TIME = 1 << 18
_NAME = re.compile(r"(?!xml)[A-Za-z_][A-Za-z0-9_-]*")
_SECONDS = pa.decimal128(15, 4)


def lists_of_detections(pieces: Iterable[RunPiece], dialect: Dialect) -> Iterator[bytes]:
    """The pieces of one run, one at least, as XML: for every query of a piece a list, if it has rows or is listed.

    A list continues in the next piece if its query is first there. A query has several lists if its rows are in several
    pieces with rows of other queries between them.
    """
    open_list: str | None = None
    root = ""
    for piece in pieces:
        if not root:
            root = f"<{dialect.root}{_root_attributes(piece.header)}>"
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
        """The rows before number `end` that were not given yet."""
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
    """A file name that names a document: the document, unless that would lose an ending of its own."""
    return document if document_id(document) == document else document + AUDIO_EXTENSIONS[0]


def header_attributes(header: RunHeader) -> dict[str, str]:
    """All attributes of a header."""
    said = {**header.attributes, "system_id": header.system}
    if header.declared_scores:
        said["min_score"], said["max_score"] = (repr(score) for score in header.declared_scores)
    return said


def _root_attributes(header: RunHeader) -> str:
    """The attributes of a header for the whole run, those that may be names in XML."""
    said = header_attributes(header)
    return "".join(f" {name}={_quoted(value)}" for name, value in said.items() if _NAME.fullmatch(name))


def _list_attributes(query: str, header: RunHeader, dialect: Dialect) -> str:
    said = {
        dialect.query: query,
        dialect.search_time: header.attributes.get(f"search_time.{query}"),
        dialect.oov_count: header.attributes.get(f"oov_count.{query}"),
    }
    return "".join(f" {name}={_quoted(value)}" for name, value in said.items() if value is not None)


def _quoted(value: str) -> str:
    return quoteattr(value, {blank: f"&#{ord(blank)};" for blank in "\t\n\r"})
