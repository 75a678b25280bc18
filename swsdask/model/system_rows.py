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

from swsdask.model.parquet_files import coded_rows, count_rows, encoded, joined
from swsdask.model.tables import coded, distinct, gathered, rows_with


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
        self._table: pa.Table | None = None

    @classmethod
    def of(cls, table: pa.Table, schema: pa.Schema) -> Self:
        """Hold a table. It is encoded when it is written, the rows of a system together.

        Parameters
        ----------
        table : pyarrow.Table
            Its names may be coded.
        schema : pyarrow.Schema
            The columns that are held.
        """
        made = cls(schema, {})
        made._files, made._table = None, coded(table, schema)
        return made

    @property
    def files(self) -> Mapping[str, pa.Buffer]:
        """The rows of each system as a Parquet file."""
        if self._files is None:
            self._files = _by_system(self.table, self._schema)
        return self._files

    @property
    def systems(self) -> list[str]:
        """The systems that have rows, in order."""
        return [*self.files] if self._table is None else distinct(self._table["system"])

    @property
    def table(self) -> pa.Table:
        """All rows, with dictionaries for repeated names."""
        if self._table is None:
            self._table = self._decoded(self.files.values())
        return self._table

    @property
    def num_rows(self) -> int:
        """The number of rows, which is known without decoding them."""
        return sum(map(count_rows, self.files.values())) if self._table is None else self._table.num_rows

    def among(self, systems: Iterable[str]) -> pa.Table:
        """The rows of some systems, with dictionaries for repeated names."""
        wanted = set(systems)
        if self._table is not None:
            return rows_with(self._table, system=[*wanted])
        return self._decoded(file for system, file in self.files.items() if system in wanted)

    def _decoded(self, files: Iterable[pa.Buffer]) -> pa.Table:
        none = coded(self._schema.empty_table(), self._schema)
        return gathered([none, *(coded_rows(file, self._schema) for file in files)])

    def parts(self) -> Iterator[bytes | memoryview]:
        """The parts, one after the other, of the Parquet file with all rows: row groups for each system."""
        return joined([*self.files.values()] or [encoded(self._schema.empty_table(), self._schema)])


def _by_system(table: pa.Table, schema: pa.Schema) -> dict[str, pa.Buffer]:
    table = table.unify_dictionaries().combine_chunks()
    if not table.num_rows:
        return {}
    column = table["system"].chunk(0)
    table = table.take(np.argsort(column.indices, kind="stable"))
    ends = np.cumsum(np.bincount(column.indices)).tolist()
    begins = [0, *ends[:-1]]
    names = column.dictionary.to_pylist()
    return {
        system: encoded(table.slice(begin, end - begin), schema)
        for system, begin, end in zip(names, begins, ends, strict=True)
    }
