"""Grouping: whether what a system put in one class reads alike, and what reads alike is in one class.

The measures document of the Zero Resource challenge compares two sets of pairs of fragments of one fold: P_clus, those
of one class, and P_goldclus, those of any classes that have equal transcriptions. It weighs types of transcriptions by
freq(t, P) = |match(t, P)| / |flat(P)|; match(t, P) is a set of fragments too, so its sums telescope:

    precision = |flat(P_clus and P_goldclus)| / |flat(P_clus)|
    recall = |flat(P_clus and P_goldclus)| / |flat(P_goldclus)|

- document: as above. P_clus is taken without pairs that overlap (share more than half of the shorter one's extent), as
  P_disc is, unless `overlapping_pairs = "kept"`; those of P_goldclus are disjoint (of one file: share no time at all).
  Two fragments without phones are no pair of either: nothing is alike in them.
- tde2015: the same sets but for its rules of overlap, weighed in another way: see `grouping_tde`.
- tdev2: P_clus has every two members of a class, whether they overlap or not; a fragment that is twice a member makes a
  pair with itself. Pairs of P_goldclus share no time in one file. QUIRK: fragments of flat(P) are told apart by the
  onsets, offsets and labels of their phones alone: not by their file nor by their own times.

A precision is NaN in a fold where P_clus is empty, a recall where P_goldclus is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from swsdask.discovery.counting.pair_sets import PairSets
from swsdask.discovery.counting.per_fold import ratio
from swsdask.model.corpus import Corpus
from swsdask.model.trials import F64

NAMES = ("grouping_precision", "grouping_recall")


class Grouping:
    """Grouping precision and recall of document and tdev2, per fold."""

    names: ClassVar[tuple[str, ...]] = NAMES
    statistic: ClassVar[type[PairSets]] = PairSets

    def values(self, statistic: PairSets, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        found, gold, both = (statistic.n_flat(pairs, corpus, fold_set) for pairs in statistic.sets)
        return {NAMES[0]: ratio(both, found), NAMES[1]: ratio(both, gold)}
