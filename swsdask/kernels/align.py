"""Alignment of detections with occurrences, component by component of the admissibility graph.

Detections of a (query, document, channel) are visited in the order of time; of detections at the same time, better ones
come first. Detections that are near no occurrence are skipped. The weight of a pair is an integer, so that sums and
ties are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int8, int32, int64

from swsdask.kernels.assignment import assign, settle
from swsdask.kernels.compilation import NOTHING_NEW, column, kernel, part, record, several
from swsdask.kernels.rows import ascending_order, first_above, first_not_below
from swsdask.model.trials import F64, I8, I32, I64, Bool
from swsdask.model.units import INFINITE

_PAIR = 3.0
"""A mapped pair counts 1 + congruence, an unmapped detection or occurrence -1. So a pair adds 3 + congruence."""
_SCORE, _TIME = 1e-6, 1e-8
_LEAST_SPAN = 1e-5
_LEAST_TICKS = 0.1
_MOST = 1e12
"""The limit of score congruence in either direction. Of a finite score it is at most 1 unless the declared range of
scores is wrong."""
_BITS = 61
_TICKS_PER_SECOND = 10_000
_ABOVE = 2**63 - 1


@part()
def score_congruence(score: float, lowest: float, highest: float) -> float:
    """Return (score - lowest) / max(highest - lowest, 1e-5), computed on halves so that no difference overflows.

    An infinite score lies one range beyond the finite ones: 2 or -1.
    """
    if abs(score) >= INFINITE:
        return 2.0 if score > 0.0 else -1.0
    congruence = (0.5 * score - 0.5 * lowest) / max(0.5 * highest - 0.5 * lowest, 0.5 * _LEAST_SPAN)
    return min(max(congruence, -_MOST), _MOST)


@part()
def time_congruence(start: int, end: int, occurrence_start: int, occurrence_end: int) -> float:
    """Return the overlap (negative: the gap) divided by the occurrence's duration, at least 1e-5 s; times are ticks."""
    overlap = min(end, occurrence_end) - max(start, occurrence_start)
    return overlap / max(np.float64(occurrence_end - occurrence_start), _LEAST_TICKS)


@part()
def weight_scale(greatest_score_congruence: float) -> float:
    """Return the power of two with which every weight of a component is less than 2^61.

    It is 2^59 unless the declared range of scores is wrong.
    """
    bound = _PAIR + _SCORE * max(greatest_score_congruence, 1.0) + _TIME
    return math.ldexp(1.0, _BITS - math.frexp(bound)[1])


@part()
def pair_weight(score_part: float, time_part: float, scale: float) -> int:
    """Return 3 + 1e-6 score congruence + 1e-8 time congruence, in units of 1 / `scale`; 0 if that is not above 0.

    Each part is rounded separately, so that alignments that exchange detections with the same times have equal sums.
    """
    by_score, by_time = _SCORE * score_part, _TIME * time_part
    if by_score + by_time <= -_PAIR:
        return 0
    return int(np.int64(_PAIR * scale) + np.int64(np.rint(by_score * scale)) + np.int64(np.rint(by_time * scale)))


class Candidates(NamedTuple):
    """Detections near occurrences, sorted by (group, `mid_point`, preference). Times are ticks."""

    middle: F64
    start: I64
    end: I64
    score: F64


class Occurrences(NamedTuple):
    """Occurrences sorted by (group, start, end).

    `opens` and `closes` are start - tolerance and end + tolerance, in the unit of `mid_point`.
    """

    opens: F64
    closes: F64
    start: I64
    end: I64


class Goal(NamedTuple):
    """The objective to maximise, and the range of scores that scales score congruence."""

    by_score: bool
    lowest: float
    highest: float


_CANDIDATES = record(Candidates, float64[::1], int64[::1], int64[::1], float64[::1])
_OCCURRENCES = record(Occurrences, float64[::1], float64[::1], int64[::1], int64[::1])


@part(**NOTHING_NEW)
def _scale(candidates: Candidates, low: int, high: int, goal: Goal) -> float:
    """Return the scale of the weights of a component that contains the detections low .. high."""
    greatest = 0.0
    for score in candidates.score[low:high]:
        greatest = max(greatest, score_congruence(score, goal.lowest, goal.highest))
    return weight_scale(greatest)


@part(**NOTHING_NEW)
def _weight(
    candidates: Candidates, detection: int, occurrences: Occurrences, occurrence: int, goal: Goal, scale: float
) -> int:
    """Return the weight of mapping a detection to an occurrence under the objective of NIST's tools."""
    return pair_weight(
        score_congruence(candidates.score[detection], goal.lowest, goal.highest),
        time_congruence(
            candidates.start[detection],
            candidates.end[detection],
            occurrences.start[occurrence],
            occurrences.end[occurrence],
        ),
        scale,
    )


@part(**NOTHING_NEW)
def _align_one_occurrence(
    candidates: Candidates,
    low: int,
    high: int,
    occurrences: Occurrences,
    occurrence: int,
    goal: Goal,
    detection_of: I64,
) -> None:
    """Map an occurrence to the best of the detections low .. high; of equal ones, to the first."""
    if goal.by_score:
        highest = low
        for detection in range(low + 1, high):
            if candidates.score[detection] > candidates.score[highest]:
                highest = detection
        detection_of[occurrence] = highest
        return
    scale = _scale(candidates, low, high, goal)
    best = 0
    for detection in range(low, high):
        weight = _weight(candidates, detection, occurrences, occurrence, goal, scale)
        if weight > best:
            best = weight
            detection_of[occurrence] = detection


@part(**NOTHING_NEW)
def _align_one_detection(
    candidates: Candidates, detection: int, occurrences: Occurrences, members: I64, goal: Goal, detection_of: I64
) -> None:
    """Map a detection to the best of the occurrences `members`; of equal ones, to the first."""
    chosen = members[0]
    best = 0
    if not goal.by_score:
        scale = _scale(candidates, detection, detection + 1, goal)
        for occurrence in members:
            weight = _weight(candidates, detection, occurrences, occurrence, goal, scale)
            if weight > best:
                best, chosen = weight, occurrence
    if goal.by_score or best > 0:
        detection_of[chosen] = detection


@part()
def _rank_weights(scores: F64, n_occurrences: int) -> I64:
    """Return weights that first maximise the number of pairs and then prefer high scores.

    Only the order of scores matters. The sets of detections that can be mapped are the independent sets of a matroid,
    so the greatest sum of ranks and the greatest sum of scores have the same solutions.
    """
    keys = np.empty(len(scores), np.int64)
    for i in range(len(scores)):
        bits = np.float64(scores[i] + 0.0).view(np.int64)  # 0.0 and -0.0 are the same
        keys[i] = bits ^ ((bits >> 63) & _ABOVE)
    order = ascending_order(keys)
    weights = np.empty(len(scores), np.int64)
    # The lowest weight exceeds any sum of the n_occurrences ranks, which are less than len(scores): pairs count first.
    weight, before = n_occurrences * len(scores) + 1, 0
    for i in range(len(scores)):
        key = keys[order[i]]
        weight += i > 0 and key > before
        weights[order[i]], before = weight, key
    return weights


@part()
def _worth_keeping(weights: I64, n_occurrences: int) -> Bool:
    """Select the detections of an occurrence that its component may need: the best n_occurrences with weights > 0.

    If an optimal alignment used another detection, one of these would be free, and better or equally good and earlier.
    """
    threshold = np.int64(1)
    if len(weights) > n_occurrences:
        place = len(weights) - n_occurrences
        threshold = max(threshold, weights[ascending_order(weights)[place]])
    kept = np.empty(len(weights), np.bool_)
    room = n_occurrences
    for i in range(len(weights)):
        kept[i] = weights[i] > threshold
        room -= kept[i]
    for i in range(len(weights)):
        if room == 0:
            break
        if weights[i] == threshold:
            kept[i] = True
            room -= 1
    return kept


@part()
def _align_several(
    candidates: Candidates,
    occurrences: Occurrences,
    members: I64,
    first: I64,
    last: I64,
    goal: Goal,
    detection_of: I64,
) -> None:
    """Align several occurrences and detections by exact assignment; rows are occurrences, columns detections."""
    low, high = first[0], last[0]
    n_rows, n_edges = len(members), 0
    for row in range(n_rows):
        high = max(high, last[row])
        n_edges += min(last[row] - first[row], n_rows)
    first_edge = np.zeros(n_rows + 1, np.int64)
    edge_column = np.empty(n_edges, np.int32)
    edge_weight = np.empty(len(edge_column), np.int64)
    by_score = goal.by_score
    weight_of = _rank_weights(candidates.score[low:high], n_rows) if by_score else np.empty(high - low, np.int64)
    scale = _scale(candidates, low, high, goal)
    for row in range(n_rows):
        begin, end = first[row] - low, last[row] - low
        if not by_score:
            for target in range(begin, end):
                weight_of[target] = _weight(candidates, low + target, occurrences, members[row], goal, scale)
        kept = _worth_keeping(weight_of[begin:end], n_rows)
        edge = first_edge[row]
        for target in range(begin, end):
            if kept[target - begin]:
                edge_column[edge] = target
                edge_weight[edge] = weight_of[target]
                edge += 1
        first_edge[row + 1] = edge
    column_of, row_of, row_price, column_price = assign(first_edge, edge_column, edge_weight, high - low)
    settle(first_edge, edge_column, edge_weight, column_of, row_of, row_price, column_price)
    for row in range(n_rows):
        if column_of[row] >= 0:
            detection_of[members[row]] = low + column_of[row]


@kernel(int64[::1](_CANDIDATES, int64[::1], _OCCURRENCES, int64[::1], float64[::1], float64[::1], boolean))
def align(
    candidates: Candidates,
    candidate_of_group: I64,
    occurrences: Occurrences,
    occurrence_of_group: I64,
    lowest: F64,
    highest: F64,
    by_score: bool,
) -> I64:
    """Return the candidate that each occurrence is mapped to, or -1; int64 [n_occurrences].

    `candidate_of_group` and `occurrence_of_group`, int64 [n_groups + 1], are where each group begins. `lowest` and
    `highest` are the range of scores of each group. With `by_score`, the number of pairs is maximised, and then the sum
    of scores. Otherwise the sum of 3 + 1e-6 score congruence + 1e-8 time congruence is maximised. Among equal optima,
    `kernels.assignment.settle` chooses, with detections in the order of `candidates`.
    """
    detection_of = np.empty(len(occurrences.start), np.int64)
    detection_of[:] = -1
    members = np.empty(len(occurrences.start), np.int64)
    first = np.empty(len(occurrences.start), np.int64)
    last = np.empty(len(occurrences.start), np.int64)
    for group in range(len(candidate_of_group) - 1):
        low, high = candidate_of_group[group], candidate_of_group[group + 1]
        if low == high:
            continue
        middle = candidates.middle[low:high]
        count = 0
        for occurrence in range(occurrence_of_group[group], occurrence_of_group[group + 1]):
            members[count] = occurrence
            first[count] = low + first_not_below(middle, occurrences.opens[occurrence])
            last[count] = low + first_above(middle, occurrences.closes[occurrence])
            count += first[count] < last[count]
        goal = Goal(by_score, lowest[group], highest[group])
        begin = 0
        # `first` ascends, so a component ends where the next occurrence shares no detection with those before it.
        while begin < count:
            end, reach = begin + 1, last[begin]
            while end < count and first[end] < reach:
                reach = max(reach, last[end])
                end += 1
            if end - begin == 1:
                _align_one_occurrence(candidates, first[begin], reach, occurrences, members[begin], goal, detection_of)
            elif reach - first[begin] == 1:
                _align_one_detection(candidates, first[begin], occurrences, members[begin:end], goal, detection_of)
            else:
                _align_several(
                    candidates, occurrences, members[begin:end], first[begin:end], last[begin:end], goal, detection_of
                )
            begin = end
    return detection_of


@part()
def mid_point(start: int, duration: int, in_seconds: bool) -> float:
    """Return the mid-point of times in ticks: exact in half ticks, or in seconds with the rounding of NIST's tools."""
    if in_seconds:
        return start / _TICKS_PER_SECOND + duration / _TICKS_PER_SECOND / 2.0
    return np.float64(2 * np.int64(start) + duration)


_NEAR = several(int64[::1], int32[::1], float64[::1], float64[::1])(
    column(int32),
    column(int32),
    column(int8),
    column(int32),
    column(int32),
    column(float64),
    column(int8),
    column(int64),
    column(int32),
    column(int8),
    column(int64),
    column(float64),
    column(float64),
    int64,
    boolean,
)


_NO_CODE = 1 << 40
"""A value that a column of codes cannot contain."""


@kernel(_NEAR)
def near_occurrences(
    query: I32,
    document: I32,
    channel: I8,
    start: I32,
    duration: I32,
    score: F64,
    evaluated: I8,
    group_of_query: I64,
    group_document: I32,
    group_channel: I8,
    occurrence_of_group: I64,
    opens: F64,
    reach: F64,
    n_documents: int,
    in_seconds: bool,
) -> tuple[I64, I32, F64, F64]:
    """Semi-join detections with occurrences in one pass, for any order of rows.

    A group is a (query, document, channel) with occurrences; the groups are numbered in that order. `query`,
    `document`, `channel`, `start`, `duration` and `score` are columns of the detections. Rows with 0 in `evaluated` are
    skipped; if `evaluated` is empty, all rows count. `group_of_query` int64 [n_queries + 1] and `occurrence_of_group`
    int64 [n_groups + 1] are where the groups of each query and the occurrences of each group begin. `opens` is the
    start - tolerance of every occurrence. `reach` is the greatest end + tolerance of an occurrence and those before it
    in its group. Both are in the unit of `mid_point` with `in_seconds`.

    Returns the rows whose mid-point lies within the tolerance of an occurrence, in the order of rows, and their groups.
    Also returns the lowest and the highest finite score of all detections of each group (inf and -inf if there are
    none). Raises `ValueError` for a query or a document that does not exist, except the document -1 (unknown), and for
    a NaN score in a group. So rows need not be checked before.
    """
    n_groups = len(group_document)
    lowest, highest = np.empty(n_groups), np.empty(n_groups)
    lowest[:], highest[:] = np.inf, -np.inf
    near = np.empty(len(query), np.int64)
    near_group = np.empty(len(query), np.int32)
    group_of_document = np.empty(n_documents + 1, np.int32)
    group_of_document[:] = -1
    n_queries = len(group_of_query) - 1
    selective = len(evaluated) > 0
    current, begin, end = np.int64(_NO_CODE), np.int64(0), np.int64(0)
    count = 0
    for row in range(len(query)):
        if query[row] != current:
            for past in range(begin, end):
                group_of_document[group_document[past] + 1] = -1
            current = np.int64(query[row])
            if not 0 <= current < n_queries:
                raise ValueError("there is no such query")
            begin, end = group_of_query[current], group_of_query[current + 1]
            # Groups are assigned from the last to the first, so that the first group of a document remains.
            for coming in range(end - 1, begin - 1, -1):
                group_of_document[group_document[coming] + 1] = coming
        place = np.uint32(document[row] + 1)
        if place > n_documents:
            raise ValueError("there is no such document")
        group = np.int64(group_of_document[place])
        if group < 0:
            continue
        while group < end and group_document[group] == document[row] and group_channel[group] < channel[row]:
            group += 1
        if group == end or group_document[group] != document[row] or group_channel[group] != channel[row]:
            continue
        if selective and evaluated[row] == 0:
            continue
        if abs(score[row]) < INFINITE:
            lowest[group] = min(lowest[group], score[row])
            highest[group] = max(highest[group], score[row])
        elif math.isnan(score[row]):
            raise ValueError("a score is NaN")
        middle = mid_point(start[row], duration[row], in_seconds)
        low, high = occurrence_of_group[group], occurrence_of_group[group + 1]
        while high - low > 1:
            half = (low + high) // 2
            if opens[half] <= middle:
                low = half
            else:
                high = half
        if opens[low] <= middle <= reach[low]:
            near[count] = row
            near_group[count] = group
            count += 1
    return near[:count], near_group[:count], lowest, highest


_SHORT = 24
"""Stretches of at most this length are sorted by insertion, because most rows are nearly sorted."""


@part()
def _comes_before(
    row: int, middle: float, other: int, other_middle: float, start: I32, score: F64, decision: I8
) -> bool:
    """Return whether a detection comes before another: by mid-point, start, descending score, YES first, row."""
    if middle != other_middle:
        return middle < other_middle
    if start[row] != start[other]:
        return bool(start[row] < start[other])
    if score[row] != score[other]:
        return bool(score[row] > score[other])
    if decision[row] != decision[other]:
        return bool(decision[row] > decision[other])
    return row < other


@part()
def _insertion_sort(rows: I64, middles: F64, low: int, high: int, start: I32, score: F64, decision: I8) -> None:
    for i in range(low + 1, high):
        row, middle = rows[i], middles[i]
        j = i
        while j > low and _comes_before(row, middle, rows[j - 1], middles[j - 1], start, score, decision):
            rows[j], middles[j] = rows[j - 1], middles[j - 1]
            j -= 1
        rows[j], middles[j] = row, middle


@part()
def _merge_sort(rows: I64, middles: F64, low: int, high: int, start: I32, score: F64, decision: I8) -> None:
    for begin in range(low, high, _SHORT):
        _insertion_sort(rows, middles, begin, min(begin + _SHORT, high), start, score, decision)
    width = _SHORT
    left_rows = np.empty(high - low, np.int64)
    left_middles = np.empty(high - low)
    while width < high - low:
        for begin in range(low, high - width, 2 * width):
            half, end = begin + width, min(begin + 2 * width, high)
            for i in range(width):  # a slice would compile numba's error messages, for three seconds
                left_rows[i], left_middles[i] = rows[begin + i], middles[begin + i]
            i, j, k = 0, half, begin
            while i < width and j < end:
                if _comes_before(rows[j], middles[j], left_rows[i], left_middles[i], start, score, decision):
                    rows[k], middles[k] = rows[j], middles[j]
                    j += 1
                else:
                    rows[k], middles[k] = left_rows[i], left_middles[i]
                    i += 1
                k += 1
            while i < width:
                rows[k], middles[k] = left_rows[i], left_middles[i]
                i += 1
                k += 1
        width *= 2


@kernel(
    several(int64[::1], int64[::1], float64[::1])(
        column(int64), column(int32), int64, column(int32), column(int32), column(float64), column(int8), boolean
    )
)
def in_time_order(
    near: I64,
    near_group: I32,
    n_groups: int,
    start: I32,
    duration: I32,
    score: F64,
    decision: I8,
    in_seconds: bool,
) -> tuple[I64, I64, F64]:
    """Sort detections by group, and within a group by mid-point, start, descending score, YES first, row.

    `near` are rows of `start`, `duration`, `score` and `decision`; `near_group` is the group of each, in any order.
    Returns where each group begins (int64 [n_groups + 1]), the rows in sorted order, and their `mid_point`s.
    """
    begins = np.zeros(n_groups + 1, np.int64)
    for group in near_group:
        begins[group + 1] += 1
    for group in range(n_groups):
        begins[group + 1] += begins[group]
    rows = np.empty(len(near), np.int64)
    middles = np.empty(len(near))
    filled = begins[:-1].copy()
    for i in range(len(near)):
        place = filled[near_group[i]]
        filled[near_group[i]] += 1
        rows[place] = near[i]
        middles[place] = mid_point(start[near[i]], duration[near[i]], in_seconds)
    for group in range(n_groups):
        low, high = begins[group], begins[group + 1]
        if high - low <= _SHORT:
            _insertion_sort(rows, middles, low, high, start, score, decision)
        else:
            _merge_sort(rows, middles, low, high, start, score, decision)
    return begins, rows, middles
