"""Matching: precision and recall of the pairs of equal strings inside fragments of one class.

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
only each member's longest partner. The other set is found by pairs of distinct strings (`kernels.matching`).
tdev2 has no matching.

tde2015 weighs types of strings by their pairs. With A = P_sub, B = P_gold and I their intersection, all sets of ordered
pairs of windows of a fold, and for a type t of strings n_X(t) = how many pairs of X have a second member of type t,
w_X(t) = the share of the fragments of X that have type t:

    precision = sum over t of w_A(t) n_I(t) / n_A(t),  recall = sum over t of w_B(t) n_I(t) / n_B(t)

QUIRK: the measures document counts fragments, not pairs, in all of these, and then the sums telescope (`matching`).

- P_sub: two members of a class, in one fold, that are not `near`; the shorter string is laid along the longer one in
  every way without overhang, and each window of 3 to 19 phones is paired with what faces it. QUIRK: 20 phones are a
  gold fragment but no completed one. Completed pairs are not tested for overlap again.
- P_gold: equal windows of 3 to 20 phones inside one gap-free segment and one stretch of the fold that are not `near`.
- near: more than 30 ms or more than half of either are shared. QUIRK: whatever the files, in all sets of pairs.

A precision is NaN in a fold where nothing is paired, a recall where there is nothing to pair.

P_sub is kept as intervals on diagonals (`kernels.matching`). Of B only the types of I are looked at, and the number of
its fragments (`discovery.counting.gold`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self

import numpy as np

from swsdask.discovery.counting.gold import LONGEST, gold, laid_out, windows
from swsdask.discovery.counting.per_fold import Tile, changes, completable, most_folds, ratio, tiles
from swsdask.kernels.matching import U32, count_pairs, match_rows, maximal, number_starts, pair_up, tally_types
from swsdask.kernels.ngrams import SHORTEST, refine
from swsdask.model.discovery import Corpus, Discovered
from swsdask.model.trials import F64, I32, I64

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
    """Merge rows of equal keys; keys ascend."""
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
    """Count the windows of masks in each fold."""
    return np.bincount(fold, weights=np.bitwise_count(mask), minlength=n_folds).astype(np.int64)


_LONGEST = LONGEST - 1


@dataclass(frozen=True, eq=False)
class PairedWindows:
    """P_sub of one system as intervals that no other holds: `key` int64, ascending, and `length` int32.

    What `kernels.matching` calls the fold is here fold set * most folds + fold.
    """

    n_phones: int
    key: I64
    length: I32

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Tile]:
        """Pairs of members."""
        members = completable(corpus, discovered, 0, len(discovered.classes))
        others = _group_ends(members.cluster, members.slot) - np.arange(len(members.cluster))
        return tiles(members.cluster, others, len(discovered.classes), work)

    @classmethod
    def from_cell(cls, cell: Tile, corpus: Corpus, discovered: Discovered) -> Self:
        """Pair some members of some classes with those behind them."""
        members = completable(corpus, discovered, cell.low, cell.high)
        d, fragment, n_phones = discovered, members.fragment, len(corpus.phones)
        till = _group_ends(members.cluster, members.slot)
        places = d.first[fragment], d.last[fragment], d.start[fragment], d.end[fragment]
        return cls._sorted(n_phones, *pair_up(members.slot, till, *places, cell.first, cell.end, n_phones))

    def merge(self, other: Self) -> Self:
        """The pairs of both."""
        key, length = np.concatenate([self.key, other.key]), np.concatenate([self.length, other.length])
        return self._sorted(self.n_phones, key, length)

    @classmethod
    def _sorted(cls, n_phones: int, key: I64, length: I32) -> Self:
        order = np.argsort(key, kind="stable")
        return cls(n_phones, *maximal(key[order], length[order], n_phones))

    def of(self, slot: int) -> Self:
        """Select the pairs of one fold of one set."""
        low, high = np.searchsorted(self.key, np.array([slot, slot + 1]) * self.n_phones**2)
        return type(self)(self.n_phones, self.key[low:high], self.length[low:high])


class FoldPairs(NamedTuple):
    """P_sub of one fold counted.

    `fragments`: how many windows are paired; `pairs`: how many ordered pairs there are; `types` int64 [n_types, 5]: the
    types of I, with the columns of `kernels.matching.tally_types`.
    """

    fragments: int
    pairs: int
    types: I64


class WeightedMatching:
    """Matching precision and recall by tde, per fold."""

    names: ClassVar[tuple[str, ...]] = NAMES
    statistic: ClassVar[type[PairedWindows]] = PairedWindows

    def values(self, statistic: PairedWindows, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Precision and recall of the folds of one set."""
        n_folds = len(corpus.folds[fold_set].names)
        precision, recall = np.full(n_folds, np.nan), np.full(n_folds, np.nan)
        for fold, found in enumerate(pairs_of_folds(statistic, corpus, fold_set)):
            there = int(gold(corpus).flat[fold_set, fold])
            windows_found, pairs, right, windows_there, pairs_there = found.types.T
            if found.fragments:
                precision[fold] = math.fsum(windows_found / found.fragments * (right / pairs))
            if there:
                recall[fold] = math.fsum(windows_there / there * (right / pairs_there))
        return {NAMES[0]: precision, NAMES[1]: recall}


def pairs_of_folds(statistic: PairedWindows, corpus: Corpus, fold_set: int) -> Iterator[FoldPairs]:
    """Count the pairs of each fold of one set, by type where some are correct."""
    phones, n_labels = corpus.phones, len(corpus.phones.labels)
    fold, room = windows(corpus).fold[fold_set], windows(corpus).fold_room[fold_set]
    by_fold = np.argsort(fold, kind="stable").astype(np.int32)
    by_fold = by_fold[room[by_fold] >= SHORTEST]
    bounds = np.searchsorted(fold[by_fold], np.arange(len(corpus.folds[fold_set].names) + 1))
    line, reach = np.full(len(phones), -1, np.int32), room.copy()
    for number, (low, high) in enumerate(pairwise(bounds)):
        found = statistic.of(fold_set * most_folds(corpus) + number)
        used = number_starts(found.key, found.length, line)
        paired, right = np.zeros((2, len(used), _LONGEST - SHORTEST + 1), np.int64)
        count_pairs(found.key, found.length, phones.label, room, phones.start, phones.end, line, paired, right)

        lengths = np.count_nonzero(paired, axis=1) + SHORTEST - 1
        reach[used] = np.maximum(room[used], lengths)
        starts = np.concatenate([by_fold[low:high], used[room[used] < SHORTEST].astype(np.int32)])
        begins = np.array([0, len(starts)])
        types = [np.empty((0, 5), np.int64)]
        for length in range(1, _LONGEST + 1):
            starts, begins = refine(starts, begins, phones.label, reach, length - 1, n_labels)
            if length >= SHORTEST:
                types.append(tally_types(starts, begins, length, phones.start, phones.end, room, line, paired, right))
        yield FoldPairs(int(np.count_nonzero(paired)), int(paired.sum()), np.concatenate(types))
        line[used], reach[used] = -1, room[used]


def _group_ends(cluster: I64, slot: I64) -> I64:
    """The row behind the last of each row's group, int64."""
    first = np.flatnonzero(changes(cluster, slot))
    sizes = np.diff(first, append=len(cluster))
    return np.repeat(first + sizes, sizes)
