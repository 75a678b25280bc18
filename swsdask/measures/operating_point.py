"""The operating point as single numbers.

- `beta`: the weight of P_fa in TWV (2013 measures document, Eq. 7; from the data: Eq. 18).
- `effective_prior`: P_tar = 1 / (1 + beta), the prior that with equal costs is the same application (Eq. 23).
- `bayes_threshold`: -logit(P_tar) = log(beta), the best threshold for scores that are log-likelihood ratios (Eq. 31).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from swsdask.measures.base import Value
from swsdask.measures.population import populations
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic


class OperatingPoint:
    """beta, effective_prior, bayes_threshold."""

    names: ClassVar[tuple[str, ...]] = ("beta", "effective_prior", "bayes_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = ()

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall; the same in every condition."""
        point = weights(reference, settings)
        for population in populations(reference):
            yield from population.overall({name: getattr(point, name) for name in self.names})
