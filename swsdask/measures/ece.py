"""Empirical cross entropy over priors (ECE): how much scores tell at applications other than the evaluation's.

C_xe (`measures.cross_entropy`, Eq. 43 of the 2013 measures document) in bits as a function of x = logit(P_tar), for
x = -10, -9.75 .. 10 and for the evaluation's operating point. The threshold of a point is the Bayes threshold -x.

- "ece_default": the scores are 0, which is the prior entropy (Eq. 39).
- "ece_actual": the scores as they are. Given non-target trials are taken as in `measures.calibration`.
- "ece_affine": mapped by the affine map that is best at the evaluation's operating point (gamma, delta of Eq. 44).
- "ece_pav": mapped by the best rising map, which is the same at every prior.

Where "ece_actual" lies above "ece_default" the scores do harm. A condition without trials of both classes has no
curves. (Ramos and Gonzalez-Rodriguez 2013, "Reliable support: measuring calibration of likelihood ratios".)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from swsdask.measures import cross_entropy, sweep
from swsdask.measures.calibration import Affine, affine, pooled_blocks
from swsdask.measures.cross_entropy import censored
from swsdask.measures.logistic_fit import prior_entropy
from swsdask.measures.measure import Curve, Scored
from swsdask.model.trials import F64
from swsdask.statistics.moments import Moments
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (*cross_entropy.NEEDS, *sweep.NEEDS[1:], Moments)
"""The statistics without which there are no curves."""

_GRID = np.arange(-40, 41) / 4


def curves(scored: Scored) -> Iterator[Curve]:
    """The four curves of every condition, from the lowest prior to the highest."""
    priors = priors_of(scored)
    for population in scored.populations:
        trials = censored(scored, population)
        if not trials.defined:
            continue
        fitted = affine(scored, population)
        _, blocks = pooled_blocks(scored, population)
        costs = {
            "ece_default": [prior_entropy(x) for x in priors.tolist()],
            "ece_actual": [fitted.scores.cost(x) for x in priors.tolist()],
            "ece_affine": [_mapped(fitted, x) for x in priors.tolist()],
            "ece_pav": [blocks.cost(trials.n_target, trials.n_nontarget, x) for x in priors.tolist()],
        }
        for name, cost in costs.items():
            with np.errstate(over="ignore"):
                bits = np.array(cost) / math.log(2.0)
            yield Curve(population.condition.name, name, -priors, priors, bits)


def priors_of(scored: Scored) -> F64:
    """The prior log-odds at which curves have points, ascending."""
    return np.union1d(_GRID, [scored.reference.prior_log_odds])


def _mapped(fitted: Affine, prior_log_odds: float) -> float:
    """The cost after the best map; where gamma is infinite, of the score that the separated classes share."""
    best = fitted.best_of_standard
    if math.isfinite(best.gamma):
        return fitted.standard.cost(prior_log_odds, best.gamma, best.delta)
    shared = fitted.separation.rising if best.gamma > 0.0 else fitted.separation.falling
    return 0.0 if shared is None else shared.cost(prior_log_odds)
