"""NED, the normalized edit distance between the transcriptions of pairs that a system put in one class.

The mean over pairs of Levenshtein distance / length of the longer transcription, in phones: 0 if all
transcriptions are equal, 1 if no phone matches. NaN in a fold without pairs. `n_pairs` is the number of pairs.

- document: the pairs are the set P_disc of the measures document of the Zero Resource challenge: two fragments of a
  class, in one fold, that do not overlap (share at most half of the shorter one's extent, or lie in two files). A pair
  that several classes have counts once. The document's denominator max(j - i + 1, k - l + 1) is read as the length of
  the longer transcription. Two fragments without phones are not a pair.
- tde2015: QUIRK: two fragments overlap if they are `near` (more than 30 ms, or more than half of either, in doubles),
  whatever their files. Two fragments without phones are no pair; the tool divides by zero there.
- tdev2: QUIRK: the pairs are a list: every two members of a class, whether they overlap or not, as often as classes
  have them; a fragment that is a member twice makes a pair with itself. QUIRK: phones labelled SIL are left out, SPN
  are not; two transcriptions that are empty then have distance 1.

The statistic is a histogram over (fold, length, distance), so it merges by adding. Pairs are not enumerated: a class is
a product of types with their multiplicities, and every two different types are compared once. The few pairs that
overlap are found by a sweep over time and subtracted. Classes with many types are cut into tiles of types. The mean is
a sum of fractions, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.pairs import (
    Products,
    batches,
    bounds_of,
    members,
    overlapping_rows,
    pairs_of_classes,
    pairs_within,
    ranges,
    slots_of,
)
from swsdask.discovery.counting.per_fold import most_folds
from swsdask.kernels.edit_distance import WORD, Types, add_distances, edit_distances
from swsdask.kernels.pairs import MOST_OF_THE_SHORTER, NEAR
from swsdask.model.columns import row_changes
from swsdask.model.discovery import NO_FOLD, Corpus, Definition, Discovered
from swsdask.model.trials import F64, I32, I64

_OVERLAP: dict[Definition, int] = {"document": MOST_OF_THE_SHORTER, "tde2015": NEAR}
_PHONES_PER_STEP = 32
_PAIRS_PER_STEP = 8


@dataclass(frozen=True, eq=False)
class EditDistances:
    """The number of pairs at each distance.

    Rows sorted by `slot` (a fold of a set: see `slots_of`), `length` of the longer transcription in phones, and
    `distance`; `pairs` is never 0. All int64.
    """

    slot: I64
    length: I64
    distance: I64
    pairs: I64

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Products]:
        """Yield products of about `work` steps each, larger ones as tiles of types."""
        if corpus.definition == "tdev2":
            whole = pairs_within(*members(discovered, repeats=True))
        else:
            whole = pairs_of_classes(discovered)
        yield from _tiled(whole, corpus, discovered, work)

    @classmethod
    def from_cell(cls, cell: Products, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the distances of the pairs of some products."""
        spelling = _spelling(corpus, discovered)
        slots = slots_of(cell.fragment, corpus, discovered)
        sides = _sides(cell, slots, spelling, discovered)
        present, local = np.unique(sides.slot, return_inverse=True)
        places = _places(np.unique(sides.last - sides.first))
        histogram = np.zeros((len(present), len(places.length)), np.int64)
        types = sides._replace(slot=local.astype(np.int64))
        n_labels = len(corpus.phones.labels)
        add_distances(types, cell.left, cell.right, cell.weight, spelling.label, n_labels, places.first, histogram)
        _add_equal(cell, types, places, histogram)
        if corpus.definition in _OVERLAP:
            for one, other, product in overlapping_rows(cell, _OVERLAP[corpus.definition], discovered):
                shared = (slots[:, one] == slots[:, other]) & (slots[:, one] != NO_FOLD)
                some = np.flatnonzero(shared.any(axis=0))
                left, right = cell.fragment[one[some]], cell.fragment[other[some]]
                longer = np.maximum(spelling.length(left), spelling.length(right))
                # Jittered copies of one fragment overlap in as many pairs as there are, of few types.
                kind = discovered.type.astype(np.int64)
                both = kind[left] * (int(kind.max(initial=0)) + 1) + kind[right]
                _, example, alike = np.unique(both, return_index=True, return_inverse=True)
                distance = spelling.distances(left[example], right[example], n_labels)[alike]
                place = places.first[longer] + distance
                for own, slot in zip(shared[:, some], slots, strict=True):
                    row = np.searchsorted(present, slot[one[some[own]]])
                    np.subtract.at(histogram, (row, place[own]), cell.weight[product[some[own]]])
        row, place = np.nonzero(histogram)
        return cls(present[row], places.length[place], places.distance[place], histogram[row, place])

    def merge(self, other: Self) -> Self:
        """Return the pairs of both parts together."""
        slot, length, distance, pairs = (
            np.concatenate(both) for both in zip(self._columns, other._columns, strict=True)
        )
        order = np.lexsort((distance, length, slot))
        slot, length, distance, pairs = slot[order], length[order], distance[order], pairs[order]
        new = row_changes(slot, length, distance)
        summed = np.add.reduceat(pairs, np.flatnonzero(new)) if len(pairs) else pairs
        kept = summed != 0
        return type(self)(slot[new][kept], length[new][kept], distance[new][kept], summed[kept])

    @property
    def _columns(self) -> tuple[I64, I64, I64, I64]:
        return self.slot, self.length, self.distance, self.pairs

    def mean(self, slot: int, *, with_empty: bool) -> tuple[float, int]:
        """Return the mean of distance / length in a fold, rounded once, and its number of pairs.

        Pairs of two empty transcriptions have distance 1 if `with_empty`, else they are left out. NaN without pairs.
        """
        low, high = np.searchsorted(self.slot, [slot, slot + 1]).tolist()
        if not with_empty:
            low += int(np.searchsorted(self.length[low:high], 1))
        n = int(self.pairs[low:high].sum())
        if n == 0:
            return float("nan"), 0
        total = Fraction(0)
        for length in np.unique(self.length[low:high]).tolist():
            own = slice(*(low + np.searchsorted(self.length[low:high], [length, length + 1])).tolist())
            if length == 0:
                total += int(self.pairs[own].sum())
            else:
                total += Fraction(int((self.distance[own] * self.pairs[own]).sum()), length)
        return float(total / n), n


class Ned:
    """ned, and n_pairs, the number of pairs that it is the mean of."""

    names: ClassVar[tuple[str, ...]] = ("ned", "n_pairs")
    statistic: ClassVar[type[EditDistances]] = EditDistances

    def values(self, statistic: EditDistances, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers per fold; NaN, and 0 pairs, where a fold has no pairs."""
        first = fold_set * most_folds(corpus)
        n_folds = len(corpus.folds[fold_set].names)
        found = [statistic.mean(first + fold, with_empty=corpus.definition == "tdev2") for fold in range(n_folds)]
        mean, pairs = zip(*found, strict=True)
        return {"ned": np.array(mean, np.float64), "n_pairs": np.array(pairs, np.float64)}


class _Spelling(NamedTuple):
    """The transcription of fragment i is label[first[i]:last[i]]."""

    label: I32
    first: I64
    last: I64

    def length(self, fragment: I64) -> I64:
        return self.last[fragment] - self.first[fragment]

    def distances(self, one: I64, other: I64, n_labels: int) -> I32:
        return edit_distances(
            self.label, n_labels, self.first[one], self.last[one], self.first[other], self.last[other]
        )


@lru_cache(maxsize=1)
def _spelling(corpus: Corpus, discovered: Discovered) -> _Spelling:
    if corpus.definition != "tdev2":
        return _Spelling(corpus.phones.label, discovered.first, discovered.last)
    label, before = _without_silence(corpus)
    return _Spelling(label, before[discovered.first], before[discovered.last])


@per_corpus
def _without_silence(corpus: Corpus) -> tuple[I32, I64]:
    """The labels of the phones that are not SIL, and how many there are before each phone: int64 [n_phones + 1]."""
    spoken = ~corpus.silence[corpus.phones.label]
    return corpus.phones.label[spoken], bounds_of(spoken.astype(np.int64))


class _Places(NamedTuple):
    """Columns of a histogram over (length, distance): those of length m are first[m] .. first[m] + m."""

    first: I64
    length: I64
    distance: I64


def _places(lengths: I64) -> _Places:
    first = np.zeros(int(lengths.max(initial=0)) + 1, np.int64)
    first[lengths] = bounds_of(lengths + 1)[:-1]
    return _Places(first, np.repeat(lengths, lengths + 1), ranges(np.zeros(len(lengths), np.int64), lengths + 1))


def _sides(cell: Products, slots: I64, spelling: _Spelling, discovered: Discovered) -> Types:
    """Return the sides of products as types with their multiplicities in each slot.

    The types of a side are sorted by whether they are long, then by their first slot, so each fold is contiguous.
    """
    kinds, example, kind = np.unique(discovered.type[cell.fragment], return_index=True, return_inverse=True)
    n_types, n_slots = max(len(kinds), 1), int(slots.max(initial=0)) + 1
    of_row = cell.side * n_types + kind
    entry, count = np.unique(
        np.concatenate([of_row[slot != NO_FOLD] * n_slots + slot[slot != NO_FOLD] for slot in slots]),
        return_counts=True,
    )
    begins = np.flatnonzero(np.diff(entry // n_slots, prepend=-1))
    side, kind = np.divmod(entry[begins] // n_slots, n_types)
    first, last = (column[cell.fragment[example[kind]]] for column in (spelling.first, spelling.last))
    order = np.lexsort((kind, entry[begins] % n_slots, last - first > WORD, side))
    sizes = np.diff(begins, append=len(entry))[order]
    rows = ranges(begins[order], sizes)
    return Types(
        bounds=np.searchsorted(side, np.arange(len(cell.bounds))),
        first=first[order],
        last=last[order],
        entries=bounds_of(sizes),
        slot=entry[rows] % n_slots,
        number=count[rows],
    )


def _add_equal(cell: Products, types: Types, places: _Places, histogram: I64) -> None:
    """Add the pairs of fragments of one type in the products of a side with itself: distance 0."""
    times = np.zeros(len(cell.bounds) - 1, np.int64)
    np.add.at(times, cell.left[cell.alone], cell.weight[cell.alone])
    of_type = np.repeat(times, np.diff(types.bounds))
    sizes = np.diff(types.entries)
    place = np.repeat(places.first[types.last - types.first], sizes)
    pairs = types.number * (types.number - 1) // 2
    np.add.at(histogram, (types.slot, place), np.repeat(of_type, sizes) * pairs)


def _tiled(whole: Products, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Products]:
    """Products that cost about `work` each: sides of many types are cut into blocks of types, products into tiles.

    A type costs 1, or more if it is long. A product costs the product of the costs of its sides / `_PAIRS_PER_STEP`,
    plus 1 for each row.
    """
    kind = discovered.type[whole.fragment].astype(np.int64)
    order = np.lexsort((kind, whole.side))
    kind, side = kind[order], whole.side
    new = row_changes(kind, side)
    phones = _spelling(corpus, discovered).length(whole.fragment[order])
    cost = bounds_of(np.where(new, 1 + phones // _PHONES_PER_STEP, 0))
    within = cost[1:] - 1 - cost[whole.bounds][side]
    blocks = within // math.isqrt(work * _PAIRS_PER_STEP)
    begins = np.flatnonzero(row_changes(blocks, side))
    bounds = np.append(begins, len(kind))
    first = np.searchsorted(side[begins], np.arange(len(whole.bounds)))
    left, right, weight = _crossed(whole, first)
    rows, cost = np.diff(bounds), np.diff(cost[bounds])
    steps = cost[left] * cost[right] // _PAIRS_PER_STEP + rows[left] + rows[right]
    yield from batches(Products(whole.fragment[order], bounds, left, right, weight), steps, work)


def _crossed(whole: Products, first: I64) -> tuple[I64, I64, I64]:
    """Return products of blocks, in place of those of sides: side s has the blocks first[s]:first[s + 1]."""
    n_left, n_right = np.diff(first)[whole.left], np.diff(first)[whole.right]
    n = n_left * n_right
    product, number = np.repeat(np.arange(len(n)), n), ranges(np.zeros(len(n), np.int64), n)
    left = first[whole.left][product] + number // n_right[product]
    right = first[whole.right][product] + number % n_right[product]
    once = (whole.left != whole.right)[product] | (left <= right)
    return left[once], right[once], whole.weight[product][once]
