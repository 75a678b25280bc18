"""Cells that are ranges of files, for what is counted file by file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.trials import I32

_STEPS_PER_FRAGMENT = 32


class FileRange(NamedTuple):
    """A cell: the files low:high."""

    low: int
    high: int


def file_ranges(corpus: Corpus, discovered: Discovered, work: int) -> Iterator[FileRange]:
    """Ranges of files, all of them once, each of about `work` steps or one file."""
    fragments = np.searchsorted(discovered.file, np.arange(len(corpus.files) + 1))
    steps = corpus.phones.first + corpus.words.first + _STEPS_PER_FRAGMENT * fragments
    low = 0
    while low < len(corpus.files):
        high = max(low + 1, int(np.searchsorted(steps, steps[low] + work, side="right")) - 1)
        yield FileRange(low, high)
        low = high


def rows_of(files: FileRange, file: I32) -> slice:
    """The rows of a range of files in a column of files that is sorted."""
    low, high = np.searchsorted(file, files).tolist()
    return slice(low, high)
