"""Tables in memory: pandas and Polars DataFrames, Arrow tables, DuckDB relations, lists of dictionaries.

Whatever exports itself through the Arrow PyCapsule interface is a table; rows are numbered from 1 in messages. Columns
have the names and the meaning that they have in files (`formats.runs.table`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import pyarrow as pa

from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.read import ROWS_PER_PIECE
from swsdask.formats.values import shown
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.schemas import RunPiece

_INDEX = "__index_level_"
"""How a column begins that pandas makes of an index without a name."""


@runtime_checkable
class ArrowStream(Protocol):
    """What exports itself through the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of Arrow record batches."""
        ...


Table: TypeAlias = ArrowStream | Sequence[Mapping[str, Any]]
"""A DataFrame, an Arrow table, or rows as dictionaries."""

Judged: TypeAlias = ArrowStream | Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]
"""A table, or numbers by query and document: judgments, or scores."""


def is_table(value: object) -> TypeGuard[Table]:
    """Whether `as_arrow` takes a value."""
    if isinstance(value, ArrowStream):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def as_arrow(table: Table, name: str) -> pa.Table:
    """The table as Arrow, without a copy where it is Arrow already; an index without a name is left out.

    `name` is what messages call it. Raises `InputError` for what is no table, and for columns of mixed types.
    """
    rows = table if isinstance(table, list) else []
    if not is_table(table) and table is not rows:
        raise _no_table(name, f"the type {type(table).__name__}")
    for row in rows:
        if not isinstance(row, Mapping):
            raise _no_table(name, f"a list with {shown(repr(row))}")
    try:
        arrow = (
            pa.table(table) if isinstance(table, ArrowStream) else pa.Table.from_pylist([dict(row) for row in table])
        )
    except (pa.ArrowException, TypeError, ValueError) as error:
        found = shown(" ".join(str(error).split()))
        raise InputError(Problem(name, None, "a table with columns of one type each", found, "Convert it.")) from None
    return arrow.select([column for column in arrow.column_names if not column.startswith(_INDEX)])


def _no_table(name: str, found: str) -> InputError:
    expected = "a DataFrame, an Arrow table or a list of dictionaries"
    return InputError(Problem(name, None, expected, found, "Convert it to one of these."))


def by_pair(given: Judged, name: str, value: str) -> pa.Table:
    """A table as Arrow; of a mapping by query and document the columns query, document and `value`."""
    if not isinstance(given, Mapping):
        return as_arrow(given, name)
    try:
        rows = [(query, document, number) for query, numbers in given.items() for document, number in numbers.items()]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table(dict(zip(("query", "document", value), map(pa.array, columns), strict=True)))
    except (pa.ArrowException, AttributeError) as error:
        found = shown(" ".join(str(error).split()))
        expected = f"{{query: {{document: {value}}}}}, ids as text and numbers"
        raise InputError(Problem(name, None, expected, found, "Convert it.")) from None


@dataclass(frozen=True, eq=False)
class TableRun:
    """A run in a table in memory: a source of rows as files are. Picklable.

    `file` is what messages call it. A table of `judged` documents needs no times.
    """

    file: str
    table: pa.Table
    system: str | None = None
    encoding: Encoding | None = None
    judged: bool = False

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """The rows, in pieces, each of one system."""
        from swsdask.formats.runs.table import read_arrow_table

        encoding = self.encoding or PLAIN
        return read_arrow_table(
            self.table, self.file, problems, ROWS_PER_PIECE, self.system, encoding, judged=self.judged
        )

    def line_of(self, system: str, row: int) -> None:
        """The line of a row: a table has none."""
