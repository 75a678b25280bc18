"""Pairs of the fragments of classes: as products of sets of fragments, which are never listed.

All pairs of a class are one product. Where fragments are in several classes, pairs that several of these have are
products too, to be taken away again: fragments that are in the same classes make a group, and a pair of groups that k
classes have is taken away k - 1 times. So every pair counts once, as in a set. Pairs that overlap are found by a sweep
over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from swsdask.discovery.counting.per_fold import most_folds
from swsdask.kernels.fragment_pairs import ACROSS_FILES, Times, overlapping, repeated
from swsdask.kernels.sequences import number_sequences
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import I64

_AT_ONCE = 1 << 18
"""Overlapping pairs that are held at once."""


@dataclass(frozen=True, eq=False)
class Products:
    """Products of sides, which are sets of fragments; all int64.

    Side s has the rows bounds[s]:bounds[s + 1] of `fragment` (rows of `Discovered`), ascending but in tiles of NED.
    Product k is the pairs of a fragment of side left[k] with one of another side right[k], or of any two of one side;
    each counts weight[k] times.
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
        """The products low:high, with their sides only."""
        both = np.concatenate([self.left[low:high], self.right[low:high]])
        sides, place = np.unique(both, return_inverse=True)
        sizes = np.diff(self.bounds)[sides]
        rows = ranges(self.bounds[sides], sizes)
        left, right = place.reshape(2, -1)
        return Products(self.fragment[rows], bounds_of(sizes), left, right, self.weight[low:high])

    def joined(self, other: Products) -> Products:
        """The products of both."""
        shift = len(self.bounds) - 1
        return Products(
            np.concatenate([self.fragment, other.fragment]),
            np.concatenate([self.bounds, other.bounds[1:] + self.bounds[-1]]),
            np.concatenate([self.left, other.left + shift]),
            np.concatenate([self.right, other.right + shift]),
            np.concatenate([self.weight, other.weight]),
        )


def bounds_of(sizes: I64) -> I64:
    """Where parts of some sizes begin, one behind the other, and the last ends: int64 [n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def ranges(begins: I64, sizes: I64) -> I64:
    """The numbers begins[k] .. begins[k] + sizes[k] - 1 of every k."""
    return np.arange(int(sizes.sum())) + np.repeat(begins - bounds_of(sizes)[:-1], sizes)


def slots_of(fragment: I64, corpus: Corpus, discovered: Discovered) -> I64:
    """The folds of fragments, those of all sets numbered through: fold set * most folds + fold.

    int64 [n_fold_sets, n], `NO_FOLD` where no fold of a set counts a fragment.
    """
    fold = np.take(discovered.fold, fragment, axis=1).astype(np.int64)
    first = np.arange(len(corpus.folds)) * most_folds(corpus)
    return np.where(fold == NO_FOLD, NO_FOLD, fold + first[:, None])


def members(discovered: Discovered, *, repeats: bool) -> tuple[I64, I64]:
    """The class and the fragment of the members that a fold counts, in order; with `repeats` duplicates too."""
    cluster, fragment = discovered.member_cluster, discovered.member_fragment
    counted = (discovered.fold != NO_FOLD).any(axis=0)[fragment]
    if not repeats:
        counted[1:] &= (cluster[1:] != cluster[:-1]) | (fragment[1:] != fragment[:-1])
    return cluster[counted].astype(np.int64), fragment[counted]


def pairs_within(kind: I64, fragment: I64) -> Products:
    """The pairs of fragments of one kind (a class, a type), which the rows are sorted by."""
    begins = np.flatnonzero(np.diff(kind, prepend=-1))
    sizes = np.diff(begins, append=len(kind))
    several = sizes > 1
    begins, sizes = begins[several], sizes[several]
    sides = np.arange(len(sizes))
    return Products(fragment[ranges(begins, sizes)], bounds_of(sizes), sides, sides, np.ones(len(sizes), np.int64))


def distinct_pairs(discovered: Discovered) -> Products:
    """The set of pairs of two fragments of one class."""
    cluster, fragment = members(discovered, repeats=False)
    return pairs_within(cluster, fragment).joined(_repeated_pairs(cluster, fragment))


def members_twice(discovered: Discovered) -> Products:
    """The fragments that a class has several times, each a side; no products but of each with itself."""
    cluster, fragment = members(discovered, repeats=True)
    again = (cluster[1:] == cluster[:-1]) & (fragment[1:] == fragment[:-1])
    twice = np.unique(fragment[1:][again])
    sides = np.arange(len(twice))
    return Products(twice, np.arange(len(twice) + 1), sides, sides, np.ones(len(twice), np.int64))


def _repeated_pairs(cluster: I64, fragment: I64) -> Products:
    """The pairs that several classes have, as often as they are there too often, with negative weights."""
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
    left, right = repeated(
        bounds_of(np.bincount(rank, minlength=len(classes))), of_group[by_rank], bounds_of(n_classes), rank[order], size
    )
    pairs, times = np.unique(left * len(size) + right, return_counts=True)
    return Products(
        fragment[begins][by_group], bounds_of(size), pairs // max(len(size), 1), pairs % max(len(size), 1), -times
    )


def of_one_type(products: Products, discovered: Discovered) -> Products:
    """The pairs of products whose fragments have one type."""
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
    """The products in parts that cost about `work` each, at least one part; `cost` int64 is that of every product."""
    before = np.cumsum(cost) - cost
    cuts = np.flatnonzero(np.diff(before // work, prepend=-1)).tolist() or [0]
    for low, high in zip(cuts, [*cuts[1:], len(cost)], strict=True):
        yield products.take(low, high)


def overlapping_rows(products: Products, rule: int, discovered: Discovered) -> Iterator[tuple[I64, I64, I64]]:
    """The pairs that overlap by a rule of `kernels.fragment_pairs`, part by part: two rows, and the product."""
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
