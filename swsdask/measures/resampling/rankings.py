"""AP of one ranking of everything, with weights of queries: a trial of a query that is drawn k times is k equal trials.

Where a rule orders equal scores, these k trials follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.kernels.resampling import precision_areas
from swsdask.measures.average_precision import expected_area, over
from swsdask.measures.measure import Population, Scored
from swsdask.measures.rankings import Rankings, ranked_hits, rankings_of
from swsdask.measures.resampling.drawn import SIDE_BY_SIDE, drawn_queries, places
from swsdask.model.ranked_measures import AveragePrecisionSettings
from swsdask.model.samples import Sample
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.ladder import Hits
from swsdask.statistics.ranks import EventHits, HitPlaces, TieKeys, ranked
from swsdask.statistics.resampling import EventStratumRanks, StratumRanks, StratumTies
from swsdask.statistics.statistic import Statistic

Cells = tuple[I64, I32, F64]
"""Where the cells of each rung begin, then their queries and numbers."""


@dataclass(frozen=True, eq=False)
class PooledPrecision:
    """AP of one system in one condition, for any weights of its queries.

    Rungs are the distinct scores of hits, ascending; where a rule orders equal scores, the distinct places of hits,
    from the last of the ranking to the first. `hits`, the false alarms `tied` with a rung (in an order: behind it, up
    to the next score), and those `between` it and the next are cells; `targets` are by query.
    """

    options: AveragePrecisionSettings
    targets: I64
    hits: Cells
    tied: Cells
    between: Cells

    @property
    def value(self) -> float:
        """The measure."""
        return float(self.replicates(np.ones((len(self.targets), 1), np.int32))[0])

    def replicates(self, weights: I32) -> F64:
        """The measure with the weights of each replicate; NaN without targets."""
        areas = np.empty(weights.shape[1])
        for begin in range(0, len(areas), SIDE_BY_SIDE):
            own = np.ascontiguousarray(weights[:, begin : begin + SIDE_BY_SIDE], np.float64)
            areas[begin : begin + SIDE_BY_SIDE] = self._areas(own)
        return over(areas, self.targets @ weights)

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
        """The ranking of one replicate."""
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
        """The measure of one condition."""
        reference, ties = scored.reference, scored.get(StratumTies)
        ranks: StratumRanks = scored[EventStratumRanks] if EventHits in scored else scored[StratumRanks]
        hits: Hits | HitPlaces = ranked_hits(scored) if ties is None else scored[HitPlaces]
        queries, groups = drawn_queries(scored, population), population.condition.groups
        place = places(queries, reference.n_queries)
        inside = (place[hits.query] >= 0) & groups[hits.group]
        score, query_of_hit = hits.score[inside], place[hits.query[inside]]
        if isinstance(hits, Hits):  # places have scores as they are ranked
            score = ranked(score, reference.ranking)
        scores, tie_of_hit = np.unique(score, return_inverse=True)

        def by_query(cells: I64, counts: I64, n_slots: int) -> tuple[I64, I64, I64]:
            """Slots, queries and counts of the cells that the condition holds."""
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
    """Return the first rung of each score, with their number behind; and the rung of each key, -1 for other scores."""
    score = keys.scores[keys.tie_of_pooled]
    kept = np.flatnonzero(np.isin(score, scores))
    tie = np.searchsorted(scores, score[kept])
    bounds = np.searchsorted(tie, np.arange(len(scores) + 1))
    rung = np.full(len(score), -1)
    rung[kept] = bounds[tie] + bounds[tie + 1] - 1 - np.arange(len(kept))
    return bounds, rung


def _cells(rung: I64, query: I64, count: I64, n_rungs: int, n_queries: int) -> Cells:
    """The cells with a count, from columns whose rows of equal rung and query are added up."""
    key, number = np.unique(rung * n_queries + query, return_inverse=True)
    sums = np.bincount(number, count, len(key))
    there = sums > 0
    rungs, queries = np.divmod(key[there], max(n_queries, 1))
    return np.searchsorted(rungs, np.arange(n_rungs + 1)), queries.astype(np.int32), sums[there].astype(np.float64)
