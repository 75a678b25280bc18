"""Rows on their way to where they belong: spilled to temporary files, taken up again partition by partition.

A spill file is an Arrow IPC file with one record batch per partition, so that each partition is read without the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.archive.fragment import as_table
from swsdask.archive.layout import TEMPORARY, new_token
from swsdask.archive.order import joined
from swsdask.archive.storage import Storage
from swsdask.model.schemas import DETECTIONS
from swsdask.model.trials import Detections


@dataclass(frozen=True)
class SpillFile:
    """A temporary file and how many rows of each partition are in it."""

    name: str
    rows: tuple[int, ...]


def temporary_folder() -> str:
    """A new name for a folder of spill files."""
    return f"{TEMPORARY}/{new_token()}"


def spill(
    storage: Storage, folder: str, rows: Detections, partition: NDArray[np.integer], partitions: int
) -> SpillFile:
    """Write `rows`, all columns, to a new file in `folder`; `partition` is that of every row, below `partitions`."""
    order = np.argsort(partition.astype(np.min_scalar_type(max(partitions - 1, 0))), kind="stable")
    counts = np.bincount(partition, minlength=partitions)
    batch = pa.RecordBatch.from_struct_array(as_table(rows.take(order)).to_struct_array().combine_chunks())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        for end, count in zip(np.cumsum(counts).tolist(), counts.tolist(), strict=True):
            writer.write_batch(batch.slice(end - count, count))
    name = f"{folder}/{new_token()}.arrow"
    storage.write_temporary(name, sink.getvalue())
    return SpillFile(name, tuple(counts.tolist()))


def take_up(storage: Storage, files: Iterable[SpillFile], partitions: Sequence[int]) -> Detections:
    """All rows of some partitions, in no particular order."""
    parts = []
    for file in files:
        wanted = [number for number in partitions if file.rows[number]]
        if wanted:
            reader = pa.ipc.open_file(storage.open_arrow(file.name))
            parts += [_as_rows(reader.get_batch(number)) for number in wanted]
    return joined(parts or [_no_rows()])


def _as_rows(batch: pa.RecordBatch) -> Detections:
    return Detections(**{name: batch[name].to_numpy() for name in batch.schema.names})


def _no_rows() -> Detections:
    return Detections(**{field.name: np.zeros(0, field.type.to_pandas_dtype()) for field in DETECTIONS})
