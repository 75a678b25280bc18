"""Completion of pairs of fragments to pairs of windows, as intervals on diagonals, and the gold pairs among them.

Entries are fragments of one class in one fold, each with its phones. Entries with the same labels and the same room for
windows form one row; the rows of one class and fold form one group. The windows that two strings have in common depend
only on their rows. So they are found once per pair of rows, and pairs of strings are not enumerated. The first and the
last entry of a row usually show that an entry is far enough from some entry of the row. Pairs are checked one by one
only where neither of these two is clear of the entry. Sets of windows are bit masks per start: bit L - 1 marks the
window of L phones.

A set of pairs of windows is stored without an entry per pair. Windows of equal length that start at phones i <= j lie
on the diagonal j - i of their fold. Two strings of m <= n phones give n - m + 1 intervals of m phones each: every
window inside an interval is paired with the window j - i phones after it. An interval consists of a key, ((fold *
n_phones) + j - i) * n_phones + i for its first phones i and j, and a length. Only intervals that no other interval
contains are kept. Two sets of pairs of windows of all lengths are equal if and only if their intervals are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, int64, uint8, uint32, void
from numpy.typing import NDArray

from swsdask.kernels.compilation import column, kernel, part, record, several
from swsdask.kernels.ngrams import SHORTEST, U8, count_near
from swsdask.kernels.pairs import share_more_than_half
from swsdask.kernels.placing import near
from swsdask.model.trials import I32, I64

U32 = NDArray[np.uint32]


class Entries(NamedTuple):
    """Fragments sorted by (group, row, file, start, end), as columns of equal length, and the phones of each.

    Entry e has the phones first[e]:last[e] of the corpus, which are the places at[e]:at[e + 1] of `label` and `room`.
    `room` is the length of the longest gold window that may start at a phone inside the fragment.
    """

    file: I32
    start: I32
    end: I32
    first: I64
    last: I64
    at: I64
    label: I32
    room: U8


class Rows(NamedTuple):
    """The rows: row r has the entries begins[r]:begins[r + 1], and its group has the rows low[r]:high[r].

    `by_length` lists the entries of each group in descending order of their numbers of phones.
    """

    begins: I64
    low: I64
    high: I64
    by_length: I64


_ENTRIES = record(
    Entries, int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], uint8[::1]
)
_ROWS = record(Rows, int64[::1], int64[::1], int64[::1], int64[::1])


@part()
def _from_to(shortest: int, longest: int) -> np.uint32:
    """Return the mask of the windows of `shortest` to `longest` phones."""
    windows = (np.int64(1) << longest) - (np.int64(1) << (shortest - 1))
    return np.uint32(windows) if longest >= shortest else np.uint32(0)


@part()
def _overlap(entries: Entries, one: int, other: int) -> bool:
    return entries.file[one] == entries.file[other] and share_more_than_half(
        entries.start[one], entries.end[one], entries.start[other], entries.end[other]
    )


@part()
def _complete(entries: Entries, own: I64, by_length: I64, shortest: int, longest: int, mask: U32) -> None:
    """Add to `mask` the windows of the entries `own` that completion pairs with another window.

    They have at most as many phones as the longest partner of their entry.
    """
    at = entries.at
    for one in own:
        partner = 0
        # The first partner found is the longest one. An entry overlaps itself, so it is not its own partner.
        for other in by_length:
            if not _overlap(entries, one, other):
                partner = min(at[other + 1] - at[other], longest)
                break
        for place in range(at[one], at[one + 1]):
            mask[place] |= _from_to(shortest, min(partner, at[one + 1] - place))


@part()
def _common(entries: Entries, one: int, other: int, mask: U32, other_mask: U32) -> bool:
    """Write the gold windows of two entries that completion pairs with an equal window; return whether there are any.

    Completion aligns the shorter string with the longer one at every offset without overhang.
    """
    label, room = entries.label, entries.room
    at, other_at = entries.at[one], entries.at[other]
    m, n = entries.at[one + 1] - at, entries.at[other + 1] - other_at
    mask[:m] = 0
    other_mask[:n] = 0
    found = False
    for offset in range(min(n - m, 0), max(n - m, 0) + 1):
        equal = 0
        for place in range(min(m, n - offset) - 1, max(-offset, 0) - 1, -1):
            equal = equal + 1 if label[at + place] == label[other_at + place + offset] else 0
            length = min(equal, room[at + place], room[other_at + place + offset])
            if length >= SHORTEST:
                mask[place] |= _from_to(SHORTEST, length)
                other_mask[place + offset] |= _from_to(SHORTEST, length)
                found = True
    return found


@part()
def _common_apart(entries: Entries, one: int, other: int, start: I32, end: I32, mask: U32, other_mask: U32) -> None:
    """Add what `_common` finds for two entries of one file to the masks of all places, without overlapping windows."""
    label, room, first, other_first = entries.label, entries.room, entries.first[one], entries.first[other]
    at, other_at = entries.at[one], entries.at[other]
    m, n = entries.at[one + 1] - at, entries.at[other + 1] - other_at
    for offset in range(min(n - m, 0), max(n - m, 0) + 1):
        equal = 0
        for place in range(min(m, n - offset) - 1, max(-offset, 0) - 1, -1):
            facing = place + offset
            equal = equal + 1 if label[at + place] == label[other_at + facing] else 0
            a, b = first + place, other_first + facing
            for length in range(SHORTEST, min(equal, room[at + place], room[other_at + facing]) + 1):
                if not share_more_than_half(start[a], end[a + length - 1], start[b], end[b + length - 1]):
                    bit = np.uint32(1) << np.uint32(length - 1)
                    mask[at + place] |= bit
                    other_mask[other_at + facing] |= bit


@part()
def _clear(entries: Entries, one: int, other: int) -> bool:
    """Return whether `one` lies entirely before `other`, both in time and in phones."""
    return bool(entries.end[one] <= entries.start[other] and entries.last[one] <= entries.first[other])


@part()
def _credit(entries: Entries, low: int, high: int, partners: I64, start: I32, end: I32, common: U32, mask: U32) -> None:
    """Give the entries low:high the windows that they have in common with `partners`, a row of one file.

    An entry gets all of them if it is in another file, or clear of the first or the last partner. Any other entry gets,
    for each partner that it does not overlap, the windows that do not overlap the window they are paired with.
    """
    early, late = partners[0], partners[-1]
    for one in range(low, high):
        if entries.file[one] != entries.file[early] or _clear(entries, early, one) or _clear(entries, one, late):
            for place in range(entries.at[one], entries.at[one + 1]):
                mask[place] |= common[place - entries.at[one]]
            continue
        for other in partners:
            if not _overlap(entries, one, other):
                _common_apart(entries, one, other, start, end, mask, mask)


@kernel(several(uint32[::1], uint32[::1])(_ENTRIES, _ROWS, int64, int64, column(int32), column(int32), int64, int64))
def match_rows(
    entries: Entries, rows: Rows, low: int, high: int, start: I32, end: I32, shortest: int, longest: int
) -> tuple[U32, U32]:
    """Return the windows that start at every phone of every entry: of flat(P_disc*), and of flat(P_disc* and P_all).

    Both results are masks, uint32 [n_places]. The first has the windows of the entries of the rows `low` <= r < `high`,
    of `shortest` to `longest` phones. The second has the windows of 3 to 20 phones that these rows have in common with
    themselves and with later rows of their group, in the entries of both rows. `start` and `end` are int32 [n_phones].
    """
    n_places = entries.at[-1]
    completed, gold = np.zeros(n_places, np.uint32), np.zeros(n_places, np.uint32)
    of_row = np.zeros(n_places, np.uint32)
    most = 0
    for one in range(len(entries.at) - 1):
        most = max(most, entries.at[one + 1] - entries.at[one])
    common, other_common = np.empty(most, np.uint32), np.empty(most, np.uint32)
    numbers = np.arange(len(entries.at) - 1)
    for row in range(low, high):
        begin, till = rows.begins[row], rows.begins[row + 1]
        group = rows.by_length[rows.begins[rows.low[row]] : rows.begins[rows.high[row]]]
        _complete(entries, numbers[begin:till], group, shortest, longest, completed)
        several_files = entries.file[begin] != entries.file[till - 1]
        for other in range(row, rows.high[row]):
            other_begin, other_till = rows.begins[other], rows.begins[other + 1]
            if other == row and till - begin == 1:
                continue
            if not _common(entries, begin, other_begin, common, other_common):
                continue
            # If a row is in several files, every entry of the other row has a partner in another file.
            if entries.file[other_begin] != entries.file[other_till - 1]:
                for place in range(entries.at[begin], entries.at[begin + 1]):
                    of_row[place] |= common[place - entries.at[begin]]
            else:
                partners = numbers[other_begin:other_till]
                _credit(entries, begin, till, partners, start, end, common, gold)
            if several_files:
                for place in range(entries.at[other_begin], entries.at[other_begin + 1]):
                    of_row[place] |= other_common[place - entries.at[other_begin]]
            else:
                _credit(entries, other_begin, other_till, numbers[begin:till], start, end, other_common, gold)
    for row in range(len(rows.begins) - 1):
        begin = entries.at[rows.begins[row]]
        for one in range(rows.begins[row], rows.begins[row + 1]):
            for place in range(entries.at[one], entries.at[one + 1]):
                gold[place] |= of_row[begin + place - entries.at[one]]
    return completed, gold


_INTERVALS = several(int64[::1], int32[::1])


@kernel(
    _INTERVALS(
        column(int64), column(int64), column(int64), column(int64), column(int32), column(int32), int64, int64, int64
    )
)
def pair_up(
    fold: I64, till: I64, first: I64, last: I64, start: I32, end: I32, low: int, high: int, n_phones: int
) -> tuple[I64, I32]:
    """Return the intervals of the fragments `low` <= a < `high` with later ones of their group that are not `near`.

    Fragment a has the phones first[a]:last[a], the times start[a] and end[a], and the fold fold[a]; its group ends
    before till[a]. The result has keys int64 and lengths int32, unsorted and possibly with duplicates.
    """
    most = 0
    for a in range(low, high):
        for b in range(a + 1, till[a]):
            most += abs((last[a] - first[a]) - (last[b] - first[b])) + 1
    key, length = np.empty(most, np.int64), np.empty(most, np.int32)
    found = 0
    for a in range(low, high):
        for b in range(a + 1, till[a]):
            if near(start[a], end[a], start[b], end[b]):
                continue
            m, n = last[a] - first[a], last[b] - first[b]
            for offset in range(abs(n - m) + 1):
                i = first[a] + (offset if m > n else 0)
                j = first[b] + (offset if n > m else 0)
                key[found] = (fold[a] * n_phones + abs(j - i)) * n_phones + min(i, j)
                length[found] = min(m, n)
                found += 1
    return key[:found].copy(), length[:found].copy()


@kernel(_INTERVALS(column(int64), column(int32), column(int64), column(int32), int64))
def maximal(key: I64, length: I32, other_key: I64, other_length: I32, n_phones: int) -> tuple[I64, I32]:
    """Return the intervals of two lists, each sorted by key, that no other interval contains, sorted and distinct.

    The lists may fill much of the memory, so only the lists and the intervals that are kept are held.
    """
    n, n_others = len(key), len(other_key)
    kept_key, kept_length = np.empty(n + n_others, np.int64), np.empty(n + n_others, np.int32)
    kept = row = other = 0
    while row < n or other < n_others:
        own = key[row] if other == n_others or (row < n and key[row] <= other_key[other]) else other_key[other]
        longest = np.int32(0)
        while row < n and key[row] == own:
            longest = max(longest, length[row])
            row += 1
        while other < n_others and other_key[other] == own:
            longest = max(longest, other_length[other])
            other += 1
        # On a diagonal, kept intervals have ascending starts and ends: if any contains this one, the last one does.
        if kept > 0:
            before = kept_key[kept - 1]
            if before // n_phones == own // n_phones and before + kept_length[kept - 1] >= own + longest:
                continue
        kept_key[kept], kept_length[kept] = own, longest
        kept += 1
    if 4 * kept > 3 * len(kept_key):  # a copy would briefly need as much memory again, and save little
        return kept_key[:kept], kept_length[:kept]
    return kept_key[:kept].copy(), kept_length[:kept].copy()


@kernel(int64[::1](column(int64), column(int32), int32[::1]))
def number_starts(key: I64, length: I32, line: I32) -> I64:
    """Return the phones at which windows of the intervals start, and write their numbers into `line`, int32 [n_phones].

    `line` is -1 at first, and remains -1 for all other phones.
    """
    n_phones = len(line)
    found = np.empty(n_phones, np.int64)
    n = 0
    for row in range(len(key)):
        i = key[row] % n_phones
        j = i + key[row] // n_phones % n_phones
        for first in (i, j):
            for phone in range(first, first + length[row] - SHORTEST + 1):
                if line[phone] < 0:
                    line[phone] = n
                    found[n] = phone
                    n += 1
    return found[:n].copy()


@kernel(
    void(
        column(int64),
        column(int32),
        column(int32),
        column(uint8),
        column(int32),
        column(int32),
        column(int32),
        int64[:, ::1],
        int64[:, ::1],
    )
)
def count_pairs(
    key: I64, length: I32, label: I32, room: U8, start: I32, end: I32, line: I32, paired: I64, gold: I64
) -> None:
    """Count the pairs of each window, and its gold pairs: two equal windows with room that are not `near` each other.

    The intervals are `maximal` intervals of one fold. `label`, `room`, `start` and `end` have one entry per phone.
    `line` is the row of a phone in `paired` and `gold`, int64 [n_lines, longest - 2]; column k counts windows of k + 3
    phones. A window that is paired with itself counts once.
    """
    n_phones, longest = len(label), paired.shape[1] + SHORTEST - 1
    equal = np.zeros(max(length.max() if len(length) else 0, 1), np.int64)
    for row in range(len(key)):
        i = key[row] % n_phones
        j = i + key[row] // n_phones % n_phones
        counted = 0
        if row > 0 and key[row - 1] // n_phones == key[row] // n_phones:
            counted = max(key[row - 1] + length[row - 1] - key[row], 0)
        run = 0
        for place in range(length[row] - 1, -1, -1):
            run = run + 1 if label[i + place] == label[j + place] else 0
            equal[place] = min(run, room[i + place], room[j + place])
        for place in range(length[row] - SHORTEST + 1):
            a, b = i + place, j + place
            # Windows of at most counted - place phones lie inside the previous interval too.
            for size in range(max(SHORTEST, counted - place + 1), min(longest, length[row] - place) + 1):
                right = size <= equal[place] and not near(start[a], end[a + size - 1], start[b], end[b + size - 1])
                paired[line[a], size - SHORTEST] += 1
                gold[line[a], size - SHORTEST] += right
                if a != b:
                    paired[line[b], size - SHORTEST] += 1
                    gold[line[b], size - SHORTEST] += right


@kernel(
    int64[:, ::1](
        column(int32),
        column(int64),
        int64,
        column(int32),
        column(int32),
        column(uint8),
        column(int32),
        int64[:, ::1],
        int64[:, ::1],
    )
)
def tally_types(
    starts: I32, begins: I64, length: int, start: I32, end: I32, room: U8, line: I32, paired: I64, gold: I64
) -> I64:
    """Count the pairs of each type that has a pair in `gold`; return one row per type, int64 [n, 5].

    Groups are those of `ngrams.refine`, in one fold. The columns are the number of paired windows, the number of their
    pairs, the number of their pairs in `gold`, the number of windows with `room` that are not `near` all other windows
    with room, and the number of such ordered pairs. `line` is -1 for phones without a row in `paired` and `gold`.
    """
    table = np.empty((len(begins) - 1, 5), np.int64)
    rows = 0
    for group in range(len(begins) - 1):
        members = starts[begins[group] : begins[group + 1]]
        windows = pairs = right = 0
        for one in members:
            if line[one] >= 0:
                windows += paired[line[one], length - SHORTEST] > 0
                pairs += paired[line[one], length - SHORTEST]
                right += gold[line[one], length - SHORTEST]
        if right == 0:
            continue
        own = np.empty(len(members), np.int64)
        n = 0
        for i in np.argsort(start[members], kind="mergesort"):
            if room[members[i]] >= length:
                own[n] = members[i]
                n += 1
        n_near = count_near(own[:n], length, start, end)
        apart = 0
        for count in n_near:
            apart += count < n - 1
        table[rows] = np.array([windows, pairs, right, apart, n * (n - 1) - n_near.sum()])
        rows += 1
    return table[:rows].copy()
