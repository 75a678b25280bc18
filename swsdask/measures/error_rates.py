"""Error rates by the system's decisions.

- `p_miss`, `p_fa`: averages over queries (2013 measures document, Eq. 4-5; `measures.population` tells who is left out
  where Eq. 1 or Eq. 3 would divide by 0), and per query (Eq. 1, Eq. 3).
- `p_miss_pooled`, `p_fa_pooled`: all queries as one set of trials: N_miss / N_true and N_fa / (|Q| N - N_true), all
  counts added up over queries.
- Not defined (NaN) where a trial has no decision.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: NIST's pooled P_fa forgets |Q|: N_fa / (N - N_true), and N_fa counts
the false alarms of the queries that averages leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.outcomes import Outcomes, outcomes, undefined_without
from swsdask.measures.population import Population, populations, ratio
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class ErrorRates:
    """p_miss, p_fa and their pooled forms."""

    names: ClassVar[tuple[str, ...]] = ("p_miss", "p_fa", "p_miss_pooled", "p_fa_pooled")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall; p_miss and p_fa per query as well."""
        counts: Counts = statistics[Counts]
        defined = undefined_without(counts.has_decisions)
        for population in populations(reference):
            found = outcomes(counts, population)
            p_miss, p_fa = population.rates_of(found.miss, found.false_alarm)
            hits, false_alarms = found.hit[population.queries].sum(), pooled_false_alarms(found, population, settings)
            pooled_miss, pooled_fa = pooled_rates(population, hits, false_alarms, settings)
            numbers = {"p_miss": p_miss, "p_fa": p_fa, "p_miss_pooled": pooled_miss, "p_fa_pooled": pooled_fa}
            yield from population.overall({name: value * defined for name, value in numbers.items()})
            columns = {
                "p_miss": ratio(found.miss, population.targets) * defined,
                "p_fa": ratio(found.false_alarm, population.nontargets) * defined,
            }
            yield from population.by_query(reference, columns)


def pooled_false_alarms(found: Outcomes, population: Population, settings: EvaluationSettings) -> int:
    """N_fa of all queries as one set of trials."""
    asked = population.condition.asked
    queries = asked if settings.compat in ("kwseval", "stdeval") else population.queries
    return int(found.false_alarm[queries].sum())


def pooled_rates(population: Population, hits: Any, false_alarms: Any, settings: EvaluationSettings) -> tuple[Any, Any]:
    """Pooled P_miss and P_fa from the hits and false alarms of all queries: integers or columns of them."""
    n_target = population.n_target
    sets = 1 if settings.compat in ("kwseval", "stdeval") else population.n_queries
    n_nontarget = sets * population.condition.n_trials - n_target
    misses = n_target - hits
    return misses / (n_target or np.nan), false_alarms / (n_nontarget if n_nontarget > 0 else np.nan)
