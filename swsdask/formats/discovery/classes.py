"""Class files: the classes of fragments that a system discovered (Zero Resource challenges).

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

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.formats.discovery.timed_text import COLUMNS, as_table, read_timed
from swsdask.formats.files import Lines, noted, read_lines, tidy
from swsdask.model.corpus import CLASSES, FRAGMENTS
from swsdask.model.errors import Problems

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
