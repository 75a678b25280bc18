"""`[evaluation.gap]`: penalty functions in seconds, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from swsdask.model.errors import SettingsError
from swsdask.model.ranked_measures import DEFAULT_REPLAY, ReplayRule
from tests.literal_gap import value
from tests.worlds import settings


def rule(**gap: Any) -> ReplayRule:
    return settings(gap=gap).gap.rule()


def test_the_default_is_the_sources_best_overall_choice() -> None:
    step, penalty = rule()
    assert step == DEFAULT_REPLAY.step == 1
    assert penalty.at.tolist() == DEFAULT_REPLAY.penalty.at.tolist() == [-1_050_000, 0, 1_050_000]
    assert penalty.value.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("gap", "at"),
    [
        ({"width_s": 60.0}, {-60: 0, -30: 0.5, 0: 1, 15: 0.75, 60: 0}),
        ({"penalty": "rectangular", "width_s": 60.0}, {-61: 0, -60: 1, 60: 1, 61: 0}),
        ({"penalty": "asymmetric", "early_s": 100, "late_s": 10}, {-100: 0, -50: 0.5, 5: 0.5, 10: 0}),
        ({"penalty": "gaussian", "sigma_s": 75.0}, {-151: 0, -150: 0.1353352832366127, 0: 1, 151: 0}),
        ({"penalty": "table", "table": [[-20, 0.5], [0, 1.0], [5, 0.0]]}, {-21: 0, -20: 0.5, -10: 0.75, 4: 0.2, 6: 0}),
    ],
)
def test_penalties(gap: dict[str, Any], at: dict[float, float]) -> None:
    penalty = rule(**gap).penalty
    assert {d: value(penalty, 10_000 * d) for d in at} == pytest.approx(at)


def test_granularity_is_in_ticks() -> None:
    assert rule(granularity_s=15.0).step == 150_000


@pytest.mark.parametrize(
    ("gap", "message"),
    [
        ({"penalty": "gaussian", "width_s": 3}, "width_s goes with penalty = triangular or rectangular"),
        ({"sigma_s": 3}, "sigma_s goes with penalty = gaussian"),
        ({"penalty": "table"}, "table needs two or more"),
        ({"penalty": "table", "table": [[0, 1], [0, 0]]}, "by ascending distance"),
        ({"penalty": "table", "table": [[0, 1], [1, 2]]}, "values from 0 to 1"),
        ({"width_s": 0}, "gap.width_s: Input should be greater than 0"),
        ({"widths": 0}, "Nearest valid key: width_s"),
        ({"penalty": "square"}, "gap.penalty"),
    ],
)
def test_what_is_refused(gap: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rule(**gap)


def test_a_granularity_finer_than_a_tick_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"gap.granularity_s: expected a multiple of 0\.0001 s"):
        rule(granularity_s=0.00015)
