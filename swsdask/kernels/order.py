"""The order in which alignment walks the detections of a group: by time, then better ones first."""

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, njit

from swsdask.kernels.signatures import column, several
from swsdask.model.trials import F64, I8, I32, I64

_SHORT = 24
"""Up to this length a stretch is sorted by insertion: rows mostly come nearly sorted."""


@njit()
def _comes_before(row: int, middle: int, other: int, other_middle: int, start: I32, score: F64, decision: I8) -> bool:
    """Whether a detection comes before another: by mid-point, start, score from the highest, YES first, row."""
    if middle != other_middle:
        return middle < other_middle
    if start[row] != start[other]:
        return bool(start[row] < start[other])
    if score[row] != score[other]:
        return bool(score[row] > score[other])
    if decision[row] != decision[other]:
        return bool(decision[row] > decision[other])
    return row < other


@njit()
def _insertion_sort(rows: I64, middles: I64, low: int, high: int, start: I32, score: F64, decision: I8) -> None:
    for i in range(low + 1, high):
        row, middle = rows[i], middles[i]
        j = i
        while j > low and _comes_before(row, middle, rows[j - 1], middles[j - 1], start, score, decision):
            rows[j], middles[j] = rows[j - 1], middles[j - 1]
            j -= 1
        rows[j], middles[j] = row, middle


@njit()
def _merge_sort(rows: I64, middles: I64, low: int, high: int, start: I32, score: F64, decision: I8) -> None:
    for begin in range(low, high, _SHORT):
        _insertion_sort(rows, middles, begin, min(begin + _SHORT, high), start, score, decision)
    width = _SHORT
    left_rows = np.empty(high - low, np.int64)
    left_middles = np.empty(high - low, np.int64)
    while width < high - low:
        for begin in range(low, high - width, 2 * width):
            half, end = begin + width, min(begin + 2 * width, high)
            left_rows[:width] = rows[begin:half]
            left_middles[:width] = middles[begin:half]
            i, j, k = 0, half, begin
            while i < width and j < end:
                if _comes_before(rows[j], middles[j], left_rows[i], left_middles[i], start, score, decision):
                    rows[k], middles[k] = rows[j], middles[j]
                    j += 1
                else:
                    rows[k], middles[k] = left_rows[i], left_middles[i]
                    i += 1
                k += 1
            while i < width:
                rows[k], middles[k] = left_rows[i], left_middles[i]
                i += 1
                k += 1
        width *= 2


@njit(
    several(int64[::1], int64[::1], int64[::1])(
        column(int64), column(int32), int64, column(int32), column(int32), column(float64), column(int8)
    ),
    cache=True,
    nogil=True,
)
def in_time_order(
    near: I64, near_group: I32, n_groups: int, start: I32, duration: I32, score: F64, decision: I8
) -> tuple[I64, I64, I64]:
    """Detections by group and within it by mid-point, start, score from the highest, YES first, row.

    `near` are rows of `start`, `duration`, `score`, `decision`; `near_group` is the group of each, in any order.
    Returns where each group begins (int64 [n_groups + 1]), the rows in that order and twice their mid-points.
    """
    begins = np.zeros(n_groups + 1, np.int64)
    for group in near_group:
        begins[group + 1] += 1
    for group in range(n_groups):
        begins[group + 1] += begins[group]
    rows = np.empty(len(near), np.int64)
    middles = np.empty(len(near), np.int64)
    filled = begins[:-1].copy()
    for i in range(len(near)):
        place = filled[near_group[i]]
        filled[near_group[i]] += 1
        rows[place] = near[i]
        middles[place] = 2 * np.int64(start[near[i]]) + duration[near[i]]
    for group in range(n_groups):
        low, high = begins[group], begins[group + 1]
        if high - low <= _SHORT:
            _insertion_sort(rows, middles, low, high, start, score, decision)
        else:
            _merge_sort(rows, middles, low, high, start, score, decision)
    return begins, rows, middles
