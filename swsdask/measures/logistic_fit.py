"""The affine map of scores with the least cross entropy: a weighted logistic regression on one score.

With the prior log-odds eta and x(s) = gamma s + delta + eta, the cost in nats is (2013 measures document, Eq. 43-45)

    C(gamma, delta) = sum over targets of w softplus(-x(s)) + sum over non-targets of w softplus(x(s)),

the weights w adding up to P_tar over targets and to 1 - P_tar over non-targets. It is convex, and one of these holds:

- There is one score only: no gamma is better than gamma = 0, and the cost is the prior entropy.
- The classes are separated: no target lies below a non-target. The cost falls as gamma grows: gamma = inf. The limit is
  the cost of the trials at the one score that both classes may share, with target weight u and non-target weight v: at
  best u log((u + v) / u) + v log((u + v) / v); 0 if there is no such score. delta is not defined (NaN).
- They are separated in reverse order, no target lies above a non-target: the same with gamma = -inf.
- Else there is one minimum, and damped Newton steps from (0, 0) lead to it.

gamma < 0 means that high scores speak against an occurrence. If the map must not fall, gamma is 0 instead: by convexity
no gamma > 0 is better, and the cost is the prior entropy.

Newton's steps do not depend on the origin and the unit of scores, but their rounding does: scores of 1e8 + s lose the
digits in which s differs. So scores are standardised first. gamma is positive if the (weighted) mean of targets is the
higher one. Then targets that lie below non-targets keep gamma finite: the unit is the distance from the lowest target
to the highest non-target, the origin is the middle between them. (Median and spread of all scores would be a bad
choice: most posterior probabilities are close to 0.) A score more than 1e16 units away is moved to that distance. It is
on the right side, where it costs nothing at either place, unless gamma is practically 0. If a few trials are far away
on the wrong side, the others are close together in that unit, and gamma s and delta cancel. Therefore the search
continues from the map found so far, with a new origin: the mean of the scores weighted by their curvature, w times the
posterior times 1 minus it.

Scores are finite, like all scores that runs hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from swsdask.kernels.entropy import logistic_cost, logistic_expansion
from swsdask.kernels.entropy import sigmoid as sigmoid_kernel
from swsdask.kernels.entropy import softplus as softplus_kernel
from swsdask.model.trials import F64

_FARTHEST = 1e16
_STEPS = 1000
_SHORTENINGS = 60
_LEAST_SHARE = 2.0**-30
_DECREASE = 1e-4
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
_NEAR = 1e-24

_CENTRES, _CANCELLED = 4, 128.0
"""The number of origins that are tried, and the largest allowed gamma s at the centre of curvature."""

_MANY, _GROUP, _ROUGHLY, _FEW_STEPS = 1024, 16, 1e-4, 30
"""With more scores than `_MANY`, the search begins with groups of `_GROUP` scores, up to a precision and a number of
steps. These affect only the time."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The trials of a class: `score` float64 [n], in any order, and the `share` > 0 of them at each score."""

    score: F64
    share: F64

    @property
    def there(self) -> Shares:
        """The same, without scores that have no share."""
        used = self.share > 0.0
        return Shares(self.score[used], self.share[used])


@dataclass(frozen=True, eq=False)
class ScoreShares:
    """The distributions of the trials of both classes."""

    target: Shares
    nontarget: Shares

    def cost(self, prior_log_odds: float, gamma: float = 1.0, delta: float = 0.0) -> float:
        """Return C of gamma s + delta, in nats."""
        cost = 0.0
        for shares, sign in ((self.target, -1), (self.nontarget, 1)):
            each = logistic_cost(shares.score, shares.share, sign * gamma, sign * (delta + prior_log_odds))
            cost += sigmoid(-sign * prior_log_odds) * each
        return cost

    def standardised(self, centre: float, unit: float) -> ScoreShares:
        """(score - centre) / unit; scores far away are moved to a distance where their cost is the same."""
        with np.errstate(over="ignore"):
            return ScoreShares(
                *(
                    Shares(np.clip((shares.score - centre) / unit, -_FARTHEST, _FARTHEST), shares.share)
                    for shares in (self.target, self.nontarget)
                )
            )


class SharedScore(NamedTuple):
    """The shares of targets and of non-targets at the one score that separated classes share."""

    target: float
    nontarget: float

    def cost(self, prior_log_odds: float) -> float:
        """Return the least cost, in nats, of distinguishing the classes by their sizes alone."""
        weights = sigmoid(prior_log_odds) * self.target, sigmoid(-prior_log_odds) * self.nontarget
        return math.fsum(weight * math.log(sum(weights) / weight) for weight in weights if weight > 0.0)


@dataclass(frozen=True)
class Separation:
    """Whether the classes are separated: `rising` if no target lies below a non-target, `falling` if none above."""

    rising: SharedScore | None
    falling: SharedScore | None

    @classmethod
    def of(cls, scores: ScoreShares) -> Self:
        """Return the separation of the scores of both classes."""
        turned = (Shares(-shares.score, shares.share) for shares in (scores.target, scores.nontarget))
        return cls(_rising(scores.target, scores.nontarget), _rising(*turned))


@dataclass(frozen=True)
class Fit:
    """The best map and its cost in nats. If the classes are separated, gamma is inf or -inf, and delta NaN."""

    gamma: float
    delta: float
    cost: float

    def moved(self, centre: float, unit: float) -> Fit:
        """Return the same map for scores, if this one is for (score - centre) / unit."""
        if not math.isfinite(self.gamma):
            return self
        gamma = self.gamma / unit
        return Fit(gamma, self.delta - gamma * centre, self.cost)

    def standardised(self, centre: float, unit: float) -> Fit:
        """Return the same map for (score - centre) / unit, if this one is for scores."""
        if self is NOTHING or not math.isfinite(self.gamma):
            return NOTHING
        return Fit(self.gamma * unit, self.delta + self.gamma * centre, self.cost)


def softplus(x: float) -> float:
    """log(1 + e^x): the cost (Eq. 37) of a non-target trial with posterior log-odds x; of a target trial at -x."""
    return float(softplus_kernel(np.array([x]))[0])


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x): the probability of log-odds (Eq. 35)."""
    return float(sigmoid_kernel(np.array([x]))[0])


def prior_entropy(prior_log_odds: float) -> float:
    """Return the cost in nats of scores without information, llr = 0 for every trial: Eq. 39, but not in bits."""
    as_target = sigmoid(prior_log_odds) * softplus(-prior_log_odds)
    return as_target + sigmoid(-prior_log_odds) * softplus(prior_log_odds)


NOTHING = Fit(0.0, 0.0, math.nan)
"""The map to the prior alone. The search begins there unless a better map is known."""


def fit(
    scores: ScoreShares,
    separation: Separation,
    prior_log_odds: float,
    *,
    nonnegative: bool = False,
    start: Fit = NOTHING,
) -> Fit:
    """Return the map with the least cost; with `nonnegative`, the least for gamma >= 0.

    The search begins at `start`.
    """
    rising, falling = separation.rising, separation.falling
    nothing = Fit(0.0, 0.0, prior_entropy(prior_log_odds))
    if rising is not None and falling is not None:
        return nothing
    if rising is not None:
        return Fit(math.inf, math.nan, rising.cost(prior_log_odds))
    if falling is not None:
        return nothing if nonnegative else Fit(-math.inf, math.nan, falling.cost(prior_log_odds))
    centre, unit = _centre_and_unit(scores)
    standardised = scores.standardised(centre, unit)
    near = start.standardised(centre, unit)
    if near is NOTHING and len(scores.target.score) + len(scores.nontarget.score) > _MANY:
        grouped = _grouped(standardised.target, standardised.nontarget)
        near, _ = _minimum(grouped, prior_log_odds, near, _ROUGHLY, _FEW_STEPS)
    for _ in range(_CENTRES):
        near, mean = _minimum(standardised, prior_log_odds, near)
        if abs(near.gamma * mean) <= _CANCELLED:
            break
        centre += unit * mean
        standardised, near = scores.standardised(centre, unit), near.standardised(mean, 1.0)
    best = near.moved(centre, unit)
    return nothing if nonnegative and best.gamma < 0.0 else best


def _grouped(*classes: Shares) -> ScoreShares:
    """Return the classes, with each `_GROUP` of consecutive scores replaced by their mean.

    The best map of these means is near that of all scores, and is found in a tenth of the time.
    """
    grouped = []
    for shares in classes:
        begins = np.arange(0, len(shares.score), _GROUP)
        share = np.add.reduceat(shares.share, begins)
        grouped.append(Shares(np.add.reduceat(shares.score * shares.share, begins) / share, share))
    return ScoreShares(*grouped)


class _Expansion(NamedTuple):
    """The cost at a point (gamma, delta), in nats, with its first and second derivatives."""

    value: float
    gamma: float
    delta: float
    gamma_gamma: float
    gamma_delta: float
    delta_delta: float


def _expansion(scores: ScoreShares, prior_log_odds: float, gamma: float, offset: float) -> _Expansion:
    """Expand the cost at a point; `offset` is delta plus the prior log-odds."""
    total = np.zeros(6)
    for shares, sign in ((scores.target, -1), (scores.nontarget, 1)):
        sums = logistic_expansion(shares.score, shares.share, sign * gamma, sign * offset)
        total += sigmoid(-sign * prior_log_odds) * np.array([1, sign, sign, 1, 1, 1]) * sums
    return _Expansion(*total.tolist())


def _minimum(
    scores: ScoreShares, prior_log_odds: float, start: Fit, near: float = _NEAR, steps: int = _STEPS
) -> tuple[Fit, float]:
    """The minimum, found by Newton steps that are shortened until the cost falls, and the mean score by curvature.

    The search begins at `start`, or at the prior if the cost at `start` is too flat. It ends after `steps` steps, if
    the next one would reduce the cost by no more than the share `near`, or if rounding dominates: gamma s + offset has
    no more digits, or steps as small as the rounding of the cost alternate.
    """
    gamma, offset = start.gamma, start.delta + prior_log_odds
    here = _expansion(scores, prior_log_odds, gamma, offset)
    if not min(here.gamma_gamma, here.delta_delta) > 0.0:
        gamma, offset = 0.0, prior_log_odds
        here = _expansion(scores, prior_log_odds, gamma, offset)
    d_gamma, decrement = 0.0, math.inf
    rounding_of_sums = _ROUNDING * math.sqrt(len(scores.target.score) + len(scores.nontarget.score))
    for _ in range(steps):
        last, before = d_gamma, decrement
        d_gamma, d_offset = _newton_step(here)
        decrement = -(here.gamma * d_gamma + here.delta * d_offset)
        rounding = rounding_of_sums * max(1.0, abs(offset))
        to_and_fro = last * d_gamma <= 0.0 and before / 2 < decrement <= rounding * here.value
        if to_and_fro or decrement <= max(near, rounding * rounding) * here.value:
            break
        share = 1.0
        for _ in range(_SHORTENINGS):
            there = _expansion(scores, prior_log_odds, gamma + share * d_gamma, offset + share * d_offset)
            bound = here.value - share * _DECREASE * decrement + rounding * here.value
            if there.value <= bound and min(there.gamma_gamma, there.delta_delta) > 0.0:
                break
            rise = there.gamma * d_gamma + there.delta * d_offset
            share *= _shortened(decrement * share, there.value - here.value, rise * share)
        else:
            break
        gamma, offset, here = gamma + share * d_gamma, offset + share * d_offset, there
    return Fit(gamma, offset - prior_log_odds, here.value), here.gamma_delta / here.delta_delta


def _shortened(decrement: float, above: float, rise: float) -> float:
    """Return the share of a too long step at which the tangents at its two ends meet.

    Along the step the cost is convex: its slope is -`decrement` at the start and `rise` at the end, which lies `above`
    the start. If the cost is nearly two straight lines, for example along a step that is a million times too long, they
    meet near its minimum.
    """
    met = (rise - above) / (rise + decrement) if rise > 0.0 else 0.5
    return min(max(met, _LEAST_SHARE), 0.5)


def _newton_step(at: _Expansion) -> tuple[float, float]:
    """-H^-1 g, by completing the square in delta: with curvature as weights, by the mean and variance of the scores.

    Scores without a variance are equal in double precision: no gamma is better than another.
    """
    mean = at.gamma_delta / at.delta_delta
    variance = max(at.gamma_gamma - at.gamma_delta * mean, _ROUNDING * at.gamma_gamma)
    step_gamma = -(at.gamma - mean * at.delta) / variance if variance > 0.0 else 0.0
    return step_gamma, -at.delta / at.delta_delta - mean * step_gamma


def _centre_and_unit(scores: ScoreShares) -> tuple[float, float]:
    """Return the middle of the overlap and its width, as a power of two. The width is never 0."""
    target, nontarget = scores.target, scores.nontarget
    rises = np.sum(target.score * target.share) >= np.sum(nontarget.score * nontarget.share)
    worse, better = (nontarget, target) if rises else (target, nontarget)
    low, high = float(better.score.min()) / 2, float(worse.score.max()) / 2
    half = max(high - low, math.ulp(0.0))
    return low + high, math.ldexp(1.0, min(math.frexp(half)[1] + 1, 1023))


def _rising(target: Shares, nontarget: Shares) -> SharedScore | None:
    lowest_target = target.score.min()
    if lowest_target < nontarget.score.max():
        return None
    return SharedScore(*(float(np.sum(shares.share[shares.score == lowest_target])) for shares in (target, nontarget)))
