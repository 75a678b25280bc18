"""Columns of a table as the values of detections: many rows at once, and for each row what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.run_values import FormatError, read_channel, read_decision, read_score, read_time
from swsdask.kernels.text_columns import read_scores, read_ticks
from swsdask.model.ticks import MAX_TICKS, TICKS_PER_SECOND

_NEAR_HALF = 1e-3
"""A product of a float64 below 2**18 and TICKS_PER_SECOND is off by less."""

Value = TypeVar("Value")


class Names(NamedTuple):
    """A column of ids: int32 codes, and the id of each code."""

    codes: NDArray[np.int32]
    ids: list[str]


class Rows(NamedTuple):
    """Rows of a table. `rounded` counts a row's rounded times; `system` is None where the table does not tell it."""

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
    """What is wrong with some of the rows; `good` are the others."""

    def __init__(self, rows: int) -> None:
        self.good = np.ones(rows, np.bool_)
        self._found: list[tuple[int, FormatError]] = []

    def note(self, row: int, fault: FormatError) -> None:
        """Note what is wrong with a row."""
        self.good[row] = False
        self._found.append((row, fault))

    def __iter__(self) -> Iterator[tuple[int, FormatError]]:
        return iter(self._found)


def read_rows(columns: Mapping[str, pa.Array], faults: RowFaults) -> Rows:
    """The values of some rows, those of faulty rows undefined.

    `columns` are query, document, start, duration or end, score, and what there is of system, channel, decision, as
    Arrow arrays of text, numbers or dictionaries. Times are in seconds; a time in a float is taken at its shortest
    decimal form. An absent channel is 1, an absent or empty decision -1.
    """
    size = len(faults.good)
    start, start_rounded = _times(columns["start"], "start", faults)
    if "end" in columns:
        end, other_rounded = _times(columns["end"], "end", faults)
        duration = end - start
        for row in np.flatnonzero((duration < 0) & faults.good).tolist():
            found = f"{end[row] / TICKS_PER_SECOND} behind {start[row] / TICKS_PER_SECOND}"
            faults.note(row, FormatError("an end behind the start", found, "Give start and end, in seconds."))
    else:
        duration, other_rounded = _times(columns["duration"], "duration", faults)
    for row in np.flatnonzero((start + duration > MAX_TICKS) & faults.good).tolist():
        expected = f"start and duration of at most {MAX_TICKS / TICKS_PER_SECOND} seconds together"
        found = f"{start[row] / TICKS_PER_SECOND} and {duration[row] / TICKS_PER_SECOND}"
        faults.note(row, FormatError(expected, found, "Check their unit."))
    return Rows(
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


def _scores(column: pa.Array, faults: RowFaults) -> NDArray[np.float64]:
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        scores = _floats(column)
        unread = ~np.isfinite(scores)
        scores = scores.copy() if unread.any() else scores
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
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "YES", "NO")
    return _few(pc.fill_null(column, ""), "decision", lambda text: read_decision(text) if text else -1, faults)


def _few(column: pa.Array, name: str, reader: Callable[[str], int], faults: RowFaults) -> NDArray[np.int8]:
    """The values of a column that has few different ones."""
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
    return FormatError(f"a {name}", f"a row without {name}", f"Give every row its {name}.")


def _distinct(column: pa.Array) -> tuple[NDArray[np.int32], list[str]]:
    """The code of each value, -1 where there is none, and the text of each code."""
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    codes = pc.fill_null(encoded.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    return codes, _whole_numbers(encoded.dictionary).cast(pa.string()).to_pylist()


def _whole_numbers(column: pa.Array) -> pa.Array:
    """Whole numbers as such where a table holds them as floats, as pandas does beside missing values."""
    if pa.types.is_floating(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
    return column


def _floats(column: pa.Array) -> NDArray[np.float64]:
    """A column of numbers as float64, NaN where there is none."""
    floats: NDArray[np.float64] = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(
        zero_copy_only=False
    )
    return floats


def _text(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The bytes of a column as text, and the offsets of its values, of which a missing one is empty."""
    text = pc.fill_null(column.cast(pa.string()), "")
    _, offsets, data = text.buffers()
    places = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    return np.frombuffer(data or b"", np.uint8), places


def _read(
    column: pa.Array, row: int, name: str, reader: Callable[[str], Value], otherwise: Value, faults: RowFaults
) -> Value:
    """One value, as its reader reads it; its faults are noted."""
    value = column[row].as_py()
    try:
        if value is None:
            raise _missing(name)
        return reader(str(value))
    except FormatError as fault:
        faults.note(row, fault)
        return otherwise
