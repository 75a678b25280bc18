"""Columns of a table as detections: many rows at once, with the problems of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.values import (
    FormatError,
    read_channel,
    read_decision,
    read_score,
    read_time,
    with_article,
)
from swsdask.kernels.text import read_scores, read_ticks
from swsdask.model.units import INFINITE, MAX_TICKS, TICKS_PER_SECOND

_NEAR_HALF = 1e-3
"""A product of a float64 below 2**18 and TICKS_PER_SECOND is off by less."""

Value = TypeVar("Value")


class Names(NamedTuple):
    """A column of ids: int32 codes, and the id of each code. The list may grow, and later columns may share it."""

    codes: NDArray[np.int32]
    ids: list[str]


class TableRows(NamedTuple):
    """Rows of a table. `rounded` counts a row's rounded times; `system` is None if the table has no such column."""

    system: Names | None
    query: Names
    document: Names
    channel: NDArray[np.int8]
    start: NDArray[np.int32]
    duration: NDArray[np.int32]
    score: NDArray[np.float64]
    decision: NDArray[np.int8]
    rounded: NDArray[np.int8]


class RowFaults:
    """The problems of rows; `good` marks those without."""

    def __init__(self, rows: int) -> None:
        self.good = np.ones(rows, np.bool_)
        self._found: list[tuple[int, FormatError]] = []

    def note(self, row: int, fault: FormatError) -> None:
        """Note a problem of a row."""
        self.good[row] = False
        self._found.append((row, fault))

    def __iter__(self) -> Iterator[tuple[int, FormatError]]:
        return iter(self._found)


def read_rows(columns: Mapping[str, pa.Array], faults: RowFaults) -> TableRows:
    """Return the values of some rows; those of faulty rows are undefined.

    `columns` are query, document, start, duration or end, score, and optionally system, channel and decision, as Arrow
    arrays of text, numbers or dictionaries. Times are in seconds; the value of a float time is its shortest decimal
    form. An absent channel is 1, an absent or empty decision -1.
    """
    size = len(faults.good)
    start, start_rounded = _times(columns["start"], "start", faults)
    if "end" in columns:
        end, other_rounded = _times(columns["end"], "end", faults)
        duration = end - start
        for row in np.flatnonzero((duration < 0) & faults.good).tolist():
            found = f"end {end[row] / TICKS_PER_SECOND} with start {start[row] / TICKS_PER_SECOND}"
            faults.note(row, FormatError("an end after the start", found, "Give start and end, in seconds."))
    else:
        duration, other_rounded = _times(columns["duration"], "duration", faults)
    for row in np.flatnonzero((start + duration > MAX_TICKS) & faults.good).tolist():
        expected = f"start and duration of at most {MAX_TICKS / TICKS_PER_SECOND} seconds together"
        found = f"{start[row] / TICKS_PER_SECOND} and {duration[row] / TICKS_PER_SECOND}"
        faults.note(row, FormatError(expected, found, "Check their unit."))
    return TableRows(
        system=_names(columns["system"], "system", faults) if "system" in columns else None,
        query=_names(columns["query"], "query", faults),
        document=_names(columns["document"], "document", faults),
        channel=_channels(columns["channel"], faults) if "channel" in columns else np.ones(size, np.int8),
        start=start.astype(np.int32),
        duration=duration.astype(np.int32),
        score=_scores(columns["score"], faults),
        decision=_decisions(columns["decision"], faults) if "decision" in columns else np.full(size, -1, np.int8),
        rounded=start_rounded.astype(np.int8) + other_rounded.astype(np.int8),
    )


_LARGEST_WHOLE = 2.0**53
"""Larger whole numbers would be rounded, and different scores would become equal."""


def _scores(column: pa.Array, faults: RowFaults) -> NDArray[np.float64]:
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        scores = _floats(column)
        unread = np.isnan(scores) | (np.abs(scores) == INFINITE)
        scores = scores.copy() if unread.any() else scores
        if pa.types.is_integer(column.type):
            for row in np.flatnonzero(np.abs(scores) > _LARGEST_WHOLE).tolist():
                expected = "a score that a double holds: a whole number up to 2^53"
                faults.note(row, FormatError(expected, str(column[row]), "Divide the scores, or subtract an offset."))
    else:
        scores = np.zeros(len(column))
        unread = np.zeros(len(column), np.bool_)
        read_scores(*_text(column), scores, unread)
    for row in np.flatnonzero(unread).tolist():
        scores[row] = _read(column, row, "score", read_score, 0.0, faults)
    return scores


def _times(column: pa.Array, name: str, faults: RowFaults) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ticks, and whether they are rounded."""
    unread: NDArray[np.bool_] = np.zeros(len(column), np.bool_)
    if column.type == pa.float64():
        seconds = _floats(column)
        with np.errstate(invalid="ignore", over="ignore"):
            exact = seconds * TICKS_PER_SECOND
            nearest = np.rint(exact)
            unread = ~((nearest >= 0) & (nearest <= MAX_TICKS) & (np.abs(exact - nearest) < 0.5 - _NEAR_HALF))
        ticks = np.where(unread, 0, nearest).astype(np.int64)
        rounded = ticks / TICKS_PER_SECOND != seconds
    else:
        ticks = np.zeros(len(column), np.int64)
        rounded = np.zeros(len(column), np.bool_)
        read_ticks(*_text(column), ticks, rounded, unread)
    for row in np.flatnonzero(unread).tolist():
        ticks[row], rounded[row] = _read(column, row, name, lambda text: read_time(text, name), (0, False), faults)
    return ticks, rounded


def _channels(column: pa.Array, faults: RowFaults) -> NDArray[np.int8]:
    return _few(column, "channel", read_channel, faults)


def _decisions(column: pa.Array, faults: RowFaults) -> NDArray[np.int8]:
    column = _with_strings(column)
    if pa.types.is_dictionary(column.type) and (
        column.dictionary.null_count or not pa.types.is_string(column.type.value_type)
    ):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "YES", "NO")
    elif not pa.types.is_dictionary(column.type):
        column = _whole_numbers(column).cast(pa.string())
    return _few(pc.fill_null(column, ""), "decision", lambda text: read_decision(text) if text else -1, faults)


def _few(column: pa.Array, name: str, reader: Callable[[str], int], faults: RowFaults) -> NDArray[np.int8]:
    """Return the values of a column that has few distinct ones."""
    codes, texts = _distinct(column)
    values = np.zeros(len(texts) + 1, np.int8)
    wrong: dict[int, FormatError] = {}
    for code, text in enumerate(texts):
        try:
            values[code] = reader(text)
        except FormatError as fault:
            wrong[code] = fault
    for row in np.flatnonzero(np.isin(codes, list(wrong))).tolist():
        faults.note(row, wrong[int(codes[row])])
    _note_missing(codes, name, faults)
    return values[codes]


def _names(column: pa.Array, name: str, faults: RowFaults) -> Names:
    codes, ids = _distinct(column)
    _note_missing(codes, name, faults)
    return Names(codes, ids)


def _note_missing(codes: NDArray[np.int32], name: str, faults: RowFaults) -> None:
    for row in np.flatnonzero(codes < 0).tolist():
        faults.note(row, _missing(name))


def _missing(name: str) -> FormatError:
    return FormatError(with_article(name), f"a row without {name}", f"Give every row its {name}.")


def _distinct(column: pa.Array) -> tuple[NDArray[np.int32], list[str]]:
    """Return the code of each value, -1 if missing, and the text of each code."""
    column = _with_strings(column)
    if pa.types.is_dictionary(column.type) and (column.dictionary.null_count or len(column.dictionary) > len(column)):
        column = column.dictionary_decode()  # A batch of a large dictionary uses little of it.
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    codes = pc.fill_null(encoded.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    return codes, _whole_numbers(encoded.dictionary).cast(pa.string()).to_pylist()


def _with_strings(column: pa.Array) -> pa.Array:
    """Convert a dictionary of text (views from Polars) to one of strings, and a null column to strings."""
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))
    return column


def _whole_numbers(column: pa.Array) -> pa.Array:
    """Floats that are integers as integers: pandas stores integers as floats if values are missing."""
    if pa.types.is_floating(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
    return column


def _floats(column: pa.Array) -> NDArray[np.float64]:
    """Return a column of numbers as float64, NaN if missing."""
    floats: NDArray[np.float64] = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(
        zero_copy_only=False
    )
    return floats


def _text(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the bytes of a column as text, and the offsets of its values; missing values are empty."""
    text = pc.fill_null(column.cast(pa.string()), "")
    _, offsets, data = text.buffers()
    places = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    return np.frombuffer(data or b"", np.uint8), places


def _read(
    column: pa.Array, row: int, name: str, reader: Callable[[str], Value], otherwise: Value, faults: RowFaults
) -> Value:
    """Read one value by its reader; note its faults."""
    value = column[row].as_py()
    try:
        if value is None:
            raise _missing(name)
        return reader(str(value))
    except FormatError as fault:
        faults.note(row, fault)
        return otherwise
