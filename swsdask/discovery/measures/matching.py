"""Matching, and coverage of the gold fragments.

Matching: precision and recall of the pairs of equal strings inside fragments of one class
------------------------------------------------------------------------------------------
The measures document of the Zero Resource challenge weights the types of strings by their numbers of fragments. As
match(t, P) and freq(t, P) both count fragments, the sums telescope:

    precision = |flat(P_disc* and P_all)| / |flat(P_disc*)|,  recall = |flat(P_disc* and P_all)| / |flat(P_all)|

- P_disc*: two members of a class, in one fold, that do not overlap (share at most half of the shorter one, or lie in
  two files); the shorter string is aligned with the longer one at every offset without overhang, and each window of 3
  to 20 phones is paired with the window opposite. The document gives no shortest window, and its example has windows of
  two phones: with `min_phones` 2 or 1 shorter windows count too. They are never gold.
- P_all: windows of 3 to 20 phones inside one gap-free segment and one stretch of the fold that are equal and do not
  overlap (`discovery.counting.gold`).

Precision is NaN in a fold where nothing is paired, recall in a fold without gold pairs.

A pair of m and n phones has all windows of both members with up to min(m, n) phones. So flat(P_disc*) needs no pairs,
only each member's longest partner. The other set is found by pairs of distinct strings (`kernels.matching`).
tdev2 has no matching.

tde2015 weights types of strings by their pairs. A = P_sub, B = P_gold and their intersection I are sets of ordered
pairs of windows of a fold. For a type t of strings, n_X(t) is the number of pairs of X whose second member has type t,
and w_X(t) the share of the fragments of X that have type t:

    precision = sum over t of w_A(t) n_I(t) / n_A(t),  recall = sum over t of w_B(t) n_I(t) / n_B(t)

QUIRK: the measures document counts fragments, not pairs, in all of these, and then the sums telescope (see above).

- P_sub: two members of a class, in one fold, that are not `near`; the shorter string is aligned with the longer one at
  every offset without overhang, and each window of 3 to 19 phones is paired with the window opposite. QUIRK: windows of
  20 phones can be gold but are not paired here. The pairs of windows are not tested for overlap again.
- P_gold: equal windows of 3 to 20 phones inside one gap-free segment and one stretch of the fold that are not `near`.
- near: more than 30 ms or more than half of either are shared. QUIRK: whatever the files, in all sets of pairs.

Precision is NaN in a fold where nothing is paired, recall in a fold without gold pairs.

P_sub is kept as intervals on diagonals (`kernels.matching`). Of B, only the types of I and the number of fragments are
needed (`discovery.counting.gold`).

Coverage: the share of the corpus that fragments cover
------------------------------------------------------
document: |cover(P_disc) ∩ cover(P_all)| / |cover(P_all)| of the measures document of the Zero Resource challenge, in
phones. cover(P_disc) has the phones of fragments with a partner in their class and fold that they do not overlap (it is
in another file, or they share at most half of the shorter one); cover(P_all) those of the gold fragments
(`discovery.counting.gold`). Phones that are covered but not gold do not count, so that no coverage exceeds 1. The
document has |cover(P_disc)| in the numerator: `coverage = "union"` counts that, gold or not.

tdev2: the phones of all fragments over all phones, both without those labelled SIL or SPN. QUIRK: fragments that are
alone in their class count, and so do phones that are not gold.

tde2015 measures time: the length of the union of all fragments of the fold over the length of the union of the gold
fragments of the fold: those that occur twice in the whole corpus (`discovery.counting.gold`). QUIRK: covered time
need not be gold, so a coverage may exceed 1; fragments that are alone in their class count. QUIRK: time between two
fragments that nearly touch counts, in both (`kernels.placing.add_union`). QUIRK: a coverage of 0 is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.gold import LONGEST, gold, gold_cover, laid_out, windows
from swsdask.discovery.counting.pairs import ranges
from swsdask.discovery.counting.per_fold import (
    ByFiles,
    FileRange,
    Tile,
    completable,
    distinct_things,
    most_folds,
    rows_counted,
    rows_of,
    things_counted,
    tiles,
)
from swsdask.discovery.placing import folds_of
from swsdask.kernels.matching import U32, count_pairs, match_rows, maximal, number_starts, pair_up, tally_types
from swsdask.kernels.ngrams import SHORTEST, refine
from swsdask.kernels.pairs import have_partner
from swsdask.kernels.placing import add_union, mark_phones
from swsdask.model.columns import ratio, row_changes
from swsdask.model.discovery import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I16, I32, I64, Bool

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
        """Yield tiles of pairs of rows. A pair takes about as many steps as its first row has phones."""
        layout = laid_out(corpus, discovered, 0, len(discovered.classes))
        phones = np.diff(layout.entries.at)[layout.rows.begins[:-1]]
        pairs = layout.rows.high - np.arange(len(phones))
        return tiles(layout.cluster, pairs * phones, len(discovered.classes), work)

    @classmethod
    def from_cell(cls, cell: Tile, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the windows of some rows of some classes."""
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
        """Return the windows of both."""
        return type(self)(
            *_joined(
                np.concatenate([self.key, other.key]),
                np.concatenate([self.completed, other.completed]),
                np.concatenate([self.gold, other.gold]),
            )
        )

    def counts(self, corpus: Corpus, fold_set: int) -> tuple[I64, I64]:
        """Return |flat(P_disc*)| and |flat(P_disc* and P_all)| of each fold, int64 [n_folds]."""
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
    """P_sub of one system as intervals, none inside another: `key` int64, ascending, and `length` int32.

    The fold of `kernels.matching` is here fold set * most folds + fold.
    """

    n_phones: int
    key: I64
    length: I32

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Tile]:
        """Yield pairs of members."""
        members = completable(corpus, discovered, 0, len(discovered.classes))
        others = _group_ends(members.cluster, members.slot) - np.arange(len(members.cluster))
        return tiles(members.cluster, others, len(discovered.classes), work)

    @classmethod
    def from_cell(cls, cell: Tile, corpus: Corpus, discovered: Discovered) -> Self:
        """Pair some members of some classes with the later members."""
        members = completable(corpus, discovered, cell.low, cell.high)
        d, fragment, n_phones = discovered, members.fragment, len(corpus.phones)
        till = _group_ends(members.cluster, members.slot)
        places = d.first[fragment], d.last[fragment], d.start[fragment], d.end[fragment]
        key, length = pair_up(members.slot, till, *places, cell.first, cell.end, n_phones)
        order = np.argsort(key, kind="stable")
        return cls(n_phones, *maximal(key[order], length[order], key[:0], length[:0], n_phones))

    def merge(self, other: Self) -> Self:
        """Return the pairs of both."""
        return type(self)(self.n_phones, *maximal(self.key, self.length, other.key, other.length, self.n_phones))

    def in_slot(self, slot: int) -> Self:
        """Select the pairs of one fold of one set."""
        low, high = np.searchsorted(self.key, np.array([slot, slot + 1]) * self.n_phones**2)
        return type(self)(self.n_phones, self.key[low:high], self.length[low:high])


class FoldPairs(NamedTuple):
    """Counts of P_sub in one fold.

    `fragments`: the number of paired windows; `pairs`: the number of ordered pairs; `types` int64 [n_types, 5]: the
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
        found = statistic.in_slot(fold_set * most_folds(corpus) + number)
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
    """Return the row after the last of each row's group, int64."""
    first = np.flatnonzero(row_changes(cluster, slot))
    sizes = np.diff(first, append=len(cluster))
    return np.repeat(first + sizes, sizes)


_STEPS_PER_MEMBER = 32


class MemberRange(NamedTuple):
    """A cell: the members low:high, all those of some classes."""

    low: int
    high: int


@dataclass(frozen=True, eq=False)
class CoveredPhones:
    """The phones that are covered in the fold of `phones_to_cover`: packed bits, uint8 [n_fold_sets, n_phones / 8].

    `beyond` are phones that are covered in another fold (`per_fold.distinct_things`), if the reading counts them.
    """

    bits: NDArray[np.uint8]
    beyond: I64

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[MemberRange]:
        """Yield ranges of whole classes of about `work` steps or more, at least as many as the corpus has phones."""
        n_members = len(discovered.member_cluster)
        ends = np.append(np.flatnonzero(np.diff(discovered.member_cluster)) + 1, n_members)
        size = max(work, len(corpus.phones)) // _STEPS_PER_MEMBER + 1
        low, high = 0, -1
        while high < n_members:
            high = int(ends[np.searchsorted(ends, min(low + size, n_members))])
            yield MemberRange(low, high)
            low = high

    @classmethod
    def from_cell(cls, cell: MemberRange, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the phones that some classes cover."""
        members = slice(*cell)
        cluster, fragment = discovered.member_cluster[members], discovered.member_fragment[members]
        bits, beyond = [], [np.empty(0, np.int64)]
        for fold_set, to_cover in enumerate(phones_to_cover(corpus)):
            fold = discovered.fold[fold_set, fragment]
            counted = np.flatnonzero(fold != NO_FOLD)
            if corpus.definition == "document":
                counted = counted[np.lexsort((fold[counted], cluster[counted]))]
                counted = counted[_paired(cluster[counted], fold[counted], fragment[counted], discovered)]
            rows = fragment[counted]
            marked = np.zeros(len(corpus.phones), np.bool_)
            mark_phones(discovered.first[rows], discovered.last[rows], fold[counted], to_cover, marked)
            bits.append(np.packbits(marked))
            if corpus.readings.coverage == "union":
                sizes = discovered.last[rows] - discovered.first[rows]
                phone, own_fold = ranges(discovered.first[rows], sizes), np.repeat(fold[counted], sizes)
                other = to_cover[phone] != own_fold
                beyond.append(distinct_things(phone[other].astype(np.int32), own_fold[other], fold_set))
        return cls(np.array(bits), np.concatenate(beyond))

    def merge(self, other: Self) -> Self:
        """Return the phones that either part covers."""
        return type(self)(self.bits | other.bits, np.union1d(self.beyond, other.beyond))


class Coverage:
    """coverage (document, tdev2)."""

    names: ClassVar[tuple[str, ...]] = ("coverage",)
    statistic: ClassVar[type[CoveredPhones]] = CoveredPhones

    def values(self, statistic: CoveredPhones, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN where there is nothing to cover."""
        to_cover = phones_to_cover(corpus)[fold_set]
        covered = np.unpackbits(statistic.bits[fold_set], count=len(to_cover)).astype(np.bool_)
        n_folds = len(corpus.folds[fold_set].names)
        n_covered = rows_counted(to_cover[covered], n_folds) + things_counted(statistic.beyond, fold_set, corpus)
        return {"coverage": ratio(n_covered, rows_counted(to_cover, n_folds))}


@per_corpus
def phones_to_cover(corpus: Corpus) -> I16:
    """Return the fold in which each phone is to be covered, int16 [n_fold_sets, n_phones]; `NO_FOLD` if in none."""
    if corpus.definition == "document":
        return gold_cover(corpus)
    phones = corpus.phones
    fold = folds_of(phones.file, phones.start, phones.end, corpus.folds)
    fold[:, (corpus.silence | corpus.noise)[phones.label]] = NO_FOLD
    return fold


def _paired(cluster: I32, fold: I16, fragment: I64, discovered: Discovered) -> Bool:
    """Return whether each member is in a pair of P_disc; rows are sorted by (cluster, fold, fragment)."""
    groups = np.append(np.flatnonzero(row_changes(cluster, fold)), len(cluster))
    return have_partner(groups, discovered.file[fragment], discovered.start[fragment], discovered.end[fragment])


@dataclass(frozen=True, eq=False)
class CoveredTime(ByFiles):
    """Ticks that fragments cover, int64 [n_fold_sets, most folds of a set]."""

    ticks: I64

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the time that is covered in a range of files."""
        rows = rows_of(cell, discovered.file)
        ticks = np.zeros((len(corpus.folds), most_folds(corpus)), np.int64)
        for fold_set, fold in enumerate(discovered.fold[:, rows]):
            counted = np.flatnonzero(fold != NO_FOLD)
            order = counted[np.argsort(fold[counted], kind="stable")]
            own = order + rows.start
            add_union(fold[order], discovered.file[own], discovered.start[own], discovered.end[own], ticks[fold_set])
        return cls(ticks)

    def merge(self, other: Self) -> Self:
        """Return the time of both parts, which are of different files."""
        return type(self)(self.ticks + other.ticks)


class TimeCoverage:
    """coverage (tde2015)."""

    names: ClassVar[tuple[str, ...]] = ("coverage",)
    statistic: ClassVar[type[CoveredTime]] = CoveredTime

    def values(self, statistic: CoveredTime, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN where there is no gold, or nothing is covered."""
        n_folds = len(corpus.folds[fold_set].names)
        coverage = ratio(statistic.ticks[fold_set, :n_folds], gold_ticks(corpus)[fold_set, :n_folds])
        return {"coverage": np.where(coverage == 0, np.nan, coverage)}


@per_corpus
def gold_ticks(corpus: Corpus) -> I64:
    """Return ticks that gold fragments cover, int64 [n_fold_sets, most folds of a set].

    The phones of a fragment nearly touch, so the union of its phones is that of fragments, with the gaps between them.
    """
    phones = corpus.phones
    ticks = np.zeros((len(corpus.folds), most_folds(corpus)), np.int64)
    for fold, own in zip(gold_cover(corpus), ticks, strict=True):
        counted = np.flatnonzero(fold != NO_FOLD)
        order = counted[np.argsort(fold[counted], kind="stable")]
        add_union(fold[order], phones.file[order], phones.start[order], phones.end[order], own)
    return ticks
