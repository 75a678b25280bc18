"""Runs as tables with typed columns: Parquet files, folders of them, and tables in memory.

The columns are those of a table in text (`swsdask.formats.runs.table`); a decision may also be boolean. The metadata of
a Parquet file are the header's attributes. Problems name the number of the row in the file, from 1.

A folder of Parquet files, as Dask, Spark, Polars and pyarrow write it, is one table (`parts_of`): the rows of its
files, in the order of their names; numbers in names are compared as numbers. A folder KEY=VALUE on the path to a file
is a column of its rows. All files must have the columns of detections of the first one; their metadata are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.formats.files import EXPANDED_AT_EASE, check_expansion, decompress, file_size, noted, open_plain
from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.gathering import Batch, Gathering
from swsdask.formats.runs.table import IDS, are_judged, choose_columns, proper_names, with_times
from swsdask.formats.values import FormatError, read_header, shown, system_of_file
from swsdask.model.errors import InputError, Problem, Problems, ResourceError
from swsdask.model.limits import shortage
from swsdask.model.schemas import RunPiece
from swsdask.places.reading import Pipe, file_system, is_local, join_path, storage_fault

_ROWS_PER_BATCH = 1 << 16
_VALUE = 8
"""The approximate size of a value of a table in memory, in bytes."""

_BUFFER = 1 << 20
"""Bytes of a column read at a time, so that a row group need not fit into memory."""

_ARROWS_OWN = ("ARROW:schema", "pandas")

ENDING = ".parquet"
_KEY = re.compile(r"([^=]+)=(.*)")
_APART = ("_", ".")
"""The first characters of names of files that are no parts: hidden files, and those that Spark and Dask add."""

_LOG = re.compile(r"(.*/)?((_delta_log|\.hoodie)/.*|metadata/.*\.metadata\.json)")
"""Files in which Delta Lake, Hudi and Iceberg record which of the other files still count."""

_SIGN = re.compile(r"[^=]+=.*/|_SUCCESS|_(common_)?metadata|part[-.]?\d.*\.parquet")
"""Names that show a folder to be one table: folders KEY=VALUE, parts, and files that Spark and Dask add."""

_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""The text of a missing value in the name of a folder."""

_WITHOUT_FOLDERS = ("http://", "https://")


def parts_of(place: str) -> dict[str, int]:
    """The files of a folder that is one table, in order, with their sizes in bytes; none if it is no such folder.

    A folder without Parquet files is no table. A log that says which files count (`_LOG`) comes first; reading it
    raises an error. A place in a store is not listed if its name has the ending of another format.
    Raises `InputError` if the storage cannot be listed.
    """
    name = place.rstrip("/").rpartition("/")[2]
    may_be = os.path.isdir(place) if is_local(place) else name.endswith(ENDING) or system_of_file(place) == name
    if not may_be or "::" in place or place.startswith(_WITHOUT_FOLDERS):
        return {}
    try:
        filesystem, root = file_system(place)
        filesystem.invalidate_cache()  # files may have come since it was listed
        below = filesystem.find(root, detail=True)
    except Exception as error:
        raise storage_fault(place, error) from None
    begin = len(root.rstrip("/")) + 1
    sizes = {path[begin:]: int(info["size"] or 0) for path, info in below.items() if len(path) > begin}
    logs = sorted(filter(_LOG.fullmatch, sizes))
    names = [each for each in sizes if not any(name.startswith(_APART) for name in each.split("/"))]
    if not any(each.endswith(ENDING) for each in names):
        return {}
    return {join_path(place, each): sizes[each] for each in [*logs[:1], *sorted({*names} - {*logs}, key=_by_number)]}


def is_one_table(folder: str) -> bool:
    """Whether a folder that the user did not name is one table, as its name or the names in it show (`_SIGN`)."""
    says_so = folder.rstrip("/").endswith(ENDING) or any(map(_SIGN.fullmatch, folder_entries(folder)))
    return says_so and bool(parts_of(folder))


def folder_entries(folder: str) -> list[str]:
    """Return the names in a folder, sorted; those of folders end in a slash.

    Raises `InputError` if it cannot be listed.
    """
    try:
        if is_local(folder):
            with os.scandir(folder) as entries:
                return sorted(entry.name + "/" * entry.is_dir() for entry in entries)
        filesystem, path = file_system(folder)
        found = ((each["name"].rstrip("/"), each["type"]) for each in filesystem.ls(path, detail=True))
        return sorted(name.rpartition("/")[2] + "/" * (kind == "directory") for name, kind in found)
    except Exception as error:
        raise storage_fault(folder, error) from None


def _by_number(name: str) -> list[tuple[str, int]]:
    """Return a sort key that compares numbers in names as numbers."""
    texts = re.split(r"(\d+)", name)
    return [(text, int(number or 0)) for text, number in zip(texts[::2], [*texts[1::2], ""], strict=True)]


def read_parquet_table(
    file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
) -> Iterator[RunPiece]:
    """Yield the pieces of a Parquet file."""
    with noted(problems):
        tables = _open_files([file])
        first = next(tables)
        yield from _pieces(first, chain((first,), tables), file, problems, rows_per_piece, system, encoding)


def read_parquet_folder(
    folder: str,
    problems: Problems,
    rows_per_piece: int,
    system: str | None,
    encoding: Encoding = PLAIN,
    some: Files | None = None,
) -> Iterator[RunPiece]:
    """Yield the pieces of a folder of Parquet files, or of `some` of the files."""
    with noted(problems):
        files = tuple(parts_of(folder)) if some is None else some.files
        (first,) = _open_files([files[0] if some is None else some.first], folder)
        yield from _pieces(first, _open_files(files, folder), folder, problems, rows_per_piece, system, encoding)


class Files(NamedTuple):
    """Some of the files in a folder that is one table, and the first of all files, which determines the columns."""

    first: str
    files: tuple[str, ...]


def divide_folder(folder: str, n_parts: int, system: str | None) -> list[Files]:
    """Return the files of a folder in at most `n_parts` parts of about equal size, in order.

    No parts if the run is named and its rows name systems: only a reader of all rows can see if there are several.
    """
    sizes = parts_of(folder)
    (first,) = _open_files([next(iter(sizes))], folder)
    if system is not None and "system" in proper_names(first.schema.names):
        return []
    whole = max(1, sum(sizes.values()))
    found: dict[int, tuple[str, ...]] = {}
    before = 0
    for file, size in sizes.items():
        place = (2 * before + size) * n_parts // (2 * whole + 1)
        found[place] = (*found.get(place, ()), file)
        before += size
    return [Files(first.file, files) for files in found.values()]


def read_arrow_table(
    table: pa.Table,
    name: str,
    problems: Problems,
    rows_per_piece: int,
    system: str | None,
    encoding: Encoding = PLAIN,
    *,
    judged: bool = False,
) -> Iterator[RunPiece]:
    """Yield the pieces of a table in memory (`name` in messages); a table of `judged` documents may have no times."""

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from table.select(columns).unify_dictionaries().to_batches(_ROWS_PER_BATCH)

    own = _Typed(name, table.schema, _attributes(table.schema.metadata), batches)
    yield from _pieces(own, [own], name, problems, rows_per_piece, system, encoding, judged=judged)


class _Typed(NamedTuple):
    """A table with typed columns, or a part of one; `batches` gives its rows in the named columns."""

    file: str
    schema: pa.Schema
    attributes: Mapping[str, str]
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


def _open_files(files: Sequence[str], folder: str | None = None) -> Iterator[_Typed]:
    """Yield the files, or parts of the table in `folder`; each is open until the next one is requested."""
    for file in files:
        with ExitStack() as stack:
            if folder is not None and _LOG.fullmatch(file):
                expected, found = "a folder in which all Parquet files count", "a table of Delta Lake, Hudi or Iceberg"
                remedy = "Write the rows that it has now as Parquet, to a file or another folder."
                raise InputError(Problem(file, None, expected, found, remedy))
            table = _open(file, stack)
            if folder is None:
                yield _add_keys(file, table, {})._replace(attributes=_attributes(table.metadata.metadata))
            else:
                yield _add_keys(file, table, _keys(file, folder))


def _add_keys(file: str, table: pq.ParquetFile, keys: Mapping[str, str | None]) -> _Typed:
    """Return an open file as a table that has its keys as columns, unless it has columns of these names."""
    schema = table.schema_arrow
    more = {key: value for key, value in keys.items() if key not in schema.names}
    for key in more:
        schema = schema.append(pa.field(key, pa.string()))

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        stored = [name for name in columns if name not in more]
        for batch in table.iter_batches(_ROWS_PER_BATCH, columns=stored):
            if batch.nbytes > EXPANDED_AT_EASE:  # the sizes that the file itself states may be wrong
                check_expansion(file, file_size(file), batch.nbytes)
            held = dict(zip(batch.schema.names, batch.columns, strict=True))
            held |= {name: _constant(more[name], batch.num_rows) for name in columns if name in more}
            yield pa.RecordBatch.from_arrays([held[name] for name in columns], names=list(columns))

    return _Typed(file, schema, {}, batches)


def _constant(value: str | None, size: int) -> pa.Array:
    if value is None:
        return pa.nulls(size, pa.string())
    return pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), pa.array([value], pa.string()))


def _keys(file: str, folder: str) -> dict[str, str | None]:
    """The columns in the names of a folder and of the folders below it on the path to a file, with their values."""
    begin = folder.rstrip("/").rpartition("/")[0]
    way = file.removeprefix(begin).split("/")[:-1]
    found = {key[1]: unquote(key[2]) for each in way if (key := _KEY.fullmatch(each))}
    return {key: None if value == _NOTHING else value for key, value in found.items()}


def _pieces(
    first: _Typed,
    tables: Iterable[_Typed],
    file: str,
    problems: Problems,
    rows_per_piece: int,
    system: str | None,
    encoding: Encoding,
    *,
    judged: bool = False,
) -> Iterator[RunPiece]:
    """The pieces of tables with typed columns that are parts of one table, `file`, with the columns of the first."""
    with noted(problems):
        try:
            columns, ignored = _chosen(first, judged=judged)
            header = read_header({**first.attributes, **ignored, **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(first.file, None, fault.expected, fault.found, fault.remedy)
            return
        judged = judged or are_judged(first.schema.names)
        gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=judged)
        rows = _rows(tables, columns, problems, judged=judged)
        yield from gathering.pieces(encoding.decode(with_times(each)) for each in rows)


def _chosen(table: _Typed, *, judged: bool) -> tuple[dict[str, int], dict[str, str]]:
    """Choose columns as `choose_columns` does, and check their types."""
    columns, ignored = choose_columns(table.schema.names, judged=judged)
    for name, place in columns.items():
        check_type(name, table.schema.field(place).type)
    return columns, ignored


def _rows(tables: Iterable[_Typed], wanted: Mapping[str, int], problems: Problems, *, judged: bool) -> Iterator[Batch]:
    """Yield the rows of tables, all of which must have the columns `wanted`."""
    for table in tables:
        try:
            columns, _ = _chosen(table, judged=judged)
            if columns.keys() != wanted.keys():
                remedy = "Write all files of a table with the same columns."
                raise FormatError(f"the columns {', '.join(wanted)}, as in the first file", ", ".join(columns), remedy)
        except FormatError as fault:
            problems.add(table.file, None, fault.expected, fault.found, fault.remedy)
            return
        yield from _batches(table, {name: table.schema.names[place] for name, place in columns.items()}, problems)


def _batches(table: _Typed, stored: Mapping[str, str], problems: Problems) -> Iterator[Batch]:
    """Yield the rows in batches; `stored` has the names of the columns in the table."""
    first_row = 1
    with noted(problems):
        try:
            for batch in table.batches(list(stored.values())):
                batch.validate(full=True)
                columns = {name: _plain(name, batch.column(called), table.file) for name, called in stored.items()}
                yield Batch(columns, None, first_row, file=table.file)
                first_row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _damaged(table.file, error) from None


def _plain(name: str, column: pa.Array, file: str) -> pa.Array:
    """Return a column without dictionary if most values are distinct."""
    if not pa.types.is_dictionary(column.type) or name in IDS:
        return column
    if _is_text(column.type.value_type):  # a long text, once in the file, may be in all rows
        sizes = pc.binary_length(column.dictionary).take(column.indices)
        check_expansion(file, column.nbytes, pc.sum(sizes).as_py() or 0)
    return column.dictionary_decode()


def column_names(place: str) -> list[str]:
    """Return the columns of a Parquet file, or of a folder that is one table.

    Raises `InputError` for a damaged file.
    """
    parts = parts_of(place)
    first = next(_open_files([*parts] or [place], place if parts else None))
    return list(first.schema.names)


def whole_table(place: str) -> pa.Table:
    """Return a Parquet file, or all of a folder that is one table. Raises `InputError` for a damaged file."""
    parts = parts_of(place)
    found = []
    for table in _open_files([*parts] or [place], place if parts else None):
        try:
            batches = [*table.batches(table.schema.names)]
            found.append(pa.Table.from_batches(batches, batches[0].schema) if batches else table.schema.empty_table())
            found[-1].validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(table.file, error) from None
    try:
        return pa.concat_tables(found).unify_dictionaries()
    except pa.ArrowException:
        raise InputError(
            Problem(place, None, "files with the same columns", "files with others", "Write all of them alike.")
        ) from None


def _open(file: str, stack: ExitStack) -> pq.ParquetFile:
    source: object = file
    try:
        if not is_local(file) or isinstance(file, Pipe):
            source = stack.enter_context(open_plain(file))
        try:
            metadata = pq.read_metadata(source)
        except pa.ArrowInvalid:  # compressed as a whole, or damaged
            source = stack.enter_context(decompress(file))
            metadata = pq.read_metadata(source)
        encoded = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        check_expansion(file, file_size(file), max(encoded, metadata.num_rows * metadata.num_columns * _VALUE))
        fields = [field for field in metadata.schema.to_arrow_schema() if not pa.types.is_nested(field.type)]
        # A text is read once, however many rows have it: the rows of a small file may repeat a long one.
        texts = [field.name for field in fields if _is_text(field.type)]
        table = pq.ParquetFile(source, metadata=metadata, read_dictionary=texts, buffer_size=_BUFFER, pre_buffer=False)
        return stack.enter_context(table)
    except pa.ArrowException as error:
        raise _damaged(file, error) from None
    except Exception as error:
        raise storage_fault(file, error) from None


def _damaged(file: str, error: Exception) -> InputError | ResourceError:
    if (short := shortage(error, file)) is not None:
        return short
    found = " ".join(str(error).split())
    return InputError(Problem(file, None, "whole Parquet data", shown(found), "Write or copy the file again."))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def check_type(name: str, kind: pa.DataType) -> None:
    """Raise `FormatError` for a column whose type does not suit its contents."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_decision = pa.types.is_boolean(kind) and name == "decision"
    if not (_is_text(kind) or is_number or is_decision or pa.types.is_null(kind)):
        raise FormatError(f"text or numbers in column {name}", f"the type {kind}", "Write it as text or as numbers.")


def _attributes(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the metadata of a table as attributes of a run's header."""
    texts = {key.decode("utf-8", "replace"): value for key, value in (metadata or {}).items()}
    return {key: value.decode("utf-8", "replace") for key, value in texts.items() if key not in _ARROWS_OWN}
