"""Counting scores between the rungs of rankings, and those that equal a rung."""

from __future__ import annotations

import numpy as np
from numba import float64, int32, int64, njit, void

from swsdask.kernels.rungs import cut_rungs, find_slots
from swsdask.kernels.signatures import column
from swsdask.model.trials import F64, I32, I64

_BLOCK = 512

_COUNT = void(
    column(int64),
    column(int32),
    column(int32),
    column(float64),
    column(int64),
    column(float64),
    int64[:, ::1],
    int64[:, ::1],
)


@njit(_COUNT, cache=True, nogil=True)
def count_ranks(
    bounds: I64, ranking: I32, line: I32, score: F64, offsets: I64, scores: F64, counts: I64, tied: I64
) -> None:
    """Add every score to `counts` [slot among the rungs of its ranking, line], those of a rung to `tied` [rung, line].

    `bounds` int64 [n_stretches + 1] cuts `score`; `ranking` and `line` int32 [n_stretches] are those of a stretch, line
    -1 where it is not counted. The rungs of ranking r, with the inf, are scores[offsets[r] : offsets[r + 1]], and their
    slots the same rows of `counts` and `tied`, int64 [n_rungs, n_lines].
    """
    slots = np.empty(_BLOCK, np.int32)
    known = -1
    for stretch in range(len(ranking)):
        if line[stretch] < 0:
            continue
        begin, end = offsets[ranking[stretch]], offsets[ranking[stretch] + 1]
        own = scores[begin:end]
        if ranking[stretch] != known:
            rungs = cut_rungs(own)
            known = ranking[stretch]
        own_counts, own_tied = counts[begin:end, line[stretch]], tied[begin:end, line[stretch]]
        stop = bounds[stretch + 1]
        for at in range(bounds[stretch], stop, _BLOCK):
            block = score[at : min(at + _BLOCK, stop)]
            find_slots(block, rungs, slots)
            for row in range(len(block)):
                slot = np.uint64(slots[row])
                own_counts[slot] += 1
                below = slot - np.uint64(slot > 0)
                own_tied[below] += own[below] == block[row]
