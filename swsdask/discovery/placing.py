"""Placing of fragments in the corpus: clipping, numbering, restriction to folds, transcription.

Names become numbers, rows get a canonical order, and the distinct fragments of a system get their phones, types and
folds.

Clipping (tde2015 with stretches of speech only): a fragment that is not entirely inside one stretch is cut to the
stretch with which it shares the most time, the first of several; without such a stretch it is dropped.

Folds: a fold contains what lies entirely inside one of its stretches, in all three definitions. Times are compared
exactly, which equals the official tool's comparison of doubles of the same decimals.

Transcription, the phones of a stretch of time:

document: the phones of which the fragment shares more than 30 ms or more than 50 % (measures document of the Zero
Resource challenge); compared exactly, in ticks. Gaps between phones do not matter.

tde2015: QUIRK of tde: the phones that are `near` (more than 30 ms, or more than half of the phone OR of the fragment,
in doubles) within one segment without gaps, the last that does not begin after the fragment. A fragment
outside every segment has no transcription and is dropped; one with a segment and no phones is kept.

tdev2: QUIRK of tdev2: all phones that share any time with the fragment; the first and the last only if at least 30 ms
(rounded to milliseconds) of a phone of 60 ms or more are shared, or at least half (in doubles) of a shorter one.
A fragment without phones is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from swsdask.kernels.ngrams import number_sequences
from swsdask.kernels.pairs import holding, sharing_most
from swsdask.kernels.placing import place_document, place_tde, place_tdev2
from swsdask.model.discovery import NO_FOLD, Corpus, Definition, Discovered, FileIntervals, Folds, Fragments
from swsdask.model.errors import Problems, counted
from swsdask.model.trials import I16, I32, I64, Bool


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


UNKNOWN = -1


def numbers_of(column: pa.ChunkedArray, names: Sequence[str]) -> I32:
    """The index of each value of a dictionary column in `names`; `UNKNOWN` if it is not there."""
    place = {name: number for number, name in enumerate(names)}
    codes, used = dictionary_codes(column)
    table = np.array([place.get(name, UNKNOWN) for name in used], np.int32)
    return table[codes]


def sorted_numbers(column: pa.ChunkedArray) -> tuple[tuple[str, ...], I32]:
    """The sorted distinct values of a dictionary column, and the index of each row's value."""
    codes, used = dictionary_codes(column)
    names = tuple(sorted(set(used)))
    place = {name: number for number, name in enumerate(names)}
    table = np.array([place[name] for name in used], np.int32)
    return names, table[codes]


def dictionary_codes(column: pa.ChunkedArray) -> tuple[I64, list[str]]:
    """A dictionary column as codes, and the value of each code: values that occur, each once."""
    array = column.unify_dictionaries().combine_chunks()
    present = np.zeros(len(array.dictionary), np.bool_)
    indices = array.indices.to_numpy()
    present[indices] = True
    new = np.cumsum(present) - 1
    return new[indices], array.dictionary.filter(pa.array(present)).to_pylist()


def rows_in_order(first: I32, second: I32, *others: I32) -> I64:
    """The stable order of rows sorted by non-negative columns."""
    place = (first.astype(np.int64) << 32) | second
    if np.all(place[1:] > place[:-1]):
        return np.arange(len(first))
    return np.lexsort((*reversed(others), place))


def first_rows(file: I32, n_files: int) -> I64:
    """The first row of each file in rows sorted by file, and the end: int64 [n_files + 1]."""
    return np.searchsorted(file, np.arange(n_files + 1, dtype=np.int32)).astype(np.int64)


def note_unknown(table: pa.Table, file: I32, url: str, problems: Problems) -> None:
    """Note each file that has no phones, at the line that first names it."""
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


def rounding_note(table: pa.Table, url: str) -> str | None:
    """A note on the times of a table that were finer than a tick; None if there were none."""
    rounded = int((table.schema.metadata or {}).get(b"rounded", 0))
    return f"{url}: {counted(rounded, 'times')} finer than 0.1 ms rounded." if rounded else None


def folds_of(file: I32, start: I32, end: I32, fold_sets: Sequence[Folds]) -> I16:
    """The fold of each stretch of time in each set of folds, int16 [n_fold_sets, n]; `NO_FOLD` if it is in none."""
    found = np.full((len(fold_sets), len(file)), NO_FOLD, np.int16)
    for number, folds in enumerate(fold_sets):
        stretches = folds.stretches
        holder = holding(file, start, end, stretches.first, stretches.start, stretches.end)
        found[number] = np.append(stretches.fold, np.int16(NO_FOLD))[holder]
    return found


NO_PLACE = -1


def phones_of(file: I32, start: I32, end: I32, corpus: Corpus) -> tuple[I64, I64]:
    """The phones first:last of each stretch of time, int64; both `NO_PLACE` if it is dropped for lack of phones."""
    phones = corpus.phones
    if corpus.definition == "tde2015":
        return place_tde(file, start, end, *segments_of(corpus.segment, phones.first), phones.start, phones.end)
    if corpus.definition == "document":
        return place_document(file, start, end, phones.first, phones.start, phones.end)
    first, last = place_tdev2(file, start, end, phones.first, phones.start, phones.end)
    empty = first == last
    return np.where(empty, NO_PLACE, first), np.where(empty, NO_PLACE, last)


def segments_of(segment: I32, first: I64) -> tuple[I64, I64]:
    """Segments by file, int64 [n_files + 1], and the tokens of each, int64 [n_segments + 1].

    `segment` numbers the segment of each token, ascending from 0; a segment lies in one file, and the tokens of file f
    are rows first[f]:first[f + 1].
    """
    begins = np.append(np.flatnonzero(np.diff(segment, prepend=-1)), len(segment))
    return np.searchsorted(begins, first), begins


OUTSIDE_SPEECH = "outside speech"
_UNPLACED: dict[Definition, str] = {"tde2015": "outside the segments of phones", "tdev2": "without phones"}


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
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (file[1:] != file[:-1]) | (start[1:] != start[:-1]) | (end[1:] != end[:-1])
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
