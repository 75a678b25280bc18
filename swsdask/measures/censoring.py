"""Which trials a system gave and which are imputed: Eq. 41-43 of the 2013 measures document.

T holds N trials for each query of a condition (Eq. 2, Eq. 41), whatever a system gives: N_act(q) targets and N_nt(q)
non-targets. A given trial that is mapped to a target is a given target trial, every other one a given non-target
trial, whatever the decisions. What is missing counts too, as one weighted group in each class, at one score: the
lowest score of the whole run (`impute = "min"`, Eq. 42: not of a condition or a part of the data), or the number that
`impute` is. A run without any trial has no lowest score: its trials are at 0, the score that says nothing.

More given non-target trials of a query than the N_nt(q) that its audio time allows are all counted, and none imputed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.measures.outcomes import outcomes
from swsdask.measures.population import Population
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64
from swsdask.statistics.counts import Counts


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

    @property
    def n_target(self) -> int:
        """|T_true|."""
        return int(self.target.sum())

    @property
    def n_nontarget(self) -> int:
        """|T_false|."""
        return int(self.nontarget.sum())

    @property
    def pooled(self) -> Censored:
        """The same trials as if they were of one query."""
        columns = (self.given_target, self.imputed_target, self.given_nontarget, self.imputed_nontarget)
        return Censored(self.score, *(column.sum(keepdims=True) for column in columns))

    @property
    def defined(self) -> bool:
        """Whether there are trials of both classes, so that a cross entropy is defined."""
        return self.n_target > 0 and self.n_nontarget > 0


def impute_score(counts: Counts, settings: EvaluationSettings) -> float:
    """The score of trials that a system did not give."""
    if isinstance(settings.impute, float):
        return settings.impute + 0.0
    lowest = float(counts.lowest.min(initial=np.inf))
    return lowest if np.isfinite(lowest) else 0.0


def censored(counts: Counts, population: Population, settings: EvaluationSettings) -> Censored:
    """The given and the imputed trials of one condition."""
    found = outcomes(counts, population)
    inside = population.queries
    return Censored(
        score=impute_score(counts, settings),
        given_target=np.where(inside, found.mapped, 0),
        imputed_target=np.where(inside, population.targets - found.mapped, 0),
        given_nontarget=np.where(inside, found.unmapped, 0),
        imputed_nontarget=np.where(inside, np.maximum(population.nontargets - found.unmapped, 0), 0),
    )
