"""Error counts of every query as its own threshold moves: what OTWV and rankings per query read off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from swsdask.kernels.sweep import find_own_rungs
from swsdask.measures.population import Population, populations
from swsdask.model.trials import F64, I64, Condition, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.query_ladder import QueryLadder

NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, QueryLadder)
"""The statistics that a query sweep is made of."""

_KNOWN: WeakKeyDictionary[QueryLadder, dict[Condition, QuerySweep]] = WeakKeyDictionary()


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
        """The rows of a query."""
        return slice(int(self.offsets[query]), int(self.offsets[query + 1]))


def query_sweeps(
    statistics: Mapping[type[Statistic], Any], reference: Reference
) -> Iterator[tuple[Population, QuerySweep]]:
    """The query sweep of every condition. Those of a ladder are made once and kept for as long as it is."""
    known = _KNOWN.setdefault(statistics[QueryLadder], {})
    for population in populations(reference):
        if population.condition not in known:
            known[population.condition] = _sweep(statistics[Hits], statistics[QueryLadder], population)
        yield population, known[population.condition]


def _sweep(hits: Hits, ladder: QueryLadder, population: Population) -> QuerySweep:
    groups = population.condition.groups
    inside = groups[hits.group]
    rows = find_own_rungs(hits.query[inside], hits.score[inside], ladder.offsets, ladder.rungs)
    new_hits = np.bincount(rows, minlength=len(ladder.rungs))
    every = ladder.counts[:, groups].sum(axis=1)
    ends = np.repeat(ladder.offsets[1:], np.diff(ladder.offsets))
    first = np.arange(len(ladder.rungs))
    accepted = _between(every, first + 1, ends)
    accepted_hits = _between(new_hits, first, ends)
    return QuerySweep(ladder.rungs, ladder.offsets, accepted_hits, accepted - accepted_hits, new_hits)


def _between(counts: I64, begin: I64, end: I64) -> I64:
    """Sums of counts[begin:end], for many of them."""
    sums = np.concatenate([[0], np.cumsum(counts)])
    between: I64 = sums[end] - sums[begin]
    return between
