"""Grouping as tde of 2015 has it: pairs, not fragments, are what a type is divided by.

With the sets P_clus and P_goldclus of tde2015 (`pair_sets`), n(t, P) the number of pairs of P whose second member has
type t, and w(t, P) the share of the fragments of flat(P) that have it,

    precision = sum over t of w(t, P_clus) n(t, P_clus and P_goldclus) / n(t, P_clus)
    recall = sum over t of w(t, P_goldclus) n(t, P_clus and P_goldclus) / n(t, P_goldclus)

QUIRK: pairs are unordered; the second member is the later one by file and start. A type that is never second in P_clus
is lost with its weight, so precision may stay below 1 where everything is right, and depends on how files are named.

NaN in a fold where the set divided by is empty. Each sum is that of quotients rounded once each, and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from swsdask.discovery.counting.counted_pairs import CountedPairs
from swsdask.discovery.counting.pair_sets import PairSets
from swsdask.discovery.measures.grouping import NAMES
from swsdask.model.corpus import Corpus
from swsdask.model.trials import F64, I64


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
    """How many pairs groups have, int64."""
    place = np.minimum(np.searchsorted(counted.group, group), max(len(counted.group) - 1, 0))
    if not len(counted.group):
        return np.zeros(len(group), np.int64)
    return np.where(counted.group[place] == group, counted.pairs[place], 0)
