"""Tables under names: as pandas DataFrames, as Arrow, and through the Arrow PyCapsule interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from swsdask.model.errors import SettingsError
from swsdask.model.late_import import LateImport
from swsdask.model.trials import I64

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")

NAMES = pa.dictionary(pa.int32(), pa.string())
"""The type of names in tables in memory, where each name is held once: a fifth of the memory."""


def coded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table by a schema, its names as `NAMES` in order of first appearance: equal tables have equal codes."""
    fields = [pa.field(f.name, NAMES, f.nullable) if pa.types.is_string(f.type) else f for f in schema]
    columns = [
        table[f.name].dictionary_encode() if pa.types.is_dictionary(f.type) else table[f.name].cast(f.type)
        for f in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def decoded(table: pa.Table) -> pa.Table:
    """The table with strings in place of codes."""
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def places_of(column: pa.ChunkedArray, names: Sequence[str]) -> I64:
    """The place of every row's name among some distinct names, -1 of others: names are compared once, not by row."""
    place = {name: number for number, name in enumerate(names)}
    codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    found = [np.empty(0, np.int64)]
    for chunk in codes.chunks:
        of_code = np.array([*(place.get(name, -1) for name in chunk.dictionary.to_pylist()), -1], np.int64)
        code = chunk.indices.fill_null(len(of_code) - 1) if chunk.null_count else chunk.indices
        found.append(of_code[code.to_numpy(zero_copy_only=False)])
    return np.concatenate(found)


def rows_with(table: pa.Table, **names: Sequence[str]) -> pa.Table:
    """The rows of a table whose columns have one of some names each: `rows_with(curves, curve=["det"])`."""
    kept = np.ones(len(table), np.bool_)
    for column, wanted in names.items():
        kept &= places_of(table[column], wanted) >= 0
    return table.filter(pa.array(kept)).combine_chunks()


class Tables(ABC):
    """Tables under names. Each is a DataFrame by the attribute of its name, and in Arrow by `to_arrow`.

    Whatever reads the Arrow PyCapsule interface takes the object as its first table: ``polars.DataFrame(result)``.
    """

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, pa.Table | None]:
        """The tables as they are held, by their names; None for one that was not requested."""

    def to_arrow(self, table: str | None = None) -> pa.Table:
        """One of the tables in Arrow, with strings for names.

        Parameters
        ----------
        table : str, optional
            The name of the attribute that has the table as a DataFrame. Default: the first, `scores` of a result.

        Returns
        -------
        pyarrow.Table
            The rows, with the columns of the DataFrame.

        Raises
        ------
        SettingsError
            There is no such table.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> result = sws.score("demo/archive", "mtwv", runs="calibrated")
        >>> result.to_arrow("curves").column_names
        ['system', 'condition', 'curve', 'threshold', 'x', 'y']
        """
        held = {name: rows for name, rows in self.tables.items() if rows is not None}
        name = next(iter(held)) if table is None else table
        if name not in held:
            raise SettingsError(f"there is no table {name!r} here. There are: {', '.join(held)}.")
        return decoded(held[name])

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _frame(self, name: str) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow(name).to_pandas()
        return frame
