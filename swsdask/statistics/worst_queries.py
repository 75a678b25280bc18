"""The errors of a system by query: its highest false alarms, and the targets that it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from swsdask.model.trials import F64, I8, I16, I32, I64, Reference, Trials
from swsdask.statistics.counts import NO, trial_groups
from swsdask.statistics.statistic import FirstRound, OfDetections

KEPT = 100
"""The number of false alarms that are kept for a query."""


@dataclass(frozen=True, eq=False)
class HighestFalseAlarms(FirstRound, OfDetections):
    """The `KEPT` false alarms of each stratum with the highest scores: trials that are no target and not decided NO.

    Equally long columns, sorted by query and group of documents, then score from the highest, document, channel, start
    and end; the order of equal ones is arbitrary. `document` is -1 for a document that is not in the evaluation; times
    in ticks.
    """

    aligned: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("document", "channel", "start", "duration")

    query: I32
    group: I16
    score: F64
    document: I32
    channel: I8
    start: I32
    end: I64

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Select from one aligned cell."""
        detections = trials.detections
        if trials.hit is None or detections is None:
            raise ValueError("false alarms need aligned trials")
        wrong = np.ones(len(trials), np.bool_) if trials.decision is None else trials.decision != NO
        wrong[trials.hit] = False
        chosen = np.flatnonzero(wrong)
        row = chosen if trials.row is None else trials.row[chosen]
        document, channel, start, duration = (np.asarray(getattr(detections, name))[row] for name in cls.columns)
        score = trials.score[chosen] + 0.0
        stratum = trials.query[chosen], trial_groups(trials, chosen)
        return cls(*stratum, score, document, channel, start, start.astype(np.int64) + duration)._highest()

    def merge(self, other: Self) -> Self:
        """Select from both parts together."""
        pairs = zip(self._columns, other._columns, strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))._highest()

    @property
    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.query, self.group, self.score, self.document, self.channel, self.start, self.end

    def _highest(self) -> Self:
        order = np.lexsort((self.end, self.start, self.channel, self.document, -self.score, self.group, self.query))
        stratum = self.query[order].astype(np.int64) << 16 | self.group[order]
        rank = np.arange(len(stratum)) - np.searchsorted(stratum, stratum)
        kept = order[rank < KEPT]
        return type(self)(*(column[kept] for column in self._columns))


@dataclass(frozen=True, eq=False)
class FoundTargets(FirstRound):
    """The numbers of targets that have a mapped trial not decided NO, int64, ascending."""

    aligned: ClassVar[bool] = True

    target: I64

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Select from one aligned cell."""
        if trials.hit is None or trials.occurrence is None:
            raise ValueError("targets need aligned trials")
        accepted = np.ones(len(trials.hit), np.bool_) if trials.decision is None else trials.decision[trials.hit] != NO
        return cls(np.sort(trials.occurrence[accepted].astype(np.int64)))

    def merge(self, other: Self) -> Self:
        """Select from both parts together."""
        return type(self)(np.sort(np.concatenate([self.target, other.target])))
