"""Whether the scores of hits and of other trials overlap, where bins are too coarse to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.sweep import count_slots
from swsdask.model.trials import F64, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.moments import Moments, nontarget_points
from swsdask.statistics.strata import class_layers, members
from swsdask.statistics.stretches import stretches

_BINS = 2.0**-9
"""Two bins of `Moments`, as a share of 1 + |score|."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Trials of one system at and around the ends of its hits' scores.

    Only for a system that has, in some condition with targets, no hit clearly below the highest of the other trials, or
    none clearly above the lowest.

    `rungs` are ascending distinct scores with inf behind them: the lowest and the highest hit in each condition, the
    lowest score of the run, `Reference.thresholds`, and the next float above each of these. Slot r holds the trials
    with rungs[r - 1] <= score < rungs[r], so those at one of these scores have a slot of their own. `counts` is int64
    [n_layers, n_rungs], by layer of classes (`strata.class_layers`).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits, Moments)
    aligned: ClassVar[bool] = False

    rungs: F64
    counts: I64

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> F64 | None:
        """The rungs; None where hits and others clearly overlap."""
        hits: Hits = found[Hits]
        marked = [*reference.thresholds, float(found[Counts].lowest.min(initial=np.inf))]
        clear = True
        for number, condition in enumerate(reference.conditions):
            score = hits.score[members(condition)[hits.query, hits.group]]
            marked += score[[0, -1]].tolist() if len(score) else []
            if reference.condition_targets(condition).any():
                clear = clear and _overlap(score, nontarget_points(found, reference, number).z)
        if clear:
            return None
        ends = np.array(marked)[np.isfinite(marked)] + 0.0
        with np.errstate(over="ignore"):
            ends = np.append(ends, np.nextafter(ends, np.inf))
        return np.append(np.unique(ends[np.isfinite(ends)]), np.inf)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: F64) -> Self:
        """The trials of one cell."""
        parts = stretches(trials)
        layer, n_layers = class_layers(reference)
        line = np.append(layer, np.int32(-1))[reference.class_of[parts.query, parts.group]]
        counts = np.zeros((n_layers, len(prepared)), np.int32)
        highest = np.empty(counts.shape)
        each = np.arange(n_layers, dtype=np.int32)
        count_slots(parts.bounds, line, each, parts.score, prepared, counts, highest)
        return cls(prepared, counts.astype(np.int64))

    def merge(self, other: Self) -> Self:
        """The trials of both parts together."""
        return type(self)(self.rungs, self.counts + other.counts)


def _overlap(hit: F64, other: F64) -> bool:
    """Whether some of the hits, ascending scores, clearly lie below some others, and some above."""
    if len(hit) == 0 or len(other) == 0:
        return False
    lowest, highest = float(other.min()), float(other.max())
    below = hit[0] < highest - _BINS * (1.0 + abs(highest))
    return bool(below and hit[-1] > lowest + _BINS * (1.0 + abs(lowest)))
