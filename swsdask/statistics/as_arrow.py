"""Statistics as Arrow: one row of plain columns, from which the same statistic is made again, bit for bit.

A statistic is a dataclass of arrays, numbers, counts by name, and further dataclasses of these. Every leaf is a column,
named by its path (`bins.key`): an array is a list of its elements in row-major order, whose shape is in the field's
metadata where it has not one axis; counts by name are a map.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, TypeVar, get_type_hints

import numpy as np
import pyarrow as pa

from swsdask.statistics.statistic import Statistic

Kind = TypeVar("Kind", bound=Statistic)

_SHAPE = b"shape"


def to_arrow(statistic: Statistic) -> pa.RecordBatch:
    """A statistic as one row."""
    columns = [_column(name, value) for name, value in _leaves(statistic, "")]
    return pa.RecordBatch.from_arrays(
        [values for _, values in columns], schema=pa.schema([field for field, _ in columns])
    )


def from_arrow(kind: type[Kind], row: pa.RecordBatch) -> Kind:
    """The statistic of a kind that `to_arrow` made a row of.

    Raises
    ------
    ValueError
        If the row is not that of such a statistic.
    """
    left = set(row.schema.names)
    made: Kind = _made(kind, row, "", left)
    if left or row.num_rows != 1:
        raise ValueError(f"not one row of a {kind.__name__}: {row.num_rows} rows with {', '.join(sorted(left))}")
    return made


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        each, name = getattr(value, field.name), f"{path}{field.name}"
        if is_dataclass(each):
            yield from _leaves(each, f"{name}.")
        else:
            yield name, each


def _column(name: str, value: Any) -> tuple[pa.Field, pa.Array]:
    metadata = None
    if isinstance(value, np.ndarray):
        metadata = None if value.ndim == 1 else {_SHAPE: json.dumps(value.shape)}
        values = pa.array(np.ascontiguousarray(value).reshape(-1))
        column = pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
    elif isinstance(value, dict):
        column = pa.array([list(value.items())], pa.map_(pa.string(), pa.int64()))
    else:
        column = pa.array([value], pa.int64() if isinstance(value, int) else pa.float64())
    return pa.field(name, column.type, metadata=metadata), column


def _made(kind: type[Any], row: pa.RecordBatch, path: str, left: set[str]) -> Any:
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):
        name, inner = f"{path}{field.name}", hints[field.name]
        if is_dataclass(inner):
            values[field.name] = _made(inner, row, f"{name}.", left)  # type: ignore[arg-type]
        elif name in left:
            left.remove(name)
            values[field.name] = _value(row.schema.field(name), row.column(name))
        else:
            raise ValueError(f"not a row of a {kind.__name__}: no column {name}")
    return kind(**values)


def _value(field: pa.Field, column: pa.Array) -> Any:
    if pa.types.is_map(field.type):
        return dict(column[0].as_py())
    if not pa.types.is_large_list(field.type):
        return column[0].as_py()
    values = np.array(column.flatten().to_numpy(zero_copy_only=False))
    shape = json.loads((field.metadata or {}).get(_SHAPE, json.dumps([len(values)])))
    if prod(shape) != len(values):
        raise ValueError(f"{len(values)} elements in the column {field.name} of the shape {shape}")
    return values.reshape(shape)
