"""Fragments of a class and a fold laid out in rows of those that read alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swsdask.discovery.counting.members import Members, changes, completable
from swsdask.discovery.counting.per_fold import most_folds
from swsdask.discovery.counting.windows import LONGEST, windows
from swsdask.kernels.completion import Entries, Rows
from swsdask.kernels.sequences import number_sequences
from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.trials import I32, I64


class Layout(NamedTuple):
    """Entries in rows, the class of each row, and for each place of the entries its key.

    `cluster` int64 [n_rows]; `key` int64 [n_places] is (fold set * most folds + fold) * n_phones + phone.
    """

    entries: Entries
    rows: Rows
    cluster: I64
    key: I64


def laid_out(corpus: Corpus, discovered: Discovered, low: int, high: int) -> Layout:
    """The fragments of the classes low .. high - 1 that can be completed: in a fold, long enough, not alone.

    A group is a class in a fold. Its rows come in the order of their first fragments, so what they are does not depend
    on which other classes there are.
    """
    members = completable(corpus, discovered, low, high)
    at, phone, room = _phones(corpus, discovered, members)
    reads = number_sequences(at[:-1], at[1:], corpus.phones.label[phone] * (LONGEST + 1) + room)[0]

    order = np.lexsort((members.fragment, reads, members.slot, members.cluster))
    members, reads = members.take(order), reads[order]
    begins = np.flatnonzero(changes(members.cluster, members.slot, reads))
    foremost = np.repeat(members.fragment[begins], np.diff(begins, append=len(reads)))
    order = np.lexsort((members.fragment, foremost, members.slot, members.cluster))
    members, foremost = members.take(order), foremost[order]

    begins = np.flatnonzero(changes(members.cluster, members.slot, foremost))
    new_group = changes(members.cluster, members.slot)
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
    key = np.repeat(members.slot, np.diff(at)) * len(corpus.phones) + phone
    return Layout(entries, rows, members.cluster[begins], key)


def _phones(corpus: Corpus, discovered: Discovered, members: Members) -> tuple[I64, I64, I32]:
    """The places of each member, the phone of each place and its room inside the fragment and the fold."""
    first = discovered.first[members.fragment]
    at = np.append(0, np.cumsum(discovered.last[members.fragment] - first))
    of_place = np.repeat(np.arange(len(first)), np.diff(at))
    place = np.arange(len(of_place))
    phone = first[of_place] + place - at[of_place]
    fold_set = (members.slot // most_folds(corpus))[of_place]
    room = np.minimum(windows(corpus).fold_room[fold_set, phone], at[of_place + 1] - place)
    return at, phone, room.astype(np.int32)
