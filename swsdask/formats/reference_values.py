"""The values of reference files as text: documents, and stretches of their time in decimal seconds."""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import NamedTuple

from swsdask.formats.run_values import BLANKS, FormatError, shown
from swsdask.model.ids import document_fault, document_id
from swsdask.model.ticks import MAX_TICKS, TICKS_PER_SECOND, ticks

_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?0*[0-9]{1,2})?")
_EXACT = Context(prec=400)
"""Enough digits for any sum of what `_DECIMAL` matches."""


class Span(NamedTuple):
    """`start` and `end` in ticks; `rounded` counts which of them were finer than a tick."""

    start: int
    end: int
    rounded: int


def read_document(filename: str) -> str:
    """The id of the document that an audio file name names. Raises `FormatError`."""
    wrong = document_fault(filename)
    if wrong:
        raise FormatError("the name of an audio file", wrong, "Give it a plain name.")
    return document_id(filename)


def read_span(start: str, duration: str) -> Span:
    """The exact start and end, each rounded once, half to even. Raises `FormatError` for the first that is amiss.

    So stretches that touch keep touching, however fine their times. A duration of zero is none of this function's
    faults: words may have it.
    """
    first, length = _seconds(start, "start"), _seconds(duration, "duration")
    begin, begin_rounded = ticks(first)
    end, end_rounded = ticks(_EXACT.add(first, length))
    if end > MAX_TICKS:
        expected = f"an end of at most {MAX_TICKS / TICKS_PER_SECOND} seconds"
        raise FormatError(expected, f"start {start} and duration {duration}", "Check their unit: it must be seconds.")
    return Span(begin, end, begin_rounded + end_rounded)


def _seconds(text: str, name: str) -> Decimal:
    match = _DECIMAL.fullmatch(text.strip(BLANKS))
    if not match:
        raise FormatError(f"a {name} in seconds", shown(text), "Write it as a decimal number.")
    seconds = Decimal(match[0])
    if seconds < 0:
        raise FormatError(f"a {name} of 0 or more seconds", shown(text), f"Mend the {name}.")
    if seconds * TICKS_PER_SECOND > 2 * MAX_TICKS:
        expected = f"a {name} of at most {MAX_TICKS / TICKS_PER_SECOND} seconds"
        raise FormatError(expected, shown(text), "Check its unit: it must be seconds.")
    return seconds
