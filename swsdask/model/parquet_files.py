"""Parquet files of results in one form, and files of one schema joined without decoding them.

A Parquet file consists of row groups, one after the other, and a footer that says where each of their columns begins.
Files are joined by copying their row groups and writing one footer for all of them, with offsets increased by the
number of bytes before them. So row groups are encoded where their rows are computed, and joining only copies bytes.

The footer is the struct `FileMetaData` of Apache Parquet (parquet.thrift) in Thrift's compact protocol
(thrift-compact-protocol.md). It is read and written as a whole, with any fields it has. pyarrow, which encodes and
reads the row groups, has no function that joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.model.name_columns import coded_schema

_POINTS = ("threshold", "x", "y")
"""The numbers of curves, which all differ. Neighbours have similar first bytes, so a split by bytes compresses well."""

_VALUES = ("value",)
"""The numbers of measures. Compression finds equal ones as well as a dictionary does, and is faster."""

_FEW = ("system", "condition", "curve")
"""Names that repeat over many rows: a few bytes per row group, which compression would not reduce."""

_ROWS_PER_GROUP = 250_000
"""Few enough that the buffers for encoding a row group are small beside the tables and fit in the caches of a core."""


def encoded(rows: pa.Table | pa.Buffer, schema: pa.Schema) -> pa.Buffer:
    """Encode a table as a Parquet file with `write_parquet`; a file is returned unchanged."""
    if isinstance(rows, pa.Buffer):
        return rows
    sink = pa.BufferOutputStream()
    write_parquet(rows, schema, sink)
    return sink.getvalue()


def write_parquet(table: pa.Table, schema: pa.Schema, where: Path | pa.NativeFile) -> None:
    """Write the columns of a schema with one compression, one size of row groups, no metadata and one NaN for all.

    Names are written as codes, which start anew in each row group: the bytes depend on the rows alone, and nothing is
    decoded. Row groups have statistics of the column `system` only.
    """
    encodings = {**dict.fromkeys(_POINTS, "BYTE_STREAM_SPLIT"), **dict.fromkeys(_VALUES, "PLAIN")}
    with pq.ParquetWriter(
        where,
        coded_schema(schema),
        compression={name: "none" if name in _FEW else "zstd" for name in schema.names},
        version="2.6",
        use_dictionary=[name for name in schema.names if name not in encodings],
        column_encoding={name: encoding for name, encoding in encodings.items() if name in schema.names},
        write_statistics=["system"],
        store_schema=False,
    ) as file:
        for first in range(0, max(1, table.num_rows), _ROWS_PER_GROUP):
            group = in_one_form(table.slice(first, _ROWS_PER_GROUP), schema).unify_dictionaries().combine_chunks()
            file.write_table(group, row_group_size=_ROWS_PER_GROUP)


def encoded_in_turn(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Buffer:
    """The Parquet file of the rows of all tables, as `encoded` makes it; one table after the other is consumed."""
    files = (encoded(group, schema) for group in _in_row_groups(tables))
    return pa.py_buffer(b"".join(joined(chain(files, [encoded(schema.empty_table(), schema)]))))


def _in_row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of all tables, cut into row groups as `write_parquet` cuts one table."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while (n_rows := sum(map(len, waiting))) >= _ROWS_PER_GROUP:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, _ROWS_PER_GROUP)
            waiting = [whole.slice(_ROWS_PER_GROUP)] if n_rows > _ROWS_PER_GROUP else []
    if waiting:
        yield pa.concat_tables(waiting)


def in_one_form(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, with one NaN for all, and names coded in order of first appearance in each chunk."""
    coded = coded_schema(schema)
    columns = [_one_form(table[field.name].cast(field.type)) for field in coded]
    return pa.table(columns, schema=coded)


def _one_form(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with one NaN for all, or with the names of each chunk coded in order of first appearance."""
    if pa.types.is_floating(column.type):
        undefined = pc.is_nan(column)
        return pc.if_else(undefined, np.nan, column) if pc.any(undefined).as_py() else column
    if not pa.types.is_dictionary(column.type):
        return column
    chunks: list[pa.Array] = []
    for chunk in column.chunks:
        if not _in_order_of_appearance(chunk):
            codes = chunk.indices.dictionary_encode()
            chunk = pa.DictionaryArray.from_arrays(codes.indices, chunk.dictionary.take(codes.dictionary))
        chunks.append(chunk)
    return pa.chunked_array(chunks, column.type)


def _in_order_of_appearance(names: pa.DictionaryArray) -> bool:
    """Return whether codes number the names by first appearance and no name is unused.

    The check is faster than coding.
    """
    if len(names) == 0 or len(names.dictionary) < 2:
        return bool(len(names.dictionary) == (names.null_count < len(names)))
    codes = names.indices.fill_null(-1).to_numpy()
    before, after = codes[:-1], codes[1:]
    if (after > before + 1).any():
        before = np.maximum.accumulate(before)
    return bool(codes[0] <= 0 and codes.max() == len(names.dictionary) - 1 and (after <= before + 1).all())


def decoded_rows(rows: pa.Table | pa.Buffer, schema: pa.Schema) -> pa.Table:
    """Return the rows of a table or of an `encoded` file, `in_one_form`."""
    if isinstance(rows, pa.Table):
        return in_one_form(rows, schema)
    with _opened(rows, schema) as opened:
        return opened.read(use_threads=False)


def decoded_groups(file: pa.Buffer, metadata: pq.FileMetaData, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
    """Return the rows of some row groups of a file whose metadata is known, as `decoded_rows` returns them."""
    with _opened(file, schema, metadata=metadata) as opened:
        return opened.read_row_groups(groups, use_threads=False)


def _opened(file: pa.Buffer, schema: pa.Schema, **known: pq.FileMetaData) -> pq.ParquetFile:
    names = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetFile(pa.BufferReader(file), read_dictionary=names, pre_buffer=False, **known)


def groups_of_systems(metadata: pq.FileMetaData) -> dict[str, list[int]] | None:
    """Return the row groups of each system, in order, by their statistics; None unless each has exactly one system."""
    found: dict[str, list[int]] = {}
    for number in range(metadata.num_row_groups):
        stated = metadata.row_group(number).column(0).statistics
        if stated is None or not stated.has_min_max or stated.min != stated.max or stated.null_count:
            return None
        found.setdefault(stated.min, []).append(number)
    return found


def count_rows(rows: pa.Table | pa.Buffer) -> int:
    """Return the number of rows in a table or a file."""
    if isinstance(rows, pa.Table):
        return len(rows)
    with pq.ParquetFile(pa.BufferReader(rows), pre_buffer=False) as opened:
        n_rows: int = opened.metadata.num_rows
    return n_rows


_MAGIC = b"PAR1"
_LENGTH = 4
"""The size of the footer's length in bytes; it precedes the magic at the end."""

_SCHEMA, _N_ROWS, _ROW_GROUPS = 2, 3, 4
"""Fields of FileMetaData."""

_COLUMNS, _BEGIN, _ORDINAL = 1, 5, 7
"""Fields of RowGroup."""

_DETAILS = 3
"""The field of ColumnChunk with its ColumnMetaData."""

_PLACES_OF_CHUNK = (2, 4, 6)
"""Offsets in ColumnChunk: of the chunk's metadata, and of the indexes of its pages."""

_PLACES_OF_DETAILS = (9, 10, 11, 14)
"""Offsets in ColumnMetaData: of data, index and dictionary pages, and of the Bloom filter."""


def joined(files: Iterable[pa.Buffer]) -> Iterator[bytes | memoryview]:
    """Yield, part by part, the file that has the rows of all files, one after the other.

    Parameters
    ----------
    files
        Files of one schema, as `encoded` makes them; at least one. Each is consumed after the one before it is copied.

    Raises
    ------
    ValueError
        The files have several schemas, or one is not a Parquet file.
    """
    yield _MAGIC
    whole: _Struct = {}
    n_rows, groups, place = 0, [], len(_MAGIC)
    bare: tuple[list[_Struct], bytes] | None = None
    for file in files:
        content = memoryview(file)
        footer, end = _footer(content)
        whole = whole or footer
        if footer[_SCHEMA] != whole[_SCHEMA]:
            raise ValueError("files of several schemas")
        own = footer[_ROW_GROUPS][1][1]
        if not footer[_N_ROWS][1]:
            bare = bare or (own, bytes(content[len(_MAGIC) : end]))
            continue
        _move(own, place - len(_MAGIC))
        groups += own
        yield content[len(_MAGIC) : end]
        place += end - len(_MAGIC)
        n_rows += footer[_N_ROWS][1]
    if not groups and bare is not None:
        # Files without rows add nothing, but not every version of pyarrow reads a file without row groups.
        groups, content_of_bare = bare
        yield content_of_bare
    written = _CompactWriter()
    written.struct(whole | {_N_ROWS: (_I64, n_rows), _ROW_GROUPS: (_LIST, (_STRUCT, groups))})
    yield bytes(written.content)
    yield len(written.content).to_bytes(_LENGTH, "little") + _MAGIC


def _footer(file: memoryview) -> tuple[_Struct, int]:
    """Return the footer of a file, and its offset."""
    tail = len(file) - len(_MAGIC) - _LENGTH
    begin = tail - int.from_bytes(file[tail : tail + _LENGTH], "little")
    if tail < len(_MAGIC) or file[tail + _LENGTH :] != _MAGIC or begin < len(_MAGIC):
        raise ValueError("not a Parquet file")
    try:
        return _CompactReader(bytes(file[begin:tail])).struct(), begin
    except StopIteration:
        raise ValueError("the footer of a Parquet file that is cut off") from None


def _move(groups: Iterable[_Struct], distance: int) -> None:
    """Increase the offsets of row groups. An offset of 0 is unset, since a file begins with its magic."""
    for group in groups:
        group.pop(_ORDINAL, None)  # optional, and only 16 bits wide
        _add(group, (_BEGIN,), distance)
        for chunk in group[_COLUMNS][1][1]:
            _add(chunk, _PLACES_OF_CHUNK, distance)
            _add(chunk[_DETAILS][1], _PLACES_OF_DETAILS, distance)


def _add(struct: _Struct, fields: Sequence[int], distance: int) -> None:
    for field in fields:
        kind, place = struct.get(field, (_I64, 0))
        if place:
            struct[field] = kind, place + distance


_Struct = dict[int, tuple[int, Any]]
"""A struct of Thrift: types and values by the number of the field. A list has the type and the values of its items."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
"""The types of the compact protocol. Parquet's footers have neither sets, maps nor doubles."""

_INTEGERS = (_I16, _I32, _I64)

_LONG = 15
"""A list with this many items or more has its length after its type."""


class _CompactReader:
    """Reads the compact protocol: integers have 7 bits per byte, the lowest first, and their sign in the lowest bit.

    Raises `StopIteration` where the content ends.
    """

    def __init__(self, content: bytes) -> None:
        self._bytes = iter(content)
        self._byte = self._bytes.__next__

    def struct(self) -> _Struct:
        found: _Struct = {}
        field = 0
        while header := self._byte():
            kind = header & 15
            field = field + (header >> 4) if header >> 4 else self._signed()
            found[field] = kind, self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._signed()
        if kind == _BINARY:
            length = self._unsigned()
            if len(found := bytes(islice(self._bytes, length))) < length:
                raise StopIteration
            return found
        if kind == _STRUCT:
            return self.struct()
        if kind == _LIST:
            header = self._byte()
            length = header >> 4 if header >> 4 < _LONG else self._unsigned()
            kind = header & 15
            return kind, [self._item(kind) for _ in range(length)]
        if kind in (_TRUE, _FALSE):
            return None
        if kind == _BYTE:
            return self._byte()
        raise ValueError(f"a value of type {kind} in the footer of a Parquet file")

    def _item(self, kind: int) -> Any:
        return self._byte() if kind in (_TRUE, _FALSE) else self._value(kind)

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)


class _CompactWriter:
    """Writes what `_CompactReader` reads."""

    def __init__(self) -> None:
        self.content = bytearray()

    def struct(self, struct: _Struct) -> None:
        before = 0
        for field in sorted(struct):
            kind, value = struct[field]
            if field - before < _LONG + 1:
                self.content.append(field - before << 4 | kind)
            else:
                self.content.append(kind)
                self._signed(field)
            self._value(kind, value)
            before = field
        self.content.append(0)

    def _value(self, kind: int, value: Any) -> None:
        if kind in _INTEGERS:
            self._signed(value)
        elif kind == _BINARY:
            self._unsigned(len(value))
            self.content += value
        elif kind == _STRUCT:
            self.struct(value)
        elif kind == _LIST:
            kind, items = value
            self.content.append(min(len(items), _LONG) << 4 | kind)
            if len(items) >= _LONG:
                self._unsigned(len(items))
            for item in items:
                self._item(kind, item)
        elif kind == _BYTE:
            self.content.append(value)

    def _item(self, kind: int, value: Any) -> None:
        if kind in (_TRUE, _FALSE):
            self.content.append(value)
        else:
            self._value(kind, value)

    def _unsigned(self, value: int) -> None:
        while value > 127:
            self.content.append(value & 127 | 128)
            value >>= 7
        self.content.append(value)

    def _signed(self, value: int) -> None:
        self._unsigned(value << 1 if value >= 0 else (~value << 1) | 1)
