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
    n_folds = len(flat)
    first = np.full(n_folds, -1, np.int64)
    last = np.empty(n_folds, np.int64)
    for group in range(len(begins) - 1):
        for i in range(begins[group], begins[group + 1]):
            one = starts[i]
            if room[one] >= length:
                if first[fold[one]] < 0:
                    first[fold[one]] = one
                last[fold[one]] = one
        for i in range(begins[group], begins[group + 1]):
            one = starts[i]
            if room[one] < length:
                continue
            low, high = first[fold[one]], last[fold[one]]
            partnered = file[low] != file[high]
            if not partnered:
                till = end[one + length - 1]
                partnered = not share_more_than_half(start[one], till, start[low], end[low + length - 1])
                partnered |= not share_more_than_half(start[one], till, start[high], end[high + length - 1])
            if partnered:
                flat[fold[one]] += 1
                longest[one] = length
        for i in range(begins[group], begins[group + 1]):
            if room[starts[i]] >= length:
                first[fold[starts[i]]] = -1


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


@njit()
def in_folds(group: I32, length: int, start: I32, room: U8, fold: I16, n_folds: int) -> tuple[I64, I64]:
    """Where each fold's n-grams begin, int64 [n_folds + 1], and the n-grams by fold and in it by start time."""
    bounds = np.zeros(n_folds + 1, np.int64)
    for one in group:
        if room[one] >= length:
            bounds[fold[one] + 1] += 1
    for number in range(n_folds):
        bounds[number + 1] += bounds[number]
    filled = bounds[:-1].copy()
    ones = np.empty(bounds[-1], np.int64)
    for i in np.argsort(start[group], kind="mergesort"):
        one = group[i]
        if room[one] >= length:
            ones[filled[fold[one]]] = one
            filled[fold[one]] += 1
    return bounds, ones


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
        bounds, ones = in_folds(members, length, start, room, fold, len(flat))
        for number in range(len(flat)):
            own = ones[bounds[number] : bounds[number + 1]]
            n_near = count_near(own, length, start, end)
            for i in range(len(own)):
                longest[own[i]] = length
                flat[number] += n_near[i] < len(own) - 1
                pairs[number] += len(own) - 1 - n_near[i]


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
