"""Kendall's tau-b against scipy's, tau_AP against its definition and against values worked out by hand."""

from __future__ import annotations

import math
from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from swsdask.comparison import rank_correlation
from swsdask.comparison.rank_correlation import correlated
from swsdask.model.trials import F64
from tests.rank_correlations import paper_tau_ap, slow_tau_ap


def tau_b(x: F64, y: F64) -> float:
    return float(correlated(np.array([x, y])).tau_b[0, 1])


def tau_ap(x: F64, y: F64) -> float:
    return float(correlated(np.array([x, y])).tau_ap[0, 1])


VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False))


@st.composite
def two(draw: st.DrawFn) -> tuple[F64, F64]:
    n = draw(st.integers(0, 9))
    lists = st.lists(VALUES, min_size=n, max_size=n)
    return np.array(draw(lists)), np.array(draw(lists))


def of(ranking: str, things: str) -> F64:
    """Values that rank things in the order of `ranking`."""
    return np.array([-ranking.index(thing) for thing in things], np.float64)


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        ("abcd", 1.0),
        ("dcba", -1.0),
        ("bacd", 2 / 3 * (0 / 1 + 2 / 2 + 3 / 3) - 1),
        ("abdc", 2 / 3 * (1 / 1 + 2 / 2 + 2 / 3) - 1),
        ("dabc", 2 / 3 * (0 / 1 + 1 / 2 + 2 / 3) - 1),
    ],
)
def test_tau_ap_weighs_the_top(ranking: str, expected: float) -> None:
    """Swapping the first two costs more than swapping the last two, which is the same to tau."""
    x, truth = of(ranking, "abcd"), of("abcd", "abcd")
    assert tau_ap(x, truth) == pytest.approx(expected, abs=1e-15)
    assert paper_tau_ap(ranking, "abcd") == pytest.approx(expected, abs=1e-15)


def test_both_are_those_of_the_paper_and_of_scipy_without_ties() -> None:
    for ranking in permutations("abcde"):
        x, truth = of("".join(ranking), "abcde"), of("abcde", "abcde")
        assert tau_ap(x, truth) == pytest.approx(paper_tau_ap("".join(ranking), "abcde"), abs=1e-15)
        assert tau_b(x, truth) == pytest.approx(kendalltau(x, truth).statistic, abs=1e-15)


def test_ties_by_hand() -> None:
    """Above c in x are a and b, of which y has a above c and b beside it; a and b say nothing of one another."""
    x, y = np.array([2.0, 2.0, 1.0]), np.array([3.0, 1.0, 1.0])
    assert tau_ap(x, y) == 0.5
    assert tau_ap(y, x) == (0.0 + 1.0) / 2
    assert tau_b(x, y) == 1 / 2


@given(two())
def test_against_oracles(both: tuple[F64, F64]) -> None:
    x, y = both
    assert tau_ap(x, y) == pytest.approx(slow_tau_ap(x.tolist(), y.tolist()), abs=1e-15, nan_ok=True)
    if len(x) > 1 and np.isfinite(both).all():
        assert tau_b(x, y) == pytest.approx(kendalltau(x, y).statistic, abs=1e-15, nan_ok=True)


@given(two())
def test_equal_and_reversed_rankings(both: tuple[F64, F64]) -> None:
    x = both[0]
    ends = (1.0, -1.0) if len(set(x.tolist())) > 1 else (math.nan, math.nan)
    for correlation in (tau_b, tau_ap):
        found = correlation(x, x), correlation(x, -x)
        assert found == ends or all(map(math.isnan, (*found, *ends)))


@given(two(), st.randoms(use_true_random=False))
def test_order_and_scale_never_show(both: tuple[F64, F64], random: Random) -> None:
    x, y = both
    order = random.sample(range(len(x)), len(x))
    assert same(tau_b(x, y), tau_b(y, x))
    for correlation in (tau_b, tau_ap):
        assert same(correlation(x, y), correlation(x[order], y[order]))
        assert same(correlation(x, y), correlation(np.unique(x, return_inverse=True)[1].astype(np.float64), y))
        assert not abs(correlation(x, y)) > 1


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@given(
    st.integers(0, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.one_of(VALUES, st.just(math.nan)), min_size=n, max_size=n), min_size=1, max_size=4
        )
    )
)
@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_many_rankings_at_once_are_those_of_each_pair(at_once: int, rankings: list[list[float]]) -> None:
    """What one of a pair does not rank is left out of it."""
    values = np.array(rankings, np.float64).reshape(len(rankings), -1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_correlation, "_AT_ONCE", at_once)
        found = correlated(values)
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            both = ~(np.isnan(x) | np.isnan(y))
            assert found.n[i, j] == np.count_nonzero(both)
            assert same(float(found.tau_b[i, j]), tau_b(x[both], y[both]))
            assert same(float(found.tau_ap[i, j]), tau_ap(x[both], y[both]))
