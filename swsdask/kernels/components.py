"""Alignment of detections with occurrences, component by component of the admissibility graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, njit

from swsdask.kernels.assignment import assign
from swsdask.kernels.congruence import pair_weight, score_congruence, time_congruence, weight_scale
from swsdask.kernels.signatures import record
from swsdask.kernels.ties import settle
from swsdask.model.trials import F64, I64, Bool


class Candidates(NamedTuple):
    """Detections near occurrences, by (group, mid-point, preference); times are ticks, `middle` twice the mid-point."""

    middle: I64
    start: I64
    end: I64
    score: F64


class Occurrences(NamedTuple):
    """Occurrences by (group, start, end); `opens`, `closes`: twice (start - tolerance) and twice (end + tolerance)."""

    opens: I64
    closes: I64
    start: I64
    end: I64


class Goal(NamedTuple):
    """What is maximised: the objective, and the range of scores that score congruence is scaled by."""

    by_score: bool
    lowest: float
    highest: float


_CANDIDATES = record(Candidates, int64[::1], int64[::1], int64[::1], float64[::1])
_OCCURRENCES = record(Occurrences, int64[::1], int64[::1], int64[::1], int64[::1])
_GOAL = record(Goal, boolean, float64, float64)


@njit()
def _scale(candidates: Candidates, low: int, high: int, goal: Goal) -> float:
    """The unit of the weights of a component that holds the detections low .. high."""
    return weight_scale(score_congruence(candidates.score[low:high].max(), goal.lowest, goal.highest))


@njit()
def _weight(
    candidates: Candidates, detection: int, occurrences: Occurrences, occurrence: int, goal: Goal, scale: float
) -> int:
    """What mapping a detection to an occurrence is worth under the objective of NIST's tools."""
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


@njit()
def _align_one_occurrence(
    candidates: Candidates,
    low: int,
    high: int,
    occurrences: Occurrences,
    occurrence: int,
    goal: Goal,
    detection_of: I64,
) -> None:
    """Map an occurrence to the best of the detections low .. high, the first of equals."""
    if goal.by_score:
        detection_of[occurrence] = low + np.argmax(candidates.score[low:high])
        return
    scale = _scale(candidates, low, high, goal)
    best = 0
    for detection in range(low, high):
        weight = _weight(candidates, detection, occurrences, occurrence, goal, scale)
        if weight > best:
            best = weight
            detection_of[occurrence] = detection


@njit()
def _align_one_detection(
    candidates: Candidates, detection: int, occurrences: Occurrences, members: I64, goal: Goal, detection_of: I64
) -> None:
    """Map a detection to the best of the occurrences `members`, the first of equals."""
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


@njit()
def _rank_weights(scores: F64, n_occurrences: int) -> I64:
    """Weights that count pairs first and then prefer high scores: all that matters of scores is their order.

    The sets of detections that can be mapped are the independent sets of a matroid, so the greatest sum of ranks and
    the greatest sum of scores have the same solutions.
    """
    order = np.argsort(scores)
    ranks = np.zeros(len(scores), np.int64)
    for i in range(1, len(scores)):
        ranks[order[i]] = ranks[order[i - 1]] + (scores[order[i]] > scores[order[i - 1]])
    return ranks + (n_occurrences * len(scores) + 1)


@njit()
def _worth_keeping(weights: I64, n_occurrences: int) -> Bool:
    """Which detections of an occurrence its component can need: the best n_occurrences of positive weight.

    If an optimal alignment used a worse one, one of these would be free and better, or as good and earlier.
    """
    threshold = np.int64(1)
    if len(weights) > n_occurrences:
        place = len(weights) - n_occurrences
        threshold = max(threshold, np.partition(weights, place)[place])
    kept = weights > threshold
    room = n_occurrences - kept.sum()
    for i in range(len(weights)):
        if room == 0:
            break
        if weights[i] == threshold:
            kept[i] = True
            room -= 1
    return kept


@njit()
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
    low, high = first[0], last.max()
    n_rows = len(members)
    first_edge = np.zeros(n_rows + 1, np.int64)
    edge_column = np.empty(np.minimum(last - first, n_rows).sum(), np.int32)
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


@njit(
    int64[::1](_CANDIDATES, int64[::1], _OCCURRENCES, int64[::1], float64[::1], float64[::1], boolean),
    cache=True,
    nogil=True,
)
def align(
    candidates: Candidates,
    candidate_of_group: I64,
    occurrences: Occurrences,
    occurrence_of_group: I64,
    lowest: F64,
    highest: F64,
    by_score: bool,
) -> I64:
    """The candidate that each occurrence is mapped to, or -1; int64 [n_occurrences].

    `candidate_of_group`, `occurrence_of_group` (int64 [n_groups + 1]) say where each group begins; `lowest`, `highest`
    are the range of scores of each group. With `by_score` as many pairs as possible are mapped, and of these ways the
    one with the greatest sum of scores is taken; else the sum of 3 + 1e-6 score congruence + 1e-8 time congruence is
    the greatest. Equal optima are settled as `ties` tells, detections in their order here.
    """
    detection_of = np.full(len(occurrences.start), -1, np.int64)
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
            first[count] = low + np.searchsorted(middle, occurrences.opens[occurrence], "left")
            last[count] = low + np.searchsorted(middle, occurrences.closes[occurrence], "right")
            count += first[count] < last[count]
        goal = Goal(by_score, lowest[group], highest[group])
        begin = 0
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
