"""MediaEval's list of trials: the given ones in file order, then the missing ones at the imputed score.

QUIRK, used under `compat = "mediaeval"` only. Missing trials come query by query, each in the order of the documents,
and are rejected. Sorted by score, stably, the list is what a sweep or PAV goes through, trial by trial: equal scores
are not pooled, and -0.0 stands before 0.0 as Java compares them. Queries without targets are not in it.

So memory grows with the trials of a system, by some hundred bytes each: the tool adds up one trial after the other in
this order, in double precision, so that what it prints depends on where each of them is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from swsdask.measures.averages import Population
from swsdask.measures.cross_entropy import impute_score
from swsdask.measures.measure import Scored, kept
from swsdask.model.trials import F64, I8, I32, I64, Bool
from swsdask.statistics.counts import Counts
from swsdask.statistics.file_order import FileTrials
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (Counts, FileTrials)
"""The statistics that the list is made of."""


class Rows(NamedTuple):
    """The list by score, as int64 columns: how many trials of a class stand one after the other, with 0 in the column
    of the other class. Those of list i are rows offsets[i] .. offsets[i + 1].
    """

    target: I64
    nontarget: I64
    offsets: I64


@dataclass(frozen=True, eq=False)
class TrialList:
    """Equally long columns, one row a trial; the first `n_given` were given. `query` numbers the `n_queries` that have
    targets, in order.
    """

    score: F64
    query: I32
    target: Bool
    decision: I8
    n_given: int
    n_queries: int

    @property
    def by_score(self) -> I64:
        """The trials by ascending score, equal ones in order of the list."""
        return ascending(self.score)

    @property
    def by_query(self) -> I64:
        """The trials by query, those of one by ascending score, equal ones in order of the list."""
        order = self.by_score
        return order[np.argsort(self.query[order], kind="stable")]

    @cached_property
    def offsets(self) -> I64:
        """Where the trials of each query begin and end where they are sorted by query."""
        return np.append(0, np.cumsum(np.bincount(self.query, minlength=self.n_queries)))

    @property
    def rows(self) -> Rows:
        """All queries together: one list, offsets [0, n]."""
        return _rows(self.target[self.by_score], np.array([0, len(self.score)]))

    @property
    def rows_of_queries(self) -> Rows:
        """The list of every query on its own."""
        return _rows(self.target[self.by_query], self.offsets)


def ascending(score: F64) -> I64:
    """The places of scores in ascending order, -0.0 before 0.0 and NaN last, equal ones in order of the list."""
    order: I64 = np.argsort(score, kind="stable")
    begin, end = (int(np.searchsorted(score, 0.0, side, sorter=order)) for side in ("left", "right"))
    zeros = order[begin:end]
    order[begin:end] = zeros[np.argsort(~np.signbit(score[zeros]), kind="stable")]
    return order


@kept
def trial_list(scored: Scored, population: Population) -> TrialList:
    """The list of a condition."""
    given, reference = scored[FileTrials], scored.reference
    n_evaluated = reference.n_documents - reference.n_without_excerpts
    counted = population.with_targets
    documents = population.condition.groups[reference.group_of_document[:n_evaluated]]
    query_number, document_number = np.cumsum(counted) - 1, np.cumsum(documents) - 1
    n_queries, n_documents = int(counted.sum()), int(documents.sum())

    def cells(query: Any, document: Any) -> tuple[Bool, I64]:
        """Select the pairs that are trials, and return their numbers in a table of queries and documents."""
        inside = counted[query] & documents[document]
        return inside, query_number[query[inside]] * n_documents + document_number[document[inside]]

    rows, at = cells(given.query, given.document)
    target = np.zeros(n_queries * n_documents, np.bool_)
    target[cells(reference.query, reference.document)[1]] = True
    missing = np.ones(len(target), np.bool_)
    missing[at] = False
    left_out = np.flatnonzero(missing)
    return TrialList(
        score=np.concatenate([given.score[rows], np.full(len(left_out), impute_score(scored))]),
        query=(np.concatenate([at, left_out]) // max(n_documents, 1)).astype(np.int32),
        target=target[np.concatenate([at, left_out])],
        decision=np.concatenate([given.decision[rows], np.zeros(len(left_out), np.int8)]),
        n_given=len(at),
        n_queries=n_queries,
    )


def _rows(target: Bool, offsets: I64) -> Rows:
    changes = np.flatnonzero(target[1:] != target[:-1]) + 1
    begins = np.unique(np.concatenate([offsets[:-1], changes]))
    sizes, of_target = np.diff(np.append(begins, len(target))), target[begins]
    return Rows(np.where(of_target, sizes, 0), np.where(of_target, 0, sizes), np.searchsorted(begins, offsets))
