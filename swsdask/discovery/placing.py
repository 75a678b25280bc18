"""Placing of fragments in the corpus: clipping, numbering, folds, transcription; and means and spreads over folds.

Names become numbers, rows get a canonical order, and the distinct fragments of a system get their phones, types and
folds.

Clipping (tde2015 with stretches of speech only): a fragment that is not entirely inside one stretch is cut to the
stretch with which it shares the most time, the first of several; without such a stretch it is dropped.

Folds: a fold contains the fragments and words that lie entirely inside one of its stretches, in all three definitions.
Times are compared exactly, which equals the official tool's comparison of doubles of the same decimals.

Transcription, the phones of a stretch of time:

document: the phones of which the fragment shares more than 30 ms or more than 50 % (measures document of the Zero
Resource challenge); compared exactly, in ticks. Gaps between phones do not matter.

tde2015: QUIRK of tde: the phones that are `near` (more than 30 ms, or more than half of the phone OR of the fragment,
in doubles) within one segment without gaps: the last segment that does not begin after the fragment. A fragment
outside every segment has no transcription and is dropped; one with a segment but without phones is kept.

tdev2: QUIRK of tdev2: all phones that share any time with the fragment; the first and the last only if at least 30 ms
(rounded to milliseconds) of a phone of 60 ms or more are shared, or at least half (in doubles) of a shorter one.
A fragment without phones is dropped.

Measures are averaged over a set of folds with equal weights. The F-score of a fold is the harmonic mean of its
precision and recall, 0 if both are 0; the mean F-score is the mean of these, not the F-score of the means. The standard
deviation is that of the population (ddof 0).

A number that is not defined in a fold (nothing was found, or there was nothing to find) is NaN there. Definitions treat
such folds differently:

- document: each number is averaged over the folds in which it is defined, an F-score over those in which precision and
  recall are; the others are left out and counted. If no fold is left, the mean is NaN. The measures document of the
  Zero Resource challenge does not define this case.
- tde2015: a fold in which precision or recall is not defined is left out of both and of the F-score; NED and coverage
  are left out separately. QUIRK: a coverage of 0 is not defined (`discovery.measures.matching`), so that a system that
  finds nothing in a fold is averaged over the others. QUIRK: if no fold is left, precision, recall, F-score and
  coverage are 0, and NED is 1.
- tdev2: there is one fold, the corpus; its numbers are reported unchanged.

Numbers named "n_..." are counts: they are summed over folds and have no spread.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from swsdask.kernels.ngrams import number_sequences
from swsdask.kernels.pairs import holding, sharing_most
from swsdask.kernels.placing import place_document, place_tde, place_tdev2
from swsdask.model.columns import row_changes
from swsdask.model.discovery import (
    MAX_FOLDS,
    NO_FOLD,
    Corpus,
    Definition,
    Discovered,
    FileIntervals,
    Folds,
    Fragments,
    Tokens,
)
from swsdask.model.errors import Problems
from swsdask.model.results import Note
from swsdask.model.trials import F64, I16, I32, I64, Bool
from swsdask.model.units import MAX_TICKS, TICKS_PER_SECOND
from swsdask.model.wording import counted

COUNT = "n_"
NOT_DEFINED = {"ned": 1.0}
"""The value that tde2015 reports for a measure that is defined in no fold; 0 for all others."""

UNKNOWN = -1
NO_PLACE = -1
OUTSIDE_SPEECH = "outside speech"


def clip(file: I32, start: I32, end: I32, speech: FileIntervals) -> tuple[I32, I32, Bool]:
    """The starts and ends inside speech, and which fragments have speech (the times of the others are unchanged)."""
    stretches = (speech.first, speech.start, speech.end)
    inside = holding(file, start, end, *stretches)
    outside = inside < 0
    holder = inside
    holder[outside] = sharing_most(file[outside], start[outside], end[outside], *stretches)
    some = holder >= 0
    start, end = start.copy(), end.copy()
    start[some] = np.maximum(start[some], speech.start[holder[some]])
    end[some] = np.minimum(end[some], speech.end[holder[some]])
    return start, end, some


def numbers_of(column: pa.ChunkedArray, names: Sequence[str]) -> I32:
    """Return the index of each value of a dictionary column in `names`; `UNKNOWN` if it is not there."""
    place = {name: number for number, name in enumerate(names)}
    codes, used = dictionary_codes(column)
    table = np.array([place.get(name, UNKNOWN) for name in used], np.int32)
    return table[codes]


def sorted_numbers(column: pa.ChunkedArray) -> tuple[tuple[str, ...], I32]:
    """Return the sorted distinct values of a dictionary column, and the index of each row's value."""
    codes, used = dictionary_codes(column)
    names = tuple(sorted(set(used)))
    place = {name: number for number, name in enumerate(names)}
    table = np.array([place[name] for name in used], np.int32)
    return names, table[codes]


def dictionary_codes(column: pa.ChunkedArray) -> tuple[I64, list[str]]:
    """Return a dictionary column as codes, and the value of each code: only values that occur, each once."""
    array = column.unify_dictionaries().combine_chunks()
    present = np.zeros(len(array.dictionary), np.bool_)
    indices = array.indices.to_numpy()
    present[indices] = True
    new = np.cumsum(present) - 1
    return new[indices], array.dictionary.filter(pa.array(present)).to_pylist()


def rows_in_order(first: I32, second: I32, *others: I32) -> I64:
    """Return the stable order of rows sorted by non-negative columns."""
    place = (first.astype(np.int64) << 32) | second
    if np.all(place[1:] > place[:-1]):
        return np.arange(len(first))
    return np.lexsort((*reversed(others), place))


def first_rows(file: I32, n_files: int) -> I64:
    """Return the first row of each file in rows sorted by file, and the end: int64 [n_files + 1]."""
    return np.searchsorted(file, np.arange(n_files + 1, dtype=np.int32)).astype(np.int64)


def note_unknown(table: pa.Table, file: I32, url: str, problems: Problems) -> None:
    """Report each file without phones as a problem, at the first line that names it."""
    rows = np.flatnonzero(file == UNKNOWN)
    if not len(rows):
        return
    codes, names = dictionary_codes(table["file"].take(pa.array(rows)))
    lines = table["line"].to_numpy()[rows]
    found, first, rows_of = np.unique(codes, return_index=True, return_counts=True)
    for code, at, count in sorted(
        zip(found.tolist(), first.tolist(), rows_of.tolist(), strict=True), key=lambda x: x[1]
    ):
        there = f"{names[code]!r}, in {counted(count, 'lines')}"
        problems.add(
            url, int(lines[at]), "a file of the phone alignment", there, "Correct the name or remove the lines."
        )


def rounding_notes(table: pa.Table) -> Iterator[Note]:
    """Yield a note on the times of a table that were finer than a tick, if there were any."""
    rounded = int((table.schema.metadata or {}).get(b"rounded", 0))
    if rounded:
        yield Note.of_count("", rounded, "times", " finer than 0.1 ms rounded.")


def folds_of(file: I32, start: I32, end: I32, fold_sets: Sequence[Folds]) -> I16:
    """Return the fold of each stretch of time in each set of folds, int16 [n_fold_sets, n].

    `NO_FOLD` if it is in none.
    """
    found = np.full((len(fold_sets), len(file)), NO_FOLD, np.int16)
    for number, folds in enumerate(fold_sets):
        stretches = folds.stretches
        holder = holding(file, start, end, stretches.first, stretches.start, stretches.end)
        found[number] = np.append(stretches.fold, np.int16(NO_FOLD))[holder]
    return found


def phones_of(file: I32, start: I32, end: I32, corpus: Corpus) -> tuple[I64, I64]:
    """Return the phones first:last of each stretch of time, int64.

    Both are `NO_PLACE` if it is dropped for lack of phones.
    """
    phones = corpus.phones
    if corpus.definition == "tde2015":
        return place_tde(file, start, end, *segments_of(corpus.segment, phones.first), phones.start, phones.end)
    if corpus.definition == "document":
        return place_document(file, start, end, phones.first, phones.start, phones.end)
    first, last = place_tdev2(file, start, end, phones.first, phones.start, phones.end)
    empty = first == last
    return np.where(empty, NO_PLACE, first), np.where(empty, NO_PLACE, last)


def segments_of(segment: I32, first: I64) -> tuple[I64, I64]:
    """Return segments by file, int64 [n_files + 1], and the tokens of each, int64 [n_segments + 1].

    `segment` numbers the segment of each token, ascending from 0; a segment lies in one file, and the tokens of file f
    are rows first[f]:first[f + 1].
    """
    begins = np.append(np.flatnonzero(np.diff(segment, prepend=-1)), len(segment))
    return np.searchsorted(begins, first), begins


def locate(fragments: Fragments, corpus: Corpus) -> Discovered:
    """Place a system's fragments by the corpus's definition.

    `dropped` receives the reasons that occur here, with the number of input rows of each. Types are numbered in the
    order of their first fragments.
    """
    cluster, file, start, end = fragments.cluster, fragments.file, fragments.start, fragments.end
    dropped, clipped = dict(fragments.dropped), 0
    if corpus.definition == "tde2015" and corpus.speech is not None:
        start, end, some = clip(file, start, end, corpus.speech)
        clipped = int(np.count_nonzero((start != fragments.start) | (end != fragments.end)))
        if not some.all():
            dropped[OUTSIDE_SPEECH] = int(np.count_nonzero(~some))
            cluster, file, start, end = cluster[some], file[some], start[some], end[some]

    order = rows_in_order(file, start, end)
    file, start, end = file[order], start[order], end[order]
    fresh = row_changes(file, start, end)
    member = np.empty(len(order), np.int64)
    member[order] = np.cumsum(fresh) - 1
    file, start, end = file[fresh], start[fresh], end[fresh]

    first, last = phones_of(file, start, end, corpus)
    placed = first >= 0
    if not placed.all():
        kept = placed[member]
        dropped[_UNPLACED[corpus.definition]] = int(np.count_nonzero(~kept))
        member, cluster = (np.cumsum(placed) - 1)[member[kept]], cluster[kept]
        file, start, end, first, last = file[placed], start[placed], end[placed], first[placed], last[placed]

    by_class = np.lexsort((member, cluster))
    return Discovered(
        system=fragments.system,
        classes=fragments.classes,
        file=file,
        start=start,
        end=end,
        first=first,
        last=last,
        type=number_sequences(first, last, corpus.phones.label)[0],
        fold=folds_of(file, start, end, corpus.folds),
        member_cluster=cluster[by_class],
        member_fragment=member[by_class],
        dropped=dropped,
        clipped=clipped,
    )


def stretches_of(table: pa.Table, files: tuple[str, ...], url: str, problems: Problems) -> FileIntervals:
    """Return the stretches of a table (`STRETCHES`).

    Unknown files, overlapping stretches and too many folds are problems.
    """
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
    """Return the stretches of folds that are made of whole files: one per file, from 0 to `MAX_TICKS`."""
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
    borders = (np.concatenate(([0], np.cumsum(durations))) * n_parts).tolist()
    cuts = [0]
    for number in range(1, n_parts):
        first, last = cuts[-1] + 1, n_files - (n_parts - number)
        wanted = number * (borders[-1] // n_parts)
        after = min(bisect_left(borders, wanted, first, last + 1), last)
        before = bisect_left(borders, borders[max(after - 1, first)], first, after)  # the first of equal ones
        cuts.append(min(before, after, key=lambda cut: abs(borders[cut] - wanted)))
    return np.repeat(np.arange(n_parts, dtype=np.int16), np.diff([*cuts, n_files]))


def parts_of_time(phones: Tokens, n_files: int, n_folds: int) -> FileIntervals:
    """Cut a corpus into parts of nearly equal duration, also within files; there are at most as many parts as phones.

    The k-th cut is at the start of the phone that is nearest to k / n_folds of the duration of all phones (the earlier
    of two equally near), subject to no part being empty.
    """
    part = equal_parts((phones.end - phones.start).astype(np.int64), n_folds)
    begins = np.flatnonzero(row_changes(phones.file, part))
    file, fold = phones.file[begins], part[begins]
    opens = row_changes(file)
    start = np.where(opens, 0, phones.start[begins]).astype(np.int32)
    end = np.where(np.append(opens[1:], True), MAX_TICKS, np.append(start[1:], 0)).astype(np.int32)
    return FileIntervals(file, start, end, fold, first_rows(file, n_files))


def in_seconds(ticks: int) -> str:
    """Return a time for messages."""
    return f"{ticks / TICKS_PER_SECOND:.10g} s"


_UNPLACED: dict[Definition, str] = {"tde2015": "outside the segments of phones", "tdev2": "without phones"}
PRECISION, RECALL, F_SCORE = "_precision", "_recall", "_f_score"


@dataclass(frozen=True)
class Spread:
    """A number over folds. `left_out` folds did not count; if all were left out, the spread is NaN."""

    mean: float
    std: float
    least: float
    most: float
    left_out: int


def with_f_scores(values: Mapping[str, F64]) -> dict[str, F64]:
    """Return the numbers per fold, with an F-score after each recall that has a precision."""
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
    """Return every number of `with_f_scores` over its folds, by the rules of a definition.

    The caller handles counts.
    """
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
    left = numbers[defined]
    out = len(numbers) - len(left)
    if len(left):
        # By NumPy, as in tde: another order of adding would print other digits where they end in a half.
        return Spread(float(left.mean()), float(left.std()), float(left.min()), float(left.max()), out)
    if definition == "tde2015":
        value = NOT_DEFINED.get(name, 0.0)
        return Spread(value, 0.0, value, value, out)
    return Spread(math.nan, math.nan, math.nan, math.nan, out)
