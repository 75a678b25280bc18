"""Grouping: precision and recall of pairs inside classes.

The measures document of the Zero Resource challenge compares two sets of pairs of fragments of one fold: P_clus, those
of one class, and P_goldclus, those with equal transcriptions, of any classes. It weighs types of transcriptions by
freq(t, P) = |match(t, P)| / |flat(P)|; match(t, P) is a set of fragments too, so its sums telescope:

    precision = |flat(P_clus and P_goldclus)| / |flat(P_clus)|
    recall = |flat(P_clus and P_goldclus)| / |flat(P_goldclus)|

- document: as above. P_clus is taken without pairs that overlap (share more than half of the shorter one's extent), as
  P_disc is, unless `overlapping_pairs = "kept"`; those of P_goldclus are disjoint (of one file: share no time at all).
  Two fragments without phones are not a pair of either set.
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

P_clus and P_goldclus are never listed. A fragment with itself is no pair of them, nor are, by the document, two without
phones, nor two that overlap:

| definition | overlap in P_clus | in P_goldclus |
|---|---|---|
| document | share more than half of the shorter one's extent in one file; or none | share any time in one file |
| tde2015 | QUIRK: are `near`, whatever their files | are `near`, whatever their files, or share any time in one file |
| tdev2 | none; a fragment that is twice a member of a class makes a pair with itself | share any time in one file |

The document names no overlap in P_clus; `overlapping_pairs = "kept"` reads it so (`model.corpus.Readings`).
QUIRK of tde2015: P_goldclus has only fragments of classes with two or more members in the fold.

What is kept of a set is the fragments that are in a pair of it, flat(P), and for each type how many pairs have a later
fragment (by file and start) of it. A fragment is in a pair if fewer of the others overlap it than there are; pairs are
counted by the ranks of their later fragments. Only overlapping pairs are gone through, found by a sweep over time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from swsdask.discovery.counting.pairs import (
    CountedPairs,
    Products,
    batches,
    bounds_of,
    counted,
    counted_alone,
    distinct_pairs,
    in_several,
    keys_of,
    members_twice,
    of_one_type,
    pairs_within,
)
from swsdask.discovery.counting.per_fold import most_folds, ratio
from swsdask.kernels.pairs import ANY_TIME, MOST_OF_THE_SHORTER, NEAR, NEAR_OR_ANY_TIME
from swsdask.model.corpus import Corpus, Definition, Discovered
from swsdask.model.trials import F64, I64

_FOUND: dict[Definition, int] = {"document": MOST_OF_THE_SHORTER, "tde2015": NEAR}
_GOLD: dict[Definition, int] = {"document": ANY_TIME, "tde2015": NEAR_OR_ANY_TIME, "tdev2": ANY_TIME}

Kind = Literal["found", "gold", "twice"]


class Cell(NamedTuple):
    """Pairs of one class ("found"), of one type ("gold"), or (tdev2) of a fragment with itself ("twice")."""

    kind: Kind
    products: Products

    def __str__(self) -> str:
        return f"{self.kind}, {self.products}"


@dataclass(frozen=True, eq=False)
class PairSets:
    """P_clus, P_goldclus and their intersection, with what their keys are made of."""

    n_types: int
    n_fragments: int
    found: CountedPairs
    gold: CountedPairs
    both: CountedPairs

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Cell]:
        """Ranges of classes and of types, of about `work` fragments each."""
        by_type = np.argsort(discovered.type, kind="stable")
        within: dict[Kind, Products] = {
            "found": distinct_pairs(discovered),
            "gold": pairs_within(discovered.type[by_type].astype(np.int64), by_type),
        }
        if corpus.definition == "tdev2":
            within["twice"] = members_twice(discovered)
        for kind, products in within.items():
            sizes = np.diff(products.bounds)
            for batch in batches(products, sizes[products.left] + sizes[products.right], work):
                yield Cell(kind, batch)

    @classmethod
    def from_cell(cls, cell: Cell, corpus: Corpus, discovered: Discovered) -> Self:
        """The pairs of some classes or types."""
        keys, rule = keys_of(corpus, discovered), _GOLD[corpus.definition]
        among_found = None if corpus.readings.overlapping_pairs == "kept" else _FOUND.get(corpus.definition)
        found = gold = both = CountedPairs.of([], [], [])
        if cell.kind == "found":
            found = counted(cell.products, among_found, discovered, keys)
            both = counted(of_one_type(cell.products, discovered), rule, discovered, keys)
        elif cell.kind == "gold":
            if corpus.definition == "tde2015":
                keys = in_several(discovered, keys)
            gold = counted(cell.products, rule, discovered, keys)
        else:
            found = counted_alone(cell.products.fragment, keys)
        return cls(keys.n_types, len(discovered), found, gold, both)

    def merge(self, other: Self) -> Self:
        """The pairs of both parts together."""
        sets = (mine.merge(others) for mine, others in zip(self.sets, other.sets, strict=True))
        return type(self)(self.n_types, self.n_fragments, *sets)

    @property
    def sets(self) -> tuple[CountedPairs, CountedPairs, CountedPairs]:
        """P_clus, P_goldclus and their intersection."""
        return self.found, self.gold, self.both

    def n_flat(self, pairs: CountedPairs, corpus: Corpus, fold_set: int) -> I64:
        """|flat(P)| in the folds of a set, int64 [n_folds]."""
        return np.diff(np.searchsorted(pairs.flat, self.ends(corpus, fold_set) * self.n_fragments))

    def n_pairs(self, pairs: CountedPairs, corpus: Corpus, fold_set: int) -> I64:
        """|P| in the folds of a set, int64 [n_folds]."""
        return np.diff(bounds_of(pairs.pairs)[np.searchsorted(pairs.group, self.ends(corpus, fold_set))])

    def ends(self, corpus: Corpus, fold_set: int) -> I64:
        """The groups with which the folds of a set begin, and the last ends."""
        slots = fold_set * most_folds(corpus) + np.arange(len(corpus.folds[fold_set].names) + 1)
        return slots * self.n_types


NAMES = ("grouping_precision", "grouping_recall")


class Grouping:
    """Grouping precision and recall of document and tdev2, per fold."""

    names: ClassVar[tuple[str, ...]] = NAMES
    statistic: ClassVar[type[PairSets]] = PairSets

    def values(self, statistic: PairSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        found, gold, both = (statistic.n_flat(pairs, corpus, fold_set) for pairs in statistic.sets)
        return {NAMES[0]: ratio(both, found), NAMES[1]: ratio(both, gold)}


class GroupingTde:
    """Grouping precision and recall of tde2015, per fold."""

    names: ClassVar[tuple[str, ...]] = NAMES
    statistic: ClassVar[type[PairSets]] = PairSets

    def values(self, statistic: PairSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        ends = statistic.ends(corpus, fold_set)
        found, gold, both = statistic.sets
        return {
            name: _weighed(pairs, both, ends, statistic.n_fragments)
            for name, pairs in zip(NAMES, (found, gold), strict=True)
        }


def _weighed(whole: CountedPairs, part: CountedPairs, ends: I64, n_fragments: int) -> F64:
    """The sum over the types of each fold: the folds have the groups ends[k]:ends[k + 1]."""
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
