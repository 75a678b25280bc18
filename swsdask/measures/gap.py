"""Generalised average precision of places to start listening.

Source: Liu and Oard, One-Sided Measures for Evaluating Ranked Retrieval Effectiveness with Spontaneous Conversational
Speech, SIGIR 2006, Section 2. A system returns points at which replay should start, best first; R_k is what the point
at rank k earns (see `statistics.onsets`), and p_k = (R_1 + ... + R_k) / k. With N onsets,

    GAP = (1 / N) sum over k with R_k > 0 of p_k

- `gap`: of every query with onsets. A point that earns nothing costs those after it.
- `mgap`: the average over these queries; one without detections has GAP = 0, queries without onsets are left out.

The source does not say which onset is meant where two unused ones are equally near: here it is the one that earns more,
then the earlier one; nor how equal scores rank: see `statistics.onsets`. Its times are whole steps of 15 s, which is
`gap.granularity_s = 15`; without it distances are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.averages import populations
from swsdask.measures.measure import Value
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, I64, Bool, Reference
from swsdask.statistics.onsets import Onsets, PointsBefore, onset_counts
from swsdask.statistics.statistic import Statistic


class GeneralisedAveragePrecision:
    """gap, mgap."""

    names: ClassVar[tuple[str, ...]] = ("gap", "mgap")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Onsets, PointsBefore)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall mgap, per query gap."""
        used: Onsets = statistics[Onsets]
        before: PointsBefore | None = statistics.get(PointsBefore)
        counts = np.zeros((0, reference.n_groups), np.int64) if before is None else before.counts
        offsets = used.offsets(reference.n_queries)
        again = _again(used)
        for population in populations(reference):
            groups = population.condition.groups
            inside, ranks_before = groups[used.group], counts[:, groups].sum(axis=1)
            n_onsets = onset_counts(reference)[:, groups].sum(axis=1)
            gap = np.full(reference.n_queries, np.nan)
            for query in np.flatnonzero(population.queries & (n_onsets > 0)).tolist():
                own = slice(offsets[query], offsets[query + 1])
                rank = np.cumsum(ranks_before[own]) + again[own] + 1
                gap[query] = _gap(used.earned[own], rank, inside[own], int(n_onsets[query]))
            averaged = gap[~np.isnan(gap)]
            yield from population.overall({"mgap": fsum(averaged) / (len(averaged) or np.nan)})
            yield from population.by_query(reference, {"gap": gap})


def _again(used: Onsets) -> I64:
    """How many points in front of each are the same in all that ranks: query, score, place and start."""
    columns = (used.query, used.score, used.place, used.start)
    new = np.ones(len(used), np.bool_)
    if len(used):
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    place = np.arange(len(used))
    return place - np.maximum.accumulate(np.where(new, place, 0)) if len(used) else place


def _gap(earned: F64, rank: I64, inside: Bool, n_onsets: int) -> float:
    """GAP of one query from the points that earn something, in rank order; only those `inside` count."""
    return fsum(np.cumsum(earned[inside]) / rank[inside]) / n_onsets
