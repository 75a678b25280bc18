"""What fragments cover: phones marked, and the length of their union."""

from __future__ import annotations

from numba import boolean, int16, int32, int64, njit, void

from swsdask.kernels.placing import seconds
from swsdask.kernels.signatures import column
from swsdask.model.trials import I16, I32, I64, Bool


@njit(void(column(int64), column(int64), column(int16), column(int16), boolean[::1]), cache=True, nogil=True)
def mark_phones(first: I64, last: I64, fold: I16, fold_of_phone: I16, marked: Bool) -> None:
    """Mark the phones first:last of each fragment that are of the fragment's fold. `marked` is bool [n_phones]."""
    for row in range(len(first)):
        for phone in range(first[row], last[row]):
            if fold_of_phone[phone] == fold[row]:
                marked[phone] = True


@njit()
def _close(end: int, start: int) -> bool:
    """Whether tde takes an end and a start after it for the same time."""
    return seconds(start) - seconds(end) <= 1e-8 + 1e-5 * seconds(start)


@njit(void(column(int16), column(int32), column(int32), column(int32), int64[::1]), cache=True, nogil=True)
def add_union(fold: I16, file: I32, start: I32, end: I32, ticks: I64) -> None:
    """Add to `ticks` int64 [n_folds] how long the union of each fold's fragments is; rows by (fold, file, start).

    QUIRK of tde: what lies between two fragments that are close in the sense of the segments of its alignments,
    |a - b| <= 1e-8 + 1e-5 |b| seconds, counts as covered.
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
