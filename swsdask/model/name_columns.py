"""Columns of names in tables in memory: each name is held once, and rows have its code.

Codes number the names in order of first appearance, so that equal tables have equal codes. Functions that look at the
names of a column look at each distinct name once.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.trials import I32, I64, Bool

NAMES = pa.dictionary(pa.int32(), pa.string())
"""The type of names in tables in memory. Each name is held once, which takes a fifth of the memory of strings."""


def coded_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with `NAMES` in place of strings."""
    return pa.schema([field.with_type(NAMES) if pa.types.is_string(field.type) else field for field in schema])


def coded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema, names as `NAMES` in order of first appearance: equal tables have equal codes."""
    fields = coded_schema(schema)
    columns = [
        table[f.name].dictionary_encode() if pa.types.is_dictionary(f.type) else table[f.name].cast(f.type)
        for f in fields
    ]
    return pa.table(columns, schema=fields)


def gathered(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of one schema, one after the other, names coded in order of first appearance.

    A column of names that is equal in several chunks is held once: many systems have the same queries and measures. In
    columns with one name in each chunk, such as `system`, every chunk has its own dictionary, and chunks share codes.
    """
    batches: list[pa.RecordBatch] = []
    for batch in (batch for table in tables for batch in table.to_batches()):
        before = batches[-1].columns if batches else [None] * batch.num_columns
        columns = [_shared(*each) for each in zip(batch.columns, before, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
    table = pa.Table.from_batches(batches, tables[0].schema)
    return pa.table([_with_equal_codes(column) for column in table.columns], schema=table.schema)


def _with_equal_codes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with one dictionary of names, unless each chunk has one name."""
    if not pa.types.is_dictionary(column.type) or all(len(each.dictionary) == 1 for each in column.chunks):
        return column
    return column.unify_dictionaries()


def _shared(column: pa.Array, before: pa.Array | None) -> pa.Array:
    """Return the column; one of names shares memory if it is equal to the chunk before it or has only one name."""
    if not pa.types.is_dictionary(column.type):
        return column
    if before is not None and column.equals(before):
        return before
    ends = pc.min_max(column.indices)
    if column.null_count or not len(column) or ends["min"] != ends["max"]:
        return column
    return constant(column.dictionary.slice(ends["min"].as_py(), 1), len(column))


def constant(name: pa.Array, length: int) -> pa.Array:
    """Return a column that repeats the one name in `name`; all such columns share the memory of their codes."""
    return pa.DictionaryArray.from_arrays(pa.array(_zeros(1 << length.bit_length())[:length]), name)


@cache
def _zeros(length: int) -> I32:
    """Return the codes of columns of one name: zeroed memory that is never written takes no space."""
    return np.zeros(length, np.int32)


def decoded(table: pa.Table) -> pa.Table:
    """Return the table with strings in place of codes."""
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def places_of(column: pa.ChunkedArray, names: Sequence[str]) -> I64:
    """The index of every row's name in `names` (distinct), -1 for others: names are compared once, not by row."""
    column = _with_codes(column).unify_dictionaries()
    if not column.num_chunks:
        return np.empty(0, np.int64)
    places = pc.index_in(column.chunk(0).dictionary, value_set=pa.array(names, pa.string()))
    of_code = np.append(places.fill_null(-1).to_numpy(), -1).astype(np.int64)
    codes = [each.indices.fill_null(len(of_code) - 1) if each.null_count else each.indices for each in column.chunks]
    return np.concatenate([of_code[each.to_numpy(zero_copy_only=False)] for each in codes])


def distinct_names(column: pa.ChunkedArray) -> list[str]:
    """Return the names in a column, in order of first appearance."""
    found: dict[str, None] = {}
    for chunk in _with_codes(column).chunks:
        found |= dict.fromkeys(chunk.dictionary.take(chunk.indices.unique().drop_null()).to_pylist())
    return [*found]


def names_of(column: pa.ChunkedArray) -> list[str]:
    """Return the name in every row of a column without nulls: names are decoded once, not by row."""
    found: list[str] = []
    for chunk in _with_codes(column).chunks:
        names = chunk.dictionary.to_pylist()
        found += [names[code] for code in chunk.indices.to_pylist()]
    return found


def rows_with(table: pa.Table, **names: Sequence[str]) -> pa.Table:
    """The rows of a table that have one of the given names in each given column: `rows_with(curves, curve=["det"])`.

    A chunk without these names, for example of another system, takes almost no time.
    """
    parts = []
    for batch in table.to_batches():
        kept: Bool | None = None
        for column, wanted in names.items():
            own = _among(batch[column], set(wanted))
            if own is False:
                break
            if own is not True:
                kept = own if kept is None else kept & own
        else:
            parts.append(batch if kept is None else batch.filter(pa.array(kept)))
    return pa.Table.from_batches(parts, table.schema)


def rows_by(table: pa.Table, column: str) -> dict[str, pa.Table]:
    """Return the rows of each name in a column, names in order of first appearance; rows without a name are left out.

    Only chunks with several names are searched.
    """
    parts: dict[str, list[pa.RecordBatch]] = {}
    for batch in table.to_batches():
        codes = _with_codes(batch[column])
        there = pc.unique(codes.indices.drop_null()).to_pylist()
        for code in there:
            one = len(there) == 1 and not codes.null_count
            rows = batch if one else batch.filter(pc.equal(codes.indices, code))
            parts.setdefault(codes.dictionary[code].as_py(), []).append(rows)
    return {name: pa.Table.from_batches(own, table.schema) for name, own in parts.items()}


def _among(column: pa.Array, wanted: Set[str]) -> Bool | bool:
    """Return the mask of the rows that have one of the names; a single bool if it holds for all rows."""
    codes = _with_codes(column)
    if codes.null_count == len(codes):
        return False
    there = (codes.indices.drop_null() if codes.null_count else codes.indices).to_numpy()
    least, most = int(there.min()), int(there.max())
    between = [name in wanted for name in codes.dictionary.slice(least, most - least + 1).to_pylist()]
    if not any(between):
        return False
    if all(between) and not codes.null_count:
        return True
    of_code = np.array([*between, False], np.bool_)
    indices = codes.indices.fill_null(most + 1) if codes.null_count else codes.indices
    places: I64 = indices.to_numpy(zero_copy_only=False) - least
    return of_code[places]


def _with_codes(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
