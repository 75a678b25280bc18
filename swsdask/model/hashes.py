"""Hashes of content, xxh3-128: of bytes, JSON, tables and values.

They are stored in archives and results, so that their bytes must not change. Texts have 32 hexadecimal digits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

HASH_BYTES = 16


def hash_bytes(content: pa.Buffer | bytes) -> bytes:
    """Hash some bytes; return `HASH_BYTES` bytes."""
    return xxhash.xxh3_128_digest(content)


def hash_json(content: Mapping[str, object]) -> str:
    """Hash the content of a JSON file, whatever its layout."""
    return hash_bytes(json.dumps(content, sort_keys=True).encode()).hex()


def hash_repr(value: object) -> str:
    """Hash the `repr` of a value: of texts, numbers and tuples of them."""
    return xxhash.xxh3_128_hexdigest(repr(value).encode())


def hash_tables(*tables: pa.Table) -> str:
    """Hash the names, values and metadata of tables, whatever their layout in memory."""
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


def hash_values(value: object) -> str:
    """Hash arrays, texts, numbers and collections of them: equal for equal values and types."""
    state = xxhash.xxh3_128()
    _add_value(state, value)
    return state.hexdigest()


def _add_value(state: xxhash.xxh3_128, value: object) -> None:
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype.str}{value.shape};".encode() + np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        _add_value(state, {each.name: getattr(value, each.name) for each in fields(value)})
    elif isinstance(value, Mapping):
        _add_value(state, tuple(value.items()))
    elif isinstance(value, list | tuple):
        state.update(f"{len(value)}(".encode())
        for each in value:
            _add_value(state, each)
    elif value is None or isinstance(value, str | int | float | np.generic):
        state.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"no hash of a {type(value).__name__}")


def hash_arrays(names: object, columns: Iterable[NDArray[np.generic]]) -> str:
    """Hash names and integer columns."""
    state = xxhash.xxh3_128(json.dumps(names, ensure_ascii=False).encode())
    for column in columns:
        state.update(str(len(column)).encode())
        state.update(column.astype("<i8").tobytes())
    return state.hexdigest()
