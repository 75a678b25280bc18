"""OTWV: the TWV of the best threshold for every query (NIST's optimum TWV).

For each query the TWV of that query alone is maximised over all scores of the system and over rejecting everything
(0); it can peak only at the score of one of the query's own hits. Of equal values, decided in exact arithmetic, the
lowest threshold counts. `otwv_p_miss` and `otwv_p_fa` are averages (Eq. 4-5) at these thresholds, `otwv` is their TWV
(Eq. 6). Per query also `otwv_threshold`, the smallest accepted score of the query, inf where rejecting everything is
best.

QUIRK, under `compat = "kwseval"`: KWSEval cannot reject everything. Of other queries' higher scores one will do, so it
only shows in the query that has the highest score of all: there that score is looked at instead, even if only false
alarms have it. Without trials nothing is defined. (With queries without targets, KWSEval's OTWV depends on the order of
a hash table; ours does not.)

QUIRK, under `compat = "kwseval"`: `otwv_threshold` of a query is KWSEval's. Its sweep stops at the lowest score of the
whole condition, t, that gives the query's optimum; then it looks up scores of the query: m, the lowest accepted hit,
and f, the non-target with a number in ascending order, from 0, that is the count of accepted false alarms. Both may be
missing. The threshold is the lower of m and f where both are above t, else the highest of m, f and t. Where both are
missing and t is below 0, the optimum of the query is not defined; averages over queries are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from swsdask.kernels.ladder import find_own_rungs
from swsdask.measures.averages import Population, Values, ratio
from swsdask.measures.measure import Scored, kept
from swsdask.measures.rates import has_trials, undefined_without
from swsdask.measures.sweep import QUERY_NEEDS, query_sweep, twv
from swsdask.model.trials import F64, I32, I64, Bool
from swsdask.statistics.counts import Counts, members
from swsdask.statistics.ladder import AllScores, Hits
from swsdask.statistics.statistic import Statistic

_HAIR = 1e-9


class OptimumTwv:
    """otwv, its error rates, and per query its threshold."""

    names: ClassVar[tuple[str, ...]] = ("otwv", "otwv_p_miss", "otwv_p_fa", "otwv_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = (*QUERY_NEEDS, AllScores)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall; per query with the threshold."""
        beta = scored.weights.beta
        reject_all = scored.settings.compat != "kwseval"
        for population in scored.populations:
            sweep = query_sweep(scored, population)
            best = best_rows(scored, population, "none" if reject_all else "highest")
            misses, false_alarms = population.targets - sweep.hits[best], sweep.false_alarms[best]
            p_miss, p_fa = population.rates_of(misses, false_alarms)
            defined = undefined_without(reject_all or has_trials(scored, population))
            numbers = {"otwv": twv(p_miss, p_fa, beta), "otwv_p_miss": p_miss, "otwv_p_fa": p_fa}
            yield population.overall({name: value * defined for name, value in numbers.items()})
            thresholds = sweep.thresholds[best] if reject_all else _looked_up(scored, population, best)
            p_miss_of = ratio(misses, population.targets)
            p_fa_of = ratio(false_alarms, population.nontargets)
            columns = {
                "otwv": twv(p_miss_of, p_fa_of, beta),
                "otwv_p_miss": p_miss_of,
                "otwv_p_fa": p_fa_of,
                "otwv_threshold": thresholds,
            }
            defined_of = np.where(np.isnan(thresholds), np.nan, defined)
            yield population.by_query({name: column * defined_of for name, column in columns.items()})


Accepting = Literal["none", "highest", "every"]
"""The queries that accept at least their highest score: those that have the highest of the condition, or every one."""


@kept
def highest_scores(scored: Scored, population: Population) -> F64:
    """The highest score of every query that averages count: float64 [n_queries], -inf where there is none."""
    highest: F64 = scored[Counts].highest[:, population.condition.groups].max(axis=1, initial=-np.inf)
    return np.where(population.queries, highest, -np.inf)


@kept
def best_rows(scored: Scored, population: Population, accepting: Accepting) -> I64:
    """The row of every query's sweep with the least loss P_miss(q) + beta P_fa(q), the first of equal ones.

    Only the scores of hits are looked at, for only there the TWV of a query alone can peak, and rejecting everything;
    in its place, for queries that are `accepting`, their highest score. Without targets misses weigh nothing, without
    non-targets false alarms do not.
    """
    sweep, point = query_sweep(scored, population), scored.weights
    candidates = sweep.new_hits > 0
    candidates[sweep.offsets[1:] - 1] = True
    if accepting != "none":
        highest = highest_scores(scored, population)
        least_highest = highest.max(initial=-np.inf) if accepting == "highest" else -np.inf
        for accepts in np.flatnonzero(np.isfinite(highest) & (highest >= least_highest)).tolist():
            own = sweep.rows(accepts)
            candidates[own.stop - 1] = False
            candidates[own.start + int(np.searchsorted(sweep.thresholds[own], highest[accepts]))] = True
    begin, query = sweep.offsets[:-1], sweep.query
    targets, nontargets = np.maximum(population.targets, 0), np.maximum(population.nontargets, 0)
    misses = population.targets[query] - sweep.hits
    loss = _weighed(misses, targets[query], 1.0) + _weighed(sweep.false_alarms, nontargets[query], point.beta)
    loss[~candidates] = np.inf
    least = np.minimum.reduceat(loss, begin)[query]
    near = loss <= least + _HAIR * (1.0 + least)
    rows = np.flatnonzero(near)
    first = np.searchsorted(rows, begin)
    best: I64 = rows[first]
    last = np.searchsorted(rows, sweep.offsets[1:])
    beta = point.exact_beta
    for q in np.flatnonzero(last - first > 1).tolist():
        tied = rows[first[q] : last[q]]
        miss, alarm = int(nontargets[q]) * beta.denominator, int(targets[q]) * beta.numerator
        if targets[q] == 0 or nontargets[q] == 0:
            miss, alarm = int(targets[q] > 0), int(nontargets[q] > 0)
        counts = zip(misses[tied].tolist(), sweep.false_alarms[tied].tolist(), strict=True)
        losses = [n_miss * miss + n_fa * alarm for n_miss, n_fa in counts]
        best[q] = tied[losses.index(min(losses))]
    return best


def _looked_up(scored: Scored, population: Population, best: I64) -> F64:
    """The thresholds that KWSEval prints for the optimum of queries, NaN for those that averages leave out."""
    sweep = query_sweep(scored, population)
    strata = members(population.condition) & population.queries[:, np.newaxis]
    every, hits = (_by_query(scored[kind], strata) for kind in (AllScores, Hits))
    nontargets = every.without(hits)
    ascending = np.sort(every.score)
    n_hits, n_false_alarms = sweep.hits[best], sweep.false_alarms[best]
    rejected = every.at(every.counts - n_hits - n_false_alarms - 1)
    lowest = np.append(ascending, np.nan)[np.searchsorted(ascending, np.nan_to_num(rejected, nan=-np.inf), "right")]
    hit, nontarget = hits.at(hits.counts - n_hits), nontargets.at(n_false_alarms)
    found = np.fmax(hit, nontarget)
    highest = np.where(np.isnan(found) & (lowest < 0), np.nan, np.fmax(found, lowest))
    return np.where((hit > lowest) & (nontarget > lowest), np.minimum(hit, nontarget), highest)


@dataclass(frozen=True, eq=False)
class _OwnScores:
    """The scores of every query, ascending: those of query q are score[offsets[q] : offsets[q + 1]]."""

    score: F64
    query: I32
    offsets: I64

    @property
    def counts(self) -> I64:
        """Return the number of scores of each query."""
        return np.diff(self.offsets)

    def at(self, number: I64) -> F64:
        """The score of every query with a number, from 0; NaN where there is none."""
        inside = (number >= 0) & (number < self.counts)
        found = np.full(len(number), np.nan)
        found[inside] = self.score[self.offsets[:-1][inside] + number[inside]]
        return found

    def without(self, some: _OwnScores) -> _OwnScores:
        """Return the scores that remain without some of them."""
        first = find_own_rungs(some.query, some.score, self.offsets, self.score)
        again = np.arange(len(first)) - np.searchsorted(first, first)
        left = np.ones(len(self.score), np.bool_)
        left[first + again] = False
        offsets = np.append(0, np.cumsum(left))[self.offsets]
        return _OwnScores(self.score[left], self.query[left], offsets)


def _by_query(scores: Hits, strata: Bool) -> _OwnScores:
    """Those of some scores that are in some strata, by query."""
    inside = np.flatnonzero(strata[scores.query, scores.group])
    rows = inside[np.argsort(scores.query[inside], kind="stable")]
    query = scores.query[rows]
    return _OwnScores(scores.score[rows], query, np.searchsorted(query, np.arange(len(strata) + 1)))


def _weighed(counts: I64, totals: I64, weight: float) -> F64:
    return weight * np.divide(counts, totals, out=np.zeros(len(counts)), where=totals > 0)
