"""TWV at thresholds with weights of queries: given ones, the best of each query (OTWV), the best of all (MTWV).

That of MTWV is sought again with every vector of weights.

P_miss and P_fa (Eq. 4-5 of the 2013 measures document) become weighted averages: a query that is drawn k times counts
as k queries. So MTWV of a replicate is that of an evaluation in which the query occurs k times. Under
`compat = "kwseval"` rejecting everything is no threshold, of a replicate neither: its highest score is that of the
queries drawn. Under `compat = "mediaeval"` imputed trials of the queries drawn are accepted too, at the imputed score
of the replicate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.kernels.resampling import best_twv
from swsdask.measures.measure import Population, Scored, ratio
from swsdask.measures.resampling.drawn import SIDE_BY_SIDE, TrialPool, drawn_queries, places
from swsdask.measures.sweep import BAYES_NEEDS, QUERY_NEEDS, errors_at_bayes, query_sweep
from swsdask.measures.twv import Accepting, best_rows, highest_scores
from swsdask.model.samples import Averages, AveragesByHighest, Sample
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import Hits
from swsdask.statistics.resampling import StratumLadder
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, StratumLadder)
"""The statistics that thresholds are sought in."""

_BLOCKS = 64
"""Into how many blocks with about equally many hits the ladder is cut at most."""


@dataclass(frozen=True, eq=False)
class BestThreshold:
    """MTWV of one system in one condition, for any weights of its queries, which are in the order of their ids.

    `targets` and `nontargets` int64 [n_queries]. Equally long columns, in the order of descending scores: the `query`
    of a cell, its `hits` and `false_alarms`, all int32, and its `level` int64: the number of `rungs` above the highest
    threshold that accepts it.
    """

    targets: I64
    nontargets: I64
    beta: float
    reject_all: bool
    rungs: F64
    query: I32
    hits: I32
    false_alarms: I32
    level: I64

    @property
    def value(self) -> float:
        """MTWV."""
        return float(self.replicates(np.ones((len(self.targets), 1), np.int32))[0])

    def replicates(self, weights: I32) -> F64:
        """MTWV with the weights of each replicate, int32 [n_queries, n_replicates].

        NaN where no query with targets, or none with non-targets, was drawn.
        """
        values = np.full(weights.shape[1], np.nan)
        of_hits, hit_query, hits = self._hit_cells
        of_false_alarms, false_alarm_query, false_alarms = self._false_alarm_cells
        for begin in range(0, weights.shape[1], SIDE_BY_SIDE):
            own = weights[:, begin : begin + SIDE_BY_SIDE]
            n_target, n_nontarget = own[self.targets > 0].sum(axis=0), own[self.nontargets > 0].sum(axis=0)
            defined = np.flatnonzero((n_target > 0) & (n_nontarget > 0))
            drawn: F64 = np.ascontiguousarray(own[:, defined], np.float64)
            best = np.empty(len(defined))
            best_twv(
                drawn * _inverse(self.targets)[:, np.newaxis] / n_target[defined],
                drawn * (self.beta * _inverse(self.nontargets))[:, np.newaxis] / n_nontarget[defined],
                *self._above,
                self._bounds,
                of_hits,
                hit_query,
                hits,
                of_false_alarms,
                false_alarm_query,
                false_alarms,
                self._first(drawn),
                self.reject_all,
                best,
            )
            values[begin + defined] = best
        return values

    def with_trials(self, score: float, hits: I64, false_alarms: I64) -> BestThreshold:
        """Return a copy with more trials of each query, int64 [n_queries], all of one score.

        Nothing that is drawn lies between this score and the rung below it.
        """
        level = len(self.rungs) - int(np.searchsorted(self.rungs, score, side="right"))
        query = np.flatnonzero(hits + false_alarms).astype(np.int32)
        at = np.full(len(query), np.searchsorted(self.level, level, side="right"))
        return replace(
            self,
            query=np.insert(self.query, at, query),
            hits=np.insert(self.hits, at, hits[query]),
            false_alarms=np.insert(self.false_alarms, at, false_alarms[query]),
            level=np.insert(self.level, at, level),
        )

    @cached_property
    def _starts(self) -> I64:
        """The first cell of each level, a threshold and what lies between it and the one before; then their number."""
        new = np.diff(self.level, prepend=-1) > 0
        return np.append(np.flatnonzero(new), len(self.level))

    @cached_property
    def _hit_cells(self) -> tuple[I64, I32, F64]:
        return self._cells(self.hits)

    @cached_property
    def _false_alarm_cells(self) -> tuple[I64, I32, F64]:
        return self._cells(self.false_alarms)

    def _cells(self, counts: I32) -> tuple[I64, I32, F64]:
        """The cells with a count: where those of each level begin, their queries, and the counts."""
        there = np.flatnonzero(counts)
        return np.searchsorted(there, self._starts), self.query[there], counts[there].astype(np.float64)

    def _first(self, weights: F64) -> I64:
        """The first level at which a trial is accepted, of the queries drawn in each replicate; 0 if none need be."""
        if self.reject_all:
            return np.zeros(weights.shape[1], np.int64)
        query, cell = np.unique(self.query, return_index=True)
        n_levels = len(self._starts) - 1
        first = np.full((len(self.targets), 1), n_levels)
        first[query, 0] = np.searchsorted(self._starts, cell, side="right") - 1
        lowest: I64 = np.where(weights > 0, first, n_levels).min(axis=0, initial=n_levels)
        return lowest

    @cached_property
    def _bounds(self) -> I64:
        """Return the bounds of blocks, by level."""
        hits = np.append(0, np.cumsum(self.hits))[self._starts]
        steps = np.linspace(0, hits[-1], _BLOCKS + 1)[1:-1]
        return np.unique(np.concatenate([[0], np.searchsorted(hits, steps), [len(hits) - 1]]))

    @cached_property
    def _above(self) -> tuple[F64, F64]:
        """The hits and the false alarms of each query in front of each bound: float64 [n_bounds, n_queries]."""
        n_queries, n_blocks = len(self.targets), len(self._bounds) - 1
        block = np.repeat(np.arange(n_blocks), np.diff(self._starts[self._bounds]))
        sums = []
        for counts in (self.hits, self.false_alarms):
            inside = np.bincount(block * n_queries + self.query, counts, n_blocks * n_queries)
            below = np.cumsum(inside.reshape(n_blocks, n_queries), axis=0)
            sums.append(np.concatenate([np.zeros((1, n_queries)), below]))
        return sums[0], sums[1]


def _inverse(counts: I64) -> F64:
    return np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)


def best_threshold(scored: Scored, population: Population) -> BestThreshold:
    """MTWV of one condition."""
    reference = scored.reference
    ladder, hits = scored[StratumLadder], scored[Hits]
    chosen = drawn_queries(scored, population)
    place = places(chosen, reference.n_queries)
    groups, n_rungs = population.condition.groups, len(ladder.rungs)

    def keys(query: I64 | I32, group: I64, slot: I64, counts: I64) -> tuple[I64, I64]:
        """Cells of the condition by descending score, then query, in one number; and their counts."""
        inside = (place[query] >= 0) & groups[group]
        key = (n_rungs - slot[inside]) * len(chosen) + place[query[inside]]
        distinct, number = np.unique(key, return_inverse=True)
        return distinct, np.bincount(number, counts[inside], len(distinct)).astype(np.int64)

    stratum, slot = np.divmod(ladder.cells, n_rungs)
    cells, trials = keys(stratum // reference.n_groups, stratum % reference.n_groups, slot, ladder.counts)
    slot_of_hit = np.searchsorted(ladder.rungs, hits.score, side="right")
    hit_cells, n_hits = keys(hits.query, hits.group.astype(np.int64), slot_of_hit, np.ones(len(hits), np.int64))
    found = np.zeros(len(cells), np.int64)
    found[np.searchsorted(cells, hit_cells)] = n_hits
    return BestThreshold(
        targets=population.targets[chosen],
        nontargets=population.nontargets[chosen],
        beta=scored.weights.beta,
        reject_all=scored.settings.compat != "kwseval",
        rungs=ladder.rungs,
        query=(cells % max(len(chosen), 1)).astype(np.int32),
        hits=found.astype(np.int32),
        false_alarms=(trials - found).astype(np.int32),
        level=cells // max(len(chosen), 1),
    )


@dataclass(frozen=True, eq=False)
class BestThresholdOfAll:
    """MTWV of one system in one condition where imputed trials are accepted too."""

    given: BestThreshold
    pool: TrialPool

    @property
    def value(self) -> float:
        """MTWV."""
        return float(self.replicates(np.ones((len(self.pool.lowest), 1), np.int32))[0])

    def replicates(self, weights: I32) -> F64:
        """MTWV with the weights of each replicate."""
        values = np.empty(weights.shape[1])
        _, imputed_target, _, imputed_nontarget = self.pool.columns
        for chosen, trials in self.pool.replicates(weights):
            every = self.given.with_trials(trials.score, imputed_target, imputed_nontarget)
            values[chosen] = every.replicates(weights[:, chosen])
        return values


class ResampledMaximum:
    """mtwv."""

    names: ClassVar[tuple[str, ...]] = ("mtwv",)
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """The measure of one condition."""
        given = best_threshold(scored, population)
        if scored.settings.compat != "mediaeval":
            return {"mtwv": given}
        return {"mtwv": BestThresholdOfAll(given, TrialPool.of(scored, population, drawn_queries(scored, population)))}


class ResampledTwv:
    """twv_bayes, twv@THETA: averages over queries, whose error rates the scores by query do not have."""

    names: ClassVar[tuple[str, ...]] = ("twv_bayes", "twv@")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*NEEDS, *BAYES_NEEDS)))

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """The measures of one condition."""
        found: dict[str, Sample] = {"twv_bayes": _averages(scored, population, *errors_at_bayes(scored, population))}
        for theta in scored.settings.thresholds:
            found[f"twv@{theta!r}"] = _at_threshold(scored, population, theta)
        return found


def _at_threshold(scored: Scored, population: Population, threshold: float) -> Averages:
    ladder, hits, n_queries = scored[StratumLadder], scored[Hits], scored.reference.n_queries
    groups = population.condition.groups
    stratum, slot = np.divmod(ladder.cells, len(ladder.rungs))
    query, group = np.divmod(stratum, scored.reference.n_groups)
    above = groups[group] & (slot > np.searchsorted(ladder.rungs, threshold))
    hit = groups[hits.group] & (hits.score >= threshold)
    accepted = np.bincount(query[above], ladder.counts[above], n_queries).astype(np.int64)
    found = np.bincount(hits.query[hit], minlength=n_queries)
    return _averages(scored, population, population.targets - found, accepted - found)


class ResampledOptimum:
    """otwv: under compat=kwseval its error rates of a query may be missing among the numbers by query.

    There the queries that have the highest score of all that are drawn cannot reject everything (`measures.twv`).
    """

    names: ClassVar[tuple[str, ...]] = ("otwv",)
    needs: ClassVar[tuple[type[Statistic], ...]] = QUERY_NEEDS

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """The measure of one condition."""
        if scored.settings.compat != "kwseval":
            return {"otwv": _at_optima(scored, population, "none")}
        others, highest = (_at_optima(scored, population, accepting) for accepting in ("none", "every"))
        scores = highest_scores(scored, population)[drawn_queries(scored, population)]
        return {"otwv": AveragesByHighest(others, highest, scores)}


def _at_optima(scored: Scored, population: Population, accepting: Accepting) -> Averages:
    sweep, best = query_sweep(scored, population), best_rows(scored, population, accepting)
    return _averages(scored, population, population.targets - sweep.hits[best], sweep.false_alarms[best])


def _averages(scored: Scored, population: Population, misses: I64, false_alarms: I64) -> Averages:
    """TWV as averages over queries, from errors by query."""
    rates = ratio(misses, population.targets), ratio(false_alarms, population.nontargets)
    chosen = drawn_queries(scored, population)
    return Averages(1.0, (-1.0, -scored.weights.beta), np.array([column[chosen] for column in rates]))
