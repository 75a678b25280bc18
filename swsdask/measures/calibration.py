"""Calibration: affine and isotonic maps of scores.

Isotonic regression: the rising map of scores with the least cross entropy, by pooling adjacent violators (PAV)
---------------------------------------------------------------------------------------------------------------
Rows are distinct scores, ascending, each with its number of target and of non-target trials, so equal scores stay
together. Rows are pooled into the fewest blocks whose share of targets rises from each to the next; in a block that
share, pav, is the empirical posterior of a target, and

    llr = logit(pav) - logit(|T_true| / |T|) = log(targets / nontargets) - log(|T_true| / |T_false|),

-inf in a block without targets (only the lowest can be one) and inf in one without non-targets (only the highest).
These are the log-likelihood ratios that cost least at every prior at once (Ayer et al. 1955; Brümmer and du Preez
2013, "The PAV algorithm optimizes binary proper scoring rules"). Blocks of one class cost nothing.

With u = P_tar targets / |T_true| and v = (1 - P_tar) nontargets / |T_false| in a block, its posterior log-odds at the
prior P_tar are log(u / v), so it costs u log((u + v) / u) + v log((u + v) / v) nats.

Imputed trials are among the rows. Between the scores of targets there are only non-targets. A rising map never
separates these from the targets below them, or from each other, so one row is enough for a rung of the ladder and
everything above it up to the next rung.

The cross entropy after the best affine map of scores
-----------------------------------------------------
2013 measures document, section 4.2.5.

- `cnxe_min`: the least C_nxe (`measures.cross_entropy`) of gamma s + delta, over all gamma and delta (Eq. 44-45), with
  imputed trials mapped like all others: see `measures.logistic_fit`, which names the cases without a minimum.
- `cnxe_gamma`, `cnxe_delta`: the map. gamma = inf: the scores separate targets from non-targets, except those at one
  score; gamma = -inf: they do so in reverse order; delta is NaN then. gamma = 0 if the scores carry no information.
- `calibration_loss` = cnxe - cnxe_min: the loss because scores are not log-likelihood ratios.

A target of score -inf, or a non-target of inf, has infinite cost at every gamma > 0: then gamma = 0 and `cnxe_min` is
1. Infinite scores on the right side cost nothing, and the map is that of the finite scores.

gamma < 0 means that higher scores are worse: it is allowed, as in Eq. 45, unless `nonnegative_gamma` is set. All are
not defined (NaN) where C_nxe is not.

Given target trials are taken one by one; non-targets are represented by points (`statistics.moments`), which changes
C_nxe by less than 1e-12 unless gamma is so large that it separates scores that are within a thousandth of each other
(in units of 1, or of the spread of scores where the classes overlap if that is small). Whether the classes are
separated is decided from the scores themselves (`statistics.moments`).

The cross entropy after the best rising map of scores
-----------------------------------------------------
The map is that of pool adjacent violators, above.

- `cnxe_min_pav`: C_nxe (`measures.cross_entropy`) of all trials of a condition, imputed ones too, each at the llr of
  its block. Equal scores are pooled: the result does not depend on the order of trials, nor on the imputed score as
  long as that lies below the given ones. No rising map has less, so no gamma s + delta with gamma >= 0 has.
- `calibration_loss_pav` = cnxe - cnxe_min_pav.
- `cnxe_query_pav`: the same with a map for each query, pooled over that query's trials alone, but with the prior of the
  whole condition in llr = logit(pav) - logit(|T_true| / |T|), and averaged over all trials. MediaEval's tool calls it
  the lower bound of C_nxe.

QUIRK, under `compat = "mediaeval"`: the tool does not pool equal scores but takes trials one by one, in the order of
the files (`measures.mediaeval_tool`). Depending on that order, a system with one score for everything can have 0 there;
pooled it has 1. The lower bound that the tool prints is of scores that PAV of the whole list has overwritten,
`mediaeval_pav_cnxe` (`measures.mediaeval_tool`).

All are not defined (NaN) where C_nxe is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from swsdask.kernels.entropy import pool_adjacent_violators, sigmoid
from swsdask.measures import cross_entropy, sweep
from swsdask.measures.cross_entropy import Censored, censored
from swsdask.measures.logistic_fit import NOTHING, Fit, ScoreShares, Separation, Shares, fit, prior_entropy
from swsdask.measures.measure import Population, Scored, Values, cached
from swsdask.measures.mediaeval_tool import LIST_NEEDS, trial_list
from swsdask.measures.sweep import QuerySweep, Sweep, query_sweep, threshold_sweep
from swsdask.model.trials import F64, I64
from swsdask.statistics.counts import layers_of
from swsdask.statistics.ladder import Hits
from swsdask.statistics.moments import Moments, Overlap, WeightedScores, ZoomedMoments, nontarget_points
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Blocks:
    """Equally long int64 columns: the first row of each block, and its target and non-target trials."""

    first: I64
    target: I64
    nontarget: I64

    def llr(self, n_target: int, n_nontarget: int) -> F64:
        """Return the log-likelihood ratio of each block, given the trials of both classes: float64, -inf .. inf."""
        with np.errstate(divide="ignore"):
            return np.log(self.target / n_target) - np.log(self.nontarget / n_nontarget)

    def cost(self, n_target: int, n_nontarget: int, prior_log_odds: float) -> float:
        """The cost in nats of all trials at their blocks' llr: Eq. 43 of the 2013 measures document, without bits."""
        return float(self.costs(n_target, n_nontarget, [prior_log_odds])[0])

    def costs(self, n_target: int, n_nontarget: int, prior_log_odds: Sequence[float]) -> F64:
        """Return `cost` at each prior log-odds."""
        mixed = (self.target > 0) & (self.nontarget > 0)
        odds = np.array(prior_log_odds, np.float64)
        p_tar, other = (sigmoid(sign * odds)[:, np.newaxis] for sign in (1, -1))
        u, v = p_tar * (self.target[mixed] / n_target), other * (self.nontarget[mixed] / n_nontarget)
        costs: F64 = np.sum(u * np.log1p(v / u) + v * np.log1p(u / v), axis=1)
        return costs


def isotonic_blocks(target: I64, nontarget: I64, offsets: I64 | None = None) -> Blocks:
    """Return the blocks of int64 [n] counts by ascending score; with `offsets`, of each list of rows separately.

    The rows of list i are offsets[i] .. offsets[i + 1], int64 ascending, from 0 to n. Rows without trials are allowed.
    Raises `ValueError` if there are too many trials to count exactly: more than 2^63 pairs of a target and a
    non-target.
    """
    if int(target.sum()) * int(nontarget.sum()) >= 2**63:
        raise ValueError("too many pairs of a target and a non-target trial")
    ends = np.array([0, len(target)], np.int64) if offsets is None else offsets
    first = pool_adjacent_violators(ends, target, nontarget)
    if len(first) == 0:
        return Blocks(first, first, first)
    return Blocks(first, np.add.reduceat(target, first), np.add.reduceat(nontarget, first))


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Equally long columns: the lowest score of a row (-inf: below the first rung), target and non-target trials.

    `lowest` is float64, the others int64. The rows offsets[i] .. offsets[i + 1] are a list of ascending scores.
    """

    offsets: I64
    lowest: F64
    target: I64
    nontarget: I64


def pooled_rows(sweep: Sweep, trials: Censored) -> ScoreRows:
    """Return all trials of a condition as one list."""
    new_hits = sweep.hits - np.append(sweep.hits[1:], 0)
    ends = np.array([0, len(sweep.thresholds)])
    return _rows(ends, sweep.thresholds, new_hits, sweep.false_alarms, trials.pooled)


def query_rows(sweep: QuerySweep, trials: Censored) -> ScoreRows:
    """Return the trials of each query of a condition as a list; those of other queries are empty."""
    inside = np.repeat(trials.target + trials.nontarget > 0, np.diff(sweep.offsets))
    new_hits, false_alarms = np.where(inside, sweep.new_hits, 0), np.where(inside, sweep.false_alarms, 0)
    return _rows(sweep.offsets, sweep.thresholds, new_hits, false_alarms, trials)


def _rows(offsets: I64, thresholds: F64, new_hits: I64, false_alarms: I64, trials: Censored) -> ScoreRows:
    """Put one more row before the hits at each threshold and the false alarms at or above it.

    Imputed trials are at the lower end of their row: if `impute` is a number, it is a rung (`requested_thresholds`),
    and nothing lies below a run's lowest score.
    """
    list_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    front = offsets[:-1] + np.arange(len(offsets) - 1)
    behind = np.arange(len(thresholds)) + list_of + 1
    n_rows = len(thresholds) + len(front)
    lowest = np.full(n_rows, -np.inf)
    target, above = np.zeros((2, n_rows), np.int64)
    lowest[behind], target[behind], above[behind] = thresholds, new_hits, false_alarms
    above[front] = trials.given_nontarget
    nontarget = above - np.append(above[1:], 0)
    nontarget[front[1:] - 1] = 0
    at = front + np.bincount(list_of[thresholds <= trials.score], minlength=len(front))
    target[at] += trials.imputed_target
    nontarget[at] += trials.imputed_nontarget
    return ScoreRows(np.append(front, n_rows), lowest, target, nontarget)


NEEDS: tuple[type[Statistic], ...] = (*cross_entropy.NEEDS, Hits, Moments, ZoomedMoments, Overlap)
"""The statistics that the fit needs."""

_FARTHEST = 1e300


class AffineCalibration:
    """C_nxe after the best affine map of scores, the map, and the loss without it."""

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
    says whether the given scores have an infinite cost.
    """

    scores: ScoreShares
    standard: ScoreShares
    separation: Separation
    best: Fit
    best_of_standard: Fit
    infinite: bool


def whole_gamma(scored: Scored) -> float:
    """Return the gamma of the whole evaluation, NaN where C_nxe is not defined."""
    whole = scored.whole
    return affine(scored, whole).best.gamma if censored(scored, whole).defined else np.nan


@cached
def affine(scored: Scored, population: Population) -> Affine:
    """Fit the affine map of a condition that has trials of both classes."""
    hits = scored[Hits]
    hit = hits.score[population.condition.has(hits.query, hits.group)]
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
    points: WeightedScores,
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
        All trials of the pool, including imputed ones.
    separation
        Returns from the scores of all targets whether the classes are separated.
    prior_log_odds, nonnegative
        As for `measures.logistic_fit.fit`.
    infinite
        Whether a target has the score -inf or a non-target inf: then no map with gamma > 0 has a finite cost, falling
        maps are not tried, and the map is gamma = 0.
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

    No non-target is moved to or past the lowest or the highest score of targets.
    """
    overlap, hits = scored.get(Overlap), scored[Hits]
    if overlap is None:
        return Separation(None, None)
    trials = censored(scored, population)
    layers = layers_of(scored.reference, population.number)
    hit = hits.score[population.condition.has(hits.query, hits.group)]
    of_hits = np.bincount(np.searchsorted(overlap.rungs, hit, "right"), minlength=len(overlap.rungs))
    given = overlap.counts[layers].sum(axis=0) - of_hits
    score = np.append(-np.inf, np.append(overlap.rungs[:-1], trials.score))
    share = np.append(given, trials.imputed_nontarget.sum()) / trials.n_nontarget
    return Separation.of(ScoreShares(target, Shares(score, share).there))


class PavCalibration:
    """C_nxe after the best rising map of scores, of all queries or of each, and the loss without it."""

    names: ClassVar[tuple[str, ...]] = ("cnxe_min_pav", "calibration_loss_pav", "cnxe_query_pav")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(
        dict.fromkeys((*cross_entropy.NEEDS, *sweep.NEEDS, *sweep.QUERY_NEEDS, *LIST_NEEDS))
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
                blocks, of_queries = isotonic_blocks(*listed.rows), isotonic_blocks(*listed.rows_of_queries)
            else:
                _, blocks = pooled_blocks(scored, population)
                rows = query_rows(query_sweep(scored, population), trials)
                of_queries = isotonic_blocks(rows.target, rows.nontarget, rows.offsets)
            pooled, by_query = (each.cost(trials.n_target, trials.n_nontarget, eta) for each in (blocks, of_queries))
            costs = (pooled, max(given - pooled, 0.0), by_query)
            prior = prior_entropy(eta)
            yield population.overall({name: cost / prior for name, cost in zip(self.names, costs, strict=True)})


@cached
def pooled_blocks(scored: Scored, population: Population) -> tuple[F64, Blocks]:
    """The blocks of a condition by ascending score, and the lowest score of each: float64, -inf below all rungs."""
    rows = pooled_rows(threshold_sweep(scored, population), censored(scored, population))
    blocks = isotonic_blocks(rows.target, rows.nontarget)
    return rows.lowest[blocks.first], blocks
