"""Folds and stretches of speech, numbered like a corpus."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from swsdask.discovery.placing.numbering import UNKNOWN, first_rows, note_unknown, numbers_of, rows_in_order
from swsdask.errors import Problems
from swsdask.model.corpus import Stretches, Tokens
from swsdask.model.ticks import MAX_TICKS, TICKS_PER_SECOND
from swsdask.model.trials import I16, I64

MAX_FOLDS = int(np.iinfo(np.int16).max)


def stretches_of(table: pa.Table, files: tuple[str, ...], url: str, problems: Problems) -> Stretches:
    """The stretches of a table (`STRETCHES`). Unknown files, overlapping stretches and too many folds are noted."""
    file = numbers_of(table["file"], files)
    note_unknown(table, file, url, problems)
    start, end, fold = (table[name].to_numpy() for name in ("start", "end", "fold"))
    if len(fold) and fold.max() >= MAX_FOLDS:
        problems.add(url, None, f"at most {MAX_FOLDS} folds", f"{fold.max() + 1}", "Give fewer folds.")
    order = rows_in_order(file, start, end, fold)
    order = order[file[order] != UNKNOWN]
    file, start, end = file[order], start[order], end[order]
    line = table["line"].to_numpy()[order]
    for row in np.flatnonzero((file[1:] == file[:-1]) & (start[1:] < end[:-1])).tolist():
        later, earlier = max(line[row], line[row + 1]), min(line[row], line[row + 1])
        expected = "stretches that do not overlap"
        problems.add(url, int(later), expected, f"one that overlaps that of line {earlier}", "Mend one of the two.")
    return Stretches(file, start, end, fold[order].astype(np.int16), first_rows(file, len(files)))


def whole_files(fold_of_file: I16) -> Stretches:
    """The stretches of folds that are made of whole files: one per file, from 0 to `MAX_TICKS`."""
    n_files = len(fold_of_file)
    return Stretches(
        file=np.arange(n_files, dtype=np.int32),
        start=np.zeros(n_files, np.int32),
        end=np.full(n_files, MAX_TICKS, np.int32),
        fold=fold_of_file.astype(np.int16),
        first=np.arange(n_files + 1),
    )


def equal_parts(durations: I64, n_folds: int) -> I16:
    """Cut files, in order, into consecutive parts of nearly equal duration: the part of each file, int16 [n_files].

    The k-th cut lies at that border between files which is nearest to k / n_folds of the whole duration, of two as near
    the earlier, but such that no part is empty. There are as many parts as files if there are fewer files than parts.
    """
    n_files = len(durations)
    n_parts = min(n_folds, n_files)
    borders = np.concatenate(([0], np.cumsum(durations))).tolist()
    part = np.zeros(n_files, np.int16)
    cut = 0
    for number in range(1, n_parts):
        allowed = range(cut + 1, n_files - (n_parts - number) + 1)
        cut = min(allowed, key=lambda border: abs(borders[border] * n_parts - number * borders[-1]))
        part[cut:] = number
    return part


def parts_of_time(phones: Tokens, n_files: int, n_folds: int) -> Stretches:
    """Cut a corpus into parts of nearly equal duration, within files too: as many as there are phones at most.

    The k-th cut lies where that phone starts which is nearest to k / n_folds of the duration of all phones, of two as
    near the earlier, but such that no part is empty.
    """
    part = equal_parts((phones.end - phones.start).astype(np.int64), n_folds)
    begins = np.flatnonzero((np.diff(phones.file, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0))
    file, fold = phones.file[begins], part[begins]
    opens = np.diff(file, prepend=-1) != 0
    start = np.where(opens, 0, phones.start[begins]).astype(np.int32)
    end = np.where(np.append(opens[1:], True), MAX_TICKS, np.append(start[1:], 0)).astype(np.int32)
    return Stretches(file, start, end, fold, first_rows(file, n_files))


def in_seconds(ticks: int) -> str:
    """A time as messages show it."""
    return f"{ticks / TICKS_PER_SECOND:.10g} s"
