"""Which phones (or words) of a file a stretch of time has, by the three definitions of term discovery.

Tokens are columns sorted by (file, start) that do not overlap within one file; those of file f are rows
first[f]:first[f + 1]. What a stretch has is a range of rows. Times are int32 ticks of 0.1 ms; seconds are
`ticks / 10_000`, the very doubles that an official tool parses.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import int32, int64, njit

from swsdask.kernels.signatures import column, several
from swsdask.model.trials import I32, I64

_PLACES = several(int64[::1], int64[::1])
_STRETCHES = (column(int32), column(int32), column(int32))
_TOKENS = (column(int64), column(int32), column(int32))

_TICKS_PER_SECOND = 10_000
_EDGE_TICKS = 300
"""30 ms."""


def _least_rounded_to(thousandths: int) -> float:
    """The least double that `round(x, 3)` takes to so many thousandths or more."""
    half = Fraction(2 * thousandths - 1, 2000)
    nearest = float(half)
    return nearest if Fraction(nearest) > half else float(np.nextafter(nearest, np.inf))


_ROUNDS_TO_30_MS = _least_rounded_to(30)
_ROUNDS_TO_60_MS = _least_rounded_to(60)


@njit()
def seconds(ticks: int) -> float:
    """The double nearest to the decimal time."""
    return ticks / _TICKS_PER_SECOND


@njit()
def shared_seconds(start: int, end: int, other_start: int, other_end: int) -> float:
    """How long two stretches of time both last, as both official tools subtract; negative if they are apart."""
    return seconds(min(end, other_end)) - seconds(max(start, other_start))


@njit()
def near(start: int, end: int, other_start: int, other_end: int) -> bool:
    """The one predicate of tde: they share more than 30 ms, or more than half of either, in doubles."""
    shared = shared_seconds(start, end, other_start, other_end)
    if shared <= 1e-8:
        return False
    return (
        shared > 0.03
        or shared > 0.5 * (seconds(end) - seconds(start))
        or shared > 0.5 * (seconds(other_end) - seconds(other_start))
    )


@njit()
def _touched(start: int, end: int, low: int, high: int, token_start: I32, token_end: I32) -> tuple[int, int]:
    """The range of the tokens low:high that share some time with a stretch."""
    first = low + int(np.searchsorted(token_end[low:high], start, side="right"))
    last = low + int(np.searchsorted(token_start[low:high], end))
    return first, max(first, last)


@njit(_PLACES(*_STRETCHES, *_TOKENS), cache=True, nogil=True)
def place_touching(file: I32, start: I32, end: I32, first: I64, token_start: I32, token_end: I32) -> tuple[I64, I64]:
    """The tokens that share any time with each stretch: two columns int64, the first row and the one past the last."""
    begins, ends = np.empty(len(file), np.int64), np.empty(len(file), np.int64)
    for row in range(len(file)):
        low, high = first[file[row]], first[file[row] + 1]
        begins[row], ends[row] = _touched(start[row], end[row], low, high, token_start, token_end)
    return begins, ends


@njit()
def _half_or_30_ms(start: int, end: int, token_start: int, token_end: int) -> bool:
    shared = min(end, token_end) - max(start, token_start)
    return shared > _EDGE_TICKS or 2 * shared > token_end - token_start


@njit(_PLACES(*_STRETCHES, *_TOKENS), cache=True, nogil=True)
def place_document(file: I32, start: I32, end: I32, first: I64, token_start: I32, token_end: I32) -> tuple[I64, I64]:
    """The tokens of which each stretch has more than 30 ms or more than half, exactly: as `place_touching`."""
    begins, ends = np.empty(len(file), np.int64), np.empty(len(file), np.int64)
    for row in range(len(file)):
        s, e = start[row], end[row]
        low, high = _touched(s, e, first[file[row]], first[file[row] + 1], token_start, token_end)
        if low < high and not _half_or_30_ms(s, e, token_start[low], token_end[low]):
            low += 1
        if low < high and not _half_or_30_ms(s, e, token_start[high - 1], token_end[high - 1]):
            high -= 1
        begins[row], ends[row] = low, high
    return begins, ends


@njit()
def _rounded_half_or_30_ms(start: int, end: int, token_start: int, token_end: int) -> bool:
    shared = shared_seconds(start, end, token_start, token_end)
    duration = seconds(token_end) - seconds(token_start)
    if duration >= _ROUNDS_TO_60_MS:
        return shared >= _ROUNDS_TO_30_MS
    return shared / duration >= 0.5


@njit(_PLACES(*_STRETCHES, *_TOKENS), cache=True, nogil=True)
def place_tdev2(file: I32, start: I32, end: I32, first: I64, token_start: I32, token_end: I32) -> tuple[I64, I64]:
    """The tokens that tdev2 gives each stretch: as `place_touching`.

    QUIRK: of the tokens that share any time with it the first and the last are kept if `round(shared, 3) >= 0.03`
    where `round(duration, 3) >= 0.06`, else if `shared / duration >= 0.5` in doubles.
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


@njit(_PLACES(*_STRETCHES, column(int64), *_TOKENS), cache=True, nogil=True)
def place_tde(
    file: I32, start: I32, end: I32, of_file: I64, segment_first: I64, token_start: I32, token_end: I32
) -> tuple[I64, I64]:
    """The tokens that tde gives each stretch: as `place_touching`, but -1, -1 where tde finds no segment for it.

    Segment g has the tokens segment_first[g]:segment_first[g + 1], of which each starts where the one before ends;
    those of file f are of_file[f]:of_file[f + 1].

    QUIRK: a stretch is looked up in one segment only, the last of its file that is not after it, where "after" means
    that it starts later and is not `near`. What lies in an earlier segment is lost. Its tokens are all that are `near`,
    maybe none.
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
