"""Equal n-grams of labels, and numbers for equal sequences of labels.

N-grams are not compared pair by pair: groups of equal n-grams are split by their next label. The gold set consists of
the n-grams that occur twice in a fold without overlap.

A sequence is a range of rows of one column of labels. It is looked up by its hash and compared label by label, so two
sequences with the same hash are still distinguished. A table of sequences consists of `slots` int32 [a power of two, at
least twice the number of sequences], which is -1 where empty, and of the ranges of its entries, columns `entry_first`
and `entry_last` int64.
"""

from __future__ import annotations

import numpy as np
from numba import int16, int32, int64, uint8, void
from numpy.typing import NDArray

from swsdask.kernels.compilation import column, kernel, part, several
from swsdask.kernels.pairs import share_more_than_half
from swsdask.kernels.placing import near
from swsdask.model.trials import I16, I32, I64

U8 = NDArray[np.uint8]

SHORTEST = 3
"""The number of labels of the shortest n-grams. Their ids divide n-grams among cells."""


@part()
def _trigram(label: I32, start: int, n_labels: int) -> int:
    return int((np.int64(label[start]) * n_labels + label[start + 1]) * n_labels + label[start + 2])


@kernel(int64[::1](column(int32), column(uint8), int64))
def trigrams(label: I32, room: U8, n_labels: int) -> I64:
    """Return the trigram at every place with `room` for one, int64 [n_trigrams]: a number whose digits are its labels.

    `label` is int32 [n]; `room` uint8 [n] is the length of the longest n-gram that may start at a place.
    """
    found = np.empty(len(label), np.int64)
    n = 0
    for start in range(len(label)):
        if room[start] >= SHORTEST:
            found[n] = _trigram(label, start, n_labels)
            n += 1
    return found[:n].copy()


@kernel(int32[::1](column(int32), column(uint8), int64, int64, int64))
def starts_within(label: I32, room: U8, n_labels: int, low: int, high: int) -> I32:
    """Return the starts of the trigrams with `low` <= id < `high`, int32, ascending."""
    found = np.empty(len(label), np.int32)
    n = 0
    for start in range(len(label)):
        if room[start] >= SHORTEST and low <= _trigram(label, start, n_labels) < high:
            found[n] = start
            n += 1
    return found[:n].copy()


@kernel(several(int32[::1], int64[::1])(column(int32), column(int64), column(int32), column(uint8), int64, int64))
def refine(starts: I32, begins: I64, label: I32, room: U8, length: int, n_labels: int) -> tuple[I32, I64]:
    """Split groups of equal n-grams of `length` labels into groups of equal n-grams of `length` + 1 labels.

    Group g is starts[begins[g]:begins[g + 1]]; starts keep their order within a group. Groups of one n-gram are
    dropped.
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


_GROUPS = (column(int32), column(int64), int64)
_PHONES = (column(int32), column(int32), column(int32))
_FOLDS = (column(uint8), column(int16))


@kernel(void(*_GROUPS, *_PHONES, *_FOLDS, int64[::1], uint8[::1]))
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
    """Count the n-grams that share at most half of the shorter extent with an equal n-gram of the same fold.

    Groups are those of `ngrams.refine`. `file`, `start` and `end` are int32 [n_phones]. `room` uint8 [n_phones] is the
    number of phones, from each phone on, that stay in one stretch of a fold; `fold` int16 [n_phones] is that fold. Adds
    to `flat` int64 [n_folds], and sets `longest` uint8 [n_phones] to `length` where such an n-gram starts.

    It suffices to compare an n-gram with the first and the last n-gram of its group and fold. If these two are in
    different files, every n-gram has a partner in another file. Otherwise all are in one file, and n-grams x < z < y
    start and end in that order. Suppose that x and z share at most half of z: end(x) - start(z) <= end(z) - end(x).
    Then end(x) - start(y) <= end(x) - start(z) <= end(z) - end(x) <= end(y) - end(x). So x and y share at most half of
    y, and they share no more of x than x and z do.
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


@part()
def count_near(ones: I64, length: int, start: I32, end: I32) -> I64:
    """Count, for each n-gram, the others that it is `near`, int64; `ones` are sorted by start, regardless of file."""
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


@kernel(void(*_GROUPS, *_PHONES[1:], *_FOLDS, int64[::1], int64[::1], uint8[::1]))
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
    """Count the n-grams that have an equal n-gram of the same fold that they are not `near`, and such ordered pairs.

    The arguments are those of `add_partnered`, but files are ignored, and `longest` is also set for n-grams without a
    partner.
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


@kernel(int16[::1](column(uint8), column(int16)))
def covered(longest: U8, fold: I16) -> I16:
    """Return the fold of the n-grams that contain each phone, int16; -1 if there are none.

    An n-gram of `longest` [i] phones starts at phone i.
    """
    found = np.full(len(longest), -1, np.int16)
    till = 0
    for phone in range(len(longest)):
        till = max(till, phone + longest[phone])
        if phone < till:
            found[phone] = fold[phone]
    return found


_SEED = np.uint64(14695981039346656037)
_FACTOR = np.uint64(11400714819323198485)
_HALF = np.uint64(32)


@part()
def _slot_of(first: int, last: int, label: I32, slots: I32, entry_first: I64, entry_last: I64) -> np.int64:
    """Return the slot of the entry that equals a sequence, or the empty slot where such an entry belongs."""
    key = _SEED
    for row in range(first, last):
        key = (key ^ np.uint64(label[row])) * _FACTOR
        key ^= key >> _HALF
    mask = len(slots) - 1
    slot = np.int64(key) & mask
    size = last - first
    while slots[slot] >= 0:
        entry = slots[slot]
        begin = entry_first[entry]
        if entry_last[entry] - begin == size:
            same = 0
            while same < size and label[begin + same] == label[first + same]:
                same += 1
            if same == size:
                break
        slot = (slot + 1) & mask
    return slot


@kernel(several(int32[::1], int32[::1], int64[::1], int64[::1])(column(int64), column(int64), column(int32)))
def number_sequences(first: I64, last: I64, label: I32) -> tuple[I32, I32, I64, I64]:
    """Number the sequences label[first:last] in order of first appearance, without gaps; return numbers and a table.

    The numbers are int32 [n]. The table is `slots`, `entry_first`, `entry_last`; entry k is the first sequence with
    number k.
    """
    size = 2
    while size < 2 * len(first):
        size *= 2
    slots = np.full(size, -1, np.int32)
    numbers = np.empty(len(first), np.int32)
    entry_first, entry_last = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    entries = 0
    for row in range(len(first)):
        slot = _slot_of(first[row], last[row], label, slots, entry_first, entry_last)
        if slots[slot] < 0:
            slots[slot] = entries
            entry_first[entries], entry_last[entries] = first[row], last[row]
            entries += 1
        numbers[row] = slots[slot]
    return numbers, slots, entry_first[:entries].copy(), entry_last[:entries].copy()


@kernel(int32[::1](column(int64), column(int64), column(int32), column(int32), column(int64), column(int64)))
def find_sequences(first: I64, last: I64, label: I32, slots: I32, entry_first: I64, entry_last: I64) -> I32:
    """Return the number of each sequence in a table over the same `label`, int32; -1 where the table lacks it."""
    numbers = np.empty(len(first), np.int32)
    for row in range(len(first)):
        numbers[row] = slots[_slot_of(first[row], last[row], label, slots, entry_first, entry_last)]
    return numbers
