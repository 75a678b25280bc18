"""Adding up the error rates of queries as one threshold moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int32, int64, njit, types, void

from swsdask.kernels.signatures import column
from swsdask.model.trials import F64, I32, I64


def _signature(number: types.Type) -> Any:
    counts = types.Array(number, 2, "C", readonly=True)
    return void(
        counts, column(int64), column(int64), column(int64), column(int64), column(int64), int64,
        int64[::1], int64[::1], float64[::1], float64[::1],
    )  # fmt: skip


@njit([_signature(int32), _signature(int64)], cache=True, nogil=True)
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
