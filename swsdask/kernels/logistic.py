"""Sums over weighted scores that a logistic regression needs: its cost, and the derivatives of that.

A trial with score s costs softplus(x), x = slope s + offset, in nats. The terms of a block of rows are computed first,
several at once, as no sum makes one wait for another. Then they are added up: row r of a block to partial sum r modulo
`_LANES`, so that these too go several at once. The order of additions, and with it every bit, is the same whatever
width of vectors a machine has, and rounding errors grow with the number of blocks rather than of rows.
"""

from __future__ import annotations

import numpy as np
from numba import float64

from swsdask.kernels.compilation import column, kernel, part, several
from swsdask.kernels.softplus import BLOCK, costs_of_decays, decays
from swsdask.model.trials import F64

_LANES = 16
"""A divisor of `BLOCK`."""


@part(error_model="numpy")
def _block_sum(terms: F64, n_terms: int) -> float:
    """The sum of the first terms; those behind them, up to a multiple of `_LANES`, are set to 0."""
    padded = -(-n_terms // _LANES) * _LANES
    terms[n_terms:padded] = 0.0
    lanes = np.zeros(_LANES)
    for first in range(0, padded, _LANES):
        for lane in range(_LANES):
            lanes[lane] += terms[first + lane]
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    return total


@kernel(float64(column(float64), column(float64), float64, float64), error_model="numpy")
def cost(score: F64, weight: F64, slope: float, offset: float) -> float:
    """The sum of weight softplus(x); float64 [n] both."""
    shifted, decay, terms = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    total = 0.0
    for begin in range(0, len(score), BLOCK):
        scores, weights = score[begin : begin + BLOCK], weight[begin : begin + BLOCK]
        x = shifted[: len(scores)]
        for row in range(len(scores)):
            x[row] = slope * scores[row] + offset
        decays(x, decay)
        costs_of_decays(x, decay, terms)
        for row in range(len(scores)):
            terms[row] = weights[row] * terms[row]
        total += _block_sum(terms, len(scores))
    return total


@kernel(several(*[float64] * 6)(column(float64), column(float64), float64, float64), error_model="numpy")
def expansion(score: F64, weight: F64, slope: float, offset: float) -> tuple[float, float, float, float, float, float]:
    """The cost and its derivatives, all of them sums over rows.

    Returns
    -------
    tuple of float
        The cost; its derivatives by slope and by offset; the second ones by slope twice, by both, by offset twice.
    """
    costs, slopes, offsets = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    slopes_twice, both, offsets_twice = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    shifted, decay = np.empty(BLOCK), np.empty(BLOCK)
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for begin in range(0, len(score), BLOCK):
        scores, weights = score[begin : begin + BLOCK], weight[begin : begin + BLOCK]
        n_rows = len(scores)
        x = shifted[:n_rows]
        for row in range(n_rows):
            x[row] = slope * scores[row] + offset
        decays(x, decay)
        costs_of_decays(x, decay, costs)
        for row in range(n_rows):
            small = decay[row]
            inverse = 1.0 / (1.0 + small)
            costs[row] = weights[row] * costs[row]
            first = weights[row] * ((1.0 if x[row] >= 0.0 else small) * inverse)
            second = weights[row] * (small * inverse * inverse)
            slopes[row] = first * scores[row]
            offsets[row] = first
            moved = second * scores[row]
            slopes_twice[row] = moved * scores[row]
            both[row] = moved
            offsets_twice[row] = second
        total = (
            total[0] + _block_sum(costs, n_rows),
            total[1] + _block_sum(slopes, n_rows),
            total[2] + _block_sum(offsets, n_rows),
            total[3] + _block_sum(slopes_twice, n_rows),
            total[4] + _block_sum(both, n_rows),
            total[5] + _block_sum(offsets_twice, n_rows),
        )
    return total
