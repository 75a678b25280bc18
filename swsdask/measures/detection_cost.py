"""The detection cost that TWV is derived from (2013 measures document, section 2.4), by the system's decisions.

- `c_det` = C_miss P_miss P_target + C_fa P_fa (1 - P_target) (Eq. 8), P_miss and P_fa averaged over queries.
- `c_default` = min(C_miss P_target, C_fa (1 - P_target)) (Eq. 9): the better of rejecting and accepting everything.
- `c_norm` = C_Det / C_Default (Eq. 10). Where rejecting everything is the better one, TWV = 1 - C_Norm (Eq. 11).

An operating point given by beta has C_miss = 1, C_fa = beta, P_target = .5; one given by the effective prior has
C_miss = C_fa = 1 and P_target = P_tar. `c_det` and `c_norm` are not defined (NaN) where a trial has no decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from swsdask.measures.base import Value
from swsdask.measures.outcomes import outcomes, undefined_without
from swsdask.measures.population import populations
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class DetectionCost:
    """c_det, c_default, c_norm."""

    names: ClassVar[tuple[str, ...]] = ("c_det", "c_default", "c_norm")
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        counts: Counts = statistics[Counts]
        defined = undefined_without(counts.has_decisions)
        point = weights(reference, settings)
        of_miss, of_false_alarm = point.c_miss * point.p_target, point.c_fa * (1.0 - point.p_target)
        default = min(of_miss, of_false_alarm)
        for population in populations(reference):
            found = outcomes(counts, population)
            p_miss, p_fa = population.rates_of(found.miss, found.false_alarm)
            cost = (of_miss * p_miss + of_false_alarm * p_fa) * defined
            yield from population.overall({"c_det": cost, "c_default": default, "c_norm": cost / default})
