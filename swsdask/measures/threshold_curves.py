"""Curves of a threshold: detection error trade-off (DET), precision and recall; and, at the Bayes thresholds of priors,
empirical cross entropy (ECE) and applied probability of error (APE).

The detection error trade-off: P_miss against P_fa as one threshold moves over all queries
------------------------------------------------------------------------------------------
The vertices of a curve are: reject everything, accept the scores >= that of each hit, and accept everything. Straight
lines join them. Between two vertices only false alarms are added, which a straight line takes as evenly spread; every
vertex itself is exact. Curves:

- "det": rates averaged over queries (2013 measures document, Eq. 4-5).
- "det_pooled": all queries that averages count as one set of trials (see `measures.rates`, and its QUIRK about |Q|).
  There is no curve if N_nt is negative.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: "det_pooled" counts the false alarms of the queries that averages
leave out, as NIST's tools do (KWSEval -P), and ends at the lowest score of all queries.

Two measures are read from the averaged curve, linearly between vertices:

- `eer`: the rate at which P_miss = P_fa. NaN if the system never accepts enough for the two to meet.
- `p_miss@P_FA`: P_miss at each of the settings' `p_fa_points`, the lowest if there are several; NaN beyond the curve's
  end.

Precision and recall at thresholds, F1 and its best threshold, and the precision-recall curve
---------------------------------------------------------------------------------------------
With H hits among A accepted trials and R targets: precision = H / A, recall = H / R (Eq. 5.1-5.4 of the thesis), and
F1 = 2 H / (A + R), their harmonic mean; `model.measures.TABLE` has these quotients. Over all queries the counts are
added first (Eq. 5.5-5.6). Precision is not defined (NaN) if nothing is accepted, recall and F1 without targets; F1 of
accepting nothing is 0.

- `precision`, `recall`, `f1`: of the trials with decision YES; NaN where a trial has no decision.
- `precision@THETA`, `recall@THETA`, `f1@THETA`: of the trials with score >= each of the settings' `thresholds`.
- `best_f1`: the highest F1 at any threshold, `best_f1_threshold` the lowest threshold that gives it (inf without hits).
  Between the scores of hits only false alarms are added, so it is one of these scores.

Each is given over all queries and per query. Curves are over all queries, with x = recall and y = precision at the
score of each hit, from the highest down, and at the lowest score of all: "precision_recall", and
"precision_recall_interpolated", where precision is the highest at this recall or a higher one (Eq. 5.7).

Empirical cross entropy (ECE): the information in scores at operating points other than the evaluation's
--------------------------------------------------------------------------------------------------------
C_xe (`measures.cross_entropy`, Eq. 43 of the 2013 measures document) in bits as a function of x = logit(P_tar), for
x = -10, -9.75 .. 10 and for the evaluation's operating point. The threshold of a point is the Bayes threshold -x.

- "ece_default": the scores are 0, which is the prior entropy (Eq. 39).
- "ece_actual": the scores as given. Given non-target trials are represented as in `measures.calibration`.
- "ece_affine": the scores after the affine map that is best at the evaluation's operating point (gamma, delta of
  Eq. 44).
- "ece_pav": the scores after the best rising map, which is the same at every prior.

Where "ece_actual" lies above "ece_default", the scores do harm. A condition without trials of both classes has no
curves. (Ramos and Gonzalez-Rodriguez 2013, "Reliable support: measuring calibration of likelihood ratios".)

Applied probability of error (APE): how often decisions at the Bayes threshold are wrong
----------------------------------------------------------------------------------------
At the prior log-odds x = logit(P_tar), with costs of 1, the Bayes threshold for log-likelihood ratios is -x, and the
error rate there is P_tar P_miss + (1 - P_tar) P_fa. The rates pool the trials of a condition, imputed ones too
(`measures.cross_entropy`), as C_xe does. x runs over the grid of ECE, above.

- "ape_default": the scores are 0, so that the likelier class is chosen: min(P_tar, 1 - P_tar).
- "ape_actual": the scores as given. Misses are exact. Given non-target trials are represented as in
  `measures.calibration`: false alarms are exact except in the bin of the threshold (`statistics.moments`).
- "ape_affine": the same for gamma s + delta, the map of `measures.calibration`.
- "ape_pav": the least error rate of any threshold, which is that of the best rising map.

Where "ape_actual" lies above "ape_default", decisions by the scores are worse than decisions by the prior. A condition
without trials of both classes has no curves. (Brümmer and du Preez 2006, "Application-independent evaluation of speaker
detection".)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

import numpy as np

from swsdask.kernels.entropy import logistic_cost, sigmoid, softplus
from swsdask.kernels.sums import grid_moments, window_sums
from swsdask.measures import cross_entropy, sweep
from swsdask.measures.calibration import Affine, Blocks, affine, pooled_blocks
from swsdask.measures.cross_entropy import Censored, censored
from swsdask.measures.logistic_fit import ScoreShares, prior_entropy
from swsdask.measures.measure import Curve, Population, Scored, Values
from swsdask.measures.rates import confusion_counts, pooled_rates, undefined_without
from swsdask.measures.sweep import (
    QuerySweep,
    query_sweep,
    threshold_sweep,
)
from swsdask.model.columns import ratio
from swsdask.model.measures import TABLE, Accepted
from swsdask.model.trials import F64, I64, Bool
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import AllScores
from swsdask.statistics.moments import Moments
from swsdask.statistics.statistic import Statistic


class DetectionErrorTradeoff:
    """Equal error rate, and miss probability at given false alarm probabilities."""

    names: ClassVar[tuple[str, ...]] = ("eer", "p_miss@")
    needs: ClassVar[tuple[type[Statistic], ...]] = sweep.NEEDS

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        for population in scored.populations:
            sweep = threshold_sweep(scored, population)
            at = sweep.vertices
            p_fa, p_miss = sweep.p_fa[at], sweep.p_miss[at]
            numbers = {"eer": _equal_error_rate(p_fa, p_miss)}
            numbers |= {f"p_miss@{point!r}": _p_miss_at(point, p_fa, p_miss) for point in scored.settings.p_fa_points}
            yield population.overall(numbers)


def _error_tradeoff(scored: Scored) -> Iterator[Curve]:
    """Yield both curves of every condition, x = P_fa, y = P_miss, from the highest threshold to the lowest.

    "det_pooled" only if the false alarms that it counts are known: measures of users may leave out `AllScores`.
    """
    for population in scored.populations:
        sweep = threshold_sweep(scored, population)
        at = sweep.vertices
        threshold, name = sweep.thresholds[at], population.condition.name
        yield Curve(name, "det", threshold, sweep.p_fa[at], sweep.p_miss[at])
        if scored.reference.every_score and AllScores not in scored:
            continue
        hits, false_alarms = sweep.hits[at], sweep.false_alarms[at]
        if (every := scored.get(AllScores)) is not None:
            scores = every.score[population.all_queries[every.query] & population.condition.groups[every.group]]
            if len(scores) and scores[0] < threshold[-1]:
                threshold, hits = np.append(threshold, scores[0]), np.append(hits, hits[-1])
            false_alarms = len(scores) - np.searchsorted(scores, threshold) - hits
        p_miss, p_fa = pooled_rates(scored, population, hits, false_alarms)
        yield Curve(name, "det_pooled", threshold, np.where(np.signbit(p_fa), np.nan, p_fa), p_miss)


def _equal_error_rate(p_fa: F64, p_miss: F64) -> float:
    """Return the rate at which a curve of ascending P_fa and descending P_miss crosses the diagonal from above."""
    crossed = np.flatnonzero(p_fa >= p_miss)
    if len(crossed) == 0:
        return np.nan
    after = int(crossed[0])
    above, below = p_miss[after - 1] - p_fa[after - 1], p_fa[after] - p_miss[after]
    return float(p_fa[after - 1] + (p_fa[after] - p_fa[after - 1]) * (above / (above + below)))


_TOLERANCE = 1e-12
"""A relative tolerance: P_fa of a vertex, a mean of rounded quotients, may be this far from the point that it is at."""


def _p_miss_at(point: float, p_fa: F64, p_miss: F64) -> float:
    after = int(np.searchsorted(p_fa, point * (1 + _TOLERANCE), side="right"))
    if after == 0 or np.isnan(p_fa[0]):
        return np.nan
    if after == len(p_fa):
        return float(p_miss[-1]) if point * (1 - _TOLERANCE) <= p_fa[-1] else np.nan
    share = max(0.0, (point - p_fa[after - 1]) / (p_fa[after] - p_fa[after - 1]))
    return float(p_miss[after - 1] + share * (p_miss[after] - p_miss[after - 1]))


_QUOTIENTS = {row.name: row.quotient for row in TABLE if row.quotient is not None}
"""The measures that are quotients of hits, accepted trials and targets; those at thresholds end in "@"."""


class PrecisionRecall:
    """Precision, recall and F1 by decision and at thresholds; the best F1 and its threshold."""

    names: ClassVar[tuple[str, ...]] = (*_QUOTIENTS, "best_f1", "best_f1_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*sweep.NEEDS, *sweep.QUERY_NEEDS)))

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall and per query."""
        defined = undefined_without(scored[Counts].has_decisions)
        for population in scored.populations:
            line, lines = threshold_sweep(scored, population), query_sweep(scored, population)
            n_target = np.array([population.n_target])
            counts = confusion_counts(scored, population)
            hits, accepted = counts.hit, counts.hit + counts.false_alarm
            all_hits, all_accepted = (np.array([population.total(column)]) for column in (hits, accepted))
            numbers = _rates(all_hits, all_accepted, n_target)
            numbers = {name: value * defined for name, value in numbers.items()}
            columns = {name: value * defined for name, value in _rates(hits, accepted, population.targets).items()}
            for theta in scored.settings.thresholds:
                at, rows = slice(place := line.place(theta + 0.0), place + 1), _rows(lines, theta)
                numbers |= _rates(line.hits[at], line.hits[at] + line.false_alarms[at], n_target, theta)
                accepted = lines.hits[rows] + lines.false_alarms[rows]
                columns |= _rates(lines.hits[rows], accepted, population.targets, theta)
            numbers["best_f1"], numbers["best_f1_threshold"] = _best(
                line.thresholds, line.hits, line.false_alarms, np.array([0, len(line.hits)]), n_target
            )
            columns["best_f1"], columns["best_f1_threshold"] = _best(
                lines.thresholds, lines.hits, lines.false_alarms, lines.offsets, population.targets
            )
            yield population.overall({name: float(value[0]) for name, value in numbers.items()})
            yield population.by_query(columns)


def _precision_recall(scored: Scored) -> Iterator[Curve]:
    """Yield both curves of every condition that has targets, from the highest threshold to the lowest."""
    for population in scored.populations:
        line = threshold_sweep(scored, population)
        accepted = line.hits + line.false_alarms
        at = line.vertices[accepted[line.vertices] > 0]
        if not population.n_target:
            continue
        recall, precision = line.hits[at] / population.n_target, line.hits[at] / accepted[at]
        name, threshold = population.condition.name, line.thresholds[at]
        yield Curve(name, "precision_recall", threshold, recall, precision)
        yield Curve(name, "precision_recall_interpolated", threshold, recall, _highest_from(recall, precision))


def _highest_from(recall: F64, precision: F64) -> F64:
    """Return the highest precision at each recall, ascending, or a higher one."""
    highest: F64 = np.maximum.accumulate(precision[::-1])[::-1]
    return highest[np.searchsorted(recall, recall)]


def _rates(hits: I64, accepted: I64, targets: I64, theta: float | None = None) -> dict[str, F64]:
    """Return the quotients by decision, or at a threshold."""
    found, point = Accepted(hits, accepted, targets), "" if theta is None else repr(theta)
    wanted = {name: each for name, each in _QUOTIENTS.items() if name.endswith("@") == bool(point)}
    return {f"{name}{point}": ratio(*quotient(found)) for name, quotient in wanted.items()}


def _rows(lines: QuerySweep, threshold: float) -> I64:
    """Return the row of every query at a threshold that all queries have."""
    rows: I64 = np.flatnonzero(lines.thresholds == threshold)
    return rows


def _best(thresholds: F64, hits: I64, false_alarms: I64, offsets: I64, targets: I64) -> tuple[F64, F64]:
    """Return the highest F1 in rows offsets[i] .. offsets[i + 1], and the lowest threshold that has it.

    Rows are by ascending threshold, the last one accepts nothing. Rows with the same hits as the next row are skipped:
    they have no fewer false alarms.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    f1 = ratio(2 * hits, hits + false_alarms + targets[query])
    fewer = np.append(hits[1:], 0)
    f1[hits == fewer] = -1.0
    f1[offsets[1:] - 1] = 0.0
    f1[np.isnan(f1)] = 0.0
    highest = np.maximum.reduceat(f1, offsets[:-1])
    at = np.flatnonzero(f1 == highest[query])
    first = at[np.searchsorted(at, offsets[:-1])]
    defined = np.where(targets > 0, 1.0, np.nan)
    return highest * defined, thresholds[first] * defined


_PRIOR_NEEDS: tuple[type[Statistic], ...] = tuple(dict.fromkeys((*cross_entropy.NEEDS, *sweep.OF_SWEEP, Moments)))
"""The statistics that curves over priors need."""

_GRID = np.arange(-40, 41) / 4


def _with_both_classes(scored: Scored) -> Iterator[tuple[Population, Censored, Affine, Blocks]]:
    """Yield the populations that have curves, each with its trials, its affine map and its isotonic blocks."""
    for population in scored.populations:
        trials = censored(scored, population)
        if trials.defined:
            yield population, trials, affine(scored, population), pooled_blocks(scored, population)[1]


def _cross_entropy(scored: Scored) -> Iterator[Curve]:
    """Yield the four curves of every condition, from the lowest prior to the highest."""
    priors = priors_of(scored.reference.prior_log_odds)
    for population, trials, fitted, blocks in _with_both_classes(scored):
        costs = {
            "ece_default": _prior_entropies(scored.reference.prior_log_odds),
            "ece_actual": np.full(len(priors), np.inf) if fitted.infinite else costs_over_priors(fitted.scores, priors),
            "ece_affine": _mapped_costs(fitted, priors),
            "ece_pav": blocks.costs(trials.n_target, trials.n_nontarget, priors.tolist()),
        }
        for name, cost in costs.items():
            with np.errstate(over="ignore"):
                bits = np.array(cost) / math.log(2.0)
            yield Curve(population.condition.name, name, -priors, priors, bits)


@lru_cache(maxsize=2)
def priors_of(prior_log_odds: float) -> F64:
    """Return the prior log-odds at which curves have points, ascending; that of the evaluation is one."""
    priors: F64 = np.union1d(_GRID, [prior_log_odds])
    priors.flags.writeable = False
    return priors


@lru_cache(maxsize=2)
def _prior_entropies(prior_log_odds: float) -> F64:
    return np.array([prior_entropy(x) for x in priors_of(prior_log_odds).tolist()])


def _mapped_costs(fitted: Affine, priors: F64) -> F64:
    """Return the costs after the best map; if gamma is infinite, of the score that the separated classes share."""
    best = fitted.best_of_standard
    if math.isfinite(best.gamma):
        return costs_over_priors(fitted.standard, priors, best.gamma, best.delta)
    shared = fitted.separation.rising if best.gamma > 0.0 else fitted.separation.falling
    return np.array([0.0 if shared is None else shared.cost(x) for x in priors.tolist()])


def costs_over_priors(scores: ScoreShares, priors: F64, gamma: float = 1.0, delta: float = 0.0) -> F64:
    """Return C of gamma s + delta in nats, as `ScoreShares.cost`, at many prior log-odds: float64.

    softplus(x + eta) of the x near a grid point b is the Taylor series about b + eta, up to the seventh power of x - b.
    The points are 1/8 apart, so the truncation error is below 1e-14 of the cost. With eta on the grid too, the
    derivatives are computed once for all points and priors: a cost is a sum over points, however many scores there are.
    """
    on_grid = priors * _PER_UNIT == np.rint(priors * _PER_UNIT)
    found = np.array([0.0 if known else scores.cost(x, gamma, delta) for x, known in zip(priors, on_grid, strict=True)])
    for shares, sign in ((scores.target, -1), (scores.nontarget, 1)):
        with np.errstate(over="ignore"):
            x = sign * (gamma * shares.score + delta)
        near = np.abs(x) < _FARTHEST
        steps = np.rint(sign * priors[on_grid] * _PER_UNIT).astype(np.int64)
        total = _costs_of_near(x[near], shares.share[near], steps)
        far, share = x[~near], shares.share[~near]
        if len(far):
            total += [logistic_cost(far, share, 1.0, step / _PER_UNIT) for step in steps.tolist()]
        found[on_grid] += sigmoid(-sign * priors[on_grid]) * total
    return found


_PER_UNIT = 8.0
_FARTHEST = 64.0


def _costs_of_near(x: F64, share: F64, steps: I64) -> F64:
    """Return the sums of share softplus(x + step / 8), |x| < 64, for every step."""
    if len(x) == 0 or len(steps) == 0:
        return np.zeros(len(steps))
    first, last = (int(np.rint(end * _PER_UNIT)) for end in (x.min(), x.max()))
    lowest, n_points = int(steps.min()), last - first + 1
    moments = grid_moments(x, share, _PER_UNIT, first, n_points, _TERMS)
    derivatives = _softplus_derivatives(np.arange(first + lowest, first + n_points + steps.max()) / _PER_UNIT)
    return window_sums(moments, derivatives, steps - lowest)


_TERMS = 8
"""The number of terms of the Taylor series."""


def _softplus_derivatives(x: F64) -> F64:
    """Return softplus and its first seven derivatives: float64 [8, n]."""
    small = np.exp(-np.abs(x))
    p = np.where(x >= 0.0, 1.0, small) / (1.0 + small)
    slope = small / (1.0 + small) ** 2
    bend = slope * np.where(x >= 0.0, small - 1.0, 1.0 - small) / (1.0 + small)
    fourth, fifth = slope * (1.0 - 6.0 * slope), bend * (1.0 - 12.0 * slope)
    sixth = slope * (1.0 - 30.0 * slope + 120.0 * slope**2)
    seventh = bend * (1.0 - 60.0 * slope + 360.0 * slope**2)
    return np.stack([softplus(x), p, slope, bend, fourth, fifth, sixth, seventh])


def _bayes_error(scored: Scored) -> Iterator[Curve]:
    """Yield the curves of every condition, from the lowest prior to the highest."""
    priors = priors_of(scored.reference.prior_log_odds)
    for population, trials, fitted, blocks in _with_both_classes(scored):
        drawn = {
            "ape_default": _error_rate(priors, priors < 0.0, priors >= 0.0),
            "ape_actual": bayes_error_rates(fitted.scores, priors),
            "ape_affine": _mapped_error_rates(fitted, priors),
            "ape_pav": _least_error_rates(blocks, trials, priors),
        }
        for name, rate in drawn.items():
            yield Curve(population.condition.name, name, -priors, priors, rate)


def bayes_error_rates(scores: ScoreShares, priors: F64, gamma: float = 1.0, delta: float = 0.0) -> F64:
    """Error rates of accepting gamma s + delta at and above the Bayes thresholds of prior log-odds: float64.

    The points of non-targets have lost the last bits of the scores, so points next to a threshold count as at it.
    """
    below = []
    for shares, lost in ((scores.target, 0.0), (scores.nontarget, _LOST)):
        with np.errstate(over="ignore"):
            x = gamma * shares.score + delta
        order = np.argsort(x, kind="stable")
        thresholds = -priors - lost * np.maximum(np.abs(priors), 1.0)
        rejected = np.append(0.0, np.cumsum(shares.share[order]))
        below.append(rejected[np.searchsorted(x[order], thresholds)])
    p_miss, p_tn = below
    return _error_rate(priors, np.minimum(p_miss, 1.0), np.maximum(1.0 - p_tn, 0.0))


_LOST = 2.0**-30


def _mapped_error_rates(fitted: Affine, priors: F64) -> F64:
    """Return the error rates after the best map; if gamma is infinite, only at the score that both classes share."""
    best = fitted.best
    if math.isfinite(best.gamma):
        return bayes_error_rates(fitted.scores, priors, best.gamma, best.delta)
    shared = fitted.separation.rising if best.gamma > 0.0 else fitted.separation.falling
    of_target, of_nontarget = (0.0, 0.0) if shared is None else shared
    rate: F64 = np.minimum(sigmoid(priors) * of_target, sigmoid(-priors) * of_nontarget)
    return rate


def _least_error_rates(blocks: Blocks, trials: Censored, priors: F64) -> F64:
    """Return the least error rates of any threshold, which are those at the Bayes thresholds of the blocks."""
    p_miss = np.append(0, np.cumsum(blocks.target)) / trials.n_target
    p_fa = 1.0 - np.append(0, np.cumsum(blocks.nontarget)) / trials.n_nontarget
    least: F64 = _error_rate(priors[:, np.newaxis], p_miss, p_fa).min(axis=1)
    return least


def _error_rate(prior_log_odds: F64, p_miss: F64 | Bool, p_fa: F64 | Bool) -> F64:
    """Return P_tar P_miss + (1 - P_tar) P_fa."""
    odds = np.ascontiguousarray(prior_log_odds).ravel()
    p_tar, other = (sigmoid(sign * odds).reshape(prior_log_odds.shape) for sign in (1, -1))
    rate: F64 = p_tar * p_miss + other * p_fa
    return rate


def curves(scored: Scored) -> Iterator[Curve]:
    """Yield the curves of every condition whose statistics were computed."""
    if scored.has(sweep.OF_SWEEP):
        yield from _error_tradeoff(scored)
        yield from _precision_recall(scored)
    if scored.has(_PRIOR_NEEDS):
        yield from _cross_entropy(scored)
        yield from _bayes_error(scored)
