"""The cross entropy that is left after the best affine map of scores (2013 measures document, 4.2.5).

- `cnxe_min`: the least C_nxe (`measures.cross_entropy`) of gamma s + delta, at any gamma and delta (Eq. 44-45), imputed
  trials mapped as all others: see `measures.logistic_fit`, which names the cases without a minimum.
- `cnxe_gamma`, `cnxe_delta`: the map. gamma = inf: the scores separate targets from non-targets, or all but those at
  one score; gamma = -inf: they do so upside down; delta is NaN then. gamma = 0 where the scores say nothing.
- `calibration_loss` = cnxe - cnxe_min: what is lost by scores that are no log-likelihood ratios.

gamma < 0 says that higher scores are worse: it is allowed, as Eq. 45 does, unless `nonnegative_gamma` is set. All are
not defined (NaN) where C_nxe is not.

Target trials that were given are taken one by one; of non-targets, the points that stand for them
(`statistics.moments`), which changes C_nxe by less than 1e-12. Whether the classes are separated is told from the
scores themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from swsdask.measures import cross_entropy, sweep
from swsdask.measures.base import Value
from swsdask.measures.censoring import Censored, censored
from swsdask.measures.logistic_fit import Fit, ScoreShares, Separation, fit, prior_entropy
from swsdask.measures.population import Population
from swsdask.measures.score_rows import pooled_rows
from swsdask.measures.sweep import Sweep, sweeps
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, I64, Condition, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.moments import Moments, ZoomedMoments, nontarget_points
from swsdask.statistics.strata import members

NEEDS: tuple[type[Statistic], ...] = (*cross_entropy.NEEDS, *sweep.NEEDS[1:], Moments, ZoomedMoments)
"""The statistics that the fit is made of."""

_FARTHEST = 1e300

_KNOWN: WeakKeyDictionary[Moments, dict[tuple[Condition, float, float, bool], Affine]] = WeakKeyDictionary()


class AffineCalibration:
    """cnxe_min, cnxe_gamma, cnxe_delta, calibration_loss."""

    names: ClassVar[tuple[str, ...]] = ("cnxe_min", "cnxe_gamma", "cnxe_delta", "calibration_loss")
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        prior = prior_entropy(reference.prior_log_odds)
        for population, line in sweeps(statistics, reference):
            trials = censored(statistics[Counts], population, settings)
            if not trials.defined:
                yield from population.overall(dict.fromkeys(self.names, np.nan))
                continue
            given = cross_entropy.given_cost(statistics, reference, population, trials)
            best = affine(statistics, reference, population, line, trials, settings).best
            yield from population.overall(
                {
                    "cnxe_min": best.cost / prior,
                    "cnxe_gamma": best.gamma,
                    "cnxe_delta": best.delta,
                    "calibration_loss": max(given - best.cost, 0.0) / prior,
                }
            )


@dataclass(frozen=True, eq=False)
class Affine:
    """The scores of all trials of a condition, how they separate the classes, and their best map.

    `standard` are the scores as (score - centre) / unit, and `best_of_standard` is the best map of these.
    """

    scores: ScoreShares
    standard: ScoreShares
    separation: Separation
    best: Fit
    best_of_standard: Fit


def affine(
    statistics: Mapping[type[Statistic], Any],
    reference: Reference,
    population: Population,
    line: Sweep,
    trials: Censored,
    settings: EvaluationSettings,
) -> Affine:
    """The fit of a condition that has trials of both classes. It is made once and kept for as long as its moments."""
    known = _KNOWN.setdefault(statistics[Moments], {})
    key = (population.condition, reference.prior_log_odds, trials.score, settings.nonnegative_gamma)
    if key not in known:
        known[key] = _affine(statistics, reference, population, line, trials, settings.nonnegative_gamma)
    return known[key]


def whole_gamma(statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings) -> float:
    """gamma of the whole evaluation, NaN where C_nxe is not defined."""
    population, line = next(sweeps(statistics, reference))
    trials = censored(statistics[Counts], population, settings)
    return affine(statistics, reference, population, line, trials, settings).best.gamma if trials.defined else np.nan


def _affine(
    statistics: Mapping[type[Statistic], Any],
    reference: Reference,
    population: Population,
    line: Sweep,
    trials: Censored,
    nonnegative: bool,
) -> Affine:
    hits: Hits = statistics[Hits]
    points = nontarget_points(statistics, reference, population.number)
    target = np.append(hits.score[members(population.condition)[hits.query, hits.group]], trials.score)
    n_target = np.append(np.ones(len(target) - 1), trials.imputed_target.sum())
    n_nontarget = np.append(points.weight, trials.imputed_nontarget.sum())
    with np.errstate(over="ignore"):
        z = np.clip((target - points.centre) / points.unit, -_FARTHEST, _FARTHEST)
        nontarget = np.append(points.z * points.unit + points.centre, trials.score)
    z_nontarget = np.append(np.clip(points.z, -_FARTHEST, _FARTHEST), z[-1])
    standard = _shares(z, n_target, z_nontarget, n_nontarget, trials)
    separation = _separation(line, trials)
    best = fit(standard, separation, reference.prior_log_odds, nonnegative=nonnegative)
    return Affine(
        scores=_shares(target, n_target, nontarget, n_nontarget, trials),
        standard=standard,
        separation=separation,
        best=best.moved(points.centre, points.unit),
        best_of_standard=best,
    )


def _separation(line: Sweep, trials: Censored) -> Separation:
    """From a ladder: targets are at rungs, the non-targets from a rung to the next one taken to be at the highest score
    there. It is that of the scores: after the highest target's rung the next one is the next float (see `Ladder`).
    """
    rows = pooled_rows(line, trials)
    highest = np.append(line.rejected, -np.inf)
    return Separation.of(_shares(rows.lowest, rows.target, np.maximum(rows.lowest, highest), rows.nontarget, trials))


def _shares(target: F64, n_target: F64 | I64, nontarget: F64, n_nontarget: F64 | I64, trials: Censored) -> ScoreShares:
    """The shares of trials that are so many at the scores of some targets and of some non-targets."""
    return ScoreShares(
        score=np.append(target, nontarget),
        target=np.append(n_target / trials.n_target, np.zeros(len(nontarget))),
        nontarget=np.append(np.zeros(len(target)), n_nontarget / trials.n_nontarget),
    )
