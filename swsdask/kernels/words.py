"""Words that fragments lie on, as tdev2 takes them, and whether two stretches of a corpus have equal labels."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, njit

from swsdask.kernels.placing import seconds, shared_seconds
from swsdask.kernels.signatures import column
from swsdask.model.trials import I32, I64, Bool


@njit(
    int64[::1](column(int32), column(int32), column(int32), column(int64), column(int32), column(int32)),
    cache=True,
    nogil=True,
)
def most_covered(file: I32, start: I32, end: I32, first: I64, word_start: I32, word_end: I32) -> I64:
    """The word of which each stretch of time covers the largest share (in doubles), of several the first; -1 if none.

    Words are sorted by (file, start) and may overlap; those of file f are rows first[f]:first[f + 1].
    """
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


@njit(boolean[::1](column(int64), column(int64), column(int64), column(int64), column(int32)), cache=True, nogil=True)
def same_labels(first: I64, last: I64, other_first: I64, other_last: I64, label: I32) -> Bool:
    """Whether label[first:last] equals label[other_first:other_last], row by row."""
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
