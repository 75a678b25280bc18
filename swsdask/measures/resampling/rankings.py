"""AP of one ranking of everything, with weights of queries: a trial of a query that is drawn k times is k equal trials.

Not covered: `duplicates` that give rankings events of their own, and rules that order equal scores by documents or by
the files of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swsdask.measures.average_precision import average_precision
from swsdask.measures.averages import Population
from swsdask.measures.measure import Scored
from swsdask.measures.rankings import rankings_of
from swsdask.measures.resampling.queries import drawn_queries, places
from swsdask.model.retrieval import AveragePrecisionSettings
from swsdask.model.samples import Sample
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.ladder import Hits
from swsdask.statistics.ranks import ranked
from swsdask.statistics.resampling import StratumRanks
from swsdask.statistics.statistic import Statistic


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
        return np.array([self._of(weights[:, replicate].astype(np.int64)) for replicate in range(weights.shape[1])])

    def _of(self, times: I64) -> float:
        trials = np.bincount(self.slot, times[self.query] * self.count, self.n_slots).astype(np.int64)
        new = np.bincount(self.rung_of_hit, times[self.query_of_hit], len(self.at)).astype(np.int64)
        rankings = rankings_of(
            offsets=np.array([0, len(self.at)]),
            counts=np.add.reduceat(trials, np.append(0, self.at[:-1])),
            tied=trials[self.at],
            new=new,
            tied_in_front=None,
            relevant=np.array([times @ self.targets]),
        )
        return float(average_precision(rankings, self.options)[0])


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
