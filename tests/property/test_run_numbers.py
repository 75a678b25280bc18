"""Numbers in text: the kernels against Python's float and against decimal arithmetic."""

from __future__ import annotations

import struct

import numba
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from swsdask.kernels import text as kernels
from swsdask.kernels.text import MAX_DIGITS, PADDING, read_scores, read_ticks
from swsdask.model.units import MAX_TICKS, ticks

scan_number = numba.njit(lambda text, at: kernels.scan_number(text, at))
nearest_float = numba.njit(lambda mantissa, exponent, digits: kernels.nearest_float(mantissa, exponent, digits))
nearest_tick = numba.njit(lambda mantissa, exponent, digits: kernels.nearest_tick(mantissa, exponent, digits))

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?[0-9]{1,24}(\.[0-9]{0,24})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?\.[0-9]{1,24}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@st.composite
def near_halves(draw: st.DrawFn) -> str:
    """Numbers halfway between two floats, or next to it: what is hard to round."""
    half = (draw(st.integers(2**52, 2**53 - 1)) * 2 + 1) * 5 ** draw(st.integers(0, 3)) + draw(st.integers(-1, 1))
    digits = str(half)
    point = draw(st.integers(0, len(digits)))
    return f"{digits[:point]}.{digits[point:]}"


def padded(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode() + bytes(PADDING), np.uint8)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(st.one_of(numbers, near_halves()))
@example("9007199254740993")
@example("18446744073709551616")
@example("0.000000000000000000000000000001")
@example("-0.0")
def test_a_score_is_what_python_reads(text: str) -> None:
    end, negative, mantissa, exponent, digits = scan_number(padded(f'{text}"'), 0)
    assert end == len(text)
    read, score = nearest_float(np.uint64(mantissa), exponent, digits)
    if read:
        assert bits(-score if negative else score) == bits(float(text))
    else:
        assert digits > MAX_DIGITS or abs(exponent) > 22 or (mantissa > 2**53 and exponent > 0)


@given(st.floats(-1e6, 1e6).filter(lambda score: abs(score) > 1e-4 or score == 0).map(repr))
def test_scores_as_programs_print_them_are_read_by_the_kernel(text: str) -> None:
    _, _, mantissa, exponent, digits = scan_number(padded(f"{text} "), 0)
    assert nearest_float(np.uint64(mantissa), exponent, digits)[0]


@given(st.one_of(st.decimals(0, 300_000, places=6).map(str), st.decimals(0, 1, places=17).map(str), numbers))
@example("0.00005")
@example("0.00015")
@example("214748.36475")
@example("214748.364749999999999999")
def test_a_time_is_what_decimal_arithmetic_gives(text: str) -> None:
    _, _, mantissa, exponent, digits = scan_number(padded(f"{text}'"), 0)
    tick, rounded = nearest_tick(np.uint64(mantissa), exponent, digits)
    try:
        expected = ticks(text.lstrip("+-"))
    except OverflowError:
        expected = (MAX_TICKS + 1, True)
    if tick >= 0:
        assert (tick, rounded) == expected
    else:
        assert expected[0] > MAX_TICKS or digits > MAX_DIGITS or not -23 <= exponent <= 5


@given(st.text("0123456789+-.eE", max_size=6))
def test_only_numbers_are_read(text: str) -> None:
    end, *_ = scan_number(padded(f"{text}/"), 0)
    try:
        float(text)
    except ValueError:
        assert end != len(text)
    else:
        assert end == len(text)


def test_ordinary_columns_are_read_whole() -> None:
    texts = ["0", "1.5", "-0.25", "12.3456"]
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    offsets = np.cumsum([0, *(len(text) for text in texts)]).astype(np.int32)
    scores, unread = np.empty(4), np.ones(4, np.bool_)
    read_scores(data, offsets, scores, unread)
    assert not unread.any()
    assert scores.tolist() == [0.0, 1.5, -0.25, 12.3456]
    times, rounded, unread = np.empty(2, np.int64), np.empty(2, np.bool_), np.ones(2, np.bool_)
    read_ticks(data, offsets[:3], times, rounded, unread)
    assert not unread.any()
    assert times.tolist() == [0, 15_000]


@given(st.lists(st.one_of(numbers, st.text("0123456789.e- ", max_size=8), st.just("1" * 70))))
def test_columns_are_read_value_by_value(texts: list[str]) -> None:
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    offsets = np.cumsum([0, *(len(text) for text in texts)]).astype(np.int32)
    rows = len(texts)
    scores, unread = np.empty(rows), np.empty(rows, np.bool_)
    read_scores(data, offsets, scores, unread)
    for text, score, left in zip(texts, scores.tolist(), unread.tolist(), strict=True):
        assert left or bits(score) == bits(float(text))
    times, rounded = np.empty(rows, np.int64), np.empty(rows, np.bool_)
    read_ticks(data, offsets, times, rounded, unread)
    for text, time, inexact, left in zip(texts, times.tolist(), rounded.tolist(), unread.tolist(), strict=True):
        assert left or (time, inexact) == ticks(text)
