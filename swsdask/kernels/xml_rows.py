"""Detection rows of NIST's XML in their ordinary form, from bytes to columns.

Ordinary is: UTF-8; between tags nothing but blanks; lists `<LIST ID="..." TIME="..." OOV="...">` and rows `<ROW
file="..." channel="..." tbeg="..." dur="..." score="..." decision="..."/>` or `...></ROW>`, their attributes in any
order, each at most once, in single or double quotes; `</LIST>`, `</ROOT>`. No references, `<` or control characters in
values. A row has all its attributes (the decision may be absent, if it is from every row) and nothing is wrong with any
of them; it may have others, which are passed over, under names in ASCII that have to do with no namespace.

In front of anything else `scan_rows` stops, and leaves it to the caller, who is the only judge of what is not ordinary.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, njit, uint8
from numpy.typing import NDArray

from swsdask.kernels.decimal_text import TEXT
from swsdask.kernels.dictionary import DICTIONARY, NO_ROOM, encode
from swsdask.kernels.xml_tags import (
    LIST_WORD,
    ROOT_WORD,
    ROW_WORD,
    after_blanks,
    after_word,
    scan_list_tag,
    scan_row_tag,
)

MORE, ODD, ROOM, DRAIN, CLOSED = range(5)
"""Why `scan_rows` stopped: the text ends within a construct; something is not ordinary; the columns or the dictionary
are full; `lists` or `unread` are full; the root element was closed."""

POSITION, LINE, INSIDE, QUERY, ROWS, DOCUMENTS, LISTS, UNREAD, ROUNDED, DECIDED = range(10)
"""The places in `state`: the byte to go on from, and its line; 1 inside a list; the query code of the latest list;
filled rows of the columns, of the dictionary, of `lists` and of `unread`; rounded times; whether rows have decisions
(-1: not known yet)."""

STATE_SIZE = 10

_COLUMNS = (int32[::1], int32[::1], int8[::1], int32[::1], int32[::1], float64[::1], int8[::1])


@njit()
def _reason(text: NDArray[np.uint8], at: int, end: int) -> int:
    """MORE if the construct at `at` may go on beyond `end`, else ODD."""
    while at < end:
        if text[at] == 62:
            return ODD
        at += 1
    return MORE


@njit(
    int64(TEXT, int64, uint8[:, ::1], int64[::1], *_COLUMNS, *DICTIONARY, int64[::1], int64[:, ::1], int64[:, ::1]),
    cache=True,
    nogil=True,
)
def scan_rows(
    text: NDArray[np.uint8],
    end: int,
    words: NDArray[np.uint8],
    state: NDArray[np.int64],
    query: NDArray[np.int32],
    document: NDArray[np.int32],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    duration: NDArray[np.int32],
    score: NDArray[np.float64],
    decision: NDArray[np.int8],
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    ends: NDArray[np.int64],
    arena: NDArray[np.uint8],
    document_lines: NDArray[np.int64],
    lists: NDArray[np.int64],
    unread: NDArray[np.int64],
) -> int:
    """Read ordinary rows and lists of text[:end] from `state[POSITION]` on, until something stops it; returns why.

    `text` is uint8, with `xml_tags.LOOKAHEAD` bytes of 0 behind `end`; `words` are `xml_tags.pack_words`; `state`
    int64 [STATE_SIZE] goes in and comes out. The columns are those of `model.runs.RunPiece`; `slots`, `hashes`,
    `ends`, `arena` are the dictionary of documents (`kernels.dictionary`), `document_lines` int64 the line where each
    entry first stands. Every list opened is given the next query code, and in `lists`, int64 [n, 7], where the values
    of its id, search time and oov count begin and end (-1: absent), and its line. `unread`, int64 [n, 3], is given
    the row, begin and end of each score that is finite, but for the caller to read.
    """
    position = state[POSITION]
    line = state[LINE]
    inside = state[INSIDE]
    current = state[QUERY]
    row = state[ROWS]
    documents = state[DOCUMENTS]
    n_lists = state[LISTS]
    n_unread = state[UNREAD]
    rounded = state[ROUNDED]
    decided = state[DECIDED]
    while True:
        if row == len(query):
            why = ROOM
            break
        position, lines = after_blanks(text, position)
        line += lines
        if text[position] != 60:
            why = ODD if position < end else MORE
            break
        if text[position + 1] == 47:
            at = after_word(text, position + 2, words, LIST_WORD if inside else ROOT_WORD)
            if at < 0 or text[at] != 62:
                why = _reason(text, position, end)
                break
            position = at + 1
            if not inside:
                why = CLOSED
                break
            inside = 0
        elif not inside:
            if n_lists == len(lists):
                why = DRAIN
                break
            at = after_word(text, position + 1, words, LIST_WORD)
            lines = 0
            if at >= 0:
                at, lines = scan_list_tag(text, at, words, lists[n_lists, :6])
            if at < 0:
                why = _reason(text, position, end)
                break
            line += lines
            lists[n_lists, 6] = line
            n_lists += 1
            current += 1
            inside = 1
            position = at
        else:
            at = after_word(text, position + 1, words, ROW_WORD)
            if at < 0:
                why = _reason(text, position, end)
                break
            if n_unread == len(unread):
                why = DRAIN
                break
            (
                at,
                lines,
                file_begin,
                file_end,
                key,
                row_channel,
                row_start,
                row_duration,
                row_rounded,
                row_score,
                unread_begin,
                unread_end,
                row_decision,
            ) = scan_row_tag(text, at, words)
            has_decision = 1 if row_decision >= 0 else 0
            if at < 0 or (decided >= 0 and decided != has_decision):
                why = _reason(text, position, end)
                break
            code = encode(text, file_begin, file_end, key, documents, slots, hashes, ends, arena)
            if code == NO_ROOM:
                why = ROOM
                break
            line += lines
            if code == documents:
                document_lines[code] = line
                documents += 1
            if unread_begin >= 0:
                unread[n_unread, 0] = row
                unread[n_unread, 1] = unread_begin
                unread[n_unread, 2] = unread_end
                n_unread += 1
            query[row] = current
            document[row] = code
            channel[row] = row_channel
            start[row] = row_start
            duration[row] = row_duration
            score[row] = row_score
            decision[row] = row_decision
            rounded += row_rounded
            decided = has_decision
            row += 1
            position = at
    state[POSITION] = position
    state[LINE] = line
    state[INSIDE] = inside
    state[QUERY] = current
    state[ROWS] = row
    state[DOCUMENTS] = documents
    state[LISTS] = n_lists
    state[UNREAD] = n_unread
    state[ROUNDED] = rounded
    state[DECIDED] = decided
    return why
