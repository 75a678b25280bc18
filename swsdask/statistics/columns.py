"""Equally long columns as rows: where rows change, and the distinct pairs of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import I32, I64, Bool


def row_changes(*columns: NDArray[Any]) -> Bool:
    """The rows that differ from the one before them, and the first."""
    new = np.ones(len(columns[0]), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return new


def distinct_pairs(query: I32, place: I32 | I64) -> tuple[I32, I64]:
    """The pairs (query, place), each once, sorted; places are not negative."""
    pairs = np.unique(query.astype(np.int64) << 32 | place.astype(np.int64))
    return (pairs >> 32).astype(np.int32), pairs & (2**32 - 1)
