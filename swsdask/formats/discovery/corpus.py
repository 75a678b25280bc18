"""Files of a corpus and of what is found in it: alignments, stretches of speech and folds, speakers, classes.

Fields are separated by blanks or tabs. Times are in seconds, an offset after its onset. Unless stated otherwise, lines
may be in any order and empty lines are ignored.

Alignments: a line per phone or word (Zero Resource challenges; `.phn`, `.wrd`). The tools separate the four fields at
single blanks.

    file onset offset label

Stretches of files: the parts that are speech (`.split`, `.vad`), and the parts of folds.

    file onset offset

In a fold file, one empty line separates two folds (tde's `.intervals.cross`, `.intervals.within`). Empty lines at the
end are ignored: tde makes a fold without stretches of one, which counts in none of its means. Any other second empty
line would make such a fold too, and is an error.

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
or with any number of fields but three, is an error in every definition: tde ignores further fields, tdev2 refuses them,
and a file that both read has the same meaning here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.discovery.timed_text import COLUMNS, as_table, read_timed
from swsdask.formats.files import Lines, lines_with_text, noted, noted_at, read_lines, tidy
from swsdask.formats.sniff import AnyFormat, Format
from swsdask.formats.values import FormatError
from swsdask.model.corpus import ALIGNMENT, CLASSES, FRAGMENTS, SPEAKERS, STRETCHES
from swsdask.model.errors import Problems
from swsdask.model.units import id_fault


def read_speakers(url: str, problems: Problems) -> pa.Table:
    """The speaker of each file (`model.corpus.SPEAKERS`), in file order. Problems are added to `problems`."""
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
    """The stretches of speech (`model.corpus.STRETCHES`), all of fold 0. Problems are added to `problems`."""
    rows, _ = _read(url, problems)
    return as_table(STRETCHES, [rows.append_column("fold", pa.array(np.zeros(len(rows), np.int32)))])


def read_folds(url: str, problems: Problems) -> pa.Table:
    """The stretches of the folds (`model.corpus.STRETCHES`). Problems are added to `problems`."""
    rows, lines = _read(url, problems)
    if len(lines) and lines[0] != 1:
        problems.add(url, 1, "a stretch of the first fold", "an empty line", "Remove it.")
    gaps = np.diff(lines)
    for line in lines[:-1][gaps > 2].tolist():
        problems.add(url, line + 2, "one empty line between two folds", "another", "Remove it: a fold cannot be empty.")
    fold = np.concatenate(([0], np.cumsum(gaps > 1)))
    of_row = fold[np.searchsorted(lines, rows["line"].to_numpy())] if len(rows) else np.zeros(0, np.int64)
    return as_table(STRETCHES, [rows.append_column("fold", pa.array(of_row.astype(np.int32)))])


def _read(url: str, problems: Problems) -> tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The rows of a file, and the numbers of its lines that are not empty."""
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
    """The phones or words (`model.corpus.ALIGNMENT`), in file order. Problems are added to `problems`."""
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
    """Paths or URLs: of the alignments, the stretches of speech, the folds, those within talkers, the speaker map."""

    phones: str
    words: str
    split: str | None = None
    folds: str | None = None
    within: str | None = None
    speakers: str | None = None


@dataclass(frozen=True, eq=False)
class CorpusTables:
    """The tables of those files (schemas of `model.corpus`); None if not given.

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
    """The files of a corpus, and the format of each."""
    return {file: kind for role, kind in ROLES.items() if (file := getattr(files, role)) is not None}


def _check_alignment(file: str, problems: Problems) -> dict[str, int]:
    table = read_alignment(file, problems)
    counts = {"lines": len(table), "files": _distinct(table, "file"), "labels": _distinct(table, "label")}
    return counts | _rounded(table)


def _check_classes(file: str, problems: Problems) -> dict[str, int]:
    found = read_classes(file, problems)
    counts = {"classes": len(found.classes), "fragments": len(found.fragments)}
    return counts | {"files": _distinct(found.fragments, "file")} | _rounded(found.fragments)


def _check_stretches(file: str, problems: Problems) -> dict[str, int]:
    table = read_stretches(file, problems)
    return {"stretches": len(table), "files": _distinct(table, "file")} | _rounded(table)


def _check_folds(file: str, problems: Problems) -> dict[str, int]:
    table = read_folds(file, problems)
    counts = {"folds": _distinct(table, "fold"), "stretches": len(table), "files": _distinct(table, "file")}
    return counts | _rounded(table)


def _check_speakers(file: str, problems: Problems) -> dict[str, int]:
    table = read_speakers(file, problems)
    return {"files": len(table), "speakers": _distinct(table, "speaker")}


CHECKS: dict[AnyFormat, Callable[[str, Problems], dict[str, int]]] = {
    Format.ALIGNMENT: _check_alignment,
    Format.CLASSES: _check_classes,
    Format.STRETCHES: _check_stretches,
    Format.FOLDS: _check_folds,
    Format.SPEAKERS: _check_speakers,
}
"""The functions that count the contents of a file of each format; problems are added to the given ones."""


def _distinct(table: pa.Table, column: str) -> int:
    return int(pc.count_distinct(table[column].cast(pa.string())).as_py())


def _rounded(table: pa.Table) -> dict[str, int]:
    return {"rounded times": int((table.schema.metadata or {}).get(b"rounded", 0))}


_HEADER = b"Class"
_BLANK, _CLASS, _MEMBER = range(3)


@dataclass(frozen=True, eq=False)
class ClassFile:
    """The classes (`CLASSES`) and fragments (`FRAGMENTS`) of a class file, in file order.

    `ends_blank` is whether an empty line ends the last class too.
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
    """The kind of each line, and its start and end (before the newline)."""
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
    """Note the classes without an empty line before them, and the fragments that have none but an empty line."""
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
    """The same lines, those from `starts` to `ends` empty."""
    change = np.zeros(len(data) + 1, np.int8)
    change[starts] = 1
    change[ends] -= 1
    kept = np.cumsum(change[:-1], dtype=np.int8) == 0
    left: bytes = np.frombuffer(data, np.uint8)[kept].tobytes()
    return left
