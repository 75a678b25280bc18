"""Tables in memory: pandas and Polars DataFrames, Arrow tables, DuckDB relations, dictionaries as rows or by column.

An object that exports itself through the Arrow PyCapsule interface is a table, unless it is a single column; so are
lists of rows, and mappings of columns. Messages number rows from 1. Columns have the same names and meanings as in
files (`formats.runs.table`). Judgments and runs of judged documents may also have the names of ranx and ir_measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from numbers import Real
from typing import Any, ClassVar, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import pyarrow as pa

from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.read import ROWS_PER_PIECE
from swsdask.formats.values import shown
from swsdask.model.errors import InputError, Problem, Problems, SettingsError
from swsdask.model.limits import shortage
from swsdask.model.schemas import RunPiece

_INDEX = "__index_level_"
"""The prefix of the column that pandas makes of an index without a name."""

_ELSEWHERE = {"q_id": "query", "query_id": "query", "doc_id": "document"}
"""The names that ranx and ir_measures give to columns; a grade is `score` in ranx's judgments."""


@runtime_checkable
class ArrowStream(Protocol):
    """An object that exports itself through the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of Arrow record batches."""
        ...


Table: TypeAlias = ArrowStream | Iterable[Mapping[Any, Any]] | Mapping[Any, Sequence[Any]]
"""A DataFrame, an Arrow table, rows as dictionaries or named tuples, or columns by name."""

Judged: TypeAlias = Table | Mapping[Any, Mapping[Any, object]]
"""A table, or numbers by query and document: judgments, or scores."""


def is_table(value: object) -> TypeGuard[Table]:
    """Return whether `as_arrow` accepts a value. Iterators of rows are not consumed."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_column, value.values()))
    if isinstance(value, ArrowStream):
        return not _is_column(value)
    return isinstance(value, list) and bool(value) and all(map(_is_row, value))


def is_uncomputed(value: object) -> TypeGuard[Table]:
    """Return whether a value is a lazy table, such as a DataFrame of Dask or a LazyFrame of Polars."""
    writes = hasattr(type(value), "to_parquet") or hasattr(type(value), "sink_parquet")
    return writes and not isinstance(value, ArrowStream)


def check_files(given: object) -> None:
    """Raise `SettingsError` for a table or a mapping where files are expected: its keys would be taken for files."""
    if is_table(given) or is_uncomputed(given):
        raise SettingsError("expected files; found a table in memory. Write it to a file first.")
    if isinstance(given, Mapping):
        raise SettingsError(f"expected files; found the type {type(given).__name__}.")


def are_scores(value: object) -> TypeGuard[Mapping[str, Mapping[str, float]]]:
    """Return whether a value maps queries and documents to numbers, not systems to tables."""
    if not isinstance(value, Mapping):
        return False
    if not all(isinstance(scores, Mapping) and not is_table(scores) for scores in value.values()):
        return False
    found = [score for scores in value.values() for score in scores.values()]
    return bool(found) and not any(isinstance(score, Mapping) for score in found)


def _is_row(value: object) -> bool:
    """Return whether a value is a dictionary of single values or a named tuple."""
    return not is_table(value) if isinstance(value, Mapping) else hasattr(value, "_asdict")


def _is_column(value: object) -> bool:
    """Return whether a value is a list that is not of rows, an array, or a Series."""
    if isinstance(value, list | tuple):
        return not any(map(_is_row, value[:1])) and not _is_row(value)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return True
    return hasattr(type(value), "dtype") and getattr(value, "ndim", 1) == 1


def _row(value: Any) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else value._asdict()


def as_arrow(table: Table, name: str) -> pa.Table:
    """Return the table as Arrow, without a copy if it is already Arrow. An index without a name is left out.

    `name` is its name in messages. Raises `InputError` for a value that is not a table, for columns of mixed types or
    unequal lengths, and for two columns of one name.
    """
    if isinstance(table, Iterator | tuple) and not isinstance(table, ArrowStream):
        table = list(table)
    given = table if isinstance(table, list) else []
    kind = type(table)
    if is_uncomputed(table):
        found = f"a {kind.__name__} of {kind.__module__.partition('.')[0]} that is still to be computed"
        remedy = "Write it as Parquet and give the file or folder, or compute it."
        raise InputError(Problem(name, None, "a table in memory", found, remedy))
    if not is_table(table) and table is not given:
        raise _no_table(name, f"the type {kind.__name__}")
    for row in given:
        if not _is_row(row):
            raise _no_table(name, f"a list with {shown(repr(row))}")
    rows = [_row(row) for row in given]
    # pa.Table.from_pylist uses only the keys of the first row.
    names = dict.fromkeys(column for row in rows for column in row)
    columns = {n: [row.get(n) for row in rows] for n in names} if isinstance(table, list) else table
    try:
        arrow = pa.table(columns)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if (short := shortage(error, name)) is not None:
            raise short from error
        _check_once(map(str, getattr(table, "columns", ())), name)
        found = _mixed(columns) or shown(" ".join(str(error).split()))
        expected = "a table with columns of one type each, equally long"
        raise InputError(Problem(name, None, expected, found, "Convert it.")) from None
    _check_once(arrow.column_names, name)
    return arrow.select([column for column in arrow.column_names if not column.startswith(_INDEX)])


def _check_once(columns: Iterable[str], name: str) -> None:
    """Raise `InputError` for a column that comes twice."""
    twice = [column for column, times in Counter(columns).items() if times > 1]
    if twice:
        raise InputError(Problem(name, None, "each column once", f"{shown(twice[0])} twice", "Leave one out."))


def _mixed(columns: Any) -> str:
    """Describe the first value of a column whose type differs from the values before it; "" if there is none.

    `columns` is a table; only a DataFrame or a dictionary has values of mixed types. NaN counts as missing, as in
    pandas. Columns with a type, as in NumPy and Arrow, are not searched.
    """
    for column in columns if isinstance(columns, Mapping) else getattr(columns, "columns", ()):
        values = columns[column]
        if str(getattr(values, "dtype", "object")) != "object":
            continue
        before: type | None = None
        for number, value in enumerate(values, 1):
            if _is_missing(value):
                continue
            before = before or type(value)
            if not isinstance(value, before) and not (issubclass(before, Real) and isinstance(value, Real)):
                kinds = f"{type(value).__name__} in row {number} after {before.__name__}"
                return f"{kinds} in column {shown(str(column))}"
    return ""


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and isnan(value)) or type(value).__name__ in ("NAType", "NaTType")


def _no_table(name: str, found: str) -> InputError:
    expected = "a DataFrame, an Arrow table, a list of dictionaries or a dictionary of columns"
    return InputError(Problem(name, None, expected, found, "Convert it to one of these."))


def by_pair(given: Judged, name: str, value: str) -> pa.Table:
    """Return a table as Arrow. A mapping by query and document gives the columns query, document and `value`.

    Columns with names of ranx and ir_measures get our names, unless other columns have these already.
    """
    if not isinstance(given, Mapping) or is_table(given):
        table = as_arrow(given, name)
        names = _ELSEWHERE | ({} if value in table.column_names else {"score": value})
        renamed = [names.get(column, column) for column in table.column_names]
        return table.rename_columns(renamed) if len(set(renamed)) == len(renamed) else table
    by_query = cast("Mapping[str, Mapping[str, object]]", given)
    try:
        rows = [(query, document, each) for query, own in by_query.items() for document, each in own.items()]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table(dict(zip(("query", "document", value), map(pa.array, columns), strict=True)))
    except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError) as error:
        found = shown(" ".join(str(error).split()))
        expected = f"{{query: {{document: {value}}}}}, ids as text and numbers"
        raise InputError(Problem(name, None, expected, found, "Convert it.")) from None


@dataclass(frozen=True, eq=False)
class TableRun:
    """A run in a table in memory, a source of rows like a file. Picklable.

    `file` is its name in messages. A table of `judged` documents needs no times.
    """

    file: str
    table: pa.Table
    system: str | None = None
    encoding: Encoding | None = None
    judged: bool = False
    in_memory: ClassVar[bool] = True

    @property
    def rows_about(self) -> int:
        """The number of rows."""
        rows: int = self.table.num_rows
        return rows

    def parts(self, _: int, /) -> list[TableRun]:
        """Return the whole table."""
        return [self]

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """Return the rows, in pieces, each of one system."""
        from swsdask.formats.runs.parquet import read_arrow_table

        encoding = self.encoding or PLAIN
        return read_arrow_table(
            self.table, self.file, problems, ROWS_PER_PIECE, self.system, encoding, judged=self.judged
        )

    def line_of(self, system: str, row: int) -> None:
        """None: a table in memory has no lines."""
