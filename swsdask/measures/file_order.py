"""MediaEval's list of trials, ascending: by score, of equal scores in file order, imputed ones last.

QUIRK, used under `compat = "mediaeval"` only. The rows made here are what a sweep or PAV goes through: each holds only
target or only non-target trials, in int64 columns `target` and `nontarget`, so that equal scores are not pooled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from swsdask.measures.population import Population
from swsdask.model.trials import I64, Bool, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.file_order import IMPUTED, PlacedHits, PlacedLadder
from swsdask.statistics.strata import class_targets

NEEDS: tuple[type[Statistic], ...] = (Counts, PlacedHits, PlacedLadder)
"""The statistics that the list is made of."""


class Rows(NamedTuple):
    """Some of the list's rows; `query` is int64, those of query q are rows offsets[q] .. offsets[q + 1]."""

    target: I64
    nontarget: I64
    offsets: I64


def rows_of_all(statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population) -> Rows:
    """The list of a condition, all queries together: one list, offsets [0, n]."""
    hits, ladder = statistics[PlacedHits], statistics[PlacedLadder]
    counted = class_targets(reference)[population.number] >= 0
    given = _given(ladder.plan.rungs, ladder.counts[counted].sum(axis=0), hits, population)
    imputed = _imputed(ladder, reference, population)
    behind = int(np.flatnonzero(ladder.plan.rungs == IMPUTED)[0]) + 1
    target, nontarget = (
        np.concatenate([given[side][: 2 * behind], imputed[side], given[side][2 * behind :]]) for side in range(2)
    )
    return Rows(target, nontarget, np.array([0, len(target)]))


def rows_of_queries(statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population) -> Rows:
    """The list of every query of a condition on its own; those of queries outside it have no trials."""
    hits, ladder = statistics[PlacedHits], statistics[PlacedLadder]
    plan = ladder.plan
    counts = ladder.own[:, population.condition.groups].sum(axis=1)
    counts[~population.queries[plan.own_query]] = 0
    given = _given(plan.own_rungs, counts, hits, population)
    imputed = _imputed(ladder, reference, population)
    is_imputed = plan.own_rungs == IMPUTED
    behind = np.cumsum(is_imputed) - is_imputed > plan.own_query
    query = np.concatenate([np.repeat(plan.own_query, 2), np.repeat(plan.missing_query, 2)])
    part = np.concatenate([2 * np.repeat(behind, 2), np.ones(len(imputed[0]), np.int64)])
    order = np.lexsort((part, query))
    target, nontarget = (np.concatenate([given[side], imputed[side]])[order] for side in range(2))
    return Rows(target, nontarget, np.searchsorted(query[order], np.arange(reference.n_queries + 1)))


def _given(rungs: I64, counts: I64, hits: PlacedHits, population: Population) -> tuple[I64, I64]:
    """Two rows for every rung: the non-targets before it, and the target at it."""
    inside = population.queries[hits.query] & population.condition.groups[hits.group]
    found = np.append(inside, False)[np.maximum(rungs, -1)].astype(np.int64)
    return _two_rows(counts - found, found)


def _imputed(ladder: PlacedLadder, reference: Reference, population: Population) -> tuple[I64, I64]:
    """Two rows for every missing target of every query and for its end: the missing non-targets before it, and it."""
    plan, groups = ladder.plan, population.condition.groups
    evaluated = reference.group_of_document[: reference.n_documents - reference.n_without_excerpts]
    documents_before = np.concatenate([[0], np.cumsum(groups[evaluated])])
    ends = plan.missing_document < 0
    inside = population.queries[plan.missing_query]
    missing = (inside & ~ends & groups[reference.group_of_document[plan.missing_document]]).astype(np.int64)
    trials = np.where(ends, documents_before[-1], documents_before[plan.missing_document])
    others = _within_query(ladder.given[:, groups].sum(axis=1) + missing, ends) - missing
    nontargets = np.where(inside, trials - others, 0)
    between = np.diff(nontargets, prepend=0)
    first = np.concatenate([[True], ends[:-1]])
    between[first] = nontargets[first]
    return _two_rows(between, missing)


def _within_query(counts: I64, ends: Bool) -> I64:
    """Running sums that begin anew behind every end."""
    sums = np.cumsum(counts)
    before = np.concatenate([[0], sums[ends]])
    within: I64 = sums - before[np.cumsum(ends) - ends]
    return within


def _two_rows(nontarget: I64, target: I64) -> tuple[I64, I64]:
    nothing = np.zeros_like(target)
    return np.column_stack([nothing, target]).ravel(), np.column_stack([nontarget, nothing]).ravel()
