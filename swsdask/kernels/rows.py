"""Rows of detections: places in sorted arrays, bounds, the best row of a place, hashes, and MediaEval's list of trials.

numpy also finds places in sorted arrays and sorts integers. numba's versions of these functions take many times as long
to compile as those here, because they support every type of number, including NaN.

A stretch is a range of adjacent rows with the same query and the same group of documents.

MediaEval's trials are processed one by one, in double arithmetic and in the order of its tool. Rounding errors decide
the output of the tool near 0, and its choice among equal maxima. So the order of every addition is part of the result.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int8, int16, int32, int64, uint64, void
from numpy.typing import NDArray

from swsdask.kernels.compilation import NOTHING_NEW, column, inlined, kernel, part, several
from swsdask.model.trials import F64, I8, I16, I32, I64, Bool

TRACK_BITS = 32
"""The number of bits of the time where (document, channel, time) is packed into one integer."""

_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_SHIFTS = np.array([30, 27, 31, 32], np.uint64)


@part(**NOTHING_NEW)
def first_not_below(ascending: I32 | I64 | F64, number: float | np.int64) -> int:
    """Return the first place of an ascending array at which a number, not NaN, can be inserted in order."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@part(**NOTHING_NEW)
def first_above(ascending: I32 | I64 | F64, number: float | np.int64) -> int:
    """Return the last place of an ascending array at which a number, not NaN, can be inserted in order."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@part(int64[::1](column(int64)))
def ascending_order(keys: I64) -> I64:
    """Return the places of integers in ascending order, by a bottom-up merge sort. Equal integers keep their order."""
    n = len(keys)
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for place in range(n):
        order[place] = place
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            left, right = begin, middle
            for place in range(begin, end):
                if right == end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@inlined()
def _mix(value: np.uint64) -> np.uint64:
    """Map 64 bits one-to-one to 64 bits such that every input bit affects every output bit (splitmix64's finaliser)."""
    value = (value ^ (value >> _SHIFTS[0])) * _FACTORS[0]
    value = (value ^ (value >> _SHIFTS[1])) * _FACTORS[1]
    value ^= value >> _SHIFTS[2]
    return value


@inlined(uint64(int64, int64), **NOTHING_NEW)
def _both(high: int, low: int) -> np.uint64:
    """Pack two integers of up to 32 bits into one."""
    both: np.uint64 = (np.uint64(np.uint32(high)) << _SHIFTS[3]) | np.uint64(np.uint32(low))
    return both


@kernel(
    uint64(
        uint64,
        uint64,
        column(uint64),
        column(uint64),
        column(int32),
        column(int32),
        column(int8),
        column(int32),
        column(int32),
        column(uint64),
        column(int8),
    ),
    **NOTHING_NEW,
)
def sum_of_hashes(
    total: np.uint64,
    factor: np.uint64,
    query_hash: NDArray[np.uint64],
    document_hash: NDArray[np.uint64],
    query: NDArray[np.int32],
    document: NDArray[np.int32],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    duration: NDArray[np.int32],
    score: NDArray[np.uint64],
    decision: NDArray[np.int8],
) -> np.uint64:
    """Multiply the total by `factor` and add the hash of a row, for each row in turn, modulo 2^64.

    `query_hash` and `document_hash` are the hashes of the ids that codes represent; `score` holds the bits of scores.
    """
    for row in range(len(query)):
        value = _mix(query_hash[query[row]] + document_hash[document[row]])
        value = _mix(value ^ _both(start[row], duration[row]))
        value = _mix(value ^ score[row])
        value = _mix(value ^ _both(channel[row], decision[row]))
        total = total * factor + value
    return total


OUT, IN = range(2)
"""The place of a row: not inside an excerpt, or inside one (see `place_rows`)."""


@inlined(int64(int64, int64, int64), **NOTHING_NEW)
def _packed(document: int, channel: int, time: int) -> np.int64:
    return ((np.int64(document) * 256 + channel + 128) << TRACK_BITS) + time


@kernel(
    void(
        column(int64),
        column(int64),
        column(float64),
        float64,
        column(int32),
        column(int8),
        column(int32),
        column(int64),
        int8[::1],
    ),
    **NOTHING_NEW,
)
def place_rows(
    begins: NDArray[np.int64],
    reaches: NDArray[np.int64],
    added: NDArray[np.float64],
    ticks_per_second: float,
    document: NDArray[np.int32],
    channel: NDArray[np.int8],
    start: NDArray[np.int32],
    end: NDArray[np.int64],
    place: NDArray[np.int8],
) -> None:
    """Write the `place` of each row among `begins`, `reaches` and `added` of `archive.reference_tables.Excerpts`.

    The place of a row that ends where its excerpt ends is increased by 1 if its begin + duration in doubles exceeds the
    end, and by another 2 if that sum exceeds the begin + duration of the excerpt.
    """
    last = np.int64(-1)
    for row in range(len(document)):
        begin = _packed(document[row], channel[row], start[row])
        # Most rows are in the excerpt of the previous row, or in the next excerpt.
        if last + 1 < len(begins) and begins[last + 1] <= begin:
            last += 1
        if (last >= 0 and begins[last] > begin) or (last + 1 < len(begins) and begins[last + 1] <= begin):
            last = np.int64(first_above(begins, begin)) - 1
        beyond = reaches[last] - _packed(document[row], channel[row], end[row]) if last >= 0 else np.int64(-1)
        place[row] = OUT if beyond < 0 else IN
        if beyond == 0:
            own = start[row] / ticks_per_second + (end[row] - start[row]) / ticks_per_second
            place[row] += np.int8(own > end[row] / ticks_per_second) + 2 * np.int8(own > added[last])


@part()
def _is_better(row: int, other: int, score: F64, start: I32, duration: I32, channel: I8, decision: I8) -> bool:
    """Return whether a row precedes another.

    The first difference decides: higher score, earlier start, longer duration, lower channel, YES, earlier row.
    """
    if score[row] != score[other]:
        return bool(score[row] > score[other])
    if start[row] != start[other]:
        return bool(start[row] < start[other])
    if duration[row] != duration[other]:
        return bool(duration[row] > duration[other])
    if channel[row] != channel[other]:
        return bool(channel[row] < channel[other])
    if decision[row] != decision[other]:
        return bool(decision[row] > decision[other])
    return row < other


@kernel(
    int64[::1](
        column(int32),
        column(int64),
        column(float64),
        column(int32),
        column(int32),
        column(int8),
        column(int8),
        int64,
        int64,
    )
)
def best_detections(
    query: I32,
    place: I64,
    score: F64,
    start: I32,
    duration: I32,
    channel: I8,
    decision: I8,
    n_queries: int,
    n_places: int,
) -> I64:
    """Return the row of the best detection of every (query, place) that has any.

    The result is in the order of queries in the rows, and then ascends by place. Rows are clustered by query. `place`
    is the number of the document or segment of each row, 0 .. n_places - 1, or -1 for none. The best row has the
    highest score. Ties are decided by the earlier start, then by the longer duration, the lower channel, YES before NO,
    and the earlier row. Raises `ValueError` if a query reappears after another query.
    """
    best = np.full(n_places, -1, np.int64)
    touched = np.empty(n_places, np.int64)
    ended = np.zeros(n_queries, np.bool_)
    rows = np.empty(len(query), np.int64)
    n_touched, count = 0, 0
    for row in range(len(query) + 1):
        if row > 0 and (row == len(query) or query[row] != query[row - 1]):
            ended[query[row - 1]] = True
            for chosen in np.sort(touched[:n_touched]):
                rows[count] = best[chosen]
                best[chosen] = -1
                count += 1
            n_touched = 0
        if row == len(query):
            break
        if ended[query[row]]:
            raise ValueError("the rows are not clustered by query")
        here = place[row]
        if here < 0:
            continue
        if best[here] < 0:
            touched[n_touched] = here
            n_touched += 1
            best[here] = row
        elif _is_better(row, best[here], score, start, duration, channel, decision):
            best[here] = row
    return rows[:count]


_BLOCK = 1024


@kernel(boolean(column(int32), column(int32), column(float64), int64, int64, float64, float64))
def rows_in_bounds(
    query: I32, document: I32, score: F64, last_query: int, last_document: int, lowest: float, highest: float
) -> bool:
    """Return whether queries ascend within 0 .. `last_query`, documents are -1 .. `last_document`, scores in range.

    NaN is in no range. All columns that are not empty have the same length. They exceed the cache, so all of them are
    checked in one pass, block by block. The loops over a block are vectorised by the compiler.
    """
    if len(query) > 0 and not (query[0] >= 0 and query[-1] <= last_query):
        return False
    n_documents = np.uint32(last_document + 1)
    n_rows = max(len(query), len(document), len(score))
    for first in range(0, n_rows, _BLOCK):
        wrong = 0
        queries, before = query[first + 1 : first + 1 + _BLOCK], query[first : first + _BLOCK]
        for row in range(len(queries)):
            wrong += queries[row] < before[row]
        documents = document[first : first + _BLOCK]
        for row in range(len(documents)):
            wrong += bool(np.uint32(documents[row] + 1) > n_documents)
        scores = score[first : first + _BLOCK]
        for row in range(len(scores)):
            wrong += not ((scores[row] >= lowest) & (scores[row] <= highest))
        if wrong > 0:
            return False
    return True


@kernel(boolean(column(int32), column(int32), int64))
def pairs_ascend(query: I32, place: I32, n_places: int) -> bool:
    """Return whether the pairs (query, place) of rows ascend strictly, and places are 0 .. n_places - 1."""
    if len(query) > 0 and not 0 <= place[0] < n_places:
        return False
    for first in range(1, len(query), _BLOCK):
        end = min(first + _BLOCK, len(query))
        queries, before = query[first:end], query[first - 1 : end - 1]
        places, place_before = place[first:end], place[first - 1 : end - 1]
        wrong = 0
        for row in range(len(queries)):
            more = (queries[row] > before[row]) | ((queries[row] == before[row]) & (places[row] > place_before[row]))
            wrong += (not more) | (places[row] < 0) | (places[row] >= n_places)
        if wrong > 0:
            return False
    return True


_TARGETS = several(int64[::1], int32[::1])


@kernel(
    _TARGETS(column(int32), column(int32), column(int64), column(int64), int64),
    _TARGETS(column(int32), column(int64), column(int64), column(int64), int64),
)
def target_rows(
    query: I32, place: I32 | I64, target_of_query: I64, target_place: I64, n_places: int
) -> tuple[I64, I32]:
    """Return the rows that are targets, ascending, and the number of the target of each.

    Rows are clustered by query, and no (query, place) appears twice. Places are 0 .. n_places - 1. The targets of a
    query have the numbers target_of_query[query] .. target_of_query[query + 1].
    """
    rows = np.empty(len(target_place), np.int64)
    numbers = np.empty(len(target_place), np.int32)
    number_of_place = np.full(n_places, -1, np.int32)
    current, begin, end, count = np.int64(-1), np.int64(0), np.int64(0), 0
    for row in range(len(query)):
        if query[row] != current:
            for past in range(begin, end):
                number_of_place[target_place[past]] = -1
            current = np.int64(query[row])
            begin, end = target_of_query[current], target_of_query[current + 1]
            for coming in range(begin, end):
                number_of_place[target_place[coming]] = coming
        number = number_of_place[np.uint64(place[row])]
        if number >= 0:
            rows[count] = row
            numbers[count] = number
            count += 1
    return rows[:count].copy(), numbers[:count].copy()


@kernel(int64[::1](column(int32), column(int16)))
def stretch_begins(query: I32, group: I16) -> I64:
    """Return the rows where stretches begin, int64, ascending. If `group` is empty, all rows are in one group.

    The changes of a block are counted first, in loops that the compiler vectorises, because most blocks have none.
    """
    begins = np.empty(len(query), np.int64)
    found = 0
    if len(query) > 0:
        begins[0] = 0
        found = 1
    for first in range(1, len(query), _BLOCK):
        end = min(first + _BLOCK, len(query))
        queries, before = query[first:end], query[first - 1 : end - 1]
        changes = 0
        for row in range(len(queries)):
            changes += queries[row] != before[row]
        groups, group_before = group[first:end], group[first - 1 : end - 1]
        for row in range(len(groups)):
            changes += groups[row] != group_before[row]
        if changes == 0:
            continue
        for row in range(len(queries)):
            if queries[row] != before[row] or (len(groups) > 0 and groups[row] != group_before[row]):
                begins[found] = first + row
                found += 1
    return begins[:found].copy()


@kernel(
    several(float64, float64)(column(int64), column(float64), column(int32), column(boolean), int64, float64),
    error_model="numpy",
)
def best_threshold(
    order: I64, score: F64, query: I32, target: Bool, n_queries: int, beta: float
) -> tuple[float, float]:
    """Return the highest TWV and the highest score that is rejected there; of equal values the lowest threshold.

    `order` lists the trials by ascending score. The value at which everything is accepted is returned only if no other
    value exceeds 1 - beta.
    """
    counts = np.zeros((2, n_queries))
    for at in order:
        counts[int64(target[at]), query[at]] += 1.0
    shares = 1.0 / counts / n_queries
    p_miss, p_fa, rejected = 0.0, 1.0, -np.inf
    highest, value, threshold = 1.0 - beta, 1.0 - (0.0 + beta * 1.0), -np.inf
    for place in range(len(order)):
        at = order[place]
        if target[at]:
            p_miss += shares[1, query[at]]
        else:
            p_fa -= shares[0, query[at]]
        rejected = score[at]
        if place + 1 < len(order) and score[order[place + 1]] == rejected:
            continue
        here = 1.0 - (p_miss + beta * p_fa)
        if here > highest:
            highest, value, threshold = here, here, rejected
        elif rejected == -np.inf:
            value = here
    return value, threshold


@kernel(several(int64[::1], float64[::1])(column(boolean)), error_model="numpy")
def pooled_shares(target: Bool) -> tuple[I64, F64]:
    """Return the begin and the share of targets of each block after pooling adjacent violators, trial by trial.

    A block is joined to the previous one unless its share is higher. The joined share is, in floating point, that of
    the previous block plus the difference times the fraction of trials that are in the later block.
    """
    share = np.empty(len(target))
    begin = np.empty(len(target), np.int64)
    last = -1
    for row in range(len(target)):
        last += 1
        share[last], begin[last] = float64(target[row]), row
        while last > 0 and share[last - 1] >= share[last]:
            upper = float64(row + 1 - begin[last]) / float64(row + 1 - begin[last - 1])
            share[last - 1] += upper * (share[last] - share[last - 1])
            last -= 1
    return begin[: last + 1].copy(), share[: last + 1].copy()


@kernel(float64(column(float64), column(boolean), float64), error_model="numpy")
def summed_cost(llr: F64, target: Bool, prior: float) -> float:
    """Return the cross entropy of log-likelihood ratios in nats, summed in order; log(1 + e) is computed literally."""
    n_target = 0
    for row in range(len(target)):
        n_target += target[row]
    of_target = prior / float64(n_target)
    of_nontarget = (1.0 - prior) / float64(len(target) - n_target)
    prior_log_odds = math.log(prior / (1.0 - prior))
    total = 0.0
    for row in range(len(llr)):
        odds = llr[row] + prior_log_odds
        loss, weight = odds, of_nontarget
        if target[row]:
            loss, weight = -odds, of_target
        e = math.exp(loss)
        total += weight * (loss if 1.0 + e == e else math.log(1.0 + e))
    return total
