"""Scanning of NIST's XML in its ordinary form: tags, attributes and rows of detections, from bytes to columns.

Ordinary text is UTF-8, with only blanks between tags. Its tags are lists `<LIST ID="..." TIME="..." OOV="...">`, rows
`<ROW file="..." channel="..." tbeg="..." dur="..." score="..." decision="..."/>` or `...></ROW>`, `</LIST>` and
`</ROOT>`. Attributes have any order, each occurs at most once, and their values are in single or double quotes. Values
contain no references, `<` or control characters. A row has all its attributes, all valid; the decision may be absent if
every row lacks it. A row may have other attributes, which are skipped; their names are ASCII and have no namespace.

`scan_rows` stops before any other text: only the caller decides about text that is not ordinary. The functions that it
calls return the position that they reached, or `STOP` if the text is not ordinary. They report no problems. `text` is
uint8, followed by `LOOKAHEAD` bytes of 0, so that no loop needs to check for its end.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, uint8, uint64
from numpy.typing import NDArray

from swsdask.kernels.compilation import NOTHING_NEW, inlined, kernel, part
from swsdask.kernels.text import (
    APOSTROPHE,
    BLANK,
    DICTIONARY,
    EQUALS,
    GREATER,
    LESS,
    NEWLINE,
    NINE,
    NO,
    NO_ROOM,
    PADDING,
    QUOTE,
    RETURN,
    SLASH,
    TAB,
    TEXT,
    UPPER_A,
    YES,
    ZERO,
    eight_times,
    encode,
    first_bytes,
    first_mark,
    marked,
    marked_below,
    mixed,
    nearest_float,
    nearest_tick,
    scan_number,
    word_at,
)

STOP = -1
LOOKAHEAD = 32
MAX_TICKS = 2**31 - 1

ROOT_WORD, LIST_WORD, ROW_WORD, ID_WORD, TIME_WORD, OOV_WORD = range(6)
"""The rows of the result of `pack_words`."""

_FILE, _CHANNEL, _START, _DURATION, _SCORE, _DECISION = (1 << n for n in range(6))
_NEEDED = _FILE | _CHANNEL | _START | _DURATION | _SCORE


def _word(text: bytes) -> np.uint64:
    """Return at most eight bytes as an integer, as `kernels.text.word_at` does."""
    return np.uint64(int.from_bytes(text, "little"))


_FILE_NAME, _CHANNEL_NAME, _START_NAME = _word(b"file"), _word(b"channel"), _word(b"tbeg")
_DURATION_NAME, _SCORE_NAME, _DECISION_NAME = _word(b"dur"), _word(b"score"), _word(b"decision")
_YES, _NO = _word(YES.tobytes()), _word(NO.tobytes())
_NOTHING = np.uint64(0)

_NAMESPACE_WORD = np.frombuffer(b"xmlns", np.uint8)

_IN_NAME = np.array([c < 128 and (chr(c).isalnum() or chr(c) in "_-.") for c in range(256)])
"""Whether a byte may be in an ASCII name without a colon. Bytes below `A` cannot come first."""

_LONGEST = 1024
"""The greatest distance, in bytes, from the begin of a row's attributes to the end of one that is not of the format."""

_NOT_PLAIN = (LESS, ord("&"), 0xEF)
_PLAIN = np.array([c >= BLANK and c not in _NOT_PLAIN for c in range(256)])
"""Whether a byte is an ordinary character of a value. 0xEF may begin U+FFFE or U+FFFF, which XML forbids."""

_LARGEST_POWER = 308
"""Any number below 10**308 is finite as a float."""


def pack_words(root: str, list_: str, row: str, query_id: str, search_time: str, oov_count: str) -> NDArray[np.uint8]:
    """Pack the names of a dialect's tags and of its list's attributes into uint8 [6, 32], padded with 0."""
    packed = np.zeros((6, 32), np.uint8)
    for line, word in zip(packed, (root, list_, row, query_id, search_time, oov_count), strict=True):
        line[: len(word)] = np.frombuffer(word.encode(), np.uint8)
    return packed


@inlined()
def _after(text: NDArray[np.uint8], at: int, word: NDArray[np.uint8]) -> int:
    """Return the end of `word` if the text has it at `at`, else STOP."""
    for offset in range(len(word)):
        if text[at + offset] != word[offset]:
            return STOP
    return at + len(word)


@inlined(int64(TEXT, int64, uint8[:, ::1], int64), **NOTHING_NEW)
def after_word(text: NDArray[np.uint8], at: int, words: NDArray[np.uint8], number: int) -> int:
    """Return the end of word `number` if the text has it at `at`, else STOP."""
    offset = 0
    while words[number, offset] != 0:
        if text[at + offset] != words[number, offset]:
            return STOP
        offset += 1
    return at + offset


@inlined()
def after_blanks(text: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the place of the first byte from `at` on that is no blank, and the number of lines that end before it."""
    lines = 0
    while True:
        byte = text[at]
        if byte > BLANK:
            return at, lines
        if byte == NEWLINE:
            lines += 1
        elif byte != BLANK and byte != TAB and byte != RETURN:
            return at, lines
        at += 1


@inlined()
def _value_begin(text: NDArray[np.uint8], at: int) -> int:
    """Return the begin of the value if an equals sign and a quote are at `at`, else STOP."""
    if text[at] == EQUALS and (text[at + 1] == QUOTE or text[at + 1] == APOSTROPHE):
        return at + 2
    return STOP


@inlined()
def _value_end(text: NDArray[np.uint8], begin: int) -> int:
    """Return the place of the closing quote of the value at `begin`, or STOP if the value is not plain."""
    quote = text[begin - 1]
    at = begin
    while text[at] != quote:
        if not _PLAIN[text[at]]:
            return STOP
        at += 1
    return at


@inlined()
def _row_attribute(text: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the attribute of a row whose name is at `at`, and the end of the name (STOP: no such attribute)."""
    word = word_at(text, at)
    if first_bytes(word, 4) == _FILE_NAME:
        return _FILE, at + 4
    if first_bytes(word, 7) == _CHANNEL_NAME:
        return _CHANNEL, at + 7
    if first_bytes(word, 4) == _START_NAME:
        return _START, at + 4
    if first_bytes(word, 3) == _DURATION_NAME:
        return _DURATION, at + 3
    if first_bytes(word, 5) == _SCORE_NAME:
        return _SCORE, at + 5
    return _DECISION, at + 8 if word == _DECISION_NAME else STOP


@part()
def _name_end(text: NDArray[np.uint8], begin: int) -> int:
    """Return the end of the name at `begin`, or STOP if there is none."""
    if text[begin] < UPPER_A:
        return STOP
    at = begin
    while _IN_NAME[text[at]]:
        at += 1
    return at if at > begin else STOP


@part()
def _after_other(text: NDArray[np.uint8], tag: int, at: int) -> int:
    """Return the end of the attribute at `at`, which is not of the format, or STOP if it is not ordinary.

    The attributes of the row begin at `tag`, and those before `at` have been read. None of them may have the same name.
    """
    name_end = _name_end(text, at)
    if name_end < 0 or (name_end - at == len(_NAMESPACE_WORD) and _after(text, at, _NAMESPACE_WORD) > 0):
        return STOP
    begin = _value_begin(text, name_end)
    if begin < 0:
        return STOP
    end = _value_end(text, begin)
    if end < 0 or end - tag > _LONGEST:
        return STOP
    earlier, _ = after_blanks(text, tag)
    while earlier < at:
        earlier_end = _name_end(text, earlier)
        if earlier_end - earlier == name_end - at and _after(text, earlier, text[at:name_end]) > 0:
            return STOP
        earlier, _ = after_blanks(text, _value_end(text, earlier_end + 2) + 1)
    return end + 1


@part()
def _after_odd(text: NDArray[np.uint8], tag: int, at: int, words: NDArray[np.uint8]) -> int:
    """Return the end of the rest of a row or of an attribute that is not of the format, else STOP.

    If the start tag is closed at `at`, the end tag must follow immediately, and the row ends with it. Otherwise the
    attribute at `at` is read (see `_after_other`).
    """
    if text[at] == GREATER:
        if text[at + 1] != LESS or text[at + 2] != SLASH:
            return STOP
        at = after_word(text, at + 3, words, ROW_WORD)
        return at + 1 if at > 0 and text[at] == GREATER else STOP
    return _after_other(text, tag, at) if text[at - 1] <= BLANK else STOP


@inlined()
def _scan_time(text: NDArray[np.uint8], begin: int) -> tuple[int, int, int]:
    """Return the end of the time at `begin` (STOP if it is negative or too long), its ticks, and 1 if rounded."""
    at, negative, mantissa, exponent, digits = scan_number(text, begin)
    if at < 0 or (negative and digits > 0):
        return STOP, 0, 0
    ticks, rounded = nearest_tick(mantissa, exponent, digits)
    if ticks < 0:
        return STOP, 0, 0
    return at, int(ticks), 1 if rounded else 0


@inlined()
def _scan_score(text: NDArray[np.uint8], begin: int) -> tuple[int, float, bool]:
    """Return the end of the score at `begin` (STOP if it may be infinite), its value, and whether it is unread."""
    at, negative, mantissa, exponent, digits = scan_number(text, begin)
    if at < 0:
        return STOP, 0.0, False
    read, score = nearest_float(mantissa, exponent, digits)
    if not read and exponent + at - begin > _LARGEST_POWER:
        return STOP, 0.0, False
    return at, -score if negative else score, not read


@inlined()
def _scan_channel(text: NDArray[np.uint8], begin: int) -> tuple[int, int]:
    """Return the end of the channel at `begin` (STOP unless it is 0 to 127 in one to three digits), and the channel."""
    at = begin
    channel = 0
    while at - begin < 3 and text[at] >= ZERO and text[at] <= NINE:
        channel = channel * 10 + text[at] - ZERO
        at += 1
    if at == begin or channel > 127:
        return STOP, 0
    return at, channel


@inlined()
def _scan_decision(text: NDArray[np.uint8], begin: int) -> tuple[int, int]:
    """Return the end of the decision at `begin` (STOP unless it is YES or NO), and the decision: 1 or 0."""
    word = word_at(text, begin)
    is_yes = first_bytes(word, 3) == _YES
    if not is_yes and first_bytes(word, 2) != _NO:
        return STOP, 0
    return (begin + 3, 1) if is_yes else (begin + 2, 0)


@inlined()
def _scan_file(text: NDArray[np.uint8], begin: int, quote: int) -> tuple[int, np.uint64]:
    """Return the end of the value at `begin`, at the quote or at the first byte that is not plain, and its hash."""
    key = _NOTHING
    at = begin
    while True:
        word = word_at(text, at)
        ends = marked(word, eight_times(quote)) | marked_below(word, eight_times(BLANK))
        for other in _NOT_PLAIN:
            ends |= marked(word, eight_times(other))
        if ends != _NOTHING:
            size = first_mark(ends)
            return at + size, mixed(key, first_bytes(word, size))
        key = mixed(key, word)
        at += PADDING


@part()
def scan_list_tag(
    text: NDArray[np.uint8], at: int, words: NDArray[np.uint8], spans: NDArray[np.int64]
) -> tuple[int, int]:
    """Read the rest of a list's start tag after its name; return its end and the number of lines that end within it.

    Writes where the values of id, search time and count of oov words begin and end into `spans`, int64 [6] (-1:
    absent).
    """
    spans[:] = -1
    lines = 0
    while True:
        before = at
        at, more = after_blanks(text, at)
        lines += more
        if text[at] == GREATER:
            return (at + 1 if spans[0] >= 0 else STOP), lines
        which = 0
        name_end = after_word(text, at, words, ID_WORD)
        if name_end < 0:
            which = 1
            name_end = after_word(text, at, words, TIME_WORD)
        if name_end < 0:
            which = 2
            name_end = after_word(text, at, words, OOV_WORD)
        if name_end < 0 or at == before or spans[2 * which] >= 0:
            return STOP, 0
        begin = _value_begin(text, name_end)
        if begin < 0:
            return STOP, 0
        end = _value_end(text, begin)
        if end < 0:
            return STOP, 0
        spans[2 * which] = begin
        spans[2 * which + 1] = end
        at = end + 1


_ROW = (int64, int64, int64, int64, uint64, int64, int64, int64, int64, float64, int64, int64, int64)


@inlined()
def scan_row_tag(
    text: NDArray[np.uint8], at: int, words: NDArray[np.uint8]
) -> tuple[int, int, int, int, np.uint64, int, int, int, int, float, int, int, int]:
    """Read the rest of a row after the name of its tag.

    Returns the end of the row, the number of lines that end within it, the begin, end and hash of the file name, the
    channel, the start and the duration in ticks, how many of these two are rounded, the score, the begin and end of the
    score if the caller must read it (else -1, -1), and the decision (1, 0; -1: absent).
    """
    tag = at
    seen = 0
    lines = 0
    file_begin = file_end = 0
    key = _NOTHING
    channel = start = duration = rounded = 0
    score = 0.0
    unread_begin = unread_end = -1
    decision = -1
    while True:
        before = at
        at, more = after_blanks(text, at)
        lines += more
        if text[at] == SLASH:
            complete = text[at + 1] == GREATER and seen & _NEEDED == _NEEDED and start + duration <= MAX_TICKS
            at = at + 2 if complete else STOP
            break
        which, name_end = _row_attribute(text, at)
        begin = _value_begin(text, name_end) if name_end > 0 else STOP
        if begin < 0:
            at = _after_odd(text, tag, at, words)
            if at < 0:
                break
            if text[at - 1] == GREATER:
                at = at if seen & _NEEDED == _NEEDED and start + duration <= MAX_TICKS else STOP
                break
            continue
        if at == before or seen & which:
            at = STOP
            break
        seen |= which
        quote = text[begin - 1]
        if which == _FILE:
            at, key = _scan_file(text, begin, quote)
            file_begin, file_end = begin, at
        elif which == _CHANNEL:
            at, channel = _scan_channel(text, begin)
        elif which == _START:
            at, start, inexact = _scan_time(text, begin)
            rounded += inexact
        elif which == _DURATION:
            at, duration, inexact = _scan_time(text, begin)
            rounded += inexact
        elif which == _SCORE:
            at, score, unread = _scan_score(text, begin)
            if unread:
                unread_begin, unread_end = begin, at
        else:
            at, decision = _scan_decision(text, begin)
        if at < 0 or text[at] != quote:
            at = STOP
            break
        at += 1
    return (
        at,
        lines,
        file_begin,
        file_end,
        key,
        channel,
        start,
        duration,
        rounded,
        score,
        unread_begin,
        unread_end,
        decision,
    )


MORE, ODD, ROOM, DRAIN, CLOSED = range(5)
"""Reasons why `scan_rows` stops: the text ends within a construct; something is not ordinary; the columns or the
dictionary are full; `lists` or `unread` are full; the root element is closed."""

POSITION, LINE, INSIDE, QUERY, ROWS, DOCUMENTS, LISTS, UNREAD, ROUNDED, DECIDED = range(10)
"""The places in `state`: the byte to continue from, and its line; 1 inside a list; the query code of the latest list;
the numbers of filled rows of the columns, of the dictionary, of `lists` and of `unread`; the number of rounded times;
whether rows have decisions (-1: not known yet)."""

STATE_SIZE = 10

_COLUMNS = (int32[::1], int32[::1], int8[::1], int32[::1], int32[::1], float64[::1], int8[::1])


@part()
def _reason(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Return MORE if the construct at `at` may continue beyond `end`, else ODD."""
    while at < end:
        if text[at] == GREATER:
            return ODD
        at += 1
    return MORE


@kernel(
    int64(TEXT, int64, uint8[:, ::1], int64[::1], *_COLUMNS, *DICTIONARY, int64[::1], int64[:, ::1], int64[:, ::1]),
    **NOTHING_NEW,
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
    """Read ordinary rows and lists of text[:end] from `state[POSITION]` on; return the reason for stopping.

    `text` is uint8, with `LOOKAHEAD` bytes of 0 after `end`; `words` is the result of `pack_words`. `state` int64
    [STATE_SIZE] is read and updated. The columns are those of `model.schemas.RunPiece`. `slots`, `hashes`, `ends` and
    `arena` are the dictionary of documents (`kernels.text`); `document_lines` int64 is the line of the first appearance
    of each entry. Every list gets the next query code when it is opened, and a row of `lists`, int64 [n, 7]: where the
    values of its id, search time and oov count begin and end (-1: absent), and its line. `unread`, int64 [n, 3], gets
    the row, begin and end of each score that is finite but that the caller must read.
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
        if text[position] != LESS:
            why = ODD if position < end else MORE
            break
        if text[position + 1] == SLASH:
            at = after_word(text, position + 2, words, LIST_WORD if inside else ROOT_WORD)
            if at < 0 or text[at] != GREATER:
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
