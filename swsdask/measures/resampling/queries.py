"""Which queries resampling draws, and their places among the weights."""

from __future__ import annotations

import numpy as np

from swsdask.measures.averages import Population
from swsdask.measures.measure import Scored
from swsdask.model.trials import I64

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
