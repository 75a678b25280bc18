"""Lines of delimited values in their ordinary form, from bytes to columns of detections.

An ordinary line has all values and ends in a newline. No value contains a double quote or a carriage return; the caller
checks this. Ids have at least one character, a channel is a number from 0 to 127 in digits, and a decision is YES, NO
or empty. Times and scores are numbers that `kernels.text` reads, and all values are valid.

`scan_lines` stops before any other line: only the caller decides about lines that are not ordinary.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64
from numpy.typing import NDArray

from swsdask.kernels.compilation import NOTHING_NEW, inlined, kernel
from swsdask.kernels.text import (
    DICTIONARY,
    NEWLINE,
    NO,
    NO_ROOM,
    PADDING,
    TEXT,
    YES,
    ZERO,
    are_same,
    eight_times,
    encode,
    first_bytes,
    first_mark,
    marked,
    mixed,
    nearest_float,
    nearest_tick,
    scan_number,
    word_at,
)

SYSTEM, QUERY, DOCUMENT, CHANNEL, START, DURATION, END, SCORE, DECISION, OTHER = range(10)
"""The meaning of a value of a line. The first three are ids."""

POSITION, ROWS, ENTRIES, STATE_SIZE = range(4)
"""The places in `state`: the byte to continue from, the number of filled rows of the columns, and the number of entries
of the dictionary."""

ALL, ODD, ROOM = range(3)
"""Reasons why `scan_lines` stops: it has read all lines; a line is not ordinary; the dictionary is full."""

_MAX_TICKS = 2**31 - 1
_MAX_CHANNEL = 127
_CHANNEL_DIGITS = 9
"""The greatest number of digits of a channel that is read."""


_NOTHING = np.uint64(0)
_YES, _NO = (np.uint64(int.from_bytes(word.tobytes(), "little")) for word in (YES, NO))
_YES_SIZE, _NO_SIZE = len(YES), len(NO)


@inlined()
def _scan_value(text: NDArray[np.uint8], at: int, delimiter: np.uint64, newline: np.uint64) -> tuple[int, np.uint64]:
    """Return the end of the value at `at`, before a delimiter or a newline, and its hash (`kernels.text.mixed`)."""
    key = _NOTHING
    while True:
        word = word_at(text, at)
        ends = marked(word, delimiter) | marked(word, newline)
        if ends != _NOTHING:
            size = first_mark(ends)
            return at + size, mixed(key, first_bytes(word, size))
        key = mixed(key, word)
        at += PADDING


@kernel(
    int64(
        TEXT,
        int64,
        int64[::1],
        int64[::1],
        int32[:, ::1],
        int64[:, ::1],
        int8[::1],
        int32[::1],
        int32[::1],
        float64[::1],
        int8[::1],
        int8[::1],
        *DICTIONARY,
    ),
    **NOTHING_NEW,
)
def scan_lines(
    text: NDArray[np.uint8],
    delimiter: int,
    values: NDArray[np.int64],
    state: NDArray[np.int64],
    codes: NDArray[np.int32],
    before: NDArray[np.int64],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    duration: NDArray[np.int32],
    score: NDArray[np.float64],
    decision: NDArray[np.int8],
    rounded: NDArray[np.int8],
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    ends: NDArray[np.int64],
    arena: NDArray[np.uint8],
) -> int:
    """Read the lines of `text` from `state[POSITION]` on; return the reason for stopping.

    `kernels.text.PADDING` bytes follow the last newline of `text`. `values` is the meaning of each value of a line, in
    order. `state` is read, and updated unless a line is not ordinary. The columns have room for every line. Columns
    without a value in the lines do not change, except the duration if lines have an end instead. `codes` has a row for
    each of the three kinds of ids, which share the dictionary (`kernels.text`). So has `before`, int64 [3, 3]: the
    begin, the size and the code of the id in the previous line. If the dictionary has no room, `state` points to the
    begin of the line, which is then read again.
    """
    at = state[POSITION]
    row = state[ROWS]
    entries = state[ENTRIES]
    before[:] = 0  # An id often equals that of the previous line, and comparing is cheaper than hashing.
    end = len(text) - PADDING
    delimiters, newlines = eight_times(delimiter), eight_times(NEWLINE)
    last = len(values) - 1
    while at < end:
        begin = at
        end_tick = np.int64(-1)
        inexact = 0
        for place in range(len(values)):
            kind = values[place]
            first = at
            if START <= kind <= SCORE:
                at, negative, mantissa, exponent, digits = scan_number(text, at)
                if at < 0:
                    return ODD
                if kind == SCORE:
                    read, number = nearest_float(mantissa, exponent, digits)
                    if not read:
                        return ODD
                    score[row] = -number if negative else number
                else:
                    tick, is_rounded = nearest_tick(mantissa, exponent, digits)
                    if tick < 0 or (negative and digits > 0):
                        return ODD
                    inexact += is_rounded
                    if kind == START:
                        start[row] = tick
                    elif kind == DURATION:
                        duration[row] = tick
                    else:
                        end_tick = tick
            elif (
                kind <= DOCUMENT
                and 0 < before[kind, 1] < end - at
                and text[at + before[kind, 1]] == delimiter
                and are_same(text, at, text, before[kind, 0], before[kind, 1])
            ):
                at += before[kind, 1]
                codes[kind, row] = before[kind, 2]
            else:
                at, key = _scan_value(text, at, delimiters, newlines)
                size = at - first
                if kind <= DOCUMENT:
                    if size == 0:
                        return ODD
                    code = encode(text, first, at, key, entries, slots, hashes, ends, arena)
                    if code == NO_ROOM:
                        state[POSITION] = begin
                        state[ROWS] = row
                        state[ENTRIES] = entries
                        return ROOM
                    entries = max(entries, code + 1)
                    codes[kind, row] = code
                    before[kind, 0] = first
                    before[kind, 1] = size
                    before[kind, 2] = code
                elif kind == CHANNEL:
                    number_of = np.int64(0)
                    if size == 0 or size > _CHANNEL_DIGITS:
                        return ODD
                    for digit_at in range(first, at):
                        digit = np.int64(text[digit_at]) - ZERO
                        if digit < 0 or digit > 9:
                            return ODD
                        number_of = number_of * 10 + digit
                    if number_of > _MAX_CHANNEL:
                        return ODD
                    channel[row] = number_of
                elif kind == DECISION:
                    word = first_bytes(word_at(text, first), min(size, PADDING - 1))
                    is_yes = size == _YES_SIZE and word == _YES
                    if not is_yes and size > 0 and not (size == _NO_SIZE and word == _NO):
                        return ODD  # also for a word that zero bytes follow
                    decision[row] = np.int8(is_yes) - np.int8(size == 0)
            if text[at] != (delimiter if place < last else NEWLINE):
                return ODD
            at += 1
        if end_tick >= 0:
            if end_tick < start[row]:
                return ODD
            duration[row] = end_tick - np.int64(start[row])
        if np.int64(start[row]) + np.int64(duration[row]) > _MAX_TICKS:
            return ODD
        rounded[row] = inexact
        row += 1
    state[POSITION] = at
    state[ROWS] = row
    state[ENTRIES] = entries
    return ALL
