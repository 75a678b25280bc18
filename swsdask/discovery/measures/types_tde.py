"""Type precision and recall of tde2015: how much of the lexicon was found, as it is spelled.

The distinct words (by spelling) that fragments are (`words.words_matched`), over the distinct sequences of words that
fragments are `near`, of one word, of several or of none, and over the distinct words of the fold. QUIRK: words labelled
SIL or SPN are words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from swsdask.discovery.counting.by_file import FileRange, file_ranges, rows_of
from swsdask.discovery.counting.per_fold import distinct_things, ratio, things_counted
from swsdask.discovery.counting.sets import distinct
from swsdask.discovery.counting.words import NO_WORD, words_matched, words_near, words_of
from swsdask.discovery.measures.types import spellings
from swsdask.kernels.sequences import number_sequences
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I16, I64


class Near(NamedTuple):
    """Distinct rows: the words first:last of the corpus (0:0 for none) that fragments of a fold of a set are near."""

    fold_set: I16
    fold: I16
    first: I64
    last: I64


@dataclass(frozen=True, eq=False)
class SpelledTypes:
    """The words that fragments are near, and the spellings of those that they are (`per_fold.distinct_things`)."""

    near: Near
    right: I64

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
        """Ranges of files."""
        return file_ranges(corpus, discovered, work)

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """The types in a range of files."""
        rows = rows_of(cell, discovered.file)
        near, right = [], []
        for fold_set, fold in enumerate(discovered.fold[:, rows]):
            words = words_of(cell, corpus, fold_set)
            first, last = words_near(discovered, rows, words)
            word = words_matched(discovered, rows, words, first, last)
            is_word = word != NO_WORD
            right.append(distinct_things(words.label[word[is_word]], fold[is_word], fold_set))
            some = last > first
            begin = np.zeros(len(first), np.int64)
            begin[some] = words.row[first[some]]
            counted = fold != NO_FOLD
            sets = np.full(len(fold), fold_set, np.int16)
            near.append(Near(sets[counted], fold[counted], begin[counted], (begin + last - first)[counted]))
        return cls(_distinct(near), np.concatenate(right))

    def merge(self, other: Self) -> Self:
        """The types of both parts."""
        return type(self)(_distinct([self.near, other.near]), distinct(self.right, other.right))


class SpelledType:
    """type_precision, type_recall."""

    names: ClassVar[tuple[str, ...]] = ("type_precision", "type_recall")
    statistic: ClassVar[type[SpelledTypes]] = SpelledTypes

    def values(self, statistic: SpelledTypes, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """NaN where there are no fragments, or no words."""
        own = statistic.near.fold_set == fold_set
        number = number_sequences(statistic.near.first[own], statistic.near.last[own], corpus.words.label)[0]
        seen = distinct_things(number, statistic.near.fold[own], fold_set)
        right = things_counted(statistic.right, fold_set, corpus)
        return {
            "type_precision": ratio(right, things_counted(seen, fold_set, corpus)),
            "type_recall": ratio(right, things_counted(spellings(corpus), fold_set, corpus)),
        }


def _distinct(parts: Iterable[Near]) -> Near:
    fold_set, fold, first, last = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((last, first, fold, fold_set))
    near = Near(fold_set[order], fold[order], first[order], last[order])
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = np.any([column[1:] != column[:-1] for column in near], axis=0)
    return Near(near.fold_set[fresh], near.fold[fresh], near.first[fresh], near.last[fresh])
