"""A set of pairs of fragments as what is counted of it: the fragments in it, and its pairs by the later one's type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from swsdask.discovery.counting.pairs import Products, bounds_of, overlapping_rows, ranges, slots_of
from swsdask.discovery.counting.remembered import per_corpus
from swsdask.kernels.fragment_pairs import ranks
from swsdask.kernels.sequences import number_sequences
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import I32, I64, Bool


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """A set of pairs: int64 columns, keys ascending and distinct.

    `flat` are its fragments, group * n_fragments + fragment, a group being slot * n_types + type (slot: see
    `slots_of`); `group` are those of the later fragments of pairs, `pairs` how many there are of each, never 0.
    """

    flat: I64
    group: I64
    pairs: I64

    @classmethod
    def of(cls, flat: Sequence[I64], group: Sequence[I64], pairs: Sequence[I64]) -> Self:
        """From parts with keys in any order, where one may be often."""
        groups = _joined(group)
        order = np.argsort(groups)
        groups = groups[order]
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        summed = np.add.reduceat(_joined(pairs)[order], begins) if len(begins) else groups
        elements = np.sort(_joined(flat))
        return cls(elements[np.diff(elements, prepend=-1) != 0], groups[begins][summed != 0], summed[summed != 0])

    def merge(self, other: Self) -> Self:
        """Both together; what is in both is taken away by a third part (`Products.weight`)."""
        return self.of([self.flat, other.flat], [self.group, other.group], [self.pairs, other.pairs])


class Keys(NamedTuple):
    """What fragments are known by: int64, `slot` [n_fold_sets, n_fragments] (see `slots_of`), `type` and `identity`.

    Two fragments that are both `silent`, bool, are no pair.
    """

    slot: I64
    type: I64
    identity: I64
    silent: Bool

    @property
    def n_types(self) -> int:
        """The number of types; 1 at least."""
        return int(self.type.max(initial=0)) + 1

    def group(self, slot: I64, fragment: I64) -> I64:
        """The group of fragments of some slots."""
        return slot * self.n_types + self.type[fragment]

    def element(self, slot: I64, fragment: I64) -> I64:
        """The keys that fragments of some slots have as elements of flat(P)."""
        return self.group(slot, fragment) * len(self.type) + self.identity[fragment]


@lru_cache(maxsize=1)
def keys_of(corpus: Corpus, discovered: Discovered) -> Keys:
    """Fragments are known by themselves. QUIRK of tdev2: by the onsets, offsets and labels of their phones alone."""
    identity = np.arange(len(discovered))
    if corpus.definition == "tdev2":
        identity = number_sequences(discovered.first, discovered.last, _timed_labels(corpus))[0].astype(np.int64)
    every = np.arange(len(discovered))
    silent = (discovered.first == discovered.last) & (corpus.definition == "document")
    return Keys(slots_of(every, corpus, discovered), discovered.type.astype(np.int64), identity, silent)


@per_corpus
def _timed_labels(corpus: Corpus) -> I32:
    """Numbers for the phones, equal for those of equal onset, offset and label, int32 [n_phones]."""
    phones = corpus.phones
    order = np.lexsort((phones.label, phones.end, phones.start))
    new = np.zeros(len(order), np.bool_)
    for column in (phones.start, phones.end, phones.label):
        new |= np.diff(column[order], prepend=-1) != 0
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(new) - 1
    return number


def in_several(discovered: Discovered, keys: Keys) -> Keys:
    """The keys, without the slots in which all classes of a fragment have only this one member.

    A duplicate member is a second one.
    """
    slot = np.full_like(keys.slot, NO_FOLD)
    n_slots = int(keys.slot.max(initial=0)) + 1
    for number, own in enumerate(keys.slot):
        inside = own[discovered.member_fragment] != NO_FOLD
        fragment = discovered.member_fragment[inside]
        place = discovered.member_cluster[inside].astype(np.int64) * n_slots + own[fragment]
        _, of_member, sizes = np.unique(place, return_inverse=True, return_counts=True)
        several = fragment[sizes[of_member] > 1]
        slot[number, several] = own[several]
    return keys._replace(slot=slot)


def counted_alone(fragment: I64, keys: Keys) -> CountedPairs:
    """The pairs of fragments, which are distinct, with themselves."""
    fold_set, row = np.nonzero(keys.slot[:, fragment] != NO_FOLD)
    slot, fragment = keys.slot[fold_set, fragment[row]], fragment[row]
    return CountedPairs.of([keys.element(slot, fragment)], [keys.group(slot, fragment)], [np.ones(len(slot), np.int64)])


def counted(products: Products, rule: int | None, discovered: Discovered, keys: Keys) -> CountedPairs:
    """The pairs of products that do not overlap by a rule of `kernels.fragment_pairs`; None: whether they do or not.

    flat(P) is that of the products that add pairs, each of a side with itself. Pairs of silent fragments are taken away
    as those are that overlap.
    """
    own = np.take(keys.slot, products.fragment, axis=1)
    silent = keys.silent[products.fragment]
    overlaps = np.array([_others(products.side, slot, silent) for slot in own])
    parts: list[tuple[I64, I64, I64]] = []
    for pairs in overlapping_rows(products, rule, discovered) if rule is not None else ():
        heard = ~(silent[pairs[0]] & silent[pairs[1]])
        one, other, product = (column[heard] for column in pairs)
        later = np.maximum(products.fragment[one], products.fragment[other])
        for slot, count in zip(own, overlaps, strict=True):
            shared = (slot[one] == slot[other]) & (slot[one] != NO_FOLD)
            np.add.at(count, one[shared], 1)
            np.add.at(count, other[shared], 1)
            group = keys.group(slot[one[shared]], later[shared])
            taken = CountedPairs.of([], [group], [-products.weight[product[shared]]])
            parts.append((taken.flat, taken.group, taken.pairs))
    taken_away = _only(products, silent)
    for slot, count in zip(own, overlaps, strict=True):
        parts.append(_counted_in(products, slot, count, keys))
        _, group, n_pairs = _counted_in(taken_away, slot[silent], count[silent], keys)
        parts.append((np.empty(0, np.int64), group, n_pairs))
    return CountedPairs.of(*zip(*parts, strict=True))


def _others(side: I64, slot: I64, some: Bool) -> I64:
    """How many others of `some` rows each of them has in its side and slot; 0 for all other rows."""
    n = np.zeros(len(side), np.int64)
    n_slots = int(slot.max(initial=0)) + 1
    _, of_row, sizes = np.unique(side[some] * (n_slots + 1) + slot[some] + 1, return_inverse=True, return_counts=True)
    n[some] = sizes[of_row] - 1
    return n


def _only(products: Products, some: Bool) -> Products:
    """The pairs of products of `some` rows, to be taken away."""
    bounds = bounds_of(some.astype(np.int64))[products.bounds]
    return Products(products.fragment[some], bounds, products.left, products.right, -products.weight)


def _counted_in(products: Products, slot: I64, overlaps: I64, keys: Keys) -> tuple[I64, I64, I64]:
    """All pairs of products in the folds of one set, as a part of `CountedPairs.of`.

    Of each row there is its slot, and how many rows overlap it.
    """
    apart = np.flatnonzero(products.left != products.right)
    left = np.concatenate([products.left, products.right[apart]])
    right = np.concatenate([products.right, products.left[apart]])
    weight = np.concatenate([products.weight, products.weight[apart]])
    n_slots = int(slot.max(initial=0)) + 1
    before, there = ranks(products.bounds, left, right, products.fragment, slot, n_slots)
    sizes = np.diff(products.bounds)[left]
    row, product = ranges(products.bounds[left], sizes), np.repeat(np.arange(len(left)), sizes)
    pairs = before * weight[product]
    some = np.flatnonzero(pairs)
    group = keys.group(slot[row[some]], products.fragment[row[some]])
    adds = (left == right) & (weight > 0)
    paired = row[adds[product] & (there - 1 > overlaps[row])]
    return keys.element(slot[paired], products.fragment[paired]), group, pairs[some]


def _joined(parts: Sequence[I64]) -> I64:
    return np.concatenate([np.empty(0, np.int64), *parts])
