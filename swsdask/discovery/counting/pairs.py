"""Pairs of fragments of one class, as products of sets of fragments, and their counts. Pairs are never listed.

All pairs of a class are one product. Pairs that several classes have are products too, which are subtracted: fragments
of the same classes make a group, and a pair of groups that share k classes is subtracted k - 1 times. So every pair
counts once, as in a set. Overlapping pairs are found by a sweep over time. For a set of pairs, its fragments are
counted, and its pairs by the type of the later fragment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.per_fold import most_folds
from swsdask.kernels.ngrams import number_sequences
from swsdask.kernels.pairs import ACROSS_FILES, Times, overlapping, ranks, repeated_pairs
from swsdask.model.columns import row_changes
from swsdask.model.discovery import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import I32, I64, Bool

_AT_ONCE = 1 << 18
"""The number of overlapping pairs in memory at once."""


@dataclass(frozen=True, eq=False)
class Products:
    """Products of sides, which are sets of fragments; all int64.

    Side s has the rows bounds[s]:bounds[s + 1] of `fragment` (rows of `Discovered`), ascending except in tiles of NED.
    Product k has the pairs of a fragment of side left[k] and one of side right[k], or, if left[k] == right[k], the
    pairs of any two fragments of that side. Each pair counts weight[k] times.
    """

    fragment: I64
    bounds: I64
    left: I64
    right: I64
    weight: I64

    def __str__(self) -> str:
        return f"{len(self.left)} products of {len(self.fragment)} fragments"

    @property
    def side(self) -> I64:
        """The side of each row."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    @property
    def alone(self) -> I64:
        """The products of a side with itself."""
        return np.flatnonzero(self.left == self.right)

    def take(self, low: int, high: int) -> Products:
        """Return the products low:high, with their sides only."""
        both = np.concatenate([self.left[low:high], self.right[low:high]])
        sides, place = np.unique(both, return_inverse=True)
        sizes = np.diff(self.bounds)[sides]
        rows = ranges(self.bounds[sides], sizes)
        left, right = place.reshape(2, -1)
        return Products(self.fragment[rows], bounds_of(sizes), left, right, self.weight[low:high])

    def joined(self, other: Products) -> Products:
        """Return the products of both."""
        shift = len(self.bounds) - 1
        return Products(
            np.concatenate([self.fragment, other.fragment]),
            np.concatenate([self.bounds, other.bounds[1:] + self.bounds[-1]]),
            np.concatenate([self.left, other.left + shift]),
            np.concatenate([self.right, other.right + shift]),
            np.concatenate([self.weight, other.weight]),
        )


def bounds_of(sizes: I64) -> I64:
    """Return the bounds of consecutive parts of some sizes: int64 [n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def ranges(begins: I64, sizes: I64) -> I64:
    """Return the numbers begins[k] .. begins[k] + sizes[k] - 1 of every k."""
    return np.arange(int(sizes.sum())) + np.repeat(begins - bounds_of(sizes)[:-1], sizes)


def slots_of(fragment: I64, corpus: Corpus, discovered: Discovered) -> I64:
    """Return the slots of fragments. A slot numbers the folds of all sets: fold set * most folds + fold.

    int64 [n_fold_sets, n], `NO_FOLD` if a fragment is in no fold of a set.
    """
    fold = np.take(discovered.fold, fragment, axis=1).astype(np.int64)
    first = np.arange(len(corpus.folds)) * most_folds(corpus)
    return np.where(fold == NO_FOLD, NO_FOLD, fold + first[:, None])


def members(discovered: Discovered, *, repeats: bool) -> tuple[I64, I64]:
    """Return the class and the fragment of the members that are in a fold, in order; duplicates only with `repeats`."""
    cluster, fragment = discovered.member_cluster, discovered.member_fragment
    counted = (discovered.fold != NO_FOLD).any(axis=0)[fragment]
    if not repeats:
        counted[1:] &= (cluster[1:] != cluster[:-1]) | (fragment[1:] != fragment[:-1])
    return cluster[counted].astype(np.int64), fragment[counted]


def pairs_within(kind: I64, fragment: I64) -> Products:
    """Return the pairs of fragments of one kind (a class, a type). Rows are sorted by kind."""
    begins = np.flatnonzero(np.diff(kind, prepend=-1))
    sizes = np.diff(begins, append=len(kind))
    several = sizes > 1
    begins, sizes = begins[several], sizes[several]
    sides = np.arange(len(sizes))
    return Products(fragment[ranges(begins, sizes)], bounds_of(sizes), sides, sides, np.ones(len(sizes), np.int64))


def pairs_of_classes(discovered: Discovered) -> Products:
    """Return the set of pairs of two fragments of one class."""
    cluster, fragment = members(discovered, repeats=False)
    return pairs_within(cluster, fragment).joined(_repeated_pairs(cluster, fragment))


def members_twice(discovered: Discovered) -> Products:
    """Return the fragments that a class has several times: each is a side, with one product, that with itself."""
    cluster, fragment = members(discovered, repeats=True)
    again = (cluster[1:] == cluster[:-1]) & (fragment[1:] == fragment[:-1])
    twice = np.unique(fragment[1:][again])
    sides = np.arange(len(twice))
    return Products(twice, np.arange(len(twice) + 1), sides, sides, np.ones(len(twice), np.int64))


def _repeated_pairs(cluster: I64, fragment: I64) -> Products:
    """Return the pairs that k > 1 classes have, with the weight 1 - k."""
    shared = np.bincount(fragment)[fragment] > 1 if len(fragment) else np.zeros(0, np.bool_)
    order = np.argsort(fragment[shared], kind="stable")
    cluster, fragment = cluster[shared][order], fragment[shared][order]
    begins = np.flatnonzero(np.diff(fragment, prepend=-1))
    group, _, first, last = number_sequences(
        begins, np.append(begins[1:], len(fragment)), np.ascontiguousarray(cluster, np.int32)
    )
    size = np.bincount(group, minlength=len(first))
    by_group = np.argsort(group, kind="stable")

    n_classes = last - first
    of_group = np.repeat(np.arange(len(first)), n_classes)
    cluster = cluster[ranges(first, n_classes)]
    classes, place, n_groups = np.unique(cluster, return_inverse=True, return_counts=True)
    rank_of = np.empty(len(classes), np.int64)
    rank_of[np.lexsort((classes, n_groups))] = np.arange(len(classes))
    rank = rank_of[place]
    order = np.lexsort((rank, of_group))
    by_rank = np.lexsort((of_group, rank))
    left, right = repeated_pairs(
        bounds_of(np.bincount(rank, minlength=len(classes))), of_group[by_rank], bounds_of(n_classes), rank[order], size
    )
    pairs, times = np.unique(left * len(size) + right, return_counts=True)
    return Products(
        fragment[begins][by_group], bounds_of(size), pairs // max(len(size), 1), pairs % max(len(size), 1), -times
    )


def of_one_type(products: Products, discovered: Discovered) -> Products:
    """Return the pairs of products whose fragments have one type."""
    kind = discovered.type[products.fragment].astype(np.int64)
    n_types = int(discovered.type.max(initial=0)) + 1
    place = products.side * n_types + kind
    order = np.argsort(place, kind="stable")
    place = place[order]
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    sides = place[begins]
    first = np.searchsorted(sides, np.arange(len(products.bounds)) * n_types)
    n = np.diff(first)[products.left]
    product, left = np.repeat(np.arange(len(n)), n), ranges(first[products.left], n)
    wanted = products.right[product] * n_types + sides[left] % n_types
    right = np.minimum(np.searchsorted(sides, wanted), len(sides) - 1)
    there = sides[right] == wanted
    return Products(
        products.fragment[order],
        np.append(begins, len(place)),
        left[there],
        right[there],
        products.weight[product[there]],
    )


def batches(products: Products, cost: I64, work: int) -> Iterator[Products]:
    """Yield the products in parts that cost about `work` each, at least one part; `cost` is int64 [n_products]."""
    before = np.cumsum(cost) - cost
    cuts = np.flatnonzero(np.diff(before // work, prepend=-1)).tolist() or [0]
    for low, high in zip(cuts, [*cuts[1:], len(cost)], strict=True):
        yield products.take(low, high)


def overlapping_rows(products: Products, rule: int, discovered: Discovered) -> Iterator[tuple[I64, I64, I64]]:
    """Yield the pairs that overlap by a rule of `kernels.pairs`, part by part: two rows, and the product."""
    file, begin, end = (
        column[products.fragment].astype(np.int64) for column in (discovered.file, discovered.start, discovered.end)
    )
    if rule in ACROSS_FILES:
        order = np.argsort((products.side << 32) + begin)
    else:
        begin, end = begin + (file << 32), end + (file << 32)
        order = np.argsort(products.side * len(discovered) + products.fragment)
    times = Times(file[order], begin[order], end[order])
    cursor, found = np.zeros(4, np.int64), np.empty((3, _AT_ONCE), np.int64)
    n = _AT_ONCE
    while n == _AT_ONCE:
        n = overlapping(times, products.bounds, products.left, products.right, rule, cursor, found)
        yield order[found[0, :n]], order[found[1, :n]], found[2, :n].copy()


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """A set of pairs: int64 columns, keys ascending and distinct.

    `flat` has its fragments as group * n_fragments + fragment, where a group is slot * n_types + type (slot: see
    `slots_of`); `group` has the groups of the later fragments of pairs, `pairs` the number of pairs of each, never 0.
    """

    flat: I64
    group: I64
    pairs: I64

    @classmethod
    def of(cls, flat: Sequence[I64], group: Sequence[I64], pairs: Sequence[I64]) -> Self:
        """Build from parts with keys in any order, where a key may be repeated."""
        groups = _joined(group)
        order = np.argsort(groups)
        groups = groups[order]
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        summed = np.add.reduceat(_joined(pairs)[order], begins) if len(begins) else groups
        elements = np.sort(_joined(flat))
        return cls(elements[np.diff(elements, prepend=-1) != 0], groups[begins][summed != 0], summed[summed != 0])

    def merge(self, other: Self) -> Self:
        """Return the union. Pairs in both count twice; another part subtracts them by its negative weights."""
        return self.of([self.flat, other.flat], [self.group, other.group], [self.pairs, other.pairs])


class Keys(NamedTuple):
    """The identities of fragments: int64, `slot` [n_fold_sets, n_fragments] (see `slots_of`), `type` and `identity`.

    Two fragments that are both `silent` (bool) are not a pair.
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
        """Return the group of fragments of some slots."""
        return slot * self.n_types + self.type[fragment]

    def element(self, slot: I64, fragment: I64) -> I64:
        """Return the keys that fragments of some slots have as elements of flat(P)."""
        return self.group(slot, fragment) * len(self.type) + self.identity[fragment]


@lru_cache(maxsize=1)
def keys_of(corpus: Corpus, discovered: Discovered) -> Keys:
    """Identify fragments by their rows. QUIRK of tdev2: only by the onsets, offsets and labels of their phones."""
    identity = np.arange(len(discovered))
    if corpus.definition == "tdev2":
        identity = number_sequences(discovered.first, discovered.last, _timed_labels(corpus))[0].astype(np.int64)
    every = np.arange(len(discovered))
    silent = (discovered.first == discovered.last) & (corpus.definition == "document")
    return Keys(slots_of(every, corpus, discovered), discovered.type.astype(np.int64), identity, silent)


@per_corpus
def _timed_labels(corpus: Corpus) -> I32:
    """Return numbers for the phones, equal for those of equal onset, offset and label, int32 [n_phones]."""
    phones = corpus.phones
    order = np.lexsort((phones.label, phones.end, phones.start))
    new = row_changes(*(column[order] for column in (phones.start, phones.end, phones.label)))
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(new) - 1
    return number


def in_several(discovered: Discovered, keys: Keys) -> Keys:
    """Return the keys, without the slots in which all classes of a fragment have only this one member.

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
    """Return the pairs of distinct fragments with themselves."""
    fold_set, row = np.nonzero(keys.slot[:, fragment] != NO_FOLD)
    slot, fragment = keys.slot[fold_set, fragment[row]], fragment[row]
    return CountedPairs.of([keys.element(slot, fragment)], [keys.group(slot, fragment)], [np.ones(len(slot), np.int64)])


def counted_products(products: Products, rule: int | None, discovered: Discovered, keys: Keys) -> CountedPairs:
    """Return the pairs of products that do not overlap by a rule of `kernels.pairs`; None: all pairs.

    flat(P) comes from the products with positive weights, each of a side with itself. Pairs of silent fragments are
    subtracted, like overlapping ones.
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
    """Count the others of `some` rows in the side and slot of each of them; 0 for all other rows."""
    n = np.zeros(len(side), np.int64)
    n_slots = int(slot.max(initial=0)) + 1
    _, of_row, sizes = np.unique(side[some] * (n_slots + 1) + slot[some] + 1, return_inverse=True, return_counts=True)
    n[some] = sizes[of_row] - 1
    return n


def _only(products: Products, some: Bool) -> Products:
    """Return the products of `some` rows only, with negated weights."""
    bounds = bounds_of(some.astype(np.int64))[products.bounds]
    return Products(products.fragment[some], bounds, products.left, products.right, -products.weight)


def _counted_in(products: Products, slot: I64, overlaps: I64, keys: Keys) -> tuple[I64, I64, I64]:
    """Return all pairs of products in the folds of one set, as a part of `CountedPairs.of`.

    `slot` and `overlaps` have the slot of each row, and the number of rows that overlap it.
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
