"""The ladder: the slots of scores among rungs, counts between rungs, and merging of sorted rows.

Rungs are ascending distinct scores with inf behind them. The *slot* of a score is the number of rungs <= it: slot 0
lies below the first rung, slot r + 1 begins at rung r, and slot n - 1 (n rungs with the inf) at the last finite one. It
is found in about constant time, and exactly whatever the rungs are.

The line of scores is cut into equal buckets, `BUCKETS` per rung, between fences that outliers do not move (three times
the quartiles' distance beyond them); what lies beyond a fence falls into the outermost bucket. A bucket's first rung is
looked up and the few rungs inside it are searched. The map from scores to buckets is computed with one subtraction and
one multiplication, both monotone in floating point, so no rounding can put a score on the wrong side of a rung of
another bucket. Buckets are equal either in the score or in its float key (the integer of its bits, which is about
logarithmic): whichever crowds the rungs less.

Scores are counted between the rungs of a class of queries, of every query on its own, or of rankings, where those that
equal a rung are counted apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int16, int32, int64, void

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part, record
from swsdask.kernels.search import first_not_below
from swsdask.model.trials import F64, I16, I32, I64

BUCKETS = 8
_REACH = 3.0
_MAGNITUDE = 2**63 - 1
_ONE = np.uint64(1)


class Rungs(NamedTuple):
    """Rungs with their buckets: `first` int32 [n_buckets + 1] is the number of rungs in front of each bucket."""

    scores: F64
    first: I32
    logarithmic: bool
    low: float
    scale: float


_RUNGS = record(Rungs, column(float64), int32[::1], boolean, float64, float64)


@part(float64(float64, boolean), **NOTHING_NEW)
def _place(score: float, logarithmic: bool) -> float:
    """The score itself, or its float key: monotone either way, and the same for 0.0 and -0.0."""
    if not logarithmic:
        return score
    bits = np.float64(score).view(np.int64)
    return float(bits if bits >= 0 else -(bits & _MAGNITUDE))


@part(int64(float64, boolean, float64, float64, int64), **NOTHING_NEW)
def _bucket(score: float, logarithmic: bool, low: float, scale: float, n_buckets: int) -> int:
    x = (_place(score, logarithmic) - low) * scale
    last = n_buckets - 1.0
    x = x if x > 0.0 else 0.0
    return int(x if x < last else last)


@part(_RUNGS(column(float64), boolean))
def _cut(scores: F64, logarithmic: bool) -> Rungs:
    n = len(scores) - 1
    n_buckets = max(1, BUCKETS * n)
    first = np.zeros(n_buckets + 1, np.int32)
    low, scale = 0.0, 0.0
    if n > 0:
        lower = _place(scores[n // 4], logarithmic)
        upper = _place(scores[3 * n // 4], logarithmic)
        reach = _REACH * (upper - lower)
        low = max(_place(scores[0], logarithmic), lower - reach)
        span = min(_place(scores[n - 1], logarithmic), upper + reach) - low
        scale = n_buckets / span if span > 0.0 else 0.0
    for rung in range(n):
        first[_bucket(scores[rung], logarithmic, low, scale, n_buckets) + 1] += 1
    for bucket in range(n_buckets):
        first[bucket + 1] += first[bucket]
    return Rungs(scores, first, logarithmic, low, scale)


@part(int64(_RUNGS), **NOTHING_NEW)
def _crowding(rungs: Rungs) -> int:
    """The sum of squares of the rungs per bucket."""
    squares = 0
    for bucket in range(len(rungs.first) - 1):
        squares += (rungs.first[bucket + 1] - rungs.first[bucket]) ** 2
    return squares


@part(_RUNGS(column(float64)))
def cut_rungs(scores: F64) -> Rungs:
    """Rungs ready to be searched. `scores`: float64, ascending, distinct, the last one inf and no other."""
    evenly = _cut(scores, False)
    crowding = _crowding(evenly)
    if crowding <= 2 * len(scores):
        return evenly
    logarithmically = _cut(scores, True)
    return logarithmically if _crowding(logarithmically) < crowding else evenly


@part(void(column(float64), _RUNGS, int32[::1]), **NOTHING_NEW)
def find_slots(score: F64, rungs: Rungs, slot: I32) -> None:
    """Write the slot of every score (finite) into `slot`, as long as `score`.

    Places are unsigned: those that may be negative would each be looked at for it.
    """
    scores, first, logarithmic, low, scale = rungs
    n_buckets = len(first) - 1
    for row in range(len(score)):
        s = score[row]
        bucket = np.uint64(_bucket(s, logarithmic, low, scale, n_buckets))
        begin, end = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if end - begin <= _ONE:
            slot[row] = begin + np.uint64(scores[begin] <= s)
        else:
            while begin < end:
                middle = (begin + end) >> _ONE
                if scores[middle] <= s:
                    begin = middle + _ONE
                else:
                    end = middle
            slot[row] = begin


_BLOCK = 512
_WORTH_A_BUFFER = 16

_COUNT = void(
    column(int64), column(int32), column(int32), column(float64), column(float64), int32[:, ::1], float64[:, ::1]
)
_COUNT_OWN = void(
    column(int64), column(int32), column(int16), column(float64), column(int64), column(float64), int64[:, ::1]
)


@kernel(_COUNT)
def count_slots(bounds: I64, line: I32, layer: I32, score: F64, scores: F64, counts: I32, highest: F64) -> None:
    """Add every score to `counts` [line of its stretch, its slot among the rungs `scores`]; keep each slot's highest.

    `bounds` int64 [n_stretches + 1] cuts `score`; `line` int32 [n_stretches] is the row of `counts` int32
    [n_lines, n_slots], -1 where a stretch is not counted; `layer` int32 [n_lines] the row of `highest` float64
    [n_layers, n_slots] that belongs to a line. Fewer than 2^31 rows.
    """
    rungs = cut_rungs(scores)
    n_slots = len(scores)
    buffer = np.zeros(n_slots, np.int32)
    slots = np.empty(_BLOCK, np.int32)
    for stretch in range(len(line)):
        if line[stretch] < 0:
            continue
        begin, end = bounds[stretch], bounds[stretch + 1]
        total = counts[line[stretch]]
        peak = highest[layer[line[stretch]]]
        buffered = (end - begin) * _WORTH_A_BUFFER > n_slots
        target = buffer if buffered else total
        for at in range(begin, end, _BLOCK):
            block = score[at : min(at + _BLOCK, end)]
            find_slots(block, rungs, slots)
            for row in range(len(block)):
                s, slot = block[row], np.uint64(slots[row])
                target[slot] += 1
                peak[slot] = s if s > peak[slot] else peak[slot]
        if buffered:
            total += buffer
            buffer[:] = 0


@kernel(int64[::1](column(int32), column(float64), column(int64), column(float64)))
def find_own_rungs(query: I32, score: F64, offsets: I64, scores: F64) -> I64:
    """The row in `scores` of each score, which is one of its query's own rungs (see `count_own_slots`): int64."""
    rows = np.empty(len(score), np.int64)
    for number in range(len(score)):
        begin, end = offsets[query[number]], offsets[query[number] + 1]
        rows[number] = begin + first_not_below(scores[begin:end], score[number])
    return rows


@kernel(_COUNT_OWN)
def count_own_slots(bounds: I64, query: I32, group: I16, score: F64, offsets: I64, scores: F64, counts: I64) -> None:
    """Add every score to `counts` [slot among its query's own rungs, group].

    `query` int32, `group` int16 [n_stretches]; the rungs of query q, with the inf, are scores[offsets[q] :
    offsets[q + 1]], and their slots the same rows of `counts` int64 [n_slots, n_groups].
    """
    slots = np.empty(_BLOCK, np.int32)
    for stretch in range(len(query)):
        q = query[stretch]
        if stretch == 0 or q != query[stretch - 1]:
            rungs = cut_rungs(scores[offsets[q] : offsets[q + 1]])
        own = counts[offsets[q] : offsets[q + 1], group[stretch]]
        end = bounds[stretch + 1]
        for at in range(bounds[stretch], end, _BLOCK):
            block = score[at : min(at + _BLOCK, end)]
            find_slots(block, rungs, slots)
            for row in range(len(block)):
                own[np.uint64(slots[row])] += 1


_RANKED = void(
    column(int64),
    column(int32),
    column(int32),
    column(float64),
    column(int64),
    column(float64),
    int64[:, ::1],
    int64[:, ::1],
)


@kernel(_RANKED)
def count_ranks(
    bounds: I64, ranking: I32, line: I32, score: F64, offsets: I64, scores: F64, counts: I64, tied: I64
) -> None:
    """Add every score to `counts` [slot among the rungs of its ranking, line], those of a rung to `tied` [rung, line].

    `bounds` int64 [n_stretches + 1] cuts `score`; `ranking` and `line` int32 [n_stretches] are those of a stretch, line
    -1 where it is not counted. The rungs of ranking r, with the inf, are scores[offsets[r] : offsets[r + 1]], and their
    slots the same rows of `counts` and `tied`, int64 [n_rungs, n_lines].
    """
    slots = np.empty(_BLOCK, np.int32)
    known = -1
    for stretch in range(len(ranking)):
        if line[stretch] < 0:
            continue
        begin, end = offsets[ranking[stretch]], offsets[ranking[stretch] + 1]
        own = scores[begin:end]
        if ranking[stretch] != known:
            rungs = cut_rungs(own)
            known = ranking[stretch]
        own_counts, own_tied = counts[begin:end, line[stretch]], tied[begin:end, line[stretch]]
        stop = bounds[stretch + 1]
        for at in range(bounds[stretch], stop, _BLOCK):
            block = score[at : min(at + _BLOCK, stop)]
            find_slots(block, rungs, slots)
            for row in range(len(block)):
                slot = np.uint64(slots[row])
                own_counts[slot] += 1
                below = slot - np.uint64(slot > 0)
                own_tied[below] += own[below] == block[row]


_ROWS = (column(float64), column(int32), column(int16))


@kernel(int64[::1](*_ROWS, *_ROWS))
def merge_order(score: F64, query: I32, group: I16, other_score: F64, other_query: I32, other_group: I16) -> I64:
    """The sorted order of two tables of rows one behind the other, each sorted by its three columns: int64 [n + m]."""
    n, m = len(score), len(other_score)
    order = np.empty(n + m, np.int64)
    i, j = 0, 0
    for place in range(n + m):
        if j == m:
            ours = True
        elif i == n:
            ours = False
        elif score[i] != other_score[j]:
            ours = score[i] < other_score[j]
        elif query[i] != other_query[j]:
            ours = query[i] < other_query[j]
        else:
            ours = group[i] <= other_group[j]
        if ours:
            order[place] = i
            i += 1
        else:
            order[place] = n + j
            j += 1
    return order
