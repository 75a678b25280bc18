"""Coverage of tde2015: how much of the time in which something could be found was found something in.

The length of the union of all fragments of the fold over the length of the union of the gold fragments of the fold:
those that occur twice in the whole corpus (`gold.gold_cover`). QUIRK: what is covered need not be gold, so a coverage
may exceed 1; fragments that are alone in their class count. QUIRK: time between two fragments that nearly touch counts
(`kernels.cover.add_union`). QUIRK: a coverage of 0 counts as not defined (`folds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from swsdask.discovery.counting.by_file import FileRange, file_ranges, rows_of
from swsdask.discovery.counting.gold import gold_cover
from swsdask.discovery.counting.per_fold import most_folds, ratio
from swsdask.discovery.counting.remembered import per_corpus
from swsdask.kernels.cover import add_union
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I64


@dataclass(frozen=True, eq=False)
class CoveredTime:
    """Ticks that fragments cover, int64 [n_fold_sets, most folds of a set]."""

    ticks: I64

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
        """Ranges of files."""
        return file_ranges(corpus, discovered, work)

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
        """NaN where there is no gold."""
        n_folds = len(corpus.folds[fold_set].names)
        return {"coverage": ratio(statistic.ticks[fold_set, :n_folds], gold_ticks(corpus)[fold_set, :n_folds])}


@per_corpus
def gold_ticks(corpus: Corpus) -> I64:
    """Ticks that gold fragments cover, int64 [n_fold_sets, most folds of a set]."""
    duration = corpus.phones.end - corpus.phones.start
    ticks = np.zeros((len(corpus.folds), most_folds(corpus)), np.int64)
    for fold, own in zip(gold_cover(corpus), ticks, strict=True):
        covered = fold != NO_FOLD
        np.add.at(own, fold[covered], duration[covered])
    return ticks
