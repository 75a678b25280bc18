"""The gold fragments: every n-gram of 3 to 20 phones inside one gap-free segment that occurs at least twice.

P_all of the measures document of the Zero Resource challenge is the set of pairs of equal n-grams of a fold that do not
overlap. Each n-gram must lie inside one stretch of the fold. No file of gold classes is read and no pair is enumerated.
A cell is a range of the first three phones, so equal n-grams are in one cell. In a cell, groups of equal n-grams are
split by their next phone. This compares labels, not hashes, so there are no collisions.

- document: two fragments of one file overlap iff they share more than half of the shorter one's extent.
- tde2015: `near`: by more than 30 ms or more than half of either. QUIRK: whatever their files. The gold set is
  everything that occurs twice in the whole corpus: QUIRK: in a fold, a fragment without a partner there counts as
  covered (not in P_all).

To match a system's strings, the fragments of a class and a fold with equal transcriptions make a row. For each phone,
`Windows` has the maximum length of a window that starts there, and its fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.per_fold import FoldMembers, completable, most_folds
from swsdask.kernels.matching import Entries, Rows
from swsdask.kernels.ngrams import (
    SHORTEST,
    U8,
    add_apart,
    add_partnered,
    covered,
    number_sequences,
    refine,
    starts_within,
    trigrams,
)
from swsdask.kernels.pairs import holding
from swsdask.model.columns import row_changes
from swsdask.model.discovery import NO_FOLD, Corpus, Discovered, Folds, Tokens
from swsdask.model.trials import I16, I32, I64

LONGEST: Final = 20
"""The maximum number of phones of a gold fragment."""

LENGTHS: Final = range(SHORTEST, LONGEST + 1)


@dataclass(frozen=True, eq=False)
class Windows:
    """`room`, uint8 [n_phones]: the number of phones from each one to the next gap, at most 20.

    `fold`, int16 [n_fold_sets, n_phones]: the fold that has a stretch around the whole phone, `NO_FOLD` if none;
    `fold_room`, uint8 [n_fold_sets, n_phones]: the number of phones of `room` inside the same stretch.
    """

    room: U8
    fold: I16
    fold_room: U8


@per_corpus
def windows(corpus: Corpus) -> Windows:
    """Return the windows of a corpus."""
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


class EntryLayout(NamedTuple):
    """Entries in rows, the class of each row, and the key of each place of the entries.

    `cluster` int64 [n_rows]; `key` int64 [n_places] is (fold set * most folds + fold) * n_phones + phone.
    """

    entries: Entries
    rows: Rows
    cluster: I64
    key: I64


def laid_out(corpus: Corpus, discovered: Discovered, low: int, high: int) -> EntryLayout:
    """Return the fragments of the classes low .. high - 1 that can be completed: in a fold, long enough, not alone.

    A group is a class in a fold. Its rows are in the order of their first fragments, so they do not depend on the other
    classes.
    """
    members = completable(corpus, discovered, low, high)
    at, phone, room = _phones(corpus, discovered, members)
    reads = number_sequences(at[:-1], at[1:], corpus.phones.label[phone] * (LONGEST + 1) + room)[0]

    order = np.lexsort((members.fragment, reads, members.slot, members.cluster))
    members, reads = members.take(order), reads[order]
    begins = np.flatnonzero(row_changes(members.cluster, members.slot, reads))
    foremost = np.repeat(members.fragment[begins], np.diff(begins, append=len(reads)))
    order = np.lexsort((members.fragment, foremost, members.slot, members.cluster))
    members, foremost = members.take(order), foremost[order]

    begins = np.flatnonzero(row_changes(members.cluster, members.slot, foremost))
    new_group = row_changes(members.cluster, members.slot)
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
    return EntryLayout(entries, rows, members.cluster[begins], key)


def _phones(corpus: Corpus, discovered: Discovered, members: FoldMembers) -> tuple[I64, I64, I32]:
    """Return the places of each member, the phone of each place and its room inside the fragment and the fold."""
    first = discovered.first[members.fragment]
    at = np.append(0, np.cumsum(discovered.last[members.fragment] - first))
    of_place = np.repeat(np.arange(len(first)), np.diff(at))
    place = np.arange(len(of_place))
    phone = first[of_place] + place - at[of_place]
    fold_set = (members.slot // most_folds(corpus))[of_place]
    room = np.minimum(windows(corpus).fold_room[fold_set, phone], at[of_place + 1] - place)
    return at, phone, room.astype(np.int32)


_WORK = 1 << 24


class Trigrams(NamedTuple):
    """A cell: the n-grams whose first three phones, read as a number with three digits, are in low:high."""

    low: int
    high: int


class Ngrams(NamedTuple):
    """Groups of equal n-grams of `length` phones: group g starts at the phones starts[begins[g]:begins[g + 1]]."""

    length: int
    starts: I32
    begins: I64


@dataclass(frozen=True, eq=False)
class Gold:
    """The gold fragments, which systems are to find.

    `types` and `fragments`, int64 [21]: their numbers for each length, regardless of folds. `flat` int64 [n_fold_sets,
    most folds]: the fragments of P_all; `pairs`, of the same shape: its ordered pairs (tde2015 only; 0 for document).
    `longest` uint8 [n_fold_sets, n_phones]: the phones of the longest covering fragment that starts there, 0 if none.
    """

    types: I64
    fragments: I64
    flat: I64
    pairs: I64
    longest: U8

    @classmethod
    def cells(cls, corpus: Corpus, work: int = _WORK) -> Iterator[Trigrams]:
        """Yield ranges of trigrams that about `work` / 16 phones start."""
        n_labels = len(corpus.phones.labels)
        found = np.sort(trigrams(corpus.phones.label, windows(corpus).room, n_labels))
        cuts = [0, *np.unique(found[:: max(work // 16, 1)])[1:].tolist(), n_labels**SHORTEST]
        return (Trigrams(low, high) for low, high in pairwise(cuts))

    @classmethod
    def from_cell(cls, cell: Trigrams, corpus: Corpus) -> Self:
        """Return the gold that begins with the trigrams of the cell."""
        where = windows(corpus)
        types, fragments = np.zeros(LONGEST + 1, np.int64), np.zeros(LONGEST + 1, np.int64)
        flat, pairs = np.zeros((2, len(corpus.folds), most_folds(corpus)), np.int64)
        longest = np.zeros(where.fold.shape, np.uint8)
        for ngrams in repeated_ngrams(cell, corpus):
            types[ngrams.length] = len(ngrams.begins) - 1
            fragments[ngrams.length] = len(ngrams.starts)
            for number in range(len(corpus.folds)):
                _add(ngrams, corpus, where, number, flat[number], pairs[number], longest[number])
        return cls(types, fragments, flat, pairs, longest)

    def merge(self, other: Self) -> Self:
        """Return the gold of both cells."""
        return type(self)(
            self.types + other.types,
            self.fragments + other.fragments,
            self.flat + other.flat,
            self.pairs + other.pairs,
            np.maximum(self.longest, other.longest),
        )


def repeated_ngrams(cell: Trigrams, corpus: Corpus) -> Iterator[Ngrams]:
    """Yield a cell's n-grams that occur at least twice, the shortest first."""
    label, n_labels, room = corpus.phones.label, len(corpus.phones.labels), windows(corpus).room
    starts = starts_within(label, room, n_labels, *cell)
    begins = np.array([0, len(starts)], np.int64)
    for length in range(1, LONGEST + 1):
        starts, begins = refine(starts, begins, label, room, length - 1, n_labels)
        if length in LENGTHS:
            yield Ngrams(length, starts, begins)


@per_corpus
def gold(corpus: Corpus) -> Gold:
    """Return all gold of a corpus (document or tde2015), found once."""
    return reduce(Gold.merge, (Gold.from_cell(cell, corpus) for cell in Gold.cells(corpus)))


def gold_cover(corpus: Corpus) -> I16:
    """Return the fold whose gold covers a phone, `NO_FOLD` where none does: int16 [n_fold_sets, n_phones].

    document: the phones of the fragments of P_all. tde2015: those of the gold fragments inside the fold.
    """
    longest, fold = gold(corpus).longest, windows(corpus).fold
    cover = [covered(longest[number], fold[number]) for number in range(len(corpus.folds))]
    return np.array(cover, np.int16).reshape(fold.shape)


def _add(ngrams: Ngrams, corpus: Corpus, where: Windows, number: int, flat: I64, pairs: I64, longest: U8) -> None:
    phones, room, fold = corpus.phones, where.fold_room[number], where.fold[number]
    length, starts, begins = ngrams
    if corpus.definition == "tde2015":
        add_apart(starts, begins, length, phones.start, phones.end, room, fold, flat, pairs, longest)
    else:
        add_partnered(starts, begins, length, phones.file, phones.start, phones.end, room, fold, flat, longest)
