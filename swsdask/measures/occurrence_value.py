"""NIST 2006's occurrence-weighted value, by the system's decisions.

`occurrence_weighted_value` = (V N_hit - C N_fa) / (V N_true): hits are worth V = C_miss, false alarms cost C = C_fa,
and all occurrences count the same, so frequent queries count more. STDEval prints it per query as "Value" and in total
as "Actual Occ. Weighted Value". Not defined (NaN) without targets, or where a trial has no decision.

QUIRK, under `compat = "stdeval"`: the total counts the false alarms of queries that averages leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.error_rates import pooled_false_alarms
from swsdask.measures.outcomes import outcomes, undefined_without
from swsdask.measures.population import populations, ratio
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class OccurrenceWeightedValue:
    """occurrence_weighted_value."""

    names: ClassVar[tuple[str, ...]] = ("occurrence_weighted_value",)
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall and per query."""
        counts: Counts = statistics[Counts]
        defined = undefined_without(counts.has_decisions)
        point = weights(reference, settings)
        cost = point.c_fa / point.c_miss
        for population in populations(reference):
            found = outcomes(counts, population)
            hits, false_alarms = found.hit[population.queries].sum(), pooled_false_alarms(found, population, settings)
            total = (hits - cost * false_alarms) / (population.n_target or np.nan)
            yield from population.overall({self.names[0]: total * defined})
            column = ratio(found.hit - cost * found.false_alarm, population.targets) * defined
            yield from population.by_query(reference, {self.names[0]: column})
