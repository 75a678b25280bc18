"""The best threshold of every replicate of an evaluation, whose queries count as often as they were drawn."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types, void

from swsdask.kernels.compilation import column, kernel
from swsdask.kernels.ladder import cut_rungs, find_slots
from swsdask.model.trials import F64, I32, I64, Bool


def _table(kind: types.Type) -> types.Array:
    return types.Array(kind, 2, "C", readonly=True)


@kernel(void(column(float64), column(float64), int32[::1]))
def find_ladder_slots(score: F64, scores: F64, slot: I32) -> None:
    """Write the slot of every score among the rungs `scores` (see `kernels.ladder`) into `slot`."""
    find_slots(score, cut_rungs(scores), slot)


_BEST = void(
    _table(int32),
    column(float64),
    column(float64),
    column(float64),
    column(float64),
    _table(float64),
    _table(float64),
    column(int64),
    column(int32),
    column(int32),
    column(int32),
    column(boolean),
    boolean,
    float64[::1],
)


@kernel(_BEST)
def best_twv(
    weights: I32,
    per_hit: F64,
    per_false_alarm: F64,
    n_target: F64,
    n_nontarget: F64,
    hits_above: F64,
    false_alarms_above: F64,
    bounds: I64,
    query: I32,
    hits: I32,
    false_alarms: I32,
    last: Bool,
    reject_all: bool,
    best: F64,
) -> None:
    """Write the highest TWV over all thresholds into `best`, float64 [n_replicates].

    `weights` int32 [n_replicates, n_queries]. A hit of a query adds `per_hit`, a false alarm takes `per_false_alarm`
    away, both [n_queries]; they are divided by `n_target` and `n_nontarget`, float64 [n_replicates] and not 0.
    Cells, in the order of descending scores, have a `query`, `hits` and `false_alarms`; `last` is set at those that a
    threshold follows. They are cut into blocks by `bounds` int64 [n_blocks + 1], each of which ends with a threshold.
    `hits_above` and `false_alarms_above` float64 [n_queries, n_blocks + 1] are those in front of each bound. Without
    `reject_all` a threshold has to accept some trial, if there is one.

    Inside a block TWV is at most what it would be with the block's hits and none of its false alarms. So only blocks
    are looked at for which this is more than the best value known: those around the maximum. Sums run in the order of
    queries and of cells, so what is skipped never shows in the result by more than a rounding.
    """
    n_queries, n_bounds = hits_above.shape
    gain, loss = np.empty(n_bounds), np.empty(n_bounds)
    of_hit, of_false_alarm = np.empty(n_queries), np.empty(n_queries)
    for replicate in range(len(best)):
        gain[:] = 0.0
        loss[:] = 0.0
        for q in range(n_queries):
            weight = weights[replicate, q]
            of_hit[q] = weight * per_hit[q] / n_target[replicate]
            of_false_alarm[q] = weight * per_false_alarm[q] / n_nontarget[replicate]
            if weight > 0:
                for bound in range(n_bounds):
                    gain[bound] += of_hit[q] * hits_above[q, bound]
                for bound in range(n_bounds):
                    loss[bound] += of_false_alarm[q] * false_alarms_above[q, bound]
        highest = 0.0 if reject_all else -np.inf
        for bound in range(n_bounds):
            if gain[bound] > 0.0 or loss[bound] > 0.0:
                highest = max(highest, gain[bound] - loss[bound])
        for block in range(n_bounds - 1):
            if gain[block + 1] - loss[block] <= highest:
                continue
            g, f = gain[block], loss[block]
            for cell in range(bounds[block], bounds[block + 1]):
                q = query[cell]
                g += hits[cell] * of_hit[q]
                f += false_alarms[cell] * of_false_alarm[q]
                if last[cell] and g - f > highest and (g > 0.0 or f > 0.0):
                    highest = g - f
        best[replicate] = highest if highest > -np.inf else 0.0
