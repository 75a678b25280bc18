"""A ranking as steps: where hits are, and the precision there, by the rule for equal scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from swsdask.measures.rankings import Ranking
from swsdask.model.trials import F64, I64

_BLOCK = 1 << 20


class Steps(NamedTuple):
    """Equally long float64 columns, in order of rank.

    `hits` are those of a step, `recalled` all hits down to it, `precision` that at its end and `before` the precision
    at the step in front of it (NaN: the first of the ranking has none), be that one with hits or without.
    """

    hits: F64
    recalled: F64
    precision: F64
    before: F64


def steps(ranking: Ranking, ties: str) -> Iterator[Steps]:
    """The steps of a ranking, in blocks from the last to the first.

    "group": equal scores are one step. "best", "worst" and rules that order trials: every hit is one, with the false
    alarms that are in front of it. "expected": every rank that a hit may have is one, which has the expected number of
    hits, and the expected precision if a hit is there, over all orders of equal scores.
    """
    if ties == "group":
        recalled = np.cumsum(ranking.new)
        before = _ratio(recalled - ranking.new, recalled - ranking.new + ranking.above)
        yield Steps(
            ranking.new.astype(np.float64),
            recalled.astype(np.float64),
            _ratio(recalled, recalled + ranking.through),
            before,
        )
    elif ties == "expected":
        yield from _expected(ranking)
    else:
        in_front = false_alarms_in_front(ranking, ties)
        recalled = np.arange(1, len(in_front) + 1)
        before = _ratio(recalled - 1, recalled - 1 + in_front)
        yield Steps(np.ones(len(in_front)), recalled.astype(np.float64), _ratio(recalled, recalled + in_front), before)


def false_alarms_in_front(ranking: Ranking, ties: str) -> I64:
    """The false alarms in front of every hit, from the first to the last: `ties` is "best", "worst" or an order.

    Raises `ValueError` where the order was not counted.
    """
    if ties == "best":
        return np.repeat(ranking.above, ranking.new)
    if ties == "worst":
        return np.repeat(ranking.through, ranking.new)
    if ranking.in_front is None:
        raise ValueError(f"the order of equal scores was not counted for ties = {ties!r}")
    return ranking.in_front


def _expected(ranking: Ranking) -> Iterator[Steps]:
    size = ranking.new + ranking.through - ranking.above
    ends = np.cumsum(size)
    hits_before = np.cumsum(ranking.new) - ranking.new
    end = int(ends[-1]) if len(ends) else 0
    for begin in range((end - 1) // _BLOCK * _BLOCK if end else 0, -1, -_BLOCK):
        place = np.arange(begin, min(begin + _BLOCK, end))
        group = np.searchsorted(ends, place, "right")
        n, h = size[group], ranking.new[group]
        others = place - (ends[group] - n)
        hits = hits_before[group] + others * ((h - 1) / np.maximum(n - 1, 1))
        rank = hits_before[group] + ranking.above[group] + others
        recalled = hits_before[group] + (others + 1) * (h / n)
        yield Steps(h / n, recalled, (hits + 1) / (rank + 1), _ratio(hits, rank))


def _ratio(counts: I64 | F64, totals: I64) -> F64:
    quotients = np.full(len(totals), np.nan)
    np.divide(counts, totals, out=quotients, where=totals > 0)
    return quotients
