"""A score's slot, against a binary search, on friendly and hostile rungs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swsdask.kernels.ladder import count_slots
from swsdask.model.trials import F64

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def check(rungs: F64, scores: F64) -> None:
    rungs = np.append(np.unique(rungs + 0.0), np.inf)
    expected = np.searchsorted(rungs, scores, side="right")
    counts, highest = np.zeros((1, len(rungs)), np.int32), np.full((1, len(rungs)), -np.inf)
    line, bounds = np.zeros(1, np.int32), np.array([0, len(scores)])
    count_slots(bounds, line, line, scores, rungs, counts, highest)
    np.testing.assert_array_equal(counts[0], np.bincount(expected, minlength=len(rungs)))
    peaks = np.full(len(rungs), -np.inf)
    np.maximum.at(peaks, expected, scores)
    np.testing.assert_array_equal(highest[0], peaks)


@given(st.lists(FLOATS, max_size=60), st.lists(FLOATS, max_size=60))
@example([-1.7976931348623157e308, 1.7976931348623157e308, 0.0, 5e-324], [-5e-324, 1e308, -0.0])
@example([5e-324, 1e-323], [0.0, 5e-324, 1e-323, 1.5e-323])
def test_any_rungs(rungs: list[float], scores: list[float]) -> None:
    for score in rungs + scores:
        check(np.array(rungs), np.array([score]))
    check(np.array(rungs), np.array(rungs + scores))


@pytest.mark.parametrize(
    "shape",
    [
        lambda x: x,
        lambda x: np.exp(x),
        lambda x: np.exp(40 * x),
        lambda x: -np.exp(40 * x),
        lambda x: 1 / (1 + np.exp(-5 * x)),
        lambda x: 1e6 + 1e-6 * x,
        lambda x: np.round(x, 1),
        lambda x: np.zeros_like(x),
        lambda x: np.where(np.arange(len(x)) % 97 == 0, 1e300 * x, x),
        lambda x: x**9,
    ],
)
def test_distributions(shape) -> None:
    chance = np.random.default_rng(7)
    rungs, scores = shape(chance.normal(1, 1.5, 700)), shape(chance.normal(-1, 1.5, 3000))
    near = np.nextafter(rungs, np.inf), np.nextafter(rungs, -np.inf)
    check(rungs, np.concatenate([scores, rungs, *near]))
    check(rungs[:9], scores)
