"""Coverage: the share of the corpus that fragments cover.

document: |cover(P_disc) ∩ cover(P_all)| / |cover(P_all)| of the measures document of the Zero Resource challenge, in
phones: those of the fragments that have in their class and fold another that they do not overlap (it is of another
file, or they share at most half of the shorter one), over those of the gold fragments (`gold.gold_cover`). Phones
that are covered but not gold do not count, so that no coverage exceeds 1. The document has |cover(P_disc)| in the
numerator: `coverage = "union"` counts that, gold or not.

tdev2: the phones of all fragments over all phones, both without those labelled SIL or SPN. QUIRK: fragments that are
alone in their class count, and so do phones that are not gold.

tde2015 measures time: the length of the union of all fragments of the fold over the length of the union of the gold
fragments of the fold: those that occur twice in the whole corpus (`gold.gold_cover`). QUIRK: what is covered need not
be gold, so a coverage may exceed 1; fragments that are alone in their class count. QUIRK: time between two fragments
that nearly touch counts (`kernels.placing.add_union`). QUIRK: a coverage of 0 is not defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.gold import gold_cover
from swsdask.discovery.counting.pairs import ranges
from swsdask.discovery.counting.per_fold import (
    ByFiles,
    FileRange,
    distinct_things,
    most_folds,
    ratio,
    rows_counted,
    rows_of,
    things_counted,
)
from swsdask.discovery.placing import folds_of
from swsdask.kernels.pairs import have_partner
from swsdask.kernels.placing import add_union, mark_phones
from swsdask.model.discovery import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I16, I32, I64, Bool

_STEPS_PER_MEMBER = 32


class MemberRange(NamedTuple):
    """A cell: the members low:high, all those of some classes."""

    low: int
    high: int


@dataclass(frozen=True, eq=False)
class CoveredPhones:
    """Which phones are covered in the fold where they are to be: packed bits, uint8 [n_fold_sets, n_phones / 8].

    `beyond` are those that are covered in a fold where they are not to be (`per_fold.distinct_things`), if they count.
    """

    bits: NDArray[np.uint8]
    beyond: I64

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[MemberRange]:
        """Ranges of classes of about `work` steps (no fewer than there are phones to mark) and up to one class more."""
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
        """The phones that some classes cover."""
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
                phone, of = ranges(discovered.first[rows], sizes), np.repeat(fold[counted], sizes)
                other = to_cover[phone] != of
                beyond.append(distinct_things(phone[other].astype(np.int32), of[other], fold_set))
        return cls(np.array(bits), np.concatenate(beyond))

    def merge(self, other: Self) -> Self:
        """The phones that either part covers."""
        return type(self)(self.bits | other.bits, np.union1d(self.beyond, other.beyond))


class Coverage:
    """coverage (document, tdev2)."""

    names: ClassVar[tuple[str, ...]] = ("coverage",)
    statistic: ClassVar[type[CoveredPhones]] = CoveredPhones

    def values(self, statistic: CoveredPhones, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """NaN where there is nothing to cover."""
        to_cover = phones_to_cover(corpus)[fold_set]
        covered = np.unpackbits(statistic.bits[fold_set], count=len(to_cover)).astype(np.bool_)
        n_folds = len(corpus.folds[fold_set].names)
        n_covered = rows_counted(to_cover[covered], n_folds) + things_counted(statistic.beyond, fold_set, corpus)
        return {"coverage": ratio(n_covered, rows_counted(to_cover, n_folds))}


@per_corpus
def phones_to_cover(corpus: Corpus) -> I16:
    """The fold in which each phone is to be covered, int16 [n_fold_sets, n_phones]; `NO_FOLD` where in none."""
    if corpus.definition == "document":
        return gold_cover(corpus)
    phones = corpus.phones
    fold = folds_of(phones.file, phones.start, phones.end, corpus.folds)
    fold[:, (corpus.silence | corpus.noise)[phones.label]] = NO_FOLD
    return fold


def _paired(cluster: I32, fold: I16, fragment: I64, discovered: Discovered) -> Bool:
    """Whether each member is in P_disc; rows by (cluster, fold, fragment)."""
    begins = np.ones(len(cluster), np.bool_)
    begins[1:] = (cluster[1:] != cluster[:-1]) | (fold[1:] != fold[:-1])
    groups = np.append(np.flatnonzero(begins), len(cluster))
    return have_partner(groups, discovered.file[fragment], discovered.start[fragment], discovered.end[fragment])


@dataclass(frozen=True, eq=False)
class CoveredTime(ByFiles):
    """Ticks that fragments cover, int64 [n_fold_sets, most folds of a set]."""

    ticks: I64

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """The time that is covered in a range of files."""
        rows = rows_of(cell, discovered.file)
        ticks = np.zeros((len(corpus.folds), most_folds(corpus)), np.int64)
        for fold_set, fold in enumerate(discovered.fold[:, rows]):
            counted = np.flatnonzero(fold != NO_FOLD)
            order = counted[np.argsort(fold[counted], kind="stable")]
            own = order + rows.start
            add_union(fold[order], discovered.file[own], discovered.start[own], discovered.end[own], ticks[fold_set])
        return cls(ticks)

    def merge(self, other: Self) -> Self:
        """The time of both parts, which are of different files."""
        return type(self)(self.ticks + other.ticks)


class TimeCoverage:
    """coverage (tde2015)."""

    names: ClassVar[tuple[str, ...]] = ("coverage",)
    statistic: ClassVar[type[CoveredTime]] = CoveredTime

    def values(self, statistic: CoveredTime, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """NaN where there is no gold, or nothing is covered."""
        n_folds = len(corpus.folds[fold_set].names)
        coverage = ratio(statistic.ticks[fold_set, :n_folds], gold_ticks(corpus)[fold_set, :n_folds])
        return {"coverage": np.where(coverage == 0, np.nan, coverage)}


@per_corpus
def gold_ticks(corpus: Corpus) -> I64:
    """Ticks that gold fragments cover, int64 [n_fold_sets, most folds of a set]."""
    duration = corpus.phones.end - corpus.phones.start
    ticks = np.zeros((len(corpus.folds), most_folds(corpus)), np.int64)
    for fold, own in zip(gold_cover(corpus), ticks, strict=True):
        covered = fold != NO_FOLD
        np.add.at(own, fold[covered], duration[covered])
    return ticks
