"""Members of classes by class and fold, and the work on their pairs cut into tiles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from swsdask.discovery.counting.per_fold import most_folds
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import I32, I64, Bool


class Members(NamedTuple):
    """Members of classes, once for each set of folds of which a fold has them: equally long int64 columns.

    `slot` is fold set * most folds + fold, `fragment` a row of the system's fragments.
    """

    cluster: I64
    slot: I64
    fragment: I64

    def take(self, rows: I64 | Bool) -> Members:
        """Some of them."""
        return Members(self.cluster[rows], self.slot[rows], self.fragment[rows])


class Tile(NamedTuple):
    """A cell: rows `first` to before `end` of those that the classes `low` to before `high` have."""

    low: int
    high: int
    first: int
    end: int


def completable(corpus: Corpus, discovered: Discovered, low: int, high: int) -> Members:
    """The members of the classes low .. high - 1 that have the phones of the shortest string that is paired (see
    `model.corpus.Readings`), and others like that in class and fold.

    Sorted by (cluster, slot, fragment); a duplicate member is there once.
    """
    d = discovered
    begin, end = np.searchsorted(d.member_cluster, [low, high])
    cluster, fragment = d.member_cluster[begin:end].astype(np.int64), d.member_fragment[begin:end]
    wanted = changes(cluster, fragment) & (d.last[fragment] - d.first[fragment] >= corpus.readings.min_phones)
    cluster, fragment = cluster[wanted], fragment[wanted]
    fold_set, member = np.nonzero(d.fold[:, fragment] != NO_FOLD)
    cluster, fragment = cluster[member], fragment[member]
    members = Members(cluster, fold_set * most_folds(corpus) + d.fold[fold_set, fragment], fragment)
    members = members.take(np.lexsort((fragment, members.slot, cluster)))
    first = changes(members.cluster, members.slot)
    return members.take(~(first & np.append(first, True)[1:]))


def tiles(cluster: I64, steps: I64, n_classes: int, work: int) -> Iterator[Tile]:
    """Rows of the classes `cluster`, ascending, in tiles of about `work` of their `steps`; at least one tile."""
    if len(cluster) == 0:
        yield Tile(0, 0, 0, 0)
        return
    done = np.cumsum(steps)
    cuts = np.searchsorted(done, np.arange(work, done[-1], work)) + 1
    first_of = np.searchsorted(cluster, np.arange(n_classes))
    for first, end in pairwise(np.unique([0, *cuts.tolist(), len(cluster)]).tolist()):
        low = int(cluster[first])
        yield Tile(low, int(cluster[end - 1]) + 1, first - int(first_of[low]), end - int(first_of[low]))


def changes(*columns: I64 | I32) -> Bool:
    """Which rows are the first or differ from the one before in any of some columns."""
    changed = np.zeros(len(columns[0]), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
