"""MediaEval's list of trials gone through one by one, in double arithmetic and in the order of its tool.

What the tool prints near 0, and which of several equal maxima it takes, is decided by the rounding of its sums: the
order of every addition here is part of the result.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int32, int64

from swsdask.kernels.compilation import column, kernel, several
from swsdask.model.trials import F64, I32, I64, Bool


@kernel(
    several(float64, float64)(column(int64), column(float64), column(int32), column(boolean), int64, float64),
    error_model="numpy",
)
def best_threshold(
    order: I64, score: F64, query: I32, target: Bool, n_queries: int, beta: float
) -> tuple[float, float]:
    """The highest TWV and the largest score that is rejected there; of equal values the first from below.

    `order` has the trials by ascending score. The value where everything is accepted is only taken if no other one is
    above 1 - beta.
    """
    counts = np.zeros((2, n_queries))
    for at in order:
        counts[int64(target[at]), query[at]] += 1.0
    shares = 1.0 / counts / n_queries
    p_miss, p_fa, rejected = 0.0, 1.0, -np.inf
    highest, value, threshold = 1.0 - beta, 1.0 - (0.0 + beta * 1.0), -np.inf
    for place in range(len(order)):
        at = order[place]
        if target[at]:
            p_miss += shares[1, query[at]]
        else:
            p_fa -= shares[0, query[at]]
        rejected = score[at]
        if place + 1 < len(order) and score[order[place + 1]] == rejected:
            continue
        here = 1.0 - (p_miss + beta * p_fa)
        if here > highest:
            highest, value, threshold = here, here, rejected
        elif rejected == -np.inf:
            value = here
    return value, threshold


@kernel(several(int64[::1], float64[::1])(column(boolean)), error_model="numpy")
def pooled_shares(target: Bool) -> tuple[I64, F64]:
    """Where each block after pooling adjacent violators begins, and its share of targets; trials one by one, in order.

    Blocks are joined unless the share rises, and the joined share is the lower one moved towards the upper by the
    upper's part of the trials, in floating point.
    """
    share = np.empty(len(target))
    begin = np.empty(len(target), np.int64)
    last = -1
    for row in range(len(target)):
        last += 1
        share[last], begin[last] = float64(target[row]), row
        while last > 0 and share[last - 1] >= share[last]:
            upper = float64(row + 1 - begin[last]) / float64(row + 1 - begin[last - 1])
            share[last - 1] += upper * (share[last] - share[last - 1])
            last -= 1
    return begin[: last + 1].copy(), share[: last + 1].copy()


@kernel(float64(column(float64), column(boolean), float64), error_model="numpy")
def summed_cost(llr: F64, target: Bool, prior: float) -> float:
    """The cross entropy of log-likelihood ratios in nats, added up in order; log(1 + e) is taken as it stands."""
    n_target = 0
    for row in range(len(target)):
        n_target += target[row]
    of_target = prior / float64(n_target)
    of_nontarget = (1.0 - prior) / float64(len(target) - n_target)
    prior_log_odds = math.log(prior / (1.0 - prior))
    total = 0.0
    for row in range(len(llr)):
        odds = llr[row] + prior_log_odds
        loss, weight = odds, of_nontarget
        if target[row]:
            loss, weight = -odds, of_target
        e = math.exp(loss)
        total += weight * (loss if 1.0 + e == e else math.log(1.0 + e))
    return total
