"""Counts by fold: sets of integers, members of classes, numerators and denominators.

A set is an ascending int64 array without repeats. It is made by a sort that recognises ascending runs, because most
sets are unions of such arrays; numpy's own set functions are many times slower. The work on pairs of a class's members
is cut into tiles.

Words of a set of folds, and the words that a fragment matches, are counted in cells of files. Like a fragment, a word
counts in a fold if it lies entirely inside one of the fold's stretches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from swsdask.discovery.placing import first_rows, folds_of, segments_of
from swsdask.kernels.placing import most_covered, place_tde, place_touching, same_labels
from swsdask.model.columns import ratio, row_changes
from swsdask.model.discovery import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I16, I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND


def union(*numbers: I64) -> I64:
    """Return the set of all numbers of some arrays, which may be in any order."""
    ordered = np.sort(np.concatenate(numbers), kind="stable")
    return ordered[row_changes(ordered)]


def are_in(numbers: I64, those: I64) -> Bool:
    """Return whether each number is in a set."""
    if not len(those):
        return np.zeros(len(numbers), np.bool_)
    place = np.minimum(np.searchsorted(those, numbers), len(those) - 1)
    found: Bool = those[place] == numbers
    return found


def common(one: I64, other: I64) -> I64:
    """Return the set of numbers that are in both sets."""
    return one[are_in(one, other)]


_NUMBER_BITS, _FOLD_BITS = 32, 16
_FOLD = (1 << _FOLD_BITS) - 1


def most_folds(corpus: Corpus) -> int:
    """Return the maximum number of folds of a set."""
    return max(len(folds.names) for folds in corpus.folds)


def by_fold(fold: I16) -> Iterator[tuple[int, I64]]:
    """Yield each fold that has rows, and its rows, ascending."""
    order = np.argsort(fold, kind="stable")
    folds, begins = np.unique(fold[order], return_index=True)
    ends = np.append(begins[1:], len(order))
    for number, begin, end in zip(folds.tolist(), begins, ends[: len(folds)], strict=True):
        if number != NO_FOLD:
            yield number, order[begin:end]


def rows_counted(fold: I16, n_folds: int) -> I64:
    """Count the rows of each fold, int64 [n_folds]."""
    return np.bincount(fold[fold != NO_FOLD], minlength=n_folds)


def things(number: I32, fold: I16, fold_set: int) -> I64:
    """Encode things with their folds as one number each, int64. Things are numbers of 0 or more, each in a fold."""
    place = (fold_set << _FOLD_BITS) | fold.astype(np.int64)
    return (place << _NUMBER_BITS) | number


def distinct_things(number: I32, fold: I16, fold_set: int) -> I64:
    """Return the set of things in the folds of one set, ascending; things in no fold are left out."""
    inside = fold != NO_FOLD
    return union(things(number[inside], fold[inside], fold_set))


def things_counted(distinct: I64, fold_set: int, corpus: Corpus) -> I64:
    """Count distinct things in each fold of one set, int64 [n_folds]."""
    place = distinct >> _NUMBER_BITS
    return np.bincount(place[place >> _FOLD_BITS == fold_set] & _FOLD, minlength=len(corpus.folds[fold_set].names))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Two sets compared in every fold: int64 [n_fold_sets, most folds of a set] each, 0 where a set has fewer.

    `found` elements, `right` of which are gold; `gold` elements, `recalled` of which are found.
    """

    found: I64
    right: I64
    gold: I64
    recalled: I64

    @classmethod
    def nothing(cls, corpus: Corpus) -> Self:
        """Return the counts of empty sets."""
        shape = len(corpus.folds), most_folds(corpus)
        return cls(*(np.zeros(shape, np.int64) for _ in fields(cls)))

    def merge(self, other: Self) -> Self:
        """Return the counts of both parts together, which have no elements in common."""
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def precision(self, corpus: Corpus, fold_set: int) -> F64:
        """Return the share of found elements that are gold, in the folds of a set."""
        n_folds = len(corpus.folds[fold_set].names)
        return ratio(self.right[fold_set, :n_folds], self.found[fold_set, :n_folds])

    def recall(self, corpus: Corpus, fold_set: int) -> F64:
        """Return the share of gold elements that were found, in the folds of a set."""
        n_folds = len(corpus.folds[fold_set].names)
        return ratio(self.recalled[fold_set, :n_folds], self.gold[fold_set, :n_folds])


class FoldMembers(NamedTuple):
    """Members of classes, once for each set of folds with a fold that has the member: int64 columns of equal length.

    `slot` is fold set * most folds + fold, `fragment` a row of the system's fragments.
    """

    cluster: I64
    slot: I64
    fragment: I64

    def take(self, rows: I64 | Bool) -> FoldMembers:
        """Select rows."""
        return FoldMembers(self.cluster[rows], self.slot[rows], self.fragment[rows])


class Tile(NamedTuple):
    """A cell: the rows first:end among the rows of the classes low:high."""

    low: int
    high: int
    first: int
    end: int


def completable(corpus: Corpus, discovered: Discovered, low: int, high: int) -> FoldMembers:
    """Return the members of the classes low .. high - 1 that have enough phones for the shortest string that is paired
    (`model.discovery.Readings`), if their class and fold have other such members.

    Sorted by (cluster, slot, fragment), without duplicates.
    """
    d = discovered
    begin, end = np.searchsorted(d.member_cluster, [low, high])
    cluster, fragment = d.member_cluster[begin:end].astype(np.int64), d.member_fragment[begin:end]
    wanted = row_changes(cluster, fragment) & (d.last[fragment] - d.first[fragment] >= corpus.readings.min_phones)
    cluster, fragment = cluster[wanted], fragment[wanted]
    fold_set, member = np.nonzero(d.fold[:, fragment] != NO_FOLD)
    cluster, fragment = cluster[member], fragment[member]
    members = FoldMembers(cluster, fold_set * most_folds(corpus) + d.fold[fold_set, fragment], fragment)
    members = members.take(np.lexsort((fragment, members.slot, cluster)))
    first = row_changes(members.cluster, members.slot)
    return members.take(~(first & np.append(first, True)[1:]))


def tiles(cluster: I64, steps: I64, n_classes: int, work: int) -> Iterator[Tile]:
    """Cut rows, sorted by their class `cluster`, into tiles of about `work` of their `steps`; at least one tile."""
    if len(cluster) == 0:
        yield Tile(0, 0, 0, 0)
        return
    done = np.cumsum(steps)
    cuts = np.searchsorted(done, np.arange(work, done[-1], work)) + 1
    first_of = np.searchsorted(cluster, np.arange(n_classes))
    for first, end in pairwise(np.unique([0, *cuts.tolist(), len(cluster)]).tolist()):
        low = int(cluster[first])
        yield Tile(low, int(cluster[end - 1]) + 1, first - int(first_of[low]), end - int(first_of[low]))


_STEPS_PER_FRAGMENT = 32


class FileRange(NamedTuple):
    """A cell: the files low:high."""

    low: int
    high: int


def file_ranges(corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
    """Yield ranges of about `work` steps or of one file, which partition the files."""
    fragments = np.searchsorted(discovered.file, np.arange(len(corpus.files) + 1))
    steps = corpus.phones.first + corpus.words.first + _STEPS_PER_FRAGMENT * fragments
    low = 0
    while low < len(corpus.files):
        high = max(low + 1, int(np.searchsorted(steps, steps[low] + work, side="right")) - 1)
        yield FileRange(low, high)
        low = high


class ByFiles:
    """A statistic that is counted file by file."""

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
        """Yield ranges of files."""
        return file_ranges(corpus, discovered, work)


def rows_of(files: FileRange, file: I32) -> slice:
    """Return the rows of a range of files in a column of files that is sorted."""
    low, high = np.searchsorted(file, files).tolist()
    return slice(low, high)


NO_WORD = -1
_EDGE_SECONDS = 0.03


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some files that are in a fold of one set: columns by word, in the order of the corpus.

    File f has the rows first[f]:first[f + 1]; `row` is the row of each word in the corpus.
    """

    row: I64
    file: I32
    start: I32
    end: I32
    label: I32
    fold: I16
    first: I64


def words_of(files: FileRange, corpus: Corpus, fold_set: int) -> Words:
    """Return the words of a range of files that are in a fold of a set."""
    rows = rows_of(files, corpus.words.file)
    words = corpus.words
    fold = folds_of(words.file[rows], words.start[rows], words.end[rows], [corpus.folds[fold_set]])[0]
    counted = np.flatnonzero(fold != NO_FOLD)
    row = counted + rows.start
    file = words.file[row]
    first = first_rows(file, len(corpus.files))
    return Words(row, file, words.start[row], words.end[row], words.label[row], fold[counted], first)


def words_near(discovered: Discovered, rows: slice, words: Words) -> tuple[I64, I64]:
    """Return the words first:last that each fragment is near by tde's rule.

    Both are -1 where tde finds no segment of words.

    QUIRK of tde: as for phones, only one segment is searched: words of the fold that touch.
    """
    breaks = (words.file[1:] != words.file[:-1]) | (words.start[1:] != words.end[:-1])
    segment = np.append(np.zeros(min(len(words.file), 1)), np.cumsum(breaks)).astype(np.int32)
    fragments = discovered.file[rows], discovered.start[rows], discovered.end[rows]
    return place_tde(*fragments, *segments_of(segment, words.first), words.start, words.end)


def words_matched(discovered: Discovered, rows: slice, words: Words, first: I64, last: I64) -> I64:
    """Return the word that each fragment matches by tde's rule, of those that it is near; `NO_WORD` if none.

    It is the only word that the fragment is near, if both edges are at most 30 ms apart, in doubles.
    """
    word = np.where(last - first == 1, first, NO_WORD)
    some = np.flatnonzero(word != NO_WORD)
    one = word[some]
    within = _within_30_ms(discovered.start[rows][some], words.start[one])
    within &= _within_30_ms(discovered.end[rows][some], words.end[one])
    word[some[~within]] = NO_WORD
    return word


def words_spelled(discovered: Discovered, rows: slice, words: Words, corpus: Corpus) -> I64:
    """Return the word that each fragment matches by tdev2's rule; `NO_WORD` if none.

    It is the word of which the fragment covers the largest share, if the labels of the fragment's phones are those of
    all phones that share any time with that word.
    """
    word = most_covered(
        discovered.file[rows], discovered.start[rows], discovered.end[rows], words.first, words.start, words.end
    )
    some = np.flatnonzero(word != NO_WORD)
    one = word[some]
    phones = corpus.phones
    spelled = place_touching(words.file[one], words.start[one], words.end[one], phones.first, phones.start, phones.end)
    same = same_labels(discovered.first[rows][some], discovered.last[rows][some], *spelled, phones.label)
    word[some[~same]] = NO_WORD
    return word


def _within_30_ms(ticks: I32, others: I32) -> Bool:
    apart: Bool = np.abs(others / TICKS_PER_SECOND - ticks / TICKS_PER_SECOND) <= _EDGE_SECONDS
    return apart
