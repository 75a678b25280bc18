"""How many trials lie between the hits of a ranking, and how many share the score of one: of each query, and of all.

Hits are known from the first round; precision changes for the better at hits only, so the second round counts all
trials between the scores of hits. Equal scores are counted apart as well, since what a tie is worth is a convention.
Where rankings have a floor, scores below it are raised to it, and where they compare in single precision, scores are
rounded to the nearest (half to even; those beyond its range count as its largest), before anything is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.ranks import count_ranks
from swsdask.model.ranking import RankRule
from swsdask.model.trials import F64, I32, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.hits import Hits
from swsdask.statistics.strata import class_layers
from swsdask.statistics.stretches import stretches

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def ranked(score: F64, rule: RankRule) -> F64:
    """Scores as rankings compare them: 0.0 for -0.0."""
    if rule.floor > -np.inf:
        score = np.maximum(score, rule.floor)
    if rule.single:
        score = np.clip(score, -_LARGEST_SINGLE, _LARGEST_SINGLE).astype(np.float32).astype(np.float64)
    return score + 0.0


@dataclass(frozen=True, eq=False)
class RankRungs:
    """The rungs of ranking r are rungs[offsets[r] : offsets[r + 1]]; offsets int64 [n_rankings + 1]."""

    rungs: F64
    offsets: I64


def query_rungs(hits: Hits, reference: Reference) -> RankRungs:
    """The rungs of every query, by its number."""
    every_query = np.arange(reference.n_queries)
    query = np.concatenate([hits.query, every_query])
    score = np.concatenate([ranked(hits.score, reference.ranking), np.full(reference.n_queries, np.inf)])
    order = np.lexsort((score, query))
    query, score = query[order], score[order]
    new = np.ones(len(query), np.bool_)
    new[1:] = (query[1:] != query[:-1]) | (score[1:] != score[:-1])
    return RankRungs(score[new], np.searchsorted(query[new], np.arange(reference.n_queries + 1)))


def pooled_rungs(hits: Hits, reference: Reference) -> RankRungs:
    """The rungs of the one ranking of the trials that conditions count."""
    counted = reference.class_of[hits.query, hits.group] >= 0
    rungs = np.append(np.unique(ranked(hits.score[counted], reference.ranking)), np.inf)
    return RankRungs(rungs, np.array([0, len(rungs)], np.int64))


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Trials of one system between rungs.

    The rungs of a ranking are the ascending distinct scores of its hits with inf behind them; `counts` int64
    [len(rungs), n_lines] holds in the same rows its trials with a score >= the rung before (none: any) and < this one,
    `tied` its trials with exactly this score.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits,)
    aligned: ClassVar[bool] = False

    rungs: F64
    offsets: I64
    counts: I64
    tied: I64

    def merge(self, other: Self) -> Self:
        """The trials of both parts together."""
        return type(self)(self.rungs, self.offsets, self.counts + other.counts, self.tied + other.tied)


class QueryRanks(_Ranked):
    """The ranking of every query on its own; a line for every group of documents."""

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> RankRungs | None:
        """The rungs of every query of a system; None where rankings have events of their own."""
        return query_rungs(found[Hits], reference) if reference.ranking.duplicates is None else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: RankRungs) -> Self:
        """The trials of one cell between the rungs of their queries."""
        parts = stretches(trials)
        return cls(
            *_counted(parts.bounds, parts.query, parts.group, parts.score, reference.n_groups, reference, prepared)
        )


class PooledRanks(_Ranked):
    """One ranking of the trials of all queries; a line for every layer of classes (`strata.class_layers`)."""

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> RankRungs | None:
        """The rungs of a system; None where rankings have events of their own."""
        return pooled_rungs(found[Hits], reference) if reference.ranking.duplicates is None else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: RankRungs) -> Self:
        """The trials of one cell between the rungs."""
        parts = stretches(trials)
        layer, n_layers = class_layers(reference)
        line = np.append(layer, np.int32(-1))[reference.class_of[parts.query, parts.group]]
        pooled = np.zeros(len(line), np.int32)
        return cls(*_counted(parts.bounds, pooled, line, parts.score, n_layers, reference, prepared))


def _counted(
    bounds: I64, ranking: I32, line: Any, score: F64, n_lines: int, reference: Reference, prepared: RankRungs
) -> tuple[F64, I64, I64, I64]:
    rungs, offsets = prepared.rungs, prepared.offsets
    counts, tied = np.zeros((2, len(rungs), n_lines), np.int64)
    if reference.ranking.single or reference.ranking.floor > -np.inf:
        score = ranked(score, reference.ranking)
    count_ranks(bounds, ranking, line.astype(np.int32), score, offsets, rungs, counts, tied)
    return rungs, offsets, counts, tied
