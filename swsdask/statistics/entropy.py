"""Exact sums of logarithmic costs of scores that are used as log-likelihood ratios.

Sums of floating-point numbers are kept without rounding, as wide integers, one per stratum, that merge in any order.
So the cost of non-targets is the cost of all trials as non-targets minus that of the hits among them: trials are summed
from their scores alone, and hits, which `Hits` has, are subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from swsdask.kernels.entropy import add_costs, softplus
from swsdask.kernels.sums import DIGIT, rounded_integers
from swsdask.model.trials import F64, I16, I32, I64, Bool, Condition, Reference, Trials
from swsdask.statistics.counts import ends_of, stratum_numbers, stretches
from swsdask.statistics.ladder import Hits
from swsdask.statistics.statistic import FirstRound

_LOWEST = 1074
"""The lowest bit of a float is worth 2^-1074."""

_OUTGROWN = 4
"""Digits above the lowest bit of the largest number: 128 bits, 31 below it, 53 of it and 44 for the sum."""


@dataclass(frozen=True, eq=False)
class ExactSums:
    """Exact sums of numbers >= 0, one for each stratum.

    `digits` is uint32 [n_queries, n_groups, n_digits], the lowest first: a sum is the sum over d of digits[..., d] *
    2^(32 * (first + d) - 1074). The outermost digits are not 0 everywhere (`first` is 0 if there are no digits), so
    equal sums have equal arrays. The number inf counts as 2^1024: a sum with it is infinite, and finite again once it
    is subtracted.
    """

    first: int
    digits: NDArray[np.uint32]

    @classmethod
    def of(cls, first: int, digits: I64) -> Self:
        """Build from int64 digits, 0 .. 2^32 - 1, the outermost of which may be 0 everywhere."""
        used = np.flatnonzero(digits.any(axis=(0, 1)))
        begin, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (-first, -first)
        return cls(first + begin, digits[..., begin:end].astype(np.uint32))

    @classmethod
    def carried(cls, first: int, digits: I64) -> Self:
        """Build from int64 digits >= 0 of any size; the last one is 0 and takes the carry."""
        for place in range(digits.shape[2] - 1):
            digits[..., place + 1] += digits[..., place] >> DIGIT
            digits[..., place] &= 2**DIGIT - 1
        return cls.of(first, digits)

    def merge(self, other: Self) -> Self:
        """Return the sums of both parts together."""
        first = min(self.first, other.first)
        end = max(self.end, other.end)
        digits = np.zeros((*self.digits.shape[:2], end - first + 1), np.int64)
        for part in (self, other):
            digits[..., part.first - first : part.end - first] += part.digits
        return self.carried(first, digits)

    def drawn(self, times: I64) -> Self:
        """Return the sums of a resample, see `Drawable.drawn`."""
        digits = np.zeros((len(self.digits), 1, self.digits.shape[2] + 1), np.int64)
        digits[:, 0, :-1] = np.tensordot(self.digits.astype(np.int64), times, axes=(1, 0))
        return self.carried(self.first, digits)

    def total(self, condition: Condition) -> float:
        """Return the sum over the strata of a condition, rounded once, to the nearest float."""
        digits = condition.select(self.digits).sum(axis=(0, 1), dtype=np.int64)
        return float(self._rounded(digits[np.newaxis])[0])

    def by_query(self, groups: Bool) -> F64:
        """The sum of every query over some groups of documents, bool [n_groups], each rounded once: [n_queries]."""
        return self._rounded(self.digits[:, groups].sum(axis=1, dtype=np.int64))

    @property
    def end(self) -> int:
        """The number of the digit after the last one."""
        return self.first + int(self.digits.shape[2])

    def _rounded(self, digits: I64) -> F64:
        return rounded_integers(np.ascontiguousarray(digits), DIGIT * self.first - _LOWEST)


def room(ends: F64) -> tuple[int, int]:
    """The first digit and the number of digits that sums of numbers between `ends` need, all >= 0 and inf allowed.

    Numbers may lie beyond the ends by a rounding error; if the least end is 0, only 0 lies there.
    """
    if len(ends) == 0:
        return 0, 0
    exponent = ends.view(np.int64) >> 52
    first = max(int(exponent.min()) - 2, 0) // DIGIT
    return first, int(exponent.max()) // DIGIT + _OUTGROWN - first


_TARGET, _NONTARGET = -1, 1
"""The sign of the score in the cost of a trial."""


@dataclass(frozen=True, eq=False)
class Entropy(FirstRound):
    """Sums over one system's given trials of their costs as non-targets, in nats, by stratum.

    With eta = `Reference.prior_log_odds` the cost is softplus(s + eta) (2013 measures document, Eq. 37). Every cost is
    a float64 (see `kernels.entropy`), the sum is exact.
    """

    aligned: ClassVar[bool] = False
    follows: ClassVar[tuple[str, ...]] = ("prior_log_odds",)

    costs: ExactSums

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Return the costs of one cell."""
        parts = stretches(trials)
        nothing = ExactSums(0, np.zeros((reference.n_queries, reference.n_groups, 0), np.uint32))
        every = _Scores(parts.bounds, _stratum(parts.query, parts.group, nothing), parts.score)
        return cls(_added(nothing, every, _NONTARGET, reference.prior_log_odds))

    def merge(self, other: Self) -> Self:
        """Return the costs of both parts together."""
        return type(self)(self.costs.merge(other.costs))

    def drawn(self, times: I64) -> Self:
        """Return the costs of a resample, see `Drawable.drawn`."""
        return type(self)(self.costs.drawn(times))


class ClassCosts(NamedTuple):
    """Sums of C_log over the given trials of each class, by stratum.

    `target` sums softplus(-(s + eta)) over the trials that are mapped to a target, whatever their decision, `nontarget`
    softplus(s + eta) over all others.
    """

    target: ExactSums
    nontarget: ExactSums

    @classmethod
    def of(cls, entropy: Entropy, hits: Hits, prior_log_odds: float) -> Self:
        """Return the costs of both classes, from those of all trials and the hits among them."""
        nothing = replace(entropy.costs, first=0, digits=entropy.costs.digits[..., :0])
        mapped = _Scores(np.arange(len(hits) + 1), _stratum(hits.query, hits.group, nothing), hits.score)
        return cls(
            target=_added(nothing, mapped, _TARGET, prior_log_odds),
            nontarget=_added(entropy.costs, mapped, _NONTARGET, prior_log_odds, times=-1),
        )


class _Scores(NamedTuple):
    """Stretches of scores: bounds[i] .. bounds[i + 1] of `score` are of `stratum` [i], an index in row-major order."""

    bounds: I64
    stratum: I32
    score: F64


def _stratum(query: I32, group: I16, sums: ExactSums) -> I32:
    return stratum_numbers(query, group, sums.digits.shape[1]).astype(np.int32)


def _added(sums: ExactSums, scores: _Scores, side: int, prior_log_odds: float, times: int = 1) -> ExactSums:
    """Return the sums with the costs of some scores added, or subtracted with `times` -1."""
    first, n_digits = room(softplus(side * (ends_of(scores.score) + prior_log_odds)))
    parts = [(first, first + n_digits)] if n_digits else []
    parts += [(sums.first, sums.end)] if sums.end > sums.first else []
    begin, end = min((part[0] for part in parts), default=0), max((part[1] for part in parts), default=0)
    n_queries, n_groups, _ = sums.digits.shape
    digits = np.zeros((n_queries, n_groups, end - begin), np.int64)
    digits[..., sums.first - begin : sums.end - begin] = sums.digits
    lines = digits.reshape(n_queries * n_groups, end - begin)
    add_costs(scores.bounds, scores.stratum, scores.score, prior_log_odds, side, times, begin, lines)
    return ExactSums.of(begin, digits)
