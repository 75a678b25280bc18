"""The phones or words of stretches of time, by the three definitions of term discovery, and coverage.

Tokens are columns sorted by (file, start). Tokens of one file do not overlap; those of file f are rows
first[f]:first[f + 1]. The tokens of a stretch are a range of rows. Times are int32 ticks of 0.1 ms. Seconds are
`ticks / 10_000`, the doubles that the official tools parse.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import boolean, int16, int32, int64, void

from swsdask.kernels.compilation import column, kernel, part, several
from swsdask.model.trials import I16, I32, I64, Bool

_PLACES = several(int64[::1], int64[::1])
_STRETCHES = (column(int32), column(int32), column(int32))
_TOKENS = (column(int64), column(int32), column(int32))

_TICKS_PER_SECOND = 10_000
_EDGE_TICKS = 300
"""30 ms."""


def _least_rounded_to(thousandths: int) -> float:
    """Return the least double that `round(x, 3)` rounds to at least this number of `thousandths`."""
    half = Fraction(2 * thousandths - 1, 2000)
    nearest = float(half)
    return nearest if Fraction(nearest) > half else float(np.nextafter(nearest, np.inf))


def _least_rounded_by_numpy_to(thousandths: int) -> float:
    """Return the least double that numpy's `round(x, 3)`, which rounds 1000 x, rounds to at least `thousandths`."""
    least = (2 * thousandths - 1) / 2000
    while np.rint(1000 * np.nextafter(least, -np.inf)) >= thousandths:
        least = float(np.nextafter(least, -np.inf))
    while np.rint(1000 * least) < thousandths:
        least = float(np.nextafter(least, np.inf))
    return least


_ROUNDS_TO_30_MS = _least_rounded_by_numpy_to(30)
_ROUNDS_TO_60_MS = _least_rounded_to(60)
"""tdev2 rounds the time that two intervals share as a numpy number, and the duration of a phone as a Python number."""


@part()
def seconds(ticks: int) -> float:
    """Return the time in seconds, as the double nearest to its decimal form."""
    return ticks / _TICKS_PER_SECOND


@part()
def shared_seconds(start: int, end: int, other_start: int, other_end: int) -> float:
    """Return the overlap of two intervals, subtracted as both official tools do; negative if they are apart."""
    return seconds(min(end, other_end)) - seconds(max(start, other_start))


@part()
def near(start: int, end: int, other_start: int, other_end: int) -> bool:
    """Return whether two intervals overlap by tde's only predicate, in doubles.

    They share more than 30 ms, or more than half of either and more than 1e-8 s.
    """
    shared = shared_seconds(start, end, other_start, other_end)
    if shared <= 1e-8:
        return False
    return (
        shared > 0.03
        or shared > 0.5 * (seconds(end) - seconds(start))
        or shared > 0.5 * (seconds(other_end) - seconds(other_start))
    )


@part()
def _touched(start: int, end: int, low: int, high: int, token_start: I32, token_end: I32) -> tuple[int, int]:
    """Return the range of the tokens low:high that share any time with a stretch."""
    first = low + int(np.searchsorted(token_end[low:high], start, side="right"))
    last = low + int(np.searchsorted(token_start[low:high], end))
    return first, max(first, last)


@kernel(_PLACES(*_STRETCHES, *_TOKENS))
def place_touching(file: I32, start: I32, end: I32, first: I64, token_start: I32, token_end: I32) -> tuple[I64, I64]:
    """Return the tokens that share any time with each stretch: columns int64, the first row and one past the last."""
    begins, ends = np.empty(len(file), np.int64), np.empty(len(file), np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        begins[row], ends[row] = _touched(start[row], end[row], low, high, token_start, token_end)
    return begins, ends


@part()
def _half_or_30_ms(start: int, end: int, token_start: int, token_end: int) -> bool:
    shared = min(end, token_end) - max(start, token_start)
    return shared > _EDGE_TICKS or 2 * shared > token_end - token_start


@kernel(_PLACES(*_STRETCHES, *_TOKENS))
def place_document(file: I32, start: I32, end: I32, first: I64, token_start: I32, token_end: I32) -> tuple[I64, I64]:
    """Return the tokens of which each stretch covers more than 30 ms or more than half, exactly.

    The columns are those of `place_touching`.
    """
    begins, ends = np.empty(len(file), np.int64), np.empty(len(file), np.int64)
    for row in range(len(file)):
        s, e = start[row], end[row]
        low, high = _touched(s, e, first[file[row]], first[file[row] + 1], token_start, token_end)
        # Tokens between the first and the last lie entirely inside the stretch.
        if low < high and not _half_or_30_ms(s, e, token_start[low], token_end[low]):
            low += 1
        if low < high and not _half_or_30_ms(s, e, token_start[high - 1], token_end[high - 1]):
            high -= 1
        begins[row], ends[row] = low, high
    return begins, ends


@part()
def _rounded_half_or_30_ms(start: int, end: int, token_start: int, token_end: int) -> bool:
    shared = shared_seconds(start, end, token_start, token_end)
    duration = seconds(token_end) - seconds(token_start)
    if duration >= _ROUNDS_TO_60_MS:
        return shared >= _ROUNDS_TO_30_MS
    return shared / duration >= 0.5


@kernel(_PLACES(*_STRETCHES, *_TOKENS))
def place_tdev2(file: I32, start: I32, end: I32, first: I64, token_start: I32, token_end: I32) -> tuple[I64, I64]:
    """Return the tokens that tdev2 gives each stretch, in the columns of `place_touching`.

    QUIRK: of the tokens that share any time with a stretch, tdev2 tests the first and the last. It keeps a token with
    `round(duration, 3) >= 0.06` if `round(shared, 3) >= 0.03`, and any other token if `shared / duration >= 0.5`, in
    doubles. numpy rounds the shared time, Python the duration. So a shared time of 29.5 ms counts as 30 ms where the
    difference of the edges is the double 0.0295.
    """
    begins, ends = np.empty(len(file), np.int64), np.empty(len(file), np.int64)
    for row in range(len(file)):
        s, e = start[row], end[row]
        low, high = _touched(s, e, first[file[row]], first[file[row] + 1], token_start, token_end)
        if low < high and not _rounded_half_or_30_ms(s, e, token_start[low], token_end[low]):
            low += 1
        if low < high and not _rounded_half_or_30_ms(s, e, token_start[high - 1], token_end[high - 1]):
            high -= 1
        begins[row], ends[row] = low, high
    return begins, ends


@kernel(_PLACES(*_STRETCHES, column(int64), *_TOKENS))
def place_tde(
    file: I32, start: I32, end: I32, of_file: I64, segment_first: I64, token_start: I32, token_end: I32
) -> tuple[I64, I64]:
    """Return the tokens that tde gives each stretch, in the columns of `place_touching`.

    Both columns are -1 where tde finds no segment for a stretch. Segment g has the tokens
    segment_first[g]:segment_first[g + 1], each of which starts where the previous one ends. The segments of file f are
    of_file[f]:of_file[f + 1].

    QUIRK: tde looks up a stretch in one segment only: the last segment of its file that is not after it. A segment is
    after a stretch if it starts later and is not `near` it. Tokens in earlier segments are lost. The tokens of a
    stretch are all tokens of its segment that are `near` it, possibly none.
    """
    begins, ends = np.empty(len(file), np.int64), np.empty(len(file), np.int64)
    for row in range(len(file)):
        s, e = start[row], end[row]
        begins[row], ends[row] = -1, -1
        least, most = of_file[file[row]], of_file[file[row] + 1]
        low, high = least, most
        while low < high:
            middle = (low + high) >> 1
            if token_start[segment_first[middle]] < e:
                low = middle + 1
            else:
                high = middle
        segment = low - 1
        while segment >= least:
            begin, end_of = token_start[segment_first[segment]], token_end[segment_first[segment + 1] - 1]
            if begin <= s or near(s, e, begin, end_of):
                break
            segment -= 1
        if segment < least or token_end[segment_first[segment + 1] - 1] <= s:
            continue
        low, high = _touched(s, e, segment_first[segment], segment_first[segment + 1], token_start, token_end)
        if low < high and not near(s, e, token_start[low], token_end[low]):
            low += 1
        if low < high and not near(s, e, token_start[high - 1], token_end[high - 1]):
            high -= 1
        begins[row], ends[row] = low, high
    return begins, ends


@kernel(int64[::1](column(int32), column(int32), column(int32), column(int64), column(int32), column(int32)))
def most_covered(file: I32, start: I32, end: I32, first: I64, word_start: I32, word_end: I32) -> I64:
    """Return the word of which each stretch of time covers the largest share, in doubles; -1 if there is none.

    Of equal shares the first is taken. Words are sorted by (file, start) and may overlap; those of file f are rows
    first[f]:first[f + 1].
    """
    # Ends need not ascend, but the latest end so far does, so it can be searched.
    latest = np.empty(len(word_end), np.int32)
    for f in range(len(first) - 1):
        for word in range(first[f], first[f + 1]):
            latest[word] = word_end[word] if word == first[f] else max(latest[word - 1], word_end[word])
    best = np.full(len(file), -1, np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        word = low + np.searchsorted(latest[low:high], start[row], side="right")
        most = 0.0
        while word < high and word_start[word] < end[row]:
            shared = shared_seconds(start[row], end[row], word_start[word], word_end[word])
            share = shared / (seconds(word_end[word]) - seconds(word_start[word]))
            if share > most:
                best[row], most = word, share
            word += 1
    return best


@kernel(boolean[::1](column(int64), column(int64), column(int64), column(int64), column(int32)))
def same_labels(first: I64, last: I64, other_first: I64, other_last: I64, label: I32) -> Bool:
    """Return, for each row, whether label[first:last] equals label[other_first:other_last]."""
    same = np.empty(len(first), np.bool_)
    for row in range(len(first)):
        size = last[row] - first[row]
        same[row] = size == other_last[row] - other_first[row]
        if same[row]:
            for k in range(size):
                if label[first[row] + k] != label[other_first[row] + k]:
                    same[row] = False
                    break
    return same


@kernel(void(column(int64), column(int64), column(int16), column(int16), boolean[::1]))
def mark_phones(first: I64, last: I64, fold: I16, fold_of_phone: I16, marked: Bool) -> None:
    """Mark the phones first:last of each fragment that are in the fragment's fold. `marked` is bool [n_phones]."""
    for row in range(len(first)):
        for phone in range(first[row], last[row]):
            if fold_of_phone[phone] == fold[row]:
                marked[phone] = True


@part()
def _close(end: int, start: int) -> bool:
    """Return whether tde takes an end and a later start for the same time."""
    return seconds(start) - seconds(end) <= 1e-8 + 1e-5 * seconds(start)


@kernel(void(column(int16), column(int32), column(int32), column(int32), int64[::1]))
def add_union(fold: I16, file: I32, start: I32, end: I32, ticks: I64) -> None:
    """Add the duration of the union of each fold's fragments to `ticks` int64 [n_folds].

    Rows are sorted by (fold, file, start).

    QUIRK: tde counts the gap between two fragments as covered if its ends a and b are as close as adjacent segments of
    its alignments have to be: |a - b| <= 1e-8 + 1e-5 |b| seconds.
    """
    row = 0
    while row < len(fold):
        own, own_file, begin, till = fold[row], file[row], start[row], end[row]
        row += 1
        while (
            row < len(fold)
            and fold[row] == own
            and file[row] == own_file
            and (start[row] <= till or _close(till, start[row]))
        ):
            till = max(till, end[row])
            row += 1
        ticks[own] += till - begin
