from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.render.pages import number, numbers, path

FINITE = st.floats(-999_999, 999_999).filter(lambda value: value == 0.0 or abs(value) > 1e-15)
TIES = st.integers(-(10**7), 10**7).map(lambda n: n / 10**6) | st.integers(-(10**7), 10**7).map(lambda n: n / 2**10)


@given(st.lists(FINITE | TIES, max_size=30))
def test_numbers_have_six_significant_digits(values: list[float]) -> None:
    expected = [float(f"{value:.6g}") for value in values]
    found = numbers(np.array(values, np.float64))
    assert found == expected
    assert [number(value) for value in values] == expected
    assert all(isinstance(each, int) == float(each).is_integer() for each in found if each is not None)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_near_and_is_json(value: float) -> None:
    found = number(value)
    assert found == pytest.approx(value, rel=5.1e-6, abs=1e-299)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_integers_keep_their_digits_and_what_json_lacks_has_a_name() -> None:
    given = np.array([123_456_789.0, math.nan, -math.inf, 0.5, math.inf, -0.0])
    assert numbers(given) == [123_456_789, None, "-inf", 0.5, "inf", 0]
    assert numbers(np.empty(0)) == []


def test_a_path_goes_through_its_points() -> None:
    assert path(np.array([1.0, 2.25, -3.0]), np.array([0.0, 0.04, 7.96])) == "M1.0 0.0L2.2 0.0L-3.0 8.0"
    assert path(np.array([1.0]), np.array([2.0])) == "M1.0 2.0"
