"""Measures with weights of queries: the arithmetic of the measure, in which a query counts as often as it was drawn.

Here are those that are no averages of their numbers by query. Each family names its measures, the statistics that they
need, and gives the samples of one condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Protocol

import numpy as np

from swsdask.measures.averages import Population
from swsdask.measures.measure import Scored
from swsdask.measures.names import family_name
from swsdask.measures.resampling.calibration import ResampledAffine, ResampledCrossEntropy
from swsdask.measures.resampling.documents import DocumentSample, TrialCounts, drawn_system
from swsdask.measures.resampling.queries import drawn_queries
from swsdask.measures.resampling.rankings import ResampledPooledPrecision
from swsdask.measures.resampling.thresholds import ResampledMaximum, ResampledOptimum, ResampledTwv
from swsdask.model.samples import Sample
from swsdask.model.trials import Reference
from swsdask.statistics.statistic import Statistic


class Resampled(Protocol):
    """A family of measures that can be computed with weights of queries."""

    names: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[type[Statistic], ...]]

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return the samples of measures of one condition."""
        ...


FAMILIES: tuple[Resampled, ...] = (
    ResampledMaximum(),
    ResampledTwv(),
    ResampledOptimum(),
    ResampledCrossEntropy(),
    ResampledAffine(),
    ResampledPooledPrecision(),
)

NAMES = tuple(name for family in FAMILIES for name in family.names)
"""The measures that are resampled from statistics, not from their numbers by query."""


class Samples:
    """Takes the samples of some measures of every system while systems are scored (a `scoring.score.Observer`).

    `found` has them by condition, measure and system, and `queries` the ids of the queries that each system's are
    weighed by, by condition and system. With `trials`, of all measures, averages too, weighed by documents as well;
    `documents` says how many.
    """

    def __init__(self, measures: Sequence[str], trials: Callable[[Reference], TrialCounts] | None = None) -> None:
        wanted = {family_name(measure) for measure in measures}
        self._families = [family for family in FAMILIES if not wanted.isdisjoint(family.names)]
        self._wanted: Collection[str] = wanted
        self.needs = tuple(dict.fromkeys(needed for family in self._families for needed in family.needs))
        self.found: dict[str, dict[str, dict[str, Sample]]] = defaultdict(lambda: defaultdict(dict))
        self.queries: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        self.documents: dict[str, int] = defaultdict(int)
        self._measures, self._trials = measures, trials

    @property
    def apart(self) -> bool:
        """Whether statistics have to keep documents apart."""
        return self._trials is not None

    def see(self, system: str, scored: Scored) -> None:
        """Take those of a system, in every condition."""
        ids = np.array(scored.reference.query_ids, object)
        for population in scored.populations:
            condition = population.condition.name
            self.queries[condition][system] = tuple(ids[drawn_queries(scored, population)])
            if self._trials is not None:
                trials = self._trials(scored.reference)
                drawn = drawn_system(scored, population, self._measures, self._families, trials)
                self.documents[condition] = len(drawn.documents)
                for measure in self._measures:
                    self.found[condition][measure][system] = DocumentSample(drawn, measure)
                continue
            for family in self._families:
                for measure, sample in family.samples(scored, population).items():
                    if family_name(measure) in self._wanted:
                        self.found[condition][measure][system] = sample
