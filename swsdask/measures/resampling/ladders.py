"""Measures along the ladder of hits with weights of queries: TWV at thresholds, and AP of the ranking of all trials.

TWV at given thresholds, at the best threshold of each query (OTWV), and at the best of all (MTWV), which is searched
again with every vector of weights. P_miss and P_fa (Eq. 4-5 of the 2013 measures document) become weighted averages: a
query that is drawn k times counts as k queries. So MTWV of a replicate is that of an evaluation in which the query
occurs k times. Under `compat = "kwseval"` a replicate cannot reject everything either: its highest score is that of the
drawn queries. Under `compat = "mediaeval"` imputed trials of the drawn queries are accepted too, at the imputed score
of the replicate.

In a ranking of all trials, a trial of a query that is drawn k times is k equal trials; if a rule orders equal scores,
these k trials follow each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.kernels.resampling import best_twv, precision_areas
from swsdask.measures.average_precision import expected_area
from swsdask.measures.measure import Population, Scored
from swsdask.measures.rankings import Rankings, ranked_hits, rankings_of
from swsdask.measures.rates import BAYES_NEEDS, errors_at_bayes
from swsdask.measures.resampling.drawn import SIDE_BY_SIDE, TrialPool, drawn_queries, places
from swsdask.measures.sweep import QUERY_NEEDS, query_sweep
from swsdask.measures.twv import Accepting, best_rows, highest_scores
from swsdask.model.columns import ratio
from swsdask.model.ranked_measures import AveragePrecisionSettings
from swsdask.model.samples import Averages, AveragesByHighest, Sample, drawn_of, unweighted
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import Hits
from swsdask.statistics.ranks import EventHits, HitPlaces, TieKeys, ranked
from swsdask.statistics.resampling import EventStratumRanks, StratumLadder, StratumRanks, StratumTies
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, StratumLadder)
"""The statistics that thresholds are searched in."""


@dataclass(frozen=True, eq=False)
class BestThreshold:
    """MTWV of one system in one condition, for any weights of its queries, in the order of their ids.

    `targets` and `nontargets` are int64 [n_queries]. Equally long columns, by descending score: the `query` of a cell,
    its `hits` and `false_alarms`, all int32, and its `level` int64: the number of `rungs` above the highest threshold
    that accepts the cell.
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
        return unweighted(self, len(self.targets))

    def replicates(self, weights: I32) -> F64:
        """Return MTWV with the weights of each replicate, int32 [n_queries, n_replicates].

        NaN if no query with targets, or no query with non-targets, was drawn.
        """
        n_target, n_nontarget = (drawn_of(weights, counts > 0) for counts in (self.targets, self.nontargets))
        defined = (n_target > 0) & (n_nontarget > 0)
        own = weights if defined.all() else weights[:, defined]
        of_targets, of_nontargets = n_target[defined], n_nontarget[defined]
        per_hit, per_false_alarm = _inverse(self.targets), self.beta * _inverse(self.nontargets)
        of_hits, hit_query, hits = self._hit_cells
        of_false_alarms, false_alarm_query, false_alarms = self._false_alarm_cells
        best = np.empty(len(of_targets))
        for begin in range(0, len(best), SIDE_BY_SIDE):
            side = slice(begin, begin + SIDE_BY_SIDE)
            drawn: F64 = np.ascontiguousarray(own[:, side], np.float64)
            best_twv(
                drawn,
                per_hit,
                per_false_alarm,
                of_targets[side],
                of_nontargets[side],
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
                best[side],
            )
        values = np.full(weights.shape[1], np.nan)
        values[defined] = best
        return values

    def with_trials(self, score: float, hits: I64, false_alarms: I64) -> BestThreshold:
        """Return a copy with more trials of each query, int64 [n_queries], all of one score.

        No drawn trial lies between this score and the rung below it.
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
        """The first cell of each level, the scores from one threshold to the next; last, the number of cells."""
        new = np.diff(self.level, prepend=-1) > 0
        return np.append(np.flatnonzero(new), len(self.level))

    @cached_property
    def _hit_cells(self) -> tuple[I64, I32, F64]:
        return self._cells(self.hits)

    @cached_property
    def _false_alarm_cells(self) -> tuple[I64, I32, F64]:
        return self._cells(self.false_alarms)

    def _cells(self, counts: I32) -> tuple[I64, I32, F64]:
        """Return the cells with a count: where those of each level begin, their queries, and the counts."""
        there = np.flatnonzero(counts)
        return np.searchsorted(there, self._starts), self.query[there], counts[there].astype(np.float64)

    def _first(self, weights: F64) -> I64:
        """Return the first level at which a trial of the drawn queries is accepted, by replicate.

        It is 0 if all may be rejected.
        """
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
        """The bounds of blocks with about equally many hits, by level.

        A bound costs a sum over queries, a block that is examined a sum over its cells: their numbers are balanced.
        """
        hits = np.append(0, np.cumsum(self.hits))[self._starts]
        n_blocks = 1 + math.isqrt(len(self.query) // max(len(self.targets), 1))
        steps = np.linspace(0, hits[-1], n_blocks + 1)[1:-1]
        return np.unique(np.concatenate([[0], np.searchsorted(hits, steps), [len(hits) - 1]]))

    @cached_property
    def _above(self) -> tuple[F64, F64]:
        """The hits and the false alarms of each query before each bound: float64 [n_bounds, n_queries]."""
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


def best_threshold_sample(scored: Scored, population: Population) -> BestThreshold:
    """Return MTWV of one condition."""
    reference = scored.reference
    ladder, hits = scored[StratumLadder], scored[Hits]
    chosen = drawn_queries(scored, population)
    place = places(chosen, reference.n_queries)
    groups, n_rungs = population.condition.groups, len(ladder.rungs)

    def keys(query: I64 | I32, group: I64, slot: I64, counts: I64) -> tuple[I64, I64]:
        """Return keys of the condition's cells, which order them by descending score, then query; and their counts."""
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
    """MTWV of one system in one condition if imputed trials are accepted too."""

    given: BestThreshold
    pool: TrialPool

    @property
    def value(self) -> float:
        """MTWV."""
        return unweighted(self, len(self.pool.lowest))

    def replicates(self, weights: I32) -> F64:
        """Return MTWV with the weights of each replicate."""
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
        """Return the measure of one condition."""
        given = best_threshold_sample(scored, population)
        if scored.settings.compat != "mediaeval":
            return {"mtwv": given}
        return {"mtwv": BestThresholdOfAll(given, TrialPool.of(scored, population, drawn_queries(scored, population)))}


class ResampledTwv:
    """twv_bayes, twv@THETA: averages over queries; their error rates are not among the numbers by query."""

    names: ClassVar[tuple[str, ...]] = ("twv_bayes", "twv@")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*NEEDS, *BAYES_NEEDS)))

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return the measures of one condition."""
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

    There the queries with the highest score of all drawn queries cannot reject everything (`measures.twv`).
    """

    names: ClassVar[tuple[str, ...]] = ("otwv",)
    needs: ClassVar[tuple[type[Statistic], ...]] = QUERY_NEEDS

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return the measure of one condition."""
        if scored.settings.compat != "kwseval":
            return {"otwv": _at_optima(scored, population, "none")}
        others, highest = (_at_optima(scored, population, accepting) for accepting in ("none", "every"))
        scores = highest_scores(scored, population)[drawn_queries(scored, population)]
        return {"otwv": AveragesByHighest(others, highest, scores)}


def _at_optima(scored: Scored, population: Population, accepting: Accepting) -> Averages:
    sweep, best = query_sweep(scored, population), best_rows(scored, population, accepting)
    return _averages(scored, population, population.targets - sweep.hits[best], sweep.false_alarms[best])


def _averages(scored: Scored, population: Population, misses: I64, false_alarms: I64) -> Averages:
    """Return TWV as averages over queries, from errors by query."""
    rates = ratio(misses, population.targets), ratio(false_alarms, population.nontargets)
    chosen = drawn_queries(scored, population)
    return Averages(1.0, (-1.0, -scored.weights.beta), np.array([column[chosen] for column in rates]))


LadderCells = tuple[I64, I32, F64]
"""The first cell of each rung, then the queries and the counts of cells."""


@dataclass(frozen=True, eq=False)
class PooledPrecision:
    """AP of one system in one condition, for any weights of its queries.

    Rungs are the distinct scores of hits, ascending; if a rule orders equal scores, the distinct places of hits, from
    the last of the ranking to the first. `hits`, the false alarms `tied` with a rung (with an order: behind it, up to
    the next score), and those `between` it and the next rung are cells; `targets` are by query.
    """

    options: AveragePrecisionSettings
    targets: I64
    hits: LadderCells
    tied: LadderCells
    between: LadderCells

    @property
    def value(self) -> float:
        """The measure."""
        return unweighted(self, len(self.targets))

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate; NaN without targets."""
        areas = np.empty(weights.shape[1])
        for begin in range(0, len(areas), SIDE_BY_SIDE):
            own = np.ascontiguousarray(weights[:, begin : begin + SIDE_BY_SIDE], np.float64)
            areas[begin : begin + SIDE_BY_SIDE] = self._areas(own)
        return ratio(areas, self.targets @ weights)

    def _areas(self, weights: F64) -> F64:
        options = self.options
        areas = np.empty(weights.shape[1])
        if options.ties == "expected":
            for number in range(len(areas)):
                areas[number] = expected_area(self._ranking(weights[:, number]), 0, options)
            return areas
        precision_areas(
            weights,
            self._every,
            *self.hits,
            *self.tied,
            *self.between,
            options.ties == "group",
            options.ties == "worst",
            options.interpolation == "max",
            options.integration == "trapezoid",
            areas,
        )
        return areas

    @cached_property
    def _every(self) -> F64:
        """The hits and the false alarms of each query."""
        n = len(self.targets)
        parts = [
            np.bincount(query, count, n).astype(np.float64) for _, query, count in (self.hits, self.tied, self.between)
        ]
        return np.array([parts[0], parts[1] + parts[2]])

    def _ranking(self, weights: F64) -> Rankings:
        """Return the ranking of one replicate."""
        new, tied, between = (
            np.diff(np.append(0, np.cumsum((count * weights[query]).astype(np.int64)))[offsets])
            for offsets, query, count in (self.hits, self.tied, self.between)
        )
        at_rungs = new + tied
        return rankings_of(
            offsets=np.array([0, len(new) + 1]),
            counts=np.append(0, at_rungs + between),
            tied=np.append(at_rungs, 0),
            new=np.append(new, 0),
            tied_in_front=None,
            relevant=np.array([self.targets @ weights.astype(np.int64)]),
        )


class ResampledPooledPrecision:
    """ap."""

    names: ClassVar[tuple[str, ...]] = ("ap",)
    needs: ClassVar[tuple[type[Statistic], ...]] = (
        Hits,
        StratumRanks,
        EventHits,
        EventStratumRanks,
        HitPlaces,
        StratumTies,
    )

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return the measure of one condition."""
        reference, ties = scored.reference, scored.get(StratumTies)
        ranks: StratumRanks = scored[EventStratumRanks] if EventHits in scored else scored[StratumRanks]
        hits: Hits | HitPlaces = ranked_hits(scored) if ties is None else scored[HitPlaces]
        queries, groups = drawn_queries(scored, population), population.condition.groups
        place = places(queries, reference.n_queries)
        inside = (place[hits.query] >= 0) & groups[hits.group]
        score, query_of_hit = hits.score[inside], place[hits.query[inside]]
        if isinstance(hits, Hits):  # places already have the scores that rank
            score = ranked(score, reference.ranking)
        scores, tie_of_hit = np.unique(score, return_inverse=True)

        def by_query(cells: I64, counts: I64, n_slots: int) -> tuple[I64, I64, I64]:
            """Return slots, queries and counts of the cells of the condition."""
            stratum, slot = np.divmod(cells, n_slots)
            query, group = np.divmod(stratum, reference.n_groups)
            there = (place[query] >= 0) & groups[group]
            return slot[there], place[query[there]], counts[there]

        at = np.searchsorted(ranks.rungs, scores, side="right")
        slot, query, count = by_query(ranks.cells, ranks.counts, len(ranks.rungs))
        tie = np.searchsorted(at, slot, side="right") - 1
        slot, query, count, tie = (column[tie >= 0] for column in (slot, query, count, tie))
        equal = at[tie] == slot
        bounds, rung_of_hit = np.arange(len(scores) + 1), tie_of_hit
        query_in_front = rung_in_front = tie_in_front = n_in_front = np.empty(0, np.int64)
        if ties is not None:
            bounds, rung_of_key = _rungs(ties.keys, scores)
            key_of_hit = ties.keys.pooled_keys(score, scored[HitPlaces].place[inside], hits.query[inside])
            rung_of_hit = rung_of_key[key_of_hit]
            key, query_in_front, n_in_front = by_query(ties.cells, ties.counts, len(ties.keys.pooled))
            rung_in_front = rung_of_key[key]
            there = rung_in_front >= 0
            query_in_front, rung_in_front, n_in_front = (
                column[there] for column in (query_in_front, rung_in_front, n_in_front)
            )
            tie_in_front = np.searchsorted(bounds, rung_in_front, side="right") - 1
        once = np.ones(len(score), np.int64)
        n_rungs, n_queries = int(bounds[-1]), len(queries)
        found = PooledPrecision(
            options=scored.settings.average_precision,
            targets=population.targets[queries],
            hits=_cells(rung_of_hit, query_of_hit, once, n_rungs, n_queries),
            tied=_cells(
                bounds[np.concatenate([tie[equal], tie_of_hit, tie_in_front])],
                np.concatenate([query[equal], query_of_hit, query_in_front]),
                np.concatenate([count[equal], -once, -n_in_front]),
                n_rungs,
                n_queries,
            ),
            between=_cells(
                np.concatenate([bounds[tie[~equal] + 1] - 1, rung_in_front]),
                np.concatenate([query[~equal], query_in_front]),
                np.concatenate([count[~equal], n_in_front]),
                n_rungs,
                n_queries,
            ),
        )
        return {"ap": found}


def _rungs(keys: TieKeys, scores: F64) -> tuple[I64, I64]:
    """Return the first rung of each score, then the number of rungs; and the rung of each key, -1 for other scores."""
    score = keys.scores[keys.tie_of_pooled]
    kept = np.flatnonzero(np.isin(score, scores))
    tie = np.searchsorted(scores, score[kept])
    bounds = np.searchsorted(tie, np.arange(len(scores) + 1))
    rung = np.full(len(score), -1)
    rung[kept] = bounds[tie] + bounds[tie + 1] - 1 - np.arange(len(kept))
    return bounds, rung


def _cells(rung: I64, query: I64, count: I64, n_rungs: int, n_queries: int) -> LadderCells:
    """Return the cells with a count: rows of columns with equal rung and query are added."""
    key, number = np.unique(rung * n_queries + query, return_inverse=True)
    sums = np.bincount(number, count, len(key))
    there = sums > 0
    rungs, queries = np.divmod(key[there], max(n_queries, 1))
    return np.searchsorted(rungs, np.arange(n_rungs + 1)), queries.astype(np.int32), sums[there].astype(np.float64)
