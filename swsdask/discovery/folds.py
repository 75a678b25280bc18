"""Folds: the division of a corpus, and means and spreads over folds.

Measures of discovery are averaged over a set of folds with equal weights. The F-score of a fold is the harmonic mean of
its precision and recall, 0 if both are 0; the mean F-score is the mean of these, not the F-score of the means. The
standard deviation is that of the population (ddof 0).

A number that is not defined in a fold (nothing was found, or there was nothing to find) is NaN there. Definitions treat
such folds differently:

- document: each number is averaged over the folds in which it is defined, an F-score over those in which precision and
  recall are; the others are left out and counted. If no fold is left, the mean is NaN. The measures document of the
  Zero Resource challenge does not define this case.
- tde2015: a fold in which precision or recall is not defined is left out of both and of the F-score; NED and coverage
  are left out separately. QUIRK: a coverage of 0 is not defined (`discovery.measures.coverage`), so that a system that
  finds nothing in a fold is averaged over the others. QUIRK: if no fold is left, precision, recall, F-score and
  coverage are 0, and NED is 1.
- tdev2: there is one fold, the corpus; its numbers are reported unchanged.

Numbers named "n_..." are counts: they are summed over folds and have no spread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from swsdask.discovery.placing import UNKNOWN, first_rows, note_unknown, numbers_of, rows_in_order
from swsdask.model.discovery import MAX_FOLDS, Definition, FileIntervals, Tokens
from swsdask.model.errors import Problems
from swsdask.model.trials import F64, I16, I64, Bool
from swsdask.model.units import MAX_TICKS, TICKS_PER_SECOND

PRECISION, RECALL, F_SCORE = "_precision", "_recall", "_f_score"
COUNT = "n_"

NOT_DEFINED = {"ned": 1.0}
"""The value that tde2015 reports for a measure that is defined in no fold; 0 for all others."""


@dataclass(frozen=True)
class Spread:
    """A number over folds. `left_out` folds did not count; if all were left out, the spread is NaN."""

    mean: float
    std: float
    least: float
    most: float
    left_out: int


def with_f_scores(values: Mapping[str, F64]) -> dict[str, F64]:
    """The numbers per fold, with an F-score after each recall that has a precision."""
    made: dict[str, F64] = {}
    for name, numbers in values.items():
        made[name] = numbers
        stem = name.removesuffix(RECALL)
        if stem != name and stem + PRECISION in values:
            made[stem + F_SCORE] = f_score(values[stem + PRECISION], numbers)
    return made


def f_score(precision: F64, recall: F64) -> F64:
    """2 P R / (P + R), float64 [n_folds]: 0 if both are 0, NaN if either is not defined."""
    together = precision + recall
    return np.where(together == 0, 0.0, 2 * precision * recall / np.where(together == 0, 1.0, together))


def spreads(values: Mapping[str, F64], definition: Definition) -> dict[str, Spread]:
    """Every number of `with_f_scores` over its folds, by the rules of a definition; the caller handles counts."""
    counting = {name: _defined(name, values, definition) for name in values if not name.startswith(COUNT)}
    return {name: _spread(name, values[name], defined, definition) for name, defined in counting.items()}


def _defined(name: str, values: Mapping[str, F64], definition: Definition) -> Bool:
    """Select the folds that count for a number."""
    defined: Bool = ~np.isnan(values[name])
    if definition != "tde2015":
        return defined
    for ending in (PRECISION, RECALL):
        other = _stem(name) + ending
        if other in values:
            np.logical_and(defined, ~np.isnan(values[other]), out=defined)
    return defined


def _stem(name: str) -> str:
    return next((name.removesuffix(end) for end in (PRECISION, RECALL, F_SCORE) if name.endswith(end)), name)


def _spread(name: str, numbers: F64, defined: Bool, definition: Definition) -> Spread:
    left = numbers[defined].tolist()
    out = len(numbers) - len(left)
    if not left and definition == "tde2015":
        value = NOT_DEFINED.get(name, 0.0)
        return Spread(value, 0.0, value, value, out)
    if not left:
        return Spread(math.nan, math.nan, math.nan, math.nan, out)
    mean = math.fsum(left) / len(left)
    variance = math.fsum((value - mean) ** 2 for value in left) / len(left)
    return Spread(mean, math.sqrt(variance), min(left), max(left), out)


def stretches_of(table: pa.Table, files: tuple[str, ...], url: str, problems: Problems) -> FileIntervals:
    """The stretches of a table (`STRETCHES`). Unknown files, overlapping stretches and too many folds are noted."""
    file = numbers_of(table["file"], files)
    note_unknown(table, file, url, problems)
    start, end, fold = (table[name].to_numpy() for name in ("start", "end", "fold"))
    if len(fold) and fold.max() >= MAX_FOLDS:
        problems.add(url, None, f"at most {MAX_FOLDS} folds", f"{fold.max() + 1}", "Use fewer folds.")
    order = rows_in_order(file, start, end, fold)
    order = order[file[order] != UNKNOWN]
    file, start, end = file[order], start[order], end[order]
    line = table["line"].to_numpy()[order]
    for row in np.flatnonzero((file[1:] == file[:-1]) & (start[1:] < end[:-1])).tolist():
        later, earlier = max(line[row], line[row + 1]), min(line[row], line[row + 1])
        expected = "stretches that do not overlap"
        problems.add(url, int(later), expected, f"one that overlaps that of line {earlier}", "Correct one of the two.")
    return FileIntervals(file, start, end, fold[order].astype(np.int16), first_rows(file, len(files)))


def whole_files(fold_of_file: I16) -> FileIntervals:
    """The stretches of folds that are made of whole files: one per file, from 0 to `MAX_TICKS`."""
    n_files = len(fold_of_file)
    return FileIntervals(
        file=np.arange(n_files, dtype=np.int32),
        start=np.zeros(n_files, np.int32),
        end=np.full(n_files, MAX_TICKS, np.int32),
        fold=fold_of_file.astype(np.int16),
        first=np.arange(n_files + 1),
    )


def equal_parts(durations: I64, n_folds: int) -> I16:
    """Cut files, in order, into consecutive parts of nearly equal duration: the part of each file, int16 [n_files].

    The k-th cut is at the border between files that is nearest to k / n_folds of the whole duration (the earlier of two
    equally near), subject to no part being empty. There are at most as many parts as files.
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


def parts_of_time(phones: Tokens, n_files: int, n_folds: int) -> FileIntervals:
    """Cut a corpus into parts of nearly equal duration, also within files; there are at most as many parts as phones.

    The k-th cut is at the start of the phone that is nearest to k / n_folds of the duration of all phones (the earlier
    of two equally near), subject to no part being empty.
    """
    part = equal_parts((phones.end - phones.start).astype(np.int64), n_folds)
    begins = np.flatnonzero((np.diff(phones.file, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0))
    file, fold = phones.file[begins], part[begins]
    opens = np.diff(file, prepend=-1) != 0
    start = np.where(opens, 0, phones.start[begins]).astype(np.int32)
    end = np.where(np.append(opens[1:], True), MAX_TICKS, np.append(start[1:], 0)).astype(np.int32)
    return FileIntervals(file, start, end, fold, first_rows(file, n_files))


def in_seconds(ticks: int) -> str:
    """A time for messages."""
    return f"{ticks / TICKS_PER_SECOND:.10g} s"
