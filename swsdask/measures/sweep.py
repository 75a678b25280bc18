"""Sweeps of a threshold: over all queries, with imputed trials, and query by query.

A trial is accepted iff its score >= the threshold, so equal scores enter together, and targets that no detection is
mapped to are missed at every threshold. MTWV, DET and EER use the sweep over all queries: its thresholds are the rungs
of the system's ladder, the last one inf: reject everything. OTWV and rankings by query use a threshold for each query:
its thresholds are the scores of the query's own hits.

If scores are log-likelihood ratios of all trials, as for error rates over priors (`measures.threshold_curves`), imputed
trials are decided like any other: they are accepted if the threshold is at their score or below.

QUIRK, for TWV under `compat = "mediaeval"` only: MediaEval's tool gives a missing trial the default score and moves the
threshold past it. Otherwise TWV never accepts a trial that was not given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from swsdask.kernels.ladder import add_rates, find_own_rungs
from swsdask.measures.cross_entropy import Censored
from swsdask.measures.measure import Population, Scored, cached
from swsdask.measures.rates import twv
from swsdask.model.columns import between
from swsdask.model.trials import F64, I64, Bool
from swsdask.statistics.counts import Counts, class_targets, layers_of
from swsdask.statistics.ladder import AllScores, Hits, Ladder, QueryLadder
from swsdask.statistics.statistic import Statistic

QUERY_NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, QueryLadder)
"""The statistics that a query sweep needs."""


@dataclass(frozen=True, eq=False)
class QuerySweep:
    """Columns by query and its thresholds, ascending, the last one of each query inf: reject everything.

    The rows of query q are offsets[q] .. offsets[q + 1]. `hits` and `false_alarms` (int64) are those accepted, in the
    condition's groups of documents; `new_hits` (int64) the hits at the threshold itself.
    """

    thresholds: F64
    offsets: I64
    hits: I64
    false_alarms: I64
    new_hits: I64

    @property
    def query(self) -> I64:
        """The query of every row."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def rows(self, query: int) -> slice:
        """Return the rows of a query."""
        return slice(int(self.offsets[query]), int(self.offsets[query + 1]))


@cached
def query_sweep(scored: Scored, population: Population) -> QuerySweep:
    """Return the hits and false alarms of every query of a condition at each of its own thresholds."""
    hits, ladder = scored[Hits], scored[QueryLadder]
    groups = population.condition.groups
    inside = groups[hits.group]
    rows = find_own_rungs(hits.query[inside], hits.score[inside], ladder.offsets, ladder.rungs)
    new_hits = np.bincount(rows, minlength=len(ladder.rungs))
    every = ladder.counts[:, groups].sum(axis=1)
    ends = np.repeat(ladder.offsets[1:], np.diff(ladder.offsets))
    first = np.arange(len(ladder.rungs))
    accepted = between(every, first + 1, ends)
    accepted_hits = between(new_hits, first, ends)
    return QuerySweep(ladder.rungs, ladder.offsets, accepted_hits, accepted - accepted_hits, new_hits)


OF_SWEEP: tuple[type[Statistic], ...] = (Counts, Hits, Ladder)
"""The statistics of a sweep, of which curves are drawn."""

NEEDS: tuple[type[Statistic], ...] = (*OF_SWEEP, AllScores)
"""The statistics that a measure of a sweep needs, with those of its curves: they are the same beside every measure."""

TOLERANCE = 1e-9
"""Values of TWV or losses that differ by less than this, relative to 1 + |value|, are compared in exact arithmetic."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Columns by threshold, ascending, the last one inf.

    `hits` and `false_alarms` (int64) are those accepted, of all queries; `p_miss` and `p_fa` the average rates (Eq.
    4-5); `rejected` the highest score that is rejected (-inf: none). `step` (bool) marks thresholds with hits, `bottom`
    and `top` are the places of the lowest and highest score in the condition (both the last place without trials).
    """

    thresholds: F64
    hits: I64
    false_alarms: I64
    p_miss: F64
    p_fa: F64
    rejected: F64
    step: Bool
    bottom: int
    top: int

    @property
    def vertices(self) -> I64:
        """The places of reject-all, of the hits and of accept-all, from the highest threshold to the lowest."""
        chosen = self.step.copy()
        chosen[[self.bottom, -1]] = True
        return np.flatnonzero(chosen)[::-1]

    def place(self, threshold: float) -> int:
        """Return the index of a threshold of `Reference.thresholds`.

        Raises `ValueError` if a threshold is not a rung.
        """
        found = int(np.searchsorted(self.thresholds, threshold))
        if self.thresholds[found] != threshold:
            raise ValueError(f"the ladder has no rung at {threshold}; Reference.thresholds must name it")
        return found


def best_place(scored: Scored, population: Population, places: I64) -> int:
    """Return the place with the highest TWV among `places` (ascending) in a condition's sweep.

    Of equal ones it is the lowest.

    Places whose TWV in floating point is nearly the highest are compared in exact arithmetic.
    """
    sweep = threshold_sweep(scored, population)
    value = twv(sweep.p_miss[places], sweep.p_fa[places], scored.weights.beta)
    highest = value.max()
    near = places[value >= highest - TOLERANCE * (1.0 + abs(highest))]
    if len(near) > 1:
        losses = _exact_losses(scored, population, near)
        return int(near[losses.index(min(losses))])
    return int(near[0])


@cached
def threshold_sweep(scored: Scored, population: Population) -> Sweep:
    """Return the hits, false alarms and error rates of a condition at each threshold over all queries."""
    ladder = scored[Ladder]
    n = len(ladder.rungs)
    hits, false_alarms = np.zeros((2, n), np.int64)
    miss, alarm = np.zeros((2, n))
    add_rates(
        ladder.counts,
        *_leveled(scored, population),
        np.array(population.levels, np.int64),
        np.array(population.level_targets, np.int64),
        population.condition.n_trials,
        hits,
        false_alarms,
        miss,
        alarm,
    )
    highest = _highest(scored, population)
    below = np.maximum.accumulate(highest)
    lowest = population.condition.select(scored[Counts].lowest).min(initial=np.inf)
    return Sweep(
        thresholds=ladder.rungs,
        hits=hits,
        false_alarms=false_alarms,
        p_miss=miss / (population.n_with_targets or np.nan),
        p_fa=alarm / (population.n_with_nontargets or np.nan),
        rejected=below,
        step=np.append(hits[:-1] > hits[1:], False),
        bottom=int(np.searchsorted(ladder.rungs, lowest)),
        top=int(np.searchsorted(ladder.rungs, below[-1])) if np.isfinite(below[-1]) else n - 1,
    )


def _leveled(scored: Scored, population: Population) -> tuple[I64, I64, I64]:
    """Return the index of the level of every line of the ladder (-1: none); the rung, and that index, of every hit."""
    ladder, hits, reference = scored[Ladder], scored[Hits], scored.reference
    targets = class_targets(reference)[population.number]
    place = np.where(np.isin(targets, population.levels), np.searchsorted(population.levels, targets), -1)
    rung_of_hit = np.searchsorted(ladder.rungs, hits.score)
    return place[ladder.classes], rung_of_hit, np.append(place, -1)[reference.class_of[hits.query, hits.group]]


def _highest(scored: Scored, population: Population) -> F64:
    """Return the highest score of the condition in each slot, -inf if there is none."""
    layers = layers_of(scored.reference, population.number)
    highest: F64 = scored[Ladder].highest[layers].max(axis=0, initial=-np.inf)
    return highest


def _exact_losses(scored: Scored, population: Population, places: I64) -> list[int]:
    """Return P_miss + beta P_fa at some places, exact, all multiplied by the same number."""
    counts, beta = scored[Ladder].counts, scored.weights.exact_beta
    level_of_line, rung, level_of_hit = _leveled(scored, population)
    n_trials = population.condition.n_trials
    unit = lcm(*(count for level in population.levels for count in (level, n_trials - level) if count > 0))
    losses = []
    for place in places.tolist():
        loss = 0
        above = counts[:, place + 1 :].sum(axis=1, dtype=np.int64)
        for number, (level, n_target) in enumerate(zip(population.levels, population.level_targets, strict=True)):
            accepted = int(np.count_nonzero(rung[level_of_hit == number] >= place))
            alarms = int(above[level_of_line == number].sum()) - accepted
            if level > 0:
                loss += (n_target - accepted) * (unit // level) * population.n_with_nontargets * beta.denominator
            if level < n_trials:
                loss += alarms * (unit // (n_trials - level)) * population.n_with_targets * beta.numerator
        losses.append(loss)
    return losses


def with_imputed(sweep: Sweep, population: Population, trials: Censored) -> Sweep:
    """Return the sweep with one more threshold at the imputed score, unless nothing is imputed."""
    targets, nontargets = trials.imputed_target, trials.imputed_nontarget
    n_imputed = int(targets.sum() + nontargets.sum())
    if not n_imputed:
        return sweep
    at = int(np.searchsorted(sweep.thresholds, trials.score))
    if sweep.thresholds[at] != trials.score:
        sweep = _with_row(sweep, at, trials.score)
    accepted = np.arange(len(sweep.thresholds)) <= at
    p_miss, p_fa = population.rates_of(targets, nontargets)
    step = sweep.step.copy()
    step[at] |= bool(targets.any())
    rejected = np.where(accepted, sweep.rejected, np.maximum(sweep.rejected, trials.score))
    return replace(
        sweep,
        hits=sweep.hits + accepted * int(targets.sum()),
        false_alarms=sweep.false_alarms + accepted * int(nontargets.sum()),
        p_miss=np.maximum(sweep.p_miss - accepted * p_miss, 0.0),
        p_fa=sweep.p_fa + accepted * p_fa,
        rejected=rejected,
        step=step,
        bottom=min(sweep.bottom, at),
        top=max(sweep.top, at) if sweep.top < len(sweep.thresholds) - 1 else at,
    )


def _with_row(sweep: Sweep, at: int, threshold: float) -> Sweep:
    """Insert a threshold between two others at which there are no trials."""
    columns = {name: getattr(sweep, name) for name in ("hits", "false_alarms", "p_miss", "p_fa", "rejected")}
    return replace(
        sweep,
        thresholds=np.insert(sweep.thresholds, at, threshold),
        step=np.insert(sweep.step, at, False),
        bottom=sweep.bottom + (sweep.bottom >= at),
        top=sweep.top + (sweep.top >= at),
        **{name: np.insert(column, at, column[at]) for name, column in columns.items()},
    )
