"""Rows that the scanner does not recognise, read by lxml, until the scanner can go on.

lxml is fed up to one `>` at a time. Where a tag of a row, a list or the root ends, it has just been told so, and has
seen nothing beyond: that is a place where the scanner can go on, or the next parser, which is first fed the tags that
are open.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from lxml import etree

from swsdask.formats.run_builder import PieceBuilder
from swsdask.formats.run_dialect import ROW_NAMES
from swsdask.formats.run_text import Window
from swsdask.formats.run_values import BLANKS, Detection, FormatError, read_detection, shown
from swsdask.formats.run_xml_root import Root, cut_off, feed, local_name, syntax_fault
from swsdask.model.runs import RunPiece

_ROOT, _LIST, _ROW = 0, 1, 2
"""How deep the elements of a list of detections stand."""


class _Start(NamedTuple):
    """The start tag of an element."""

    tag: str
    attributes: dict[str, str]
    declares_namespaces: bool


class _Other(Enum):
    END = "an end tag"
    TEXT = "text that is not blank"


class _Target:
    """What lxml tells of its events: keeps them until they are asked for."""

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
    """A parser of a document without a document type: there is no entity that it could expand but XML's own five."""
    return etree.XMLParser(target=target, resolve_entities=True, no_network=True, load_dtd=False, encoding="utf-8")


def read_end(window: Window) -> None:
    """Make sure that nothing but blanks and comments is left behind the root element. Raises `FormatError`."""
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


class OddReader:
    """Reads rows in any form of XML from where `window` stands. `closed` tells whether the root element has ended.

    A parser that was given an element with namespaces of its own is kept until that element ends.
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
        """Read until at least `patience` rows were passed and the scanner can go on. Yields pieces as they fill.

        Raises `FormatError` where nothing more can be read.
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
            for event in self._target.events:
                resumable = self._take(event) and self._kept is None
                if self._builder.is_full:
                    yield self._builder.take()
            self._target.events.clear()

    def _take(self, event: _Start | _Other) -> bool:
        """Take in an event; whether the scanner can go on behind it."""
        if event is _Other.TEXT:
            if self._unknown is None:
                self._fault("only elements", "text between them", "Take the text out, or put it in a comment.")
            return False
        if isinstance(event, _Start):
            if event.declares_namespaces and self._kept is None:
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
            self._fault(f"{expected} elements", f"the element {shown(name)}", "Take it out: it would be ignored.")
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
