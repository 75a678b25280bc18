"""Fragments: Parquet files of sorted detections, written once and read by row groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from swsdask.archive.order import cut, pair_starts
from swsdask.model.schemas import DETECTION_COLUMNS
from swsdask.model.trials import Detections

_DICTIONARY = ["query", "document", "channel", "decision", "inside", "unknown_document"]
_ENCODINGS = {
    "start": "DELTA_BINARY_PACKED",
    "duration": "DELTA_BINARY_PACKED",
    "score": "BYTE_STREAM_SPLIT",
    "position": "DELTA_BINARY_PACKED",
}
_DTYPES = {field.name: np.dtype(field.type.to_pandas_dtype()) for field in DETECTION_COLUMNS}


def as_table(rows: Detections) -> pa.Table:
    """All columns that some rows have as an Arrow table, without a copy."""
    schema = pa.schema([field for field in DETECTION_COLUMNS if getattr(rows, field.name) is not None])
    return pa.Table.from_arrays([pa.array(getattr(rows, name)) for name in schema.names], schema=schema)


def write_fragment(rows: Detections, rows_per_group: int, codec: str) -> tuple[pa.Buffer, list[int]]:
    """The bytes of a Parquet file of `rows`, which are in canonical order, and the rows of each of its row groups.

    Groups have about equal size, at most `rows_per_group` rows unless a (query, document) alone has more; none is cut.
    """
    table = as_table(rows)
    groups = cut(pair_starts(rows), len(rows), rows_per_group)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression=codec,
        use_dictionary=[name for name in _DICTIONARY if name in table.schema.names],
        column_encoding={name: _ENCODINGS[name] for name in table.schema.names if name in _ENCODINGS},
        write_statistics=True,
    ) as writer:
        for group in groups:
            size = group.stop - group.start
            writer.write_table(table.slice(group.start, size), row_group_size=size)
    return sink.getvalue(), [group.stop - group.start for group in groups]


def read_groups(file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> dict[str, list[NDArray[Any]]]:
    """The named columns of some row groups, one array per group.

    A column of integers whose statistics say that all values of the group are one is not read but filled; one that the
    file does not have is filled with 0.
    """
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in columns}
    place = {name: file.schema_arrow.get_field_index(name) for name in columns}
    for group in groups:
        metadata = file.metadata.row_group(group)
        constant = {name: value for name in columns if (value := _constant(metadata, place[name])) is not None}
        read = [name for name in columns if name not in constant]
        table = file.read_row_group(group, columns=read, use_threads=False)
        for name in columns:
            if name in constant:
                found[name].append(np.full(metadata.num_rows, constant[name], _DTYPES[name]))
            else:
                found[name].append(_array(table[name], _DTYPES[name]))
    return found


def _constant(metadata: pq.RowGroupMetaData, place: int) -> int | None:
    """The one value of a column, 0 for one that the file does not have; None if there may be others."""
    if place < 0:
        return 0
    column = metadata.column(place)
    statistics = column.statistics
    if column.path_in_schema == "score" or statistics is None or not statistics.has_min_max:
        return None
    return int(statistics.min) if statistics.min == statistics.max else None


def _array(column: pa.ChunkedArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values without a copy where they lie in one piece."""
    pieces = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize) for chunk in column.chunks
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
