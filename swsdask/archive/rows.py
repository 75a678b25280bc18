"""The canonical order of a run's rows, where they may be cut, and the hash of their content.

Rows are sorted by (query, document, channel, start, duration, score descending, decision, hash of an unknown document's
id): a total order of what a row says, so that the order of the input never shows.

The content hash of a run is of what its rows say, and of the resources reported beside it, not of how they were
written. Every row is hashed with the ids of its query and document, and the hashes are added modulo 2^128 (as two lanes
of 64 bits): so the hash depends neither on the order of rows nor on how the input was cut, compressed, coded or
formatted, and the hashes of parts add up. Rows count as they were read, with queries and documents that the evaluation
does not know. It guards against accidents, not against an adversary.

Where rows have positions (see `archive.encode`), numbers depend on the order of the rows and on the sign of zeros, so
both are hashed: the hashes are the coefficients of a polynomial. Its value for two parts follows from those for each,
so this hash does not depend on how the input was cut either. A run read with positions is another content than the same
run without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from swsdask.kernels.rows import sum_of_hashes
from swsdask.model.resources import Resources
from swsdask.model.schemas import RunPiece
from swsdask.model.trials import F64, I64, Detections, finite_scores

U64 = NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_WORD = 64

_TIED = 1 << 19
"""About how many rows are settled by the whole key at once: the key of a row takes more memory than the row."""


def joined(parts: Sequence[Detections]) -> Detections:
    """The rows of at least one part, one after the other; a column that only some parts have is 0 in the others."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {}
    for field in fields(Detections):
        arrays = {number: getattr(part, field.name) for number, part in enumerate(parts)}
        dtype = next((array.dtype for array in arrays.values() if array is not None), None)
        columns[field.name] = dtype and np.concatenate(
            [np.zeros(len(parts[number]), dtype) if array is None else array for number, array in arrays.items()]
        )
    return Detections(**columns)


def canonical_order(rows: Detections) -> I64:
    """The permutation that sorts `rows` (all columns but `inside` must be there).

    As many leading bits of the whole key as fit beside the row number are sorted as bare integers, which is several
    times faster than sorting an index; the few rows that those bits leave equal are then settled by the whole key.
    """
    keys = _keys(rows)
    number_bits = max(len(rows) - 1, 0).bit_length()
    packed = _leading_bits(keys, len(rows), _WORD - number_bits)
    packed <<= np.uint64(number_bits)
    packed |= np.arange(len(rows), dtype=np.uint64)
    packed.sort()
    order: I64 = (packed & np.uint64((1 << number_bits) - 1)).view(np.int64)
    packed >>= np.uint64(number_bits)
    as_before = np.zeros(len(rows), bool)
    as_before[1:] = packed[1:] == packed[:-1]
    tied = as_before.copy()
    tied[:-1] |= as_before[1:]
    places = np.flatnonzero(tied)
    for part in cut(np.flatnonzero(~as_before[places]), len(places), _TIED):
        among = order[places[part]]
        order[places[part]] = among[np.lexsort([key.of(among) for key in reversed(keys)])]
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


class _Key(NamedTuple):
    """A column as unsigned integers of `width` bits that sort as the canonical order does."""

    width: int
    of: Callable[[I64 | slice], U64]


def _keys(rows: Detections) -> list[_Key]:
    """The keys, most significant first."""
    first = (rows.query, rows.document, rows.channel, rows.start, rows.duration)
    last = (rows.decision, rows.unknown_document)
    before, after = ([_from_zero(column) for column in some if column is not None] for some in (first, last))
    return [*before, _Key(_WORD, partial(_descending, rows.score)), *after]


def _from_zero(column: NDArray[np.signedinteger]) -> _Key:
    if not len(column):
        return _Key(0, lambda _: np.zeros(0, np.uint64))
    least, most = int(column.min()), int(column.max())
    return _Key((most - least).bit_length(), lambda rows: (column[rows].astype(np.int64) - least).view(np.uint64))


def _descending(score: F64, rows: I64 | slice) -> U64:
    """-0.0 and 0.0 are one score, also where both are kept."""
    bits = canonical_scores(score[rows]).view(np.uint64)
    return np.where(bits & _SIGN, bits, ~(bits | _SIGN))


def _leading_bits(keys: Sequence[_Key], rows: int, available: int) -> U64:
    packed = np.zeros(rows, np.uint64)
    for key in keys:
        taken = min(key.width, available)
        if taken:
            packed <<= np.uint64(taken)
            packed |= key.of(slice(None)) >> np.uint64(key.width - taken)
            available -= taken
    return packed


CONTENT_VERSION = 1


_LANES = 2
_MODULUS = 1 << 64
_AT = 0x9E3779B97F4A7C15
"""Where the polynomial of rows in order is evaluated: odd, so that no row's hash is lost."""


class RowSum:
    """The hashes of some rows, added up; those of rows with `positions` in order."""

    def __init__(self, rows: int = 0, lanes: tuple[int, ...] = (0,) * _LANES, positions: bool = False) -> None:
        self.rows = rows
        self.lanes = lanes
        self.positions = positions

    @classmethod
    def of(cls, piece: RunPiece) -> Self:
        """The sum over a piece."""
        in_order = piece.position is not None
        score = (piece.score if in_order else canonical_scores(piece.score)).view(np.uint64)
        columns = (piece.query, piece.document, piece.channel, piece.start, piece.duration, score, piece.decision)
        lanes = (
            sum_of_hashes(
                np.uint64(0),
                np.uint64(_AT if in_order else 1),
                _id_hashes(piece.queries, 2 * lane),
                _id_hashes(piece.documents, 2 * lane + 1),
                *columns,
            )
            for lane in range(_LANES)
        )
        return cls(len(piece), tuple(map(int, lanes)), in_order)

    def __add__(self, other: RowSum) -> RowSum:
        positions = self.positions or other.positions
        behind = pow(_AT, other.rows, _MODULUS) if positions else 1
        lanes = zip(self.lanes, other.lanes, strict=True)
        sums = tuple((mine * behind + theirs) % _MODULUS for mine, theirs in lanes)
        return RowSum(self.rows + other.rows, sums, positions)

    def digest(self, declared: tuple[float, float] | None, resources: Resources | None = None) -> str:
        """32 hexadecimal digits: of these rows, of the score range that the run declares and what its system took."""
        told = (*(() if resources is None else (resources.to_json(),)), *(("positions",) if self.positions else ()))
        said = (CONTENT_VERSION, self.rows, self.lanes, declared, *told)
        return xxhash.xxh3_128_hexdigest(repr(said).encode())


def canonical_scores(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same scores, finite (`model.units`) and without a negative zero."""
    return finite_scores(score) + 0.0


def _id_hashes(ids: tuple[str, ...], seed: int) -> U64:
    return np.array([xxhash.xxh3_64_intdigest(identifier.encode(), seed) for identifier in ids], np.uint64)
