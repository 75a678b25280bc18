"""softplus(x) = log(1 + e^x), the cost of a trial in nats: without branches, so that several are computed at once.

A block of rows takes one short step after the other. In a single loop over all steps the operations of a row wait for
one another, and those of the next rows are too far behind for the processor to begin them meanwhile.

Computed as max(x, 0) + log1p(e^-|x|) from additions, multiplications and one division, never from the logarithm of a
sigmoid: the bits of a cost are those that IEEE 754 makes of these operations, whatever mathematical library or width of
vectors a machine has. Within 2 units in the last place of the true value, and exact at the ends: 0 from about -745.2
down, x itself from about 36.8 up.

- e^-a: a = -(n log 2 + r) with a whole n and |r| <= log(2) / 2; Taylor's polynomial of e^r, and twice a power of two,
  so that numbers below 2^-1022 come out rounded rather than lost.
- log1p(t), 0 <= t <= 1: with f = t, or f = (1 + t) / 2 - 1 and log 2 apart where t > sqrt(2) - 1, and s = f / (2 + f),
  |s| <= .172, it is 2 artanh(s) = f - s (f - R), R = 2 s^2 / 3 + 2 s^4 / 5 + ...
"""

from __future__ import annotations

import numpy as np
from numba import float64, void

from swsdask.kernels.compilation import column, kernel, part
from swsdask.model.trials import F64
from swsdask.model.units import INFINITE

BLOCK = 1024
"""The rows of a block: few enough that its numbers stay in the processor's nearest cache."""

_MAGIC = 1.5 * 2.0**52
"""Added to a number of less than 2^51 it leaves the nearest whole number in the low bits."""

_PER_LOG_2 = 1.4426950408889634
_LOG_2 = 0.6931471805599453
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
"""log 2 in two parts, the first of them with 32 bits: n times it is exact."""

_FARTHEST = 750.0
_ONE_STEP = -1000.0
_HALVED = 0.41421356237309503


@part(error_model="numpy")
def _power(n: float) -> float:
    """2^n of a whole n, -1022 <= n <= 1023."""
    return np.int64(np.float64(n + (_MAGIC + 1023.0)).view(np.int64) << 52).view(np.float64)


@part(error_model="numpy")
def _steps(a: float) -> float:
    """n, where e^-a = 2^n e^r."""
    a = a if a < _FARTHEST else _FARTHEST
    return float((_MAGIC - a * _PER_LOG_2) - _MAGIC)


@part(error_model="numpy")
def _rest(a: float, n: float) -> float:
    """r, where e^-a = 2^n e^r."""
    a = a if a < _FARTHEST else _FARTHEST
    return (-a - n * _LOG_2_HIGH) - n * _LOG_2_LOW


@part(error_model="numpy")
def _taylor(r: float) -> float:
    """(e^r - 1 - r) / r^2."""
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    return p * r + 0.5


@part(error_model="numpy")
def _scaled(n: float, r: float, p: float) -> float:
    """2^n e^r, of the p of r."""
    first = n if n > _ONE_STEP else _ONE_STEP
    return (1.0 + (r + r * r * p)) * _power(first) * _power(n - first)


@part(error_model="numpy")
def _beyond(t: float) -> float:
    """f, where log(1 + t) is log(1 + f), perhaps with log 2."""
    return (t - 1.0) * 0.5 if t > _HALVED else t


@part(error_model="numpy")
def _log1p(t: float, f: float, s: float) -> float:
    """log(1 + t), of its f and s = f / (2 + f)."""
    z = s * s
    q = 2.0 / 21.0
    q = q * z + 2.0 / 19.0
    q = q * z + 2.0 / 17.0
    q = q * z + 2.0 / 15.0
    q = q * z + 2.0 / 13.0
    q = q * z + 2.0 / 11.0
    q = q * z + 2.0 / 9.0
    q = q * z + 2.0 / 7.0
    q = q * z + 2.0 / 5.0
    q = q * z + 2.0 / 3.0
    return (_LOG_2 if t > _HALVED else 0.0) + (f - s * (f - z * q))


@part(void(column(float64), float64[::1]), error_model="numpy")
def decays(x: F64, decay: F64) -> None:
    """e^-|x| of every row of a block of at most `BLOCK` rows."""
    steps, rest = np.empty(BLOCK), np.empty(BLOCK)
    for row in range(len(x)):
        a = abs(x[row])
        steps[row] = _steps(a)
        rest[row] = _rest(a, steps[row])
    for row in range(len(x)):
        decay[row] = _taylor(rest[row])
    for row in range(len(x)):
        decay[row] = _scaled(steps[row], rest[row], decay[row])


@part(void(column(float64), column(float64), float64[::1]), error_model="numpy")
def costs_of_decays(x: F64, decay: F64, cost: F64) -> None:
    """log(1 + e^x) of every row of a block, of its e^-|x|; inf of inf and of `INFINITE`.

    What makes it infinite is added: a number put in the place of x is a case of its own to LLVM, which then computes
    one cost at a time.
    """
    beyond, ratio = np.empty(BLOCK), np.empty(BLOCK)
    for row in range(len(x)):
        beyond[row] = _beyond(decay[row])
        ratio[row] = beyond[row] / (2.0 + beyond[row])
    for row in range(len(x)):
        cost[row] = _log1p(decay[row], beyond[row], ratio[row])
    for row in range(len(x)):
        infinite = np.inf if x[row] >= INFINITE else 0.0
        cost[row] = ((x[row] if x[row] > 0.0 else 0.0) + infinite) + cost[row]


@kernel(float64[::1](column(float64)), error_model="numpy")
def softplus(x: F64) -> F64:
    """log(1 + e^x) of every number, float64; inf of inf and of `INFINITE`."""
    cost = np.empty(len(x), np.float64)
    decay = np.empty(BLOCK)
    for begin in range(0, len(x), BLOCK):
        block = x[begin : begin + BLOCK]
        decays(block, decay)
        costs_of_decays(block, decay, cost[begin : begin + BLOCK])
    return cost
