"""The logarithmic costs of scores that are taken for log-likelihood ratios: exact sums, trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from swsdask.kernels.entropy import add_costs
from swsdask.kernels.softplus import softplus
from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.exact_sums import ExactSums, room
from swsdask.statistics.stretches import groups, stretches

_TARGET, _NONTARGET = -1, 1
"""The sign of the score in the cost of a trial."""


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
        parts = stretches(trials)
        every = _Scores(parts.bounds, _stratum(parts.query, parts.group, reference), parts.score)
        hit, score = trials.hit, trials.score[trials.hit]
        mapped = _Scores(np.arange(len(hit) + 1), _stratum(trials.query[hit], groups(trials, hit), reference), score)
        return cls(
            target=_sums(reference, _TARGET, mapped),
            nontarget=_sums(reference, _NONTARGET, every, without=mapped),
        )

    def merge(self, other: Self) -> Self:
        """The costs of both parts together."""
        return type(self)(self.target.merge(other.target), self.nontarget.merge(other.nontarget))


class _Scores(NamedTuple):
    """Stretches of scores: bounds[i] .. bounds[i + 1] of `score` are of `stratum` [i], its place in row-major order."""

    bounds: I64
    stratum: I32
    score: F64


def _stratum(query: I32, group: I16, reference: Reference) -> I32:
    return query * np.int32(reference.n_groups) + group


def _sums(reference: Reference, side: int, scores: _Scores, without: _Scores | None = None) -> ExactSums:
    """The costs of some scores; `without` those that are among them but do not count."""
    ends = np.array([scores.score.min(), scores.score.max()] if len(scores.score) else [])
    first, n_digits = room(softplus(side * (ends + reference.prior_log_odds)))
    digits = np.zeros((reference.n_queries * reference.n_groups, n_digits), np.int64)
    for part, times in ((scores, 1), (without, -1)):
        if part is not None:
            add_costs(part.bounds, part.stratum, part.score, reference.prior_log_odds, side, times, first, digits)
    return ExactSums.of(first, digits.reshape(reference.n_queries, reference.n_groups, n_digits))
