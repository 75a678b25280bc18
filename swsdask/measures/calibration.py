"""Calibration: affine and isotonic maps of scores, and offsets of queries.

The cross entropy that is left after the best affine map of scores
------------------------------------------------------------------
2013 measures document, section 4.2.5.

- `cnxe_min`: the least C_nxe (`measures.cross_entropy`) of gamma s + delta, at any gamma and delta (Eq. 44-45), imputed
  trials mapped as all others: see `measures.logistic_fit`, which names the cases without a minimum.
- `cnxe_gamma`, `cnxe_delta`: the map. gamma = inf: the scores separate targets from non-targets, or all but those at
  one score; gamma = -inf: they do so upside down; delta is NaN then. gamma = 0 where the scores say nothing.
- `calibration_loss` = cnxe - cnxe_min: what is lost by scores that are no log-likelihood ratios.

A target of score -inf, or a non-target of inf, costs infinitely much at every gamma > 0: then gamma = 0 and `cnxe_min`
is 1. Infinite scores on the right side cost nothing, and the map is that of the finite ones.

gamma < 0 says that higher scores are worse: it is allowed, as Eq. 45 does, unless `nonnegative_gamma` is set. All are
not defined (NaN) where C_nxe is not.

Target trials that were given are taken one by one; of non-targets, the points that represent them
(`statistics.moments`), which changes C_nxe by less than 1e-12 unless gamma is so large that it separates scores that
are within a thousandth of each other (in units of 1, or of the hits' spread where that is small). Whether the classes
are separated is decided by the scores themselves (`statistics.moments`).

The cross entropy that is left after the best rising map of scores
------------------------------------------------------------------
The map is that of pool adjacent violators (`measures.isotonic`).

- `cnxe_min_pav`: C_nxe (`measures.cross_entropy`) of all trials of a condition, imputed ones too, each at the llr of
  its block. Equal scores are one: the result does not depend on the order of trials, nor on the imputed score as long
  as that lies below the given ones. No rising map has less, so none of gamma s + delta, gamma >= 0, has.
- `calibration_loss_pav` = cnxe - cnxe_min_pav.
- `cnxe_query_pav`: the same with a map for each query, pooled over that query's trials alone, but with the prior of the
  whole condition in llr = logit(pav) - logit(|T_true| / |T|), and averaged over all trials. MediaEval's tool calls it
  the lower bound of C_nxe.

QUIRK, under `compat = "mediaeval"`: the tool does not pool equal scores but takes trials one by one, in the order of
the files (`measures.file_order`). A system with one score for everything can have 0 there, by that order; pooled it
has 1. The lower bound that it prints is of scores that PAV of the whole list has overwritten, `mediaeval_pav_cnxe`
(`measures.mediaeval_tool`).

All are not defined (NaN) where C_nxe is not.

TWV where every query's scores may be moved by an offset of its own
-------------------------------------------------------------------
What one threshold cannot reach: `twv_query_offset` is the TWV with each query's best threshold, hence OTWV
(`measures.optimum`), which MediaEval's tool calls the upper bound of TWV. It is the best that a calibration of the
scores that knows the query can do.

QUIRK, under `compat = "mediaeval"`: the tool cuts each query's list of trials (`measures.file_order`) anywhere, between
equal scores too, and imputed trials are in it. So its bound can be higher than any threshold gives. What it prints is
a bound of scores that PAV has overwritten, `mediaeval_offset_atwv` (`measures.mediaeval_tool`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np

from swsdask.measures import cross_entropy, file_order, sweep
from swsdask.measures.averages import Population, Values
from swsdask.measures.cross_entropy import Censored, censored
from swsdask.measures.file_order import Rows, TrialList, trial_list
from swsdask.measures.isotonic import Blocks, isotonic_blocks, pooled_rows, query_rows
from swsdask.measures.logistic_fit import NOTHING, Fit, ScoreShares, Separation, Shares, fit, prior_entropy
from swsdask.measures.measure import Scored, kept
from swsdask.measures.optimum import best_rows
from swsdask.measures.sweep import query_sweep, threshold_sweep, twv
from swsdask.model.trials import F64, I64
from swsdask.statistics.bins import Points
from swsdask.statistics.counts import class_layers, class_targets, members
from swsdask.statistics.ladder import Hits
from swsdask.statistics.moments import Moments, Overlap, ZoomedMoments, nontarget_points
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (*cross_entropy.NEEDS, Hits, Moments, ZoomedMoments, Overlap)
"""The statistics that the fit is made of."""

_FARTHEST = 1e300


class AffineCalibration:
    """cnxe_min, cnxe_gamma, cnxe_delta, calibration_loss."""

    names: ClassVar[tuple[str, ...]] = ("cnxe_min", "cnxe_gamma", "cnxe_delta", "calibration_loss")
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        prior = prior_entropy(scored.reference.prior_log_odds)
        for population in scored.populations:
            trials = censored(scored, population)
            if not trials.defined:
                yield population.overall(dict.fromkeys(self.names, np.nan))
                continue
            given = cross_entropy.given_cost(scored, population)
            best = affine(scored, population).best
            yield population.overall(
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

    `standard` are the scores as (score - centre) / unit, and `best_of_standard` is the best map of these. `infinite`
    says whether the scores as they are cost infinitely much.
    """

    scores: ScoreShares
    standard: ScoreShares
    separation: Separation
    best: Fit
    best_of_standard: Fit
    infinite: bool


def whole_gamma(scored: Scored) -> float:
    """The gamma of the whole evaluation, NaN where C_nxe is not defined."""
    whole = scored.populations[0]
    return affine(scored, whole).best.gamma if censored(scored, whole).defined else np.nan


@kept
def affine(scored: Scored, population: Population) -> Affine:
    """Fit the affine map of a condition that has trials of both classes."""
    hits = scored[Hits]
    hit = hits.score[members(population.condition)[hits.query, hits.group]]
    return fit_pool(
        Shares(hit, np.ones(len(hit))),
        nontarget_points(scored.statistics, scored.reference, population.number),
        censored(scored, population).pooled,
        partial(_separation, scored, population),
        scored.reference.prior_log_odds,
        nonnegative=scored.settings.nonnegative_gamma,
        infinite=math.isinf(cross_entropy.given_cost(scored, population)),
    )


def fit_pool(
    hit: Shares,
    points: Points,
    trials: Censored,
    separation: Callable[[Shares], Separation],
    prior_log_odds: float,
    *,
    nonnegative: bool,
    infinite: bool,
    start: Fit = NOTHING,
) -> Affine:
    """Fit the affine map of some trials.

    Parameters
    ----------
    hit
        The scores of given targets, and how many have each.
    points
        The given non-targets.
    trials
        The pool that they are in, with imputed ones.
    separation
        What tells from the scores of all targets whether the classes are separated.
    prior_log_odds, nonnegative
        As for `logistic_fit.fit`.
    infinite
        Whether a target has the score -inf or a non-target inf: then no map with gamma > 0 has a finite cost, falling
        ones are not tried, and the prior is left.
    start
        A map of (score - centre) / unit near the best one, where the search begins.
    """
    n_target = np.append(hit.share, trials.imputed_target.sum()) / trials.n_target
    n_nontarget = np.append(points.weight, trials.imputed_nontarget.sum()) / trials.n_nontarget
    target = np.append(hit.score, trials.score)
    with np.errstate(over="ignore"):
        nontarget = np.append(points.z * points.unit + points.centre, trials.score)
        z = np.clip((target - points.centre) / points.unit, -_FARTHEST, _FARTHEST)
    z_nontarget = np.append(np.clip(points.z, -_FARTHEST, _FARTHEST), z[-1])
    standard = ScoreShares(Shares(z, n_target).there, Shares(z_nontarget, n_nontarget).there)
    apart = separation(Shares(target, n_target).there)
    best = fit(standard, apart, prior_log_odds, nonnegative=nonnegative, start=start)
    if infinite:
        best = Fit(0.0, 0.0, prior_entropy(prior_log_odds))
    return Affine(
        scores=ScoreShares(Shares(target, n_target).there, Shares(nontarget, n_nontarget).there),
        standard=standard,
        separation=apart,
        best=best.moved(points.centre, points.unit),
        best_of_standard=best,
        infinite=infinite,
    )


def _separation(scored: Scored, population: Population, target: Shares) -> Separation:
    """Compare the scores of targets with those of non-targets, the latter moved down to the next rung of `Overlap`.

    No non-target is moved to a score that is one of the targets' ends, or past it.
    """
    overlap, hits = scored.get(Overlap), scored[Hits]
    if overlap is None:
        return Separation(None, None)
    trials = censored(scored, population)
    layer, _ = class_layers(scored.reference)
    layers = np.unique(layer[class_targets(scored.reference)[population.number] >= 0])
    hit = hits.score[members(population.condition)[hits.query, hits.group]]
    of_hits = np.bincount(np.searchsorted(overlap.rungs, hit, "right"), minlength=len(overlap.rungs))
    given = overlap.counts[layers].sum(axis=0) - of_hits
    score = np.append(-np.inf, np.append(overlap.rungs[:-1], trials.score))
    share = np.append(given, trials.imputed_nontarget.sum()) / trials.n_nontarget
    return Separation.of(ScoreShares(target, Shares(score, share).there))


class PavCalibration:
    """cnxe_min_pav, calibration_loss_pav, cnxe_query_pav."""

    names: ClassVar[tuple[str, ...]] = ("cnxe_min_pav", "calibration_loss_pav", "cnxe_query_pav")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(
        dict.fromkeys((*cross_entropy.NEEDS, *sweep.NEEDS, *sweep.QUERY_NEEDS, *file_order.NEEDS))
    )

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        eta = scored.reference.prior_log_odds
        for population in scored.populations:
            trials = censored(scored, population)
            if not trials.defined:
                yield population.overall(dict.fromkeys(self.names, np.nan))
                continue
            given = cross_entropy.given_cost(scored, population)
            if scored.settings.compat == "mediaeval":
                listed = trial_list(scored, population)
                blocks, of_queries = _unpooled(listed.rows), _unpooled(listed.rows_of_queries)
            else:
                _, blocks = pooled_blocks(scored, population)
                rows = query_rows(query_sweep(scored, population), trials)
                of_queries = isotonic_blocks(rows.target, rows.nontarget, rows.offsets)
            pooled, by_query = (each.cost(trials.n_target, trials.n_nontarget, eta) for each in (blocks, of_queries))
            costs = (pooled, max(given - pooled, 0.0), by_query)
            prior = prior_entropy(eta)
            yield population.overall({name: cost / prior for name, cost in zip(self.names, costs, strict=True)})


def _unpooled(rows: Rows) -> Blocks:
    return isotonic_blocks(rows.target, rows.nontarget, rows.offsets)


@kept
def pooled_blocks(scored: Scored, population: Population) -> tuple[F64, Blocks]:
    """The blocks of a condition by ascending score, and the lowest score of each: float64, -inf below all rungs."""
    rows = pooled_rows(threshold_sweep(scored, population), censored(scored, population))
    blocks = isotonic_blocks(rows.target, rows.nontarget)
    return rows.lowest[blocks.first], blocks


class QueryOffset:
    """twv_query_offset."""

    names: ClassVar[tuple[str, ...]] = ("twv_query_offset",)
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*sweep.QUERY_NEEDS, *file_order.NEEDS)))

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        beta = scored.weights.beta
        for population in scored.populations:
            if scored.settings.compat == "mediaeval":
                trials = trial_list(scored, population)
                misses, false_alarms = np.zeros((2, scored.reference.n_queries), np.int64)
                misses[population.with_targets], false_alarms[population.with_targets] = _of_cuts(trials, beta)
            else:
                own, best = query_sweep(scored, population), best_rows(scored, population, "none")
                misses, false_alarms = population.targets - own.hits[best], own.false_alarms[best]
            yield population.overall({"twv_query_offset": twv(*population.rates_of(misses, false_alarms), beta)})


def _of_cuts(trials: TrialList, beta: float) -> tuple[I64, I64]:
    """Misses and false alarms of every query of a list, int64, where its trials are best cut in two."""
    found = np.zeros((2, trials.n_queries), np.int64)
    targets = trials.target[trials.by_query]
    for query, (begin, end) in enumerate(pairwise(trials.offsets.tolist())):
        target = targets[begin:end]
        missed, rejected = (np.append(0, np.cumsum(side)) for side in (target, ~target))
        alarms = rejected[-1] - rejected
        loss = missed / max(missed[-1], 1) + beta * (alarms / max(alarms[0], 1))
        best = int(np.argmin(loss))
        found[:, query] = missed[best], alarms[best]
    return found[0], found[1]
