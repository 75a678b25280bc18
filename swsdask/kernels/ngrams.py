"""Equal n-grams of labels without comparing any two: groups of n-grams are refined by their next label."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint8
from numpy.typing import NDArray

from swsdask.kernels.signatures import column, several
from swsdask.model.trials import I32, I64

U8 = NDArray[np.uint8]

SHORTEST = 3
"""Labels of the shortest n-grams, by whose ids n-grams are divided among cells."""


@njit()
def _trigram(label: I32, start: int, n_labels: int) -> int:
    return int((np.int64(label[start]) * n_labels + label[start + 1]) * n_labels + label[start + 2])


@njit(int64[::1](column(int32), column(uint8), int64), cache=True, nogil=True)
def trigrams(label: I32, room: U8, n_labels: int) -> I64:
    """The trigram at every place with `room` for one: its labels as the digits of a number, int64 [n_trigrams].

    `label` int32 [n]; `room` uint8 [n] is the length of the longest n-gram that may start there.
    """
    found = np.empty(len(label), np.int64)
    n = 0
    for start in range(len(label)):
        if room[start] >= SHORTEST:
            found[n] = _trigram(label, start, n_labels)
            n += 1
    return found[:n].copy()


@njit(int32[::1](column(int32), column(uint8), int64, int64, int64), cache=True, nogil=True)
def starts_within(label: I32, room: U8, n_labels: int, low: int, high: int) -> I32:
    """Where trigrams `low` <= id < `high` start, ascending int32."""
    found = np.empty(len(label), np.int32)
    n = 0
    for start in range(len(label)):
        if room[start] >= SHORTEST and low <= _trigram(label, start, n_labels) < high:
            found[n] = start
            n += 1
    return found[:n].copy()


@njit(
    several(int32[::1], int64[::1])(column(int32), column(int64), column(int32), column(uint8), int64, int64),
    cache=True,
    nogil=True,
)
def refine(starts: I32, begins: I64, label: I32, room: U8, length: int, n_labels: int) -> tuple[I32, I64]:
    """Groups of equal n-grams of `length` labels as groups of those of `length` + 1; what occurs once is left out.

    Group g is starts[begins[g]:begins[g + 1]]; starts stay in their order within a group.
    """
    kept = np.empty(len(starts), np.int32)
    kept_begins = np.empty(len(starts) // 2 + 1, np.int64)
    kept_begins[0] = 0
    n_kept = n_groups = 0
    next_label = np.empty(len(starts), np.int32)
    count = np.zeros(n_labels, np.int32)
    place = np.empty(n_labels, np.int64)
    seen = np.empty(n_labels, np.int32)
    for group in range(len(begins) - 1):
        n_seen = 0
        for i in range(begins[group], begins[group + 1]):
            start = starts[i]
            own = np.int32(-1)
            if room[start] > length:
                own = label[start + length]
                if count[own] == 0:
                    seen[n_seen] = own
                    n_seen += 1
                count[own] += 1
            next_label[i] = own
        for s in range(n_seen):
            own = seen[s]
            place[own] = -1
            if count[own] > 1:
                place[own] = n_kept
                n_kept += count[own]
                n_groups += 1
                kept_begins[n_groups] = n_kept
            count[own] = 0
        for i in range(begins[group], begins[group + 1]):
            own = next_label[i]
            if own >= 0 and place[own] >= 0:
                kept[place[own]] = starts[i]
                place[own] += 1
    return kept[:n_kept].copy(), kept_begins[: n_groups + 1].copy()
