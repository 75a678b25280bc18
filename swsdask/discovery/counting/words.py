"""Words of a set of folds, and the words that a fragment matches; cells of files.

A word counts in a fold as a fragment does: if it lies entirely inside one of the fold's stretches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from swsdask.discovery.placing import first_rows, folds_of, segments_of
from swsdask.kernels.placing import most_covered, place_tde, place_touching, same_labels
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import I16, I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND

_STEPS_PER_FRAGMENT = 32


class FileRange(NamedTuple):
    """A cell: the files low:high."""

    low: int
    high: int


def file_ranges(corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
    """Ranges of files, all of them once, each of about `work` steps or one file."""
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
        """Ranges of files."""
        return file_ranges(corpus, discovered, work)


def rows_of(files: FileRange, file: I32) -> slice:
    """The rows of a range of files in a column of files that is sorted."""
    low, high = np.searchsorted(file, files).tolist()
    return slice(low, high)


NO_WORD = -1
_EDGE_SECONDS = 0.03


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some files that the folds of one set count: columns by word, in the order of the corpus.

    Those of file f are rows first[f]:first[f + 1]; `row` is where each is in the corpus.
    """

    row: I64
    file: I32
    start: I32
    end: I32
    label: I32
    fold: I16
    first: I64


def words_of(files: FileRange, corpus: Corpus, fold_set: int) -> Words:
    """The words of a range of files that a set of folds counts."""
    rows = rows_of(files, corpus.words.file)
    words = corpus.words
    fold = folds_of(words.file[rows], words.start[rows], words.end[rows], [corpus.folds[fold_set]])[0]
    counted = np.flatnonzero(fold != NO_FOLD)
    row = counted + rows.start
    file = words.file[row]
    first = first_rows(file, len(corpus.files))
    return Words(row, file, words.start[row], words.end[row], words.label[row], fold[counted], first)


def words_near(discovered: Discovered, rows: slice, words: Words) -> tuple[I64, I64]:
    """The words first:last that each fragment is near by tde's rule; both -1 where it finds no segment of words.

    QUIRK of tde: as for phones, words are looked up in one segment of words of the fold that touch.
    """
    breaks = (words.file[1:] != words.file[:-1]) | (words.start[1:] != words.end[:-1])
    segment = np.append(np.zeros(min(len(words.file), 1)), np.cumsum(breaks)).astype(np.int32)
    fragments = discovered.file[rows], discovered.start[rows], discovered.end[rows]
    return place_tde(*fragments, *segments_of(segment, words.first), words.start, words.end)


def words_matched(discovered: Discovered, rows: slice, words: Words, first: I64, last: I64) -> I64:
    """The word that each fragment is by tde's rule, of those that it is near; `NO_WORD` where it is none.

    That is the only one it is near, if both edges are at most 30 ms from the fragment's, in doubles.
    """
    word = np.where(last - first == 1, first, NO_WORD)
    some = np.flatnonzero(word != NO_WORD)
    one = word[some]
    within = _within_30_ms(discovered.start[rows][some], words.start[one])
    within &= _within_30_ms(discovered.end[rows][some], words.end[one])
    word[some[~within]] = NO_WORD
    return word


def words_spelled(discovered: Discovered, rows: slice, words: Words, corpus: Corpus) -> I64:
    """The word that each fragment is by tdev2's rule; `NO_WORD` where it is none.

    That is the one of which it covers the largest share, if the labels of its phones are those of all phones that share
    any time with that word.
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
