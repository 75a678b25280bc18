"""The tables of an evaluation: and what they say, hashed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import xxhash


@dataclass(frozen=True, eq=False)
class ReferenceTables:
    """The tables of `model.schemas` that do not depend on any run."""

    documents: pa.Table
    queries: pa.Table
    words: pa.Table
    segments: pa.Table

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Content hashes by role. They do not depend on the files' compression or layout."""
        return {
            "ecf": table_hash(self.documents),
            "rttm": table_hash(self.words, self.segments),
            "queries": table_hash(self.queries),
        }


def table_hash(*tables: pa.Table) -> str:
    """32 hexadecimal digits: of the names, values and metadata of some tables, whatever their layout in memory."""
    state = xxhash.xxh3_128()
    for table in tables:
        metadata = sorted((table.schema.metadata or {}).items())
        state.update(repr((table.num_rows, metadata)).encode())
        for name, column in zip(table.column_names, table.columns, strict=True):
            state.update(f"{name} {column.type} {_column_hash(column)}".encode())
    return state.hexdigest()


def _column_hash(column: pa.ChunkedArray) -> str:
    values, lengths = xxhash.xxh3_128(), xxhash.xxh3_128()
    for chunk in column.chunks:
        if pa.types.is_string(chunk.type):
            _, offsets, characters = chunk.buffers()
            edges = np.frombuffer(offsets, np.int32, len(chunk) + 1, chunk.offset * 4)
            lengths.update(np.diff(edges).tobytes())
            values.update(characters[edges[0] : edges[-1]] if characters is not None else b"")
        elif pa.types.is_integer(chunk.type):
            values.update(chunk.to_numpy().tobytes())
        else:
            values.update("".join(f"{value!r}\n" for value in chunk.to_pylist()).encode())
    return f"{values.hexdigest()} {lengths.hexdigest()}"
