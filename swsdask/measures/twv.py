"""Term-weighted value: actual, maximum, optimum, supremum, at chosen thresholds, with offsets; where a system loses.

OTWV: the TWV of the best threshold for every query (NIST's optimum TWV)
------------------------------------------------------------------------
For each query the TWV of that query alone is maximised over all scores of the system and over rejecting everything
(0); it can peak only at the score of one of the query's own hits. Of equal values, decided in exact arithmetic, the
lowest threshold counts. `otwv_p_miss` and `otwv_p_fa` are averages (Eq. 4-5) at these thresholds, `otwv` is their TWV
(Eq. 6). Per query there is also `otwv_threshold`, the smallest accepted score of the query, inf if rejecting everything
is best.

QUIRK, under `compat = "kwseval"`: KWSEval cannot reject everything. Since a higher score of another query rejects all
of a query, this matters only for the query with the highest score of all: there that score is tried instead, even if
only false alarms have it. Without trials nothing is defined. (With queries without targets, KWSEval's OTWV depends on
the order of a hash table; ours does not.)

QUIRK, under `compat = "kwseval"`: `otwv_threshold` of a query is KWSEval's. Its sweep stops at the lowest score of the
whole condition, t, that gives the query's optimum; then it looks up scores of the query: m, the lowest accepted hit,
and f, the non-target whose number in ascending order, from 0, is the count of accepted false alarms. Both may be
missing. The threshold is the lower of m and f if both are above t, else the highest of m, f and t. If both are missing
and t is below 0, the optimum of the query is not defined; averages over queries are.

ATWV: the TWV of the system's own decisions
-------------------------------------------
- `atwv`: Eq. 6 of the 2013 measures document with the errors of the YES/NO decisions; no threshold is applied, so the
  system may use its own threshold for each query. Per query: 1 - (P_miss(q) + beta P_fa(q)).
- `actual_threshold`: if one threshold explains the decisions, the middle of the lowest YES and the highest NO score
  (lowest YES >= highest NO); the lowest YES score if nothing is NO. NaN if no threshold does, or nothing is YES.

Not defined (NaN) where a trial has no decision.

QUIRK, under `compat = "kwseval"`: `actual_threshold` is what KWSEval prints as "Dec. Thresh" of the actual decisions.
Over all queries it includes those that averages leave out, and is the highest NO score if nothing is YES. If no
threshold explains the decisions, KWSEval prints no report at all.

TWV at given thresholds
-----------------------
Eq. 6 of the 2013 measures document with the errors of accepting scores >= theta.

- `twv_bayes`: at the Bayes threshold log(beta) (Eq. 31): the TWV if scores are used as log-likelihood ratios, without
  a threshold of the system's own. (Eq. 30 accepts only scores above it; here, as everywhere, a score equal to the
  threshold is accepted.)
- `twv@THETA`: at each of the settings' `thresholds`.

MTWV: the highest TWV that one threshold over all queries gives
---------------------------------------------------------------
2013 measures document, section 2.3. The maximum is over all distinct scores and over rejecting everything, which has
TWV = 0. Lowering the threshold between the scores of two hits only adds false alarms, so only the scores of hits are
tried. Of thresholds with exactly the same TWV (decided in exact arithmetic) the lowest counts.

- `mtwv`, and `mtwv_p_miss`, `mtwv_p_fa` at its threshold.
- `mtwv_threshold`: the smallest accepted score (NIST's convention); inf if rejecting everything is best.
- `mtwv_rejected_threshold`: the largest rejected score (as MediaEval's tool prints it); -inf if nothing is rejected.

QUIRK, under `compat = "kwseval"`: KWSEval cannot reject everything. Its MTWV is over the distinct scores only, so it
can be negative, and the highest score of all is tried too, even if only false alarms have it. If no query has targets,
so that there is no TWV, it prints P_fa of accepting everything and the lowest score as the threshold; without any
score, no threshold.

QUIRK, under `compat = "stdeval"`: if rejecting everything is best, the threshold is the highest score.

QUIRK, under `compat = "mediaeval"`: imputed trials are accepted too if the threshold is low enough, so their score is a
threshold (`measures.sweep`). Ties are decided in floating point.

STWV: the TWV without any false alarm or wrong NO
-------------------------------------------------
NIST's supremum TWV. `stwv_p_miss` averages (Eq. 4 of the 2013 measures document) the share of a query's targets that no
detection is mapped to, whatever its decision; `stwv` = 1 - `stwv_p_miss`. It bounds MTWV and OTWV from above.

QUIRK, under `compat = "kwseval"`: without trials it is not defined.

The operating point as single numbers
-------------------------------------
- `beta`: the weight of P_fa in TWV (2013 measures document, Eq. 7; from the data: Eq. 18).
- `effective_prior`: P_tar = 1 / (1 + beta), the prior of the same application at equal costs (Eq. 23).
- `bayes_threshold`: -logit(P_tar) = log(beta), the best threshold for scores that are log-likelihood ratios (Eq. 31).

Where a system loses: the parts of 1 - ATWV
-------------------------------------------
Over all queries of a condition. In the sequence 1, STWV, OTWV, MTWV, ATWV each value has one more constraint than the
one before it; a part is the cost of that constraint.

- `loss_not_found` = 1 - STWV: targets that no detection is mapped to.
- `loss_within_query` = STWV - OTWV: false alarms that score like hits of their own query.
- `loss_across_queries` = OTWV - MTWV: scores that mean different things in different queries, so that one threshold
  does not suit all.
- `loss_threshold` = MTWV - ATWV: decisions that differ from those of the best threshold. Negative if decisions by query
  are better than any single threshold.

Each part is one subtraction of two measures, rounded once; together they are 1 - ATWV. A part is not defined (NaN) if
one of its two measures is not. `loss_not_found` and `loss_within_query` are never negative. `loss_across_queries` can
be, but only if P_miss and P_fa average over different queries (`measures.measure`): OTWV is then best for each query,
not for the averages.

QUIRK, under `compat = "kwseval"`: MTWV and OTWV cannot reject everything, so both can be negative; `loss_threshold` is
negative for a system that rejects everything if no threshold is better than that.

QUIRK, under `compat = "mediaeval"`: MTWV may accept imputed trials, which the other measures never do. So
`loss_across_queries` and `loss_threshold` are not defined.

TWV with an offset of the scores of each query
----------------------------------------------
One threshold cannot reach this value: `twv_query_offset` is the TWV with each query's best threshold, hence OTWV,
which MediaEval's tool calls the upper bound of TWV. No calibration gives more, even with a map for each query.

QUIRK, under `compat = "mediaeval"`: the tool cuts each query's list of trials (`measures.mediaeval_tool`) anywhere,
also between equal scores, and the list includes imputed trials. So its bound can be higher than any threshold gives.
The tool prints a bound of scores that PAV has overwritten, `mediaeval_offset_atwv` (`measures.mediaeval_tool`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from swsdask.kernels.ladder import find_own_rungs
from swsdask.measures.cross_entropy import censored
from swsdask.measures.measure import Population, Scored, Values, cached
from swsdask.measures.mediaeval_tool import LIST_NEEDS, TrialList, trial_list
from swsdask.measures.rates import (
    BAYES_NEEDS,
    confusion_counts,
    errors_at_bayes,
    has_trials,
    twv,
    undefined_without,
)
from swsdask.measures.sweep import (
    NEEDS,
    QUERY_NEEDS,
    TOLERANCE,
    Sweep,
    best_place,
    query_sweep,
    threshold_sweep,
    with_imputed,
)
from swsdask.model.columns import ratio
from swsdask.model.trials import F64, I32, I64
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import AllScores, Hits
from swsdask.statistics.statistic import Statistic


class OptimumTwv:
    """Optimum TWV and its error rates; per query also its threshold."""

    names: ClassVar[tuple[str, ...]] = ("otwv", "otwv_p_miss", "otwv_p_fa", "otwv_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = (*QUERY_NEEDS, AllScores)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall; per query with the threshold."""
        beta = scored.weights.beta
        reject_all = scored.settings.compat != "kwseval"
        for population in scored.populations:
            sweep = query_sweep(scored, population)
            best = best_rows(scored, population, "none" if reject_all else "highest")
            misses, false_alarms = population.targets - sweep.hits[best], sweep.false_alarms[best]
            p_miss, p_fa = population.rates_of(misses, false_alarms)
            defined = undefined_without(reject_all or has_trials(scored, population))
            numbers = {"otwv": twv(p_miss, p_fa, beta), "otwv_p_miss": p_miss, "otwv_p_fa": p_fa}
            yield population.overall({name: value * defined for name, value in numbers.items()})
            thresholds = sweep.thresholds[best] if reject_all else _looked_up(scored, population, best)
            p_miss_of = ratio(misses, population.targets)
            p_fa_of = ratio(false_alarms, population.nontargets)
            columns = {
                "otwv": twv(p_miss_of, p_fa_of, beta),
                "otwv_p_miss": p_miss_of,
                "otwv_p_fa": p_fa_of,
                "otwv_threshold": thresholds,
            }
            defined_of = np.where(np.isnan(thresholds), np.nan, defined)
            yield population.by_query({name: column * defined_of for name, column in columns.items()})


Accepting = Literal["none", "highest", "every"]
"""The queries that must accept their highest score: those with the highest score of the condition, or all."""


@cached
def highest_scores(scored: Scored, population: Population) -> F64:
    """Return the highest score of every query that averages count: float64 [n_queries], -inf if there is none."""
    highest: F64 = scored[Counts].highest[:, population.condition.groups].max(axis=1, initial=-np.inf)
    return np.where(population.queries, highest, -np.inf)


@cached
def best_rows(scored: Scored, population: Population, accepting: Accepting) -> I64:
    """Return the row of every query's sweep with the least loss P_miss(q) + beta P_fa(q), the first of equal ones.

    Only the scores of hits, where the TWV of a single query can peak, and rejecting everything are tried; for queries
    that are `accepting`, their highest score instead of rejecting everything. Without targets misses weigh nothing,
    without non-targets false alarms do not. For queries that averages do not count, it is any of the nearly best rows.
    """
    sweep, point = query_sweep(scored, population), scored.weights
    candidates = sweep.new_hits > 0
    candidates[sweep.offsets[1:] - 1] = True
    if accepting != "none":
        highest = highest_scores(scored, population)
        least_highest = highest.max(initial=-np.inf) if accepting == "highest" else -np.inf
        for accepts in np.flatnonzero(np.isfinite(highest) & (highest >= least_highest)).tolist():
            own = sweep.rows(accepts)
            candidates[own.stop - 1] = False
            candidates[own.start + int(np.searchsorted(sweep.thresholds[own], highest[accepts]))] = True
    begin, query = sweep.offsets[:-1], sweep.query
    targets, nontargets = np.maximum(population.targets, 0), np.maximum(population.nontargets, 0)
    misses = population.targets[query] - sweep.hits
    loss = _weighed(misses, targets[query], 1.0) + _weighed(sweep.false_alarms, nontargets[query], point.beta)
    loss[~candidates] = np.inf
    least = np.minimum.reduceat(loss, begin)[query]
    near = loss <= least + TOLERANCE * (1.0 + least)
    rows = np.flatnonzero(near)
    first = np.searchsorted(rows, begin)
    best: I64 = rows[first]
    last = np.searchsorted(rows, sweep.offsets[1:])
    beta = point.exact_beta
    for q in np.flatnonzero((last - first > 1) & population.queries).tolist():
        tied = rows[first[q] : last[q]]
        miss, alarm = int(nontargets[q]) * beta.denominator, int(targets[q]) * beta.numerator
        if targets[q] == 0 or nontargets[q] == 0:
            miss, alarm = int(targets[q] > 0), int(nontargets[q] > 0)
        counts = zip(misses[tied].tolist(), sweep.false_alarms[tied].tolist(), strict=True)
        losses = [n_miss * miss + n_fa * alarm for n_miss, n_fa in counts]
        best[q] = tied[losses.index(min(losses))]
    return best


def _looked_up(scored: Scored, population: Population, best: I64) -> F64:
    """Return the thresholds that KWSEval prints for the optimum of queries, NaN for those that averages leave out."""
    sweep = query_sweep(scored, population)
    every, hits = (_by_query(scored[kind], population) for kind in (AllScores, Hits))
    nontargets = every.without(hits)
    ascending = np.sort(every.score)
    n_hits, n_false_alarms = sweep.hits[best], sweep.false_alarms[best]
    rejected = every.at(every.counts - n_hits - n_false_alarms - 1)
    lowest = np.append(ascending, np.nan)[np.searchsorted(ascending, np.nan_to_num(rejected, nan=-np.inf), "right")]
    hit, nontarget = hits.at(hits.counts - n_hits), nontargets.at(n_false_alarms)
    found = np.fmax(hit, nontarget)
    highest = np.where(np.isnan(found) & (lowest < 0), np.nan, np.fmax(found, lowest))
    return np.where((hit > lowest) & (nontarget > lowest), np.minimum(hit, nontarget), highest)


@dataclass(frozen=True, eq=False)
class _OwnScores:
    """The scores of every query, ascending: those of query q are score[offsets[q] : offsets[q + 1]]."""

    score: F64
    query: I32
    offsets: I64

    @property
    def counts(self) -> I64:
        """The number of scores of each query."""
        return np.diff(self.offsets)

    def at(self, number: I64) -> F64:
        """Return the score with a given number, from 0, of every query; NaN if there is none."""
        inside = (number >= 0) & (number < self.counts)
        found = np.full(len(number), np.nan)
        found[inside] = self.score[self.offsets[:-1][inside] + number[inside]]
        return found

    def without(self, some: _OwnScores) -> _OwnScores:
        """Return the scores without some of them."""
        first = find_own_rungs(some.query, some.score, self.offsets, self.score)
        again = np.arange(len(first)) - np.searchsorted(first, first)
        left = np.ones(len(self.score), np.bool_)
        left[first + again] = False
        offsets = np.append(0, np.cumsum(left))[self.offsets]
        return _OwnScores(self.score[left], self.query[left], offsets)


def _by_query(scores: Hits, population: Population) -> _OwnScores:
    """Select the scores that averages count, by query."""
    counted = population.condition.has(scores.query, scores.group) & population.queries[scores.query]
    inside = np.flatnonzero(counted)
    rows = inside[np.argsort(scores.query[inside], kind="stable")]
    query = scores.query[rows]
    return _OwnScores(scores.score[rows], query, np.searchsorted(query, np.arange(len(population.queries) + 1)))


def _weighed(counts: I64, totals: I64, weight: float) -> F64:
    return weight * np.divide(counts, totals, out=np.zeros(len(counts)), where=totals > 0)


class ActualTwv:
    """Actual TWV, and the threshold that its decisions follow."""

    names: ClassVar[tuple[str, ...]] = ("atwv", "actual_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall and per query."""
        counts = scored[Counts]
        beta = scored.weights.beta
        defined = undefined_without(counts.has_decisions)
        explaining = _threshold_of_kwseval if scored.settings.compat == "kwseval" else _threshold
        for population in scored.populations:
            errors = confusion_counts(scored, population)
            p_miss, p_fa = population.rates_of(errors.miss, errors.false_alarm)
            groups = population.condition.groups
            min_yes = counts.min_yes[:, groups].min(axis=1, initial=np.inf)
            max_no = counts.max_no[:, groups].max(axis=1, initial=-np.inf)
            everywhere = np.asarray(explaining(*decision_bounds(scored, population)))
            yield population.overall(
                {"atwv": twv(p_miss, p_fa, beta) * defined, "actual_threshold": everywhere.item() * defined}
            )
            p_miss_of = ratio(errors.miss, population.targets)
            p_fa_of = ratio(errors.false_alarm, population.nontargets)
            columns = {
                "atwv": twv(p_miss_of, p_fa_of, beta) * defined,
                "actual_threshold": _threshold(min_yes, max_no) * defined,
            }
            yield population.by_query(columns)


def decision_bounds(scored: Scored, population: Population) -> tuple[F64, F64]:
    """The lowest YES (inf: none) and the highest NO score (-inf: none) of the trials that `actual_threshold` covers."""
    counts = scored[Counts]
    covered = population.all_queries if scored.settings.compat == "kwseval" else population.queries
    groups = population.condition.groups
    min_yes, max_no = counts.min_yes[covered][:, groups], counts.max_no[covered][:, groups]
    return min_yes.min(initial=np.inf), max_no.max(initial=-np.inf)


def _threshold(min_yes: F64, max_no: F64) -> F64:
    """Return the threshold that explains decisions; numbers or columns."""
    middle = 0.5 * min_yes + 0.5 * np.where(np.isfinite(max_no), max_no, min_yes)
    return np.where(np.isfinite(min_yes) & (min_yes >= max_no), middle, np.nan)


def _threshold_of_kwseval(min_yes: F64, max_no: F64) -> F64:
    all_no = np.isinf(min_yes) & np.isfinite(max_no)
    return np.where(all_no, max_no, _threshold(min_yes, max_no))


class ThresholdTwv:
    """TWV at the Bayes threshold and at given thresholds."""

    names: ClassVar[tuple[str, ...]] = ("twv_bayes", "twv@")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*NEEDS, *BAYES_NEEDS)))

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        beta = scored.weights.beta
        for population in scored.populations:
            numbers = {"twv_bayes": twv(*population.rates_of(*errors_at_bayes(scored, population)), beta)}
            sweep = threshold_sweep(scored, population)
            for theta in scored.settings.thresholds:
                at = sweep.place(theta)
                numbers[f"twv@{theta!r}"] = twv(sweep.p_miss[at], sweep.p_fa[at], beta)
            yield population.overall(numbers)


_TIE = 1e-12


class MaximumTwv:
    """Maximum TWV, its thresholds and its error rates."""

    names: ClassVar[tuple[str, ...]] = (
        "mtwv",
        "mtwv_threshold",
        "mtwv_rejected_threshold",
        "mtwv_p_miss",
        "mtwv_p_fa",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        point = scored.weights
        like_kwseval = scored.settings.compat == "kwseval"
        for population in scored.populations:
            sweep = threshold_sweep(scored, population)
            if not (population.n_with_nontargets and (population.n_with_targets or like_kwseval)):
                yield population.overall(dict.fromkeys(self.names, np.nan))
                continue
            if scored.settings.compat == "mediaeval":
                sweep = with_imputed(sweep, population, censored(scored, population))
                best = _first_best(sweep, _candidates(sweep, reject_all=True), point.beta)
            elif population.n_with_targets:
                best = best_place(scored, population, _candidates(sweep, reject_all=not like_kwseval))
            else:
                best = sweep.bottom
            p_miss, p_fa, threshold = sweep.p_miss[best], sweep.p_fa[best], sweep.thresholds[best]
            yield population.overall(
                {
                    "mtwv": twv(p_miss, p_fa, point.beta),
                    "mtwv_threshold": _as_printed(threshold, sweep, scored.settings.compat),
                    "mtwv_rejected_threshold": sweep.rejected[best],
                    "mtwv_p_miss": p_miss,
                    "mtwv_p_fa": p_fa,
                }
            )


def _as_printed(threshold: float, sweep: Sweep, compat: str) -> float:
    """The threshold as the tool prints it: NIST's tools print another for rejecting everything, NaN without scores."""
    if np.isfinite(threshold) or compat not in ("kwseval", "stdeval"):
        return threshold
    highest = sweep.rejected[-1] if compat == "stdeval" else np.nan
    return float(highest) if np.isfinite(highest) else np.nan


def _first_best(sweep: Sweep, places: I64, beta: float) -> int:
    value = twv(sweep.p_miss[places], sweep.p_fa[places], beta)
    return int(places[np.argmax(value >= value.max() - _TIE)])


def _candidates(sweep: Sweep, *, reject_all: bool) -> I64:
    chosen = sweep.step.copy()
    chosen[-1 if reject_all else sweep.top] = True
    return np.flatnonzero(chosen)


class SupremumTwv:
    """Supremum TWV and its miss probability."""

    names: ClassVar[tuple[str, ...]] = ("stwv", "stwv_p_miss")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall and per query."""
        for population in scored.populations:
            misses = population.targets - confusion_counts(scored, population).mapped
            defined = undefined_without(scored.settings.compat != "kwseval" or has_trials(scored, population))
            p_miss = population.rates_of(misses, np.zeros_like(misses))[0] * defined
            yield population.overall({"stwv": 1.0 - p_miss, "stwv_p_miss": p_miss})
            p_miss_of = ratio(misses, population.targets) * defined
            yield population.by_query({"stwv": 1.0 - p_miss_of, "stwv_p_miss": p_miss_of})


class ApplicationParameters:
    """The operating point as single numbers."""

    names: ClassVar[tuple[str, ...]] = ("beta", "effective_prior", "bayes_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = ()

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall; the same in every condition."""
        point = scored.weights
        for population in scored.populations:
            yield population.overall({name: getattr(point, name) for name in self.names})


_STEPS = (SupremumTwv(), OptimumTwv(), MaximumTwv(), ActualTwv())
"""The families of the measures that the parts are differences of; the first name of each."""


class TwvLosses:
    """The parts of 1 - ATWV."""

    names: ClassVar[tuple[str, ...]] = ("loss_not_found", "loss_within_query", "loss_across_queries", "loss_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(
        dict.fromkeys(needed for family in _STEPS for needed in family.needs)
    )

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        overall = {
            (values.condition, name): float(column[0])
            for family in _STEPS
            for values in family.values(scored)
            if values.queries is None
            for name, column in values.columns.items()
        }
        imputes = scored.settings.compat == "mediaeval"
        for population in scored.populations:
            stwv, otwv, mtwv, atwv = (overall[population.condition.name, family.names[0]] for family in _STEPS)
            reached = (1.0, stwv, otwv, np.nan if imputes else mtwv, atwv)
            parts = (before - after for before, after in pairwise(reached))
            yield population.overall(dict(zip(self.names, parts, strict=True)))


class QueryOffset:
    """TWV with an offset of the scores of each query."""

    names: ClassVar[tuple[str, ...]] = ("twv_query_offset",)
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*QUERY_NEEDS, *LIST_NEEDS)))

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
    """Return misses and false alarms of every query of a list, int64, at the best cut of its trials."""
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
