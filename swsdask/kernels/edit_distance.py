"""Bit-parallel Levenshtein distances between sequences of labels, and their histogram over all pairs of types.

A column of the distance matrix is stored as bits that mark where it rises and where it falls by one, 64 rows per word.
The algorithm is that of Myers, "A fast bit-vector algorithm for approximate string matching based on dynamic
programming", J. ACM 46 (1999). Its form for distances between whole strings and for several words is that of Hyyrö, "A
bit-vector algorithm for computing Levenshtein and Damerau edit distances", Nordic J. Computing 10 (2003). Up to `LANES`
patterns of one word each are compared with a text at once, in loops that the compiler vectorises. Longer patterns take
several words. The masks that mark where a label occurs in a pattern are built once per pattern.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, int64, void
from numpy.typing import NDArray

from swsdask.kernels.compilation import column, kernel, part, record
from swsdask.model.trials import I32, I64

U64 = NDArray[np.uint64]

WORD = 64
LANES = 16

_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
_TOP = np.uint64(WORD - 1)


class Types(NamedTuple):
    """The types of the sides of products: side s has the types bounds[s]:bounds[s + 1].

    Types of at most `WORD` labels come first within a side. Type t is the sequence of labels first[t]:last[t].
    Rows entries[t]:entries[t + 1] of `slot` and `number` list the slots in which the side has the type, and how often.
    All columns are int64.
    """

    bounds: I64
    first: I64
    last: I64
    entries: I64
    slot: I64
    number: I64


class _Block(NamedTuple):
    """Patterns that are compared with a text at once: one long pattern, or up to `LANES` patterns of one word.

    `masks` is uint64 [n_labels, room]; `sizes`, `ends` (the bit of the last label), `rises`, `falls` and `distances`
    are uint64 [room]. `room` is at least `LANES`, and at least the number of words of the longest pattern. `counts`
    int64 [n_slots, LANES + 1] holds how often each pattern occurs in each slot; its last column is the number of
    patterns that occur in the slot. `places` int64 [LANES] holds the place of each pattern's distance in a histogram.
    """

    masks: U64
    sizes: U64
    ends: U64
    rises: U64
    falls: U64
    distances: U64
    counts: I64
    places: I64


_TYPES = record(Types, *(int64[::1] for _ in Types._fields))
_PRODUCTS = (column(int64), column(int64), column(int64))


@part()
def _mark(masks: U64, lane: int, label: I32, first: int, last: int) -> None:
    """Set the masks of a pattern: bit i of the words of masks[c] from `lane` on is set where label i is c."""
    for place in range(last - first):
        masks[label[first + place], lane + (place >> 6)] |= _ONE << np.uint64(place & (WORD - 1))


@part()
def _unmark(masks: U64, lane: int, label: I32, first: int, last: int) -> None:
    for place in range(last - first):
        masks[label[first + place], lane + (place >> 6)] = _NONE


@part()
def _distance(masks: U64, size: int, label: I32, first: int, last: int, rises: U64, falls: U64) -> int:
    """Return the distance between the pattern of `masks`, which has `size` labels, and the sequence first:last."""
    if size == 0:
        return last - first
    words = (size + WORD - 1) >> 6
    end = np.uint64((size - 1) & (WORD - 1))
    rises[:words] = _ALL
    falls[:words] = _NONE
    distance = size
    for place in range(first, last):
        mask = masks[label[place]]
        # Row 0 of the matrix rises by one in every column, because the distance is that to the whole text.
        rise_in, fall_in = _ONE, _NONE
        for word in range(words):
            equal, rise, fall = mask[word], rises[word], falls[word]
            vertical = equal | fall
            equal |= fall_in
            horizontal = (((equal & rise) + rise) ^ rise) | equal
            up, down = fall | ~(horizontal | rise), rise & horizontal
            if word == words - 1:
                distance += int((up >> end) & _ONE) - int((down >> end) & _ONE)
            up, rise_in = (up << _ONE) | rise_in, up >> _TOP
            down, fall_in = (down << _ONE) | fall_in, down >> _TOP
            rises[word] = down | ~(vertical | up)
            falls[word] = up & vertical
    return distance


@part()
def _distances(block: _Block, label: I32, first: int, last: int) -> None:
    """Write the distances between the patterns of one word and the sequence first:last into `block.distances`."""
    masks, sizes, ends, rises, falls, distances = block[:6]
    for lane in range(LANES):
        rises[lane], falls[lane], distances[lane] = _ALL, _NONE, sizes[lane]
    for place in range(first, last):
        mask = masks[label[place]]
        for lane in range(LANES):
            equal, rise, fall = mask[lane], rises[lane], falls[lane]
            vertical = equal | fall
            horizontal = (((equal & rise) + rise) ^ rise) | equal
            up, down = fall | ~(horizontal | rise), rise & horizontal
            distances[lane] += (up >> ends[lane]) & _ONE
            distances[lane] -= (down >> ends[lane]) & _ONE
            up, down = (up << _ONE) | _ONE, down << _ONE
            rises[lane] = down | ~(vertical | up)
            falls[lane] = up & vertical
    for lane in range(LANES):
        if sizes[lane] == 0:
            distances[lane] = last - first


@kernel(int32[::1](column(int32), int64, column(int64), column(int64), column(int64), column(int64)))
def edit_distances(label: I32, n_labels: int, first: I64, last: I64, other_first: I64, other_last: I64) -> I32:
    """Return the distance between each label[first:last] and label[other_first:other_last], int32 [n].

    `label` int32 [n_rows] holds numbers below `n_labels`; the other arrays are int64 [n]. Masks are built only where
    first:last differs from the range of the previous row.
    """
    words = 1
    for row in range(len(first)):
        words = max(words, (last[row] - first[row] + WORD - 1) >> 6)
    masks = np.zeros((n_labels, words), np.uint64)
    rises, falls = np.empty(words, np.uint64), np.empty(words, np.uint64)
    found = np.empty(len(first), np.int32)
    begin, end = 0, 0
    for row in range(len(first)):
        if first[row] != begin or last[row] != end:
            _unmark(masks, 0, label, begin, end)
            begin, end = int(first[row]), int(last[row])
            _mark(masks, 0, label, begin, end)
        found[row] = _distance(masks, end - begin, label, other_first[row], other_last[row], rises, falls)
    return found


@part()
def _room_for(types: Types, n_labels: int, n_slots: int) -> _Block:
    room = LANES
    for pattern in range(len(types.first)):
        room = max(room, (types.last[pattern] - types.first[pattern] + WORD - 1) >> 6)
    words = np.zeros((5, room), np.uint64)
    return _Block(
        np.zeros((n_labels, room), np.uint64),
        words[0],
        words[1],
        words[2],
        words[3],
        words[4],
        np.zeros((n_slots, LANES + 1), np.int64),
        np.empty(LANES, np.int64),
    )


@part()
def _lanes(types: Types, low: int, high: int) -> int:
    """Return the number of patterns in the next block, among low:high: 1 if the first pattern takes several words.

    Otherwise the block has all patterns of one word, up to `LANES`.
    """
    lanes = 1
    while lanes < LANES and low + lanes < high and types.last[low + lanes] - types.first[low + lanes] <= WORD:
        lanes += 1
    return lanes


@part()
def _enter(block: _Block, types: Types, label: I32, low: int, lanes: int) -> None:
    block.sizes[:LANES] = _NONE
    block.ends[:LANES] = _NONE
    for lane in range(lanes):
        first, last = types.first[low + lane], types.last[low + lane]
        block.sizes[lane] = last - first
        block.ends[lane] = max(last - first - 1, 0) & (WORD - 1)
        _mark(block.masks, lane, label, first, last)
        for entry in range(types.entries[low + lane], types.entries[low + lane + 1]):
            block.counts[types.slot[entry], lane] = types.number[entry]
            block.counts[types.slot[entry], LANES] += 1


@part()
def _leave(block: _Block, types: Types, label: I32, low: int, lanes: int) -> None:
    for lane in range(lanes):
        _unmark(block.masks, lane, label, types.first[low + lane], types.last[low + lane])
        for entry in range(types.entries[low + lane], types.entries[low + lane + 1]):
            block.counts[types.slot[entry]] = 0


@part()
def _meets(block: _Block, types: Types, text: int) -> bool:
    """Return whether a type occurs in a slot in which a pattern occurs."""
    for entry in range(types.entries[text], types.entries[text + 1]):
        if block.counts[types.slot[entry], LANES] > 0:
            return True
    return False


@part()
def _add(block: _Block, types: Types, text: int, lanes: int, weight: int, place_of: I64, histogram: I64) -> None:
    """Add the pairs of each of the first `lanes` patterns with a text to the histogram."""
    length = types.last[text] - types.first[text]
    for lane in range(lanes):
        block.places[lane] = place_of[max(np.int64(block.sizes[lane]), length)] + np.int64(block.distances[lane])
    for entry in range(types.entries[text], types.entries[text + 1]):
        counts, row = block.counts[types.slot[entry]], histogram[types.slot[entry]]
        if counts[LANES] > 0:
            times = weight * types.number[entry]
            for lane in range(lanes):
                row[block.places[lane]] += times * counts[lane]


@kernel(void(_TYPES, *_PRODUCTS, column(int32), int64, column(int64), int64[:, ::1]))
def add_distances(
    types: Types, lefts: I64, rights: I64, weights: I64, label: I32, n_labels: int, place_of: I64, histogram: I64
) -> None:
    """Add the distances of all pairs of fragments of each product that have different types and the same slot.

    A product pairs the fragments of side `lefts` with those of side `rights`; each pair counts `weights` times. `label`
    int32 holds numbers below `n_labels`. A pair in a slot, at distance d, whose longer type has m labels counts in that
    row of `histogram` int64 [n_slots, n_places] at place_of[m] + d. The two sides of a product have no type in common,
    or they are the same side; then each pair of its types counts once. Types without a common slot are not compared.
    """
    block = _room_for(types, n_labels, len(histogram))
    for product in range(len(lefts)):
        left, right = lefts[product], rights[product]
        low, high = types.bounds[left], types.bounds[left + 1]
        while low < high:
            lanes = _lanes(types, low, high)
            _enter(block, types, label, low, lanes)
            for text in range(low + 1 if left == right else types.bounds[right], types.bounds[right + 1]):
                if not _meets(block, types, text):
                    continue
                first, last = types.first[text], types.last[text]
                if block.sizes[0] > WORD:
                    distance = _distance(block.masks, int(block.sizes[0]), label, first, last, block.rises, block.falls)
                    block.distances[0] = distance
                else:
                    _distances(block, label, first, last)
                # Within one side, a text meets only the patterns before it, so that each pair counts once.
                before = text - low if left == right else lanes
                _add(block, types, text, min(lanes, before), weights[product], place_of, histogram)
            _leave(block, types, label, low, lanes)
            low += lanes
