"""Runs in NIST's XML: `kwslist` (keyword search) and the older `stdlist`.

A compiled scanner reads lists of detections, and lxml the forms that the scanner does not recognise. Both ways give the
same pieces and the same problems; only the speed differs. The line of a row is that of the end of its tag. Elements
that a list of detections does not have and text between elements are problems; attributes beyond those of the format
are ignored. Several lists of one query are joined, as in the official tools.

lxml is fed up to one `>` at a time. At the end of a tag of a row, a list or the root it has read nothing after the tag,
so the scanner can continue there, or another parser, which is first fed the open tags.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from swsdask.formats.runs.builder import PieceBuilder
from swsdask.formats.text import Window
from swsdask.formats.values import BLANKS, Detection, FormatError, read_detection, read_header, shown
from swsdask.formats.xml_stream import MAX_NAMES, Start, read_elements
from swsdask.kernels.xml import CLOSED, LOOKAHEAD, MORE, ODD, pack_words
from swsdask.model.errors import Problems
from swsdask.model.schemas import RunHeader, RunPiece

ROW_NAMES = {
    "document": "file",
    "channel": "channel",
    "start": "tbeg",
    "duration": "dur",
    "score": "score",
    "decision": "decision",
}
"""The names of the values of a row in both dialects."""


@dataclass(frozen=True)
class Dialect:
    """The names of a dialect's elements, and of the attributes of its lists."""

    root: str
    list: str
    row: str
    query: str
    search_time: str
    oov_count: str

    @cached_property
    def words(self) -> NDArray[np.uint8]:
        """The names in the scanner's form."""
        return pack_words(self.root, self.list, self.row, self.query, self.search_time, self.oov_count)


DIALECTS = {
    dialect.root: dialect
    for dialect in (
        Dialect("kwslist", "detected_kwlist", "kw", "kwid", "search_time", "oov_count"),
        Dialect("stdlist", "detected_termlist", "term", "termid", "term_search_time", "oov_term_count"),
    )
}
"""The dialects by the name of the root element."""


def search_times(file: str) -> dict[str, str]:
    """Return the search time of each query that a list of detections gives, by the ids of queries."""
    return {
        element.attributes[dialect.query]: element.attributes[dialect.search_time]
        for element in read_elements(file)
        if isinstance(element, Start) and (dialect := DIALECTS[element.path[0]]).list == element.path[-1]
        if dialect.search_time in element.attributes
    }


def decision_scores(files: Iterable[str]) -> tuple[float, float]:
    """Return the highest score of a NO and the lowest of a YES in lists with decisions, -inf and inf without any."""
    highest, lowest = -math.inf, math.inf
    for element in chain.from_iterable(map(read_elements, files)):
        if isinstance(element, Start) and DIALECTS[element.path[0]].row == element.path[-1]:
            score = float(element.attributes[ROW_NAMES["score"]])
            if element.attributes[ROW_NAMES["decision"]] == "YES":
                lowest = min(lowest, score)
            else:
                highest = max(highest, score)
    return highest, lowest


_PLACE = re.compile(r",? line \d+(?:, column \d+)?")


@dataclass(frozen=True)
class Root:
    """The root element: its dialect, its attributes, and a start tag that opens it again (with its namespaces).

    `closed` is whether the tag closes itself: the list has no detections.
    """

    dialect: Dialect
    header: RunHeader
    start_tag: bytes
    closed: bool


def local_name(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]


def feed(parser: etree.XMLParser, passed: bytes) -> None:
    """Feed a parser. Raises `FormatError` on any error of syntax or of namespaces, and for too many attributes."""
    _check_attributes(passed)
    try:
        parser.feed(passed)
    except etree.XMLSyntaxError as error:
        raise syntax_fault(error.msg) from None
    for entry in parser.feed_error_log:
        if entry.level >= etree.ErrorLevels.ERROR:
            raise syntax_fault(entry.message)


def _check_attributes(passed: bytes) -> None:
    """Raise `FormatError` for a tag with so many attributes that lxml, which compares all pairs, takes minutes."""
    if (found := passed.count(b"=")) > MAX_NAMES:
        raise FormatError(f"a tag of at most {MAX_NAMES:,} attributes", f"one of up to {found:,}", "Remove some.")


def syntax_fault(message: str) -> FormatError:
    """Return the fault of a message of lxml, without its positions, which refer to a fragment."""
    return FormatError("well-formed XML", _PLACE.sub("", message), "Correct the file there; what follows was not read.")


def cut_off(window: Window, closing: str) -> FormatError:
    """Describe the problem of a text that ends before `closing`; move to that end."""
    window.take(window.end - window.position)
    return window.fault or FormatError(closing, "the end of the file", "The file was cut off: copy or write it again.")


def read_root(window: Window, file: str, system: str | None) -> Root:
    """Read up to and including the root's start tag. `system` is the name of the run, if given.

    Raises `FormatError`. Declarations of entities or elements are errors: lists of detections need none.
    """
    parser = etree.XMLPullParser(("start",), resolve_entities=False, no_network=True, load_dtd=False)
    while passed := window.next_tag_end():
        feed(parser, passed)
        for _, element in parser.read_events():
            return _root(element, file, system, closed=passed.endswith(b"/>"))
    raise cut_off(window, "the root element of a list of detections")


def _root(element: etree._Element, file: str, system: str | None, closed: bool) -> Root:
    declared = element.getroottree().docinfo.internalDTD
    if declared is not None and any((*declared.iterentities(), *declared.iterelements())):
        expected = "no declarations of entities or elements"
        raise FormatError(expected, f"a document type {declared.name} with some", "Remove the part between [ and ].")
    name = local_name(element.tag)
    if name not in DIALECTS:
        remedy = "Give the list of a system's detections where a run is needed."
        raise FormatError(
            f"the root {' or '.join(DIALECTS)} of a list of detections", f"the root {shown(name)}", remedy
        )
    attributes = {local_name(key): value for key, value in element.attrib.items()}
    tag = etree.tostring(element.makeelement(element.tag, nsmap=element.nsmap)).rstrip()
    return Root(DIALECTS[name], read_header(attributes, file, system), tag.removesuffix(b"/>") + b">", closed)


_ROOT, _LIST, _ROW = 0, 1, 2
"""The depth of each element of a list of detections."""


class _Start(NamedTuple):
    """The start tag of an element."""

    tag: str
    attributes: dict[str, str]
    declares_namespaces: bool


class _Other(Enum):
    END = "an end tag"
    TEXT = "text that is not blank"


class _Target:
    """The target of lxml's events: keeps them until they are requested."""

    def __init__(self) -> None:
        self.events: list[_Start | _Other] = []

    def start(self, tag: str, attributes: dict[str, str], namespaces: dict[str, str]) -> None:
        self.events.append(_Start(tag, dict(attributes), bool(len(namespaces))))

    def end(self, tag: str) -> None:  # noqa: ARG002
        self.events.append(_Other.END)

    def data(self, text: str) -> None:
        if text.strip(BLANKS):
            self.events.append(_Other.TEXT)

    def close(self) -> None:
        pass


def _parser(target: _Target) -> etree.XMLParser:
    """Return a parser of a document without a document type: it can expand only XML's own five entities."""
    return etree.XMLParser(target=target, resolve_entities=True, no_network=True, load_dtd=False, encoding="utf-8")


def read_end(window: Window) -> None:
    """Check that only blanks and comments follow the root element. Raises `FormatError`."""
    parser = _parser(_Target())
    parser.feed(b"<end/>")
    while passed := window.next_tag_end():
        feed(parser, passed)
    feed(parser, window.take(window.end - window.position))
    try:
        parser.close()
    except etree.XMLSyntaxError as error:
        raise syntax_fault(error.msg) from None
    if window.fault:
        raise window.fault


_PREFIXED = re.compile(rb"<[^\s/>:]+:")
"""The begin of a start tag whose name has a prefix."""


class OddReader:
    """Reads rows in any form of XML from the position of `window`. `closed` is whether the root element has ended.

    A parser that was given an element with namespaces of its own, or with a prefix, is kept until that element ends.
    """

    def __init__(self, window: Window, builder: PieceBuilder, root: Root) -> None:
        self._window = window
        self._builder = builder
        self._dialect = root.dialect
        self._target = _Target()
        self._parser = _parser(self._target)
        self._parser.feed(root.start_tag)
        if builder.inside:
            self._parser.feed(f"<{root.dialect.list}>".encode())
        self._target.events.clear()
        self._depth = _ROW if builder.inside else _LIST
        self._unknown: int | None = None
        self._kept: int | None = None
        self._rows = 0
        self.closed = False

    def read(self, patience: int) -> Iterator[RunPiece]:
        """Read until at least `patience` rows were read and the scanner can continue. Yields pieces as they fill.

        Raises `FormatError` if nothing more can be read.
        """
        resumable = False
        while not self.closed and not (resumable and self._rows >= patience):
            passed = self._window.next_tag_end()
            if passed is None and resumable:
                return
            if passed is None:
                raise cut_off(self._window, f"</{self._dialect.root}>")
            feed(self._parser, passed)
            resumable = False
            prefixed = _PREFIXED.match(passed, passed.rfind(b"<")) is not None
            for event in self._target.events:
                resumable = self._take(event, prefixed) and self._kept is None
                if self._builder.is_full:
                    yield self._builder.take()
            self._target.events.clear()

    def _take(self, event: _Start | _Other, prefixed: bool) -> bool:
        """Handle an event of a tag; return whether the scanner can continue after it."""
        if event is _Other.TEXT:
            if self._unknown is None:
                self._fault("only elements", "text between them", "Remove the text, or put it in a comment.")
            return False
        if isinstance(event, _Start):
            if (event.declares_namespaces or prefixed) and self._kept is None:
                self._kept = self._depth
            known = self._unknown is None and self._open(event)
            self._depth += 1
            return known and self._depth == _ROW
        self._depth -= 1
        if self._kept == self._depth:
            self._kept = None
        if self._unknown is not None:
            if self._unknown == self._depth:
                self._unknown = None
            return False
        if self._depth == _LIST:
            self._builder.close_list()
        if self._depth == _ROW:
            self._rows += 1
        self.closed = self._depth == _ROOT
        return True

    def _open(self, event: _Start) -> bool:
        name = local_name(event.tag)
        if self._depth == _LIST and name == self._dialect.list:
            self._open_list({local_name(key): value for key, value in event.attributes.items()})
        elif self._depth == _ROW and name == self._dialect.row:
            self._add_row(event.attributes)
        else:
            expected = {_LIST: self._dialect.list, _ROW: self._dialect.row}.get(self._depth, "no")
            self._fault(f"{expected} elements", f"the element {shown(name)}", "Remove it: it would be ignored.")
            self._unknown = self._depth
            return False
        return True

    def _open_list(self, attributes: dict[str, str]) -> None:
        names = self._dialect
        self._builder.open_list(
            attributes.get(names.query, ""),
            self._window.line,
            attributes.get(names.search_time),
            attributes.get(names.oov_count),
        )

    def _add_row(self, attributes: dict[str, str]) -> None:
        read = read_detection(attributes, ROW_NAMES)
        if isinstance(read, Detection):
            self._builder.add(read, self._window.line)
            return
        for fault in read:
            self._builder.fault(self._window.line, fault)

    def _fault(self, expected: str, found: str, remedy: str) -> None:
        self._builder.fault(self._window.line, FormatError(expected, found, remedy))


_MOST_PATIENCE = 4096


def xml_window(blocks: Iterator[bytes], line: int = 1) -> Window:
    """Return a window that the scanner can read in, over blocks in UTF-8."""
    return Window(blocks, LOOKAHEAD, line)


def read_xml_run(
    window: Window, file: str, problems: Problems, rows_per_piece: int, system: str | None
) -> Iterator[RunPiece]:
    """Yield the pieces of a whole list of detections. `system` is the name of the run, if given."""
    try:
        root = read_root(window, file, system)
    except FormatError as fault:
        problems.add(file, window.line, fault.expected, fault.found, fault.remedy)
        return
    yield from read_body(window, root, file, problems, rows_per_piece, to_the_end=True)


def read_body(
    window: Window, root: Root, file: str, problems: Problems, rows_per_piece: int, *, to_the_end: bool
) -> Iterator[RunPiece]:
    """The pieces of what follows the root's start tag, or of some whole lists from there (unless `to_the_end`)."""
    builder = PieceBuilder(root.header, file, rows_per_piece, problems)
    try:
        closed = root.closed or (yield from _read_rows(window, root, builder, to_the_end))
        if closed:
            read_end(window)
    except FormatError as fault:
        builder.fault(window.line, fault)
    yield from builder.finish()


def _read_rows(window: Window, root: Root, builder: PieceBuilder, to_the_end: bool) -> Generator[RunPiece, None, bool]:
    """Read lists until the root is closed or, unless `to_the_end`, none are left; return whether it was closed."""
    words = root.dialect.words
    patience = 1
    while True:
        before = builder.rows
        why = builder.scan(window, words)
        if why == CLOSED:
            return True
        if builder.is_full:
            yield builder.take()
        elif why == ODD or (why == MORE and not window.more()):
            if not to_the_end and not builder.inside and not window.fault and window.position == window.end:
                return False
            patience = 1 if builder.rows - before > patience else min(2 * patience, _MOST_PATIENCE)
            odd = OddReader(window, builder, root)
            yield from odd.read(patience)
            if odd.closed:
                return True
