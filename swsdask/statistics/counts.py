"""Counts of trials by stratum, outcome and decision, and the scores at which decisions change.

A stratum is a (query, group of documents). Conditions select strata; `Reference.class_of` merges those that no
condition distinguishes. Trials come as stretches of rows that share their stratum.

The errors of a system are kept by query: its highest false alarms, and the targets that it found.

MediaEval's tool sorts trials with a stable sort, never pools equal scores, and adds numbers one after the other: its
output depends on the whole list in the order of the file. So one statistic is that list (`FileTrials`). It is for
document trials, and made only if `Reference.file_order` is set.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from swsdask.kernels.ladder import count_decisions
from swsdask.kernels.rows import stretch_begins
from swsdask.model.trials import F64, I8, I16, I32, I64, Bool, Condition, Reference, Trials
from swsdask.statistics.statistic import Found, OfDetections, Statistic


def strata_of(condition: Condition) -> Bool:
    """The strata of a condition: bool [n_queries, n_groups]."""
    return condition.queries[:, np.newaxis] & condition.groups


@lru_cache(maxsize=2)
def class_targets(reference: Reference) -> I64:
    """N_act of a class's queries in every condition: int64 [n_conditions, n_classes], -1 if the condition has none.

    Raises `ValueError` if a condition distinguishes strata of one class: it contains only some of them, or their
    queries differ in N_act.
    """
    table = np.full((len(reference.conditions), reference.n_classes), -1, np.int64)
    size = np.bincount(reference.class_of[reference.class_of >= 0], minlength=reference.n_classes)
    for targets, condition in zip(table, reference.conditions, strict=True):
        inside = reference.class_of[np.ix_(condition.queries, condition.groups)]
        n_act = reference.condition_targets(condition)[condition.queries]
        counted = inside >= 0
        classes, n_act = inside[counted], np.repeat(n_act, counted.sum(axis=1))
        targets[classes] = n_act
        own = np.bincount(classes, minlength=reference.n_classes)
        if (targets[classes] != n_act).any() or (own[classes] != size[classes]).any():
            raise ValueError(f"condition {condition.name} distinguishes strata of one class")
    table.flags.writeable = False
    return table


@lru_cache(maxsize=2)
def class_layers(reference: Reference) -> tuple[I32, int]:
    """The layer of every class, int32 [n_classes], and their number: classes of the same conditions share a layer."""
    presence = class_targets(reference) >= 0
    if reference.n_classes == 0:
        return np.empty(0, np.int32), 0
    kinds, classes = np.unique(presence, axis=1, return_inverse=True)
    layer = classes.reshape(-1).astype(np.int32)
    layer.flags.writeable = False
    return layer, kinds.shape[1]


def layers_of(reference: Reference, number: int) -> I32:
    """The layers of the classes of condition `number`, ascending."""
    layer, _ = class_layers(reference)
    return np.unique(layer[class_targets(reference)[number] >= 0])


@dataclass(frozen=True, eq=False)
class Stretches:
    """Rows bounds[i] .. bounds[i + 1] of `score` belong to `query` [i] and `group` [i].

    A query may have several stretches: grouping trials by query is not required, it only makes stretches longer.
    """

    bounds: I64
    query: I32
    group: I16
    score: F64


def ends_of(scores: F64) -> F64:
    """The lowest and the highest of some scores, float64 [2]; empty if there are none."""
    return np.array([scores.min(), scores.max()] if len(scores) else [], np.float64)


def trial_groups(trials: Trials, rows: I64) -> I16:
    """The groups of some trials; without the column all trials are of group 0."""
    return np.zeros(len(rows), np.int16) if trials.group is None else trials.group[rows]


def stretches(trials: Trials) -> Stretches:
    """The stretches of a cell's trials, in the order of rows. They are found once for all statistics."""
    return trials.derive(_find_stretches)


def _find_stretches(trials: Trials) -> Stretches:
    query = np.ascontiguousarray(trials.query)
    group = np.empty(0, np.int16) if trials.group is None else np.ascontiguousarray(trials.group)
    begins = stretch_begins(query, group)
    bounds = np.append(begins, len(trials))
    return Stretches(bounds, query[begins], trial_groups(trials, begins), np.ascontiguousarray(trials.score))


NO, YES, NONE = 0, 1, -1
"""Indices on the last axis of `Counts.mapped` and `Counts.unmapped`: the decision of the trials counted there."""


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
    def prepare(cls, found: Found, reference: Reference) -> tuple[()]:
        """Nothing is needed."""
        return ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: object) -> Self:
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
        np.add.at(mapped, (trials.query[trials.hit], trial_groups(trials, trials.hit), decision[trials.hit]), 1)
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

    def drawn(self, times: I64) -> Self:
        """The counts of a resample, see `Drawable.drawn`."""
        there = times > 0
        return type(self)(
            mapped=np.tensordot(self.mapped, times, axes=(1, 0))[:, np.newaxis],
            unmapped=np.tensordot(self.unmapped, times, axes=(1, 0))[:, np.newaxis],
            min_yes=self.min_yes[:, there].min(axis=1, initial=np.inf, keepdims=True),
            max_no=self.max_no[:, there].max(axis=1, initial=-np.inf, keepdims=True),
            lowest=self.lowest[:, there].min(axis=1, initial=np.inf, keepdims=True),
            highest=self.highest[:, there].max(axis=1, initial=-np.inf, keepdims=True),
            dropped=self.dropped,
        )

    @property
    def has_decisions(self) -> bool:
        """Whether every trial has a decision."""
        return not (self.mapped[..., NONE].any() or self.unmapped[..., NONE].any())


KEPT = 100
"""The number of false alarms that are kept for a query."""


@dataclass(frozen=True, eq=False)
class HighestFalseAlarms(OfDetections):
    """The `KEPT` false alarms of each stratum with the highest scores: trials that are no target and not decided NO.

    Equally long columns, sorted by query and group of documents, then score from the highest, document, channel, start
    and end; the order of equal ones is arbitrary. `document` is -1 for a document that is not in the evaluation; times
    in ticks.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
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
    def prepare(cls, found: Found, reference: Reference) -> tuple[()]:
        """Nothing is needed."""
        return ()

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
class FoundTargets:
    """The numbers of targets that have a mapped trial not decided NO, int64, ascending."""

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True

    target: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()]:
        """Nothing is needed."""
        return ()

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


@dataclass(frozen=True, eq=False)
class FileTrials(OfDetections):
    """One system's given trials: equally long columns, ascending by `position`, their place in its files.

    `decision` is -1 if there is none, and a `score` may be -0.0.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("document", "position")

    position: I64
    score: F64
    query: I32
    document: I32
    decision: I8

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()] | None:
        """Nothing is needed."""
        return () if reference.file_order else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """The trials of one aligned cell."""
        columns = {
            "position": _of(trials, "position"),
            "score": _of(trials, "score"),
            "query": trials.query,
            "document": _of(trials, "document"),
            "decision": np.full(len(trials), -1, np.int8) if trials.decision is None else trials.decision,
        }
        order = np.argsort(columns["position"], kind="stable")
        return cls(**{name: column[order] for name, column in columns.items()})

    def merge(self, other: Self) -> Self:
        """The trials of both parts together. Columns are merged one after the other, as they are large, and sorted only
        if the parts overlap in the file.
        """
        parts = sorted((self, other), key=lambda part: part.position[:1].tolist())
        first, second = (part.position for part in parts)
        apart = not (len(first) and len(second)) or first[-1] < second[0]
        order = slice(None) if apart else np.argsort(np.concatenate([first, second]), kind="stable")

        def both(name: str) -> NDArray[Any]:
            column: NDArray[np.generic] = np.concatenate([getattr(part, name) for part in parts])[order]
            return column

        return type(self)(**{field.name: both(field.name) for field in fields(self)})


def _of(trials: Trials, column: str) -> NDArray[Any]:
    """A column of the detection of every trial."""
    values: NDArray[Any] | None = None if trials.detections is None else getattr(trials.detections, column)
    if values is None:
        raise ValueError(f"the column `{column}` was not read")
    return values if trials.row is None else values[trials.row]
