"""Type precision and recall: how much of the lexicon was found.

document: |types(F_disc) ∩ types(F_goldLex)| over |types(F_disc)|, and over |types(F_goldLex)|, of the measures document
of the Zero Resource challenge. A type is a transcription in phones, of fragments and of words alike (`transcription`);
the empty one is one of them.

tdev2: the distinct transcriptions of fragments that are a word (`words.words_spelled`), over the distinct
transcriptions of fragments, and over the distinct words. QUIRK: what was found is told apart by its phones, the words
by their spelling: a perfect system has less than 1 where there are homophones.

tde2015 tells both apart by their spelling: `types_tde`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from swsdask.discovery.counting.by_file import FileRange, file_ranges, rows_of
from swsdask.discovery.counting.per_fold import distinct_things, ratio, things, things_counted
from swsdask.discovery.counting.remembered import per_corpus
from swsdask.discovery.counting.sets import are_in, distinct
from swsdask.discovery.counting.words import NO_WORD, words_of, words_spelled
from swsdask.discovery.placing.restriction import folds_of
from swsdask.discovery.placing.transcription import phones_of
from swsdask.kernels.sequences import find_sequences, number_sequences
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I32, I64, Bool


@dataclass(frozen=True, eq=False)
class TypeSets:
    """The types of fragments in folds, and those of them that are right: as `per_fold.distinct_things`."""

    seen: I64
    right: I64

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
        """Ranges of files."""
        return file_ranges(corpus, discovered, work)

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
    """The transcriptions of words: a table of `kernels.sequences`, and `types`, those of the words of each fold."""

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
