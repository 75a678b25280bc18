"""A dictionary of byte strings: codes in order of first appearance, by an open hash table over one arena of bytes.

Its columns: `slots` int32 [a power of two, at least twice the entries], -1 where empty; `hashes` uint64 and `ends`
int64 [entries]; `arena` uint8, where entry k ends at `ends[k]` and begins where entry k - 1 ends.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint8, uint64, void
from numpy.typing import NDArray

from swsdask.kernels.decimal_text import TEXT

NO_ROOM = -1
"""What `encode` returns where an entry is new and there is no room for it."""

HASH_SEED = np.uint64(14695981039346656037)
HASH_FACTOR = np.uint64(1099511628211)
"""FNV-1a of 64 bits: hash = (hash ^ byte) * factor for every byte."""

DICTIONARY = (int32[::1], uint64[::1], int64[::1], uint8[::1])
"""The types of `slots`, `hashes`, `ends`, `arena`."""

_HALF = np.uint64(32)


@njit()
def _first_slot(key: np.uint64, mask: int) -> np.int64:
    return np.int64(key ^ (key >> _HALF)) & mask


@njit(uint64(TEXT, int64, int64), cache=True, nogil=True)
def hash_bytes(text: NDArray[np.uint8], begin: int, end: int) -> np.uint64:
    """The hash of text[begin:end]."""
    key = HASH_SEED
    for at in range(begin, end):
        key = (key ^ np.uint64(text[at])) * HASH_FACTOR
    return key


@njit(int64(TEXT, int64, int64, uint64, int64, *DICTIONARY), cache=True, nogil=True)
def encode(
    text: NDArray[np.uint8],
    begin: int,
    end: int,
    key: np.uint64,
    entries: int,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    ends: NDArray[np.int64],
    arena: NDArray[np.uint8],
) -> int:
    """The code of text[begin:end], whose hash is `key`, in a dictionary of `entries` entries.

    A new one is put in with the code `entries`; if there is no room, nothing changes and `NO_ROOM` is returned.
    """
    size = end - begin
    mask = len(slots) - 1
    slot = _first_slot(key, mask)
    while slots[slot] >= 0:
        code: int = slots[slot]
        first = ends[code - 1] if code > 0 else 0
        if hashes[code] == key and ends[code] - first == size:
            same = 0
            while same < size and arena[first + same] == text[begin + same]:
                same += 1
            if same == size:
                return code
        slot = (slot + 1) & mask
    first = ends[entries - 1] if entries > 0 else 0
    if entries == len(hashes) or first + size > len(arena):
        return NO_ROOM
    for offset in range(size):
        arena[first + offset] = text[begin + offset]
    slots[slot] = entries
    hashes[entries] = key
    ends[entries] = first + size
    return entries


@njit(void(int64, uint64[::1], int32[::1]), cache=True, nogil=True)
def fill_slots(entries: int, hashes: NDArray[np.uint64], slots: NDArray[np.int32]) -> None:
    """Put the first `entries` entries into `slots`, anew."""
    slots[:] = -1
    mask = len(slots) - 1
    for code in range(entries):
        slot = _first_slot(hashes[code], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code
