"""The gold fragments: every n-gram of 3 to 20 phones inside one gap-free segment that occurs at least twice.

P_all of the measures document of the Zero Resource challenge is the set of pairs of equal ones that do not overlap, in
a fold: both inside one of its stretches each. No file of gold classes is read and no pair is enumerated. Cells are
ranges of the first three phones, so equal n-grams lie in one cell; in it groups of equal n-grams are refined by their
next phone, which compares labels themselves: there is no hash and nothing to collide.

- document: two fragments overlap iff they share more than half of the shorter one's extent (of one file, of course).
- tde2015: `near`: by more than 30 ms or more than half of either. QUIRK: whatever their files. The gold set is
  everything that occurs twice in the whole corpus: QUIRK: in a fold, a fragment without a partner there counts as
  covered (not in P_all).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.per_fold import most_folds
from swsdask.discovery.counting.rows import LENGTHS, LONGEST, Windows, windows
from swsdask.kernels.ngrams import SHORTEST, U8, add_apart, add_partnered, covered, refine, starts_within, trigrams
from swsdask.model.corpus import Corpus
from swsdask.model.trials import I16, I32, I64

_WORK = 1 << 24


class Trigrams(NamedTuple):
    """A cell: the n-grams whose first three phones, as a number of three digits, are `low` or more, below `high`."""

    low: int
    high: int


class Ngrams(NamedTuple):
    """Groups of equal n-grams of `length` phones: group g starts at the phones starts[begins[g]:begins[g + 1]]."""

    length: int
    starts: I32
    begins: I64


@dataclass(frozen=True, eq=False)
class Gold:
    """What there is to find.

    `types` and `fragments`, int64 [21]: how many there are of each length, folds apart. `flat` int64 [n_fold_sets,
    most folds]: the fragments of P_all; `pairs`, alike: its ordered pairs (tde2015 only; 0 for document). `longest`
    uint8 [n_fold_sets, n_phones]: the phones of the longest covering fragment that starts there, 0 where none does.
    """

    types: I64
    fragments: I64
    flat: I64
    pairs: I64
    longest: U8

    @classmethod
    def cells(cls, corpus: Corpus, work: int = _WORK) -> Iterator[Trigrams]:
        """Ranges of trigrams that about `work` / 16 phones start."""
        n_labels = len(corpus.phones.labels)
        found = np.sort(trigrams(corpus.phones.label, windows(corpus).room, n_labels))
        cuts = [0, *np.unique(found[:: max(work // 16, 1)])[1:].tolist(), n_labels**SHORTEST]
        return (Trigrams(low, high) for low, high in pairwise(cuts))

    @classmethod
    def from_cell(cls, cell: Trigrams, corpus: Corpus) -> Self:
        """The gold whose first three phones are the cell's."""
        where = windows(corpus)
        types, fragments = np.zeros(LONGEST + 1, np.int64), np.zeros(LONGEST + 1, np.int64)
        flat, pairs = np.zeros((2, len(corpus.folds), most_folds(corpus)), np.int64)
        longest = np.zeros(where.fold.shape, np.uint8)
        for ngrams in grouped(cell, corpus):
            types[ngrams.length] = len(ngrams.begins) - 1
            fragments[ngrams.length] = len(ngrams.starts)
            for number in range(len(corpus.folds)):
                _add(ngrams, corpus, where, number, flat[number], pairs[number], longest[number])
        return cls(types, fragments, flat, pairs, longest)

    def merge(self, other: Self) -> Self:
        """The gold of both cells."""
        return type(self)(
            self.types + other.types,
            self.fragments + other.fragments,
            self.flat + other.flat,
            self.pairs + other.pairs,
            np.maximum(self.longest, other.longest),
        )


def grouped(cell: Trigrams, corpus: Corpus) -> Iterator[Ngrams]:
    """A cell's n-grams that occur at least twice, the shortest first."""
    label, n_labels, room = corpus.phones.label, len(corpus.phones.labels), windows(corpus).room
    starts = starts_within(label, room, n_labels, *cell)
    begins = np.array([0, len(starts)], np.int64)
    for length in range(1, LONGEST + 1):
        starts, begins = refine(starts, begins, label, room, length - 1, n_labels)
        if length in LENGTHS:
            yield Ngrams(length, starts, begins)


@per_corpus
def gold(corpus: Corpus) -> Gold:
    """All gold of a corpus (document or tde2015), found once."""
    return reduce(Gold.merge, (Gold.from_cell(cell, corpus) for cell in Gold.cells(corpus)))


def gold_cover(corpus: Corpus) -> I16:
    """The fold whose gold covers a phone, `NO_FOLD` where none does: int16 [n_fold_sets, n_phones].

    document: the phones of the fragments of P_all. tde2015: those of the gold fragments inside the fold.
    """
    longest, fold = gold(corpus).longest, windows(corpus).fold
    cover = [covered(longest[number], fold[number]) for number in range(len(corpus.folds))]
    return np.array(cover, np.int16).reshape(fold.shape)


def _add(ngrams: Ngrams, corpus: Corpus, where: Windows, number: int, flat: I64, pairs: I64, longest: U8) -> None:
    phones, room, fold = corpus.phones, where.fold_room[number], where.fold[number]
    length, starts, begins = ngrams
    if corpus.definition == "tde2015":
        add_apart(starts, begins, length, phones.start, phones.end, room, fold, flat, pairs, longest)
    else:
        add_partnered(starts, begins, length, phones.file, phones.start, phones.end, room, fold, flat, longest)
