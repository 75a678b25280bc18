"""The scores of the trials that are mapped to a target: few, and they decide every threshold measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.merge import merge_order
from swsdask.model.trials import F64, I16, I32, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.stretches import groups


@dataclass(frozen=True, eq=False)
class Hits:
    """The multiset of one system's hits, whatever their decision.

    `score` (0.0 for -0.0), `query` and `group` are equally long and sorted by (score, query, group).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True

    score: F64
    query: I32
    group: I16

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> tuple[()]:
        """Nothing is needed."""
        return ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Any) -> Self:
        """The hits of one aligned cell."""
        if trials.hit is None:
            raise ValueError("hits need aligned trials")
        score, query, group = trials.score[trials.hit] + 0.0, trials.query[trials.hit], groups(trials, trials.hit)
        order = np.lexsort((group, query, score))
        return cls(score[order], query[order], group[order])

    def merge(self, other: Self) -> Self:
        """The hits of both parts together."""
        order = merge_order(self.score, self.query, self.group, other.score, other.query, other.group)
        return type(self)(
            np.concatenate([self.score, other.score])[order],
            np.concatenate([self.query, other.query])[order],
            np.concatenate([self.group, other.group])[order],
        )

    def __len__(self) -> int:
        return len(self.score)
