"""Counting trials by decision, and the scores at which decisions change."""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int16, int32, int64, njit, void

from swsdask.kernels.signatures import column
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


@njit(_DECISIONS, cache=True, nogil=True)
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

    `bounds` int64 [n_stretches + 1] cuts `score` and `decision`; `query` and `group` are [n_stretches].
    """
    for stretch in range(len(query)):
        n_yes, n_no = 0, 0
        yes, no, low, high = np.inf, -np.inf, np.inf, -np.inf
        begin, end = bounds[stretch], bounds[stretch + 1]
        scores, decisions = score[begin:end], decision[begin:end]
        for row in range(len(scores)):
            s, d = scores[row], decisions[row]
            low = min(low, s)
            high = max(high, s)
            yes = min(yes, s if d == 1 else np.inf)
            no = max(no, s if d == 0 else -np.inf)
            n_yes += d == 1
            n_no += d == 0
        q, g = query[stretch], group[stretch]
        counts[q, g, 0] += n_no
        counts[q, g, 1] += n_yes
        counts[q, g, 2] += end - begin - n_yes - n_no
        min_yes[q, g] = min(min_yes[q, g], yes)
        max_no[q, g] = max(max_no[q, g], no)
        lowest[q, g] = min(lowest[q, g], low)
        highest[q, g] = max(highest[q, g], high)
