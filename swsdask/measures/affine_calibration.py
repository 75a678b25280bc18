"""The cross entropy that is left after the best affine map of scores (2013 measures document, 4.2.5).

- `cnxe_min`: the least C_nxe (`measures.cross_entropy`) of gamma s + delta, at any gamma and delta (Eq. 44-45), imputed
  trials mapped as all others: see `measures.logistic_fit`, which names the cases without a minimum.
- `cnxe_gamma`, `cnxe_delta`: the map. gamma = inf: the scores separate targets from non-targets, or all but those at
  one score; gamma = -inf: they do so upside down; delta is NaN then. gamma = 0 where the scores say nothing.
- `calibration_loss` = cnxe - cnxe_min: what is lost by scores that are no log-likelihood ratios.

gamma < 0 says that higher scores are worse: it is allowed, as Eq. 45 does, unless `nonnegative_gamma` is set. All are
not defined (NaN) where C_nxe is not.

Target trials that were given are taken one by one; of non-targets, the points that stand for them
(`statistics.moments`), which changes C_nxe by less than 1e-12 unless gamma is so large that it tells scores apart which
lie within a thousandth of each other (in units of 1, or of the hits' spread where that is small). Whether the classes
are separated is told from the scores themselves (`statistics.overlap`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from swsdask.measures import cross_entropy
from swsdask.measures.base import Value
from swsdask.measures.censoring import Censored, censored
from swsdask.measures.logistic_fit import Fit, ScoreShares, Separation, Shares, fit, prior_entropy
from swsdask.measures.population import Population, populations
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, Condition, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts
from swsdask.statistics.hits import Hits
from swsdask.statistics.moments import Moments, ZoomedMoments, nontarget_points
from swsdask.statistics.overlap import Overlap
from swsdask.statistics.strata import class_layers, class_targets, members

NEEDS: tuple[type[Statistic], ...] = (*cross_entropy.NEEDS, Hits, Moments, ZoomedMoments, Overlap)
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
        for population in populations(reference):
            trials = censored(statistics[Counts], population, settings)
            if not trials.defined:
                yield from population.overall(dict.fromkeys(self.names, np.nan))
                continue
            given = cross_entropy.given_cost(statistics, reference, population, trials)
            best = affine(statistics, reference, population, trials, settings).best
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
    trials: Censored,
    settings: EvaluationSettings,
) -> Affine:
    """The fit of a condition that has trials of both classes. It is made once and kept for as long as its moments."""
    known = _KNOWN.setdefault(statistics[Moments], {})
    key = (population.condition, reference.prior_log_odds, trials.score, settings.nonnegative_gamma)
    if key not in known:
        known[key] = _affine(statistics, reference, population, trials, settings.nonnegative_gamma)
    return known[key]


def whole_gamma(statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings) -> float:
    """The gamma of the whole evaluation, NaN where C_nxe is not defined."""
    population = populations(reference)[0]
    trials = censored(statistics[Counts], population, settings)
    return affine(statistics, reference, population, trials, settings).best.gamma if trials.defined else np.nan


def _affine(
    statistics: Mapping[type[Statistic], Any],
    reference: Reference,
    population: Population,
    trials: Censored,
    nonnegative: bool,
) -> Affine:
    hits: Hits = statistics[Hits]
    hit = hits.score[members(population.condition)[hits.query, hits.group]]
    n_target = np.append(np.ones(len(hit)), trials.imputed_target.sum()) / trials.n_target
    points = nontarget_points(statistics, reference, population.number)
    n_nontarget = np.append(points.weight, trials.imputed_nontarget.sum()) / trials.n_nontarget
    target = np.append(hit, trials.score)
    with np.errstate(over="ignore"):
        nontarget = np.append(points.z * points.unit + points.centre, trials.score)
        z = np.clip((target - points.centre) / points.unit, -_FARTHEST, _FARTHEST)
    z_nontarget = np.append(np.clip(points.z, -_FARTHEST, _FARTHEST), z[-1])
    standard = ScoreShares(_shares(z, n_target), _shares(z_nontarget, n_nontarget))
    separation = _separation(statistics, reference, population, trials, _shares(target, n_target))
    best = fit(standard, separation, reference.prior_log_odds, nonnegative=nonnegative)
    return Affine(
        scores=ScoreShares(_shares(target, n_target), _shares(nontarget, n_nontarget)),
        standard=standard,
        separation=separation,
        best=best.moved(points.centre, points.unit),
        best_of_standard=best,
    )


def _separation(
    statistics: Mapping[type[Statistic], Any],
    reference: Reference,
    population: Population,
    trials: Censored,
    target: Shares,
) -> Separation:
    """Of the scores of targets, and of non-targets moved down to the next rung of `Overlap`.

    No non-target is moved to a score that is one of the targets' ends, or past it.
    """
    if Overlap not in statistics:
        return Separation(None, None)
    overlap: Overlap = statistics[Overlap]
    hits: Hits = statistics[Hits]
    layer, _ = class_layers(reference)
    layers = np.unique(layer[class_targets(reference)[population.number] >= 0])
    hit = hits.score[members(population.condition)[hits.query, hits.group]]
    of_hits = np.bincount(np.searchsorted(overlap.rungs, hit, "right"), minlength=len(overlap.rungs))
    given = overlap.counts[layers].sum(axis=0) - of_hits
    score = np.append(-np.inf, np.append(overlap.rungs[:-1], trials.score))
    share = np.append(given, trials.imputed_nontarget.sum()) / trials.n_nontarget
    return Separation.of(ScoreShares(target, _shares(score, share)))


def _shares(score: F64, share: F64) -> Shares:
    """Without the scores that no trial has."""
    return Shares(score[share > 0.0], share[share > 0.0])
