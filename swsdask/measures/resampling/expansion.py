"""The least cross entropy of many replicates at once, from one expansion of its cost.

The best affine map of a replicate lies near that of the evaluation. With x = gamma s + delta + eta of the latter, any
map near it is (1 + a) x + b, and the cost of a trial (`measures.logistic_fit`) is Taylor's series of softplus about x,

    softplus(x + (a x + b)) = sum over i, j of a^i b^j (i + j choose i) x^i t_(i + j)(x),   t_n = softplus^(n) / n!

A target costs x + a x + b less. So the cost of all trials of a query is a polynomial in a and b, that of a replicate is
the sum of these polynomials times the weights of the queries, and Newton's steps seek its minimum.

softplus has no singularity nearer to x than sqrt(x^2 + pi^2), and |a x + b| is at most rho times that, with
rho = sqrt(a^2 + (b / pi)^2), by the inequality of Cauchy and Schwarz. So what is left out falls like rho^ORDER for
every trial, however far its score, and Cauchy's estimate bounds it: with `_SHARE` of that distance as the radius, by
max |softplus| on the circle times q^(ORDER + 1) / (1 - q), q = rho / `_SHARE`. A replicate for which the bound is not
small enough, or for which Newton's steps do not end, has to be fitted in full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from swsdask.kernels.resampling import weigh
from swsdask.kernels.softplus import softplus
from swsdask.model.trials import F64, I64, Bool

ORDER = 18
"""Of the highest derivative."""

_SHARE = 0.9
_LEFT_OUT = 1e-14
"""What may be left out, in nats."""

_STEPS = 12
_NEAR = 1e-26
"""Squares of Newton's decrement, in nats, below which the minimum is found."""

_PAIRS = [(i, n - i) for n in range(ORDER + 1) for i in range(n + 1)]
_A, _B = np.array(_PAIRS).T[:, :, np.newaxis]


@dataclass(frozen=True, eq=False)
class TrialCosts:
    """The polynomials of the costs of some trials, float64 [n_pairs, n_queries], and the sums of a bound of |softplus|.

    The bound holds on the circles that Cauchy's estimate takes.
    """

    coefficients: F64
    bound: F64

    @classmethod
    def of(cls, x: F64, weight: F64, query: I64, n_queries: int, *, target: bool) -> TrialCosts:
        """Build from equally long columns: the x of trials, how many each row represents, and their query."""
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
        """Both with the weights of each replicate: [n_pairs, n_replicates] and [n_replicates]."""
        found = np.empty((len(_PAIRS) + 1, weights.shape[1]))
        weigh(np.concatenate([self.coefficients, self.bound[np.newaxis]]), weights, found)
        return found[:-1], found[-1]


def _derivatives(x: F64) -> list[F64]:
    """The derivatives of softplus by order, itself first, each over the factorial of its order.

    The sigmoid s fulfils s' = s - s^2, which gives its series term by term; it is taken at -|x|, where it is small.
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
    """The least value of each polynomial near (0, 0), and for which of them it is known well enough.

    `coefficients` float64 [n_pairs, n] are divided by the numbers of trials as the cost is, and so is `bound` [n].
    """
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
            if not (decrement > _NEAR).any():
                break
            a, b = a + step_a, b + step_b
        value = _derived(coefficients, _powers(a), _powers(b), 0, 0)
        q = np.sqrt(a**2 + (b / math.pi) ** 2) / _SHARE
        known = (bound * q ** (ORDER + 1) <= _LEFT_OUT * (1 - q)) & (np.abs(decrement) <= _NEAR) & (determinant > 0)
    return value, known


def _powers(x: F64) -> F64:
    return np.cumprod(np.concatenate([np.ones((1, len(x))), np.repeat(x[np.newaxis], ORDER, axis=0)]), axis=0)


def _derived(coefficients: F64, powers_a: F64, powers_b: F64, by_a: int, by_b: int) -> F64:
    """The derivative of the polynomials, so many times by a and by b."""
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
