"""What counts in a fold: what lies entirely inside one of its stretches, in all three definitions.

Times are compared exactly, which is what the official tool's comparison of doubles of the same decimals is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsdask.kernels.containment import holding
from swsdask.model.corpus import NO_FOLD, Folds
from swsdask.model.trials import I16, I32


def folds_of(file: I32, start: I32, end: I32, fold_sets: Sequence[Folds]) -> I16:
    """The fold of each stretch of time in each set of folds, int16 [n_fold_sets, n]; `NO_FOLD` where none counts it."""
    found = np.full((len(fold_sets), len(file)), NO_FOLD, np.int16)
    for number, folds in enumerate(fold_sets):
        stretches = folds.stretches
        holder = holding(file, start, end, stretches.first, stretches.start, stretches.end)
        found[number] = np.append(stretches.fold, np.int16(NO_FOLD))[holder]
    return found
