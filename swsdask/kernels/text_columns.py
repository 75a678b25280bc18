"""Columns of decimal numbers in text, as Arrow holds them: value i is text[offsets[i]:offsets[i + 1]]."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, njit, void
from numpy.typing import NDArray

from swsdask.kernels.decimal_text import TEXT, nearest_float, nearest_tick, scan_number
from swsdask.kernels.signatures import column

_LONGEST = 62


@njit()
def _copy(text: NDArray[np.uint8], begin: int, end: int, value: NDArray[np.uint8]) -> int:
    """Copy a value to where a byte of 0 follows it; its length, -1 if it is too long."""
    size = end - begin
    if size > _LONGEST:
        return -1
    for place in range(size):
        value[place] = text[begin + place]
    value[size] = 0
    return size


@njit(void(TEXT, column(int32), float64[::1], boolean[::1]), cache=True, nogil=True)
def read_scores(
    text: NDArray[np.uint8], offsets: NDArray[np.int32], scores: NDArray[np.float64], unread: NDArray[np.bool_]
) -> None:
    """The float64 nearest to each value, in `scores`; `unread` where the caller has to see to it."""
    value = np.zeros(_LONGEST + 2, np.uint8)
    for row in range(len(scores)):
        size = _copy(text, offsets[row], offsets[row + 1], value)
        end, negative, mantissa, exponent, digits = scan_number(value, 0)
        read, score = nearest_float(mantissa, exponent, digits)
        scores[row] = -score if negative else score
        unread[row] = size < 1 or end != size or not read


@njit(void(TEXT, column(int32), int64[::1], boolean[::1], boolean[::1]), cache=True, nogil=True)
def read_ticks(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    ticks: NDArray[np.int64],
    rounded: NDArray[np.bool_],
    unread: NDArray[np.bool_],
) -> None:
    """The ticks of each time in seconds, and whether they are `rounded`; `unread` where the caller has to see to it."""
    value = np.zeros(_LONGEST + 2, np.uint8)
    for row in range(len(ticks)):
        size = _copy(text, offsets[row], offsets[row + 1], value)
        end, negative, mantissa, exponent, digits = scan_number(value, 0)
        ticks[row], rounded[row] = nearest_tick(mantissa, exponent, digits)
        unread[row] = size < 1 or end != size or ticks[row] < 0 or (negative and digits > 0)
