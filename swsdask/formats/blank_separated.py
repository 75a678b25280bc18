"""Lines of fields with blanks between them."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

_BLANKS = re.compile(rb"[ \t\r\f\v]+")
_OUTER_BLANK = re.compile(rb"^ | $", re.MULTILINE)
_UNTIDY = (b"\t", b"\r", b"\f", b"\v", b"  ", b" \n", b"\n ")


def tidy(data: bytes) -> bytes:
    """The same lines, their fields one blank apart."""
    if data.startswith(b" ") or any(mark in data for mark in _UNTIDY):
        data = _OUTER_BLANK.sub(b"", _BLANKS.sub(b" ", data))
    return data


def lines_with_text(text: bytes) -> NDArray[np.int64]:
    """The numbers, from 0, of the lines that are not empty."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    return np.flatnonzero(np.diff(ends, prepend=-1) > 1)
