"""The rows of a run: put together, in canonical order, and where they may be cut.

Rows are sorted by (query, document, channel, start, duration, score descending, decision): a total order of what a row
says, so that the order of the input never shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import F64, I64, Detections

U64 = NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_WORD = 64


def joined(parts: Sequence[Detections]) -> Detections:
    """The rows of at least one part, one after the other; all parts have the same columns."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {}
    for field in fields(Detections):
        arrays = [getattr(part, field.name) for part in parts]
        columns[field.name] = None if arrays[0] is None else np.concatenate(arrays)
    return Detections(**columns)


def canonical_order(rows: Detections) -> I64:
    """The permutation that sorts `rows` (all columns but `inside` must be there).

    As many leading bits of the whole key as fit beside the row number are sorted as bare integers, which is several
    times faster than sorting an index; the few rows that those bits leave equal are then settled by the whole key.
    """
    keys = _keys(rows)
    number_bits = max(len(rows) - 1, 0).bit_length()
    packed = _leading_bits(keys, _WORD - number_bits) << np.uint64(number_bits)
    packed |= np.arange(len(rows), dtype=np.uint64)
    packed.sort()
    order: I64 = (packed & np.uint64((1 << number_bits) - 1)).astype(np.int64)
    packed >>= np.uint64(number_bits)
    equal = packed[1:] == packed[:-1]
    tied = np.zeros(len(rows), bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    places = np.flatnonzero(tied)
    if len(places):
        among = order[places]
        order[places] = among[np.lexsort([key[among] for key, _ in reversed(keys)])]
    return order


def in_order(rows: Detections) -> Detections:
    """The same rows in canonical order."""
    return rows.take(canonical_order(rows))


def pair_starts(rows: Detections) -> I64:
    """The row numbers, ascending, where a (query, document) begins; `rows` must be clustered by it."""
    if not len(rows):
        return np.zeros(0, np.int64)
    assert rows.document is not None
    changes = (rows.query[1:] != rows.query[:-1]) | (rows.document[1:] != rows.document[:-1])
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def cut(starts: I64, rows: int, limit: int) -> list[slice]:
    """Cut `rows` rows into parts of about equal size, none larger than `limit` unless a (query, document) alone is.

    `starts` are the rows where a cut may be made (`pair_starts`). No rows give no part.
    """
    places = np.append(starts, rows)
    parts: list[slice] = []
    begin = 0
    while begin < rows:
        left = rows - begin
        even = begin + -(-left // -(-left // limit))
        end = int(places[np.searchsorted(places, even, "right") - 1])
        if end <= begin:
            end = int(places[np.searchsorted(places, begin, "right")])
        parts.append(slice(begin, end))
        begin = end
    return parts


def _keys(rows: Detections) -> list[tuple[U64, int]]:
    """Columns as unsigned integers that sort as the canonical order does, most significant first, and their widths."""
    assert rows.decision is not None
    columns = (rows.query, rows.document, rows.channel, rows.start, rows.duration)
    keys = [_from_zero(column) for column in columns if column is not None]
    assert len(keys) == len(columns)
    return [*keys, (_descending(rows.score), _WORD), _from_zero(rows.decision)]


def _from_zero(column: NDArray[np.signedinteger]) -> tuple[U64, int]:
    if not len(column):
        return np.zeros(0, np.uint64), 0
    least, most = int(column.min()), int(column.max())
    return (column.astype(np.int64) - least).astype(np.uint64), (most - least).bit_length()


def _descending(score: F64) -> U64:
    bits = score.view(np.uint64)
    ascending = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return ~ascending


def _leading_bits(keys: list[tuple[U64, int]], available: int) -> U64:
    packed = np.zeros(len(keys[0][0]), np.uint64)
    for key, width in keys:
        taken = min(width, available)
        packed <<= np.uint64(taken)
        packed |= key >> np.uint64(width - taken)
        available -= taken
    return packed
