"""Trials as stretches of rows that share their query and their group of documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.kernels.stretches import stretch_bounds
from swsdask.model.trials import F64, I16, I32, I64, Trials


@dataclass(frozen=True, eq=False)
class Stretches:
    """Rows bounds[i] .. bounds[i + 1] of `score` belong to `query` [i] and `group` [i].

    A query may have several stretches: trials that are clustered by query merely make them long.
    """

    bounds: I64
    query: I32
    group: I16
    score: F64


def groups(trials: Trials) -> I16:
    """The group of every trial; trials without the column are all of group 0."""
    return np.zeros(len(trials), np.int16) if trials.group is None else np.ascontiguousarray(trials.group)


def stretches(trials: Trials) -> Stretches:
    """The stretches of a cell's trials, in the order of rows."""
    query, group = np.ascontiguousarray(trials.query), groups(trials)
    bounds = stretch_bounds(query, group)
    begins = bounds[:-1]
    return Stretches(bounds, query[begins], group[begins], np.ascontiguousarray(trials.score))
