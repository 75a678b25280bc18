"""Trials of a condition by outcome, query by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.measures.population import Population
from swsdask.model.trials import I64
from swsdask.statistics.counts import NO, YES, Counts


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Counts per query, int64 [n_queries], of trials in the condition's groups of documents.

    A hit is a target trial mapped to a detection with decision YES; every other target is a miss. A false alarm is a
    detection without target and with decision YES, a correct non-detection one with NO. `mapped` and `unmapped` take
    no notice of decisions.
    """

    mapped: I64
    unmapped: I64
    hit: I64
    miss: I64
    false_alarm: I64
    correct_nondetection: I64


def outcomes(counts: Counts, population: Population) -> Outcomes:
    """The outcomes of one condition."""
    groups = population.condition.groups
    mapped: I64 = counts.mapped[:, groups].sum(axis=1)
    unmapped: I64 = counts.unmapped[:, groups].sum(axis=1)
    return Outcomes(
        mapped=mapped.sum(axis=1),
        unmapped=unmapped.sum(axis=1),
        hit=mapped[:, YES],
        miss=population.targets - mapped[:, YES],
        false_alarm=unmapped[:, YES],
        correct_nondetection=unmapped[:, NO],
    )


def has_trials(counts: Counts, population: Population) -> bool:
    """Whether any query that averages count has a trial."""
    groups = population.condition.groups
    return bool(np.isfinite(counts.highest[population.queries][:, groups]).any())


def undefined_without(decisions: bool) -> float:
    """A factor: 1 if there are decisions, else NaN, for what is not defined without them."""
    return 1.0 if decisions else np.nan
