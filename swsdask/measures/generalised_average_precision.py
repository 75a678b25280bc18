"""Generalised average precision of places to start listening.

Source: Liu and Oard, One-Sided Measures for Evaluating Ranked Retrieval Effectiveness with Spontaneous Conversational
Speech, SIGIR 2006, Section 2. A system returns points at which replay should start, best first; R_k is the reward of
the point at rank k (see `statistics.onsets`), and p_k = (R_1 + ... + R_k) / k. With N onsets,

    GAP = (1 / N) sum over k with R_k > 0 of p_k

- `gap`: GAP of every query with onsets. A point without a reward lowers the precision of those after it.
- `mgap`: the average over these queries; a query without detections has GAP = 0, queries without onsets are left out.

The source does not say which onset is used if two unused ones are equally near: here it is the one with the higher
reward, then the earlier one. It does not say how equal scores rank either: see `statistics.onsets`. Its times are whole
steps of 15 s, which is `gap.granularity_s = 15`; without it distances are exact. The reward of a point depends on its
place, not on its mapping, so conditions of occurrences have no GAP. Runs and judgments of documents without times have
none either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swsdask.kernels.sums import rounded_sums, running_sums
from swsdask.measures.measure import Scored, Values
from swsdask.model.columns import ratio, row_changes
from swsdask.model.trials import I64
from swsdask.statistics.onsets import Onsets, PointsBefore, onset_counts
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True)
class GeneralisedAveragePrecision:
    """Generalised average precision, and its mean over queries; neither for a run that is not `timed`."""

    timed: bool = True

    names: ClassVar[tuple[str, ...]] = ("gap", "mgap")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Onsets, PointsBefore)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield mgap overall, gap per query."""
        if not self.timed:
            return
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
            yield population.overall({"mgap": math.fsum(averaged.tolist()) / (len(averaged) or np.nan)})
            yield population.by_query({"gap": gap})


def _again(used: Onsets, points: I64) -> I64:
    """Count the points before each one that are equal in query, score, place and start."""
    new = row_changes(*(column[points] for column in (used.query, used.score, used.place, used.start)))
    place = np.arange(len(points))
    return place - np.maximum.accumulate(np.where(new, place, 0))
