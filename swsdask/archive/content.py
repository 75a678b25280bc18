"""The content hash of a run: of what its rows say, and the resources told beside it, not of how they were written.

Every row is hashed with the ids of its query and document, and the hashes are added modulo 2^128 (as two lanes of 64
bits): so the hash depends neither on the order of rows nor on how the input was cut, compressed, coded or formatted,
and the hashes of parts add up. Rows count as they were read, with queries and documents that the evaluation does not
know. Whether rows have positions (see `archive.file_order`) is hashed too, but not which: a run read with them is
another content than the same run without. It guards against accidents, not against an adversary.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from swsdask.model.resources import Resources
from swsdask.model.runs import RunPiece

CONTENT_VERSION = 1

U64 = NDArray[np.uint64]

_BLOCK = 1 << 16
_LANES = 2
_MODULUS = 1 << 64


class RowSum:
    """The sum of the hashes of some rows."""

    def __init__(self, rows: int = 0, lanes: tuple[int, ...] = (0,) * _LANES, positions: bool = False) -> None:
        self.rows = rows
        self.lanes = lanes
        self.positions = positions

    @classmethod
    def of(cls, piece: RunPiece) -> Self:
        """The sum over a piece."""
        return cls(len(piece), tuple(_lane(piece, lane) for lane in range(_LANES)), piece.position is not None)

    def __add__(self, other: RowSum) -> RowSum:
        lanes = zip(self.lanes, other.lanes, strict=True)
        sums = tuple((mine + theirs) % _MODULUS for mine, theirs in lanes)
        return RowSum(self.rows + other.rows, sums, self.positions or other.positions)

    def digest(self, declared: tuple[float, float] | None, resources: Resources | None = None) -> str:
        """32 hexadecimal digits: of these rows, of the score range that the run declares and what its system took."""
        told = (*(() if resources is None else (resources.to_json(),)), *(("positions",) if self.positions else ()))
        said = (CONTENT_VERSION, self.rows, self.lanes, declared, *told)
        return xxhash.xxh3_128_hexdigest(repr(said).encode())


def canonical_scores(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same scores without a negative zero."""
    return score + 0.0


def _lane(piece: RunPiece, lane: int) -> int:
    query = _id_hashes(piece.queries, 2 * lane)
    document = _id_hashes(piece.documents, 2 * lane + 1)
    score = canonical_scores(piece.score).view(np.uint64)
    total = 0
    for begin in range(0, len(piece), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        mixed = _mix(query[piece.query[rows]] + document[piece.document[rows]])
        mixed = _mix(mixed ^ (_bits(piece.start[rows]) << np.uint64(32) | _bits(piece.duration[rows])))
        mixed = _mix(mixed ^ score[rows])
        mixed = _mix(mixed ^ (_bits(piece.channel[rows]) << np.uint64(32) | _bits(piece.decision[rows])))
        total = (total + int(mixed.sum(dtype=np.uint64))) % _MODULUS
    return total


def _id_hashes(ids: tuple[str, ...], seed: int) -> U64:
    return np.array([xxhash.xxh3_64_intdigest(identifier.encode(), seed) for identifier in ids], np.uint64)


def _bits(column: NDArray[np.signedinteger]) -> U64:
    return column.astype(np.int32).view(np.uint32).astype(np.uint64)


def _mix(value: U64) -> U64:
    """A bijection of 64 bits in which every input bit moves every output bit (splitmix64's finaliser)."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value
