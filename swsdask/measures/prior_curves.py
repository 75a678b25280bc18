"""Curves over priors: empirical cross entropy (ECE) and applied probability of error (APE).

Empirical cross entropy (ECE): the information in scores at operating points other than the evaluation's
--------------------------------------------------------------------------------------------------------
C_xe (`measures.cross_entropy`, Eq. 43 of the 2013 measures document) in bits as a function of x = logit(P_tar), for
x = -10, -9.75 .. 10 and for the evaluation's operating point. The threshold of a point is the Bayes threshold -x.

- "ece_default": the scores are 0, which is the prior entropy (Eq. 39).
- "ece_actual": the scores as they are. Given non-target trials are taken as in `measures.calibration`.
- "ece_affine": mapped by the affine map that is best at the evaluation's operating point (gamma, delta of Eq. 44).
- "ece_pav": mapped by the best rising map, which is the same at every prior.

Where "ece_actual" lies above "ece_default" the scores do harm. A condition without trials of both classes has no
curves. (Ramos and Gonzalez-Rodriguez 2013, "Reliable support: measuring calibration of likelihood ratios".)

Applied probability of error (APE): how often decisions at the Bayes threshold are wrong
----------------------------------------------------------------------------------------
At the prior log-odds x = logit(P_tar), with costs of 1, the Bayes threshold for log-likelihood ratios is -x, and the
error rate there is P_tar P_miss + (1 - P_tar) P_fa. The rates pool the trials of a condition, imputed ones too
(`measures.cross_entropy`), as C_xe does. x runs over the grid of `measures.prior_curves`.

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
from functools import lru_cache
from typing import Self

import numpy as np

from swsdask.kernels.entropy import logistic_cost, softplus
from swsdask.kernels.sums import window_sums
from swsdask.measures import cross_entropy, sweep
from swsdask.measures.calibration import Affine, Blocks, affine, pooled_blocks
from swsdask.measures.cross_entropy import Censored, ScoreShares, censored, prior_entropy, sigmoid
from swsdask.measures.measure import Curve, Population, Scored
from swsdask.measures.sweep import BAYES_NEEDS, Sweep, errors_at_bayes, threshold_sweep, with_imputed
from swsdask.model.trials import F64, I64, Bool
from swsdask.statistics.moments import Moments
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = tuple(dict.fromkeys((*cross_entropy.NEEDS, *sweep.NEEDS, *BAYES_NEEDS, Moments)))
"""The statistics without which there are no curves."""

_GRID = np.arange(-40, 41) / 4


def _with_both_classes(scored: Scored) -> Iterator[tuple[Population, Censored, Affine, Blocks]]:
    """The populations that have curves, each with its trials, its affine map and its isotonic blocks."""
    for population in scored.populations:
        trials = censored(scored, population)
        if trials.defined:
            yield population, trials, affine(scored, population), pooled_blocks(scored, population)[1]


def _cross_entropy(scored: Scored) -> Iterator[Curve]:
    """The four curves of every condition, from the lowest prior to the highest."""
    priors = priors_of(scored.reference.prior_log_odds)
    for population, trials, fitted, blocks in _with_both_classes(scored):
        costs = {
            "ece_default": _prior_entropies(scored.reference.prior_log_odds),
            "ece_actual": np.full(len(priors), np.inf) if fitted.infinite else costs_over_priors(fitted.scores, priors),
            "ece_affine": _mapped_costs(fitted, priors),
            "ece_pav": blocks.costs(trials.n_target, trials.n_nontarget, priors.tolist()),
        }
        for name, cost in costs.items():
            with np.errstate(over="ignore"):
                bits = np.array(cost) / math.log(2.0)
            yield Curve(population.condition.name, name, -priors, priors, bits)


@lru_cache(maxsize=2)
def priors_of(prior_log_odds: float) -> F64:
    """The prior log-odds at which curves have points, ascending; that of the evaluation is one."""
    priors: F64 = np.union1d(_GRID, [prior_log_odds])
    priors.flags.writeable = False
    return priors


@lru_cache(maxsize=2)
def _prior_entropies(prior_log_odds: float) -> F64:
    return np.array([prior_entropy(x) for x in priors_of(prior_log_odds).tolist()])


def _mapped_costs(fitted: Affine, priors: F64) -> F64:
    """The costs after the best map; where gamma is infinite, of the score that the separated classes share."""
    best = fitted.best_of_standard
    if math.isfinite(best.gamma):
        return costs_over_priors(fitted.standard, priors, best.gamma, best.delta)
    shared = fitted.separation.rising if best.gamma > 0.0 else fitted.separation.falling
    return np.array([0.0 if shared is None else shared.cost(x) for x in priors.tolist()])


def costs_over_priors(scores: ScoreShares, priors: F64, gamma: float = 1.0, delta: float = 0.0) -> F64:
    """C of gamma s + delta in nats, as `ScoreShares.cost`, at many prior log-odds: float64.

    softplus(x + eta) of the x near a grid point b is Taylor's series about b + eta, up to the fifth power of x - b. The
    points are 1/32 apart, so what is left out is below 1e-14 of the cost. With eta on the grid too, the derivatives are
    computed once for all points and priors: a cost is a sum over points, however many scores there are.
    """
    on_grid = priors * _PER_UNIT == np.rint(priors * _PER_UNIT)
    found = np.array([0.0 if known else scores.cost(x, gamma, delta) for x, known in zip(priors, on_grid, strict=True)])
    for shares, sign in ((scores.target, -1), (scores.nontarget, 1)):
        with np.errstate(over="ignore"):
            x = sign * (gamma * shares.score + delta)
        near = np.abs(x) < _FARTHEST
        steps = np.rint(sign * priors[on_grid] * _PER_UNIT).astype(np.int64)
        total = _costs_of_near(x[near], shares.share[near], steps)
        far, share = x[~near], shares.share[~near]
        if len(far):
            total += [logistic_cost(far, share, 1.0, step / _PER_UNIT) for step in steps.tolist()]
        found[on_grid] += [sigmoid(-sign * eta) for eta in priors[on_grid].tolist()] * total
    return found


_PER_UNIT = 32.0
_FARTHEST = 64.0


def _costs_of_near(x: F64, share: F64, steps: I64) -> F64:
    """The sums of share softplus(x + step / 32), |x| < 64, for every step."""
    if len(x) == 0 or len(steps) == 0:
        return np.zeros(len(steps))
    point = np.rint(x * _PER_UNIT).astype(np.int64)
    first = int(point.min())
    away = x - point / _PER_UNIT
    terms = [share]
    for power in range(1, 6):
        terms.append(terms[-1] * away / power)
    moments = np.array([np.bincount(point - first, term) for term in terms])
    lowest, n_points = int(steps.min()), moments.shape[1]
    derivatives = _softplus_derivatives(np.arange(first + lowest, first + n_points + steps.max()) / _PER_UNIT)
    return window_sums(moments, derivatives, steps - lowest)


def _softplus_derivatives(x: F64) -> F64:
    """Softplus and its first five derivatives: float64 [6, n]."""
    small = np.exp(-np.abs(x))
    p = np.where(x >= 0.0, 1.0, small) / (1.0 + small)
    slope = small / (1.0 + small) ** 2
    bend = slope * np.where(x >= 0.0, small - 1.0, 1.0 - small) / (1.0 + small)
    return np.stack([softplus(x), p, slope, bend, slope * (1.0 - 6.0 * slope), bend * (1.0 - 12.0 * slope)])


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

    def with_bayes(self, scored: Scored, population: Population, trials: Censored) -> Decisions:
        """With the evaluation's Bayes threshold, which is no rung: its trials are counted apart."""
        threshold = scored.weights.bayes_threshold
        at = int(np.searchsorted(self.threshold, threshold))
        if at == 0 or self.threshold[at] == threshold:
            return self
        misses, false_alarms = (errors[population.queries].sum() for errors in errors_at_bayes(scored, population))
        if trials.score >= threshold:
            misses -= trials.imputed_target.sum()
            false_alarms += trials.imputed_nontarget.sum()
        rates = threshold, misses / trials.n_target, false_alarms / trials.n_nontarget
        columns = self.threshold, self.p_miss, self.p_fa
        return Decisions(*(np.insert(column, at, value) for column, value in zip(columns, rates, strict=True)))

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


def _bayes_error(scored: Scored) -> Iterator[Curve]:
    """The curves of every condition, from the lowest prior to the highest."""
    priors = priors_of(scored.reference.prior_log_odds)
    for population, trials, fitted, blocks in _with_both_classes(scored):
        best = fitted.best
        least = Decisions.of_blocks(blocks, trials).least(priors)
        given = Decisions.of(with_imputed(threshold_sweep(scored, population), population, trials), trials)
        given = given.with_bayes(scored, population, trials)
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


def curves(scored: Scored) -> Iterator[Curve]:
    """All of these curves, of every condition."""
    yield from _cross_entropy(scored)
    yield from _bayes_error(scored)
