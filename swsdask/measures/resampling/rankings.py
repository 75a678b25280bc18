"""AP of one ranking of everything, with weights of queries: a trial of a query that is drawn k times is k equal trials.

Not covered: `duplicates` that give rankings events of their own, and rules that order equal scores by documents or by
the files of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.kernels.resampling import weigh_cells
from swsdask.measures.average_precision import average_precision
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

_ROWS = 1 << 19
"""The slots of all replicates that are computed at once."""


@dataclass(frozen=True, eq=False)
class PooledPrecision:
    """AP of one system in one condition, for any weights of its queries.

    `n_slots` slots of scores ascend; slot at[r] is that of the scores equal to rung r, the last one of no score. Cells
    have a `query`, a `slot` and their number of trials `count`, hits a `query_of_hit` and a `rung_of_hit`. `targets`
    are by query.
    """

    options: AveragePrecisionSettings
    targets: I64
    n_slots: int
    at: I64
    query: I64
    slot: I64
    count: I64
    query_of_hit: I64
    rung_of_hit: I64

    @property
    def value(self) -> float:
        """The measure."""
        return float(self.replicates(np.ones((len(self.targets), 1), np.int32))[0])

    def replicates(self, weights: I32) -> F64:
        """The measure with the weights of each replicate; NaN without targets."""
        values = np.empty(weights.shape[1])
        at_once = min(max(_ROWS // self.n_slots, 1), SIDE_BY_SIDE)
        for begin in range(0, len(values), at_once):
            own = np.ascontiguousarray(weights[:, begin : begin + at_once], np.int64)
            values[begin : begin + at_once] = average_precision(self._rankings(own), self.options)
        return values

    def _rankings(self, weights: I64) -> Rankings:
        """The ranking of each replicate."""
        n, n_rungs = weights.shape[1], len(self.at)
        trials, new = np.empty((n, self.n_slots), np.int64), np.empty((n, n_rungs), np.int64)
        for cells, sums in zip(self._cells, (trials, new), strict=True):
            weigh_cells(*cells, weights, sums)
        return rankings_of(
            offsets=np.arange(n + 1) * n_rungs,
            counts=np.add.reduceat(trials, np.append(0, self.at[:-1]), axis=1).ravel(),
            tied=trials[:, self.at].ravel(),
            new=new.ravel(),
            tied_in_front=None,
            relevant=self.targets @ weights,
        )

    @cached_property
    def _cells(self) -> list[tuple[I64, I32, I64]]:
        """The trials of each slot and the hits of each rung: where its cells begin, their queries and numbers."""
        ones = np.ones(len(self.query_of_hit), np.int64)
        found = []
        for row, query, count, n_rows in (
            (self.slot, self.query, self.count, self.n_slots),
            (self.rung_of_hit, self.query_of_hit, ones, len(self.at)),
        ):
            order = np.argsort(row, kind="stable")
            offsets = np.searchsorted(row[order], np.arange(n_rows + 1))
            found.append((offsets, query[order].astype(np.int32), count[order]))
        return found


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
        scores = np.append(np.unique(score), np.inf)
        found = PooledPrecision(
            options=scored.settings.average_precision,
            targets=population.targets[queries],
            n_slots=len(ranks.rungs) + 1,
            at=np.searchsorted(ranks.rungs, scores, side="right"),
            query=place[query[cells]],
            slot=slot[cells],
            count=ranks.counts[cells],
            query_of_hit=place[hits.query[inside]],
            rung_of_hit=np.searchsorted(scores, score),
        )
        return {"ap": found}
