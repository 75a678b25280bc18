"""Measures of many replicates at once. A replicate is an evaluation in which a query counts as often as it was drawn.

Replicates lie side by side, so that one vector operation computes several. The tables of a few dozen replicates fit
into the processor's caches. The order of additions does not depend on the number of replicates.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types, void

from swsdask.kernels.compilation import column, kernel, part
from swsdask.kernels.ladder import cut_rungs, find_slots
from swsdask.model.trials import F64, I32, I64


def _table(kind: types.Type) -> types.Array:
    return types.Array(kind, 2, "C", readonly=True)


@kernel(void(column(float64), column(float64), int32[::1]))
def find_ladder_slots(score: F64, scores: F64, slot: I32) -> None:
    """Write the slot of every score among the rungs `scores` (see `kernels.ladder`) into `slot`."""
    find_slots(score, cut_rungs(scores), slot)


@part(error_model="numpy")
def _subtract(begin: int, end: int, query: I32, count: F64, table: F64, sums: F64) -> None:
    """Subtract `count` times the table row of the query from `sums`, for each cell begin .. end, four at a time."""
    n, cell = len(sums), begin
    while cell + 4 <= end:
        a, b, c, d = count[cell], count[cell + 1], count[cell + 2], count[cell + 3]
        of_a, of_b = table[query[cell]], table[query[cell + 1]]
        of_c, of_d = table[query[cell + 2]], table[query[cell + 3]]
        for r in range(n):
            sums[r] -= (a * of_a[r] + b * of_b[r]) + (c * of_c[r] + d * of_d[r])
        cell += 4
    while cell < end:
        a, of_a = count[cell], table[query[cell]]
        for r in range(n):
            sums[r] -= a * of_a[r]
        cell += 1


_SUMS = void(_table(float64), _table(float64), float64[:, ::1])


@part(_SUMS, error_model="numpy")
def _weigh(values: F64, weights: F64, sums: F64) -> None:
    n_queries, n = weights.shape
    for line in range(len(values)):
        value, total = values[line], sums[line]
        total[:] = 0.0
        q = 0
        while q + 4 <= n_queries:
            a, b, c, d = value[q], value[q + 1], value[q + 2], value[q + 3]
            of_a, of_b, of_c, of_d = weights[q], weights[q + 1], weights[q + 2], weights[q + 3]
            for r in range(n):
                total[r] += (a * of_a[r] + b * of_b[r]) + (c * of_c[r] + d * of_d[r])
            q += 4
        while q < n_queries:
            a, of_a = value[q], weights[q]
            for r in range(n):
                total[r] += a * of_a[r]
            q += 1


@kernel(_SUMS)
def weigh(values: F64, weights: F64, sums: F64) -> None:
    """Write the weighted sums over queries, `values` times `weights`, into `sums` [n, n_replicates].

    `values` is float64 [n, n_queries] and `weights` float64 [n_queries, n_replicates].
    """
    _weigh(values, weights, sums)


_CELLS = (column(int64), column(int32), column(float64))

_AREAS = void(
    _table(float64), _table(float64), *_CELLS, *_CELLS, *_CELLS, boolean, boolean, boolean, boolean, float64[::1]
)


@kernel(_AREAS, error_model="numpy")
def precision_areas(
    weights: F64,
    every: F64,
    of_hits: I64,
    hit_query: I32,
    hits: F64,
    of_tied: I64,
    tied_query: I32,
    tied: F64,
    of_between: I64,
    between_query: I32,
    between: F64,
    grouped: bool,
    worst: bool,
    highest: bool,
    trapezoid: bool,
    areas: F64,
) -> None:
    """Write R times AP of one ranking of all trials into `areas`, float64 [n_replicates].

    `weights` is float64 [n_queries, n_replicates]. `every` float64 [2, n_queries] counts the hits of each query and its
    false alarms in all cells. Rungs are the scores of hits, ascending. Rung i has the cells of_hits[i] ..
    of_hits[i + 1], each with a `hit_query` and its number of `hits`. It has similar cells for the false alarms `tied`
    with it, and for those `between` it and the next rung. If `grouped`, equal scores are one step. Otherwise each hit
    is one step, and the tied false alarms come before all hits of the rung (`worst`) or after them. `highest` and
    `trapezoid` are the interpolation and the integration of `measures.average_precision`.

    Rungs are visited from the last to the first of the ranking, so that the highest later precision is known. Counts
    are whole numbers below 2^53, so precisions are the first numbers that are rounded.
    """
    n = len(areas)
    totals = np.empty((2, n))
    _weigh(every, weights, totals)
    found, false_alarms = totals[0], totals[1]
    new, above, behind = np.empty(n), np.empty(n), np.zeros(n)
    areas[:] = 0.0
    for rung in range(len(of_hits) - 1):
        new[:] = 0.0
        _subtract(of_hits[rung], of_hits[rung + 1], hit_query, hits, weights, new)
        above[:] = false_alarms
        _subtract(of_tied[rung], of_tied[rung + 1], tied_query, tied, weights, above)
        for r in range(n):
            n_new = -new[r]
            first = n_new if grouped else 1.0
            in_front = false_alarms[r] if grouped or worst else above[r]
            in_front_before = above[r] if grouped else in_front
            left = n_new
            while left > 0.0:
                precision = found[r] / (found[r] + in_front)
                recalled = found[r] - first
                before = recalled / (recalled + in_front_before) if recalled + in_front_before > 0.0 else np.nan
                if highest:
                    behind[r] = max(behind[r], precision)
                    precision = behind[r]
                    before = precision if before < precision else before
                if trapezoid and before == before:
                    precision = (before + precision) / 2
                areas[r] += first * precision
                found[r] = recalled
                left -= first
            false_alarms[r] = above[r]
        _subtract(of_between[rung], of_between[rung + 1], between_query, between, weights, false_alarms)


_DRAWN = (_table(float64), column(float64), column(float64), column(float64), column(float64))
_ABOVE = (_table(float64), _table(float64), column(int64))


@kernel(void(*_DRAWN, *_ABOVE, *_CELLS, *_CELLS, column(int64), boolean, float64[::1]), error_model="numpy")
def best_twv(
    drawn: F64,
    per_hit: F64,
    per_false_alarm: F64,
    n_target: F64,
    n_nontarget: F64,
    hits_above: F64,
    false_alarms_above: F64,
    bounds: I64,
    of_hits: I64,
    hit_query: I32,
    hits: F64,
    of_false_alarms: I64,
    false_alarm_query: I32,
    false_alarms: F64,
    first: I64,
    reject_all: bool,
    best: F64,
) -> None:
    """Write the highest TWV over all thresholds into `best`, float64 [n_replicates].

    `drawn` float64 [n_queries, n_replicates] is how often each query is drawn. `n_target` and `n_nontarget` count the
    drawn queries that have targets and non-targets. A hit of a query that is drawn once adds `per_hit` / `n_target`; a
    false alarm subtracts `per_false_alarm` / `n_nontarget`. Levels are the thresholds in the order of descending
    scores. Level i has the cells of_hits[i] .. of_hits[i + 1], each with a `hit_query` and its number of `hits`, and
    similar cells for false alarms. `bounds` int64 [n_blocks + 1] cuts levels into blocks. `hits_above` and
    `false_alarms_above` float64 [n_blocks + 1, n_queries] are the counts before each bound. Without `reject_all`, a
    threshold has to accept a trial if there is any: only level `first` [n_replicates] and later levels are considered.

    Within a block, TWV is at most the value with all hits of the block and none of its false alarms. Only blocks for
    which this bound exceeds the best known value are examined. They lie around the maximum. Skipped blocks change the
    result by at most a rounding error.
    """
    n_bounds, n = len(bounds), len(best)
    gain, loss = np.empty((n_bounds, n)), np.empty((n_bounds, n))
    added, taken = np.empty_like(drawn), np.empty_like(drawn)
    for q in range(len(drawn)):
        for r in range(n):
            added[q, r] = drawn[q, r] * per_hit[q] / n_target[r]
            taken[q, r] = drawn[q, r] * per_false_alarm[q] / n_nontarget[r]
    _weigh(hits_above, added, gain)
    _weigh(false_alarms_above, taken, loss)
    highest = np.full(n, 0.0 if reject_all else -np.inf)
    for bound in range(n_bounds):
        for r in range(n):
            if bounds[bound] > first[r]:
                highest[r] = max(highest[r], gain[bound, r] - loss[bound, r])
    value = np.empty(n)
    for block in range(n_bounds - 1):
        wanted = False
        for r in range(n):
            wanted |= gain[block + 1, r] - loss[block, r] > highest[r]
        if not wanted:
            continue
        for r in range(n):
            value[r] = gain[block, r] - loss[block, r]
        for level in range(bounds[block], bounds[block + 1]):
            for cell in range(of_hits[level], of_hits[level + 1]):
                number, of_query = hits[cell], added[hit_query[cell]]
                for r in range(n):
                    value[r] += number * of_query[r]
            _subtract(
                of_false_alarms[level],
                of_false_alarms[level + 1],
                false_alarm_query,
                false_alarms,
                taken,
                value,
            )
            for r in range(n):
                if level >= first[r]:
                    highest[r] = max(highest[r], value[r])
    for r in range(n):
        best[r] = highest[r] if highest[r] > -np.inf else 0.0
