"""Tables of results, separately for each system, as row groups of the Parquet file that they will be written to.

The rows of a system are encoded once, in the process that computes its numbers, if that is another process or if there
are many systems. They stay encoded when they are sent, kept in an archive, held until they are written, and copied into
the file. They are decoded when they are read, and only for the systems that are read.

At most `MOST_HELD` bytes of them are held in memory. Further rows are held in a temporary file.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from tempfile import TemporaryFile
from typing import Any, Self, TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.model.name_columns import coded, gathered
from swsdask.model.parquet_files import (
    count_rows,
    decoded_groups,
    decoded_rows,
    encoded,
    groups_of_systems,
    in_one_form,
    joined,
)
from swsdask.model.tables import read_parquet

MOST_HELD = 256 << 20
"""The memory that rows of systems may take, in bytes."""


class _Descriptor:
    """An open file, closed when nothing refers to it."""

    def __init__(self, number: int) -> None:
        self.number = number
        weakref.finalize(self, os.close, number)

    @classmethod
    def unnamed(cls) -> Self:
        """Return a temporary file without a name: nothing of it remains, however the process ends."""
        with TemporaryFile(prefix="swsdask-") as file:
            return cls(os.dup(file.fileno()))


@dataclass(eq=False)
class _Sent:
    """A file whose name is sent to the process that reads it."""

    path: str

    @cached_property
    def opened(self) -> _Descriptor:
        """The open file; its name is removed."""
        file = _Descriptor(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))
        os.unlink(self.path)
        return file


@dataclass(frozen=True, eq=False)
class SpilledRows:
    """The rows of a system in a file: a Parquet file of `size` bytes, from `begin` on.

    They are pickled as the name of a file if it is sent, else as a buffer.
    """

    file: _Descriptor | _Sent
    begin: int
    size: int
    n_rows: int

    def here(self) -> Self:
        """Return the same rows, with the file open in this process. Raises `OSError` if it cannot be opened."""
        return replace(self, file=self.file.opened) if isinstance(self.file, _Sent) else self

    def read(self) -> pa.Buffer:
        """Return the Parquet file. Raises `OSError` if it cannot be read."""
        file = self.file.opened if isinstance(self.file, _Sent) else self.file
        content = os.pread(file.number, self.size, self.begin)
        if len(content) != self.size:
            raise OSError(f"a temporary file has {len(content):,} bytes of {self.size:,} that were written")
        return pa.py_buffer(content)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.file, _Sent):
            return type(self), (self.file, self.begin, self.size, self.n_rows)
        return pa.py_buffer, (self.read().to_pybytes(),)


@dataclass(frozen=True, eq=False)
class FiledRows:
    """The rows of a system in a Parquet file of many systems."""

    file: pa.Buffer
    metadata: pq.FileMetaData
    groups: list[int]
    schema: pa.Schema

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.metadata.row_group(number).num_rows for number in self.groups)

    def read(self) -> pa.Table:
        """Return the rows, names coded."""
        return decoded_groups(self.file, self.metadata, self.groups, self.schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return pa.py_buffer, (encoded(self.read(), self.schema).to_pybytes(),)


Rows: TypeAlias = pa.Table | pa.Buffer | SpilledRows
"""The rows of a system: a table, whose names may be coded, or a Parquet file as `encoded` makes it, spilled or not."""


class Spill:
    """Holds rows of systems until they are written: up to `most` bytes in memory, the rest in a temporary file.

    The file has no name, or, if another process will hold the rows, a name in a `folder` that both can access.
    Rows that do not fit into the file stay in memory.
    """

    def __init__(self, most: int = MOST_HELD, folder: str | None = None) -> None:
        self._left = most
        self._folder = folder
        self._end = 0

    def hold(self, rows: Rows, schema: pa.Schema) -> Rows:
        """Return the rows, or where they are now. Raises `OSError` if a file that was sent cannot be opened."""
        if isinstance(rows, SpilledRows):
            return rows.here()
        size = rows.nbytes if isinstance(rows, pa.Table) else rows.size
        if size <= self._left:
            self._left -= size
            return rows
        content = encoded(rows, schema)
        try:
            written, file = self._files
            n_written = os.pwrite(written.number, content, self._end)
        except OSError:
            return content
        if n_written != content.size:
            return content
        self._end += n_written
        return SpilledRows(file, self._end - n_written, n_written, count_rows(content))

    @cached_property
    def _files(self) -> tuple[_Descriptor, _Descriptor | _Sent]:
        """The file to write to, and the reference that spilled rows keep."""
        if self._folder is None:
            file = _Descriptor.unnamed()
            return file, file
        path = os.path.join(self._folder, f"rows-{uuid4().hex}")
        return _Descriptor(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)), _Sent(path)


class SystemRows:
    """The rows of a schema whose first column is `system`.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns, with strings for names.
    held : mapping of str to Rows or FiledRows
        The rows of each system, in the order of the table.
    """

    def __init__(self, schema: pa.Schema, held: Mapping[str, Rows | FiledRows]) -> None:
        self._schema = schema
        self._held = held

    @classmethod
    def of(cls, table: pa.Table, schema: pa.Schema) -> Self:
        """Hold a table, grouped by system.

        Parameters
        ----------
        table : pyarrow.Table
            The rows. Names may be coded.
        schema : pyarrow.Schema
            The columns that are held.
        """
        return cls(schema, _by_system(coded(table, schema).unify_dictionaries().combine_chunks()))

    @classmethod
    def in_file(cls, content: pa.Buffer, schema: pa.Schema) -> Self:
        """Hold a Parquet file that `parts` wrote: the rows of a system are decoded when they are read.

        Any other file is decoded as a whole. Raises `ValueError` or `KeyError` if it has other columns.
        """
        metadata = pq.read_metadata(pa.BufferReader(content))
        groups = groups_of_systems(metadata) if metadata.schema.to_arrow_schema().equals(schema) else None
        if groups is None:
            return cls.of(read_parquet(content).cast(schema), schema)
        return cls(schema, {system: FiledRows(content, metadata, own, schema) for system, own in groups.items()})

    @property
    def systems(self) -> list[str]:
        """The systems, in order."""
        return [*self._held]

    @property
    def files(self) -> dict[str, pa.Buffer]:
        """The rows of each system as a Parquet file."""
        return {system: file_of(rows, self._schema) for system, rows in self._held.items()}

    @cached_property
    def table(self) -> pa.Table:
        """All rows, with dictionaries for repeated names."""
        return self.among(self.systems)

    @property
    def num_rows(self) -> int:
        """The number of rows, which is known without decoding them."""
        return sum(
            rows.n_rows if isinstance(rows, SpilledRows | FiledRows) else count_rows(rows)
            for rows in self._held.values()
        )

    def among(self, systems: Iterable[str]) -> pa.Table:
        """Return the rows of some systems, in the given order, with dictionaries for repeated names."""
        none = coded(self._schema.empty_table(), self._schema)
        held = (self._held[system] for system in systems if system in self._held)
        return gathered([none, *(decoded_rows(_read(rows), self._schema) for rows in held)])

    def names(self, column: str) -> list[str]:
        """Return the different names in a column, in order of first appearance."""
        own = (decoded_rows(_read(rows), self._schema)[column].unique() for rows in self._held.values())
        return [*dict.fromkeys(name for names in own for name in names.to_pylist())]

    def without(self, column: str) -> pa.Table:
        """Return the rows that are null in a column, with dictionaries for repeated names."""
        found = [coded(self._schema.empty_table(), self._schema)]
        for rows in self._held.values():
            own = decoded_rows(_read(rows), self._schema)
            found.append(in_one_form(own.filter(pc.is_null(own[column])), self._schema))
        return gathered(found)

    def parts(self) -> Iterator[bytes | memoryview]:
        """Return the Parquet file with all rows, part by part: row groups for each system."""
        files = (file_of(rows, self._schema) for rows in self._held.values())
        return joined(files if self._held else [encoded(self._schema.empty_table(), self._schema)])


def as_encoded(rows: Rows, schema: pa.Schema) -> pa.Buffer | SpilledRows:
    """Return the rows of a system as a Parquet file in memory; spilled rows are returned unchanged."""
    return rows if isinstance(rows, SpilledRows) else encoded(rows, schema)


def file_of(rows: Rows | FiledRows, schema: pa.Schema) -> pa.Buffer:
    """Return the rows of a system as a Parquet file."""
    return encoded(_read(rows), schema)


def _read(rows: Rows | FiledRows) -> pa.Table | pa.Buffer:
    return rows.read() if isinstance(rows, SpilledRows | FiledRows) else rows


def _by_system(table: pa.Table) -> dict[str, pa.Table]:
    """Return the rows of each system, in order of first appearance, of a table in one chunk."""
    if not table.num_rows:
        return {}
    column = table["system"].chunk(0)
    ends = np.cumsum(np.bincount(column.indices)).tolist()
    if not pc.all(pc.less_equal(column.indices[:-1], column.indices[1:])).as_py():
        table = table.take(np.argsort(column.indices, kind="stable"))
    begins = [0, *ends[:-1]]
    names = column.dictionary.to_pylist()
    return {name: table.slice(begin, end - begin) for name, begin, end in zip(names, begins, ends, strict=True)}
