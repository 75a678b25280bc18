"""GAP of ranked lists against its definition, and the Monte Carlo study against what its source found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.comparison.gap_study import FUNCTIONS, gap_study
from swsdask.execution.executor import SerialExecutor, ThreadExecutor
from swsdask.kernels.onsets import gap_of_lists, ranked_lists
from swsdask.model.ranked_measures import Penalty, gaussian, rectangular, table, triangular
from swsdask.model.studies import GapStudy
from tests.literal_gap import gap, value

N_POINTS = 40

PENALTIES = st.one_of(
    st.integers(1, 9).map(lambda w: triangular(w, w)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda w: triangular(*w)),
    st.integers(0, 9).filter(bool).map(rectangular),
    st.floats(0.5, 6.0).map(lambda sigma: gaussian(sigma, 10.0)),
    st.lists(st.tuples(st.integers(-9, 9), st.sampled_from([0.0, 0.3, 0.5, 1.0])), min_size=2, unique_by=lambda p: p[0])
    .map(sorted)
    .map(table),
)


@given(
    onsets=st.lists(st.integers(0, N_POINTS - 1), min_size=1, max_size=12).map(sorted),
    points=st.lists(st.integers(0, N_POINTS - 1), min_size=1, max_size=60),
    penalty=PENALTIES,
)
def test_gap_is_what_its_definition_says(onsets: list[int], points: list[int], penalty: Penalty) -> None:
    found = gap_of_lists(np.array([points, points[::-1]]), np.array(onsets), *penalty)
    assert found[0] == pytest.approx(gap(points, onsets, penalty), abs=1e-12)
    assert found[1] == pytest.approx(gap(points[::-1], onsets, penalty), abs=1e-12)


@given(penalty=PENALTIES, distance=st.integers(-12, 12))
def test_one_point_earns_the_penalty_functions_value(penalty: Penalty, distance: int) -> None:
    earned = gap_of_lists(np.array([[20 + distance]]), np.array([20]), *penalty)[0]
    assert earned == pytest.approx(value(penalty, distance), abs=1e-15)


def test_penalties_at_their_ends() -> None:
    assert value(triangular(7, 7), 7) == value(triangular(7, 7), -7) == 0
    assert value(rectangular(7), 7) == value(rectangular(7), -7) == 1
    assert value(rectangular(7), 8) == 0
    assert value(gaussian(5, 10), -10) == math.exp(-2)
    assert value(gaussian(5, 10), 11) == 0
    assert value(triangular(10, 5), -4) == pytest.approx(0.6)
    assert value(triangular(10, 5), 4) == pytest.approx(0.2)


def test_the_sources_example() -> None:
    """Fig. 1: two onsets; 1 at the onset itself, 0.7 one step away, nothing at P."""
    penalty = table([(-2, 0.0), (-1, 0.7), (0, 1.0), (1, 0.7), (2, 0.0)])
    a1, a2, b2, b3, p = 9, 10, 30, 31, 20
    found = gap_of_lists(np.array([[a1, p, b3], [p, b2, a1]]), np.array([a2, b2]), *penalty)
    assert found[0] == pytest.approx(7 / 12)
    assert found[1] == pytest.approx(8 / 15)


def test_lists_hold_every_point_once_and_intended_ones_first() -> None:
    rng = np.random.default_rng(5)
    weight = np.zeros(30)
    weight[[3, 4]] = 1.0
    race = rng.standard_exponential((3, 50, 30))
    intended = np.zeros((50, 30), np.bool_)
    intended[:, :3] = True
    lists = ranked_lists(weight, intended, *race)
    assert (np.sort(lists, axis=1) == np.arange(30)).all()
    turn_of_rank = np.argsort(np.argsort(race[2] * np.arange(1, 31), axis=1), axis=1)
    turns = np.take_along_axis(np.argsort(lists, axis=1), np.full((50, 1), 3), axis=1)
    assert (np.take_along_axis(turn_of_rank, turns, axis=1) < 2).all()


def test_ranks_follow_zipf() -> None:
    """The first rank that is filled is k with a probability in proportion to 1 / k."""
    rng = np.random.default_rng(7)
    n, length = 20_000, 8
    race = rng.standard_exponential((3, n, length))
    weight = np.zeros(length)
    weight[0] = 1.0
    intended = np.zeros((n, length), np.bool_)
    intended[:, 0] = True
    first = np.argmin(ranked_lists(weight, intended, *race), axis=1)
    expected = 1 / np.arange(1, length + 1)
    shares = np.bincount(first, minlength=length) / n
    assert shares == pytest.approx(expected / expected.sum(), abs=0.015)


def test_what_is_reported_of_replicates() -> None:
    tau = np.array([[[1, 0.1, 0.5], [0.1, 1, 0.3], [0.5, 0.3, 1]]])
    told = GapStudy(1, ("a", "b", "c"), np.concatenate([tau, tau[:, ::-1, ::-1]]))
    assert told.median[0].tolist() == pytest.approx([0.3, 0.2, 0.4])
    assert told.lowest[0].tolist() == [0.1, 0.1, 0.3]
    assert told.highest[0].tolist() == [0.5, 0.3, 0.5]
    assert told.best.tolist() == [0.5, 0.0, 0.5]


def test_the_same_bits_everywhere() -> None:
    alone = gap_study(11, 3, SerialExecutor())
    threads = ThreadExecutor(2)
    try:
        together = gap_study(11, 4, threads)
    finally:
        threads.close()
    assert alone.tau.tobytes() == together.tau[:3].tobytes()
    assert (alone.tau[0] != alone.tau[1]).any()
    assert (gap_study(12, 1, SerialExecutor()).tau[0] != alone.tau[0]).any()


def test_the_sources_findings() -> None:
    """Over 24 replicates; none is asserted of one."""
    threads = ThreadExecutor(2)
    try:
        told = gap_study(2006, 24, threads)
    finally:
        threads.close()
    assert len(FUNCTIONS) == 28
    median = told.median.mean(axis=0)
    spread = (told.highest - told.lowest).mean(axis=0)
    triangles, rectangles, gaussians = slice(0, 9), slice(9, 19), slice(19, 28)
    assert FUNCTIONS[3][0] == "triangular ±7"
    assert int(median.argmax()) + 1 == 4
    assert 0.755 <= median[3] <= 0.780
    assert int(median[rectangles].argmax()) + 10 in (16, 17)
    assert int(median[gaussians].argmax()) + 20 in (25, 26)
    assert int(median[triangles].argmin()) + 1 == 9
    assert int(median[rectangles].argmin()) + 10 == 19
    assert spread[triangles].mean() < spread[rectangles].mean() < spread[gaussians].mean()
    assert ((told.median[:, 3] >= 0.70) & (told.median[:, 3] <= 0.82)).mean() > 0.9
