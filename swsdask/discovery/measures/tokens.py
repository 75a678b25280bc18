"""Token precision and recall, and the numbers of classes, fragments and words found.

document: |F_disc ∩ F_goldLex| over |F_disc|, and over |F_goldLex|, of the measures document of the Zero Resource
challenge. A fragment is known by its phones (file, first, last), a word too, both transcribed by the one rule of
`transcription`: edges that systems find are never those of words to the tick, and the document says which phones a
fragment has in spite of it. So fragments of the same phones are one, and so are words. A fragment without phones is one
by itself and no word; a word without phones is one that cannot be found.

tde2015: the fragments (by their times) that are a word: of the words of the fold that the fragment is `near` there is
exactly one, and both edges are at most 30 ms apart; over all fragments, and over all words. QUIRK: two fragments on one
word are counted twice, in recall too, which may exceed 1. QUIRK: words labelled SIL or SPN are words.

tdev2: the distinct words that fragments are (see `words.words_spelled`: the word of which it covers the largest share,
if their phones have equal labels), over the distinct fragments, and over the words. QUIRK: times are not compared.

n_classes, n_fragments and n_words count what a system found in a set of folds and in each fold. A class counts where
one of its fragments does; fragments are distinct ones; words are the distinct transcriptions of fragments, as the
challenge's later toolbox counts them, without the empty one. What lies in no fold of the set does not count. Over a set
of folds these are numbers of distinct things, so they are not the sums over its folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from swsdask.discovery.counting.per_fold import (
    NO_WORD,
    Agreement,
    ByFiles,
    FileRange,
    Words,
    by_fold,
    common,
    distinct,
    rows_counted,
    rows_of,
    words_matched,
    words_near,
    words_of,
    words_spelled,
)
from swsdask.discovery.placing import phones_of
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I64

_SIZE_BITS = 31


class TokenAgreement(ByFiles, Agreement):
    """Fragments and words."""

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """The fragments and words of a range of files."""
        counts = cls.nothing(corpus)
        rows = rows_of(cell, discovered.file)
        for fold_set in range(len(corpus.folds)):
            words = words_of(cell, corpus, fold_set)
            if corpus.definition == "document":
                counts._add_equal(fold_set, rows, words, corpus, discovered)
            else:
                counts._add_hits(fold_set, rows, words, corpus, discovered)
        return counts

    def _add_equal(self, fold_set: int, rows: slice, words: Words, corpus: Corpus, discovered: Discovered) -> None:
        found = _elements(discovered.first[rows], discovered.last[rows])
        gold = _elements(*phones_of(words.file, words.start, words.end, corpus))
        gold_in = {fold: distinct(gold[own]) for fold, own in by_fold(words.fold)}
        for fold, elements in gold_in.items():
            self.gold[fold_set, fold] = len(elements)
        for fold, own in by_fold(discovered.fold[fold_set, rows]):
            elements = distinct(found[own])
            self.found[fold_set, fold] = len(elements)
            if fold in gold_in:
                both = np.count_nonzero(common(elements, gold_in[fold]) >= 0)
                self.right[fold_set, fold] = self.recalled[fold_set, fold] = both

    def _add_hits(self, fold_set: int, rows: slice, words: Words, corpus: Corpus, discovered: Discovered) -> None:
        n_folds = self.found.shape[1]
        fold = discovered.fold[fold_set, rows]
        if corpus.definition == "tde2015":
            word = words_matched(discovered, rows, words, *words_near(discovered, rows, words))
            right = rows_counted(fold[word != NO_WORD], n_folds)
        else:
            word = words_spelled(discovered, rows, words, corpus)
            right = rows_counted(words.fold[distinct(word[word != NO_WORD])], n_folds)
        self.found[fold_set] = rows_counted(fold, n_folds)
        self.gold[fold_set] = rows_counted(words.fold, n_folds)
        self.right[fold_set] = self.recalled[fold_set] = right


class Token:
    """token_precision, token_recall."""

    names: ClassVar[tuple[str, ...]] = ("token_precision", "token_recall")
    statistic: ClassVar[type[TokenAgreement]] = TokenAgreement

    def values(self, statistic: TokenAgreement, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """NaN where there are no fragments, or no words."""
        return {
            "token_precision": statistic.precision(corpus, fold_set),
            "token_recall": statistic.recall(corpus, fold_set),
        }


def _elements(first: I64, last: I64) -> I64:
    """Return the ids of fragments or words: those of their phones; without phones, distinct ids below 0."""
    return np.where(last > first, (first << _SIZE_BITS) | (last - first), -1 - np.arange(len(first)))


NAMES = ("n_classes", "n_fragments", "n_words")


def sizes(discovered: Discovered, corpus: Corpus, fold_set: int) -> tuple[dict[str, float], dict[str, F64]]:
    """The numbers over a set of folds, and for each name those of its folds, float64 [n_folds]."""
    fold = discovered.fold[fold_set].astype(np.int64)
    member_fold = fold[discovered.member_fragment]
    transcribed = np.flatnonzero(discovered.last > discovered.first)
    things = {
        "n_classes": (member_fold, discovered.member_cluster.astype(np.int64)),
        "n_fragments": (fold, np.arange(len(discovered))),
        "n_words": (fold[transcribed], discovered.type[transcribed].astype(np.int64)),
    }
    n_folds = len(corpus.folds[fold_set].names)
    counted = {name: _distinct(*columns, n_folds) for name, columns in things.items()}
    return {name: total for name, (total, _) in counted.items()}, {name: each for name, (_, each) in counted.items()}


def _distinct(fold: I64, thing: I64, n_folds: int) -> tuple[float, F64]:
    """Count the distinct elements in any fold, and in each."""
    inside = fold != NO_FOLD
    fold, thing = fold[inside], thing[inside]
    pairs = np.unique(thing * n_folds + fold)
    return float(len(np.unique(thing))), np.bincount(pairs % n_folds, minlength=n_folds).astype(np.float64)
