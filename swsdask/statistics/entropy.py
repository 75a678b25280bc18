"""The logarithmic costs of scores that are taken for log-likelihood ratios: exact sums, trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.model.trials import F64, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.exact_sums import DIGIT, ExactSums
from swsdask.statistics.stretches import groups

_N_DIGITS = 67


@dataclass(frozen=True, eq=False)
class Entropy:
    """Sums over one system's given trials of C_log (2013 measures document, Eq. 37), in nats, by stratum.

    With eta = `Reference.prior_log_odds`: `target` sums softplus(-(s + eta)) over the trials that are mapped to a
    target, whatever their decision, `nontarget` softplus(s + eta) over all others. Every cost is a float64 (see
    `kernels.softplus`), its sum is exact.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True

    target: ExactSums
    nontarget: ExactSums

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> tuple[()]:
        """Nothing is needed."""
        return ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """The costs of one aligned cell."""
        if trials.hit is None:
            raise ValueError("entropy needs aligned trials")
        x = trials.score + reference.prior_log_odds
        stratum = trials.query.astype(np.int64) * reference.n_groups + groups(trials, np.arange(len(trials)))
        shape = (reference.n_queries, reference.n_groups, _N_DIGITS)
        target, nontarget = np.zeros((2, shape[0] * shape[1], _N_DIGITS), np.int64)
        _add(target, stratum[trials.hit], _softplus(-x[trials.hit]), 1)
        _add(nontarget, stratum, _softplus(x), 1)
        _add(nontarget, stratum[trials.hit], _softplus(x[trials.hit]), -1)
        return cls(ExactSums.carried(target.reshape(shape), 0), ExactSums.carried(nontarget.reshape(shape), 0))

    def merge(self, other: Self) -> Self:
        """The costs of both parts together."""
        return type(self)(self.target.merge(other.target), self.nontarget.merge(other.nontarget))


def _softplus(x: F64) -> F64:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _add(digits: I64, stratum: I64, cost: F64, sign: int) -> None:
    bits = cost.view(np.int64)
    exponent = bits >> 52
    mantissa = (bits & (2**52 - 1)) | (np.minimum(exponent, 1) << 52)
    position = np.maximum(exponent, 1) - 1
    place, shift = position // DIGIT, position % DIGIT
    np.add.at(digits, (stratum, place), sign * ((mantissa << shift) & (2**DIGIT - 1)))
    np.add.at(digits, (stratum, place + 1), sign * (mantissa >> (DIGIT - shift)))
