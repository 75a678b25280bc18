"""XML as a stream of events: safe, and in bounded memory however large the file or any part of it is.

The parser is expat, which knows the line of every tag (libxml2 counts only to 65 535). A document type declaration is
an error, so the only entities are the five of XML, and nothing is fetched. Namespace prefixes of elements are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from xml.parsers import expat

from swsdask.formats.files import open_bytes, with_line
from swsdask.formats.text import read_blocks, utf8_blocks, with_newlines
from swsdask.formats.values import FormatError
from swsdask.model.errors import InputError, Problem

MAX_TOKEN = 1 << 20
"""The longest tag, comment or text, in bytes or characters: beyond it memory would not be bounded."""

MAX_DEPTH = 64
MAX_NAMES = 10_000

_STEP = 1 << 16


class Start(NamedTuple):
    """The start tag of an element. `path` has the names from the root to it, `line` is where the tag begins."""

    path: tuple[str, ...]
    line: int
    attributes: dict[str, str]


class End(NamedTuple):
    """The end tag of an element. `text` is its text or, if it has child elements, the first text beside them."""

    path: tuple[str, ...]
    line: int
    text: str


def read_elements(url: str) -> Iterator[Start | End]:
    """Yield the tags of an XML file in order, whatever encoding it declares.

    Raises `InputError` with the line, after the last good tag: for XML that is not well-formed or is cut off, a
    document type declaration, a byte that is invalid in the encoding, a tag, comment or text longer than `MAX_TOKEN`,
    elements deeper than `MAX_DEPTH`, and as `open_bytes` does.
    """
    with open_bytes(url) as source:
        parser = _Parser(url)
        try:
            for block in with_newlines(utf8_blocks(read_blocks(source), xml=True)):
                for begin in range(0, len(block), _STEP):
                    yield from parser.feed(block[begin : begin + _STEP])
            yield from parser.close()
        except InputError as error:
            raise with_line(error, parser.line) from None
        except FormatError as error:
            raise InputError(Problem(url, parser.line, error.expected, error.found, error.remedy)) from None


@dataclass
class _Open:
    """An element without its end tag so far."""

    path: tuple[str, ...]
    has_children: bool = False
    beside_children: str = ""


class _Parser:
    """Expat's callbacks, kept as events."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._names: dict[str, str] = {}
        self._expat = expat.ParserCreate("utf-8", None, self._names)
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._text
        self._expat.StartDoctypeDeclHandler = self._doctype
        self._fed = 0
        self._events: list[Start | End] = []
        self._open: list[_Open] = []
        self._pieces: list[str] = []
        self._length = 0

    @property
    def line(self) -> int:
        """The current line."""
        return self._expat.CurrentLineNumber

    def feed(self, data: bytes) -> Iterator[Start | End]:
        """Yield the events of the next bytes. Raises `InputError` after the last good one."""
        self._fed += len(data)
        yield from self._parse(data, final=False)
        if self._fed - self._expat.CurrentByteIndex > MAX_TOKEN + _STEP:
            raise self._too_much(f"a tag or comment of at most {MAX_TOKEN} bytes")

    def close(self) -> Iterator[Start | End]:
        """Yield the last events. Raises `InputError` if the document is not complete."""
        yield from self._parse(b"", final=True)

    def _parse(self, data: bytes, *, final: bool) -> Iterator[Start | End]:
        fault = None
        try:
            self._expat.Parse(data, final)
        except expat.ExpatError as error:
            fault = self._syntax_fault(error, final)
        except InputError as error:
            fault = error
        yield from self._events
        self._events.clear()
        if fault:
            raise fault

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._names) > MAX_NAMES:
            raise self._too_much(f"at most {MAX_NAMES:,} names of elements and attributes")
        path: tuple[str, ...] = (name.rpartition(":")[2],)
        if self._open:
            self._take_text_beside_children()
            self._open[-1].has_children = True
            path = self._open[-1].path + path
        if len(path) > MAX_DEPTH:
            raise self._too_much(f"elements at most {MAX_DEPTH} deep")
        self._open.append(_Open(path))
        self._events.append(Start(path, self.line, attributes))

    def _end(self, name: str) -> None:  # noqa: ARG002
        element = self._open[-1]
        if element.has_children:
            self._take_text_beside_children()
        text = element.beside_children if element.has_children else self._take_text()
        self._open.pop()
        self._events.append(End(element.path, self.line, text))

    def _text(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        if self._length > MAX_TOKEN:
            raise self._too_much(f"a text of at most {MAX_TOKEN} characters")

    def _take_text(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._length = 0
        return text

    def _take_text_beside_children(self) -> None:
        element = self._open[-1]
        element.beside_children = element.beside_children or self._take_text().strip()
        self._take_text()

    def _doctype(self, name: str, *_: object) -> None:
        remedy = "Remove the declaration: nothing that it could define is read."
        expected = "no document type declaration"
        raise InputError(Problem(self._url, self.line, expected, f"<!DOCTYPE {name} ...>", remedy))

    def _syntax_fault(self, error: expat.ExpatError, final: bool) -> InputError:
        if final:
            inside = f" inside <{self._open[-1].path[-1]}>" if self._open else ""
            remedy = "The file was cut off: copy or write it again."
            return InputError(Problem(self._url, error.lineno, "more XML", f"the end of the file{inside}", remedy))
        found = expat.ErrorString(error.code)
        remedy = "Correct the file there; what follows was not read."
        return InputError(Problem(self._url, error.lineno, "well-formed XML", found, remedy))

    def _too_much(self, expected: str) -> InputError:
        return InputError(Problem(self._url, self.line, expected, "more", "Check that it is the right file."))
