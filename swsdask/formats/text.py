"""Text that may not fit into memory: blocks of UTF-8, whole lines, and fields between blanks.

Blocks are checked, or converted from the declared encoding. Lines are read in blocks of whole lines, so files may have
any length. They are in UTF-8 unless a byte order mark says UTF-16 or UTF-32, or another encoding is given.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdask.formats.files import open_bytes, with_line, without_content
from swsdask.formats.values import FormatError, shown
from swsdask.model.errors import InputError, Problem

BLOCK = 1 << 20
"""Bytes read at a time: enough to amortise the cost of a call, but few enough to stay in a processor's cache."""

LONGEST = 1 << 24
"""The longest text that is kept until the end of a tag: it bounds the memory."""

_NEWLINE = 10
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED = {
    "UTF-32LE": re.compile(rb"([\t\n\r -~]\0{3}){2}"),
    "UTF-32BE": re.compile(rb"(\0{3}[\t\n\r -~]){2}"),
    "UTF-16LE": re.compile(rb"([\t\n\r -~]\0){2}"),
    "UTF-16BE": re.compile(rb"(\0[\t\n\r -~]){2}"),
}
"""The first two characters of a text without a byte order mark, if they are ASCII."""
_DECLARATION = re.compile(rb"""<\?xml\s[^>]{,1000}?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]{,40})["']""")
_LIST = re.compile(rb"""<(?:kwlist|termlist)\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]{,40})["']""")
_HEAD = 2048
"""The part of a query list in which its root element is searched."""
_KNOWN = re.compile(
    r"ascii|utf-8|iso8859-\d+|cp125\d|cp437|cp850|koi8-[rtu]|mac-roman|gb2312|gbk|gb18030|big5|euc_(jp|kr)|shift_jis"
)
"""The encodings of text that may be declared, as Python's codecs name them."""


def read_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a stream in blocks of `BLOCK`; the last is shorter.

    Raises the stream's `InputError` after the last good byte.
    """
    missing = 0
    while not missing:
        missing = BLOCK
        pieces: list[bytes] = []
        fault: InputError | None = None
        try:
            while missing and (piece := stream.read(missing)):
                missing -= len(piece)
                pieces.append(piece)
        except InputError as error:
            fault = error
        if pieces:
            yield b"".join(pieces)
        if fault:
            raise fault


def with_newlines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks of a text whose lines end in carriage returns alone, with newlines in their place; others unchanged.

    The first block decides.
    """
    first = next(blocks, b"")
    if first.endswith(b"\r"):  # its newline may be in the next block
        first += next(blocks, b"")
    if b"\r" not in first or b"\n" in first:
        yield first
        yield from blocks
        return
    for block in chain((first,), blocks):
        yield block.replace(b"\r", b"\n")


def utf8_blocks(blocks: Iterator[bytes], *, xml: bool) -> Iterator[bytes]:
    """Convert blocks in any encoding to UTF-8, without a byte order mark and cut between characters.

    The encoding is that of a byte order mark, or else (in `xml`) that of the declaration, which is changed to UTF-8, or
    else that of the attribute `encoding` of a query list. Raises `FormatError` after the last good block if a byte is
    invalid in the encoding, or if a declared encoding is unknown.
    """
    first = next(blocks, b"")
    mark, encoding = _marked(first) or (b"", _declared(first) if xml else "utf-8")
    texts = decode_blocks(chain((first[len(mark) :],), blocks), encoding)
    if xml:
        head = next(texts, b"")
        declaration = _DECLARATION.match(head)
        if declaration and _python_name(declaration[1].decode()) != "utf-8":
            head = head[: declaration.start(1)] + b"UTF-8" + head[declaration.end(1) :]
        yield head
    yield from texts


def marked_encoding(first: bytes) -> str:
    """Return the encoding of a text that begins with `first`, by its byte order mark; "utf-8" without one.

    Raises `FormatError` if it is in UTF-16 or UTF-32 without a byte order mark.
    """
    unmarked = next((encoding for encoding, begin in _UNMARKED.items() if begin.match(first)), None)
    if unmarked:
        remedy = f"Save the file as UTF-8: iconv -f {unmarked} -t UTF-8."
        raise FormatError("text in UTF-8", f"text in {unmarked} without a byte order mark", remedy)
    marked = _marked(first)
    return marked[1] if marked else "utf-8"


def utf8_begin(first: bytes) -> int | None:
    """The offset of the text in an XML file that begins with `first`, if it is in UTF-8 with newlines; else None."""
    mark, encoding = _marked(first) or (b"", "utf-8")
    if b"\r" in first and b"\n" not in first:
        return None
    declaration = _DECLARATION.match(first, len(mark))
    if encoding != "utf-8" or (declaration and _python_name(declaration[1].decode()) != "utf-8"):
        return None
    return len(mark)


def _marked(first: bytes) -> tuple[bytes, str] | None:
    return next(((mark, encoding) for mark, encoding in _MARKS if first.startswith(mark)), None)


def _declared(first: bytes) -> str:
    declaration = _DECLARATION.match(first)
    if not declaration:
        listed = _LIST.search(first[:_HEAD])
        return known_encoding(listed[1].decode()) if listed else "utf-8"
    encoding = _python_name(declaration[1].decode())
    if not _KNOWN.fullmatch(encoding):
        found = shown(declaration[1].decode())
        raise FormatError("an encoding of text", found, "Save the file as UTF-8, and declare that.")
    return encoding


def declared_encoding(first: bytes) -> str:
    """Return the encoding of an XML file that begins with `first`, as Python's codecs name it.

    It is "utf-8" if the file declares none. Raises `FormatError` if a declared encoding is unknown.
    """
    marked = _marked(first)
    return marked[1] if marked else _declared(first)


def known_encoding(name: str) -> str:
    """Return the encoding that a query list declares, as Python's codecs name it; "utf-8" if it is not one of text."""
    found = _python_name(name)
    return found if _KNOWN.fullmatch(found) else "utf-8"


def _python_name(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""


def decode_blocks(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Convert blocks to UTF-8. Raises `FormatError` after the last good byte."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    for block in chain(blocks, (b"",)):
        if encoding == "utf-8" and block.isascii() and block and not decoder.getstate()[0]:
            yield block
            continue
        try:
            yield decoder.decode(block, not block).encode()
        except UnicodeDecodeError as error:
            yield error.object[: error.start].decode(encoding).encode()
            found = f"the byte 0x{error.object[error.start]:02x}"
            remedy = "Save the file as UTF-8, or declare its encoding."
            raise FormatError(f"text in {encoding}", found, remedy) from None


class Window:
    """The current part of a text: `data` is that part, of `end` bytes, followed by some zero bytes.

    `position` is the reading position, `line` (from 1) its line. `fault` is the error that ended the text early, if
    any.
    """

    def __init__(self, blocks: Iterator[bytes], padding: int, line: int = 1) -> None:
        self._blocks = blocks
        self._padding = bytes(padding)
        self._passed = 0
        self.data = self._padding
        self.end = 0
        self.position = 0
        self.line = line
        self.fault: FormatError | None = None

    @property
    def offset(self) -> int:
        """The number of bytes that were read."""
        return self._passed + self.position

    def more(self) -> bool:
        """Drop what was read and append another block; False at the end, or if too much is kept already."""
        held = self.data[self.position : self.end]
        if len(held) > LONGEST:
            expected = f"a tag or comment of at most {LONGEST >> 20} MiB"
            self.fault = FormatError(
                expected, f"one of more than {len(held) >> 20} MiB", "Check that it is the right file."
            )
        if self.fault:
            return False
        try:
            block = next((block for block in self._blocks if block), b"")
        except FormatError as fault:
            self.fault = fault
            return False
        except InputError as error:
            problem = error.problems[0]
            self.fault = FormatError(problem.expected, problem.found, problem.remedy)
            return False
        self._passed += self.position
        self.data = b"".join((held, block, self._padding))
        self.end = len(held) + len(block)
        self.position = 0
        return bool(block)

    def next_tag_end(self) -> bytes | None:
        """Move past the next `>`, and return the bytes up to there; None, without moving, if there is none."""
        searched = 0
        while True:
            found = self.data.find(b">", self.position + searched, self.end)
            if found >= 0:
                return self.take(found + 1 - self.position)
            searched = self.end - self.position
            if not self.more():
                return None

    def take(self, size: int) -> bytes:
        """Move on by `size` bytes, and return them."""
        passed = self.data[self.position : self.position + size]
        self.line += passed.count(b"\n")
        self.position += size
        return passed

    def skip(self, size: int) -> None:
        """Move on by `size` bytes: faster than `take` for many bytes."""
        passed = np.frombuffer(self.data, np.uint8)[self.position : self.position + size]
        self.line += int(np.count_nonzero(passed == _NEWLINE))
        self.position += size


MAX_LINE = 1 << 20
"""The longest line, in bytes: beyond it memory would not be bounded."""


class Lines(NamedTuple):
    """Some whole lines in UTF-8, each ended by a newline. `first` is the number of the first of them, from 1."""

    first: int
    data: bytes


def read_lines(url: str, encoding: str = "utf-8") -> Iterator[Lines]:
    """Yield the lines of a text file in order, at most about 2 MiB at a time. A byte order mark is skipped.

    The encoding is that of the mark, without one `encoding`. Lines may end in carriage returns alone, see
    `with_newlines`.

    Raises `InputError` after the last good line: for a line longer than `MAX_LINE` (without reading all of it), for a
    byte that is invalid in the encoding, for a file with only a byte order mark, for UTF-16 and UTF-32 without one;
    and, with the current line, as `open_bytes` does.
    """
    with open_bytes(url) as source:
        yield from whole_lines(url, with_newlines(_unchecked(read_blocks(source), encoding)))


def _unchecked(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Convert blocks to UTF-8. Those in UTF-8 are not checked, because lines are."""
    first = next(blocks, b"")
    marked_encoding(first)
    mark, encoding = _marked(first) or (b"", encoding)
    blocks = chain((first.removeprefix(mark),), blocks)
    yield from blocks if encoding == "utf-8" else decode_blocks(blocks, encoding)


def whole_lines(url: str, blocks: Iterable[bytes], line: int = 1) -> Iterator[Lines]:
    """Yield the lines in some blocks of a file in UTF-8; the first block begins with `line`.

    Raises as `read_lines` does.
    """
    held = b""
    try:
        for block in blocks:
            block = block if line > 1 or held else block.removeprefix(codecs.BOM_UTF8)
            end = block.rfind(b"\n") + 1
            lines = b"".join((held, memoryview(block)[:end] if end else block))
            if len(lines) > MAX_LINE and lines.find(b"\n", 0, MAX_LINE + 1) < 0:
                remedy = "Is this the file that was meant? End every record by a newline."
                raise InputError(Problem(url, line, f"a line of at most {MAX_LINE} bytes", "a longer one", remedy))
            held = block[end:] if end else lines
            if end:
                yield from _check_lines(url, line, lines)
                # bytes.count is several times slower.
                line += int(np.count_nonzero(np.frombuffer(lines, np.uint8) == ord("\n")))
    except InputError as error:
        raise with_line(error, line) from None
    except FormatError as error:
        raise InputError(Problem(url, line + held.count(b"\n"), error.expected, error.found, error.remedy)) from None
    if held:
        yield from _check_lines(url, line, held + b"\n")
    elif line == 1:
        raise without_content(url)


def _check_lines(url: str, first: int, data: bytes) -> Iterator[Lines]:
    """Yield the lines of `data` up to the first byte that is not UTF-8, where `InputError` is raised."""
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as error:
        good = data[: data.rfind(b"\n", 0, error.start) + 1]
        if good:
            yield Lines(first, good)
        line = first + good.count(b"\n")
        found = f"the byte 0x{data[error.start]:02x}"
        raise InputError(Problem(url, line, "text in UTF-8", found, "Save the file as UTF-8.")) from None
    if data:
        yield Lines(first, data)


_BLANKS = re.compile(rb"[ \t\r\f\v]+")
_OUTER_BLANK = re.compile(rb"^ | $", re.MULTILINE)
_UNTIDY = (b"\t", b"\r", b"\f", b"\v", b"  ", b" \n", b"\n ")


def tidy(data: bytes) -> bytes:
    """Separate the fields of lines by single blanks."""
    if data.startswith(b" ") or any(mark in data for mark in _UNTIDY):
        data = _OUTER_BLANK.sub(b"", _BLANKS.sub(b" ", data))
    return data


def lines_with_text(text: bytes) -> NDArray[np.int64]:
    """Return the numbers, from 0, of the lines that are not empty."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    return np.flatnonzero(np.diff(ends, prepend=-1) > 1)
