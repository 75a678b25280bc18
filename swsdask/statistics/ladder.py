"""The ladder: how many trials lie between the scores at which a threshold can be best.

Between the scores of two hits lie only false alarms, so TWV as a function of the threshold can peak only at the score
of a hit. Hits are known from the first round; the second counts all trials against the rungs from their scores alone,
and what is not a hit is a false alarm: no alignment and no sorting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.sweep import count_slots
from swsdask.model.trials import F64, I32, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.strata import class_layers, members
from swsdask.statistics.stretches import stretches


@dataclass(frozen=True, eq=False)
class LadderPlan:
    """The rungs (see `Ladder`), and the layer of every class: int32 [n_classes]."""

    rungs: F64
    layer: I32
    n_layers: int


@dataclass(frozen=True, eq=False)
class Ladder:
    """Trials of one system between rungs, over all queries.

    `rungs` are ascending distinct scores with inf behind them: the scores of hits, `Reference.thresholds`, and the
    lowest and highest score in each condition. Slot r holds the trials with rungs[r - 1] <= score < rungs[r].
    `counts` [len(classes), n_rungs] has a row for every class of strata (`Reference.class_of`) with trials, `classes`
    int32, ascending; it is int32 where `n_trials`, their number, fits in one, else int64. `highest` float64 [n_layers,
    n_rungs] is the highest score in a slot (-inf: none), for every layer of classes (`strata.class_layers`).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits)
    aligned: ClassVar[bool] = False

    rungs: F64
    classes: I32
    counts: I32 | I64
    highest: F64
    n_trials: int

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> LadderPlan:
        """The rungs of a system."""
        hits: Hits = found[Hits]
        counted = reference.class_of[hits.query, hits.group] >= 0
        ends = [score for score in _ends(found[Counts], reference) if np.isfinite(score)]
        finite = np.concatenate([hits.score[counted], np.asarray(reference.thresholds, np.float64), ends]) + 0.0
        layer, n_layers = class_layers(reference)
        return LadderPlan(np.append(np.unique(finite), np.inf), layer, n_layers)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: LadderPlan) -> Self:
        """The trials of one cell between the rungs."""
        parts = stretches(trials)
        class_of = reference.class_of[parts.query, parts.group]
        classes = np.unique(class_of[class_of >= 0])
        line = np.where(class_of < 0, -1, np.searchsorted(classes, class_of)).astype(np.int32)
        counts = np.zeros((len(classes), len(prepared.rungs)), np.int32)
        highest = np.full((prepared.n_layers, len(prepared.rungs)), -np.inf)
        count_slots(parts.bounds, line, prepared.layer[classes], parts.score, prepared.rungs, counts, highest)
        n_trials = int(np.diff(parts.bounds)[line >= 0].sum())
        return cls(prepared.rungs, classes, counts, highest + 0.0, n_trials)

    def merge(self, other: Self) -> Self:
        """The trials of both parts together."""
        n_trials = self.n_trials + other.n_trials
        number = np.int32 if n_trials <= np.iinfo(np.int32).max else np.int64
        classes = self.classes
        if np.array_equal(classes, other.classes):
            counts = np.add(self.counts, other.counts, dtype=number)
        else:
            classes = np.union1d(classes, other.classes)
            counts = np.zeros((len(classes), len(self.rungs)), number)
            for part in (self, other):
                counts[np.searchsorted(classes, part.classes)] += part.counts
        highest = np.maximum(self.highest, other.highest)
        return type(self)(self.rungs, classes, counts, highest, n_trials)


def _ends(counts: Counts, reference: Reference) -> Iterator[float]:
    """The lowest and the highest score in each condition, infinite without trials."""
    for condition in reference.conditions:
        strata = members(condition)
        yield float(counts.lowest[strata].min(initial=np.inf))
        yield float(counts.highest[strata].max(initial=-np.inf))
