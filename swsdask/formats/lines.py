"""Text files line by line, in blocks of whole lines however long the file is: UTF-8 unless another encoding is told."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NamedTuple

from swsdask.errors import InputError, Problem
from swsdask.formats.noting import reached
from swsdask.formats.opening import open_bytes
from swsdask.formats.run_text import decoded_blocks, read_blocks
from swsdask.formats.run_values import FormatError

MAX_LINE = 1 << 20
"""The longest line, in bytes: beyond it memory would not be bounded."""


class Lines(NamedTuple):
    """Some whole lines in UTF-8, each ended by a newline. `first` is the number of the first of them, from 1."""

    first: int
    data: bytes


def read_lines(url: str, encoding: str = "utf-8") -> Iterator[Lines]:
    """The lines of a text file in order, at most about 2 MiB at a time. A byte order mark is passed over.

    Raises `InputError` behind the last good line: where a line is longer than `MAX_LINE` (found without reading it
    whole), where a byte is not of the encoding, and as `open_bytes` does, then with the line that was reached.
    """
    line, held = 1, b""
    with open_bytes(url) as source:
        try:
            blocks = read_blocks(source)
            for block in blocks if encoding == "utf-8" else decoded_blocks(blocks, encoding):
                held += block if line > 1 or held else block.removeprefix(codecs.BOM_UTF8)
                if len(held) > MAX_LINE and held.find(b"\n", 0, MAX_LINE + 1) < 0:
                    remedy = "Is this the file that was meant? End every record by a newline."
                    raise InputError(Problem(url, line, f"a line of at most {MAX_LINE} bytes", "a longer one", remedy))
                end = held.rfind(b"\n") + 1
                yield from _checked(url, line, held[:end])
                line += held.count(b"\n")
                held = held[end:]
        except InputError as error:
            raise reached(error, line) from None
        except FormatError as error:
            raise InputError(
                Problem(url, line + held.count(b"\n"), error.expected, error.found, error.remedy)
            ) from None
    if held:
        yield from _checked(url, line, held + b"\n")


def _checked(url: str, first: int, data: bytes) -> Iterator[Lines]:
    """The lines of `data` up to the first byte that is not UTF-8, where `InputError` is raised."""
    try:
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
