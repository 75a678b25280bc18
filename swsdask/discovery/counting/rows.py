"""Fragments of a class and a fold in rows of equal transcriptions, and windows of phones.

For each first phone, `Windows` has the length that a window may have, and its fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.per_fold import Members, changes, completable, most_folds
from swsdask.kernels.matching import Entries, Rows
from swsdask.kernels.ngrams import SHORTEST, U8, number_sequences
from swsdask.kernels.pairs import holding
from swsdask.model.corpus import NO_FOLD, Corpus, Discovered, Folds, Tokens
from swsdask.model.trials import I16, I32, I64

LONGEST: Final = 20
"""Phones of the longest fragment that measures of matching know."""

LENGTHS: Final = range(SHORTEST, LONGEST + 1)


@dataclass(frozen=True, eq=False)
class Windows:
    """`room`, uint8 [n_phones]: how many phones there are from each on without a gap, 20 where there are more.

    `fold`, int16 [n_fold_sets, n_phones]: the fold a stretch of which a phone is entirely inside, `NO_FOLD` if none;
    `fold_room`, uint8 [n_fold_sets, n_phones]: how many of the phones of `room` are inside the same stretch.
    """

    room: U8
    fold: I16
    fold_room: U8


@per_corpus
def windows(corpus: Corpus) -> Windows:
    """The windows of a corpus."""
    in_one_run = np.zeros(len(corpus.phones), np.int64)
    stretch = [_stretch_of(folds, corpus.phones) for folds in corpus.folds]
    fold = np.array([_fold_of(one, folds) for one, folds in zip(stretch, corpus.folds, strict=True)], np.int16)
    room = [np.where(one < 0, np.uint8(0), _room(corpus, one)) for one in stretch]
    shape = len(corpus.folds), len(corpus.phones)
    return Windows(_room(corpus, in_one_run), fold.reshape(shape), np.array(room, np.uint8).reshape(shape))


def _room(corpus: Corpus, part: I64) -> U8:
    """Count the phones from each one on without a gap and with the same `part`, at most `LONGEST`."""
    n = len(corpus.phones)
    changes = (np.diff(corpus.segment) != 0) | (np.diff(part) != 0)
    ends = np.append(np.flatnonzero(changes) + 1, n) if n else np.empty(0, np.int64)
    lengths = np.diff(ends, prepend=0)
    to_end = np.repeat(ends, lengths) - np.arange(n)
    return np.minimum(to_end, LONGEST).astype(np.uint8)


def _stretch_of(folds: Folds, phones: Tokens) -> I64:
    stretches = folds.stretches
    return holding(phones.file, phones.start, phones.end, stretches.first, stretches.start, stretches.end)


def _fold_of(stretch: I64, folds: Folds) -> I16:
    found: I16 = np.append(folds.stretches.fold, np.int16(NO_FOLD))[stretch]
    return found


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
