"""ATWV: the TWV of the system's own decisions.

- `atwv`: Eq. 6 of the 2013 measures document with the errors that the YES/NO decisions make; no threshold is applied,
  so thresholds of the system's own for each query are fine. Per query: 1 - (P_miss(q) + beta P_fa(q)).
- `actual_threshold`: where one threshold explains the decisions, the middle of the lowest YES and the highest NO score
  (lowest YES >= highest NO); the lowest YES score if nothing is NO. NaN if no threshold does, or nothing is YES.

Not defined (NaN) where a trial has no decision.

QUIRK, under `compat = "kwseval"`: `actual_threshold` is what KWSEval prints as "Dec. Thresh" of the actual decisions.
Over all queries it covers those that averages leave out, and is the highest NO score if nothing is YES. Where no
threshold explains the decisions, KWSEval prints no report at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.outcomes import outcomes, undefined_without
from swsdask.measures.population import Population, populations, ratio
from swsdask.measures.twv import twv
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class ActualTwv:
    """atwv, actual_threshold."""

    names: ClassVar[tuple[str, ...]] = ("atwv", "actual_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall and per query."""
        counts: Counts = statistics[Counts]
        beta = weights(reference, settings).beta
        defined = undefined_without(counts.has_decisions)
        explaining = _threshold_of_kwseval if settings.compat == "kwseval" else _threshold
        for population in populations(reference):
            found = outcomes(counts, population)
            p_miss, p_fa = population.rates_of(found.miss, found.false_alarm)
            groups = population.condition.groups
            min_yes = counts.min_yes[:, groups].min(axis=1, initial=np.inf)
            max_no = counts.max_no[:, groups].max(axis=1, initial=-np.inf)
            everywhere = np.asarray(explaining(*decision_bounds(counts, population, settings)))
            yield from population.overall(
                {"atwv": twv(p_miss, p_fa, beta) * defined, "actual_threshold": everywhere.item() * defined}
            )
            p_miss_of = ratio(found.miss, population.targets)
            p_fa_of = ratio(found.false_alarm, population.nontargets)
            columns = {
                "atwv": twv(p_miss_of, p_fa_of, beta) * defined,
                "actual_threshold": _threshold(min_yes, max_no) * defined,
            }
            yield from population.by_query(reference, columns)


def decision_bounds(counts: Counts, population: Population, settings: EvaluationSettings) -> tuple[F64, F64]:
    """The lowest YES (inf: none) and the highest NO score (-inf: none) of what `actual_threshold` covers."""
    covered = population.condition.asked if settings.compat == "kwseval" else population.queries
    groups = population.condition.groups
    min_yes, max_no = counts.min_yes[covered][:, groups], counts.max_no[covered][:, groups]
    return min_yes.min(initial=np.inf), max_no.max(initial=-np.inf)


def _threshold(min_yes: F64, max_no: F64) -> F64:
    """The threshold that explains decisions; numbers or columns."""
    middle = 0.5 * min_yes + 0.5 * np.where(np.isfinite(max_no), max_no, min_yes)
    return np.where(np.isfinite(min_yes) & (min_yes >= max_no), middle, np.nan)


def _threshold_of_kwseval(min_yes: F64, max_no: F64) -> F64:
    all_no = np.isinf(min_yes) & np.isfinite(max_no)
    return np.where(all_no, max_no, _threshold(min_yes, max_no))
