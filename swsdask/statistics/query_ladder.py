"""The ladder of every query on its own: what the best threshold per query and rankings per query need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.sweep import count_own_slots
from swsdask.model.trials import F64, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.stretches import stretches


@dataclass(frozen=True, eq=False)
class OwnRungs:
    """The rungs of query q are rungs[offsets[q] : offsets[q + 1]]; offsets int64 [n_queries + 1]."""

    rungs: F64
    offsets: I64


@dataclass(frozen=True, eq=False)
class QueryLadder:
    """Trials of one system between rungs, query by query.

    The rungs of a query are ascending distinct scores with inf behind them: of its hits, its highest score in each
    group of documents, and `Reference.thresholds`. Those of query q are rungs[offsets[q] : offsets[q + 1]], and
    `counts` int64 [len(rungs), n_groups] holds in the same rows its trials with a score >= the rung before (none: any)
    and < this one.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits)
    aligned: ClassVar[bool] = False

    rungs: F64
    offsets: I64
    counts: I64

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> OwnRungs:
        """The rungs of every query of a system."""
        hits: Hits = found[Hits]
        highest: F64 = found[Counts].highest
        every_query = np.arange(reference.n_queries, dtype=np.int64)
        tops, _ = np.nonzero(np.isfinite(highest))
        everywhere = np.append(np.asarray(reference.thresholds, np.float64), np.inf)
        query = np.concatenate([hits.query.astype(np.int64), tops, np.repeat(every_query, len(everywhere))])
        score = np.concatenate([hits.score, highest[np.isfinite(highest)], np.tile(everywhere, reference.n_queries)])
        order = np.lexsort((score, query))
        query, score = query[order], score[order]
        new = np.ones(len(query), np.bool_)
        new[1:] = (query[1:] != query[:-1]) | (score[1:] != score[:-1])
        return OwnRungs(score[new], np.searchsorted(query[new], np.arange(reference.n_queries + 1)))

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: OwnRungs) -> Self:
        """The trials of one cell between the rungs of their queries."""
        rungs, offsets = prepared.rungs, prepared.offsets
        parts = stretches(trials)
        counts = np.zeros((len(rungs), reference.n_groups), np.int64)
        count_own_slots(parts.bounds, parts.query, parts.group, parts.score, offsets, rungs, counts)
        return cls(rungs, offsets, counts)

    def merge(self, other: Self) -> Self:
        """The trials of both parts together."""
        return type(self)(self.rungs, self.offsets, self.counts + other.counts)
