"""The numbers that MediaEval's tool (QUESST 2014 and 2015) prints, in its own arithmetic: QUIRK, all of them.

The list of trials: the given ones in file order, then the missing ones at the imputed score
--------------------------------------------------------------------------------------------
QUIRK, used under `compat = "mediaeval"` only. Missing trials come query by query, each in the order of the documents,
and are rejected. A sweep or PAV goes through the list trial by trial, sorted by score with a stable sort: equal scores
are not pooled, and -0.0 precedes 0.0, as in Java. Queries without targets are not in the list.

So memory grows with the trials of a system, by some hundred bytes each: the tool adds one trial after the other in this
order, in double precision, so that its numbers depend on the place of each trial.

The numbers of MediaEval's tool
-------------------------------
They are computed under `compat = "mediaeval"` only, from this list; the lines of score.out have them
(`render.short_outputs`). Sums are taken in double precision in the order of the list, so that they round like those of
the tool: a maximum that is 0 can be -1.3322676E-15, and rounding picks one of equal maxima.

- `mediaeval_atwv`: TWV of the decisions. NaN if a query has no non-targets, as the tool divides by their number.
- `mediaeval_mtwv`, `mediaeval_threshold`: the highest TWV of one threshold, and the largest score that it rejects.
- `mediaeval_cnxe`; `mediaeval_cnxe_min`: the same after PAV of the whole list, equal scores not pooled.
- `mediaeval_offset_atwv`, `mediaeval_offset_mtwv`, `mediaeval_offset_threshold`: the tool's upper bound of TWV. Each
  query's best threshold is subtracted from its scores, and decisions are made at 0. The scores are those that PAV of
  the whole list has overwritten, not the system's, and a threshold of -inf or inf can give NaN, which ranks above all
  others. Trials are then in the order of queries.
- `mediaeval_pav_cnxe`: the tool's lower bound of C_nxe, by PAV of each query's list with the prior of all; again of the
  overwritten scores, so those of one block are in file order. `mediaeval_pav_cnxe_min`: after PAV of the result.
- `mediaeval_min_score`, `mediaeval_max_score`: of the scores given for queries with targets. In its search for the
  minimum the tool skips every score that is a new maximum: the minimum is Infinity if scores ascend.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from typing import ClassVar, NamedTuple

import numpy as np

from swsdask.kernels.rows import best_threshold, pooled_shares, summed_cost
from swsdask.measures.cross_entropy import impute_score
from swsdask.measures.measure import Population, Scored, Values, cached
from swsdask.model.trials import F64, I8, I32, I64, Bool, given_scores
from swsdask.statistics.counts import Counts
from swsdask.statistics.file_trials import FileTrials
from swsdask.statistics.statistic import Statistic

LIST_NEEDS: tuple[type[Statistic], ...] = (Counts, FileTrials)
"""The statistics that the list is built from."""


class ClassCounts(NamedTuple):
    """The list by score, as int64 columns: a row counts consecutive trials of one class, and is 0 in the column of the
    other class. The rows of list i are offsets[i] .. offsets[i + 1].
    """

    target: I64
    nontarget: I64
    offsets: I64


@dataclass(frozen=True, eq=False)
class TrialList:
    """Equally long columns, one row per trial; the first `n_given` were given. `query` numbers the `n_queries` queries
    that have targets, in order.
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
        """The trials by query, those of a query by ascending score, equal ones in order of the list."""
        order = self.by_score
        return order[np.argsort(self.query[order], kind="stable")]

    @cached_property
    def offsets(self) -> I64:
        """The bounds of the trials of each query, if they are sorted by query."""
        return np.append(0, np.cumsum(np.bincount(self.query, minlength=self.n_queries)))

    @property
    def rows(self) -> ClassCounts:
        """All queries together: one list, offsets [0, n]."""
        return _rows(self.target[self.by_score], np.array([0, len(self.score)]))

    @property
    def rows_of_queries(self) -> ClassCounts:
        """The list of every query separately."""
        return _rows(self.target[self.by_query], self.offsets)


def ascending(score: F64) -> I64:
    """Return the indices that sort scores: ascending, -0.0 before 0.0, NaN last, equal ones in order of the list."""
    order: I64 = np.argsort(score, kind="stable")
    begin, end = (int(np.searchsorted(score, 0.0, side, sorter=order)) for side in ("left", "right"))
    zeros = order[begin:end]
    order[begin:end] = zeros[np.argsort(~np.signbit(score[zeros]), kind="stable")]
    return order


@cached
def trial_list(scored: Scored, population: Population) -> TrialList:
    """Return the list of a condition."""
    given, reference = scored[FileTrials], scored.reference
    n_evaluated = reference.n_documents - reference.n_without_excerpts
    counted = population.with_targets
    documents = population.condition.groups[reference.group_of_document[:n_evaluated]]
    query_number, document_number = np.cumsum(counted) - 1, np.cumsum(documents) - 1
    n_queries, n_documents = int(counted.sum()), int(documents.sum())

    def cells(query: I32, document: I32) -> tuple[Bool, I64]:
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


def _rows(target: Bool, offsets: I64) -> ClassCounts:
    changes = np.flatnonzero(target[1:] != target[:-1]) + 1
    begins = np.unique(np.concatenate([offsets[:-1], changes]))
    sizes, of_target = np.diff(np.append(begins, len(target))), target[begins]
    return ClassCounts(np.where(of_target, sizes, 0), np.where(of_target, 0, sizes), np.searchsorted(begins, offsets))


class MediaEvalTool:
    """The numbers that MediaEval's tool prints of its list of trials."""

    names: ClassVar[tuple[str, ...]] = (
        "mediaeval_atwv",
        "mediaeval_mtwv",
        "mediaeval_threshold",
        "mediaeval_cnxe",
        "mediaeval_cnxe_min",
        "mediaeval_offset_atwv",
        "mediaeval_offset_mtwv",
        "mediaeval_offset_threshold",
        "mediaeval_pav_cnxe",
        "mediaeval_pav_cnxe_min",
        "mediaeval_min_score",
        "mediaeval_max_score",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = LIST_NEEDS

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall, if the order of files counts."""
        if FileTrials not in scored:
            return
        prior = float(1 / (1 + scored.weights.exact_beta))
        for population in scored.populations:
            trials = trial_list(scored, population)
            numbers = _numbers(trials, prior) if trials.n_queries else repeat(math.nan)
            yield population.overall(dict(zip(self.names, numbers, strict=False)))


def _numbers(trials: TrialList, prior: float) -> Iterator[float]:
    """Yield the numbers in the order of `MediaEvalTool.names`. Columns of all trials are freed as soon as possible."""
    beta = (1.0 - prior) / prior
    target, share, n_queries = trials.target, float(trials.target.mean()), trials.n_queries
    decided = bool((trials.decision >= 0).all())
    yield _decided_value(trials.query, target, trials.decision > 0, n_queries, beta) if decided else math.nan
    yield from _best(given_scores(trials.score), trials.query, target, n_queries, beta)
    yield _cnxe(given_scores(trials.score), target, prior)
    calibrated = _recalibrated(trials.score, target, share)
    yield _cnxe(calibrated, target, prior)

    by_query, offsets = np.argsort(trials.query, kind="stable"), trials.offsets
    query, target, calibrated = trials.query[by_query], target[by_query], calibrated[by_query]
    del by_query
    moved = np.empty(len(target))
    for begin, end in pairwise(offsets.tolist()):
        own = calibrated[begin:end]
        _, threshold = _best(own, np.zeros(len(own), np.int32), target[begin:end], 1, beta)
        with np.errstate(invalid="ignore"):
            moved[begin:end] = own - threshold
    yield _decided_value(query, target, moved > 0.0, n_queries, beta)
    yield from _best(moved, query, target, n_queries, beta)
    del moved
    for begin, end in pairwise(offsets.tolist()):
        calibrated[begin:end] = _recalibrated(calibrated[begin:end], target[begin:end], share)
    yield _cnxe(calibrated, target, prior)
    yield _cnxe(_recalibrated(calibrated, target, share), target, prior)
    yield from _extremes(given_scores(trials.score[: trials.n_given]))


def _decided_value(query: I32, target: Bool, accepted: Bool, n_queries: int, beta: float) -> float:
    def count(rows: Bool) -> I64:
        return np.bincount(query[rows], minlength=n_queries)

    with np.errstate(invalid="ignore"):
        losses = count(target & ~accepted) / count(target) + beta * count(~target & accepted) / count(~target)
    return float(1.0 - np.cumsum(losses)[-1] / n_queries)


def _best(score: F64, query: I32, target: Bool, n_queries: int, beta: float) -> tuple[float, float]:
    """Return the highest TWV and its threshold, of equal scores the first: -0.0 before 0.0."""
    order = ascending(score)
    value, threshold = best_threshold(order, score, query, target, n_queries, beta)
    if threshold == 0.0:
        threshold = float(score[order[np.searchsorted(score, 0.0, sorter=order)]])
    return value, threshold


def _recalibrated(score: F64, target: Bool, share: float) -> F64:
    """Return the log-likelihood ratios that PAV makes of scores if targets have the prior `share`."""
    order = ascending(score)
    begins, shares = pooled_shares(target[order])
    with np.errstate(invalid="ignore"):
        logarithms = np.array([_log_odds(each) for each in shares.tolist()]) - _log_odds(share)
    llr = np.empty(len(score))
    for logarithm, (begin, end) in zip(logarithms.tolist(), pairwise([*begins.tolist(), len(score)]), strict=True):
        llr[order[begin:end]] = logarithm
    return llr


def _log_odds(share: float) -> float:
    if share in (0.0, 1.0):
        return -math.inf if share == 0.0 else math.inf
    return math.log(share / (1.0 - share))


def _cnxe(llr: F64, target: Bool, prior: float) -> float:
    nothing: float = summed_cost(np.zeros(2), np.array([True, False]), prior)
    return summed_cost(llr, target, prior) / nothing


def _extremes(score: F64) -> tuple[float, float]:
    """Return the first of the lowest and of the highest scores: 0.0 and -0.0 are equal, and print differently."""
    if not len(score):
        return math.inf, -math.inf
    others = score[score <= np.append(-np.inf, np.maximum.accumulate(score)[:-1])]
    return float(others[np.argmin(others)]) if len(others) else math.inf, float(score[np.argmax(score)])
