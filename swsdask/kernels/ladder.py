"""The ladder: slots of scores among rungs, counts between and at rungs, and error rates at every threshold.

Rungs are ascending distinct scores, followed by inf. The *slot* of a score is the number of rungs <= the score: slot 0
lies below the first rung, slot r + 1 begins at rung r, and slot n - 1 (of n rungs including inf) begins at the last
finite rung. A slot is found exactly, and in about constant time for all sets of rungs.

The range of scores is cut into equal buckets, `BUCKETS` per rung, between two fences. The fences lie three times the
interquartile range beyond the quartiles, so outliers do not move them. Scores beyond a fence fall into the outermost
bucket. The first rung of a bucket is looked up, and the few rungs inside the bucket are searched. A score is mapped to
its bucket by one subtraction and one multiplication. Both are monotone in floating point, so no rounding error can put
a score on the wrong side of a rung of another bucket. Buckets have equal widths either in the score or in its float key
(its bits as an integer, roughly its logarithm), whichever crowds the rungs less.

Scores are counted between the rungs of a class of queries, of each query or of each ranking. For rankings, scores that
equal a rung are also counted separately. Other kernels merge sorted rows and count trials by decision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int8, int16, int32, int64, types, void
from numba.core.typing.templates import Signature

from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part, record
from swsdask.kernels.rows import first_not_below
from swsdask.model.trials import F64, I8, I16, I32, I64

BUCKETS = 8
_REACH = 3.0
_MAGNITUDE = 2**63 - 1
_ONE = np.uint64(1)


class Rungs(NamedTuple):
    """Rungs with their buckets: `first` int32 [n_buckets + 1] is the number of rungs before each bucket."""

    scores: F64
    first: I32
    logarithmic: bool
    low: float
    scale: float


_RUNGS = record(Rungs, column(float64), int32[::1], boolean, float64, float64)


@part(float64(float64, boolean), **NOTHING_NEW)
def _place(score: float, logarithmic: bool) -> float:
    """Return the score or its float key. Both are monotone, and equal for 0.0 and -0.0."""
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
    """Return the sum, over buckets, of the squared number of rungs."""
    squares = 0
    for bucket in range(len(rungs.first) - 1):
        squares += (rungs.first[bucket + 1] - rungs.first[bucket]) ** 2
    return squares


@part(_RUNGS(column(float64)))
def cut_rungs(scores: F64) -> Rungs:
    """Return rungs with buckets. `scores` is float64, ascending and distinct; only the last one is inf."""
    evenly = _cut(scores, False)
    crowding = _crowding(evenly)
    if crowding <= 2 * len(scores):
        return evenly
    logarithmically = _cut(scores, True)
    return logarithmically if _crowding(logarithmically) < crowding else evenly


@part(void(column(float64), _RUNGS, int32[::1]), **NOTHING_NEW)
def find_slots(score: F64, rungs: Rungs, slot: I32) -> None:
    """Write the slot of every score (finite) into `slot`, which has the length of `score`.

    Indices are unsigned, because numba tests every signed index for being negative.
    """
    scores, first, logarithmic, low, scale = rungs
    n_buckets = len(first) - 1
    for row in range(len(score)):
        s = score[row]
        bucket = np.uint64(_bucket(s, logarithmic, low, scale, n_buckets))
        begin, end = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if end - begin <= _ONE:
            # If the bucket is empty, rung `begin` is in a later bucket, so it is above the score.
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
    """Count every score in `counts` [line of its stretch, its slot among the rungs `scores`]; keep each slot's highest.

    `bounds` int64 [n_stretches + 1] cuts `score` into stretches. `line` int32 [n_stretches] is the row of a stretch in
    `counts` int32 [n_lines, n_slots], -1 where a stretch is not counted. `layer` int32 [n_lines] is the row of a line
    in `highest` float64 [n_layers, n_slots]. There are fewer than 2^31 scores.
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
    """Return the row in `scores` of each score, int64. Each score is a rung of its query (see `count_own_slots`)."""
    rows = np.empty(len(score), np.int64)
    for number in range(len(score)):
        begin, end = offsets[query[number]], offsets[query[number] + 1]
        rows[number] = begin + first_not_below(scores[begin:end], score[number])
    return rows


@kernel(_COUNT_OWN)
def count_own_slots(bounds: I64, query: I32, group: I16, score: F64, offsets: I64, scores: F64, counts: I64) -> None:
    """Count every score in `counts` [slot among its query's own rungs, group].

    `bounds` int64 [n_stretches + 1] cuts `score` into stretches; `query` int32 and `group` int16 are [n_stretches]. The
    rungs of query q, including inf, are scores[offsets[q] : offsets[q + 1]]. Their slots are the same rows of `counts`
    int64 [n_slots, n_groups].
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
    """Count every score in `counts` [slot among its ranking's rungs, line], and in `tied` [rung, line] if it is a rung.

    `bounds` int64 [n_stretches + 1] cuts `score` into stretches. `ranking` and `line` int32 [n_stretches] describe the
    stretches; `line` is -1 where a stretch is not counted. The rungs of ranking r, including inf, are
    scores[offsets[r] : offsets[r + 1]]. Their slots are the same rows of `counts` and `tied`, int64 [n_rungs, n_lines].
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
    """Return the order that sorts the rows of two tables, each sorted by its three columns; int64 [n + m].

    Rows of the second table are numbered from n on.
    """
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


_DECISIONS = void(
    column(int64),
    column(int32),
    column(int16),
    column(float64),
    column(int8),
    int64[:, :, ::1],
    float64[:, ::1],
    float64[:, ::1],
    float64[:, ::1],
    float64[:, ::1],
)
_ABOVE, _BELOW = 2**63 - 1, -(2**63)
_INFINITE = 0x7FF0000000000000


@part(int64(int64), **NOTHING_NEW)
def _key(bits: int) -> int:
    """Map the bits of a score to an integer that sorts as the score does. The map is its own inverse."""
    return bits ^ ((bits >> 63) & _ABOVE)


@kernel(_DECISIONS)
def count_decisions(
    bounds: I64,
    query: I32,
    group: I16,
    score: F64,
    decision: I8,
    counts: I64,
    min_yes: F64,
    max_no: F64,
    lowest: F64,
    highest: F64,
) -> None:
    """Count trials by decision, and update the extreme scores.

    `counts` is int64 [n_queries, n_groups, 3]; its last place counts trials without a decision. `min_yes`, `max_no`,
    `lowest` and `highest` are float64 [n_queries, n_groups]. `bounds` int64 [n_stretches + 1] cuts `score` and
    `decision` into stretches; `query` and `group` are [n_stretches]. No stretch is empty. Extremes are sought among
    integer keys, because the compiler vectorises their comparison. Raises `ValueError` for a NaN score, whose key lies
    beyond that of inf or -inf, and for a decision other than 1, 0 and -1: the caller need not check for either.
    """
    extremes = np.empty(4, np.float64)
    bits = extremes.view(np.int64)
    for stretch in range(len(query)):
        begin, end = bounds[stretch], bounds[stretch + 1]
        scores, decisions = score[begin:end].view(np.int64), decision[begin:end]
        yes, no, low, high = _ABOVE, _BELOW, _ABOVE, _BELOW
        for row in range(len(scores)):
            key, d = _key(scores[row]), decisions[row]
            low = min(low, key)
            high = max(high, key)
            yes = min(yes, key if d == 1 else _ABOVE)
            no = max(no, key if d == 0 else _BELOW)
        if high > _INFINITE or low < ~_INFINITE:
            raise ValueError("a score is NaN")
        n_yes, n_no, n_none = 0, 0, 0
        for d in decisions:
            n_yes += d == 1
            n_no += d == 0
            n_none += d == -1
        if n_yes + n_no + n_none != end - begin:
            raise ValueError("a decision is none of YES, NO and none")
        q, g = query[stretch], group[stretch]
        counts[q, g, 0] += n_no
        counts[q, g, 1] += n_yes
        counts[q, g, 2] += n_none
        bits[0], bits[1], bits[2], bits[3] = _key(yes), _key(no), _key(low), _key(high)
        if n_yes > 0:
            min_yes[q, g] = min(min_yes[q, g], extremes[0])
        if n_no > 0:
            max_no[q, g] = max(max_no[q, g], extremes[1])
        lowest[q, g] = min(lowest[q, g], extremes[2])
        highest[q, g] = max(highest[q, g], extremes[3])


def _signature(number: types.Type) -> Signature:
    counts = types.Array(number, 2, "C", readonly=True)
    return void(
        counts, column(int64), column(int64), column(int64), column(int64), column(int64), int64,
        int64[::1], int64[::1], float64[::1], float64[::1],
    )  # fmt: skip


@kernel(_signature(int32), _signature(int64))
def add_rates(
    counts: I32 | I64,
    level_of_line: I64,
    rung: I64,
    level_of_hit: I64,
    levels: I64,
    n_targets: I64,
    n_trials: int,
    hits: I64,
    false_alarms: I64,
    p_miss: F64,
    p_fa: F64,
) -> None:
    """Add the counts and the error rates at every rung, level by level.

    At every rung, the accepted trials are added to `hits` and `false_alarms`, misses / N_act to `p_miss`, and false
    alarms / (N - N_act) to `p_fa`, where the divisor is positive. These arrays are [n_rungs]. `counts` [n_lines,
    n_rungs] are the trials of each slot (see `statistics.ladder`); `rung` and `level_of_hit` [n_hits] describe the
    hits. `levels` are the distinct values of N_act, and `n_targets` the number of targets of all queries with each
    value. Lines and hits of level -1 do not count.
    """
    n = len(hits)
    every, new_hits = np.empty((2, n), np.int64)
    for level in range(len(levels)):
        every[:] = 0
        new_hits[:] = 0
        for line in range(len(level_of_line)):
            if level_of_line[line] == level:
                for r in range(n):
                    every[r] += counts[line, r]
        for hit in range(len(rung)):
            if level_of_hit[hit] == level:
                new_hits[rung[hit]] += 1
        above, accepted = 0, 0
        for r in range(n - 1, -1, -1):
            accepted += new_hits[r]
            new_hits[r] = accepted
            here = every[r]
            every[r] = above - accepted
            above += here
        for r in range(n):
            hits[r] += new_hits[r]
            false_alarms[r] += every[r]
        n_act, n_nontarget = levels[level], n_trials - levels[level]
        if n_act > 0:
            for r in range(n):
                p_miss[r] += (n_targets[level] - new_hits[r]) / n_act
        if n_nontarget > 0:
            for r in range(n):
                p_fa[r] += every[r] / n_nontarget
