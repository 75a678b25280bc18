"""Applied probability of error over priors (APE): how often decisions at the Bayes threshold are wrong.

At the prior log-odds x = logit(P_tar), with costs of 1, the Bayes threshold for log-likelihood ratios is -x, and the
error rate there is P_tar P_miss + (1 - P_tar) P_fa. The rates pool the trials of a condition, imputed ones too
(`measures.cross_entropy`), as C_xe does. x runs over the grid of `measures.ece`.

- "ape_default": the scores are 0, so that the likelier class is decided for: min(P_tar, 1 - P_tar).
- "ape_actual": the scores as they are. Where the threshold lies among the scores, the point is at the prior nearest to
  the grid's whose threshold is a rung of the ladder: there the false alarms are known exactly.
- "ape_affine": the same of gamma s + delta, the map of `measures.calibration`. There is none where gamma < 0:
  the ladder counts the false alarms above a score, not those below it.
- "ape_pav": the least error rate of any threshold, which is that of the best rising map.

Where "ape_actual" lies above "ape_default" decisions by the scores are worse than decisions by the prior. A condition
without trials of both classes has no curves. (Brummer and du Preez 2006, "Application-independent evaluation of speaker
detection".)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from swsdask.measures.calibration import affine, pooled_blocks
from swsdask.measures.cross_entropy import Censored, censored
from swsdask.measures.ece import NEEDS, priors_of
from swsdask.measures.isotonic import Blocks
from swsdask.measures.logistic_fit import sigmoid
from swsdask.measures.measure import Curve, Scored
from swsdask.measures.sweep import Sweep, threshold_sweep, with_imputed
from swsdask.model.trials import F64, Bool

__all__ = ["NEEDS", "curves"]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Error rates of accepting what is >= `threshold`: float64, ascending, the last inf: reject everything."""

    threshold: F64
    p_miss: F64
    p_fa: F64

    @classmethod
    def of(cls, sweep: Sweep, trials: Censored) -> Self:
        """Compute from the scores as they are, from the lowest score of the condition."""
        places = slice(sweep.bottom, None)
        p_miss = 1.0 - sweep.hits[places] / trials.n_target
        return cls(sweep.thresholds[places], p_miss, sweep.false_alarms[places] / trials.n_nontarget)

    @classmethod
    def of_blocks(cls, blocks: Blocks, trials: Censored) -> Self:
        """Compute from the llr of isotonic blocks."""
        p_miss = np.append(0, np.cumsum(blocks.target)) / trials.n_target
        p_fa = 1.0 - np.append(0, np.cumsum(blocks.nontarget)) / trials.n_nontarget
        return cls(np.append(blocks.llr(trials.n_target, trials.n_nontarget), np.inf), p_miss, p_fa)

    def mapped(self, gamma: float, delta: float) -> Decisions:
        """Compute from gamma s + delta, gamma > 0 and finite."""
        with np.errstate(over="ignore"):
            return Decisions(gamma * self.threshold + delta, self.p_miss, self.p_fa)

    def at_bayes(self, priors: F64) -> tuple[F64, F64]:
        """The error rates at Bayes thresholds, and the prior log-odds that they are of."""
        finite = len(self.threshold) - 1
        wanted = -priors
        after = np.searchsorted(self.threshold, wanted)
        inside = (after > 0) & (after < finite)
        below = self.threshold[np.maximum(after - 1, 0)]
        lower = inside & (wanted - below < self.threshold[np.minimum(after, finite)] - wanted)
        place = after - lower
        x = np.where(inside, -self.threshold[place], priors)
        x, first = np.unique(x, return_index=True)
        return x, _error_rate(x, self.p_miss[place[first]], self.p_fa[place[first]])

    def least(self, priors: F64) -> F64:
        """The least error rate of any threshold."""
        least: F64 = _error_rate(priors[:, np.newaxis], self.p_miss, self.p_fa).min(axis=1)
        return least


def curves(scored: Scored) -> Iterator[Curve]:
    """The curves of every condition, from the lowest prior to the highest."""
    priors = priors_of(scored.reference.prior_log_odds)
    for population in scored.populations:
        trials = censored(scored, population)
        if not trials.defined:
            continue
        best = affine(scored, population).best
        _, blocks = pooled_blocks(scored, population)
        least = Decisions.of_blocks(blocks, trials).least(priors)
        given = Decisions.of(with_imputed(threshold_sweep(scored, population), population, trials), trials)
        drawn = {
            "ape_default": (priors, _error_rate(priors, priors < 0.0, priors >= 0.0)),
            "ape_actual": given.at_bayes(priors),
            "ape_pav": (priors, least),
        }
        if best.gamma == 0.0:
            accepted = priors + best.delta >= 0.0
            drawn["ape_affine"] = priors, _error_rate(priors, ~accepted, accepted)
        elif best.gamma == math.inf:
            drawn["ape_affine"] = priors, least
        elif best.gamma > 0.0:
            drawn["ape_affine"] = given.mapped(best.gamma, best.delta).at_bayes(priors)
        for name, (x, y) in drawn.items():
            yield Curve(population.condition.name, name, -x, x, y)


def _error_rate(prior_log_odds: F64, p_miss: F64 | Bool, p_fa: F64 | Bool) -> F64:
    """P_tar P_miss + (1 - P_tar) P_fa."""
    p_tar, other = (
        np.array([sigmoid(sign * x) for x in prior_log_odds.ravel().tolist()]).reshape(prior_log_odds.shape)
        for sign in (1, -1)
    )
    rate: F64 = p_tar * p_miss + other * p_fa
    return rate
