from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.results import CURVES, SCORES
from swsdask.render import det
from swsdask.render.det import figures
from tests.results import table, three_systems

FRAME = det.frame_down_to(1.0)


def test_a_probability_is_at_its_normal_deviate() -> None:
    for axis in (FRAME.x, FRAME.y):
        ends = norm.ppf([axis.ticks[0], axis.ticks[-1]])
        for p in np.linspace(axis.ticks[0], axis.ticks[-1], 50).tolist():
            share = (norm.ppf(p) - ends[0]) / (ends[1] - ends[0])
            assert axis.position(p) == pytest.approx(axis.low + share * (axis.high - axis.low))


def test_the_frame_is_that_of_nist_with_room_for_what_is_better() -> None:
    assert (FRAME.x.ticks[0], FRAME.x.ticks[-1]) == (1e-6, 0.4)
    assert (FRAME.y.ticks[0], FRAME.y.ticks[-1]) == (0.05, 0.98)
    assert FRAME.y.position(0.98) < FRAME.y.position(0.05), "misses fall downwards"
    assert det.frame_down_to(0.03).y.ticks[0] == 0.02
    assert det.frame_down_to(0.0).y.ticks[0] == 0.001


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_points_outside_are_just_outside_or_at_the_edge(p: float) -> None:
    for axis in (FRAME.x, FRAME.y):
        low, high = sorted((axis.low, axis.high))
        position = axis.position(p)
        assert position < low or position > high
        assert math.isfinite(position)
        assert axis.clamped(p) in (pytest.approx(low), pytest.approx(high))


@st.composite
def curves(draw: st.DrawFn) -> tuple[list[float], list[float], list[float]]:
    n = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    p_fa = np.sort(10 ** rng.uniform(-8, 0, n)) * (rng.random() < 0.9)
    p_miss = np.sort(rng.beta(0.5, 0.5, n))[::-1]
    threshold = np.sort(rng.normal(size=n))[::-1]
    threshold[0] = math.inf
    return threshold.tolist(), p_fa.tolist(), p_miss.tolist()


def cells(p_fa: list[float], p_miss: list[float], n: int) -> list[tuple[int, int]]:
    """By the definition: which of n equal stretches of the deviates between the ends, or outside."""

    def parts(axis: det.Axis, rates: list[float]) -> list[int]:
        edges = norm.cdf(np.linspace(*norm.ppf([axis.ticks[0], axis.ticks[-1]]), n + 1)).tolist()
        return [sum(edge <= p for edge in edges) for p in rates]

    return list(zip(parts(FRAME.x, p_fa), parts(FRAME.y, p_miss), strict=True))


@given(curves(), st.integers(4, 80))
def test_a_thin_curve_keeps_its_ends_and_the_first_and_last_point_of_every_cell(
    columns: tuple[list[float], list[float], list[float]], limit: int
) -> None:
    points = list(zip(*columns, strict=True))
    thin = FRAME.curve(*columns, limit)
    kept = list(zip(thin.threshold, thin.p_fa, thin.p_miss, strict=True))
    n = limit // 4
    where = cells(columns[1], columns[2], n)
    expected = [
        point
        for i, point in enumerate(points)
        if i in (0, len(points) - 1) or where[i - 1] != where[i] or where[i + 1] != where[i]
    ]
    assert kept == expected
    assert len(kept) <= 2 * (2 * n + 3)
    assert thin.x.tolist() == pytest.approx([FRAME.x.position(p) for p in thin.p_fa], abs=0.0501)
    assert thin.y.tolist() == pytest.approx([FRAME.y.position(p) for p in thin.p_miss], abs=0.0501)


def test_a_curve_is_sorted_by_threshold_and_leaves_out_what_is_not_defined() -> None:
    curve = FRAME.curve([1.0, math.inf, 0.0, -1.0], [0.01, 0.0, 0.2, math.nan], [0.5, 1.0, 0.2, 0.1], 400)
    assert curve.threshold.tolist() == [math.inf, 1.0, 0.0]
    assert len(FRAME.curve([1.0], [math.nan], [0.5], 400).x) == 0
    assert len(FRAME.curve([], [], [], 400).x) == 0


def deviate_back(axis: det.Axis, position: float) -> float:
    return float(norm.cdf(norm.ppf(axis.ticks[0]) + (position - axis.low) / axis.scale))


@pytest.mark.parametrize("beta", [66.66, 999.9, 1.0])
@pytest.mark.parametrize("twv", [0.0, 0.3, 0.9])
def test_every_point_of_a_line_has_its_value(twv: float, beta: float) -> None:
    path = FRAME.line_of_equal_value(twv, beta)
    points = [tuple(map(float, point.split())) for point in path[1:].split("L")]
    assert len(points) > 10
    inside = 0
    for x, y in points:
        p_fa, p_miss = deviate_back(FRAME.x, x), deviate_back(FRAME.y, y)
        near = beta * p_fa * 0.004 + 0.002
        assert 1 - p_miss - beta * p_fa == pytest.approx(twv, abs=near)
        inside += FRAME.y.ticks[0] <= p_miss <= FRAME.y.ticks[-1]
    assert inside > 5
    assert all(before[0] <= after[0] for before, after in pairwise(points))


def test_a_line_that_lies_below_the_frame_is_not_drawn() -> None:
    assert FRAME.line_of_equal_value(0.999, 66.66) == ""


def test_ticks_are_labelled_in_per_cent() -> None:
    assert [det.percent(p) for p in (1e-6, 5e-4, 0.01, 0.05, 0.4)] == ["0.0001", "0.05", "1", "5", "40"]


def test_a_plot_holds_every_system_and_its_operating_points_where_they_belong() -> None:
    result = three_systems()
    found = leaderboard_of(result.table)
    plots = figures(result.curve_table, found)
    assert list(plots) == ["all", "oov=true", "oov=false"]
    frame = det.frame_down_to(
        min(
            found.value(condition, system, measure)
            for condition in found.conditions
            for system in found.systems
            for measure in ("p_miss", "mtwv_p_miss")
        )
    )
    for condition, (_, plot) in plots.items():
        assert plot["title"] == "averaged over queries, on NIST's axes"
        assert [system["name"] for system in plot["systems"]] == list(found.systems)
        assert plot["data"]["beta"] == pytest.approx(66.0)
        for system in plot["systems"]:
            for mark, x, y in (("actual", "p_fa", "p_miss"), ("best", "mtwv_p_fa", "mtwv_p_miss")):
                expected_x = frame.x.clamped(found.value(condition, system["name"], x))
                expected_y = frame.y.clamped(found.value(condition, system["name"], y))
                assert system[mark]["x"] == pytest.approx(expected_x, abs=0.06)
                assert system[mark]["y"] == pytest.approx(expected_y, abs=0.06)


def test_a_fitted_frame_has_the_ticks_around_the_points() -> None:
    fitted = FRAME.fitted(np.array([0.0, 3e-5, 0.003]), np.array([0.999, 0.5, 0.25]))
    assert (fitted.x.ticks[0], fitted.x.ticks[-1]) == (1e-5, 0.005)
    assert (fitted.y.ticks[0], fitted.y.ticks[-1]) == (0.2, 0.8)
    assert FRAME.fitted(np.array([]), np.array([])) == FRAME
    one = FRAME.fitted(np.array([0.4]), np.array([0.05]))
    assert (len(one.x.ticks), len(one.y.ticks)) == (4, 4)


def test_conditions_have_the_same_axes() -> None:
    result = three_systems()
    for each in zip(*figures(result.curve_table, leaderboard_of(result.table)).values(), strict=True):
        ticks = [[[tick["label"] for tick in plot[axis]] for axis in ("x_ticks", "y_ticks")] for plot in each]
        assert all(own == ticks[0] for own in ticks)


def test_the_pooled_curve_is_marked_by_pooled_rates() -> None:
    result = three_systems()
    curves = result.curve_table.cast(CURVES)
    pooled = curves.set_column(2, CURVES.field("curve"), pa.array(["det_pooled"] * curves.num_rows))
    rates = [("good", "all", None, "p_fa_pooled", 0.001), ("good", "all", None, "p_miss_pooled", 0.25)]
    (plot,) = figures(pooled, leaderboard_of(pa.concat_tables([result.table.cast(SCORES), table(rates, SCORES)])))[
        "all"
    ]
    frame = FRAME.fitted(np.append(pooled["x"].to_numpy(), 0.001), np.append(pooled["y"].to_numpy(), 0.25))
    good = next(system for system in plot["systems"] if system["name"] == "good")
    assert good["actual"]["x"] == pytest.approx(frame.x.position(0.001), abs=0.06)
    assert good["actual"]["y"] == pytest.approx(frame.y.position(0.25), abs=0.06)
    assert good["best"] is None
    assert plot["marks"] == ["actual"]
    assert plot["lines"] == []
