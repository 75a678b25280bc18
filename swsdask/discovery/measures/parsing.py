"""Parsing: token and boundary precision and recall, and the numbers of classes, fragments and words found.

Token precision and recall, and the numbers of classes, fragments and words found
---------------------------------------------------------------------------------
`token_precision`, `token_recall`, `token_f_score`; `n_classes`, `n_fragments`, `n_words`.

document: |F_disc ∩ F_goldLex| over |F_disc|, and over |F_goldLex|, of the measures document of the Zero Resource
challenge. Fragments and words are identified by their phones (file, first, last), by one rule (`discovery.placing`):
the edges that systems find rarely equal those of words to the tick, and the document defines the phones of a fragment
nevertheless. So fragments with the same phones are one, and so are words. Each fragment without phones counts and is
wrong; each word without phones counts and cannot be found.

tde2015: the fragments (by their times) that match a word: the fragment is `near` exactly one word of the fold, and both
edges are at most 30 ms apart; over all fragments, and over all words. QUIRK: two fragments that match one word are
counted twice, in recall too, which may exceed 1. QUIRK: words labelled SIL or SPN are words.

tdev2: the distinct words that fragments match (`per_fold.words_spelled`: the word of which the fragment covers the
largest share, if their phones have equal labels), over the distinct fragments, and over the words. QUIRK: times are not
compared.

n_classes, n_fragments and n_words are counted in a set of folds and in each fold. A class counts where
one of its fragments does. n_fragments counts distinct fragments, n_words their distinct transcriptions without the
empty one, as the challenge's later toolbox does. Fragments in no fold of the set do not count. Over a set of folds
these are numbers of distinct things, so they are not the sums over its folds.

Boundary precision and recall: how many edges of words were found
-----------------------------------------------------------------
`boundary_precision`, `boundary_recall`, `boundary_f_score`.

document: |B_disc ∩ B_gold| over |B_disc|, and over |B_gold|, of the measures document of the Zero Resource challenge.
The boundary of an edge (a start or an end of a fragment or word) is the nearest edge of a phone of its file (the
earlier of two equally near), if it is less than 30 ms away. An edge without one is a wrong boundary. Wrong boundaries
count singly (edges at one time are one) and are never in both sets; with `boundaries = "together"` all wrong boundaries
of a set are one element, the document's index -1, which both sets may have. Starts and ends are not distinguished.

tde2015: the distinct edges (file, time) of fragments that have an edge of a word nearer than 30 ms (in doubles), over
all edges of fragments; and the edges of words that have an edge of a fragment nearer than 30 ms, over all edges of
words. QUIRK: this is not one to one: any number of edges may have the same edge near. QUIRK: edges of fragments are
as clipped to speech; words labelled SIL or SPN have edges.

tdev2: the edges of a fragment are those of its phones: the start of the first, the end of the last. A start is right if
it equals the start of a word, an end if it equals the end of one; the distinct right times over the distinct times of
edges of fragments, and over those of words. QUIRK: a start at the end of a word that silence follows is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
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
    rows_counted,
    rows_of,
    union,
    words_matched,
    words_near,
    words_of,
    words_spelled,
)
from swsdask.discovery.placing import phones_of
from swsdask.model.discovery import NO_FOLD, Corpus, Definition, Discovered
from swsdask.model.trials import F64, I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND

_SIZE_BITS = 31


class TokenAgreement(ByFiles, Agreement):
    """Fragments and words."""

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the fragments and words of a range of files."""
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
        gold_in = {fold: union(gold[own]) for fold, own in by_fold(words.fold)}
        for fold, elements in gold_in.items():
            self.gold[fold_set, fold] = len(elements)
        for fold, own in by_fold(discovered.fold[fold_set, rows]):
            elements = union(found[own])
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
            right = rows_counted(words.fold[union(word[word != NO_WORD])], n_folds)
        self.found[fold_set] = rows_counted(fold, n_folds)
        self.gold[fold_set] = rows_counted(words.fold, n_folds)
        self.right[fold_set] = self.recalled[fold_set] = right


class Token:
    """token_precision, token_recall."""

    names: ClassVar[tuple[str, ...]] = ("token_precision", "token_recall")
    statistic: ClassVar[type[TokenAgreement]] = TokenAgreement

    def values(self, statistic: TokenAgreement, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN where there are no fragments, or no words."""
        return {
            "token_precision": statistic.precision(corpus, fold_set),
            "token_recall": statistic.recall(corpus, fold_set),
        }


def _elements(first: I64, last: I64) -> I64:
    """Return the ids of fragments or words: those of their phones; without phones, distinct ids below 0."""
    return np.where(last > first, (first << _SIZE_BITS) | (last - first), -1 - np.arange(len(first)))


SIZES = ("n_classes", "n_fragments", "n_words")


def sizes(discovered: Discovered, corpus: Corpus, fold_set: int) -> tuple[dict[str, float], dict[str, F64]]:
    """Return the numbers over a set of folds, and for each name those of its folds, float64 [n_folds]."""
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


_NEAR_TICKS = 300
_NEAR_SECONDS = 0.03
_TIME_BITS = 32
_TIME = (1 << _TIME_BITS) - 1
_NOWHERE = np.array([-1 << _TIME_BITS])

Edges = tuple[I64, I64]
"""Moments at which something starts, and ends."""

Numbers = tuple[int, int, int, int, int, int]
"""The fields of a `BoundaryAgreement`."""


@dataclass(frozen=True, eq=False)
class BoundaryAgreement(ByFiles, Agreement):
    """Boundaries of fragments and of words; `wrong` and `gold_wrong` are the wrong ones of each, counted singly."""

    wrong: I64
    gold_wrong: I64

    def read(self, corpus: Corpus) -> Agreement:
        """Return the boundaries, including wrong ones, counted singly or together."""
        if corpus.readings.boundaries == "singly":
            return Agreement(self.found + self.wrong, self.right, self.gold + self.gold_wrong, self.recalled)
        wrong, gold_wrong = (np.minimum(count, 1) for count in (self.wrong, self.gold_wrong))
        both = wrong * gold_wrong
        return Agreement(self.found + wrong, self.right + both, self.gold + gold_wrong, self.recalled + both)

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the boundaries in a range of files."""
        counts = cls.nothing(corpus)
        rows = rows_of(cell, discovered.file)
        starts, ends = _edges_of_fragments(rows, corpus, discovered)
        phones = _edges_of_phones(cell, corpus)
        for fold_set in range(len(corpus.folds)):
            words = words_of(cell, corpus, fold_set)
            word_starts, word_ends = _moment(words.file, words.start), _moment(words.file, words.end)
            found, gold = dict(by_fold(discovered.fold[fold_set, rows])), dict(by_fold(words.fold))
            nothing = np.empty(0, np.int64)
            for fold in found.keys() | gold.keys():
                own, own_gold = found.get(fold, nothing), gold.get(fold, nothing)
                numbers = _COMPARE[corpus.definition](
                    (starts[own], ends[own]), (word_starts[own_gold], word_ends[own_gold]), phones
                )
                for field, number in zip(fields(counts), numbers, strict=True):
                    getattr(counts, field.name)[fold_set, fold] = number
        return counts


class Boundary:
    """boundary_precision, boundary_recall."""

    names: ClassVar[tuple[str, ...]] = ("boundary_precision", "boundary_recall")
    statistic: ClassVar[type[BoundaryAgreement]] = BoundaryAgreement

    def values(self, statistic: BoundaryAgreement, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN where there are no fragments, or no words."""
        agreement = statistic.read(corpus)
        return {
            "boundary_precision": agreement.precision(corpus, fold_set),
            "boundary_recall": agreement.recall(corpus, fold_set),
        }


def _moment(file: I32, time: I32) -> I64:
    """File and time as one number. Within a file, numbers differ as the times do; between files, by far more."""
    return (file.astype(np.int64) << _TIME_BITS) | time


def _edges_of_fragments(rows: slice, corpus: Corpus, discovered: Discovered) -> Edges:
    file = discovered.file[rows]
    if corpus.definition != "tdev2":
        return _moment(file, discovered.start[rows]), _moment(file, discovered.end[rows])
    first, last = discovered.first[rows], discovered.last[rows] - 1
    return _moment(file, corpus.phones.start[first]), _moment(file, corpus.phones.end[last])


def _edges_of_phones(files: FileRange, corpus: Corpus) -> I64:
    rows = rows_of(files, corpus.phones.file)
    file, start, end = (column[rows] for column in (corpus.phones.file, corpus.phones.start, corpus.phones.end))
    return union(_moment(file, start), _moment(file, end))


def _compare_nearest(found: Edges, gold: Edges, phones: I64) -> Numbers:
    boundaries, wrong = _nearest(union(*found), phones)
    gold_boundaries, gold_wrong = _nearest(union(*gold), phones)
    both = len(common(boundaries, gold_boundaries))
    return len(boundaries), both, len(gold_boundaries), both, wrong, gold_wrong


def _nearest(edges: I64, phones: I64) -> tuple[I64, int]:
    """Return the distinct edges of phones nearest to some edges, and how many of these have none nearer than 30 ms."""
    before, after = _neighbours(edges, phones)
    nearest = np.where(np.abs(edges - before) <= np.abs(after - edges), before, after)
    near = np.abs(edges - nearest) < _NEAR_TICKS
    return union(nearest[near]), int(np.count_nonzero(~near))


def _compare_within(found: Edges, gold: Edges, phones: I64) -> Numbers:  # noqa: ARG001
    edges, gold_edges = union(*found), union(*gold)
    right = int(np.count_nonzero(_are_near(edges, gold_edges)))
    recalled = int(np.count_nonzero(_are_near(gold_edges, edges)))
    return len(edges), right, len(gold_edges), recalled, 0, 0


def _are_near(edges: I64, others: I64) -> Bool:
    """Return whether each edge has one of the others nearer than 30 ms."""
    near = np.zeros(len(edges), np.bool_)
    for neighbour in _neighbours(edges, others):
        same_file = edges >> _TIME_BITS == neighbour >> _TIME_BITS
        near |= same_file & (np.abs(_seconds(neighbour) - _seconds(edges)) < _NEAR_SECONDS)
    return near


def _compare_exactly(found: Edges, gold: Edges, phones: I64) -> Numbers:  # noqa: ARG001
    right = len(union(common(union(found[0]), union(gold[0])), common(union(found[1]), union(gold[1]))))
    return len(union(*found)), right, len(union(*gold)), right, 0, 0


def _neighbours(edges: I64, others: I64) -> tuple[I64, I64]:
    """Return the last of the ascending others before each edge, and the first at or after it; at the ends one twice."""
    if not len(others):
        return _NOWHERE.repeat(len(edges)), _NOWHERE.repeat(len(edges))
    behind = np.searchsorted(others, edges)
    return others[np.maximum(behind - 1, 0)], others[np.minimum(behind, len(others) - 1)]


def _seconds(moment: I64) -> F64:
    return (moment & _TIME) / TICKS_PER_SECOND


_COMPARE: dict[Definition, Callable[[Edges, Edges, I64], Numbers]] = {
    "document": _compare_nearest,
    "tde2015": _compare_within,
    "tdev2": _compare_exactly,
}
"""Functions that compute the numbers from the edges of fragments, of words and of phones."""
