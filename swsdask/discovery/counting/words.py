"""The words of a set of folds, and which of them a fragment is near or lies on.

A word counts in a fold as a fragment does: if it lies entirely inside one of the fold's stretches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.discovery.counting.by_file import FileRange, rows_of
from swsdask.discovery.placing.numbering import first_rows
from swsdask.discovery.placing.restriction import folds_of
from swsdask.discovery.placing.transcription import segments_of
from swsdask.kernels.placing import place_tde, place_touching
from swsdask.kernels.words import most_covered, same_labels
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.ticks import TICKS_PER_SECOND
from swsdask.model.trials import I16, I32, I64, Bool

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
