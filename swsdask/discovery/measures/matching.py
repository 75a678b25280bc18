"""Matching: which of the strings that a system paired are equal, and which of those that could be it paired.

The measures document of the Zero Resource challenge weighs the types of strings by how many fragments they have. As
match(t, P) and freq(t, P) both count fragments, the sums telescope:

    precision = |flat(P_disc* and P_all)| / |flat(P_disc*)|,  recall = |flat(P_disc* and P_all)| / |flat(P_all)|

- P_disc*: two members of a class, in one fold, that do not overlap (share at most half of the shorter one, or lie in
  two files); the shorter string is laid along the longer one in every way without overhang, and each window of 3 to 20
  phones is paired with what faces it. The document names no shortest window, and its example has windows of two: with
  `min_phones` 2 or 1 those count too. They are never gold.
- P_all: windows of 3 to 20 phones inside one gap-free segment and one stretch of the fold that are equal and do not
  overlap (`discovery.counting.gold`).

A precision is NaN in a fold where nothing is paired, a recall where there is nothing to pair.

The window of a pair of m and n phones are all those of both of up to min(m, n) phones: flat(P_disc*) takes no pairs,
only each member's longest partner. The other set is found by pairs of distinct strings (`kernels.completion`).
Differences: tde2015 is another measure (`matching_tde`); tdev2 has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from swsdask.discovery.counting.gold import gold
from swsdask.discovery.counting.members import Tile, tiles
from swsdask.discovery.counting.per_fold import most_folds, ratio
from swsdask.discovery.counting.rows import laid_out
from swsdask.discovery.counting.windows import LONGEST
from swsdask.kernels.completion import U32, match_rows
from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.trials import F64, I64

NAMES = ("matching_precision", "matching_recall")


@dataclass(frozen=True, eq=False)
class MatchedWindows:
    """Windows of one system as bit masks: bit L - 1 is the window of L phones.

    `key` int64, ascending, distinct, is (fold set * most folds + fold) * n_phones + the phone that windows start at;
    `completed` and `gold` uint32 are those of flat(P_disc*), and those of them that are in flat(P_disc* and P_all).
    """

    key: I64
    completed: U32
    gold: U32

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Tile]:
        """Pairs of rows, of which each takes about as many steps as a row has phones."""
        layout = laid_out(corpus, discovered, 0, len(discovered.classes))
        phones = np.diff(layout.entries.at)[layout.rows.begins[:-1]]
        pairs = layout.rows.high - np.arange(len(phones))
        return tiles(layout.cluster, pairs * phones, len(discovered.classes), work)

    @classmethod
    def from_cell(cls, cell: Tile, corpus: Corpus, discovered: Discovered) -> Self:
        """The windows of some rows of some classes."""
        layout = laid_out(corpus, discovered, cell.low, cell.high)
        phones = corpus.phones
        completed, gold_too = match_rows(
            layout.entries,
            layout.rows,
            cell.first,
            cell.end,
            phones.start,
            phones.end,
            corpus.readings.min_phones,
            LONGEST,
        )
        some = np.flatnonzero(completed | gold_too)
        return cls(*_joined(layout.key[some], completed[some], gold_too[some]))

    def merge(self, other: Self) -> Self:
        """The windows of both."""
        return type(self)(
            *_joined(
                np.concatenate([self.key, other.key]),
                np.concatenate([self.completed, other.completed]),
                np.concatenate([self.gold, other.gold]),
            )
        )

    def counts(self, corpus: Corpus, fold_set: int) -> tuple[I64, I64]:
        """|flat(P_disc*)| and |flat(P_disc* and P_all)| of each fold, int64 [n_folds]."""
        fold = self.key // max(len(corpus.phones), 1) - fold_set * most_folds(corpus)
        n_folds = len(corpus.folds[fold_set].names)
        own = (fold >= 0) & (fold < n_folds)
        return _windows(fold[own], self.completed[own], n_folds), _windows(fold[own], self.gold[own], n_folds)


class Matching:
    """Matching precision and recall by the measures document, per fold."""

    names: ClassVar[tuple[str, ...]] = NAMES
    statistic: ClassVar[type[MatchedWindows]] = MatchedWindows

    def values(self, statistic: MatchedWindows, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        completed, both = statistic.counts(corpus, fold_set)
        there = gold(corpus).flat[fold_set, : len(both)]
        return {NAMES[0]: ratio(both, completed), NAMES[1]: ratio(both, there)}


def _joined(key: I64, completed: U32, both: U32) -> tuple[I64, U32, U32]:
    """The same with each key once, ascending."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    if not len(begins):
        return key, completed, both
    return (
        key[begins],
        np.bitwise_or.reduceat(completed[order], begins),
        np.bitwise_or.reduceat(both[order], begins),
    )


def _windows(fold: I64, mask: U32, n_folds: int) -> I64:
    """How many windows masks have in each fold."""
    return np.bincount(fold, weights=np.bitwise_count(mask), minlength=n_folds).astype(np.int64)
