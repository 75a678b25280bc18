"""TWV at thresholds with weights of queries; that of MTWV is sought again with every vector of weights.

P_miss and P_fa (Eq. 4-5 of the 2013 measures document) become weighted averages: a query that is drawn k times counts
as k queries. So MTWV of a replicate is that of an evaluation in which the query occurs k times. Under
`compat = "kwseval"` rejecting everything is no threshold, of a replicate neither: its highest score is that of the
queries drawn.

Not covered: MTWV under `compat = "mediaeval"`, which accepts imputed trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.kernels.resampling import best_twv
from swsdask.measures.averages import Population, ratio
from swsdask.measures.measure import Scored
from swsdask.measures.resampling.queries import drawn_queries, places
from swsdask.model.samples import Averages, Sample
from swsdask.model.trials import F64, I32, I64, Bool
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import Hits
from swsdask.statistics.resampling import StratumLadder
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, StratumLadder)
"""The statistics that thresholds are sought in."""

_BLOCKS = 128
"""Into how many blocks with about equally many hits the ladder is cut at most."""


@dataclass(frozen=True, eq=False)
class BestThreshold:
    """MTWV of one system in one condition, for any weights of its queries, which are in the order of their ids.

    `targets` and `nontargets` int64 [n_queries]. Equally long columns, in the order of descending scores: the `query`
    of a cell, its `hits` and `false_alarms`, all int32, and `last`, whether a threshold follows it.
    """

    targets: I64
    nontargets: I64
    beta: float
    reject_all: bool
    query: I32
    hits: I32
    false_alarms: I32
    last: Bool

    @property
    def value(self) -> float:
        """MTWV."""
        return float(self.replicates(np.ones((len(self.targets), 1), np.int32))[0])

    def replicates(self, weights: I32) -> F64:
        """MTWV with the weights of each replicate, int32 [n_queries, n_replicates].

        NaN where no query with targets, or none with non-targets, was drawn.
        """
        n_target = weights[self.targets > 0].sum(axis=0).astype(np.float64)
        n_nontarget = weights[self.nontargets > 0].sum(axis=0).astype(np.float64)
        defined = (n_target > 0) & (n_nontarget > 0)
        best = np.empty(int(defined.sum()))
        best_twv(
            np.ascontiguousarray(weights.T[defined]),
            _inverse(self.targets),
            self.beta * _inverse(self.nontargets),
            n_target[defined],
            n_nontarget[defined],
            *self._above,
            self._bounds,
            self.query,
            self.hits,
            self.false_alarms,
            self.last,
            self.reject_all,
            best,
        )
        values = np.full(weights.shape[1], np.nan)
        values[defined] = best
        return values

    @cached_property
    def _bounds(self) -> I64:
        """Where blocks begin: behind cells that a threshold follows."""
        ends = np.flatnonzero(self.last) + 1
        hits = np.cumsum(self.hits)[ends - 1]
        steps = np.linspace(0, hits[-1] if len(hits) else 0, _BLOCKS + 1)[1:-1]
        chosen = ends[np.searchsorted(hits, steps)] if len(ends) else ends
        return np.unique(np.concatenate([[0], chosen, [len(self.query)]]))

    @cached_property
    def _above(self) -> tuple[F64, F64]:
        """The hits and the false alarms of each query in front of each bound: float64 [n_queries, n_bounds]."""
        n_blocks = len(self._bounds) - 1
        place = self.query.astype(np.int64) * n_blocks + np.repeat(np.arange(n_blocks), np.diff(self._bounds))
        sums = []
        for counts in (self.hits, self.false_alarms):
            inside = np.bincount(place, counts, len(self.targets) * n_blocks).reshape(len(self.targets), n_blocks)
            sums.append(np.concatenate([np.zeros((len(inside), 1)), np.cumsum(inside, axis=1)], axis=1))
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
    level = cells // max(len(chosen), 1)
    return BestThreshold(
        targets=population.targets[chosen],
        nontargets=population.nontargets[chosen],
        beta=scored.weights.beta,
        reject_all=scored.settings.compat != "kwseval",
        query=(cells % max(len(chosen), 1)).astype(np.int32),
        hits=found.astype(np.int32),
        false_alarms=(trials - found).astype(np.int32),
        last=np.append(level[1:] != level[:-1], True)[: len(cells)],
    )


class ResampledMaximum:
    """mtwv."""

    names: ClassVar[tuple[str, ...]] = ("mtwv",)
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """The measure of one condition."""
        return {"mtwv": best_threshold(scored, population)}


class ResampledTwv:
    """twv_bayes, twv@THETA: averages over queries, whose error rates the scores by query do not have."""

    names: ClassVar[tuple[str, ...]] = ("twv_bayes", "twv@")
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """The measures of one condition."""
        thresholds = {"twv_bayes": scored.weights.bayes_threshold}
        thresholds |= {f"twv@{theta!r}": theta for theta in scored.settings.thresholds}
        return {name: _at_threshold(scored, population, theta) for name, theta in thresholds.items()}


def _at_threshold(scored: Scored, population: Population, threshold: float) -> Averages:
    ladder, hits, n_queries = scored[StratumLadder], scored[Hits], scored.reference.n_queries
    groups = population.condition.groups
    stratum, slot = np.divmod(ladder.cells, len(ladder.rungs))
    query, group = np.divmod(stratum, scored.reference.n_groups)
    above = groups[group] & (slot > np.searchsorted(ladder.rungs, threshold))
    hit = groups[hits.group] & (hits.score >= threshold)
    accepted = np.bincount(query[above], ladder.counts[above], n_queries).astype(np.int64)
    found = np.bincount(hits.query[hit], minlength=n_queries)
    rates = (ratio(population.targets - found, population.targets), ratio(accepted - found, population.nontargets))
    chosen = drawn_queries(scored, population)
    return Averages(1.0, (-1.0, -scored.weights.beta), np.array([column[chosen] for column in rates]))
