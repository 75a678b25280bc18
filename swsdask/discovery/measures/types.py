"""Type precision and recall: the share of the lexicon that was found.

document: |types(F_disc) ∩ types(F_goldLex)| over |types(F_disc)|, and over |types(F_goldLex)|, of the measures document
of the Zero Resource challenge. A type is a transcription in phones, of fragments and of words alike (`transcription`);
the empty one is one of them.

tdev2: the distinct transcriptions of fragments that are a word (`words.words_spelled`), over the distinct
transcriptions of fragments, and over the distinct words. QUIRK: what was found is distinguished by its phones, the
words by their spelling: a perfect system has less than 1 where there are homophones.

tde2015 distinguishes both by their spelling: the distinct words (by spelling) that fragments are
(`words.words_matched`), over the distinct sequences of words that fragments are `near`, of one word, of several or of
none, and over the distinct words of the fold. QUIRK: words labelled SIL or SPN are words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.per_fold import (
    NO_WORD,
    ByFiles,
    FileRange,
    are_in,
    distinct,
    distinct_things,
    ratio,
    rows_of,
    things,
    things_counted,
    words_matched,
    words_near,
    words_of,
    words_spelled,
)
from swsdask.discovery.placing import folds_of, phones_of
from swsdask.kernels.ngrams import find_sequences, number_sequences
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I16, I32, I64, Bool


@dataclass(frozen=True, eq=False)
class TypeSets(ByFiles):
    """The types of fragments in folds, and those of them that are right: as `per_fold.distinct_things`."""

    seen: I64
    right: I64

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """The types in a range of files."""
        rows = rows_of(cell, discovered.file)
        number, fold = discovered.type[rows], discovered.fold[:, rows]
        if corpus.definition == "document":
            gold = _in_lexicon(rows, corpus, discovered)
        else:
            gold = _are_words(cell, rows, corpus, discovered)
        seen = [distinct_things(number, own, fold_set) for fold_set, own in enumerate(fold)]
        right = [distinct_things(number[gold[k]], own[gold[k]], k) for k, own in enumerate(fold)]
        return cls(np.concatenate(seen), np.concatenate(right))

    def merge(self, other: Self) -> Self:
        """The types of both parts."""
        return type(self)(distinct(self.seen, other.seen), distinct(self.right, other.right))


class Type:
    """type_precision, type_recall."""

    names: ClassVar[tuple[str, ...]] = ("type_precision", "type_recall")
    statistic: ClassVar[type[TypeSets]] = TypeSets

    def values(self, statistic: TypeSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """NaN where there are no fragments, or no words."""
        gold = lexicon(corpus).types if corpus.definition == "document" else spellings(corpus)
        right = things_counted(statistic.right, fold_set, corpus)
        return {
            "type_precision": ratio(right, things_counted(statistic.seen, fold_set, corpus)),
            "type_recall": ratio(right, things_counted(gold, fold_set, corpus)),
        }


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The transcriptions of words: a table of `kernels.ngrams`, and `types`, those of the words of each fold."""

    slots: I32
    first: I64
    last: I64
    types: I64


@per_corpus
def lexicon(corpus: Corpus) -> Lexicon:
    """The types of F_goldLex, numbered."""
    words = corpus.words
    first, last = phones_of(words.file, words.start, words.end, corpus)
    numbers, slots, entry_first, entry_last = number_sequences(first, last, corpus.phones.label)
    return Lexicon(slots, entry_first, entry_last, _of_all_words(numbers, corpus))


@per_corpus
def spellings(corpus: Corpus) -> I64:
    """The distinct words of each fold by their spelling, as `per_fold.distinct_things`."""
    return _of_all_words(corpus.words.label, corpus)


def _of_all_words(number: I32, corpus: Corpus) -> I64:
    words = corpus.words
    fold = folds_of(words.file, words.start, words.end, corpus.folds)
    return np.concatenate([distinct_things(number, own, fold_set) for fold_set, own in enumerate(fold)])


def _in_lexicon(rows: slice, corpus: Corpus, discovered: Discovered) -> Bool:
    """Whether each fragment has the transcription of a word of its fold, bool [n_fold_sets, n]."""
    known, fold = lexicon(corpus), discovered.fold[:, rows]
    first, last = discovered.first[rows], discovered.last[rows]
    number = find_sequences(first, last, corpus.phones.label, known.slots, known.first, known.last)
    gold: Bool = (number >= 0) & (fold != NO_FOLD)
    for fold_set, own in enumerate(gold):
        own[own] = are_in(things(number[own], fold[fold_set, own], fold_set), known.types)
    return gold


def _are_words(files: FileRange, rows: slice, corpus: Corpus, discovered: Discovered) -> Bool:
    """Whether each fragment is a word of its fold as tdev2 has it, bool [n_fold_sets, n]."""
    all_words = (words_of(files, corpus, fold_set) for fold_set in range(len(corpus.folds)))
    return np.array([words_spelled(discovered, rows, words, corpus) != NO_WORD for words in all_words])


class Near(NamedTuple):
    """Distinct rows: the words first:last of the corpus (0:0 for none) that fragments of a fold of a set are near."""

    fold_set: I16
    fold: I16
    first: I64
    last: I64


@dataclass(frozen=True, eq=False)
class SpelledTypes(ByFiles):
    """The words that fragments are near, and the spellings of those that they are (`per_fold.distinct_things`)."""

    near: Near
    right: I64

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
