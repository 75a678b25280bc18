"""Detections in Parquet: the columns of `run_table`; a decision may be true or false too.

The file's metadata are the header's attributes. What is wrong with a row is told by its number, from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from swsdask.errors import InputError, Problem, Problems
from swsdask.formats.noting import noted
from swsdask.formats.opening import is_local, storage_fault
from swsdask.formats.run_encoding import PLAIN, Encoding
from swsdask.formats.run_gather import Batch, Gathering
from swsdask.formats.run_header import read_header
from swsdask.formats.run_table import IDS, are_judged, choose_columns, with_times
from swsdask.formats.run_values import FormatError, shown
from swsdask.model.runs import RunPiece

_ROWS_PER_BATCH = 1 << 16
_BUFFER = 1 << 20
"""Bytes of a column read at a time, so that a row group need not fit into memory."""

_ARROWS_OWN = ("ARROW:schema", "pandas")


def read_parquet_table(
    file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
) -> Iterator[RunPiece]:
    """The pieces of a Parquet file."""
    with noted(problems), ExitStack() as stack:
        table = _open(file, stack)
        schema = table.schema_arrow
        try:
            columns, ignored = choose_columns(schema.names)
            for name, place in columns.items():
                _check_type(name, schema.field(place).type)
            header = read_header({**_metadata(table), **ignored, **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(file, None, fault.expected, fault.found, fault.remedy)
            return
        judged = are_judged(schema.names)
        gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=judged)
        stored = {name: schema.names[place] for name, place in columns.items()}
        batches = _batches(file, table, stored, problems)
        yield from gathering.pieces(encoding.decoded(with_times(each)) for each in batches)


def _open(file: str, stack: ExitStack) -> pq.ParquetFile:
    source: Any = file
    try:
        if not is_local(file):
            from fsspec.core import url_to_fs

            filesystem, path = url_to_fs(file)
            source = stack.enter_context(filesystem.open(path, "rb"))
        metadata = pq.read_metadata(source)
        ids = [name for name in metadata.schema.to_arrow_schema().names if name.strip().lower() in IDS]
        table = pq.ParquetFile(source, metadata=metadata, read_dictionary=ids, buffer_size=_BUFFER, pre_buffer=False)
        return stack.enter_context(table)
    except pa.ArrowException as error:
        raise _damaged(file, error) from None
    except Exception as error:
        raise storage_fault(file, error) from None


def _batches(file: str, table: pq.ParquetFile, stored: Mapping[str, str], problems: Problems) -> Iterator[Batch]:
    """The rows in batches; `stored` tells what the file calls the columns."""
    first_row = 1
    with noted(problems):
        try:
            for batch in table.iter_batches(_ROWS_PER_BATCH, columns=list(stored.values())):
                batch.validate(full=True)
                columns = {name: _plain(name, batch.column(called)) for name, called in stored.items()}
                yield Batch(columns, None, first_row)
                first_row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _damaged(file, error) from None


def _plain(name: str, column: pa.Array) -> pa.Array:
    """A column without dictionary where values differ much."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) and name not in IDS else column


def _damaged(file: str, error: Exception) -> InputError:
    found = " ".join(str(error).split())
    return InputError(Problem(file, None, "whole Parquet data", shown(found), "Write or copy the file again."))


def _check_type(name: str, kind: pa.DataType) -> None:
    """Raises `FormatError` for a column that cannot hold what it is to hold."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (is_text or is_number or pa.types.is_null(kind) or (pa.types.is_boolean(kind) and name == "decision")):
        raise FormatError(f"text or numbers in column {name}", f"the type {kind}", "Write it as text or as numbers.")


def _metadata(table: pq.ParquetFile) -> dict[str, str]:
    metadata = {key.decode("utf-8", "replace"): value for key, value in (table.metadata.metadata or {}).items()}
    return {key: value.decode("utf-8", "replace") for key, value in metadata.items() if key not in _ARROWS_OWN}
