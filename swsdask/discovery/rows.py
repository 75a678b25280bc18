"""Fragments of a class and a fold laid out in rows of those that read alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swsdask.discovery.windows import LONGEST, windows
from swsdask.kernels.completion import Entries, Rows
from swsdask.kernels.ngrams import SHORTEST
from swsdask.kernels.sequences import number_sequences
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import I32, I64, Bool


class Layout(NamedTuple):
    """Entries in rows, the class of each row, and for each place of the entries its key.

    `cluster` int64 [n_rows]; `key` int64 [n_places] is (fold set * most folds + fold) * n_phones + phone.
    """

    entries: Entries
    rows: Rows
    cluster: I64
    key: I64


class _Members(NamedTuple):
    """Members of classes, once for each set of folds of which a fold has them; `part`: fold set * most folds + fold."""

    cluster: I64
    part: I64
    fragment: I64

    def take(self, rows: I64 | Bool) -> _Members:
        return _Members(self.cluster[rows], self.part[rows], self.fragment[rows])


def most_folds(corpus: Corpus) -> int:
    """How many folds the set with the most has; at least 1."""
    return max((len(folds.names) for folds in corpus.folds), default=0) or 1


def laid_out(corpus: Corpus, discovered: Discovered, low: int, high: int) -> Layout:
    """The fragments of the classes low .. high - 1 that can be completed: in a fold, of 3 phones or more, not alone.

    A group is a class in a fold. Its rows come in the order of their first fragments, so what they are does not depend
    on which other classes there are.
    """
    members = _members(corpus, discovered, low, high)
    at, phone, room = _phones(corpus, discovered, members)
    reads = number_sequences(at[:-1], at[1:], corpus.phones.label[phone] * (LONGEST + 1) + room)[0]

    order = np.lexsort((members.fragment, reads, members.part, members.cluster))
    members, reads = members.take(order), reads[order]
    begins = np.flatnonzero(_changes(members.cluster, members.part, reads))
    foremost = np.repeat(members.fragment[begins], np.diff(begins, append=len(reads)))
    order = np.lexsort((members.fragment, foremost, members.part, members.cluster))
    members, foremost = members.take(order), foremost[order]

    begins = np.flatnonzero(_changes(members.cluster, members.part, foremost))
    new_group = _changes(members.cluster, members.part)
    group = np.cumsum(new_group) - 1
    bounds = np.append(np.flatnonzero(new_group[begins]), len(begins))
    at, phone, room = _phones(corpus, discovered, members)
    d, fragment = discovered, members.fragment
    label = corpus.phones.label[phone]
    first, last = d.first[fragment], d.last[fragment]
    entries = Entries(
        d.file[fragment], d.start[fragment], d.end[fragment], first, last, at, label, room.astype(np.uint8)
    )
    by_length = np.lexsort((-np.diff(at), group))
    low_row, high_row = bounds[:-1][group[begins]], bounds[1:][group[begins]]
    rows = Rows(np.append(begins, len(fragment)), low_row, high_row, by_length)
    key = np.repeat(members.part, np.diff(at)) * len(corpus.phones) + phone
    return Layout(entries, rows, members.cluster[begins], key)


def _members(corpus: Corpus, discovered: Discovered, low: int, high: int) -> _Members:
    d = discovered
    begin, end = np.searchsorted(d.member_cluster, [low, high])
    cluster, fragment = d.member_cluster[begin:end].astype(np.int64), d.member_fragment[begin:end]
    wanted = _changes(cluster, fragment) & (d.last[fragment] - d.first[fragment] >= SHORTEST)
    cluster, fragment = cluster[wanted], fragment[wanted]
    fold_set, member = np.nonzero(d.fold[:, fragment] != NO_FOLD)
    fragment = fragment[member]
    members = _Members(cluster[member], fold_set * most_folds(corpus) + d.fold[fold_set, fragment], fragment)
    members = members.take(np.lexsort((members.part, members.cluster)))
    alone = _changes(members.cluster, members.part)
    alone &= np.append(alone, True)[1:]
    return members.take(~alone)


def _phones(corpus: Corpus, discovered: Discovered, members: _Members) -> tuple[I64, I64, I32]:
    """The places of each member, the phone of each place and its room inside the fragment and the fold."""
    first = discovered.first[members.fragment]
    at = np.append(0, np.cumsum(discovered.last[members.fragment] - first))
    of_place = np.repeat(np.arange(len(first)), np.diff(at))
    place = np.arange(len(of_place))
    phone = first[of_place] + place - at[of_place]
    room = windows(corpus).fold_room[members.part[of_place] // most_folds(corpus), phone]
    return at, phone, np.minimum(room, at[of_place + 1] - place).astype(np.int32)


def _changes(*columns: I64 | I32) -> Bool:
    """Which rows are the first or differ from the one before."""
    changed = np.zeros(len(columns[0]), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
