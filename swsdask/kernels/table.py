"""Lines of delimited values in their ordinary form, from bytes to columns of detections.

Ordinary is: every line has all values, and ends in a newline, before which there may be a carriage return; no value has
a double quote. Ids have a character at least, a channel is a number from 0 to 127 in digits, a decision is YES, NO or
empty; times and scores are numbers that `kernels.text` reads, and nothing is wrong with any of them.

In front of anything else `scan_lines` stops: the caller is the only judge of what is not ordinary.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, njit
from numpy.typing import NDArray

from swsdask.kernels.compilation import kernel
from swsdask.kernels.text import (
    DICTIONARY,
    HASH_FACTOR,
    HASH_SEED,
    NEWLINE,
    NO,
    NO_ROOM,
    QUOTE,
    RETURN,
    TEXT,
    YES,
    ZERO,
    encode,
    nearest_float,
    nearest_tick,
    scan_number,
)

SYSTEM, QUERY, DOCUMENT, CHANNEL, START, DURATION, END, SCORE, DECISION, OTHER = range(10)
"""What a value of a line is. The first three are ids, each with a dictionary of its own."""

POSITION, ROWS, STATE_SIZE = 3, 4, 5
"""The places of `state` behind the numbers of entries of the three dictionaries."""

ALL, ODD = -1, -2
"""Why `scan_lines` stops, if not for room in a dictionary."""

_MAX_TICKS = 2**31 - 1
_MAX_CHANNEL = 127
_CHANNEL_DIGITS = 9
"""Digits of a channel that are read at most."""


@njit()
def _is_again(text: NDArray[np.uint8], at: int, first: int, size: int, delimiter: int) -> bool:
    """Whether a value of `size` bytes at `first`, if there is one, stands at `at` again, before a delimiter."""
    if size == 0 or at + size >= len(text) or text[at + size] != delimiter:
        return False
    same = 0
    while same < size and text[at + same] == text[first + same]:
        same += 1
    return same == size


@njit()
def _is_word(text: NDArray[np.uint8], first: int, size: int, word: NDArray[np.uint8]) -> bool:
    """Whether a value of `size` bytes at `first` is a word."""
    same = size == len(word)
    for at in range(len(word)):
        same = same and text[first + at] == word[at]
    return same


@kernel(
    int64(
        TEXT,
        int64,
        int64[::1],
        int64[::1],
        int32[:, ::1],
        int8[::1],
        int32[::1],
        int32[::1],
        float64[::1],
        int8[::1],
        int8[::1],
        *DICTIONARY,
        *DICTIONARY,
        *DICTIONARY,
    )
)
def scan_lines(
    text: NDArray[np.uint8],
    delimiter: int,
    values: NDArray[np.int64],
    state: NDArray[np.int64],
    codes: NDArray[np.int32],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    duration: NDArray[np.int32],
    score: NDArray[np.float64],
    decision: NDArray[np.int8],
    rounded: NDArray[np.int8],
    system_slots: NDArray[np.int32],
    system_hashes: NDArray[np.uint64],
    system_ends: NDArray[np.int64],
    system_arena: NDArray[np.uint8],
    query_slots: NDArray[np.int32],
    query_hashes: NDArray[np.uint64],
    query_ends: NDArray[np.int64],
    query_arena: NDArray[np.uint8],
    document_slots: NDArray[np.int32],
    document_hashes: NDArray[np.uint64],
    document_ends: NDArray[np.int64],
    document_arena: NDArray[np.uint8],
) -> int:
    """Read the lines of `text` from `state[POSITION]` on, until something stops it; returns why.

    `text` ends in a newline. `values` say what each value of a line is, in order. `state` goes in and comes out. The
    columns have room for every line; those without a value in the lines are left as they are, but for the duration
    where there is an end instead. `codes` has a row for each of the three dictionaries (`kernels.text`); the number of
    the one that is full is returned if there is no room in it, and what is there of the line is read again.
    """
    at = state[POSITION]
    row = state[ROWS]
    # An id is often that of the line before, which takes less to see than to hash.
    before = np.zeros((3, 3), np.int64)
    while at < len(text):
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
            elif kind <= DOCUMENT and _is_again(text, at, before[kind, 0], before[kind, 1], delimiter):
                at += before[kind, 1]
                codes[kind, row] = before[kind, 2]
            else:
                key = HASH_SEED
                number_of = np.int64(0)
                while text[at] != delimiter and (text[at] > QUOTE or text[at] not in (NEWLINE, RETURN, QUOTE)):
                    key = (key ^ np.uint64(text[at])) * HASH_FACTOR
                    at += 1
                size = at - first
                if kind <= DOCUMENT:
                    if size == 0:
                        return ODD
                    entries = state[kind]
                    if kind == QUERY:
                        code = encode(text, first, at, key, entries, query_slots, query_hashes, query_ends, query_arena)
                    elif kind == DOCUMENT:
                        code = encode(
                            text,
                            first,
                            at,
                            key,
                            entries,
                            document_slots,
                            document_hashes,
                            document_ends,
                            document_arena,
                        )
                    else:
                        code = encode(
                            text, first, at, key, entries, system_slots, system_hashes, system_ends, system_arena
                        )
                    if code == NO_ROOM:
                        state[POSITION] = begin
                        state[ROWS] = row
                        return int(kind)
                    codes[kind, row] = code
                    before[kind, 0] = first
                    before[kind, 1] = size
                    before[kind, 2] = code
                    state[kind] = max(entries, code + 1)
                elif kind == CHANNEL:
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
                    if size == 0:
                        decision[row] = -1
                    elif _is_word(text, first, size, NO):
                        decision[row] = 0
                    elif _is_word(text, first, size, YES):
                        decision[row] = 1
                    else:
                        return ODD
            if place < len(values) - 1:
                if text[at] != delimiter:
                    return ODD
            else:
                if text[at] == RETURN:
                    at += 1
                if text[at] != NEWLINE:
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
    return ALL
