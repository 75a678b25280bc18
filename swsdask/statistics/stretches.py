"""Trials as stretches of rows that share their query and their group of documents."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from swsdask.kernels.stretches import stretch_begins
from swsdask.model.trials import F64, I16, I32, I64, Trials

_KNOWN: WeakKeyDictionary[Trials, Stretches] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Stretches:
    """Rows bounds[i] .. bounds[i + 1] of `score` belong to `query` [i] and `group` [i].

    A query may have several stretches: trials that are clustered by query merely make them long.
    """

    bounds: I64
    query: I32
    group: I16
    score: F64


def groups(trials: Trials, rows: I64) -> I16:
    """The group of some trials; trials without the column are all of group 0."""
    return np.zeros(len(rows), np.int16) if trials.group is None else trials.group[rows]


def stretches(trials: Trials) -> Stretches:
    """The stretches of a cell's trials, in the order of rows. They are found once for all statistics."""
    if trials not in _KNOWN:
        query = np.ascontiguousarray(trials.query)
        group = np.empty(0, np.int16) if trials.group is None else np.ascontiguousarray(trials.group)
        begins = stretch_begins(query, group)
        bounds = np.append(begins, len(trials))
        score = np.ascontiguousarray(trials.score)
        _KNOWN[trials] = Stretches(bounds, query[begins], groups(trials, begins), score)
    return _KNOWN[trials]
