"""Tables of results, the rows of each system apart, as the row groups of the file that they go into.

The rows of a system are encoded once, where its numbers are computed. So encoded they travel, are kept in an archive,
are held until they are written, and are copied into the file. They are decoded when they are read, and only those of
the systems that are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.parquet_files import coded_rows, count_rows, encoded, joined
from swsdask.model.tables import coded, gathered


class SystemRows:
    """The rows of a schema whose first column is `system`.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns, with strings for names.
    files : mapping of str to pyarrow.Buffer
        The rows of each system, `encoded` as a Parquet file, in the order of the table.
    """

    def __init__(self, schema: pa.Schema, files: Mapping[str, pa.Buffer]) -> None:
        self._schema = schema
        self._files: Mapping[str, pa.Buffer] | None = files
        self._tables: Mapping[str, pa.Table] | None = None
        self._table: pa.Table | None = None

    @classmethod
    def of(cls, table: pa.Table, schema: pa.Schema) -> Self:
        """Hold a table, the rows of a system together. It is encoded when it is written.

        Parameters
        ----------
        table : pyarrow.Table
            Its names may be coded.
        schema : pyarrow.Schema
            The columns that are held.
        """
        made = cls(schema, {})
        made._files, made._tables = None, _by_system(coded(table, schema).unify_dictionaries().combine_chunks())
        return made

    @property
    def systems(self) -> list[str]:
        """The systems that have rows, in order."""
        return [*(self.files if self._tables is None else self._tables)]

    @property
    def files(self) -> Mapping[str, pa.Buffer]:
        """The rows of each system as a Parquet file."""
        if self._files is None:
            held = self._tables or {}
            self._files = {system: encoded(table, self._schema) for system, table in held.items()}
        return self._files

    @property
    def table(self) -> pa.Table:
        """All rows, with dictionaries for repeated names."""
        if self._table is None:
            self._table = self.among(self.systems)
        return self._table

    @property
    def num_rows(self) -> int:
        """The number of rows, which is known without decoding them."""
        if self._tables is not None:
            return sum(table.num_rows for table in self._tables.values())
        return sum(map(count_rows, self.files.values()))

    def among(self, systems: Iterable[str]) -> pa.Table:
        """The rows of some systems, in the given order, with dictionaries for repeated names."""
        none = coded(self._schema.empty_table(), self._schema)
        return gathered([none, *(own for own in map(self._of, systems) if own is not None)])

    def _of(self, system: str) -> pa.Table | None:
        if self._tables is not None:
            return self._tables.get(system)
        return coded_rows(self.files[system], self._schema) if system in self.files else None

    def parts(self) -> Iterator[bytes | memoryview]:
        """The parts, one after the other, of the Parquet file with all rows: row groups for each system."""
        return joined([*self.files.values()] or [encoded(self._schema.empty_table(), self._schema)])


def _by_system(table: pa.Table) -> dict[str, pa.Table]:
    """The rows of each system, in order of first appearance, of a table in one chunk."""
    if not table.num_rows:
        return {}
    column = table["system"].chunk(0)
    ends = np.cumsum(np.bincount(column.indices)).tolist()
    if not pc.all(pc.less_equal(column.indices[:-1], column.indices[1:])).as_py():
        table = table.take(np.argsort(column.indices, kind="stable"))
    begins = [0, *ends[:-1]]
    names = column.dictionary.to_pylist()
    return {name: table.slice(begin, end - begin) for name, begin, end in zip(names, begins, ends, strict=True)}
