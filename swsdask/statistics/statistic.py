"""The protocol of statistics: mergeable summaries of the trials of a system; and their form in Arrow.

In Arrow a statistic is one row of plain columns, from which the same statistic can be rebuilt, bit for bit.

A statistic is a dataclass of arrays, numbers, counts by name, and nested dataclasses of these. Every leaf is a column,
named by its path (bins.key): an array is a list of its elements in row-major order; unless it has one axis, its shape
is in the field's metadata. Counts by name are a map.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from math import prod
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_type_hints, runtime_checkable

import numpy as np
import pyarrow as pa

from swsdask.model.trials import I64, Reference, Trials

Kind = TypeVar("Kind", bound="Statistic")
Made = TypeVar("Made")


class Found(Protocol):
    """The merged statistics of a system by their types: ``found[Counts]`` is a `Counts`."""

    def __getitem__(self, kind: type[Kind], /) -> Kind:
        """Return the statistic of a type."""
        ...

    def __contains__(self, kind: object, /) -> bool:
        """Return whether the system has it."""
        ...

    def get(self, kind: type[Kind], /) -> Kind | None:
        """Return the statistic of a type, or None."""
        ...

    def items(self) -> Iterable[tuple[type[Statistic], Statistic]]:
        """Return all statistics of the system."""
        ...


class Statistic(Protocol):
    """A mergeable summary of trials of one system. `merge` is associative, commutative and exact.

    `after` names the statistics whose merged values it needs: it is computed one round after them. `aligned` is whether
    it needs outcomes; if no statistic of a round does, cells are read without alignment, with only the columns that
    scores need. `follows`, if a statistic has it, names the rules of the reference (`model.trials.RULES`) that
    `from_trials` depends on: others do not change it.
    """

    after: ClassVar[tuple[type[Statistic], ...]]
    aligned: ClassVar[bool]

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> object:
        """Return what `from_trials` needs of earlier rounds, picklable and small; called once per system and round.

        None means that the system does not need this statistic: it is not computed.
        """
        ...

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Any) -> Self:
        """Return the statistic of one cell."""
        ...

    def merge(self, other: Self) -> Self:
        """Return the statistic of both parts together."""
        ...


@runtime_checkable
class Drawable(Protocol):
    """A statistic with parts by group of documents, so that documents can be resampled (`measures.resampling`)."""

    def drawn(self, times: I64) -> Self:
        """Return the statistic of a resample, in one group: group g counts times[g] times, int64 [n_groups]."""
        ...


class FirstRound:
    """The base of statistics that need no other statistic: they are computed in the first round."""

    after: ClassVar[tuple[type[Statistic], ...]] = ()

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> object:
        """Return an empty tuple: nothing from earlier rounds is needed."""
        return ()


class OfDetections:
    """The base of statistics that also need `columns` of the detections that trials came from.

    They are read in the statistic's round, aligned or not; `Trials.detections` has them.
    """

    columns: ClassVar[tuple[str, ...]]

    @classmethod
    def columns_for(cls, reference: Reference) -> tuple[str, ...]:
        """Return the columns that are read for an evaluation."""
        return cls.columns


_SHAPE = b"shape"


def to_arrow(statistic: Statistic) -> pa.RecordBatch:
    """Return a statistic as one row."""
    columns = [_column(name, value) for name, value in _leaves(statistic, "")]
    return pa.RecordBatch.from_arrays(
        [values for _, values in columns], schema=pa.schema([field for field, _ in columns])
    )


def from_arrow(kind: type[Kind], row: pa.RecordBatch) -> Kind:
    """Return the statistic of the given type from a row that `to_arrow` made.

    Raises
    ------
    ValueError
        If the row is not one of such a statistic.
    """
    left = set(row.schema.names)
    made = _made(kind, row, "", left)
    if left or row.num_rows != 1:
        raise ValueError(f"not one row of a {kind.__name__}: {row.num_rows} rows with {', '.join(sorted(left))}")
    return made


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if not is_dataclass(value):
        yield path, value
        return
    for field in fields(value):
        yield from _leaves(getattr(value, field.name), f"{path}.{field.name}" if path else field.name)


def _column(name: str, value: object) -> tuple[pa.Field, pa.Array]:
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


@cache
def _field_types(kind: type) -> dict[str, object]:
    """Return the types of the fields of a statistic; their names are evaluated once, not for every system."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _made(kind: type[Made], row: pa.RecordBatch, path: str, left: set[str]) -> Made:
    values: dict[str, object] = {}
    for field, inner in _field_types(kind).items():  # type: ignore[arg-type]
        name = f"{path}{field}"
        if isinstance(inner, type) and is_dataclass(inner):
            values[field] = _made(inner, row, f"{name}.", left)
        elif name in left:
            left.remove(name)
            values[field] = _value(row.schema.field(name), row.column(name))
        else:
            raise ValueError(f"not a row of a {kind.__name__}: no column {name}")
    return kind(**values)


def _value(field: pa.Field, column: pa.Array) -> object:
    if pa.types.is_map(field.type):
        return dict(column[0].as_py())
    if not pa.types.is_large_list(field.type):
        return column[0].as_py()
    values = np.array(column.flatten().to_numpy(zero_copy_only=False))
    shape = json.loads((field.metadata or {}).get(_SHAPE, json.dumps([len(values)])))
    if prod(shape) != len(values):
        raise ValueError(f"{len(values)} elements in the column {field.name} of the shape {shape}")
    return values.reshape(shape)
