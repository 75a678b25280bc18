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

tde2015 divides by the pairs of a type, not by its fragments. With the sets P_clus and P_goldclus of tde2015
(`pair_sets`), n(t, P) the number of pairs of P whose second member has type t, and w(t, P) the share of the fragments
of flat(P) that have it,

    precision = sum over t of w(t, P_clus) n(t, P_clus and P_goldclus) / n(t, P_clus)
    recall = sum over t of w(t, P_goldclus) n(t, P_clus and P_goldclus) / n(t, P_goldclus)

QUIRK: pairs are unordered; the second member is the later one by file and start. A type that is never second in P_clus
is lost with its weight, so precision may be below 1 although everything is right, and depends on the names of files. A
number is NaN in a fold where the set in its denominator is empty. Quotients are rounded once each, and their sum once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from swsdask.discovery.counting.pair_sets import PairSets
from swsdask.discovery.counting.pairs import CountedPairs
from swsdask.discovery.counting.per_fold import ratio
from swsdask.model.corpus import Corpus
from swsdask.model.trials import F64, I64

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
