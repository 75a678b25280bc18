"""Pairs of windows as intervals on diagonals, so that a set of pairs is kept without one entry per pair.

Windows of equal length that start at phones i <= j lie on the diagonal j - i of their fold. Two strings of m <= n
phones give n - m + 1 intervals of m phones each: all windows inside an interval face those so far behind it. An
interval is a key, ((fold * n_phones) + j - i) * n_phones + i for its first phones i and j, and its length. Of intervals
only those that no other holds are kept: sets of pairs are equal iff these are.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint8, void

from swsdask.kernels.gold import count_near
from swsdask.kernels.ngrams import SHORTEST, U8
from swsdask.kernels.placing import near
from swsdask.kernels.signatures import column, several
from swsdask.model.trials import I32, I64

_INTERVALS = several(int64[::1], int32[::1])


@njit(
    _INTERVALS(
        column(int64), column(int64), column(int64), column(int64), column(int32), column(int32), int64, int64, int64
    ),
    cache=True,
    nogil=True,
)
def pair_up(
    fold: I64, till: I64, first: I64, last: I64, start: I32, end: I32, low: int, high: int, n_phones: int
) -> tuple[I64, I32]:
    """The intervals of the fragments `low` <= a < `high` with later ones of their group, where they are not `near`.

    Fragment a has the phones first[a]:last[a], the times start[a], end[a] and the fold fold[a]; its group ends before
    till[a]. Returns keys int64 and lengths int32, in no order and maybe more than once.
    """
    most = 0
    for a in range(low, high):
        for b in range(a + 1, till[a]):
            most += abs((last[a] - first[a]) - (last[b] - first[b])) + 1
    key, length = np.empty(most, np.int64), np.empty(most, np.int32)
    found = 0
    for a in range(low, high):
        for b in range(a + 1, till[a]):
            if near(start[a], end[a], start[b], end[b]):
                continue
            m, n = last[a] - first[a], last[b] - first[b]
            for offset in range(abs(n - m) + 1):
                i = first[a] + (offset if m > n else 0)
                j = first[b] + (offset if n > m else 0)
                key[found] = (fold[a] * n_phones + abs(j - i)) * n_phones + min(i, j)
                length[found] = min(m, n)
                found += 1
    return key[:found].copy(), length[:found].copy()


@njit(_INTERVALS(column(int64), column(int32), int64), cache=True, nogil=True)
def maximal(key: I64, length: I32, n_phones: int) -> tuple[I64, I32]:
    """Of intervals sorted by key those that no other holds, sorted and distinct."""
    kept_key, kept_length = np.empty(len(key), np.int64), np.empty(len(key), np.int32)
    kept = 0
    row = 0
    while row < len(key):
        own, longest = key[row], length[row]
        row += 1
        while row < len(key) and key[row] == own:
            longest = max(longest, length[row])
            row += 1
        if kept > 0:
            before = kept_key[kept - 1]
            if before // n_phones == own // n_phones and before + kept_length[kept - 1] >= own + longest:
                continue
        kept_key[kept], kept_length[kept] = own, longest
        kept += 1
    return kept_key[:kept].copy(), kept_length[:kept].copy()


@njit(int64[::1](column(int64), column(int32), int32[::1]), cache=True, nogil=True)
def number_starts(key: I64, length: I32, line: I32) -> I64:
    """The phones at which windows of some intervals start, numbered in `line` int32 [n_phones], -1 for all others."""
    n_phones = len(line)
    found = np.empty(n_phones, np.int64)
    n = 0
    for row in range(len(key)):
        i = key[row] % n_phones
        j = i + key[row] // n_phones % n_phones
        for first in (i, j):
            for phone in range(first, first + length[row] - SHORTEST + 1):
                if line[phone] < 0:
                    line[phone] = n
                    found[n] = phone
                    n += 1
    return found[:n].copy()


@njit(
    void(
        column(int64),
        column(int32),
        column(int32),
        column(uint8),
        column(int32),
        column(int32),
        column(int32),
        int64[:, ::1],
        int64[:, ::1],
    ),
    cache=True,
    nogil=True,
)
def count_pairs(
    key: I64, length: I32, label: I32, room: U8, start: I32, end: I32, line: I32, paired: I64, gold: I64
) -> None:
    """Add up in how many pairs each window is, and in how many whose windows are equal, have room and are not `near`.

    Intervals are `maximal` ones of one fold. `label`, `room`, `start`, `end` have an entry per phone; `line` says which
    row of `paired` and `gold` is the phone's, int64 [n_lines, longest - 2]; column k is that of k + 3 phones. A window
    that is paired with itself counts once.
    """
    n_phones, longest = len(label), paired.shape[1] + SHORTEST - 1
    equal = np.zeros(max(length.max() if len(length) else 0, 1), np.int64)
    for row in range(len(key)):
        i = key[row] % n_phones
        j = i + key[row] // n_phones % n_phones
        counted = 0
        if row > 0 and key[row - 1] // n_phones == key[row] // n_phones:
            counted = max(key[row - 1] + length[row - 1] - key[row], 0)
        run = 0
        for place in range(length[row] - 1, -1, -1):
            run = run + 1 if label[i + place] == label[j + place] else 0
            equal[place] = min(run, room[i + place], room[j + place])
        for place in range(length[row] - SHORTEST + 1):
            a, b = i + place, j + place
            for size in range(max(SHORTEST, counted - place + 1), min(longest, length[row] - place) + 1):
                right = size <= equal[place] and not near(start[a], end[a + size - 1], start[b], end[b + size - 1])
                paired[line[a], size - SHORTEST] += 1
                gold[line[a], size - SHORTEST] += right
                if a != b:
                    paired[line[b], size - SHORTEST] += 1
                    gold[line[b], size - SHORTEST] += right


@njit(
    int64[:, ::1](
        column(int32),
        column(int64),
        int64,
        column(int32),
        column(int32),
        column(uint8),
        column(int32),
        int64[:, ::1],
        int64[:, ::1],
    ),
    cache=True,
    nogil=True,
)
def tally_types(
    starts: I32, begins: I64, length: int, start: I32, end: I32, room: U8, line: I32, paired: I64, gold: I64
) -> I64:
    """What there is of each type that has a pair of `gold`, a row each of int64 [n, 5].

    Groups are those of `ngrams.refine`, of one fold. The columns: windows that are paired, in how many pairs they are,
    and in how many of gold; windows with `room` that one with room is not `near` to, and how many such ordered pairs
    there are. `line` is -1 for phones without a row.
    """
    table = np.empty((len(begins) - 1, 5), np.int64)
    rows = 0
    for group in range(len(begins) - 1):
        members = starts[begins[group] : begins[group + 1]]
        windows = pairs = right = 0
        for one in members:
            if line[one] >= 0:
                windows += paired[line[one], length - SHORTEST] > 0
                pairs += paired[line[one], length - SHORTEST]
                right += gold[line[one], length - SHORTEST]
        if right == 0:
            continue
        own = np.empty(len(members), np.int64)
        n = 0
        for i in np.argsort(start[members], kind="mergesort"):
            if room[members[i]] >= length:
                own[n] = members[i]
                n += 1
        n_near = count_near(own[:n], length, start, end)
        apart = 0
        for count in n_near:
            apart += count < n - 1
        table[rows] = np.array([windows, pairs, right, apart, n * (n - 1) - n_near.sum()])
        rows += 1
    return table[:rows].copy()
