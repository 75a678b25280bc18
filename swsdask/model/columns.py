"""Columns of arrays: where rows change, distinct pairs of two columns, quotients, and sums of parts of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import F64, I32, I64, Bool


def row_changes(*columns: NDArray[Any]) -> Bool:
    """Return the rows that differ from the one before them, and the first."""
    first, *others = columns
    new = np.ones(len(first), np.bool_)
    np.not_equal(first[1:], first[:-1], out=new[1:])
    for column in others:
        new[1:] |= column[1:] != column[:-1]
    return new


def distinct_pairs(query: I32, place: I32 | I64) -> tuple[I32, I64]:
    """Return the pairs (query, place), each once, sorted; places are not negative."""
    pairs = np.unique(query.astype(np.int64) << 32 | place.astype(np.int64))
    return (pairs >> 32).astype(np.int32), pairs & (2**32 - 1)


def ratio(counts: I64 | F64, totals: I64 | F64) -> F64:
    """Return columns of counts / totals, NaN where the total is 0 or less."""
    quotients = np.full(len(totals), np.nan)
    np.divide(counts, totals, out=quotients, where=totals > 0)
    return quotients


def between(counts: I64 | Bool, begin: I64, end: I64) -> I64:
    """Return the sums of counts[begin[i] : end[i]]."""
    sums = np.append(0, np.cumsum(counts))
    found: I64 = sums[end] - sums[begin]
    return found


def list_sums(counts: I64 | Bool, offsets: I64) -> I64:
    """Return the sums of the lists counts[offsets[i] : offsets[i + 1]]."""
    return between(counts, offsets[:-1], offsets[1:])
