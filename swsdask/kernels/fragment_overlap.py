"""When two fragments overlap, by the measures document of the Zero Resource challenge (tde: `placing.near`)."""

from __future__ import annotations

from numba import njit


@njit()
def share_more_than_half(start: int, end: int, other_start: int, other_end: int) -> bool:
    """Two fragments of one file share more than half of the shorter one's extent."""
    shared = min(end, other_end) - max(start, other_start)
    return bool(2 * shared > min(end - start, other_end - other_start))
