"""Error rates of a condition as one threshold moves over all queries: what MTWV, DET and EER read off.

A trial is accepted iff its score >= the threshold, so equal scores enter together, and targets that no detection is
mapped to are missed at every threshold. The thresholds are the rungs of the system's ladder, the last one inf: reject
everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from swsdask.kernels.rates import add_rates
from swsdask.measures.population import Population, populations
from swsdask.measures.twv import twv
from swsdask.model.settings import Weights
from swsdask.model.trials import F64, I64, Bool, Condition, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.ladder import Ladder
from swsdask.statistics.strata import class_layers, class_targets, members

NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, Ladder)
"""The statistics that a sweep is made of."""

_HAIR = 1e-9
"""Relative to 1 + |TWV|: values that are not exactly equal but closer than this are told apart in exact arithmetic."""

_KNOWN: WeakKeyDictionary[Ladder, dict[Condition, Sweep]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Sweep:
    """Columns by threshold, ascending, the last one inf.

    `hits` and `false_alarms` (int64) are those accepted, of all queries; `p_miss` and `p_fa` the average rates (Eq.
    4-5); `rejected` the highest score that is rejected (-inf: none). `step` (bool) tells where a hit is, `bottom` and
    `top` are the places of the lowest and the highest score in the condition (both the last place without trials).
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
        """Where a threshold of `Reference.thresholds` stands. Raises `ValueError` for another one that is no rung."""
        found = int(np.searchsorted(self.thresholds, threshold))
        if self.thresholds[found] != threshold:
            raise ValueError(f"the ladder has no rung at {threshold}; Reference.thresholds must name it")
        return found


def sweeps(statistics: Mapping[type[Statistic], Any], reference: Reference) -> Iterator[tuple[Population, Sweep]]:
    """The sweep of every condition. Those of a ladder are made once and kept for as long as it is."""
    known = _KNOWN.setdefault(statistics[Ladder], {})
    for population in populations(reference):
        if population.condition not in known:
            known[population.condition] = _sweep(statistics, reference, population)
        yield population, known[population.condition]


def best_place(
    statistics: Mapping[type[Statistic], Any],
    reference: Reference,
    population: Population,
    sweep: Sweep,
    places: I64,
    weights: Weights,
) -> int:
    """The one of some `places` (ascending) in a condition's sweep with the highest TWV, of equal ones the lowest.

    Places whose TWV in floating point is within a hair of the highest are compared in exact arithmetic.
    """
    value = twv(sweep.p_miss[places], sweep.p_fa[places], weights.beta)
    highest = value.max()
    near = places[value >= highest - _HAIR * (1.0 + abs(highest))]
    if len(near) > 1:
        losses = _exact_losses(statistics, reference, population, near, weights.exact_beta)
        return int(near[losses.index(min(losses))])
    return int(near[0])


def _sweep(statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population) -> Sweep:
    ladder: Ladder = statistics[Ladder]
    n = len(ladder.rungs)
    hits, false_alarms = np.zeros((2, n), np.int64)
    miss, alarm = np.zeros((2, n))
    add_rates(
        ladder.counts,
        *_leveled(statistics, reference, population),
        np.array(population.levels, np.int64),
        np.array(population.level_targets, np.int64),
        population.condition.n_trials,
        hits,
        false_alarms,
        miss,
        alarm,
    )
    highest = _highest(ladder, reference, population)
    below = np.maximum.accumulate(highest)
    strata = members(population.condition)
    counts: Counts = statistics[Counts]
    lowest = counts.lowest[strata].min(initial=np.inf)
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


def _leveled(
    statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population
) -> tuple[I64, I64, I64]:
    """The place among the levels (-1: none) of every line of the ladder; the rung, and that place, of every hit."""
    ladder, hits = statistics[Ladder], statistics[Hits]
    targets = class_targets(reference)[population.number]
    place = np.where(targets < 0, -1, np.searchsorted(population.levels, targets))
    rung_of_hit = np.searchsorted(ladder.rungs, hits.score)
    return place[ladder.classes], rung_of_hit, np.append(place, -1)[reference.class_of[hits.query, hits.group]]


def _highest(ladder: Ladder, reference: Reference, population: Population) -> F64:
    """The highest score of the condition in each slot, -inf where there is none."""
    layer, _ = class_layers(reference)
    layers = np.unique(layer[class_targets(reference)[population.number] >= 0])
    highest: F64 = ladder.highest[layers].max(axis=0, initial=-np.inf)
    return highest


def _exact_losses(
    statistics: Mapping[type[Statistic], Any],
    reference: Reference,
    population: Population,
    places: I64,
    beta: Fraction,
) -> list[int]:
    """P_miss + beta P_fa at some places, each times the same number, exactly."""
    counts = statistics[Ladder].counts
    level_of_line, rung, level_of_hit = _leveled(statistics, reference, population)
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
