"""Counts, error rates, values and costs by the system's decisions.

Counts of queries, targets and detections
-----------------------------------------
- `n_queries`: queries that averages count; `n_target`: their target trials (the sum of N_act).
- `n_detections`: detections that are trials; `n_nontarget`: those that are mapped to no target (KWSEval's #NTarg).
- `n_hit`, `n_miss`, `n_false_alarm`, `n_correct_nondetection`: outcomes by the system's decisions (2013 measures
  document, section 2.1). Not defined (NaN) where a trial has no decision.

Detections of queries that averages leave out are not counted, as in KWSEval's summary.

Error rates by the system's decisions
-------------------------------------
- `p_miss`, `p_fa`: averages over queries (2013 measures document, Eq. 4-5; `measures.measure` says which queries are
  left out because Eq. 1 or Eq. 3 would divide by 0), and per query (Eq. 1, Eq. 3).
- `p_miss_pooled`, `p_fa_pooled`: all queries as one set of trials: N_miss / N_true and N_fa / (|Q| N - N_true), all
  counts added up over queries.
- Not defined (NaN) where a trial has no decision.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: NIST's pooled P_fa omits |Q|: N_fa / (N - N_true), and N_fa includes
the false alarms of the queries that averages leave out. If all queries together have more targets than one query has
trials, it is negative, as STDEval prints it.

Occurrence-weighted value by the system's decisions
---------------------------------------------------
NIST 2006: `occurrence_weighted_value` = (V N_hit - C N_fa) / (V N_true): hits are worth V = C_miss, false alarms cost C
= C_fa, and all occurrences count the same, so frequent queries count more. STDEval prints it per query as "Value" and
in total as "Actual Occ. Weighted Value". Not defined (NaN) without targets, or where a trial has no decision.

QUIRK, under `compat = "stdeval"`: the total counts the false alarms of queries that averages leave out.

Detection cost by the system's decisions
----------------------------------------
TWV is derived from this cost (2013 measures document, section 2.4).

- `c_det` = C_miss P_miss P_target + C_fa P_fa (1 - P_target) (Eq. 8), P_miss and P_fa averaged over queries.
- `c_default` = min(C_miss P_target, C_fa (1 - P_target)) (Eq. 9): the better of rejecting and accepting everything.
- `c_norm` = C_Det / C_Default (Eq. 10). If rejecting everything is better, TWV = 1 - C_Norm (Eq. 11).

An operating point given by beta has C_miss = 1, C_fa = beta, P_target = .5; one given by the effective prior has
C_miss = C_fa = 1 and P_target = P_tar. `c_det` and `c_norm` are not defined (NaN) where a trial has no decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar, overload

import numpy as np

from swsdask.measures.measure import Population, Scored, Values, cached
from swsdask.model.columns import ratio
from swsdask.model.trials import F64, I64
from swsdask.statistics.counts import NO, YES, Counts
from swsdask.statistics.ladder import AtBayes, Hits
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True, eq=False)
class ConfusionCounts:
    """Counts per query, int64 [n_queries], of the trials in the condition's groups of documents.

    A hit is a target trial mapped to a detection with decision YES; every other target is a miss. A false alarm is a
    detection without target and with decision YES, a correct non-detection one with decision NO. `mapped` and
    `unmapped` count detections with and without a target, whatever their decision.
    """

    mapped: I64
    unmapped: I64
    hit: I64
    miss: I64
    false_alarm: I64
    correct_nondetection: I64


@cached
def confusion_counts(scored: Scored, population: Population) -> ConfusionCounts:
    """Count the trials of one condition by outcome."""
    counts = scored[Counts]
    groups = population.condition.groups
    mapped: I64 = counts.mapped[:, groups].sum(axis=1)
    unmapped: I64 = counts.unmapped[:, groups].sum(axis=1)
    return ConfusionCounts(
        mapped=mapped.sum(axis=1),
        unmapped=unmapped.sum(axis=1),
        hit=mapped[:, YES],
        miss=population.targets - mapped[:, YES],
        false_alarm=unmapped[:, YES],
        correct_nondetection=unmapped[:, NO],
    )


def has_trials(scored: Scored, population: Population) -> bool:
    """Return whether any query that averages count has a trial."""
    counts = scored[Counts]
    groups = population.condition.groups
    return bool(np.isfinite(counts.highest[population.queries][:, groups]).any())


def undefined_without(decisions: bool) -> float:
    """Return a factor for numbers that need decisions: 1 if there are decisions, else NaN."""
    return 1.0 if decisions else np.nan


Rate = TypeVar("Rate", float, F64)


def twv(p_miss: Rate, p_fa: Rate, beta: float) -> Rate:
    """Return TWV = 1 - (P_miss + beta P_fa), beta = C_fa (1 - P_target) / (C_miss P_target).

    It lies between 1, for a perfect system, and -beta; a system that rejects everything has 0 (Eq. 6-7 of the 2013
    measures document).
    """
    return 1.0 - (p_miss + beta * p_fa)


BAYES_NEEDS: tuple[type[Statistic], ...] = (Hits, AtBayes)
"""The statistics that errors at the Bayes threshold need."""


def errors_at_bayes(scored: Scored, population: Population) -> tuple[I64, I64]:
    """Return the misses and the false alarms of every query of a condition at the Bayes threshold."""
    hits, groups = scored[Hits], population.condition.groups
    inside = groups[hits.group] & (hits.score >= -scored.reference.prior_log_odds)
    accepted_hits = np.bincount(hits.query[inside], minlength=scored.reference.n_queries)
    accepted = scored[AtBayes].counts[:, groups].sum(axis=1)
    return population.targets - accepted_hits, accepted - accepted_hits


class Totals:
    """Counts of queries, targets, detections and outcomes."""

    names: ClassVar[tuple[str, ...]] = (
        "n_queries",
        "n_target",
        "n_nontarget",
        "n_detections",
        "n_hit",
        "n_miss",
        "n_false_alarm",
        "n_correct_nondetection",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall and per query."""
        defined = undefined_without(scored[Counts].has_decisions)
        for population in scored.populations:
            counts = confusion_counts(scored, population)
            columns = {
                "n_target": population.targets,
                "n_nontarget": counts.unmapped,
                "n_detections": counts.mapped + counts.unmapped,
            }
            by_decision = {
                "n_hit": counts.hit,
                "n_miss": counts.miss,
                "n_false_alarm": counts.false_alarm,
                "n_correct_nondetection": counts.correct_nondetection,
            }
            totals: dict[str, float] = {name: population.total(column) for name, column in columns.items()}
            totals |= {name: population.total(column) * defined for name, column in by_decision.items()}
            yield population.overall({"n_queries": population.n_queries} | totals)
            yield population.by_query(columns | {name: column * defined for name, column in by_decision.items()})


class ErrorRates:
    """Miss and false alarm probabilities by decision, averaged over queries and pooled."""

    names: ClassVar[tuple[str, ...]] = ("p_miss", "p_fa", "p_miss_pooled", "p_fa_pooled")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall; p_miss and p_fa per query as well."""
        defined = undefined_without(scored[Counts].has_decisions)
        for population in scored.populations:
            counts = confusion_counts(scored, population)
            p_miss, p_fa = population.rates_of(counts.miss, counts.false_alarm)
            hits, false_alarms = population.total(counts.hit), _pooled_false_alarms(scored, population)
            pooled_miss, pooled_fa = pooled_rates(scored, population, hits, false_alarms)
            numbers = {"p_miss": p_miss, "p_fa": p_fa, "p_miss_pooled": pooled_miss, "p_fa_pooled": pooled_fa}
            yield population.overall({name: value * defined for name, value in numbers.items()})
            columns = {
                "p_miss": ratio(counts.miss, population.targets) * defined,
                "p_fa": ratio(counts.false_alarm, population.nontargets) * defined,
            }
            yield population.by_query(columns)


def _pooled_false_alarms(scored: Scored, population: Population) -> int:
    """Return N_fa of all queries as one set of trials."""
    false_alarm = confusion_counts(scored, population).false_alarm
    if scored.settings.compat in ("kwseval", "stdeval"):
        return int(false_alarm[population.all_queries].sum())
    return population.total(false_alarm)


@overload
def pooled_rates(scored: Scored, population: Population, hits: int, false_alarms: int) -> tuple[float, float]: ...


@overload
def pooled_rates(scored: Scored, population: Population, hits: I64, false_alarms: I64) -> tuple[F64, F64]: ...


def pooled_rates(
    scored: Scored, population: Population, hits: int | I64, false_alarms: int | I64
) -> tuple[float | F64, float | F64]:
    """Return pooled P_miss and P_fa from the hits and false alarms of all queries: integers or columns of them."""
    n_target = population.n_target
    like_nist = scored.settings.compat in ("kwseval", "stdeval")
    n_nontarget = (1 if like_nist else population.n_queries) * population.condition.n_trials - n_target
    if not like_nist:
        n_nontarget = max(n_nontarget, 0)
    misses = n_target - hits
    return misses / (n_target or np.nan), false_alarms / (n_nontarget or np.nan)


class OccurrenceWeightedValue:
    """Occurrence-weighted value by decision."""

    names: ClassVar[tuple[str, ...]] = ("occurrence_weighted_value",)
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall and per query."""
        defined = undefined_without(scored[Counts].has_decisions)
        worth, cost = scored.weights.c_miss, scored.weights.c_fa
        for population in scored.populations:
            counts = confusion_counts(scored, population)
            hits, false_alarms = population.total(counts.hit), _pooled_false_alarms(scored, population)
            total = (worth * hits - cost * false_alarms) / (worth * population.n_target or np.nan)
            yield population.overall({self.names[0]: total * defined})
            most = worth * np.where(population.targets > 0, population.targets, np.nan)
            column = (worth * counts.hit - cost * counts.false_alarm) / most * defined
            yield population.by_query({self.names[0]: column})


class DetectionCost:
    """Detection cost by decision, that of the better trivial system, and their quotient."""

    names: ClassVar[tuple[str, ...]] = ("c_det", "c_default", "c_norm")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        defined = undefined_without(scored[Counts].has_decisions)
        point = scored.weights
        of_miss, of_false_alarm = point.c_miss * point.p_target, point.c_fa * (1.0 - point.p_target)
        default = min(of_miss, of_false_alarm)
        for population in scored.populations:
            counts = confusion_counts(scored, population)
            p_miss, p_fa = population.rates_of(counts.miss, counts.false_alarm)
            cost = (of_miss * p_miss + of_false_alarm * p_fa) * defined
            yield population.overall({"c_det": cost, "c_default": default, "c_norm": cost / default})
