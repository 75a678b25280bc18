"""Things and numbers of folds: rows by their fold, sets of things in folds, and the two sides of a ratio."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from swsdask.discovery.counting.sets import distinct
from swsdask.model.corpus import NO_FOLD, Corpus
from swsdask.model.trials import F64, I16, I32, I64

_NUMBER_BITS, _FOLD_BITS = 32, 16
_FOLD = (1 << _FOLD_BITS) - 1


def most_folds(corpus: Corpus) -> int:
    """How many folds the set with most of them has."""
    return max(len(folds.names) for folds in corpus.folds)


def by_fold(fold: I16) -> Iterator[tuple[int, I64]]:
    """Each fold that some rows are of, and these rows, ascending."""
    order = np.argsort(fold, kind="stable")
    folds, begins = np.unique(fold[order], return_index=True)
    ends = np.append(begins[1:], len(order))
    for number, begin, end in zip(folds.tolist(), begins, ends[: len(folds)], strict=True):
        if number != NO_FOLD:
            yield number, order[begin:end]


def rows_counted(fold: I16, n_folds: int) -> I64:
    """How many rows each fold has, int64 [n_folds]."""
    return np.bincount(fold[fold != NO_FOLD], minlength=n_folds)


def things(number: I32, fold: I16, fold_set: int) -> I64:
    """Things in folds of one set as one number each, int64. Things are numbers of 0 or more, and in some fold."""
    place = (fold_set << _FOLD_BITS) | fold.astype(np.int64)
    return (place << _NUMBER_BITS) | number


def distinct_things(number: I32, fold: I16, fold_set: int) -> I64:
    """The set of things in the folds of one set, ascending; what is in none is left out."""
    inside = fold != NO_FOLD
    return distinct(things(number[inside], fold[inside], fold_set))


def things_counted(of: I64, fold_set: int, corpus: Corpus) -> I64:
    """How many of some distinct things each fold of one set has, int64 [n_folds]."""
    place = of >> _NUMBER_BITS
    return np.bincount(place[place >> _FOLD_BITS == fold_set] & _FOLD, minlength=len(corpus.folds[fold_set].names))


def ratio(part: I64, whole: I64) -> F64:
    """Part / whole, float64; NaN where there is nothing."""
    return np.where(whole == 0, np.nan, part / np.where(whole == 0, 1, whole))


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
        """Nothing found and nothing to find."""
        shape = len(corpus.folds), most_folds(corpus)
        return cls(*(np.zeros(shape, np.int64) for _ in fields(cls)))

    def merge(self, other: Self) -> Self:
        """The counts of both parts together, which have no elements in common."""
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def precision(self, corpus: Corpus, fold_set: int) -> F64:
        """The share of what was found that is gold, in the folds of a set."""
        n_folds = len(corpus.folds[fold_set].names)
        return ratio(self.right[fold_set, :n_folds], self.found[fold_set, :n_folds])

    def recall(self, corpus: Corpus, fold_set: int) -> F64:
        """The share of gold that was found, in the folds of a set."""
        n_folds = len(corpus.folds[fold_set].names)
        return ratio(self.recalled[fold_set, :n_folds], self.gold[fold_set, :n_folds])
