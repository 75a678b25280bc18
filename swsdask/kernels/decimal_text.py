"""Decimal numbers in text, read exactly: scores as the nearest float64, times as ticks.

A number is `[+-] digits [. digits] [e [+-] digits]` with a digit before the exponent. Its digits make an integer
mantissa m, its point and exponent a power of ten e: the number is m * 10**e.

A score is the float64 nearest to the text, halves to even, which is what Python's `float` gives, bit for bit:
- m <= 2**53 and |e| <= 22: m and 10**|e| are floats exactly, so one multiplication or division rounds once
  (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990).
- m < 2**64 and -22 <= e <= 0: the integer division of m by 10**-e is carried to 54 bits or more, and its remainder
  tells how to round.
- anything else is left to the caller.

A time is m * 10**(e + 4) ticks of 0.1 ms, rounded half to even.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint8
from numpy.typing import NDArray

from swsdask.kernels.signatures import column

MAX_DIGITS = 19
"""As many digits, after leading zeros, as a uint64 mantissa always holds."""

TEXT = column(uint8)
"""The type of text: bytes that a kernel only reads."""

_POWERS = np.array([10**n for n in range(20)], np.uint64)
_FLOAT_POWERS = np.array([float(10**n) for n in range(23)], np.float64)
_MAX_TICKS = np.uint64(2**31 - 1)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_FIVE = np.uint64(5)
_NINE = np.uint64(9)
_TEN = np.uint64(10)
_ZERO_SIGN = np.uint64(48)
_BITS_53 = np.uint64(2**53)
_BITS_54 = np.uint64(2**54)


@njit()
def _scan_digits(text: NDArray[np.uint8], at: int, mantissa: np.uint64, digits: int) -> tuple[int, np.uint64, int]:
    """Append the digits from `at` on to a mantissa; `digits` counts them but for leading zeros."""
    while True:
        digit = np.uint64(text[at]) - _ZERO_SIGN
        if digit > _NINE:
            return at, mantissa, digits
        mantissa = mantissa * _TEN + digit
        if digits > 0 or digit > _NONE:
            digits += 1
        at += 1


@njit()
def scan_number(text: NDArray[np.uint8], at: int) -> tuple[int, bool, np.uint64, int, int]:
    """Read the number at byte `at` of `text` (uint8; some byte that is no part of a number must follow it).

    Returns its end (-1 if no number begins there), whether it is negative, its mantissa (uint64; valid only for
    `digits <= MAX_DIGITS`), exponent and `digits`.
    """
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    first = at
    at, mantissa, digits = _scan_digits(text, at, _NONE, 0)
    written = at - first
    exponent = 0
    if text[at] == 46:
        first = at + 1
        at, mantissa, digits = _scan_digits(text, first, mantissa, digits)
        exponent = first - at
        written += at - first
    if written == 0:
        return -1, False, _NONE, 0, 0
    if text[at] == 101 or text[at] == 69:
        at += 1
        down = text[at] == 45
        if down or text[at] == 43:
            at += 1
        first = at
        power = 0
        while text[at] >= 48 and text[at] <= 57:
            power = min(power * 10 + text[at] - 48, 1_000_000)
            at += 1
        if at == first:
            return -1, False, _NONE, 0, 0
        exponent += -power if down else power
    return at, negative, mantissa, exponent, digits


@njit()
def _divide(mantissa: np.uint64, power: int) -> float:
    """The float nearest to mantissa / 10**power; 2**53 < mantissa, 0 <= power <= 22."""
    # 10**power = 5**power * 2**power, and 5**22 < 2**52 leaves room to shift a remainder by nine bits.
    five = _ONE
    for _ in range(power):
        five *= _FIVE
    quotient = mantissa // five
    rest = mantissa - quotient * five
    shift = -power
    while quotient < _BITS_54:
        rest <<= _NINE
        more = rest // five
        rest -= more * five
        quotient = (quotient << _NINE) | more
        shift -= 9
    beyond = rest > _NONE
    while quotient >= _BITS_54:
        beyond = beyond or (quotient & _ONE) > _NONE
        quotient >>= _ONE
        shift += 1
    up = (quotient & _ONE) > _NONE and (beyond or (quotient & _TWO) > _NONE)
    quotient >>= _ONE
    if up:
        quotient += _ONE
    return math.ldexp(float(quotient), shift + 1)


@njit()
def nearest_float(mantissa: np.uint64, exponent: int, digits: int) -> tuple[bool, float]:
    """Whether mantissa * 10**exponent is one of the forms above, and if so the float64 nearest to it."""
    if digits == 0:
        return True, 0.0
    if digits > MAX_DIGITS or exponent > 22 or exponent < -22:
        return False, 0.0
    if mantissa <= _BITS_53:
        if exponent < 0:
            return True, float(mantissa) / _FLOAT_POWERS[-exponent]
        return True, float(mantissa) * _FLOAT_POWERS[exponent]
    if exponent <= 0:
        return True, _divide(mantissa, -exponent)
    return False, 0.0


@njit()
def nearest_tick(mantissa: np.uint64, exponent: int, digits: int) -> tuple[np.int64, bool]:
    """Ticks of mantissa * 10**exponent seconds, and whether they are rounded.

    -1 ticks: the time is beyond int32, or has more digits than can be decided here.
    """
    if digits == 0:
        return np.int64(0), False
    power = exponent + 4
    if digits > MAX_DIGITS or power > 9 or power < -19:
        return np.int64(-1), False
    if power >= 0:
        if mantissa > _MAX_TICKS // _POWERS[power]:
            return np.int64(-1), False
        return np.int64(mantissa * _POWERS[power]), False
    unit = _POWERS[-power]
    whole = mantissa // unit
    rest = mantissa - whole * unit
    missing = unit - rest
    if rest > missing or (rest == missing and (whole & _ONE) > _NONE):
        whole += _ONE
    if whole > _MAX_TICKS:
        return np.int64(-1), False
    return np.int64(whole), bool(rest > _NONE)
