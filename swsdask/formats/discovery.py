"""Files of term discovery: alignments, stretches of speech, folds, speakers, classes.

Fields are separated by blanks or tabs. Times are in seconds; an offset is after its onset. Unless stated otherwise,
lines may be in any order and empty lines are ignored.

Alignments: a line per phone or word (Zero Resource challenges; `.phn`, `.wrd`). The tools separate the four fields at
single blanks.

    file onset offset label

Stretches of files: the parts that are speech (`.split`, `.vad`), and the parts of folds.

    file onset offset

In a fold file, one empty line separates two folds (tde's `.intervals.cross`, `.intervals.within`). Empty lines at the
end are ignored: in tde each makes a fold without stretches, which all means omit. Any other second empty line would
make such a fold too, and is an error.

Speaker maps: the speaker of each file.

    file speaker

Class files: the classes of fragments that a system discovered (Zero Resource challenges).

    Class 1 [text]
    file onset offset
    file onset offset
                          <- one empty line or more
    Class 2 [text]
    ...

A class begins with `Class`, after an empty line except for the first, and ends at an empty line or the end of the file
(tdev2 needs an empty line there too, see `ClassFile.ends_blank`). It may have no fragments. A fragment outside a class,
or with a number of fields other than three, is an error in every definition: tde ignores further fields, tdev2 refuses
them, and a file that both can read has the same meaning here.

Lines `file onset offset [label]` are read into columns: regular lines all at once, others line by line.

Both ways give the same columns for the same lines; only the second reports problems. Blanks or tabs separate fields;
empty lines are ignored. Onset and offset are times in seconds, with the offset after the onset.

A time is exact if its double equals that of an integer number of ticks. It is then the double that an official tool
uses, however the time is written. Other times are rounded half to even and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from swsdask.formats.files import noted, noted_at
from swsdask.formats.recognise import AnyFormat, Format
from swsdask.formats.text import Lines, lines_with_text, read_lines, tidy
from swsdask.formats.values import SECONDS, FormatError, exact_ticks, shown
from swsdask.model.discovery import ALIGNMENT, CLASSES, FRAGMENTS, SPEAKERS, STRETCHES
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
"""The columns of rows; lines without a label have no such column. `rounded` is the number of times (start, end) that
were finer than a tick."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?0*[0-9]{1,2})?")


def read_timed(lines: Lines, file: str, problems: Problems, *, label: str | None = None) -> pa.Table:
    """Return the rows of some tidy lines (`COLUMNS`); `label` is the name of a fourth field, None if there are three.

    Lines with problems are left out, and the problems added to `problems`.
    """
    names = ["file", "start", "end", *(["label"] if label else [])]
    try:
        return _read_together(lines, names)
    except (ValueError, FormatError):
        return _read_singly(lines, names, label, file, problems)


def _read_together(lines: Lines, names: list[str]) -> pa.Table:
    """Read all lines at once. Raises `ValueError` or `FormatError` if a line is wrong or irregular."""
    schema = _schema(names)
    at = lines_with_text(lines.data)
    if not len(at):
        return schema.empty_table()
    table = _parse_lines(lines.data, names, pa.float64())
    seconds = np.concatenate([table["start"].to_numpy(), table["end"].to_numpy()])
    times = np.rint(seconds * TICKS_PER_SECOND)
    inexact = np.flatnonzero(times / TICKS_PER_SECOND != seconds)
    if len(inexact):
        texts = _parse_lines(lines.data, names, pa.string())
        written = pa.chunked_array([*texts["start"].chunks, *texts["end"].chunks])
        times[inexact] = exact_ticks(written.take(pa.array(inexact)).cast(SECONDS))[0]
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


def _parse_lines(data: bytes, names: list[str], time: pa.DataType) -> pa.Table:
    kinds = {"file": _NAME, "start": time, "end": time, "label": _NAME}
    return csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        csv.ParseOptions(delimiter=" ", quote_char=False),
        csv.ConvertOptions(column_types={name: kinds[name] for name in names}, null_values=[]),
    )


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
    """Yield the row of a line, if it has no problems."""
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
    """Return a non-negative time in ticks, and whether it was rounded. Raises `FormatError`."""
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
    """Return the parts as one table of a schema, with the count of rounded times in its metadata."""
    rows = pa.concat_tables(parts).unify_dictionaries()
    rounded = str(pc.sum(rows["rounded"]).as_py() or 0)
    return rows.select(schema.names).combine_chunks().cast(schema.with_metadata({"rounded": rounded}))


def read_speakers(url: str, problems: Problems) -> pa.Table:
    """Return the speaker of each file (`model.discovery.SPEAKERS`), in file order. Problems are added to `problems`."""
    rows: dict[str, tuple[str, int]] = {}
    before = len(problems)
    with noted(problems):
        for lines in read_lines(url):
            for number, line in enumerate(tidy(lines.data).decode().split("\n"), lines.first):
                if line:
                    fields = line.split(" ")
                    with noted_at(problems, url, number):
                        _check(fields)
                        _check_once(fields[0], rows)
                        rows[fields[0]] = fields[1], number
    if not rows and len(problems) == before:
        problems.add(url, 1, "at least one line: file speaker", "none", "List the files with their speakers.")
    columns = [list(rows), [speaker for speaker, _ in rows.values()], [line for _, line in rows.values()]]
    return pa.table(columns, schema=SPEAKERS)


def _check(fields: list[str]) -> None:
    if len(fields) != 2:
        raise FormatError("2 fields with blanks between them: file, speaker", f"{len(fields)}", "Correct the line.")
    for name, what in zip(fields, ("file", "speaker"), strict=True):
        wrong = id_fault(name)
        if wrong:
            raise FormatError(f"the name of a {what}", wrong, "Rename it.")


def _check_once(file: str, rows: dict[str, tuple[str, int]]) -> None:
    if file in rows:
        raise FormatError("every file once", f"the file of line {rows[file][1]} again", "Remove one of the two.")


def read_stretches(url: str, problems: Problems) -> pa.Table:
    """Return the stretches of speech (`model.discovery.STRETCHES`), all of fold 0. Problems are added to `problems`."""
    rows, _ = _read_lines(url, problems)
    return as_table(STRETCHES, [rows.append_column("fold", pa.array(np.zeros(len(rows), np.int32)))])


def read_folds(url: str, problems: Problems) -> pa.Table:
    """Return the stretches of the folds (`model.discovery.STRETCHES`). Problems are added to `problems`."""
    rows, lines = _read_lines(url, problems)
    if len(lines) and lines[0] != 1:
        problems.add(url, 1, "a stretch of the first fold", "an empty line", "Remove it.")
    gaps = np.diff(lines)
    for line in lines[:-1][gaps > 2].tolist():
        problems.add(url, line + 2, "one empty line between two folds", "another", "Remove it: a fold cannot be empty.")
    fold = np.concatenate(([0], np.cumsum(gaps > 1)))
    of_row = fold[np.searchsorted(lines, rows["line"].to_numpy())] if len(rows) else np.zeros(0, np.int64)
    return as_table(STRETCHES, [rows.append_column("fold", pa.array(of_row.astype(np.int32)))])


def _read_lines(url: str, problems: Problems) -> tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the rows of a file, and the numbers of its lines that are not empty."""
    parts = [COLUMNS.remove(COLUMNS.get_field_index("label")).empty_table()]
    filled = [np.zeros(0, np.int64)]
    before = len(problems)
    with noted(problems):
        for block in read_lines(url):
            lines = Lines(block.first, tidy(block.data))
            filled.append(lines.first + lines_with_text(lines.data))
            parts.append(read_timed(lines, url, problems))
    rows = pa.concat_tables(parts)
    if not len(rows) and len(problems) == before:
        problems.add(url, 1, "at least one line: file onset offset", "none", "List the stretches.")
    return rows, np.concatenate(filled)


def read_alignment(url: str, problems: Problems) -> pa.Table:
    """Return the phones or words (`model.discovery.ALIGNMENT`), in file order. Problems are added to `problems`."""
    parts = [COLUMNS.empty_table()]
    before = len(problems)
    with noted(problems):
        for lines in read_lines(url):
            parts.append(read_timed(Lines(lines.first, tidy(lines.data)), url, problems, label="label"))
    table = as_table(ALIGNMENT, parts)
    if not len(table) and len(problems) == before:
        problems.add(url, 1, "at least one line: file onset offset label", "none", "List the phones or words.")
    return table


@dataclass(frozen=True)
class CorpusFiles:
    """Paths or URLs of the alignments, the stretches of speech, the folds, those within talkers, the speaker map."""

    phones: str
    words: str
    split: str | None = None
    folds: str | None = None
    within: str | None = None
    speakers: str | None = None


@dataclass(frozen=True, eq=False)
class CorpusTables:
    """The tables of those files (schemas of `model.discovery`); None if not given.

    `files` names where they were read from, for messages.
    """

    files: CorpusFiles
    phones: pa.Table
    words: pa.Table
    split: pa.Table | None = None
    folds: pa.Table | None = None
    within: pa.Table | None = None
    speakers: pa.Table | None = None


def read_corpus_files(files: CorpusFiles) -> CorpusTables:
    """Read the files of a corpus. Raises `InputError` with every problem of them."""
    problems = Problems()

    def read(url: str | None, reader: Callable[[str, Problems], pa.Table]) -> pa.Table | None:
        return None if url is None else reader(url, problems)

    tables = CorpusTables(
        files,
        read_alignment(files.phones, problems),
        read_alignment(files.words, problems),
        read(files.split, read_stretches),
        read(files.folds, read_folds),
        read(files.within, read_folds),
        read(files.speakers, read_speakers),
    )
    problems.raise_if_any()
    return tables


ROLES = {
    "phones": Format.ALIGNMENT,
    "words": Format.ALIGNMENT,
    "split": Format.STRETCHES,
    "folds": Format.FOLDS,
    "within": Format.FOLDS,
    "speakers": Format.SPEAKERS,
}
"""The format of each role in `CorpusFiles`."""


def roles(files: CorpusFiles) -> dict[str, Format]:
    """Return the files of a corpus, and the format of each."""
    return {file: kind for role, kind in ROLES.items() if (file := getattr(files, role)) is not None}


def _check_alignment(file: str, problems: Problems) -> dict[str, int]:
    table = read_alignment(file, problems)
    counts = {"lines": len(table), "files": count_distinct(table, "file"), "labels": count_distinct(table, "label")}
    once = table.group_by(["file", "start", "end", "label"]).aggregate([])
    repeated = {"repeated lines": len(table) - len(once)} if len(once) < len(table) else {}
    return counts | repeated | _rounded_times(table)


def _check_classes(file: str, problems: Problems) -> dict[str, int]:
    found = read_classes(file, problems)
    counts = {"classes": len(found.classes), "fragments": len(found.fragments)}
    return counts | {"files": count_distinct(found.fragments, "file")} | _rounded_times(found.fragments)


def _check_stretches(file: str, problems: Problems) -> dict[str, int]:
    table = read_stretches(file, problems)
    return {"stretches": len(table), "files": count_distinct(table, "file")} | _rounded_times(table)


def _check_folds(file: str, problems: Problems) -> dict[str, int]:
    table = read_folds(file, problems)
    counts = {"folds": count_distinct(table, "fold"), "stretches": len(table), "files": count_distinct(table, "file")}
    return counts | _rounded_times(table)


def _check_speakers(file: str, problems: Problems) -> dict[str, int]:
    table = read_speakers(file, problems)
    return {"files": len(table), "speakers": count_distinct(table, "speaker")}


CHECKS: dict[AnyFormat, Callable[[str, Problems], dict[str, int]]] = {
    Format.ALIGNMENT: _check_alignment,
    Format.CLASSES: _check_classes,
    Format.STRETCHES: _check_stretches,
    Format.FOLDS: _check_folds,
    Format.SPEAKERS: _check_speakers,
}
"""The functions that count the contents of a file, by format. They add problems to the given ones."""


def count_distinct(table: pa.Table, column: str) -> int:
    """Return the number of distinct names in a column."""
    return int(pc.count_distinct(table[column].cast(pa.string())).as_py())


def _rounded_times(table: pa.Table) -> dict[str, int]:
    return {"rounded times": int((table.schema.metadata or {}).get(b"rounded", 0))}


_HEADER = b"Class"
_BLANK, _CLASS, _MEMBER = range(3)


@dataclass(frozen=True, eq=False)
class ClassFile:
    """The classes (`CLASSES`) and fragments (`FRAGMENTS`) of a class file, in file order.

    `ends_blank` says whether the last class ends with an empty line too.
    """

    url: str
    classes: pa.Table
    fragments: pa.Table
    ends_blank: bool


def read_classes(url: str, problems: Problems) -> ClassFile:
    """Read a class file; add its problems to `problems`."""
    names: list[str] = []
    at: list[int] = []
    unlabelled = COLUMNS.remove(COLUMNS.get_field_index("label"))
    parts = [unlabelled.append(pa.field("cluster", pa.int32())).empty_table()]
    before = len(problems)
    last = _BLANK
    with noted(problems):
        for block in read_lines(url):
            lines = Lines(block.first, tidy(block.data))
            kinds, starts, ends = _kinds(lines.data)
            _check_order(kinds, last, lines, url, problems)
            headers = np.flatnonzero(kinds == _CLASS)
            for row in headers.tolist():
                names.append(lines.data[starts[row] + len(_HEADER) + 1 : ends[row]].decode())
                at.append(lines.first + row)
                if not names[-1]:
                    problems.add(url, at[-1], "a number after Class", "none", "Number the classes.")
            rows = read_timed(Lines(lines.first, _without(lines.data, starts[headers], ends[headers])), url, problems)
            before_block = len(at) - len(headers)
            cluster = before_block + np.searchsorted(lines.first + headers, rows["line"].to_numpy()) - 1
            parts.append(rows.append_column("cluster", pa.array(cluster.astype(np.int32))))
            last = int(kinds[-1])
    classes = pa.table([names, at], schema=CLASSES)
    if not len(classes) and len(problems) == before:
        problems.add(
            url, 1, "at least one class, which begins with Class N", "none", "List the classes that were discovered."
        )
    return ClassFile(url, classes, as_table(FRAGMENTS, parts), last == _BLANK)


def _kinds(data: bytes) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the kind of each line, and its start and end (before the newline)."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    kinds = np.where(ends == starts, np.int8(_BLANK), np.int8(_MEMBER))
    word_end = starts + len(_HEADER)
    candidates = np.flatnonzero((ends >= word_end) & (text[starts] == _HEADER[0]))
    for row in candidates.tolist():
        if data[starts[row] : word_end[row]] == _HEADER and data[word_end[row]] in b" \n":
            kinds[row] = _CLASS
    return kinds, starts, ends


def _check_order(kinds: NDArray[np.int8], last: int, lines: Lines, url: str, problems: Problems) -> None:
    """Note classes without an empty line before them, and fragments directly after an empty line."""
    follows_blank = np.concatenate(([last], kinds[:-1])) == _BLANK
    for row in np.flatnonzero(np.where(follows_blank, kinds == _MEMBER, kinds == _CLASS)).tolist():
        if kinds[row] == _CLASS:
            problems.add(
                url, lines.first + row, "an empty line before a class", "none", "Put an empty line between two classes."
            )
        else:
            remedy = "Begin the class with a line Class N; leave no empty lines within it."
            problems.add(url, lines.first + row, "Class N, at the beginning of a class", "another line", remedy)


def _without(data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> bytes:
    """Remove the text of lines, from `starts` to `ends`; the lines stay, empty."""
    change = np.zeros(len(data) + 1, np.int8)
    change[starts] = 1
    change[ends] -= 1
    kept = np.cumsum(change[:-1], dtype=np.int8) == 0
    left: bytes = np.frombuffer(data, np.uint8)[kept].tobytes()
    return left
