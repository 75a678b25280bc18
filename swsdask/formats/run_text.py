"""Text that is too long for memory, as blocks of bytes in UTF-8: checked, or made from the declared encoding."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

from swsdask.errors import InputError
from swsdask.formats.run_values import FormatError, shown

BLOCK = 1 << 20
"""Bytes read at a time: enough to hide the cost of a call, few enough to stay in a processor's cache."""

LONGEST = 1 << 24
"""The longest text that is held in wait for the end of a tag: beyond it memory would not be bounded."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(r"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_KNOWN = re.compile(
    r"ascii|utf-8|iso8859-\d+|cp125\d|cp437|cp850|koi8-[rtu]|mac-roman|gb2312|gbk|gb18030|big5|euc_(jp|kr)|shift_jis"
)
"""The encodings of text that may be declared, as Python's codecs name them."""


def read_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream in blocks of `BLOCK`; the last is shorter.

    Raises the stream's `InputError` behind the last good byte.
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


def utf8_blocks(blocks: Iterator[bytes], *, xml: bool) -> Iterator[bytes]:
    """Blocks in whatever encoding as blocks in UTF-8 without a byte order mark, cut between characters.

    A byte order mark tells the encoding, or else (in `xml`) the declaration, which is made to tell UTF-8. Raises
    `FormatError` behind the last good block if a byte is none of the encoding, or if the encoding is not known.
    """
    first = next(blocks, b"")
    encoding = "utf-8"
    for mark, marked in _MARKS:
        if first.startswith(mark):
            first, encoding = first[len(mark) :], marked
            break
    else:
        declared = _DECLARED.match(first[:1024].decode("latin-1")) if xml else None
        if declared:
            encoding = _known_encoding(declared[1])
    texts = _decoded(first, blocks, encoding)
    if xml and encoding != "utf-8":
        head = next(texts, b"").decode()
        declared = _DECLARED.match(head)
        if declared:
            head = head[: declared.start(1)] + "UTF-8" + head[declared.end(1) :]
        yield head.encode()
    yield from texts


def _known_encoding(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError:
        known = ""
    if not _KNOWN.fullmatch(known):
        raise FormatError("an encoding of text", shown(name), "Save the file as UTF-8, and declare that.")
    return known


def _decoded(first: bytes, blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    waiting = b""
    block: bytes | None = first
    while block is not None:
        if encoding == "utf-8" and not waiting and block.isascii():
            yield block
            block = next(blocks, None)
            continue
        following = next(blocks, None)
        try:
            if encoding == "utf-8":
                block = waiting + block
                _, used = codecs.utf_8_decode(block, "strict", following is None)
                waiting = block[used:]
                yield block[:used]
            else:
                yield decoder.decode(block, following is None).encode()
        except UnicodeDecodeError as error:
            yield error.object[: error.start].decode(encoding).encode()
            wrong = error.object[error.start]
            remedy = "Save the file as UTF-8, or declare the encoding that it has."
            raise FormatError(f"text in {encoding}", f"the byte 0x{wrong:02x}", remedy) from None
        block = following


class Window:
    """The part of a text that is at hand: `data` is that part and some bytes of 0, of which `end` are text.

    `position` is where reading stands within it, `line` (from 1) the line of that position. `fault` is what ended the
    text too early, if anything did.
    """

    def __init__(self, blocks: Iterator[bytes], padding: int, line: int = 1) -> None:
        self._blocks = blocks
        self._padding = bytes(padding)
        self.data = self._padding
        self.end = 0
        self.position = 0
        self.line = line
        self.fault: FormatError | None = None

    def more(self) -> bool:
        """Let go of what was read and take in another block; False if there is none, or if too much is held already."""
        held = self.data[self.position : self.end]
        if len(held) > LONGEST:
            expected = f"a tag or comment of at most {LONGEST >> 20} MiB"
            self.fault = FormatError(
                expected, f"one of more than {len(held) >> 20} MiB", "Is this the file that was meant?"
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
        self.data = b"".join((held, block, self._padding))
        self.end = len(held) + len(block)
        self.position = 0
        return bool(block)

    def next_tag_end(self) -> bytes | None:
        """Move on behind the next `>`, and return what was passed; None, unmoved, if there is none."""
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
        self.position += size
        self.line += passed.count(b"\n")
        return passed
