"""TWV at given thresholds: Eq. 6 of the 2013 measures document with the errors of accepting scores >= theta.

- `twv_bayes`: at the Bayes threshold log(beta) (Eq. 31): what the system reaches if its scores are used as
  log-likelihood ratios, without a threshold of its own. (Eq. 30 accepts scores above it only; here, as everywhere, a
  score equal to the threshold is accepted.)
- `twv@THETA`: at each of the settings' `thresholds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from swsdask.measures.base import Value
from swsdask.measures.sweep import NEEDS, sweeps
from swsdask.measures.twv import twv
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic


class ThresholdTwv:
    """twv_bayes, twv@THETA."""

    names: ClassVar[tuple[str, ...]] = ("twv_bayes", "twv@")
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        point = weights(reference, settings)
        thresholds = {"twv_bayes": point.bayes_threshold} | {f"twv@{theta!r}": theta for theta in settings.thresholds}
        for population, sweep in sweeps(statistics, reference):
            places = {name: sweep.place(threshold) for name, threshold in thresholds.items()}
            yield from population.overall(
                {name: twv(sweep.p_miss[at], sweep.p_fa[at], point.beta) for name, at in places.items()}
            )
