"""The ladder: the number of trials between the scores at which a threshold can be best.

Between the scores of two hits lie only false alarms, so TWV as a function of the threshold can peak only at the score
of a hit. Hits are known from the first round; the second counts all trials between the rungs from their scores alone,
and a trial that is not a hit is a false alarm: no alignment and no sorting. The best threshold per query and rankings
per query need the ladder of each query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from swsdask.kernels.ladder import count_own_slots, count_slots, merge_order
from swsdask.model.columns import row_changes
from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.statistics.counts import Counts, class_layers, stretches, trial_groups
from swsdask.statistics.statistic import FirstRound, Found, Statistic


@dataclass(frozen=True, eq=False)
class Hits(FirstRound):
    """The multiset of one system's hits, whatever their decision.

    `score` (0.0 for -0.0), `query` and `group` are equally long and sorted by (score, query, group).
    """

    aligned: ClassVar[bool] = True

    score: F64
    query: I32
    group: I16

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: object) -> Self:
        """Return the hits of one aligned cell."""
        if trials.hit is None:
            raise ValueError("hits need aligned trials")
        return cls._of(trials, trials.hit)

    @classmethod
    def _of(cls, trials: Trials, rows: I64) -> Self:
        score, query, group = trials.score[rows] + 0.0, trials.query[rows], trial_groups(trials, rows)
        order = np.lexsort((group, query, score))
        return cls(score[order], query[order], group[order])

    def merge(self, other: Self) -> Self:
        """Return the rows of both parts together."""
        order = merge_order(self.score, self.query, self.group, other.score, other.query, other.group)
        return type(self)(
            np.concatenate([self.score, other.score])[order],
            np.concatenate([self.query, other.query])[order],
            np.concatenate([self.group, other.group])[order],
        )

    def drawn(self, times: I64) -> Self:
        """Return the hits of a resample, see `Drawable.drawn`."""
        row = np.repeat(np.arange(len(self)), times[self.group])
        return type(self)(self.score[row], self.query[row], np.zeros(len(row), np.int16))

    def __len__(self) -> int:
        return len(self.score)


class AllScores(Hits):
    """The multiset of one system's trials, hits and others, in the columns and the order of `Hits`.

    Made only if `Reference.every_score` is set: NIST's tools look scores up in the list of all scores.
    """

    aligned: ClassVar[bool] = False
    follows: ClassVar[tuple[str, ...]] = ("every_score",)

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()] | None:
        """None if the scores between those of hits need not be known."""
        return () if reference.every_score else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: object) -> Self:
        """Return the trials of one cell."""
        return cls._of(trials, np.arange(len(trials)))


def distinct_scores(scores: F64) -> F64:
    """Return the distinct scores, ascending. Scores that already ascend, like those of hits, are sorted quickly."""
    ordered = np.sort(scores, kind="stable")
    return ordered[row_changes(ordered)]


@dataclass(frozen=True, eq=False)
class ListedRungs:
    """The rungs of list i are rungs[offsets[i] : offsets[i + 1]]; offsets int64 [n_lists + 1]."""

    rungs: F64
    offsets: I64

    @classmethod
    def by_query(cls, query: I32 | I64, score: F64, n_queries: int) -> Self:
        """Return the distinct scores of every query, ascending."""
        order = np.argsort(score, kind="stable")
        narrow = query.astype(np.uint16 if n_queries <= 1 << 16 else np.int64)[order]  # NumPy sorts 16 bits by radix
        order = order[np.argsort(narrow, kind="stable")]
        new = row_changes(query[order], score[order])
        kept = order[new]
        return cls(score[kept], np.searchsorted(query[kept], np.arange(n_queries + 1)))

    @classmethod
    def of_all(cls, rungs: F64) -> Self:
        """Return the rungs of one list."""
        return cls(rungs, np.array([0, len(rungs)], np.int64))


@dataclass(frozen=True, eq=False)
class LadderPlan:
    """The rungs (see `Ladder`), and the layer of every class: int32 [n_classes]."""

    rungs: F64
    layer: I32
    n_layers: int


@dataclass(frozen=True, eq=False)
class Ladder:
    """Trials of one system between rungs, over all queries.

    `rungs` are ascending distinct scores, followed by inf: the scores of hits, `Reference.thresholds`, and the lowest
    and highest score in each condition. Slot r holds the trials with rungs[r - 1] <= score < rungs[r].
    `counts` [len(classes), n_rungs] has a row for every class of strata (`Reference.class_of`) with trials, `classes`
    int32, ascending; it is int32 if the number of trials, `n_trials`, fits into int32, else int64. `highest` float64
    [n_layers, n_rungs] is the highest score in a slot (-inf: none), for every layer of classes
    (`statistics.counts.class_layers`).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits)
    aligned: ClassVar[bool] = False

    rungs: F64
    classes: I32
    counts: I32 | I64
    highest: F64
    n_trials: int

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> LadderPlan:
        """Return the rungs of a system."""
        hits: Hits = found[Hits]
        counted = reference.class_of[hits.query, hits.group] >= 0
        ends = [score for score in _ends(found[Counts], reference) if np.isfinite(score)]
        finite = np.concatenate([hits.score[counted], np.asarray(reference.thresholds, np.float64), ends]) + 0.0
        layer, n_layers = class_layers(reference)
        return LadderPlan(np.append(distinct_scores(finite), np.inf), layer, n_layers)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: LadderPlan) -> Self:
        """Return the trials of one cell between the rungs."""
        parts = stretches(trials)
        class_of = reference.class_of[parts.query, parts.group]
        classes = np.unique(class_of[class_of >= 0])
        line = np.where(class_of < 0, -1, np.searchsorted(classes, class_of)).astype(np.int32)
        counts = np.zeros((len(classes), len(prepared.rungs)), np.int32)
        highest = np.full((prepared.n_layers, len(prepared.rungs)), -np.inf)
        count_slots(parts.bounds, line, prepared.layer[classes], parts.score, prepared.rungs, counts, highest)
        n_trials = int(np.diff(parts.bounds)[line >= 0].sum())
        return cls(prepared.rungs, classes, counts, highest + 0.0, n_trials)

    def merge(self, other: Self) -> Self:
        """Return the trials of both parts together."""
        n_trials = self.n_trials + other.n_trials
        number = np.int32 if n_trials <= np.iinfo(np.int32).max else np.int64
        classes = self.classes
        if np.array_equal(classes, other.classes):
            counts = np.add(self.counts, other.counts, dtype=number)
        else:
            classes = np.union1d(classes, other.classes)
            counts = np.zeros((len(classes), len(self.rungs)), number)
            for part in (self, other):
                counts[np.searchsorted(classes, part.classes)] += part.counts
        highest = np.maximum(self.highest, other.highest)
        return type(self)(self.rungs, classes, counts, highest, n_trials)


def _ends(counts: Counts, reference: Reference) -> Iterator[float]:
    """Yield the lowest and the highest score in each condition, infinite without trials."""
    for condition in reference.conditions:
        yield float(condition.select(counts.lowest).min(initial=np.inf))
        yield float(condition.select(counts.highest).max(initial=-np.inf))


@dataclass(frozen=True, eq=False)
class AtBayes(FirstRound):
    """The number of trials of one system with a score >= the Bayes threshold, -`Reference.prior_log_odds`.

    `counts` is int64 [n_queries, n_groups]. This threshold is no rung of a ladder, since ladders do not depend on the
    operating point.
    """

    aligned: ClassVar[bool] = False
    follows: ClassVar[tuple[str, ...]] = ("prior_log_odds",)

    counts: I64

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Return the trials of one cell."""
        counts = np.zeros(reference.targets.shape, np.int64)
        parts = stretches(trials)
        accepted = np.flatnonzero(parts.score >= -reference.prior_log_odds)
        np.add.at(counts, (parts.query, parts.group), np.diff(np.searchsorted(accepted, parts.bounds)))
        return cls(counts)

    def merge(self, other: Self) -> Self:
        """Return the trials of both parts together."""
        return type(self)(self.counts + other.counts)

    def drawn(self, times: I64) -> Self:
        """Return the trials of a resample, see `Drawable.drawn`."""
        return type(self)((self.counts @ times)[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class QueryLadder:
    """Trials of one system between rungs, query by query.

    The rungs of a query are ascending distinct scores, followed by inf: the scores of its hits, its highest score in
    each group of documents, and `Reference.thresholds`. Those of query q are rungs[offsets[q] : offsets[q + 1]], and
    `counts` int64 [len(rungs), n_groups] has in the same rows the number of its trials with a score >= the previous
    rung (if any) and < this one.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits)
    aligned: ClassVar[bool] = False

    rungs: F64
    offsets: I64
    counts: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> ListedRungs:
        """Return the rungs of every query of a system."""
        hits: Hits = found[Hits]
        highest: F64 = found[Counts].highest
        every_query = np.arange(reference.n_queries, dtype=np.int64)
        tops, _ = np.nonzero(np.isfinite(highest))
        everywhere = np.append(np.asarray(reference.thresholds, np.float64), np.inf)
        query = np.concatenate([hits.query.astype(np.int64), tops, np.repeat(every_query, len(everywhere))])
        score = np.concatenate([hits.score, highest[np.isfinite(highest)], np.tile(everywhere, reference.n_queries)])
        return ListedRungs.by_query(query, score, reference.n_queries)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: ListedRungs) -> Self:
        """Return the trials of one cell between the rungs of their queries."""
        rungs, offsets = prepared.rungs, prepared.offsets
        parts = stretches(trials)
        counts = np.zeros((len(rungs), reference.n_groups), np.int64)
        count_own_slots(parts.bounds, parts.query, parts.group, parts.score, offsets, rungs, counts)
        return cls(rungs, offsets, counts)

    def merge(self, other: Self) -> Self:
        """Return the trials of both parts together."""
        return type(self)(self.rungs, self.offsets, self.counts + other.counts)

    def drawn(self, times: I64) -> Self:
        """Return the trials of a resample, see `Drawable.drawn`."""
        return type(self)(self.rungs, self.offsets, (self.counts @ times)[:, np.newaxis])
