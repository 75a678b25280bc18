"""Counts of trials by stratum, outcome and decision, and the scores at which decisions change.

A stratum is a (query, group of documents). Conditions select strata; `Reference.class_of` merges those in
which a false alarm has the same weight in every condition. Trials come as stretches of rows that share their stratum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Self

import numpy as np

from swsdask.kernels.ladder import count_decisions
from swsdask.kernels.rows import stretch_begins
from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.statistics.statistic import FirstRound


def stratum_numbers(query: I32, group: I16, n_groups: int) -> I64:
    """Return the numbers of some strata in row-major order."""
    numbers: I64 = query.astype(np.int64) * n_groups + group
    return numbers


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
    """Return the layers of the classes of condition `number`, ascending."""
    layer, _ = class_layers(reference)
    return np.unique(layer[class_targets(reference)[number] >= 0])


def stratum_layers(query: I32, group: I16, reference: Reference) -> I32:
    """Return the layers of some strata; -1: no condition counts the stratum."""
    layer, _ = class_layers(reference)
    return np.append(layer, np.int32(-1))[reference.class_of[query, group]]


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
    """Return the lowest and the highest of some scores, float64 [2]; empty if there are none."""
    return np.array([scores.min(), scores.max()] if len(scores) else [], np.float64)


def trial_groups(trials: Trials, rows: I64) -> I16:
    """Return the groups of some trials; without the column all trials are of group 0."""
    return np.zeros(len(rows), np.int16) if trials.group is None else trials.group[rows]


def stretches(trials: Trials) -> Stretches:
    """Return the stretches of a cell's trials, in the order of rows. They are found once for all statistics."""
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
class Counts(FirstRound):
    """Counts of one system's trials.

    `mapped` (to a target) and `unmapped` are int64 [n_queries, n_groups, 3], the last axis by decision (`NO`, `YES`,
    `NONE`): hits are mapped YES, false alarms unmapped YES, correct non-detections unmapped NO. The scores are float64
    [n_queries, n_groups]: the lowest with decision YES (inf: none), the highest with decision NO (-inf: none), the
    lowest (inf) and the highest (-inf) of all. `dropped` counts the detections that are no trials, by reason.
    """

    aligned: ClassVar[bool] = True

    mapped: I64
    unmapped: I64
    min_yes: F64
    max_no: F64
    lowest: F64
    highest: F64
    dropped: dict[str, int]

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: object) -> Self:
        """Return the counts of one aligned cell."""
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
        """Return the counts of both parts together."""
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
        """Return the counts of a resample, see `Drawable.drawn`."""
        there = times > 0
        return type(self)(
            mapped=(times @ self.mapped)[:, np.newaxis],
            unmapped=(times @ self.unmapped)[:, np.newaxis],
            min_yes=self.min_yes[:, there].min(axis=1, initial=np.inf, keepdims=True),
            max_no=self.max_no[:, there].max(axis=1, initial=-np.inf, keepdims=True),
            lowest=self.lowest[:, there].min(axis=1, initial=np.inf, keepdims=True),
            highest=self.highest[:, there].max(axis=1, initial=-np.inf, keepdims=True),
            dropped=self.dropped,
        )

    @cached_property
    def has_decisions(self) -> bool:
        """Whether every trial has a decision."""
        return not (self.mapped[..., NONE].any() or self.unmapped[..., NONE].any())
