"""How many trials each query has, by outcome and decision, and the scores at which decisions change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.counts import count_decisions
from swsdask.model.trials import F64, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.stretches import groups, stretches

NO, YES, NONE = 0, 1, -1
"""Places of the last axis of `Counts.mapped` and `Counts.unmapped`: the decision of the trials counted there."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of one system's trials.

    `mapped` (to a target) and `unmapped` are int64 [n_queries, n_groups, 3], the last axis by decision (`NO`, `YES`,
    `NONE`): hits are mapped YES, false alarms unmapped YES, correct non-detections unmapped NO. The scores are float64
    [n_queries, n_groups]: the lowest with decision YES (inf: none), the highest with decision NO (-inf: none), the
    lowest (inf) and the highest (-inf) of all. `dropped` counts the detections that are no trials, by reason.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True

    mapped: I64
    unmapped: I64
    min_yes: F64
    max_no: F64
    lowest: F64
    highest: F64
    dropped: dict[str, int]

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> tuple[()]:
        """Nothing is needed."""
        return ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Any) -> Self:
        """The counts of one aligned cell."""
        shape = (reference.n_queries, reference.n_groups)
        every, mapped = np.zeros((2, *shape, 3), np.int64)
        min_yes, lowest = np.full((2, *shape), np.inf)
        max_no, highest = np.full((2, *shape), -np.inf)
        decision = np.full(len(trials), NONE, np.int8) if trials.decision is None else trials.decision
        decision = np.ascontiguousarray(decision)
        parts = stretches(trials)
        count_decisions(
            parts.bounds, parts.query, parts.group, parts.score, decision, every, min_yes, max_no, lowest, highest
        )
        if trials.hit is None:
            raise ValueError("counts need aligned trials")
        np.add.at(mapped, (trials.query[trials.hit], groups(trials, trials.hit), decision[trials.hit]), 1)
        return cls(
            mapped=mapped,
            unmapped=every - mapped,
            min_yes=min_yes + 0.0,
            max_no=max_no + 0.0,
            lowest=lowest + 0.0,
            highest=highest + 0.0,
            dropped={reason: trials.dropped[reason] for reason in sorted(trials.dropped)},
        )

    def merge(self, other: Self) -> Self:
        """The counts of both parts together."""
        dropped = Counter(self.dropped)
        dropped.update(other.dropped)
        return type(self)(
            mapped=self.mapped + other.mapped,
            unmapped=self.unmapped + other.unmapped,
            min_yes=np.minimum(self.min_yes, other.min_yes),
            max_no=np.maximum(self.max_no, other.max_no),
            lowest=np.minimum(self.lowest, other.lowest),
            highest=np.maximum(self.highest, other.highest),
            dropped={reason: dropped[reason] for reason in sorted(dropped)},
        )

    @property
    def has_decisions(self) -> bool:
        """Whether every trial has a decision."""
        return not (self.mapped[..., NONE].any() or self.unmapped[..., NONE].any())
