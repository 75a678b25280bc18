from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.model.units import TICKS_PER_SECOND, seconds, ticks


@given(st.decimals(min_value=0, max_value=200_000, places=7))
def test_ticks_round_half_to_even_and_say_so(time: Decimal) -> None:
    whole, rounded = ticks(time)
    exact = Fraction(time) * TICKS_PER_SECOND
    assert whole == round(exact)
    assert rounded == (whole != exact)


@given(st.integers(0, 2**31 - 1))
def test_every_tick_survives_seconds_and_back(tick: int) -> None:
    assert ticks(seconds(tick)) == (tick, False)


@pytest.mark.parametrize(("text", "expected"), [("0.00005", 0), ("0.00015", 2), ("1e-4", 1), ("12.5", 125_000)])
def test_edges(text: str, expected: int) -> None:
    assert ticks(text)[0] == expected


@pytest.mark.parametrize("text", ["", "abc", "1.2.3"])
def test_no_number(text: str) -> None:
    with pytest.raises(InvalidOperation):
        ticks(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "NaN", "-Infinity"])
def test_not_finite(value: float | str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        ticks(value)


def test_zero_is_zero_whatever_its_exponent() -> None:
    assert ticks("0e99") == (0, False)


def test_no_digit_is_lost_before_rounding() -> None:
    assert ticks("0.00005" + 40 * "0" + "1") == (1, True)


@pytest.mark.parametrize("text", ["1e15", "1e99999999", "-1e400"])
def test_absurdly_long_times_are_refused_at_once(text: str) -> None:
    with pytest.raises(OverflowError):
        ticks(text)
