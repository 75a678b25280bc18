"""Sums of floating-point numbers without rounding: wide integers, one per stratum, that merge in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import F64, I64, Bool

DIGIT = 32
"""Bits of a digit."""

LOWEST = 1074
"""The lowest bit of a double is worth 2^-1074."""


@dataclass(frozen=True, eq=False)
class ExactSums:
    """Sums of numbers >= 0, one in each stratum, with all their bits.

    `digits` is uint32 [n_queries, n_groups, n_digits], the lowest first: a sum is that of digits[..., d] * 2^(32 *
    (first + d) - 1074). No sum needs the outermost digits' neighbours: equal sums have equal arrays. The number inf
    counts as 2^1024, so that a sum with it is infinite, and finite again once it is taken away.
    """

    first: int
    digits: NDArray[np.uint32]

    @classmethod
    def carried(cls, digits: I64, first: int) -> Self:
        """From int64 digits of any size and sign [n_queries, n_groups, n_digits] whose sums are >= 0."""
        wide = np.concatenate([digits, np.zeros((*digits.shape[:2], 2), np.int64)], axis=2)
        for place in range(wide.shape[2] - 1):
            wide[..., place + 1] += wide[..., place] >> DIGIT
            wide[..., place] &= (1 << DIGIT) - 1
        used = np.flatnonzero(wide.any(axis=(0, 1)))
        if len(used) == 0:
            return cls(0, np.zeros((*digits.shape[:2], 0), np.uint32))
        begin, end = int(used[0]), int(used[-1]) + 1
        return cls(first + begin, wide[..., begin:end].astype(np.uint32))

    def merge(self, other: Self) -> Self:
        """The sums of both parts together."""
        parts = [part for part in (self, other) if part.digits.shape[2] > 0]
        if len(parts) < 2:
            return parts[0] if parts else self
        first = min(part.first for part in parts)
        end = max(part.first + part.digits.shape[2] for part in parts)
        digits = np.zeros((*self.digits.shape[:2], end - first), np.int64)
        for part in parts:
            at = part.first - first
            digits[..., at : at + part.digits.shape[2]] += part.digits
        return self.carried(digits, first)

    def total(self, strata: Bool) -> float:
        """The sum over some strata, bool [n_queries, n_groups], rounded once to the nearest float."""
        return self._rounded(self.digits[strata].sum(axis=0, dtype=np.int64))

    def by_query(self, groups: Bool) -> F64:
        """The sum of every query over some groups of documents, bool [n_groups], each rounded once: [n_queries]."""
        sums = self.digits[:, groups].sum(axis=1, dtype=np.int64)
        return np.array([self._rounded(each) for each in sums], np.float64)

    def _rounded(self, digits: I64) -> float:
        whole = sum(int(digit) << DIGIT * place for place, digit in enumerate(digits.tolist()))
        exponent = DIGIT * self.first - LOWEST
        try:
            return float(whole << exponent) if exponent >= 0 else whole / (1 << -exponent)
        except OverflowError:
            return float("inf")
