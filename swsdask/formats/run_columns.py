"""The columns and the documents of a piece of a run in the making: arrays that grow."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from swsdask.kernels.dictionary import NO_ROOM, encode, fill_slots, hash_bytes

Number = TypeVar("Number", bound=np.generic)


def longer(column: NDArray[Number], size: int) -> NDArray[Number]:
    """A column of `size` rows that begins as the given one."""
    grown = np.empty(size, column.dtype)
    grown[: len(column)] = column
    return grown


class Columns(NamedTuple):
    """The columns of a `RunPiece`, with room for more rows than are filled."""

    query: NDArray[np.int32]
    document: NDArray[np.int32]
    channel: NDArray[np.int8]
    start: NDArray[np.int32]
    duration: NDArray[np.int32]
    score: NDArray[np.float64]
    decision: NDArray[np.int8]

    @classmethod
    def empty(cls, size: int) -> Self:
        """Room for `size` rows."""
        return cls(
            np.empty(size, np.int32),
            np.empty(size, np.int32),
            np.empty(size, np.int8),
            np.empty(size, np.int32),
            np.empty(size, np.int32),
            np.empty(size, np.float64),
            np.empty(size, np.int8),
        )

    def longer(self, size: int) -> Columns:
        """The same rows, with room for `size`."""
        return Columns(
            longer(self.query, size),
            longer(self.document, size),
            longer(self.channel, size),
            longer(self.start, size),
            longer(self.duration, size),
            longer(self.score, size),
            longer(self.decision, size),
        )


class FileNames:
    """The distinct file names of a piece, with the line where each first stands (see `kernels.dictionary`)."""

    def __init__(self) -> None:
        self.slots = np.full(4096, -1, np.int32)
        self.hashes = np.empty(2048, np.uint64)
        self.ends = np.empty(2048, np.int64)
        self.arena = np.empty(1 << 16, np.uint8)
        self.lines = np.empty(2048, np.int64)

    def clear(self) -> None:
        """Forget all names."""
        self.slots[:] = -1

    def make_room(self, entries: int) -> None:
        """Make room for more than the `entries` there are."""
        self.arena = longer(self.arena, 2 * len(self.arena))
        if entries == len(self.hashes):
            self.hashes = longer(self.hashes, 2 * entries)
            self.ends = longer(self.ends, 2 * entries)
            self.lines = longer(self.lines, 2 * entries)
            self.slots = np.empty(4 * entries, np.int32)
            fill_slots(entries, self.hashes, self.slots)

    def encode(self, name: str, line: int, entries: int) -> int:
        """The code of a name among `entries`; a new one, first standing in `line`, has the code `entries`."""
        text = np.frombuffer(name.encode(), np.uint8)
        key = hash_bytes(text, 0, len(text))
        while True:
            code = encode(text, 0, len(text), key, entries, self.slots, self.hashes, self.ends, self.arena)
            if code != NO_ROOM:
                break
            self.make_room(entries)
        if code == entries:
            self.lines[code] = line
        return code

    def names(self, entries: int) -> list[tuple[str, int]]:
        """The names in order of their codes, each with its line."""
        ends = self.ends[:entries].tolist()
        data = self.arena[: ends[-1] if ends else 0].tobytes()
        begins = [0, *ends][:entries]
        lines = self.lines[:entries].tolist()
        return [(data[begin:end].decode(), line) for begin, end, line in zip(begins, ends, lines, strict=True)]
