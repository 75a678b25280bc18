"""Trials of one system in the order of MediaEval's tool: by score, of equal scores in the order of its files.

The tool sorts trials stably and never pools equal scores, so what it reads off the sorted list depends on the order in
the files. Trials that a run leaves out come behind given ones of the same score, query by query, each in the order of
the documents. These statistics count what such a list needs. They are for document trials, and made only where
`Reference.file_order`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.statistics.base import OfDetections, Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.stretches import groups

IMPUTED, END = -1, -2
"""What a rung stands for that is no hit: the imputed trials; the end of the list, behind everything. As an index they
count from the end."""


@dataclass(frozen=True, eq=False)
class PlacedHits(OfDetections):
    """One system's hits, whatever their decision: equally long columns, sorted by (score, position).

    `document` is that of the hit, `position` where the files have it.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("document", "position")

    score: F64
    position: I64
    query: I32
    document: I32
    group: I16

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> tuple[()] | None:
        """Nothing is needed."""
        return () if reference.file_order else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """The hits of one aligned cell."""
        if trials.hit is None:
            raise ValueError("hits need aligned trials")
        hit = trials.hit
        score = trials.score[hit] + 0.0
        return cls._sorted(
            score, _of(trials, "position")[hit], trials.query[hit], _of(trials, "document")[hit], groups(trials, hit)
        )

    @classmethod
    def _sorted(cls, score: F64, position: I64, query: I32, document: I32, group: I16) -> Self:
        order = np.lexsort((position, score))
        return cls(score[order], position[order], query[order], document[order], group[order])

    def merge(self, other: Self) -> Self:
        """The hits of both parts together."""
        names = ("score", "position", "query", "document", "group")
        return self._sorted(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))


@dataclass(frozen=True, eq=False)
class _Order:
    """Places in the list as int64 that sort: by score, then by position; only those of hits' scores are told apart."""

    scores: F64
    positions: I64

    @classmethod
    def of(cls, hits: PlacedHits, imputed: float) -> Self:
        return cls(np.unique(np.append(hits.score, imputed)), np.sort(hits.position))

    @property
    def end(self) -> int:
        """Behind everything."""
        return (2 * len(self.scores) + 1) * (len(self.positions) + 2)

    def keys(self, score: F64, position: I64) -> I64:
        """The keys of given trials."""
        rank = np.searchsorted(self.scores, score)
        equal = self.scores[np.minimum(rank, len(self.scores) - 1)] == score
        keys: I64 = (2 * rank + equal) * (len(self.positions) + 2)
        keys[equal] += np.searchsorted(self.positions, position[equal])
        return keys

    def imputed(self, score: float) -> int:
        """The key of imputed trials, behind all given ones of their score."""
        rank = int(np.searchsorted(self.scores, score))
        return (2 * rank + 1) * (len(self.positions) + 2) + len(self.positions) + 1


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """Where the trials of a system are counted: int64 columns, of which `keys`, `own_keys`, `matrix` ascend.

    `rungs` are the hits of all queries, by their number in `PlacedHits`, with `IMPUTED` among them and `END` behind;
    `own_rungs` the same for every query alone, query by query (`own_query`). `missing_query` and `missing_document` are
    the target trials that the system left out, behind those of every query one more without a document (-1).
    """

    order: _Order
    keys: I64
    rungs: I64
    own_keys: I64
    own_rungs: I64
    own_query: I64
    matrix: I64
    missing_query: I64
    missing_document: I64

    @classmethod
    def of(cls, hits: PlacedHits, imputed: float, reference: Reference) -> Self:
        """The plan for a system whose missing trials have the score `imputed`."""
        order = _Order.of(hits, imputed)
        of_hit, of_imputed, end = order.keys(hits.score, hits.position), order.imputed(imputed), order.end
        keys = np.concatenate([of_hit, [end - 1, of_imputed]])
        rungs = np.concatenate([np.arange(len(of_hit)), [END, IMPUTED]])
        by_key = np.argsort(keys)
        queries = np.arange(reference.n_queries)
        own_query = np.concatenate([hits.query.astype(np.int64), queries, queries])
        own_rungs = np.concatenate([np.arange(len(of_hit)), *(np.full(len(queries), each) for each in (END, IMPUTED))])
        own_keys = own_query * end + keys[own_rungs]
        by_own = np.argsort(own_keys)
        width = reference.n_documents + 1
        missing = np.setdiff1d(
            reference.query.astype(np.int64) * width + reference.document,
            hits.query.astype(np.int64) * width + hits.document,
        )
        matrix = np.sort(np.concatenate([missing, queries * width + width - 1]))
        document = matrix % width
        return cls(
            order=order,
            keys=keys[by_key],
            rungs=rungs[by_key],
            own_keys=own_keys[by_own],
            own_rungs=own_rungs[by_own],
            own_query=own_query[by_own],
            matrix=matrix,
            missing_query=matrix // width,
            missing_document=np.where(document == width - 1, -1, document),
        )


@dataclass(frozen=True, eq=False)
class PlacedLadder(OfDetections):
    """Given trials of one system between the rungs of its plan, each rung's slot ending with it.

    `counts` int64 [n_classes, len(plan.rungs)] is by class of strata; `own` int64 [len(plan.own_rungs), n_groups]
    counts each query's trials between its own rungs; `given` int64 [len(plan.matrix), n_groups] those of each query
    between its missing target trials, in the order of documents.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, PlacedHits)
    aligned: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ("document", "position")

    plan: PlacedPlan
    counts: I64
    own: I64
    given: I64

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> PlacedPlan | None:
        """Where the trials of a system are counted."""
        if not reference.file_order:
            return None
        lowest = float(found[Counts].lowest.min(initial=np.inf))
        otherwise = lowest if np.isfinite(lowest) else 0.0
        return PlacedPlan.of(found[PlacedHits], otherwise if reference.impute is None else reference.impute, reference)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: PlacedPlan) -> Self:
        """The trials of one cell between the rungs."""
        plan = prepared
        group = groups(trials, np.arange(len(trials)))
        query = trials.query.astype(np.int64)
        key = plan.order.keys(trials.score + 0.0, _of(trials, "position"))
        kind = reference.class_of[trials.query, group]
        counted = kind >= 0
        slot = np.searchsorted(plan.keys, key[counted])
        own = np.searchsorted(plan.own_keys, query * plan.order.end + key)
        given = np.searchsorted(plan.matrix, query * (reference.n_documents + 1) + _of(trials, "document"))
        return cls(
            plan=plan,
            counts=_table(kind[counted], slot, (reference.n_classes, len(plan.rungs))),
            own=_table(own, group, (len(plan.own_rungs), reference.n_groups)),
            given=_table(given, group, (len(plan.matrix), reference.n_groups)),
        )

    def merge(self, other: Self) -> Self:
        """The trials of both parts together."""
        return type(self)(self.plan, self.counts + other.counts, self.own + other.own, self.given + other.given)


def _of(trials: Trials, column: str) -> Any:
    """A column of the best detection of every trial."""
    values = None if trials.detections is None else getattr(trials.detections, column)
    if values is None:
        raise ValueError(f"the column `{column}` was not read")
    return values if trials.row is None else values[trials.row]


def _table(row: I64 | I32, column: I64 | I16, shape: tuple[int, int]) -> I64:
    """How many pairs (row, column) there are of each."""
    places = row.astype(np.int64) * shape[1] + column
    return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)
