"""Which occurrences of equal n-grams have another in their fold that they do not overlap with."""

from __future__ import annotations

import numpy as np
from numba import int16, int32, int64, njit, uint8, void

from swsdask.kernels.fragment_overlap import share_more_than_half
from swsdask.kernels.ngrams import U8
from swsdask.kernels.placing import near
from swsdask.kernels.signatures import column
from swsdask.model.trials import I16, I32, I64

_GROUPS = (column(int32), column(int64), int64)
_PHONES = (column(int32), column(int32), column(int32))
_FOLDS = (column(uint8), column(int16))


@njit(
    void(*_GROUPS, *_PHONES, *_FOLDS, int64[::1], uint8[::1]),
    cache=True,
    nogil=True,
)
def add_partnered(
    starts: I32,
    begins: I64,
    length: int,
    file: I32,
    start: I32,
    end: I32,
    room: U8,
    fold: I16,
    flat: I64,
    longest: U8,
) -> None:
    """Count the n-grams with an equal one of the same fold that shares at most half of the shorter one's extent.

    Groups are those of `ngrams.refine`; `file`, `start`, `end` int32 [n_phones], `room` uint8 and `fold` int16
    [n_phones] say how many phones from one on stay in one stretch of a fold, and of which fold. Adds to `flat` int64
    [n_folds] and sets `longest` uint8 [n_phones] to `length` where such an n-gram starts.

    Looking at the first and the last n-gram of a group is enough: they are in several files, or n-grams x < z < y of
    one file start and end in that order, and where x and z share at most half of z, that is end(x) - start(z) <=
    end(z) - end(x), then end(x) - start(y) <= end(x) - start(z) <= end(z) - end(x) <= end(y) - end(x): x and y share
    at most half of y, and not more of x than x and z do.
    """
    first = np.full(len(flat), -1, np.int64)
    last = np.empty(len(flat), np.int64)
    fold_of = np.empty(len(starts), np.int16)
    for group in range(len(begins) - 1):
        for i in range(begins[group], begins[group + 1]):
            one = starts[i]
            own = fold[one] if room[one] >= length else np.int16(-1)
            fold_of[i] = own
            if own >= 0:
                if first[own] < 0:
                    first[own] = one
                last[own] = one
        for i in range(begins[group], begins[group + 1]):
            one, own = starts[i], fold_of[i]
            if own < 0 or first[own] == last[own]:
                continue
            low, high = first[own], last[own]
            partnered = file[low] != file[high]
            if not partnered:
                till = end[one + length - 1]
                partnered = not share_more_than_half(start[one], till, start[low], end[low + length - 1])
                partnered |= not share_more_than_half(start[one], till, start[high], end[high + length - 1])
            if partnered:
                flat[own] += 1
                longest[one] = length
        for i in range(begins[group], begins[group + 1]):
            if fold_of[i] >= 0:
                first[fold_of[i]] = -1


@njit()
def count_near(ones: I64, length: int, start: I32, end: I32) -> I64:
    """How many of the others each n-gram is near to, int64; `ones` are sorted by start, whatever their files."""
    n_near = np.zeros(len(ones), np.int64)
    for i in range(len(ones)):
        till = end[ones[i] + length - 1]
        j = i + 1
        while j < len(ones) and start[ones[j]] < till:
            if near(start[ones[i]], till, start[ones[j]], end[ones[j] + length - 1]):
                n_near[i] += 1
                n_near[j] += 1
            j += 1
    return n_near


@njit(void(*_GROUPS, *_PHONES[1:], *_FOLDS, int64[::1], int64[::1], uint8[::1]), cache=True, nogil=True)
def add_apart(
    starts: I32,
    begins: I64,
    length: int,
    start: I32,
    end: I32,
    room: U8,
    fold: I16,
    flat: I64,
    pairs: I64,
    longest: U8,
) -> None:
    """Count the n-grams with an equal one of the same fold that they are not `near` to, and such ordered pairs.

    Arguments as `add_partnered`, but files do not count, and `longest` is set for n-grams without a partner too.
    """
    for group in range(len(begins) - 1):
        members = starts[begins[group] : begins[group + 1]]
        keys = np.empty(len(members), np.int64)
        ones = np.empty(len(members), np.int64)
        n = 0
        for one in members:
            if room[one] >= length:
                keys[n] = (np.int64(fold[one]) << 32) + start[one]
                ones[n] = one
                n += 1
        ones = ones[np.argsort(keys[:n], kind="mergesort")]
        low = 0
        while low < n:
            own = fold[ones[low]]
            high = low + 1
            while high < n and fold[ones[high]] == own:
                high += 1
            n_near = count_near(ones[low:high], length, start, end)
            for i in range(high - low):
                longest[ones[low + i]] = length
                flat[own] += n_near[i] < high - low - 1
                pairs[own] += high - low - 1 - n_near[i]
            low = high


@njit(int16[::1](column(uint8), column(int16)), cache=True, nogil=True)
def covered(longest: U8, fold: I16) -> I16:
    """Of each phone the fold of the n-grams that it is in, -1 in none: an n-gram of `longest` [i] starts at phone i."""
    found = np.full(len(longest), -1, np.int16)
    till = 0
    for phone in range(len(longest)):
        till = max(till, phone + longest[phone])
        if phone < till:
            found[phone] = fold[phone]
    return found
