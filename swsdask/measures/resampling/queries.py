"""Which queries resampling draws, their places among the weights, and their given and imputed trials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from swsdask.measures.averages import Population
from swsdask.measures.cross_entropy import Censored, censored
from swsdask.measures.measure import Scored
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.counts import Counts

SIDE_BY_SIDE = 64
"""How many replicates are computed at once."""


def drawn_queries(scored: Scored, population: Population) -> I64:
    """The numbers of the queries that averages of a condition count, in the order of their ids."""
    ids = scored.reference.query_ids
    return np.array(sorted(np.flatnonzero(population.queries).tolist(), key=lambda query: ids[query]), np.int64)


def places(queries: I64, n_queries: int) -> I64:
    """The place of each query of the list among those that are drawn, -1 for others."""
    place = np.full(n_queries, -1, np.int64)
    place[queries] = np.arange(len(queries))
    return place


@dataclass(frozen=True, eq=False)
class TrialPool:
    """Given and imputed trials by query, as `cross_entropy.Censored` has them, and the score of imputed ones.

    `impute` is a fixed score, NaN for the lowest: of all queries drawn, which have `lowest`, and `elsewhere`.
    """

    impute: float
    lowest: F64
    elsewhere: float
    columns: I64

    @classmethod
    def of(cls, scored: Scored, population: Population, queries: I64) -> TrialPool:
        """The trials of some queries of a condition."""
        lowest = scored[Counts].lowest.min(axis=1, initial=np.inf)
        others = np.ones(len(lowest), np.bool_)
        others[queries] = False
        fixed = scored.settings.impute
        return cls(
            impute=fixed + 0.0 if isinstance(fixed, float) else np.nan,
            lowest=lowest[queries],
            elsewhere=float(lowest[others].min(initial=np.inf)),
            columns=np.array([column[queries] for column in censored(scored, population).columns]),
        )

    def scores(self, weights: I32) -> F64:
        """The score of imputed trials in each replicate."""
        if not math.isnan(self.impute):
            return np.full(weights.shape[1], self.impute)
        order = np.argsort(self.lowest, kind="stable")
        ascending = np.append(np.minimum(self.lowest[order], self.elsewhere), self.elsewhere)
        drawn = np.concatenate([weights[order] > 0, np.ones((1, weights.shape[1]), np.bool_)])
        lowest = ascending[drawn.argmax(axis=0)]
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def replicates(self, weights: I32) -> Iterator[tuple[I64, Censored]]:
        """Those replicates that share a score, and their trials, as if each were a query."""
        scores = self.scores(weights)
        sums = self.columns @ weights.astype(np.int64)
        for score in np.unique(scores).tolist():
            chosen = np.flatnonzero(scores == score)
            yield chosen, Censored(score, *sums[:, chosen])
