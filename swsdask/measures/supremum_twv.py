"""STWV: the TWV that would be left if every false alarm and every wrong NO could be avoided (NIST's supremum TWV).

`stwv_p_miss` averages (Eq. 4 of the 2013 measures document) the share of a query's targets that no detection is mapped
to, whatever its decision; `stwv` = 1 - `stwv_p_miss`. It bounds MTWV and OTWV from above.

QUIRK, under `compat = "kwseval"`: without trials it is not defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.outcomes import has_trials, outcomes, undefined_without
from swsdask.measures.population import populations, ratio
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class SupremumTwv:
    """stwv, stwv_p_miss."""

    names: ClassVar[tuple[str, ...]] = ("stwv", "stwv_p_miss")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall and per query."""
        for population in populations(reference):
            counts: Counts = statistics[Counts]
            misses = population.targets - outcomes(counts, population).mapped
            defined = undefined_without(settings.compat != "kwseval" or has_trials(counts, population))
            p_miss = population.rates_of(misses, np.zeros_like(misses))[0] * defined
            yield from population.overall({"stwv": 1.0 - p_miss, "stwv_p_miss": p_miss})
            p_miss_of = ratio(misses, population.targets) * defined
            yield from population.by_query(reference, {"stwv": 1.0 - p_miss_of, "stwv_p_miss": p_miss_of})
