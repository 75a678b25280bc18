"""Clustering: precision and recall of pairs inside classes (grouping), and of types, the lexicon.

Grouping: precision and recall of pairs inside classes
------------------------------------------------------
`grouping_precision`, `grouping_recall`, `grouping_f_score`.

The measures document of the Zero Resource challenge compares two sets of pairs of fragments of one fold: P_clus, pairs
of one class, and P_goldclus, pairs with equal transcriptions, of any classes. It weights types of transcriptions by
freq(t, P) = |match(t, P)| / |flat(P)|; match(t, P) is a set of fragments too, so the sums telescope:

    precision = |flat(P_clus and P_goldclus)| / |flat(P_clus)|
    recall = |flat(P_clus and P_goldclus)| / |flat(P_goldclus)|

- document: as above. P_clus, like P_disc, leaves out pairs that overlap (share more than half of the shorter one's
  extent), unless `overlapping_pairs = "kept"`; pairs of P_goldclus share no time in one file. Two fragments without
  phones are not a pair of either set.
- tde2015: the same sets with its own rules of overlap and other weights, see below.
- tdev2: P_clus has every two members of a class, whether they overlap or not; a fragment that is twice a member makes a
  pair with itself. Pairs of P_goldclus share no time in one file. QUIRK: fragments of flat(P) are distinguished by the
  onsets, offsets and labels of their phones alone: not by their file nor by their own times.

A precision is NaN in a fold where P_clus is empty, a recall where P_goldclus is.

tde2015 divides by the pairs of a type, not by its fragments. With the sets P_clus and P_goldclus of tde2015,
n(t, P) the number of pairs of P whose second member has type t, and w(t, P) the share of the fragments
of flat(P) that have it,

    precision = sum over t of w(t, P_clus) n(t, P_clus and P_goldclus) / n(t, P_clus)
    recall = sum over t of w(t, P_goldclus) n(t, P_clus and P_goldclus) / n(t, P_goldclus)

QUIRK: pairs are unordered; the second member is the later one by file and start. A type that is never second in P_clus
is lost with its weight, so precision may be below 1 although everything is right, and depends on the names of files. A
number is NaN in a fold where the set in its denominator is empty. Quotients are rounded once each, and their sum once.

P_clus and P_goldclus are never listed. They leave out pairs of a fragment with itself, by the document pairs of two
fragments without phones, and pairs that overlap:

| definition | overlap in P_clus | in P_goldclus |
|---|---|---|
| document | share more than half of the shorter one's extent in one file; or none | share any time in one file |
| tde2015 | QUIRK: are `near`, whatever their files | are `near`, whatever their files, or share any time in one file |
| tdev2 | none; a fragment that is twice a member of a class makes a pair with itself | share any time in one file |

The document does not mention overlap in P_clus; `overlapping_pairs = "kept"` takes this literally
(`model.discovery.Readings`).
QUIRK of tde2015: P_goldclus has only fragments of classes with two or more members in the fold.

Two things are kept of a set: flat(P), the fragments that are in a pair; and for each type, the number of pairs whose
later fragment (by file and start) has this type. A fragment is in a pair unless all others overlap it. Pairs are
counted by the ranks of their later fragments. Only overlapping pairs are enumerated, by a sweep over time.

Type precision and recall: the share of the lexicon that was found
------------------------------------------------------------------
`type_precision`, `type_recall`, `type_f_score`.

document: |types(F_disc) ∩ types(F_goldLex)| over |types(F_disc)|, and over |types(F_goldLex)|, of the measures document
of the Zero Resource challenge. A type is the transcription in phones of a fragment or a word (`discovery.placing`); the
empty transcription is a type too.

tdev2: the distinct transcriptions of fragments that match a word (`per_fold.words_spelled`), over the distinct
transcriptions of fragments, and over the distinct words. QUIRK: fragments are distinguished by their phones, words by
their spelling: with homophones, a perfect system has less than 1.

tde2015 distinguishes both by their spelling: the distinct words (by spelling) that fragments match
(`per_fold.words_matched`), over the distinct sequences of words that fragments are `near` (of one word, several or
none), and over the distinct words of the fold. QUIRK: words labelled SIL or SPN are words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.pairs import (
    CountedPairs,
    Products,
    batches,
    bounds_of,
    counted_alone,
    counted_products,
    in_several,
    keys_of,
    members_twice,
    of_one_type,
    pairs_of_classes,
    pairs_within,
)
from swsdask.discovery.counting.per_fold import (
    NO_WORD,
    ByFiles,
    FileRange,
    are_in,
    distinct_things,
    most_folds,
    rows_of,
    things,
    things_counted,
    union,
    words_matched,
    words_near,
    words_of,
    words_spelled,
)
from swsdask.discovery.placing import folds_of, phones_of
from swsdask.kernels.ngrams import find_sequences, number_sequences
from swsdask.kernels.pairs import ANY_TIME, MOST_OF_THE_SHORTER, NEAR, NEAR_OR_ANY_TIME
from swsdask.model.columns import ratio, row_changes
from swsdask.model.discovery import NO_FOLD, Corpus, Definition, Discovered
from swsdask.model.trials import F64, I16, I32, I64, Bool

_FOUND: dict[Definition, int] = {"document": MOST_OF_THE_SHORTER, "tde2015": NEAR}
_GOLD: dict[Definition, int] = {"document": ANY_TIME, "tde2015": NEAR_OR_ANY_TIME, "tdev2": ANY_TIME}

Kind = Literal["found", "gold", "twice"]


class PairsCell(NamedTuple):
    """Pairs of one class ("found"), of one type ("gold"), or (tdev2) of a fragment with itself ("twice")."""

    kind: Kind
    products: Products

    def __str__(self) -> str:
        return f"{self.kind}, {self.products}"


@dataclass(frozen=True, eq=False)
class PairSets:
    """P_clus, P_goldclus and their intersection, with the numbers of types and fragments in their keys."""

    n_types: int
    n_fragments: int
    found: CountedPairs
    gold: CountedPairs
    both: CountedPairs

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[PairsCell]:
        """Yield ranges of classes and of types, of about `work` fragments each."""
        by_type = np.argsort(discovered.type, kind="stable")
        within: dict[Kind, Products] = {
            "found": pairs_of_classes(discovered),
            "gold": pairs_within(discovered.type[by_type].astype(np.int64), by_type),
        }
        if corpus.definition == "tdev2":
            within["twice"] = members_twice(discovered)
        for kind, products in within.items():
            sizes = np.diff(products.bounds)
            for batch in batches(products, sizes[products.left] + sizes[products.right], work):
                yield PairsCell(kind, batch)

    @classmethod
    def from_cell(cls, cell: PairsCell, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the pairs of some classes or types."""
        keys, rule = keys_of(corpus, discovered), _GOLD[corpus.definition]
        among_found = None if corpus.readings.overlapping_pairs == "kept" else _FOUND.get(corpus.definition)
        found = gold = both = CountedPairs.of([], [], [])
        if cell.kind == "found":
            found = counted_products(cell.products, among_found, discovered, keys)
            both = counted_products(of_one_type(cell.products, discovered), rule, discovered, keys)
        elif cell.kind == "gold":
            if corpus.definition == "tde2015":
                keys = in_several(discovered, keys)
            gold = counted_products(cell.products, rule, discovered, keys)
        else:
            found = counted_alone(cell.products.fragment, keys)
        return cls(keys.n_types, len(discovered), found, gold, both)

    def merge(self, other: Self) -> Self:
        """Return the pairs of both parts together."""
        sets = (mine.merge(others) for mine, others in zip(self.sets, other.sets, strict=True))
        return type(self)(self.n_types, self.n_fragments, *sets)

    @property
    def sets(self) -> tuple[CountedPairs, CountedPairs, CountedPairs]:
        """P_clus, P_goldclus and their intersection."""
        return self.found, self.gold, self.both

    def n_flat(self, pairs: CountedPairs, corpus: Corpus, fold_set: int) -> I64:
        """Return |flat(P)| in the folds of a set, int64 [n_folds]."""
        return np.diff(np.searchsorted(pairs.flat, self.ends(corpus, fold_set) * self.n_fragments))

    def n_pairs(self, pairs: CountedPairs, corpus: Corpus, fold_set: int) -> I64:
        """Return |P| in the folds of a set, int64 [n_folds]."""
        return np.diff(bounds_of(pairs.pairs)[np.searchsorted(pairs.group, self.ends(corpus, fold_set))])

    def ends(self, corpus: Corpus, fold_set: int) -> I64:
        """Return the first group of each fold of a set, and the end of the last one."""
        slots = fold_set * most_folds(corpus) + np.arange(len(corpus.folds[fold_set].names) + 1)
        return slots * self.n_types


_GROUPING = ("grouping_precision", "grouping_recall")


class Grouping:
    """Grouping precision and recall of document and tdev2, per fold."""

    names: ClassVar[tuple[str, ...]] = _GROUPING
    statistic: ClassVar[type[PairSets]] = PairSets

    def values(self, statistic: PairSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        found, gold, both = (statistic.n_flat(pairs, corpus, fold_set) for pairs in statistic.sets)
        return {_GROUPING[0]: ratio(both, found), _GROUPING[1]: ratio(both, gold)}


class GroupingTde:
    """Grouping precision and recall of tde2015, per fold."""

    names: ClassVar[tuple[str, ...]] = _GROUPING
    statistic: ClassVar[type[PairSets]] = PairSets

    def values(self, statistic: PairSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        ends = statistic.ends(corpus, fold_set)
        found, gold, both = statistic.sets
        return {
            name: _weighed(pairs, both, ends, statistic.n_fragments)
            for name, pairs in zip(_GROUPING, (found, gold), strict=True)
        }


def _weighed(whole: CountedPairs, part: CountedPairs, ends: I64, n_fragments: int) -> F64:
    """Return the sum over the types of each fold: fold k has the groups ends[k]:ends[k + 1]."""
    group, fragments = np.unique(whole.flat // n_fragments, return_counts=True)
    weight = fragments * _pairs_of(part, group)
    pairs = _pairs_of(whole, group)
    terms = np.where(pairs == 0, 0.0, weight / np.where(pairs == 0, 1, pairs))
    first = np.searchsorted(group, ends)
    values = np.full(len(ends) - 1, np.nan)
    for fold, (low, high) in enumerate(zip(first[:-1].tolist(), first[1:].tolist(), strict=True)):
        if low < high:
            values[fold] = math.fsum(terms[low:high].tolist()) / int(fragments[low:high].sum())
    return values


def _pairs_of(counted: CountedPairs, group: I64) -> I64:
    """Count the pairs of groups, int64."""
    place = np.minimum(np.searchsorted(counted.group, group), max(len(counted.group) - 1, 0))
    if not len(counted.group):
        return np.zeros(len(group), np.int64)
    return np.where(counted.group[place] == group, counted.pairs[place], 0)


@dataclass(frozen=True, eq=False)
class TypeSets(ByFiles):
    """The types of fragments in folds, and those of them that are right: as `per_fold.distinct_things`."""

    seen: I64
    right: I64

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the types in a range of files."""
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
        """Return the types of both parts."""
        return type(self)(union(self.seen, other.seen), union(self.right, other.right))


class Type:
    """type_precision, type_recall."""

    names: ClassVar[tuple[str, ...]] = ("type_precision", "type_recall")
    statistic: ClassVar[type[TypeSets]] = TypeSets

    def values(self, statistic: TypeSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN where there are no fragments, or no words."""
        gold = lexicon(corpus).types if corpus.definition == "document" else spellings(corpus)
        right = things_counted(statistic.right, fold_set, corpus)
        return {
            "type_precision": ratio(right, things_counted(statistic.seen, fold_set, corpus)),
            "type_recall": ratio(right, things_counted(gold, fold_set, corpus)),
        }


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The transcriptions of words: a table of `kernels.ngrams`, and `types`, the types of the words of each fold."""

    slots: I32
    first: I64
    last: I64
    types: I64


@per_corpus
def lexicon(corpus: Corpus) -> Lexicon:
    """Return the types of F_goldLex, numbered."""
    words = corpus.words
    first, last = phones_of(words.file, words.start, words.end, corpus)
    numbers, slots, entry_first, entry_last = number_sequences(first, last, corpus.phones.label)
    return Lexicon(slots, entry_first, entry_last, _of_all_words(numbers, corpus))


@per_corpus
def spellings(corpus: Corpus) -> I64:
    """Return the distinct words of each fold by their spelling, as `per_fold.distinct_things`."""
    return _of_all_words(corpus.words.label, corpus)


def _of_all_words(number: I32, corpus: Corpus) -> I64:
    words = corpus.words
    fold = folds_of(words.file, words.start, words.end, corpus.folds)
    return np.concatenate([distinct_things(number, own, fold_set) for fold_set, own in enumerate(fold)])


def _in_lexicon(rows: slice, corpus: Corpus, discovered: Discovered) -> Bool:
    """Return whether each fragment has the transcription of a word of its fold, bool [n_fold_sets, n]."""
    known, fold = lexicon(corpus), discovered.fold[:, rows]
    first, last = discovered.first[rows], discovered.last[rows]
    number = find_sequences(first, last, corpus.phones.label, known.slots, known.first, known.last)
    gold: Bool = (number >= 0) & (fold != NO_FOLD)
    for fold_set, own in enumerate(gold):
        own[own] = are_in(things(number[own], fold[fold_set, own], fold_set), known.types)
    return gold


def _are_words(files: FileRange, rows: slice, corpus: Corpus, discovered: Discovered) -> Bool:
    """Return whether each fragment matches a word of its fold by tdev2's rule, bool [n_fold_sets, n]."""
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
    """The words that fragments are near, and the spellings of those that they match (`per_fold.distinct_things`)."""

    near: Near
    right: I64

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the types in a range of files."""
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
        """Return the types of both parts."""
        return type(self)(_distinct([self.near, other.near]), union(self.right, other.right))


class SpelledType:
    """type_precision, type_recall."""

    names: ClassVar[tuple[str, ...]] = ("type_precision", "type_recall")
    statistic: ClassVar[type[SpelledTypes]] = SpelledTypes

    def values(self, statistic: SpelledTypes, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN where there are no fragments, or no words."""
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
    fresh = row_changes(*near)
    return Near(near.fold_set[fresh], near.fold[fresh], near.first[fresh], near.last[fresh])
