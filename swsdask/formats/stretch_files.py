"""Stretches of files: the parts that are speech (`.split`, `.vad`), and the parts of folds.

    file onset offset

In a fold file, one empty line parts two folds (tde's `.intervals.cross`, `.intervals.within`). Empty lines at the end
of it are passed over: the fold without stretches that tde makes of one there counts in none of its means. Any other
second empty line would make such a fold too, and is a fault.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from swsdask.errors import Problems
from swsdask.formats.blank_separated import lines_with_text, tidy
from swsdask.formats.lines import Lines, read_lines
from swsdask.formats.noting import noted
from swsdask.formats.timed_text import COLUMNS, as_table, read_timed
from swsdask.model.corpus_schemas import STRETCHES


def read_stretches(url: str, problems: Problems) -> pa.Table:
    """The stretches of speech (`model.corpus_schemas.STRETCHES`), all of fold 0; faults are added to `problems`."""
    rows, _ = _read(url, problems)
    return as_table(STRETCHES, [rows.append_column("fold", pa.array(np.zeros(len(rows), np.int32)))])


def read_folds(url: str, problems: Problems) -> pa.Table:
    """The stretches of the folds (`model.corpus_schemas.STRETCHES`); faults are added to `problems`."""
    rows, lines = _read(url, problems)
    if len(lines) and lines[0] != 1:
        problems.add(url, 1, "a stretch of the first fold", "an empty line", "Remove it.")
    gaps = np.diff(lines)
    for line in lines[:-1][gaps > 2].tolist():
        problems.add(url, line + 2, "one empty line between two folds", "another", "Remove it: no fold is empty.")
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
