"""GAP by its definition, onset by onset: what fast kernels are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from swsdask.model.ranked_measures import Penalty


def value(penalty: Penalty, distance: float) -> float:
    """What a penalty function gives at a signed distance."""
    points = list(zip(penalty.at.tolist(), penalty.value.tolist(), strict=True))
    if not points[0][0] <= distance <= points[-1][0]:
        return 0.0
    if penalty.sigma:
        return math.exp(-(distance**2) / (2 * penalty.sigma**2))
    for (low, at_low), (high, at_high) in pairwise(points):
        if low <= distance <= high:
            share = (distance - low) / (high - low)
            return at_low * (1 - share) + at_high * share
    raise AssertionError


def earnings(points: Sequence[int], onsets: Sequence[int], penalty: Penalty) -> list[float]:
    """R_k of the points of one document, in rank order."""
    unused = list(onsets)
    earned = []
    for point in points:
        nearest = min(
            unused,
            key=lambda onset: (abs(point - onset), -round(value(penalty, point - onset), 12), onset),
            default=None,
        )
        earned.append(0.0 if nearest is None else value(penalty, point - nearest))
        if nearest is not None and earned[-1] > 0:
            unused.remove(nearest)
    return earned


def gap_of(earned: Sequence[float], n_onsets: int) -> float:
    """GAP of R_1, R_2, ..."""
    return sum(sum(earned[:k]) / k for k in range(1, len(earned) + 1) if earned[k - 1] != 0) / n_onsets


def gap(points: Sequence[int], onsets: Sequence[int], penalty: Penalty) -> float:
    """GAP of ranked points of one document."""
    return gap_of(earnings(points, onsets, penalty), len(onsets))
