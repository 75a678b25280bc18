"""Tables of results, the rows of each system apart, as the row groups of the file that they go into.

The rows of a system are encoded once, where its numbers are computed, if that is another process, or if there are many
systems. So encoded they travel, are kept in an archive, are held until they are written, and are copied into the file.
They are decoded when they are read, and only those of the systems that are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.parquet_files import count_rows, decoded_rows, encoded, joined
from swsdask.model.tables import coded, gathered


class SystemRows:
    """The rows of a schema whose first column is `system`.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns, with strings for names.
    held : mapping of str to pyarrow.Table or pyarrow.Buffer
        The rows of each system, in the order of the table: a table, whose names may be coded, or a Parquet file as
        `encoded` makes it.
    """

    def __init__(self, schema: pa.Schema, held: Mapping[str, pa.Table | pa.Buffer]) -> None:
        self._schema = schema
        self._held = held

    @classmethod
    def of(cls, table: pa.Table, schema: pa.Schema) -> Self:
        """Hold a table, the rows of a system together.

        Parameters
        ----------
        table : pyarrow.Table
            Its names may be coded.
        schema : pyarrow.Schema
            The columns that are held.
        """
        return cls(schema, _by_system(coded(table, schema).unify_dictionaries().combine_chunks()))

    @property
    def systems(self) -> list[str]:
        """The systems, in order."""
        return [*self._held]

    @cached_property
    def files(self) -> dict[str, pa.Buffer]:
        """The rows of each system as a Parquet file."""
        return {system: encoded(rows, self._schema) for system, rows in self._held.items()}

    @cached_property
    def table(self) -> pa.Table:
        """All rows, with dictionaries for repeated names."""
        return self.among(self.systems)

    @property
    def num_rows(self) -> int:
        """The number of rows, which is known without decoding them."""
        return sum(map(count_rows, self._held.values()))

    def among(self, systems: Iterable[str]) -> pa.Table:
        """The rows of some systems, in the given order, with dictionaries for repeated names."""
        none = coded(self._schema.empty_table(), self._schema)
        held = (self._held[system] for system in systems if system in self._held)
        return gathered([none, *(decoded_rows(rows, self._schema) for rows in held)])

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
