"""Normalised cross entropy of scores that are used as log-likelihood ratios (2013 measures document, 4.2.3-4.2.4).

A trial of score s has the posterior log-odds s + eta, eta = logit(P_tar) (Eq. 34-36), and costs (Eq. 37), in nats,

    softplus(-(s + eta)) for targets, softplus(s + eta) for others; softplus(x) = log(1 + e^x)

- `cxe`: the empirical cross entropy in bits (Eq. 38, Eq. 43): P_tar times the mean cost of target trials, plus
  1 - P_tar times that of non-target trials, over log 2; trials that the system did not give are imputed, see below.
- `cxe_prior`: the cross entropy of a system whose scores are all 0 (Eq. 39).
- `cnxe` = cxe / cxe_prior (Eq. 40): 0 for a perfect system, 1 for one without information, more if scores mislead.
- `n_given_target`, `n_imputed_target`, `n_given_nontarget`, `n_imputed_nontarget`, `impute_score`.

The trials of all queries are one pool, with one |T_true| and one |T_false|: a query with many occurrences weighs more,
whereas TWV averages over queries. A query without occurrences is left out, as for TWV. The targets of a query without
non-target trials, such as a query that occurs in every document, are in the pool, but the query has no C_nxe of its
own. Without targets, or without non-targets, C_nxe is not defined (NaN).

The cost is exact trial by trial (`statistics.entropy`), and the mean of a class is rounded once. The document's
footnote 5 prints one branch of the cost at P_tar = .5 twice: for a non-target trial it is log(1 + lr).

Differences from MediaEval's tool: it prints in float32, takes log(1 + e) literally, and knows document trials only
(`measures.mediaeval_tool`).

Trials that a system did not give are censored (Eq. 41-43). T holds N trials for each query of a condition (Eq. 2, Eq.
41), whatever a system gives: N_act(q) targets and N_nt(q) non-targets. A given trial that is mapped to a target is a
given target trial, every other one a given non-target trial, whatever the decisions. Missing trials count too, as one
weighted group in each class, at one score: the lowest score of the whole run (`impute = "min"`, Eq. 42: not of a
condition or a part of the data), or the number that `impute` gives. A run without any trial has no lowest score: its
trials are at 0, the score without information.

If a query has more given non-target trials than the N_nt(q) that its audio time allows, all are counted and none is
imputed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from swsdask.measures.logistic_fit import prior_entropy, sigmoid, softplus
from swsdask.measures.measure import Population, Scored, Values, cached
from swsdask.measures.rates import confusion_counts
from swsdask.model.trials import F64, I64, given_score
from swsdask.statistics.counts import Counts
from swsdask.statistics.entropy import ClassCosts, Entropy
from swsdask.statistics.ladder import Hits
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Censored:
    """Trials of a condition: int64 [n_queries], 0 for queries outside it; `score` is that of imputed ones."""

    score: float
    given_target: I64
    imputed_target: I64
    given_nontarget: I64
    imputed_nontarget: I64

    @property
    def target(self) -> I64:
        """|T_true| of each query."""
        return self.given_target + self.imputed_target

    @property
    def nontarget(self) -> I64:
        """|T_false| of each query."""
        return self.given_nontarget + self.imputed_nontarget

    @cached_property
    def n_target(self) -> int:
        """|T_true|."""
        return int(self.target.sum())

    @cached_property
    def n_nontarget(self) -> int:
        """|T_false|."""
        return int(self.nontarget.sum())

    @property
    def columns(self) -> tuple[I64, I64, I64, I64]:
        """The trials of the four kinds, in the order of the fields."""
        return self.given_target, self.imputed_target, self.given_nontarget, self.imputed_nontarget

    @cached_property
    def pooled(self) -> Censored:
        """The same trials as if they were of one query."""
        return Censored(self.score, *(column.sum(keepdims=True) for column in self.columns))

    @property
    def defined(self) -> bool:
        """Whether there are trials of both classes, so that a cross entropy is defined."""
        return self.n_target > 0 and self.n_nontarget > 0


@cached
def impute_score(scored: Scored) -> float:
    """Return the score of trials that a system did not give."""
    if isinstance(scored.settings.impute, float):
        return scored.settings.impute + 0.0
    lowest = float(scored[Counts].lowest.min(initial=np.inf))
    return lowest if np.isfinite(lowest) else 0.0


@cached
def censored(scored: Scored, population: Population) -> Censored:
    """Return the given and the imputed trials of one condition."""
    counts = confusion_counts(scored, population)
    inside = population.queries
    return Censored(
        score=impute_score(scored),
        given_target=np.where(inside, counts.mapped, 0),
        imputed_target=np.where(inside, population.targets - counts.mapped, 0),
        given_nontarget=np.where(inside, counts.unmapped, 0),
        imputed_nontarget=np.where(inside, np.maximum(population.nontargets - counts.unmapped, 0), 0),
    )


NEEDS: tuple[type[Statistic], ...] = (Counts, Hits, Entropy)
"""The statistics that C_nxe needs."""


class CrossEntropy:
    """Cross entropy, that of the prior, their quotient, and the numbers of given and imputed trials."""

    names: ClassVar[tuple[str, ...]] = (
        "cxe",
        "cxe_prior",
        "cnxe",
        "n_given_target",
        "n_imputed_target",
        "n_given_nontarget",
        "n_imputed_nontarget",
        "impute_score",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall, and per query except cxe_prior and impute_score."""
        prior = prior_entropy(scored.reference.prior_log_odds)
        for population in scored.populations:
            trials = censored(scored, population)
            cost = given_cost(scored, population)
            counts = {
                "n_given_target": trials.given_target,
                "n_imputed_target": trials.imputed_target,
                "n_given_nontarget": trials.given_nontarget,
                "n_imputed_nontarget": trials.imputed_nontarget,
            }
            numbers = {"cxe": cost / math.log(2.0), "cxe_prior": prior / math.log(2.0), "cnxe": cost / prior}
            numbers |= {name: int(column.sum()) for name, column in counts.items()}
            yield population.overall(numbers | {"impute_score": given_score(trials.score)})
            groups = population.condition.groups
            target, nontarget = (side.by_query(groups) for side in class_costs(scored))
            of_query = mean_cost(trials, target, nontarget, scored.reference.prior_log_odds)
            with np.errstate(over="ignore"):
                columns = {"cxe": of_query / math.log(2.0), "cnxe": of_query / prior}
            yield population.by_query({**columns, **counts})


@cached
def class_costs(scored: Scored) -> ClassCosts:
    """Return the costs of the given trials of each class."""
    return ClassCosts.of(scored[Entropy], scored[Hits], scored.reference.prior_log_odds)


@cached
def given_cost(scored: Scored, population: Population) -> float:
    """Return C_xe of a condition in nats, its scores taken as they are."""
    target, nontarget = (np.array([side.total(population.condition)]) for side in class_costs(scored))
    trials = censored(scored, population).pooled
    return float(mean_cost(trials, target, nontarget, scored.reference.prior_log_odds)[0])


def mean_cost(trials: Censored, target: F64, nontarget: F64, prior_log_odds: float) -> F64:
    """C_xe in nats of each query of `trials`, whose given targets cost `target` and given non-targets `nontarget`.

    NaN without trials of a class.
    """
    x = trials.score + prior_log_odds
    as_target = _class_cost(trials.imputed_target, softplus(-x), trials.target, target)
    as_nontarget = _class_cost(trials.imputed_nontarget, softplus(x), trials.nontarget, nontarget)
    return sigmoid(prior_log_odds) * as_target + sigmoid(-prior_log_odds) * as_nontarget


def _class_cost(imputed: I64, imputed_cost: float, every: I64, given: F64) -> F64:
    """Return the mean cost in nats of the trials of a class, of which the given ones cost `given`.

    NaN without trials.
    """
    means = np.full(len(given), np.nan, np.longdouble)
    costs = np.multiply(imputed, np.longdouble(imputed_cost), out=np.zeros_like(means), where=imputed > 0)
    np.divide(given + costs, every, out=means, where=every > 0)
    return means.astype(np.float64)
