"""Measures with weights of queries: the arithmetic of a measure, with each query counted as often as it was drawn.

The measures here are not averages of their numbers by query. Each family names its measures and the statistics that
they need, and gives the samples of one condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, NamedTuple, Protocol

from swsdask.measures.measure import Population, Scored
from swsdask.measures.names import family_name
from swsdask.measures.resampling.calibration import ResampledAffine, ResampledCrossEntropy
from swsdask.measures.resampling.drawn import DocumentSample, TrialCounts, drawn_queries, drawn_system
from swsdask.measures.resampling.ladders import (
    ResampledMaximum,
    ResampledOptimum,
    ResampledPooledPrecision,
    ResampledTwv,
)
from swsdask.model.samples import Sample
from swsdask.model.trials import Reference
from swsdask.statistics.statistic import Statistic


class ResampledMeasures(Protocol):
    """A family of measures that can be computed with weights of queries."""

    names: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[type[Statistic], ...]]

    def samples(self, scored: Scored, population: Population) -> dict[str, Sample]:
        """Return the samples of measures of one condition."""
        ...


FAMILIES: tuple[ResampledMeasures, ...] = (
    ResampledMaximum(),
    ResampledTwv(),
    ResampledOptimum(),
    ResampledCrossEntropy(),
    ResampledAffine(),
    ResampledPooledPrecision(),
)

NAMES = tuple(name for family in FAMILIES for name in family.names)
"""The measures that are resampled from statistics, not from their numbers by query."""


class OfCondition(NamedTuple):
    """The samples of one system in one condition by measure, and the ids of the queries that have weights.

    `documents` is the number of documents that have weights too.
    """

    samples: dict[str, Sample]
    queries: tuple[str, ...]
    documents: int = 0


class SampleObserver:
    """Takes the samples of some measures of every system, by condition (a `scoring.result_tables.Observer`).

    With `trials`, the samples are of all measures, including averages, and have weights of documents as well.
    """

    def __init__(self, measures: Sequence[str], trials: Callable[[Reference], TrialCounts] | None = None) -> None:
        wanted = {family_name(measure) for measure in measures}
        self._families = [family for family in FAMILIES if not wanted.isdisjoint(family.names)]
        self._wanted: Collection[str] = wanted
        self.needs = tuple(dict.fromkeys(needed for family in self._families for needed in family.needs))
        self._measures, self._trials = measures, trials

    @property
    def apart(self) -> bool:
        """Whether statistics have to keep documents apart."""
        return self._trials is not None

    def observe(self, system: str, scored: Scored) -> dict[str, OfCondition]:
        """Take the samples of a system."""
        return {population.condition.name: self._of(scored, population) for population in scored.populations}

    def _of(self, scored: Scored, population: Population) -> OfCondition:
        ids = scored.reference.query_ids
        queries = tuple(ids[query] for query in drawn_queries(scored, population).tolist())
        if self._trials is not None:
            bare = Scored(scored.statistics, scored.reference, scored.settings)  # derived values need not be sent
            trials = self._trials(scored.reference)
            drawn = drawn_system(bare, population, self._measures, self._families, trials)
            of_documents: dict[str, Sample] = {measure: DocumentSample(drawn, measure) for measure in self._measures}
            return OfCondition(of_documents, queries, len(drawn.documents))
        samples = {
            measure: sample
            for family in self._families
            for measure, sample in family.samples(scored, population).items()
            if family_name(measure) in self._wanted
        }
        return OfCondition(samples, queries)
