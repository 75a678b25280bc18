"""Term-weighted value: Eq. 6-7 of the 2013 measures document.

TWV = 1 - (P_miss + beta P_fa), beta = C_fa (1 - P_target) / (C_miss P_target). It lies between 1, for a perfect system,
and -beta; a system that rejects everything has 0.
"""

from __future__ import annotations

from typing import TypeVar

from swsdask.model.trials import F64

Rate = TypeVar("Rate", float, F64)


def twv(p_miss: Rate, p_fa: Rate, beta: float) -> Rate:
    """TWV of error rates (Eq. 6)."""
    return 1.0 - (p_miss + beta * p_fa)


def iso_twv(value: float, beta: float, p_fa: F64) -> F64:
    """The P_miss that gives a TWV at false alarm rates: a line of equal value in the plane of a DET curve (Eq. 6)."""
    return 1.0 - value - beta * p_fa
