"""Lines `file onset offset [label]` as columns: regular ones all at once, others line by line.

Both ways give the same columns for the same lines; only the second reports problems. Blanks or tabs separate fields;
empty lines are ignored. Onset and offset are times in seconds, with the offset after the onset.

A time is exact if its double equals that of an integer number of ticks (then it is the double with which an official
tool computes, however the time is written); others are rounded half to even and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from swsdask.formats.files import Lines, lines_with_text, noted_at
from swsdask.formats.values import FormatError, shown
from swsdask.model.errors import Problems
from swsdask.model.units import MAX_TICKS, TICKS_PER_SECOND, id_fault, ticks

_NAME = pa.dictionary(pa.int32(), pa.string())

COLUMNS = pa.schema(
    [
        ("file", _NAME),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("label", _NAME),
        ("line", pa.int64()),
        ("rounded", pa.int8()),
    ]
)
"""The columns of what is read; where lines have no label there is no such column. `rounded` counts which of start and
end were finer than a tick."""

_SECONDS = pa.decimal128(36, 18)
_WHOLE_SECONDS_AND_TICKS = pa.decimal128(24, 4)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?0*[0-9]{1,2})?")


def read_timed(lines: Lines, file: str, problems: Problems, *, label: str | None = None) -> pa.Table:
    """The rows of some tidy lines (`COLUMNS`); `label` is the name of a fourth field, None if there are three.

    Lines with problems are left out, and the problems added to `problems`.
    """
    names = ["file", "start", "end", *(["label"] if label else [])]
    try:
        return _read_together(lines, names)
    except (ValueError, FormatError):
        return _read_singly(lines, names, label, file, problems)


def _read_together(lines: Lines, names: list[str]) -> pa.Table:
    """Raises `ValueError` or `FormatError` if anything is wrong, or merely irregular."""
    schema = _schema(names)
    at = lines_with_text(lines.data)
    if not len(at):
        return schema.empty_table()
    table = _parsed(lines.data, names, pa.float64())
    seconds = np.concatenate([table["start"].to_numpy(), table["end"].to_numpy()])
    times = np.rint(seconds * TICKS_PER_SECOND)
    inexact = np.flatnonzero(times / TICKS_PER_SECOND != seconds)
    if len(inexact):
        texts = _parsed(lines.data, names, pa.string())
        written = pa.chunked_array([*texts["start"].chunks, *texts["end"].chunks])
        times[inexact] = _rounded_ticks(written.take(pa.array(inexact)))
    start, end = np.split(times, 2)
    is_rounded = np.zeros(len(times), np.int8)
    is_rounded[inexact] = 1
    if not np.all((start >= 0) & (start < end) & (end <= MAX_TICKS)):
        raise ValueError("a time out of range")
    column = table["file"].combine_chunks()
    for name in column.dictionary.to_pylist():
        _check_file(name)
    made = {
        "start": pa.array(start.astype(np.int32)),
        "end": pa.array(end.astype(np.int32)),
        "line": pa.array(lines.first + at),
        "rounded": pa.array(is_rounded[: len(at)] + is_rounded[len(at) :]),
    }
    return pa.table([made.get(name, table[name] if name in names else None) for name in schema.names], schema=schema)


def _parsed(data: bytes, names: list[str], time: pa.DataType) -> pa.Table:
    kinds = {"file": _NAME, "start": time, "end": time, "label": _NAME}
    return csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        csv.ParseOptions(delimiter=" ", quote_char=False),
        csv.ConvertOptions(column_types={name: kinds[name] for name in names}, null_values=[]),
    )


def _rounded_ticks(texts: pa.ChunkedArray) -> NDArray[np.float64]:
    """The ticks of times that are not an integer number of them, rounded half to even."""
    rounded = pc.round(texts.cast(_SECONDS), ndigits=4, round_mode="half_to_even")
    whole = pc.multiply(rounded.cast(_WHOLE_SECONDS_AND_TICKS), Decimal(TICKS_PER_SECOND)).cast(pa.int64())
    return np.asarray(whole.to_numpy(), np.float64)


def _read_singly(lines: Lines, names: list[str], label: str | None, file: str, problems: Problems) -> pa.Table:
    schema = _schema(names)
    rows: list[tuple[object, ...]] = []
    for number, line in enumerate(lines.data.split(b"\n"), lines.first):
        fields = line.decode().split(" ")
        if fields == [""]:
            continue
        with noted_at(problems, file, number):
            rows.extend(_row(fields, label, number, file, problems))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table([pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)], schema=schema)


def _row(
    fields: list[str], label: str | None, number: int, file: str, problems: Problems
) -> Iterator[tuple[object, ...]]:
    """The row of a line, if it has no problems."""
    wanted = ["file", "onset", "offset", *([label] if label else [])]
    if len(fields) != len(wanted):
        expected = f"{len(wanted)} fields with blanks between them: {', '.join(wanted)}"
        raise FormatError(expected, f"{len(fields)}", "Correct the line.")
    before = len(problems)
    with noted_at(problems, file, number):
        _check_file(fields[0])
    times = []
    for text, name in zip(fields[1:3], wanted[1:3], strict=True):
        with noted_at(problems, file, number):
            times.append(read_seconds(text, name))
    if len(problems) > before:
        return
    (start, start_rounded), (end, end_rounded) = times
    if end <= start:
        raise FormatError("an offset after the onset", f"{fields[1]} and {fields[2]}", "Correct or remove the line.")
    yield fields[0], start, end, *fields[3:], number, start_rounded + end_rounded


def read_seconds(text: str, name: str) -> tuple[int, bool]:
    """A non-negative time in ticks, and whether it was rounded. Raises `FormatError`."""
    if not _NUMBER.fullmatch(text):
        raise FormatError(f"an {name} in seconds", shown(text), "Write it as a decimal number.")
    try:
        whole, _ = ticks(text)
    except OverflowError:
        whole = -1 if text.startswith("-") else MAX_TICKS + 1
    if whole < 0 or whole > MAX_TICKS:
        expected = f"an {name} from 0 to {MAX_TICKS / TICKS_PER_SECOND} seconds"
        raise FormatError(expected, shown(text), "Check its unit: it must be seconds.")
    return whole, whole / TICKS_PER_SECOND != float(text)


def _schema(names: list[str]) -> pa.Schema:
    return COLUMNS if "label" in names else COLUMNS.remove(COLUMNS.get_field_index("label"))


def _check_file(name: str) -> None:
    wrong = _file_fault(name)
    if wrong:
        raise FormatError("the name of a file", wrong, "Rename it.")


_file_fault = lru_cache(maxsize=1 << 16)(id_fault)


def as_table(schema: pa.Schema, parts: list[pa.Table]) -> pa.Table:
    """The parts as one table of a schema, with the count of rounded times in its metadata."""
    rows = pa.concat_tables(parts).unify_dictionaries()
    rounded = str(pc.sum(rows["rounded"]).as_py() or 0)
    return rows.select(schema.names).combine_chunks().cast(schema.with_metadata({"rounded": rounded}))
