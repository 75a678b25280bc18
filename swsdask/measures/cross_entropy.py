"""Normalised cross entropy of scores that are used as log-likelihood ratios (2013 measures document, 4.2.3-4.2.4).

A trial of score s has the posterior log-odds s + eta, eta = logit(P_tar) (Eq. 34-36), and costs (Eq. 37), in nats,

    softplus(-(s + eta)) if it is a target, softplus(s + eta) if it is not; softplus(x) = log(1 + e^x).

- `cxe`: the empirical cross entropy in bits (Eq. 38, Eq. 43): P_tar times the mean cost of target trials, plus
  1 - P_tar times that of non-target trials, over log 2; trials that the system did not give are imputed
  (`measures.censoring`).
- `cxe_prior`: that of a system that always says 0 (Eq. 39).
- `cnxe` = cxe / cxe_prior (Eq. 40): 0 for a perfect system, 1 for one that says nothing, more where scores mislead.
- `n_given_target`, `n_imputed_target`, `n_given_nontarget`, `n_imputed_nontarget`, `impute_score`.

The trials of all queries are one pool, with one |T_true| and one |T_false|: a query with many occurrences weighs more,
where TWV averages over queries. A query without occurrences is left out as it is for TWV. One without non-target
trials, such as a query that occurs in every document, has its targets in the pool, but no C_nxe of its own. Without
targets, or without non-targets, C_nxe is not defined (NaN).

The cost is exact trial by trial (`statistics.entropy`), and the mean of a class is rounded once. The document's
footnote 5 prints one branch of the cost at P_tar = .5 twice: of a non-target trial it is log(1 + lr).

Differences from MediaEval's tool: it prints in float32, takes log(1 + e) as it stands, and knows document trials only
(`measures.mediaeval_tool`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.censoring import Censored, censored
from swsdask.measures.logistic_fit import prior_entropy, sigmoid, softplus
from swsdask.measures.population import Population, populations
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, I64, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.entropy import Entropy
from swsdask.statistics.exact_sums import ExactSums
from swsdask.statistics.strata import members

NEEDS: tuple[type[Statistic], ...] = (Counts, Entropy)
"""The statistics that C_nxe is made of."""


class CrossEntropy:
    """cxe, cxe_prior, cnxe, and how many trials are given and imputed."""

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

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall; but for cxe_prior and impute_score per query as well."""
        prior = prior_entropy(reference.prior_log_odds)
        for population in populations(reference):
            trials = censored(statistics[Counts], population, settings)
            cost = given_cost(statistics, reference, population, trials)
            counts = {
                "n_given_target": trials.given_target,
                "n_imputed_target": trials.imputed_target,
                "n_given_nontarget": trials.given_nontarget,
                "n_imputed_nontarget": trials.imputed_nontarget,
            }
            yield from population.overall(
                {"cxe": cost / math.log(2.0), "cxe_prior": prior / math.log(2.0), "cnxe": cost / prior}
            )
            yield from population.overall({name: column.sum() for name, column in counts.items()})
            yield from population.overall({"impute_score": trials.score})
            groups = population.condition.groups
            sides = _sides(statistics, reference, trials)
            target, nontarget = (_cost(side, side.sums.by_query(groups)) for side in sides)
            of_query = target + nontarget
            with np.errstate(over="ignore"):
                columns = {"cxe": of_query / math.log(2.0), "cnxe": of_query / prior}
            yield from population.by_query(reference, columns | counts)


def given_cost(
    statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population, trials: Censored
) -> float:
    """C_xe of a condition in nats, its scores taken as they are."""
    strata = members(population.condition)
    target, nontarget = (
        _cost(side, np.array([side.sums.total(strata)])) for side in _sides(statistics, reference, trials.pooled)
    )
    return float((target + nontarget)[0])


class _Side(NamedTuple):
    """The trials of a class: its prior, the summed costs of given ones, and imputed and all trials of each query."""

    prior: float
    sums: ExactSums
    imputed: I64
    imputed_cost: float
    every: I64


def _sides(statistics: Mapping[type[Statistic], Any], reference: Reference, trials: Censored) -> tuple[_Side, _Side]:
    entropy: Entropy = statistics[Entropy]
    eta = reference.prior_log_odds
    x = trials.score + eta
    return (
        _Side(sigmoid(eta), entropy.target, trials.imputed_target, softplus(-x), trials.target),
        _Side(sigmoid(-eta), entropy.nontarget, trials.imputed_nontarget, softplus(x), trials.nontarget),
    )


def _cost(side: _Side, given: F64) -> F64:
    """What a class adds to C_xe in nats, where its given trials cost `given`; NaN without trials."""
    means = np.full(len(given), np.nan, np.longdouble)
    total = given + side.imputed * np.longdouble(side.imputed_cost)
    np.divide(total, side.every, out=means, where=side.every > 0)
    return side.prior * means.astype(np.float64)
