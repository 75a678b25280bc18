"""Pairs of fragments that overlap, and pairs that several classes contain, without a loop over all pairs.

Overlap is defined by the measures document of the Zero Resource challenge; tde's overlap is `placing.near`. Stretches
are columns sorted by (file, start). Stretches of one file do not overlap; those of file f are rows
first[f]:first[f + 1]. Times are int32 ticks of 0.1 ms.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import boolean, int32, int64

from swsdask.kernels.compilation import column, kernel, part, record, several
from swsdask.kernels.placing import near, shared_seconds
from swsdask.model.trials import I32, I64, Bool


@part()
def share_more_than_half(start: int, end: int, other_start: int, other_end: int) -> bool:
    """Return whether two fragments of one file share more than half of the shorter one's extent."""
    shared = min(end, other_end) - max(start, other_start)
    return bool(2 * shared > min(end - start, other_end - other_start))


MOST_OF_THE_SHORTER: Final = 0
"""Two fragments of one file share more than half of the shorter one's extent."""

NEAR: Final = 1
"""Two fragments of any files are `near`."""

ANY_TIME: Final = 2
"""Two fragments of one file share any time."""

NEAR_OR_ANY_TIME: Final = 3
"""Two fragments of any files are `near`, or two fragments of one file share any time."""

ACROSS_FILES: Final = (NEAR, NEAR_OR_ANY_TIME)


class Times(NamedTuple):
    """The files and times of fragments, int64.

    `begin` and `end` are ticks. For rules that apply within files, they are ticks of one clock for all files, on which
    files do not share any time.
    """

    file: I64
    begin: I64
    end: I64


_TIMES = record(Times, int64[::1], int64[::1], int64[::1])
_SIDES = (column(int64), column(int64), column(int64))


@part()
def _overlap(rule: int, times: Times, one: int, other: int) -> bool:
    """Return whether two fragments that share time overlap by a rule."""
    if rule == ANY_TIME:
        return True
    if rule == MOST_OF_THE_SHORTER:
        return share_more_than_half(times.begin[one], times.end[one], times.begin[other], times.end[other])
    if rule == NEAR_OR_ANY_TIME and times.file[one] == times.file[other]:
        return True
    return bool(near(times.begin[one], times.end[one], times.begin[other], times.end[other]))


@part()
def _after(times: Times, low: int, high: int, moment: int, strictly: bool) -> int:
    """Return the first of the rows low:high that begins at or after a moment, or only after it (`strictly`)."""
    while low < high:
        middle = (low + high) >> 1
        if times.begin[middle] > moment or (times.begin[middle] == moment and not strictly):
            high = middle
        else:
            low = middle + 1
    return low


@kernel(int64(_TIMES, *_SIDES, int64, int64[::1], int64[:, ::1]))
def overlapping(times: Times, bounds: I64, lefts: I64, rights: I64, rule: int, cursor: I64, found: I64) -> int:
    """Write the next overlapping pairs of rows, and the product of each, to `found` int64 [3, room]; return how many.

    Side s has the rows bounds[s]:bounds[s + 1] of `times`, sorted by begin. A product consists of the pairs of a row of
    side `lefts` with a row of another side `rights`, or of the pairs of rows of one side. `cursor` int64 [4], zeros at
    first, is the place to continue from; it is at the end if fewer than `room` pairs are written. To find every pair
    once, each row of the left side is paired with the rows of the right side that begin no earlier, and then each row
    of the right side with the rows of the left side that begin later.
    """
    written = 0
    product, turn, place, other = cursor
    while product < len(lefts):
        one_side, other_side = lefts[product], rights[product]
        alone = one_side == other_side
        if turn == 1:
            one_side, other_side = other_side, one_side
        low, high = bounds[one_side], bounds[one_side + 1]
        other_low, other_high = bounds[other_side], bounds[other_side + 1]
        while low + place < high:
            row = low + place
            if other == 0:
                other = row + 1 if alone else _after(times, other_low, other_high, times.begin[row], turn == 1)
            while other < other_high and times.begin[other] < times.end[row]:
                if _overlap(rule, times, row, other):
                    if written == found.shape[1]:
                        cursor[0], cursor[1], cursor[2], cursor[3] = product, turn, place, other
                        return written
                    found[0, written], found[1, written], found[2, written] = row, other, product
                    written += 1
                other += 1
            other = 0
            place += 1
        place = 0
        turn += 1
        if alone or turn == 2:
            turn = 0
            product += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = product, turn, place, other
    return written


@kernel(several(int64[::1], int64[::1])(*_SIDES, column(int64), column(int64), int64))
def ranks(bounds: I64, lefts: I64, rights: I64, fragment: I64, slot: I64, n_slots: int) -> tuple[I64, I64]:
    """Count, for each row of a product's left side, the right side's rows in its slot: those before it, and all.

    Side s has the rows bounds[s]:bounds[s + 1] of `fragment`, ascending, and of `slot`, below `n_slots`; -1 marks rows
    that are not counted. The results list the rows of the left sides product by product. Rows that are not counted have
    0 and 0.
    """
    n = 0
    for side in lefts:
        n += bounds[side + 1] - bounds[side]
    before, there = np.zeros(n, np.int64), np.zeros(n, np.int64)
    count = np.zeros(n_slots, np.int64)
    first = 0
    for product in range(len(lefts)):
        low, high = bounds[lefts[product]], bounds[lefts[product] + 1]
        other_low, other_high = bounds[rights[product]], bounds[rights[product] + 1]
        other = other_low
        for row in range(low, high):
            while other < other_high and fragment[other] < fragment[row]:
                if slot[other] >= 0:
                    count[slot[other]] += 1
                other += 1
            if slot[row] >= 0:
                before[first + row - low] = count[slot[row]]
        for rest in range(other, other_high):
            if slot[rest] >= 0:
                count[slot[rest]] += 1
        for row in range(low, high):
            if slot[row] >= 0:
                there[first + row - low] = count[slot[row]]
        for row in range(other_low, other_high):
            if slot[row] >= 0:
                count[slot[row]] = 0
        first += high - low
    return before, there


@part()
def _have_a_later_one(ranks: I64, first: int, last: int, other_first: int, other_last: int, rank: int) -> bool:
    """Return whether two ascending ranges of `ranks` have a number in common that is greater than `rank`."""
    one, other = last - 1, other_last - 1
    while one >= first and other >= other_first and ranks[one] > rank and ranks[other] > rank:
        if ranks[one] == ranks[other]:
            return True
        if ranks[one] > ranks[other]:
            one -= 1
        else:
            other -= 1
    return False


@kernel(several(int64[::1], int64[::1])(column(int64), column(int64), column(int64), column(int64), column(int64)))
def repeated_pairs(bounds: I64, member: I64, first: I64, rank: I64, size: I64) -> tuple[I64, I64]:
    """Return, for each class, its pairs of groups that a class of higher rank contains too.

    So a pair appears once for every class that contains it, except the one of the highest rank. A group is a set of
    fragments that are in the same classes. Group g has `size` [g] fragments, and its classes have the ranks
    rank[first[g]:first[g + 1]], ascending. The class of rank r has the groups member[bounds[r]:bounds[r + 1]]. A group
    forms a pair with itself if it has several fragments.
    """
    room = 16
    pairs = np.empty((2, room), np.int64)
    n = 0
    shared = np.empty(len(member), np.int64)
    for own in range(len(bounds) - 1):
        n_shared = 0
        for place in range(bounds[own], bounds[own + 1]):
            # Only groups whose highest rank is above this class can be in a pair of both classes.
            if rank[first[member[place] + 1] - 1] > own:
                shared[n_shared] = member[place]
                n_shared += 1
        for i in range(n_shared):
            one = shared[i]
            for j in range(i, n_shared):
                other = shared[j]
                if one == other:
                    if size[one] < 2:
                        continue
                elif not _have_a_later_one(rank, first[one], first[one + 1], first[other], first[other + 1], own):
                    continue
                if n == room:
                    wider = np.empty((2, 2 * room), np.int64)
                    wider[:, :room] = pairs
                    pairs, room = wider, 2 * room
                pairs[0, n], pairs[1, n] = one, other
                n += 1
    return pairs[0, :n].copy(), pairs[1, :n].copy()


@part()
def _mark_within_file(low: int, high: int, start: I32, end: I32, marked: Bool) -> None:
    """Mark the fragments low:high of one file, sorted by start, that have a partner.

    Let y begin after x. They share at most half of the shorter one iff y begins at or after the middle of x and x ends
    at or before the middle of y. So x has a later partner iff, among the fragments that begin at or after the middle of
    x, the latest middle is at or after the end of x. And y has an earlier partner iff, among the fragments whose middle
    is at or before the start of y, the earliest end is at or before the middle of y.
    """
    size = high - low
    # Middles are stored doubled, so that they are integers.
    middle = np.empty(size, np.int64)
    for i in range(size):
        middle[i] = np.int64(start[low + i]) + end[low + i]
    latest = middle.copy()
    for i in range(size - 2, -1, -1):
        latest[i] = max(latest[i], latest[i + 1])
    by_middle = np.argsort(middle)
    middles = middle[by_middle]
    earliest = np.empty(size, np.int64)
    for i in range(size):
        own = np.int64(end[low + by_middle[i]])
        earliest[i] = own if i == 0 else min(own, earliest[i - 1])
    for i in range(size):
        half = (middle[i] + 1) >> 1
        behind = np.searchsorted(start[low:high], half)
        before = np.searchsorted(middles, 2 * np.int64(start[low + i]), side="right")
        marked[low + i] = (behind < size and latest[behind] >= 2 * np.int64(end[low + i])) or (
            before > 0 and 2 * earliest[before - 1] <= middle[i]
        )


@kernel(boolean[::1](column(int64), column(int32), column(int32), column(int32)))
def have_partner(begins: I64, file: I32, start: I32, end: I32) -> Bool:
    """Return whether each fragment has a partner: one of its group in another file or with at most half shared.

    Two fragments of one file are partners if they share at most half of the shorter one's extent. Group g has the rows
    begins[g]:begins[g + 1] of `file`, `start` and `end` (ticks), sorted by (file, start). A group of n fragments takes
    time n log n, because its pairs are not enumerated.
    """
    marked = np.empty(len(file), np.bool_)
    for group in range(len(begins) - 1):
        low, high = begins[group], begins[group + 1]
        if low == high:
            continue
        if file[low] != file[high - 1]:
            marked[low:high] = True
        else:
            _mark_within_file(low, high, start, end, marked)
    return marked


_FRAGMENTS = (column(int32), column(int32), column(int32))
_STRETCHES = (column(int64), column(int32), column(int32))


@kernel(int64[::1](*_FRAGMENTS, *_STRETCHES))
def holding(file: I32, start: I32, end: I32, first: I64, stretch_start: I32, stretch_end: I32) -> I64:
    """Return the row of the stretch that contains each fragment entirely, int64; -1 where there is none."""
    holder = np.full(len(file), -1, np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        last = low + np.searchsorted(stretch_start[low:high], start[row], side="right") - 1
        if last >= low and end[row] <= stretch_end[last]:
            holder[row] = last
    return holder


@kernel(int64[::1](*_FRAGMENTS, *_STRETCHES))
def sharing_most(file: I32, start: I32, end: I32, first: I64, stretch_start: I32, stretch_end: I32) -> I64:
    """Return the row of the stretch that shares the most time with each fragment, int64.

    Times are doubles, as in tde. Of equal stretches the first one is taken; -1 where no stretch shares any time.
    """
    best = np.full(len(file), -1, np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        stretch = low + np.searchsorted(stretch_end[low:high], start[row], side="right")
        most = 0.0
        while stretch < high and stretch_start[stretch] < end[row]:
            shared = shared_seconds(start[row], end[row], stretch_start[stretch], stretch_end[stretch])
            if shared > most:
                best[row], most = stretch, shared
            stretch += 1
    return best
