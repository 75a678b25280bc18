"""AP of one ranking of everything, with weights of queries: a trial of a query that is drawn k times is k equal trials.

Not covered: `duplicates` that give rankings events of their own, and rules that order equal scores by documents or by
the files of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.kernels.resampling import precision_areas
from swsdask.measures.average_precision import expected_area, over
from swsdask.measures.averages import Population
from swsdask.measures.measure import Scored
from swsdask.measures.rankings import Rankings, rankings_of
from swsdask.measures.resampling.queries import SIDE_BY_SIDE, drawn_queries, places
from swsdask.model.retrieval import AveragePrecisionSettings
from swsdask.model.samples import Sample
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.ladder import Hits
from swsdask.statistics.ranks import ranked
from swsdask.statistics.resampling import StratumRanks
from swsdask.statistics.statistic import Statistic

Cells = tuple[I64, I32, F64]
"""Where the cells of each rung begin, then their queries and numbers."""


@dataclass(frozen=True, eq=False)
class PooledPrecision:
    """AP of one system in one condition, for any weights of its queries.

    Rungs are the distinct scores of hits, ascending. `hits`, the false alarms `tied` with a rung, and those `between`
    it and the next are cells; `targets` are by query.
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
    needs: ClassVar[tuple[type[Statistic], ...]] = (Hits, StratumRanks)

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """The measure of one condition."""
        reference, ranks, hits = scored.reference, scored[StratumRanks], scored[Hits]
        queries = drawn_queries(scored, population)
        place, groups = places(queries, reference.n_queries), population.condition.groups
        stratum, slot = np.divmod(ranks.cells, len(ranks.rungs))
        query, group = np.divmod(stratum, reference.n_groups)
        cells = (place[query] >= 0) & groups[group]
        inside = (place[hits.query] >= 0) & groups[hits.group]
        score = ranked(hits.score[inside], reference.ranking)
        scores = np.unique(score)
        n_rungs, n_queries = len(scores), len(queries)
        at = np.searchsorted(ranks.rungs, scores, side="right")
        rung = np.searchsorted(at, slot[cells], side="right") - 1
        counted = rung >= 0
        rung, of_query, count = rung[counted], place[query[cells]][counted], ranks.counts[cells][counted]
        tied = at[rung] == slot[cells][counted]
        rung_of_hit, query_of_hit = np.searchsorted(scores, score), place[hits.query[inside]]
        once = np.ones(len(score), np.int64)
        found = PooledPrecision(
            options=scored.settings.average_precision,
            targets=population.targets[queries],
            hits=_cells(rung_of_hit, query_of_hit, once, n_rungs, n_queries),
            tied=_cells(
                np.concatenate([rung[tied], rung_of_hit]),
                np.concatenate([of_query[tied], query_of_hit]),
                np.concatenate([count[tied], -once]),
                n_rungs,
                n_queries,
            ),
            between=_cells(rung[~tied], of_query[~tied], count[~tied], n_rungs, n_queries),
        )
        return {"ap": found}


def _cells(rung: I64, query: I64, count: I64, n_rungs: int, n_queries: int) -> Cells:
    """The cells with a count, from columns whose rows of equal rung and query are added up."""
    key, number = np.unique(rung * n_queries + query, return_inverse=True)
    sums = np.bincount(number, count, len(key))
    there = sums > 0
    rungs, queries = np.divmod(key[there], max(n_queries, 1))
    return np.searchsorted(rungs, np.arange(n_rungs + 1)), queries.astype(np.int32), sums[there].astype(np.float64)
