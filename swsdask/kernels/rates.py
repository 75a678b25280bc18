"""Counts of trials by decision, and error rates of all queries as one threshold moves."""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int16, int32, int64, types, void
from numba.core.typing.templates import Signature

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part
from swsdask.model.trials import F64, I8, I16, I32, I64

_DECISIONS = void(
    column(int64),
    column(int32),
    column(int16),
    column(float64),
    column(int8),
    int64[:, :, ::1],
    float64[:, ::1],
    float64[:, ::1],
    float64[:, ::1],
    float64[:, ::1],
)
_ABOVE, _BELOW = 2**63 - 1, -(2**63)
_INFINITE = 0x7FF0000000000000


@part(int64(int64), **NOTHING_NEW)
def _key(bits: int) -> int:
    """Map the bits of a score to an integer that sorts as the score does, and back."""
    return bits ^ ((bits >> 63) & _ABOVE)


@kernel(_DECISIONS)
def count_decisions(
    bounds: I64,
    query: I32,
    group: I16,
    score: F64,
    decision: I8,
    counts: I64,
    min_yes: F64,
    max_no: F64,
    lowest: F64,
    highest: F64,
) -> None:
    """Add trials to `counts` int64 [n_queries, n_groups, 3] by their decision (its last place: none), and widen the
    extreme scores, float64 [n_queries, n_groups].

    `bounds` int64 [n_stretches + 1] cuts `score` and `decision`; `query` and `group` are [n_stretches]. No stretch is
    empty. Extremes are looked for among integers, of which the compiler takes several at once. Raises `ValueError` for
    a score that is NaN, which lies beyond infinity then, and for a decision that is none of 1, 0 and -1: nobody need
    have looked at them before.
    """
    extremes = np.empty(4, np.float64)
    bits = extremes.view(np.int64)
    for stretch in range(len(query)):
        begin, end = bounds[stretch], bounds[stretch + 1]
        scores, decisions = score[begin:end].view(np.int64), decision[begin:end]
        yes, no, low, high = _ABOVE, _BELOW, _ABOVE, _BELOW
        for row in range(len(scores)):
            key, d = _key(scores[row]), decisions[row]
            low = min(low, key)
            high = max(high, key)
            yes = min(yes, key if d == 1 else _ABOVE)
            no = max(no, key if d == 0 else _BELOW)
        if high > _INFINITE or low < ~_INFINITE:
            raise ValueError("a score is NaN")
        n_yes, n_no, n_none = 0, 0, 0
        for d in decisions:
            n_yes += d == 1
            n_no += d == 0
            n_none += d == -1
        if n_yes + n_no + n_none != end - begin:
            raise ValueError("a decision is none of YES, NO and none")
        q, g = query[stretch], group[stretch]
        counts[q, g, 0] += n_no
        counts[q, g, 1] += n_yes
        counts[q, g, 2] += n_none
        bits[0], bits[1], bits[2], bits[3] = _key(yes), _key(no), _key(low), _key(high)
        if n_yes > 0:
            min_yes[q, g] = min(min_yes[q, g], extremes[0])
        if n_no > 0:
            max_no[q, g] = max(max_no[q, g], extremes[1])
        lowest[q, g] = min(lowest[q, g], extremes[2])
        highest[q, g] = max(highest[q, g], extremes[3])


def _signature(number: types.Type) -> Signature:
    counts = types.Array(number, 2, "C", readonly=True)
    return void(
        counts, column(int64), column(int64), column(int64), column(int64), column(int64), int64,
        int64[::1], int64[::1], float64[::1], float64[::1],
    )  # fmt: skip


@kernel(_signature(int32), _signature(int64))
def add_rates(
    counts: I32 | I64,
    level_of_line: I64,
    rung: I64,
    level_of_hit: I64,
    levels: I64,
    n_targets: I64,
    n_trials: int,
    hits: I64,
    false_alarms: I64,
    p_miss: F64,
    p_fa: F64,
) -> None:
    """Add, level by level, what is accepted at every rung to `hits` and `false_alarms`, and to `p_miss` and `p_fa`
    (all [n_rungs]) the misses / N_act and the false alarms / (N - N_act), where these are positive.

    `counts` [n_lines, n_rungs] are the trials of a slot (see `statistics.ladder`), `rung` and `level_of_hit` [n_hits]
    the hits. `levels` are the distinct N_act and `n_targets` the targets of all queries that have so many; what is of
    level -1 does not count.
    """
    n = len(hits)
    every, new_hits = np.empty((2, n), np.int64)
    for level in range(len(levels)):
        every[:] = 0
        new_hits[:] = 0
        for line in range(len(level_of_line)):
            if level_of_line[line] == level:
                for r in range(n):
                    every[r] += counts[line, r]
        for hit in range(len(rung)):
            if level_of_hit[hit] == level:
                new_hits[rung[hit]] += 1
        above, accepted = 0, 0
        for r in range(n - 1, -1, -1):
            accepted += new_hits[r]
            new_hits[r] = accepted
            here = every[r]
            every[r] = above - accepted
            above += here
        for r in range(n):
            hits[r] += new_hits[r]
            false_alarms[r] += every[r]
        n_act, n_nontarget = levels[level], n_trials - levels[level]
        if n_act > 0:
            for r in range(n):
                p_miss[r] += (n_targets[level] - new_hits[r]) / n_act
        if n_nontarget > 0:
            for r in range(n):
                p_fa[r] += every[r] / n_nontarget
