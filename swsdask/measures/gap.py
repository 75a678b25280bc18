"""Generalised average precision of places to start listening.

Source: Liu and Oard, One-Sided Measures for Evaluating Ranked Retrieval Effectiveness with Spontaneous Conversational
Speech, SIGIR 2006, Section 2. A system returns points at which replay should start, best first; R_k is what the point
at rank k earns (see `statistics.onsets`), and p_k = (R_1 + ... + R_k) / k. With N onsets,

    GAP = (1 / N) sum over k with R_k > 0 of p_k

- `gap`: of every query with onsets. A point that earns nothing costs those after it.
- `mgap`: the average over these queries; one without detections has GAP = 0, queries without onsets are left out.

The source does not say which onset is meant where two unused ones are equally near: here it is the one that earns more,
then the earlier one; nor how equal scores rank: see `statistics.onsets`. Its times are whole steps of 15 s, which is
`gap.granularity_s = 15`; without it distances are exact. A point earns by where it is, whatever it is mapped to, so
conditions of occurrences have no GAP.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import ClassVar

import numpy as np

from swsdask.kernels.sums import rounded_sums, running_sums
from swsdask.measures.averages import Values, ratio
from swsdask.measures.measure import Scored
from swsdask.model.trials import I64
from swsdask.statistics.onsets import Onsets, PointsBefore, onset_counts
from swsdask.statistics.statistic import Statistic


class GeneralisedAveragePrecision:
    """gap, mgap."""

    names: ClassVar[tuple[str, ...]] = ("gap", "mgap")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Onsets, PointsBefore)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall mgap, per query gap."""
        reference, used, before = scored.reference, scored[Onsets], scored.get(PointsBefore)
        counts = np.zeros((0, reference.n_groups), np.int64) if before is None else before.counts
        offsets = used.offsets(reference.n_queries)
        points = np.repeat(np.arange(len(used)), used.times)
        again = _again(used, points)
        for population in scored.populations:
            if population.condition.of_occurrences:
                continue
            groups = population.condition.groups
            ranks_before = np.append(0, np.cumsum(counts[:, groups].sum(axis=1)))
            in_front = ranks_before[1:] - ranks_before[offsets[used.query]]
            rank = in_front[points] + again + 1
            inside = np.flatnonzero(groups[used.group[points]])
            earned, rank = used.earned[points[inside]], rank[inside]
            bounds = np.searchsorted(points[inside], offsets)
            n_onsets = onset_counts(reference)[:, groups].sum(axis=1)
            sums = rounded_sums(running_sums(earned, bounds) / rank, bounds)
            gap = ratio(sums, np.where(population.queries, n_onsets, 0))
            averaged = gap[~np.isnan(gap)]
            yield population.overall({"mgap": fsum(averaged.tolist()) / (len(averaged) or np.nan)})
            yield population.by_query({"gap": gap})


def _again(used: Onsets, points: I64) -> I64:
    """Count the points in front of each that are equal in query, score, place and start."""
    new = np.ones(len(points), np.bool_)
    if len(points):
        columns = (column[points] for column in (used.query, used.score, used.place, used.start))
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    place = np.arange(len(points))
    return place - np.maximum.accumulate(np.where(new, place, 0)) if len(points) else place
