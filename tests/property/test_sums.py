"""Sums of lists and windows, beside exact arithmetic; the order of points."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.kernels.onsets import in_rank_order
from swsdask.kernels.sums import highest_behind, rounded_integers, rounded_sums, running_sums, window_sums

NUMBERS = st.floats(-1e300, 1e300) | st.floats(0.0, 1.0) | st.sampled_from([2.0**-53, 1.0, -1.0, 2.0**53, 5e-324])
LISTS = st.lists(st.lists(NUMBERS, max_size=30), max_size=5)
DIGITS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**40])


def flat(lists: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([*chain.from_iterable(lists)], np.float64), np.cumsum([0, *map(len, lists)])


@given(LISTS)
def test_sums_are_rounded_once(lists: list[list[float]]) -> None:
    assert rounded_sums(*flat(lists)).tolist() == [math.fsum(each) for each in lists]


def test_sums_with_numbers_that_are_not_finite_are_those_of_these() -> None:
    lists = [[1.0, math.inf], [-math.inf, 2.0], [math.inf, -math.inf], [math.nan, 1.0], []]
    np.testing.assert_array_equal(rounded_sums(*flat(lists)), [math.inf, -math.inf, math.nan, math.nan, 0.0])


@given(LISTS)
def test_running_sums_and_highest_values_stay_within_their_lists(lists: list[list[float]]) -> None:
    terms, offsets = flat(lists)
    assert running_sums(terms, offsets).tolist() == [end for each in lists for end in np.cumsum(each).tolist()]
    behind = [max(each[place:]) for each in lists for place in range(len(each))]
    assert highest_behind(terms, offsets).tolist() == behind


@given(st.lists(st.lists(DIGITS, min_size=5, max_size=5), min_size=1, max_size=5), st.integers(0, 60))
def test_wide_integers_are_rounded_once(rows: list[list[int]], first: int) -> None:
    exponent = 32 * first - 1074
    expected = []
    for row in rows:
        whole = Fraction(sum(digit << (32 * place) for place, digit in enumerate(row))) * Fraction(2) ** exponent
        try:
            expected.append(whole.numerator / whole.denominator)
        except OverflowError:
            expected.append(math.inf)
    assert rounded_integers(np.array(rows, np.int64), exponent).tolist() == expected


@given(st.integers(1, 4), st.integers(0, 700), st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(0, 99))
def test_window_sums_are_those_of_products(n_rows: int, n: int, begins: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    weights, table = random.standard_normal((n_rows, n)), random.standard_normal((n_rows, n + 40))
    found = window_sums(weights, table, np.array(begins))
    expected = [math.fsum(np.ravel(weights * table[:, begin : begin + n])) for begin in begins]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@given(st.integers(0, 400), st.integers(1, 6), st.integers(0, 99))
def test_rows_are_in_rank_order_and_equal_ones_stay(n: int, n_values: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second, third = random.integers(-1, n_values, (3, n), np.int32)
    score = random.integers(-1, n_values, n) * 0.5
    order = np.lexsort((third, second, -score, first))
    assert in_rank_order(first, score, second, third).tolist() == order.tolist()
