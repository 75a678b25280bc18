"""C_xe, C_nxe and C_nxe min with weights of queries.

Given and imputed trials of a query that is drawn k times count k times. The score of imputed trials is the lowest score
of the queries that were drawn and of those that are not resampled, unless a setting fixes it. The prior is that of the
evaluation. The best map of a replicate is searched near that of the evaluation, by the expansion below; if that is not
accurate enough, it is fitted like the map of the evaluation.

The least cross entropy of many replicates at once follows from one expansion of the cost, since the best affine map of
a replicate lies near that of the evaluation. With x = gamma s + delta + eta of the latter, any map near it is
(1 + a) x + b, and the cost of a trial (`measures.cross_entropy`) is the Taylor series of softplus about x,

    softplus(x + (a x + b)) = sum over i, j of a^i b^j (i + j choose i) x^i t_(i + j)(x),   t_n = softplus^(n) / n!

A target costs x + a x + b less. So the cost of all trials of a query is a polynomial in a and b, that of a replicate is
the sum of these polynomials times the weights of the queries, and Newton's method finds its minimum.

softplus has no singularity nearer to x than sqrt(x^2 + pi^2), and |a x + b| is at most rho times that, with
rho = sqrt(a^2 + (b / pi)^2), by the Cauchy-Schwarz inequality. So the truncation error falls like rho^ORDER for every
trial, however far its score, and Cauchy's estimate bounds it: with `_SHARE` of that distance as the radius, by
max |softplus| on the circle times q^(ORDER + 1) / (1 - q), q = rho / `_SHARE`. A replicate is fitted in full if its
bound is not small enough, or if Newton's method does not converge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from swsdask.kernels.entropy import softplus
from swsdask.kernels.resampling import weigh
from swsdask.measures.calibration import fit_pool
from swsdask.measures.cross_entropy import Censored, class_costs, mean_cost
from swsdask.measures.logistic_fit import NOTHING, Fit, ScoreShares, Separation, Shares, prior_entropy, sigmoid
from swsdask.measures.measure import Population, Scored
from swsdask.measures.resampling.drawn import SIDE_BY_SIDE, TrialPool, drawn_queries, places
from swsdask.model.samples import Sample, unweighted
from swsdask.model.trials import F64, I32, I64, Bool, Condition
from swsdask.model.units import INFINITE
from swsdask.statistics.counts import Counts, stratum_numbers
from swsdask.statistics.entropy import Entropy
from swsdask.statistics.ladder import Hits
from swsdask.statistics.moments import Bins, WeighedBins, Zoom, quadrature
from swsdask.statistics.resampling import NontargetEnds, StratumMoments, stratum_bins
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True, eq=False)
class CrossEntropies:
    """C_xe over `unit` nats of one system in one condition: `target` and `nontarget` are the costs of given trials."""

    pool: TrialPool
    target: F64
    nontarget: F64
    prior_log_odds: float
    unit: float

    @property
    def value(self) -> float:
        """The measure."""
        return unweighted(self, len(self.target))

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate; NaN without trials of a class."""
        values = np.full(weights.shape[1], np.nan)
        for chosen, trials in self.pool.replicates(weights):
            own = weights[:, chosen]
            with np.errstate(over="ignore"):
                costs = (_weighed(own, self.target), _weighed(own, self.nontarget))
                values[chosen] = mean_cost(trials, *costs, self.prior_log_odds) / self.unit
        return values


def _weighed(weights: I32, costs: F64) -> F64:
    """Return sums over queries, in their order; infinite costs of queries that were not drawn do not count."""
    sums = np.zeros(weights.shape[1])
    for weight, cost in zip(weights, costs.tolist(), strict=True):
        sums += weight * cost if math.isfinite(cost) else np.where(weight > 0, cost, 0.0)
    return sums


class ResampledCrossEntropy:
    """cxe, cnxe."""

    names: ClassVar[tuple[str, ...]] = ("cxe", "cnxe")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits, Entropy)

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return both measures of one condition."""
        queries = drawn_queries(scored, population)
        eta = scored.reference.prior_log_odds
        target, nontarget = (side.by_query(population.condition.groups)[queries] for side in class_costs(scored))
        pool = TrialPool.of(scored, population, queries)
        units = {"cxe": math.log(2.0), "cnxe": prior_entropy(eta)}
        return {name: CrossEntropies(pool, target, nontarget, eta, unit) for name, unit in units.items()}


@dataclass(frozen=True, eq=False)
class AffineFits:
    """C_nxe min of one system in one condition, with a new best map in every replicate.

    `hit` are the scores of given targets and `query_of_hit` their queries; `nontargets` pools the given non-targets in
    bins about `zoom`. The columns `end`, `n_end`, `query_of_end` are the lowest and the highest score of a query's
    non-targets, the number of trials with this score, and the query.
    """

    pool: TrialPool
    hit: F64
    query_of_hit: I64
    nontargets: WeighedBins
    zoom: Zoom
    end: F64
    n_end: I64
    query_of_end: I64
    prior_log_odds: float
    nonnegative: bool

    @property
    def value(self) -> float:
        """The measure."""
        return unweighted(self, len(self.pool.lowest))

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate; NaN without trials of a class."""
        values = np.full(weights.shape[1], np.nan)
        unit = prior_entropy(self.prior_log_odds)
        for chosen, trials in self.pool.replicates(weights):
            costs, known = self._near(trials, weights[:, chosen])
            values[chosen[known]] = costs[known] / unit
            for number in np.flatnonzero(~known).tolist():
                own = Censored(trials.score, *(column[[number]] for column in trials.columns))
                if own.defined:
                    values[chosen[number]] = self._fit(own, weights[:, chosen[number]], self._whole).cost / unit
        return values

    @cached_property
    def _whole(self) -> Fit:
        """The best map of the evaluation."""
        every = np.ones((len(self.pool.lowest), 1), np.int32)
        ((_, trials),) = self.pool.replicates(every)
        return self._fit(trials, every[:, 0], NOTHING) if trials.defined else NOTHING

    @np.errstate(divide="ignore", over="ignore", invalid="ignore")
    def _near(self, trials: Censored, weights: I32) -> tuple[F64, Bool]:
        """Return the least cost of replicates whose imputed trials have one score, and whether it is known for each.

        It is not known if something overflows.
        """
        costs, known = np.empty(weights.shape[1]), np.zeros(weights.shape[1], np.bool_)
        if self._given is None:
            return costs, known
        score = np.array([(trials.score - self.zoom.centre) / self.zoom.unit])
        numbers = (trials.target, trials.nontarget), (trials.imputed_target, trials.imputed_nontarget)
        for begin in range(0, weights.shape[1], SIDE_BY_SIDE):
            own = slice(begin, begin + SIDE_BY_SIDE)
            times = np.ascontiguousarray(weights[:, own], np.float64)
            coefficients: F64 = np.zeros(1)
            bound: F64 = np.zeros(1)
            for side, (given, n_trials, imputed) in enumerate(zip(self._given, *numbers, strict=True)):
                at_score = TrialCosts.of(self._x(score), np.ones(1), np.zeros(1, np.int64), 1, target=side == 0)
                share = sigmoid((1, -1)[side] * self.prior_log_odds) / n_trials[own].astype(np.float64)
                for part, weight in ((given, times), (at_score, imputed[np.newaxis, own].astype(np.float64))):
                    polynomials, bounds = part.weighed(np.ascontiguousarray(weight))
                    coefficients, bound = coefficients + polynomials * share, bound + bounds * share
            costs[own], known[own] = least_costs(coefficients, bound)
        return costs, known

    @cached_property
    def _given(self) -> tuple[TrialCosts, TrialCosts] | None:
        """The costs of given targets and non-targets about the best map; None if that map is not a starting point."""
        gamma = self._whole.gamma
        extremes = np.abs(np.concatenate([self.hit, self.end, self.pool.lowest]))
        beyond = (extremes == INFINITE).any()
        if beyond or not math.isfinite(gamma) or gamma == 0.0 or (self.nonnegative and gamma < 0.0):
            return None
        n_queries = len(self.pool.lowest)
        z, weight, query = self.nontargets.nodes()
        hit = (self.hit - self.zoom.centre) / self.zoom.unit
        return (
            TrialCosts.of(self._x(hit), np.ones(len(hit)), self.query_of_hit, n_queries, target=True),
            TrialCosts.of(self._x(z), weight, query, n_queries, target=False),
        )

    def _x(self, z: F64) -> F64:
        """Return the posterior log-odds of standardised scores by the best map of the evaluation."""
        return self._whole.gamma * z + (self._whole.delta + self.prior_log_odds)

    def _fit(self, trials: Censored, weights: I32, start: Fit) -> Fit:
        times = weights.astype(np.int64)
        hit = Shares(self.hit, times[self.query_of_hit].astype(np.float64)).there
        points = quadrature(self.nontargets.pooled(times), self.zoom)
        separation = partial(self._separation, trials, times)
        found = fit_pool(
            hit,
            points,
            trials,
            separation,
            self.prior_log_odds,
            nonnegative=self.nonnegative,
            infinite=self._infinite(hit, trials, times),
            start=start,
        )
        return found.best_of_standard

    def _infinite(self, hit: Shares, trials: Censored, times: I64) -> bool:
        """Return whether a target has the score -inf, or a non-target inf."""
        target, nontarget = trials.imputed_target.sum() > 0, trials.imputed_nontarget.sum() > 0
        imputed = (target and trials.score == -INFINITE) or (nontarget and trials.score == INFINITE)
        given = (hit.score == -INFINITE).any() or (times[self.query_of_end][self.end == INFINITE] > 0).any()
        return bool(imputed or given)

    def _separation(self, trials: Censored, times: I64, target: Shares) -> Separation:
        count = times[self.query_of_end] * self.n_end
        score = np.append(self.end, trials.score)
        share = np.append(count, trials.imputed_nontarget.sum()) / trials.n_nontarget
        return Separation.of(ScoreShares(target, Shares(score, share).there))


class ResampledAffine:
    """cnxe_min."""

    names: ClassVar[tuple[str, ...]] = ("cnxe_min",)
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits, NontargetEnds, StratumMoments)

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return the measure of one condition."""
        reference, hits, moments = scored.reference, scored[Hits], scored[StratumMoments]
        queries = drawn_queries(scored, population)
        place, condition = places(queries, reference.n_queries), population.condition
        inside = np.flatnonzero(condition.has(hits.query, hits.group) & (place[hits.query] >= 0))
        inside = inside[np.lexsort((place[hits.query[inside]], hits.score[inside]))]
        hit = hits.score[inside]
        stratum = stratum_numbers(hits.query[inside], hits.group[inside], reference.n_groups)
        of_hits = stratum_bins(moments.zoom, np.arange(len(hit) + 1), stratum, hit)
        query, group = np.divmod(moments.bins.layer, reference.n_groups)
        chosen = condition.has(query, group) & (place[query] >= 0)
        bins = Bins(moments.bins.key[chosen], moments.bins.sums[chosen]).minus(of_hits)
        end, n_end, query_of_end = _ends(scored[NontargetEnds], condition)
        by_place = np.lexsort((end, place[query_of_end]))
        found = AffineFits(
            pool=TrialPool.of(scored, population, queries),
            hit=hit,
            query_of_hit=place[hits.query[inside]],
            nontargets=WeighedBins(bins, place[bins.layer // reference.n_groups]),
            zoom=moments.zoom,
            end=end[by_place],
            n_end=n_end[by_place],
            query_of_end=place[query_of_end[by_place]],
            prior_log_odds=reference.prior_log_odds,
            nonnegative=scored.settings.nonnegative_gamma,
        )
        return {"cnxe_min": found}


def _ends(ends: NontargetEnds, condition: Condition) -> tuple[F64, I64, I64]:
    """The distinct lowest and highest scores of strata, the number of trials with each, and their queries."""
    strata = condition.queries[:, np.newaxis] & condition.groups
    low, high = strata & (ends.n_lowest > 0), strata & (ends.n_highest > 0) & (ends.highest > ends.lowest)
    return (
        np.concatenate([ends.lowest[low], ends.highest[high]]),
        np.concatenate([ends.n_lowest[low], ends.n_highest[high]]),
        np.concatenate([np.nonzero(low)[0], np.nonzero(high)[0]]),
    )


ORDER = 18
"""The order of the highest derivative."""

_SHARE = 0.9
_LEFT_OUT = 1e-14
"""The largest error of a cost, in nats."""

_STEPS = 12
_NEAR = 1e-26
"""The search ends if the square of Newton's decrement, in nats, is below this."""

_PAIRS = [(i, n - i) for n in range(ORDER + 1) for i in range(n + 1)]
_A, _B = np.array(_PAIRS).T[:, :, np.newaxis]


@dataclass(frozen=True, eq=False)
class TrialCosts:
    """The polynomials of the costs of some trials, float64 [n_pairs, n_queries], and the sums of a bound of |softplus|.

    The bound holds on the circles of Cauchy's estimate.
    """

    coefficients: F64
    bound: F64

    @classmethod
    def of(cls, x: F64, weight: F64, query: I64, n_queries: int, *, target: bool) -> TrialCosts:
        """Build from equally long columns: the x of trials, the number of trials of each row, and their query."""
        order = np.argsort(query, kind="stable")
        x, weight = x[order], weight[order]
        there, first = np.unique(query[order], return_index=True)

        def sums(terms: F64) -> F64:
            total = np.zeros(n_queries)
            if len(first):
                total[there] = np.add.reduceat(terms, first)
            return total

        coefficients = np.empty((len(_PAIRS), n_queries))
        for n, derivative in enumerate(_derivatives(-x if target else x)):
            power = weight * derivative * ((-1) ** n if target else 1)
            for i in range(n + 1):
                coefficients[n * (n + 1) // 2 + i] = math.comb(n, i) * sums(power)
                power = power * x
        return cls(coefficients, sums(weight * (2 * np.abs(x) + 6)))

    def weighed(self, weights: F64) -> tuple[F64, F64]:
        """Return polynomials and bound with the weights of replicates: [n_pairs, n_replicates] and [n_replicates]."""
        found = np.empty((len(_PAIRS) + 1, weights.shape[1]))
        weigh(np.concatenate([self.coefficients, self.bound[np.newaxis]]), weights, found)
        return found[:-1], found[-1]


def _derivatives(x: F64) -> list[F64]:
    """Return softplus and its derivatives, by order, each divided by the factorial of its order.

    The sigmoid s satisfies s' = s - s^2, which gives its series term by term; it is taken at -|x|, where it is small.
    """
    small = np.exp(-np.abs(x))
    series = [small / (1 + small)]
    for n in range(ORDER - 1):
        product = sum(series[k] * series[n - k] for k in range(n + 1))
        series.append((series[n] - product) / (n + 1))
    turned = [np.where(x > 0, -((-1) ** n) * each, each) for n, each in enumerate(series)]
    turned[0] = np.where(x > 0, 1 / (1 + small), series[0])
    return [softplus(np.ascontiguousarray(x)), *(each / (n + 1) for n, each in enumerate(turned))]


def least_costs(coefficients: F64, bound: F64) -> tuple[F64, Bool]:
    """Return the least value of each polynomial near (0, 0), and whether it is accurate enough.

    `coefficients` float64 [n_pairs, n] are divided by the numbers of trials, like the cost, and so is `bound` [n]. The
    result for each does not depend on the others.
    """
    n = coefficients.shape[1]
    if n == 1:  # NumPy would add the terms of a single column in another order
        coefficients, bound = np.repeat(coefficients, 2, axis=1), np.repeat(bound, 2)
    a, b = np.zeros((2, coefficients.shape[1]))
    decrement = np.full_like(a, np.inf)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            powers_a, powers_b = (_powers(each) for each in (a, b))
            of_a, of_b, of_aa, of_ab, of_bb = (
                _derived(coefficients, powers_a, powers_b, *orders)
                for orders in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
            )
            determinant = of_aa * of_bb - of_ab**2
            step_a = (of_ab * of_b - of_bb * of_a) / determinant
            step_b = (of_ab * of_a - of_aa * of_b) / determinant
            decrement = -(of_a * step_a + of_b * step_b)
            moves = decrement > _NEAR
            if not moves.any():
                break
            a, b = a + np.where(moves, step_a, 0.0), b + np.where(moves, step_b, 0.0)
        value = _derived(coefficients, _powers(a), _powers(b), 0, 0)
        q = np.sqrt(a**2 + (b / math.pi) ** 2) / _SHARE
        known = (bound * q ** (ORDER + 1) <= _LEFT_OUT * (1 - q)) & (np.abs(decrement) <= _NEAR) & (determinant > 0)
    return value[:n], known[:n]


def _powers(x: F64) -> F64:
    return np.cumprod(np.concatenate([np.ones((1, len(x))), np.repeat(x[np.newaxis], ORDER, axis=0)]), axis=0)


def _derived(coefficients: F64, powers_a: F64, powers_b: F64, by_a: int, by_b: int) -> F64:
    """Return the derivative of the polynomials, `by_a` times by a and `by_b` times by b."""
    factor = np.ones_like(_A, np.float64)
    for exponent, times in ((_A, by_a), (_B, by_b)):
        for k in range(times):
            factor = factor * (exponent - k)
    there = np.flatnonzero(factor)
    terms = coefficients[there] * factor[there]
    terms *= powers_a[_A[there, 0] - by_a]
    terms *= powers_b[_B[there, 0] - by_b]
    total: F64 = terms.sum(axis=0)
    return total
