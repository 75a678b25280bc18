"""Samples: measures of one system that can be computed with any weights of the queries.

A weight is the number of times that a query was drawn. Weights are ordered by query id; if documents are drawn too,
their weights follow, ordered by document id. Sums over queries run in that order, one addition after the other, and
have the same bits everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from swsdask.model.trials import F64, I8, I32, Bool

AVERAGED = {"map": ("ap",), "mgap": ("gap",), "atwv": ("p_miss", "p_fa"), "otwv": ("otwv_p_miss", "otwv_p_fa")}
"""For measures that are averages: the measures by query that they average, one, or P_miss and P_fa, which may average
over different queries."""


def weighted_sums(weights: I32 | I8, values: F64) -> F64:
    """Return sums over queries of weight times value, in the order of queries: float64 [replicates]."""
    sums = np.zeros(weights.shape[1])
    for weight, value in zip(weights, values.tolist(), strict=True):
        sums += weight * value
    return sums


def weighted_means(weights: I32, values: F64) -> F64:
    """Return weighted means over the queries that have values, NaN if none was drawn: float64 [replicates].

    The sums are those of `weighted_sums`. `weights` of many queries take much memory, so none are copied.
    """
    sums, drawn = np.zeros(weights.shape[1]), np.zeros(weights.shape[1], np.int32)
    for weight, value in zip(weights, values.tolist(), strict=True):
        if not math.isnan(value):
            sums += weight * value
            drawn += weight
    return sums / np.where(drawn > 0, drawn, np.nan)


def drawn_of(weights: I32, queries: Bool) -> F64:
    """Return how many of the given queries are drawn in each replicate: float64 [replicates]."""
    n_drawn: I32 = (weights if queries.all() else weights[queries]).sum(axis=0, dtype=np.int32)
    return n_drawn.astype(np.float64)


class Sample(Protocol):
    """A measure of one system in one condition that can be computed with weights of the condition's queries."""

    @property
    def value(self) -> float:
        """The measure."""
        ...

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate, NaN where it is not defined: float64 [replicates]."""
        ...


def unweighted(sample: Sample, n_queries: int) -> float:
    """Return the measure of the replicate in which each of `n_queries` queries occurs once."""
    return float(sample.replicates(np.ones((n_queries, 1), np.int32))[0])


class SampleOfQueries(Sample, Protocol):
    """A sample that knows which queries of the condition count for it, and can be restricted to some of them."""

    @property
    def queries(self) -> Bool:
        """The queries that count: bool [n_queries]."""
        ...

    @property
    def parts(self) -> F64 | None:
        """The addend of each query, NaN if it takes no part: [n_queries]; None if the measure is not a sum."""
        ...

    def restricted_to(self, queries: Bool) -> SampleOfQueries:
        """Return the measure of some of the queries only, bool [n_queries]; the others have no part in it."""
        ...


@dataclass(frozen=True, eq=False)
class Among:
    """A sample over the queries in `own`, bool [n_queries], which takes weights of all queries; `queries` count."""

    sample: Sample
    own: Bool
    queries: Bool

    @property
    def value(self) -> float:
        """The measure."""
        if np.array_equal(self.own, self.queries):
            return self.sample.value
        return unweighted(self, len(self.own))

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate."""
        if self.own.all() and self.queries.all():
            return self.sample.replicates(weights)
        n_queries = len(self.own)
        of_queries = np.where(self.queries[:, np.newaxis], weights[:n_queries], np.int32(0))[self.own]
        return self.sample.replicates(np.concatenate([of_queries, weights[n_queries:]]))

    @property
    def parts(self) -> None:
        """A measure that is not an average over queries has no addends."""

    def restricted_to(self, queries: Bool) -> Among:
        """Return the sample of some of the queries only: the others are never drawn."""
        return replace(self, queries=self.queries & queries)


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference of two measures; without `before`, 1 minus the measure."""

    before: SampleOfQueries | None
    after: SampleOfQueries

    @property
    def value(self) -> float:
        """The measure."""
        return (1.0 if self.before is None else self.before.value) - self.after.value

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate."""
        before = 1.0 if self.before is None else self.before.replicates(weights)
        return before - self.after.replicates(weights)

    @property
    def queries(self) -> Bool:
        """The queries that count for both."""
        return self.after.queries if self.before is None else self.before.queries & self.after.queries

    @property
    def parts(self) -> None:
        """Differences are not tested query by query: their two measures may average over different queries."""

    def restricted_to(self, queries: Bool) -> Difference:
        """Return the sample of some of the queries only."""
        return Difference(
            None if self.before is None else self.before.restricted_to(queries), self.after.restricted_to(queries)
        )


@dataclass(frozen=True, eq=False)
class Averages:
    """A measure that is a constant plus averages over queries, each times a factor.

    `columns` float64 [n_averages, n_queries] holds the values by query, NaN where an average leaves the query out, and
    `factors` one factor for each average.
    """

    constant: float
    factors: tuple[float, ...]
    columns: F64

    @property
    def value(self) -> float:
        """The measure."""
        return unweighted(self, self.columns.shape[1])

    @property
    def queries(self) -> Bool:
        """The queries that some average counts."""
        return np.asarray((~np.isnan(self.columns)).any(axis=0))

    @property
    def parts(self) -> F64:
        """The addend of each query beside the constant, NaN for a query that takes no part: [n_queries]."""
        there = ~np.isnan(self.columns)
        factors = np.array(self.factors) / np.maximum(there.sum(axis=1), 1)
        added: F64 = (np.where(there, self.columns, 0.0) * factors[:, np.newaxis]).sum(axis=0)
        return np.where(there.any(axis=0), added, np.nan)

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate; an average of no query is not defined (NaN)."""
        total = np.full(weights.shape[1], self.constant)
        for factor, column in zip(self.factors, self.columns, strict=True):
            total += factor * weighted_means(weights, column)
        return total

    def among(self, own: Bool) -> Averages:
        """Return the sample with weights of more queries, of which its `own`, bool [n_queries], take part."""
        columns = np.full((len(self.columns), len(own)), np.nan)
        columns[:, own] = self.columns
        return replace(self, columns=columns)

    def restricted_to(self, queries: Bool) -> Averages:
        """Return the sample of some of the queries only, bool [n_queries]; the others have no part in it."""
        return replace(self, columns=np.where(queries, self.columns, np.nan))


@dataclass(frozen=True, eq=False)
class AveragesByHighest:
    """A measure of averages in which a query has another value if its highest score is that of all drawn queries.

    `highest` is the measure with the values that queries then have, `others` with the values otherwise; `scores`
    float64 [n_queries] are the highest score of each query, -inf if it has none.
    """

    others: Averages
    highest: Averages
    scores: F64

    @property
    def value(self) -> float:
        """The measure; NaN where no query has a score."""
        return unweighted(self, len(self.scores))

    @property
    def queries(self) -> Bool:
        """The queries that some average counts."""
        return self.others.queries

    @property
    def parts(self) -> F64:
        """The addend of each query where all are drawn, NaN for a query that takes no part: [n_queries]."""
        return self._with_highest(self._scores.max(initial=-np.inf)).parts

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate; NaN where no query that was drawn has a score."""
        values = np.full(weights.shape[1], np.nan)
        left = np.arange(weights.shape[1])
        for score in np.unique(self._scores[np.isfinite(self._scores)])[::-1]:
            drawn = weights[np.ix_(self._scores == score, left)].any(axis=0)
            values[left[drawn]] = self._with_highest(score).replicates(weights[:, left[drawn]])
            left = left[~drawn]
            if not len(left):  # few scores are needed: each is drawn in about two thirds of the rest
                break
        return values

    def among(self, own: Bool) -> AveragesByHighest:
        """Return the sample with weights of more queries, of which its `own`, bool [n_queries], take part."""
        scores = np.full(len(own), -np.inf)
        scores[own] = self.scores
        return AveragesByHighest(self.others.among(own), self.highest.among(own), scores)

    def restricted_to(self, queries: Bool) -> AveragesByHighest:
        """Return the sample of some of the queries only, bool [n_queries]; the others have no part in it."""
        return replace(self, others=self.others.restricted_to(queries), highest=self.highest.restricted_to(queries))

    @property
    def _scores(self) -> F64:
        """The scores of the queries that count."""
        return np.where(self.queries, self.scores, -np.inf)

    def _with_highest(self, score: float) -> Averages:
        return replace(self.others, columns=np.where(self.scores == score, self.highest.columns, self.others.columns))
