"""Counting scores between rungs: of a class of queries on one ladder, or of every query on its own."""

from __future__ import annotations

import numpy as np
from numba import float64, int16, int32, int64, njit, void

from swsdask.kernels.rungs import cut_rungs, find_slots
from swsdask.kernels.signatures import column
from swsdask.model.trials import F64, I16, I32, I64

_BLOCK = 512
_WORTH_A_BUFFER = 16

_COUNT = void(
    column(int64), column(int32), column(int32), column(float64), column(float64), int32[:, ::1], float64[:, ::1]
)
_COUNT_OWN = void(
    column(int64), column(int32), column(int16), column(float64), column(int64), column(float64), int64[:, ::1]
)


@njit(_COUNT, cache=True, nogil=True)
def count_slots(bounds: I64, line: I32, layer: I32, score: F64, scores: F64, counts: I32, highest: F64) -> None:
    """Add every score to `counts` [line of its stretch, its slot among the rungs `scores`]; keep each slot's highest.

    `bounds` int64 [n_stretches + 1] cuts `score`; `line` int32 [n_stretches] is the row of `counts` int32
    [n_lines, n_slots], -1 where a stretch is not counted; `layer` int32 [n_lines] the row of `highest` float64
    [n_layers, n_slots] that belongs to a line. Fewer than 2^31 rows.
    """
    rungs = cut_rungs(scores)
    n_slots = len(scores)
    buffer = np.zeros(n_slots, np.int32)
    slots = np.empty(_BLOCK, np.int32)
    for stretch in range(len(line)):
        if line[stretch] < 0:
            continue
        begin, end = bounds[stretch], bounds[stretch + 1]
        total = counts[line[stretch]]
        peak = highest[layer[line[stretch]]]
        buffered = (end - begin) * _WORTH_A_BUFFER > n_slots
        target = buffer if buffered else total
        for at in range(begin, end, _BLOCK):
            block = score[at : min(at + _BLOCK, end)]
            find_slots(block, rungs, slots)
            for row in range(len(block)):
                s, slot = block[row], np.uint64(slots[row])
                target[slot] += 1
                peak[slot] = s if s > peak[slot] else peak[slot]
        if buffered:
            total += buffer
            buffer[:] = 0


@njit(int64[::1](column(int32), column(float64), column(int64), column(float64)), cache=True, nogil=True)
def find_own_rungs(query: I32, score: F64, offsets: I64, scores: F64) -> I64:
    """The row in `scores` of each score, which is one of its query's own rungs (see `count_own_slots`): int64."""
    rows = np.empty(len(score), np.int64)
    for number in range(len(score)):
        begin, end = offsets[query[number]], offsets[query[number] + 1]
        rows[number] = begin + np.searchsorted(scores[begin:end], score[number])
    return rows


@njit(_COUNT_OWN, cache=True, nogil=True)
def count_own_slots(bounds: I64, query: I32, group: I16, score: F64, offsets: I64, scores: F64, counts: I64) -> None:
    """Add every score to `counts` [slot among its query's own rungs, group].

    `query` int32, `group` int16 [n_stretches]; the rungs of query q, with the inf, are scores[offsets[q] :
    offsets[q + 1]], and their slots the same rows of `counts` int64 [n_slots, n_groups].
    """
    slots = np.empty(_BLOCK, np.int32)
    for stretch in range(len(query)):
        q = query[stretch]
        if stretch == 0 or q != query[stretch - 1]:
            rungs = cut_rungs(scores[offsets[q] : offsets[q + 1]])
        own = counts[offsets[q] : offsets[q + 1], group[stretch]]
        end = bounds[stretch + 1]
        for at in range(bounds[stretch], end, _BLOCK):
            block = score[at : min(at + _BLOCK, end)]
            find_slots(block, rungs, slots)
            for row in range(len(block)):
                own[np.uint64(slots[row])] += 1
