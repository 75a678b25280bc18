"""Time as integers: one tick is 0.1 ms.

Floating-point mid-points disagree with exact arithmetic at the tolerance's edge, so every time in swsdask is a whole
number of ticks (int32 in tables, int64 where sums are doubled). Finer input is rounded half to even, and counted.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

from swsdask.errors import SettingsError

TICKS_PER_SECOND = 10_000
MAX_TICKS = 2**31 - 1
"""The longest time a table holds: 59.65 hours within one document."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MOST_DIGITS = 15


def ticks(seconds: str | float | Decimal) -> tuple[int, bool]:
    """Ticks of a time in seconds, and whether it had to be rounded (half to even).

    A float is taken at its shortest decimal form, so `ticks(0.1)` is exact. Raises `decimal.InvalidOperation` for text
    that is no number, `OverflowError` for infinities and times of more than 15 digits of ticks, `ValueError` for NaN.
    """
    exact = _EXACT.multiply(Decimal(repr(seconds) if isinstance(seconds, float) else seconds), TICKS_PER_SECOND)
    if exact and exact.adjusted() >= _MOST_DIGITS:
        raise OverflowError(f"{seconds} seconds")
    whole = int(exact.to_integral_value(ROUND_HALF_EVEN))
    return whole, whole != exact


def whole_ticks(name: str, seconds: float) -> int:
    """A setting's seconds in ticks. Raises `SettingsError` if it is no whole number of them."""
    whole, rounded = ticks(seconds)
    if rounded:
        raise SettingsError(f"setting evaluation.{name}: expected a multiple of 0.0001 s; found {seconds!r}.")
    return whole


def seconds(ticks: int) -> float:
    """The time in seconds, the float nearest to the exact value."""
    return ticks / TICKS_PER_SECOND
