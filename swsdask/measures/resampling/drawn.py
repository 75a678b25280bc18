"""The queries and documents that resampling draws, and measures with weights of both.

A trial counts as often as its query and its document were drawn. The statistics keep every document separate, as a
group of its own. A replicate first combines them into statistics of its documents (`statistics.statistic.Drawable`),
each as often as it was drawn, and likewise the numbers of targets and of trials. The result is an evaluation whose
measures are computed with weights of queries, as in `measures.resampling`. So a measure of a replicate is that of an
evaluation in which queries and documents occur as often as they were drawn. The targets in the drawn documents decide
which queries are averaged, under KWSEval's -inc the detections there too; a query that no document contains and that
the system detects nowhere counts once. The operating point is that of the evaluation. Documents that are not in the ECF
are not drawn: they always count once. If points of replay are ranked (GAP), or a rule orders equal scores, the copies
of a point or a trial follow each other.

Memory: counts by query and document, 80 bytes each for every system, and 8 to 24 bytes for each of them and each score
of a hit of the query, if rankings or thresholds by query are requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swsdask.measures import select
from swsdask.measures.average_precision import ap_of_queries, ranked_queries
from swsdask.measures.cross_entropy import Censored, censored
from swsdask.measures.measure import Population, Scored, counts_present_only, present
from swsdask.model.ranked_measures import RELEVANT
from swsdask.model.samples import AVERAGED, Averages, Sample
from swsdask.model.trials import F64, I32, I64, Bool
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Drawable, Statistic

if TYPE_CHECKING:
    from swsdask.measures.resampling import ResampledMeasures


SIDE_BY_SIDE = 64
"""The number of replicates that are computed together."""


def drawn_queries(scored: Scored, population: Population) -> I64:
    """Return the numbers of the queries that averages of a condition count, in the order of their ids."""
    ids = scored.reference.query_ids
    return np.array(sorted(np.flatnonzero(population.queries).tolist(), key=lambda query: ids[query]), np.int64)


def places(queries: I64, n_queries: int) -> I64:
    """Return the index of each query of the list among those that are drawn, -1 for others."""
    place = np.full(n_queries, -1, np.int64)
    place[queries] = np.arange(len(queries))
    return place


@dataclass(frozen=True, eq=False)
class TrialPool:
    """Given and imputed trials by query, with the columns of `cross_entropy.Censored`, and the score of imputed trials.

    `impute` is a fixed score, or NaN for the lowest score: the minimum of `lowest` over the drawn queries and of
    `elsewhere`, the lowest of all other queries.
    """

    impute: float
    lowest: F64
    elsewhere: float
    columns: I64

    @classmethod
    def of(cls, scored: Scored, population: Population, queries: I64) -> TrialPool:
        """Return the trials of some queries of a condition."""
        lowest = scored[Counts].lowest.min(axis=1, initial=np.inf)
        others = np.ones(len(lowest), np.bool_)
        others[queries] = False
        fixed = scored.settings.impute
        return cls(
            impute=fixed + 0.0 if isinstance(fixed, float) else np.nan,
            lowest=lowest[queries],
            elsewhere=float(lowest[others].min(initial=np.inf)),
            columns=np.array([column[queries] for column in censored(scored, population).columns]),
        )

    def scores(self, weights: I32) -> F64:
        """Return the score of imputed trials in each replicate."""
        if not math.isnan(self.impute):
            return np.full(weights.shape[1], self.impute)
        order = np.argsort(self.lowest, kind="stable")
        ascending = np.append(np.minimum(self.lowest[order], self.elsewhere), self.elsewhere)
        drawn = np.concatenate([weights[order] > 0, np.ones((1, weights.shape[1]), np.bool_)])
        lowest = ascending[drawn.argmax(axis=0)]
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def replicates(self, weights: I32) -> Iterator[tuple[I64, Censored]]:
        """Yield the replicates that share a score, and their trials, as if each were a query."""
        scores = self.scores(weights)
        sums = self.columns @ weights.astype(np.int64)
        for score in np.unique(scores).tolist():
            chosen = np.flatnonzero(scores == score)
            yield chosen, Censored(score, *sums[:, chosen])


TrialCounts = Callable[[Bool | I64], int]
"""The number of trials of one query, given how often each group of documents counts."""


@dataclass(eq=False)
class DrawnSystem:
    """Some measures of one system in one condition, for any weights of its queries and documents.

    `queries` and `documents` are their numbers, in the order of their ids, like the weights. The replicates of the last
    weights are kept: all measures share the statistics of a replicate.
    """

    scored: Scored
    population: Population
    measures: Sequence[str]
    families: Sequence[ResampledMeasures]
    trials: TrialCounts
    queries: I64
    documents: I64
    _last: tuple[I32, dict[str, F64]] | None = field(default=None, init=False)

    def replicates(self, weights: I32) -> dict[str, F64]:
        """Return the measures with the weights of each replicate, int32 [n_queries + n_documents, n_replicates]."""
        if self._last is None or not np.array_equal(self._last[0], weights):
            self._last = weights, self._replicates(weights)
        return self._last[1]

    @cached_property
    def values(self) -> dict[str, F64]:
        """The measures of the evaluation: of the replicate in which each query and document occurs once."""
        return self._replicates(np.ones((len(self.queries) + len(self.documents), 1), np.int32))

    def _replicates(self, weights: I32) -> dict[str, F64]:
        found = {measure: np.full(weights.shape[1], np.nan) for measure in self.measures}
        of_query, of_document = np.split(weights, [len(self.queries)])
        for number in range(weights.shape[1]):
            drawn = self._drawn(of_document[:, number], self.queries[of_query[:, number] == 0])
            (population,) = drawn.populations
            rows = places(self.queries, drawn.reference.n_queries)[drawn_queries(drawn, population)]
            own = np.where(rows < 0, 1, of_query[rows, number]).astype(np.int32)[:, np.newaxis]
            for measure, sample in self._samples(drawn, population).items():
                found[measure][number] = sample.replicates(own)[0]
        return found

    def _drawn(self, weights: I32, absent: I64) -> Scored:
        """Return the evaluation of some documents, all in one group, and of this condition only.

        The score of imputed trials is never that of an `absent` query, which was not drawn; it may be that of any other
        query in any document of the run.
        """
        reference, condition, settings = self.scored.reference, self.population.condition, self.scored.settings
        times = condition.groups.astype(np.int64)
        times[reference.group_of_document[self.documents]] = weights
        targets = reference.targets @ times
        queries = condition.queries if settings.no_targets == "false_alarms_only" else condition.queries & (targets > 0)
        whole = np.ones(1, np.bool_)
        statistics = self.scored.statistics.items()
        counts = self.scored[Counts].drawn(times)
        elsewhere = self.scored[Counts].lowest[:, ~condition.groups].min(axis=1, initial=np.inf, keepdims=True)
        np.minimum(counts.lowest, elsewhere, out=counts.lowest)
        counts.lowest[absent] = np.inf
        occurrences = np.repeat(
            np.arange(len(reference.document)), times[reference.group_of_document[reference.document]]
        )
        drawn: dict[type[Statistic], Any] = {
            kind: counts if kind is Counts else each.drawn(times)
            for kind, each in statistics
            if isinstance(each, Drawable)
        }
        found = Scored(
            drawn,
            replace(
                reference,
                query=reference.query[occurrences],
                document=reference.document[occurrences],
                group_of_document=np.zeros_like(reference.group_of_document),
                targets=targets[:, np.newaxis],
                class_of=np.zeros((reference.n_queries, 1), np.int32),
                n_classes=1,
                conditions=(replace(condition, queries=queries, groups=whole, n_trials=self.trials(times)),),
            ),
            settings,
        )
        found.weights = self.scored.weights
        if counts_present_only(settings):
            (here,) = present(found.reference, counts).T
            found.populations = tuple(each.of_present(here, here | self._elsewhere) for each in found.populations)
        return found

    @cached_property
    def _elsewhere(self) -> Bool:
        """The queries that are present in documents outside the condition: bool [n_queries]."""
        there = present(self.scored.reference, self.scored[Counts])
        elsewhere: Bool = np.logical_or.reduce(there[:, ~self.population.condition.groups], axis=1)
        return elsewhere

    def _samples(self, drawn: Scored, population: Population) -> dict[str, Sample]:
        """Return the sample of each measure, for weights of queries."""
        found: dict[str, Sample] = {}
        for family in self.families:
            found |= family.samples(drawn, population)
        averaged = {measure: AVERAGED.get(measure, (measure,)) for measure in self.measures if measure not in found}
        columns = _columns(drawn, population, {part for parts in averaged.values() for part in parts})
        for measure, parts in averaged.items():
            of_rates = len(parts) > 1
            factors = (-1.0, -drawn.weights.beta) if of_rates else (1.0,)
            found[measure] = Averages(float(of_rates), factors, np.array([columns[part] for part in parts]))
        return {measure: found[measure] for measure in self.measures}


@dataclass(frozen=True, eq=False)
class DocumentSample:
    """One measure of a `DrawnSystem`."""

    system: DrawnSystem
    measure: str

    @property
    def value(self) -> float:
        """The measure."""
        return float(self.system.values[self.measure][0])

    def replicates(self, weights: I32) -> F64:
        """Return the measure with the weights of each replicate."""
        return self.system.replicates(weights)[self.measure]


def drawn_system(
    scored: Scored,
    population: Population,
    measures: Sequence[str],
    families: Sequence[ResampledMeasures],
    trials: TrialCounts,
) -> DrawnSystem:
    """Return some measures of one condition and its documents; measures of no family are averages over queries."""
    reference = scored.reference
    ids = reference.document_ids[: reference.n_documents - reference.n_without_excerpts]
    there = population.condition.groups[reference.group_of_document[: len(ids)]]
    documents = sorted(np.flatnonzero(there).tolist(), key=lambda document: ids[document])
    queries = drawn_queries(scored, population)
    return DrawnSystem(scored, population, measures, families, trials, queries, np.array(documents, np.int64))


def _columns(scored: Scored, population: Population, names: set[str]) -> dict[str, F64]:
    """Return the numbers by query of some measures, in the order of query ids, NaN if a query has none."""
    queries = drawn_queries(scored, population)
    numbers = [values for family in select(sorted(names - {"ap"})) for values in family.values(scored)]
    if "ap" in names:  # not from its family, which also ranks all trials
        averaged = ranked_queries(scored, population, RELEVANT)
        numbers.append(averaged.by_query({"ap": ap_of_queries(scored, population, RELEVANT)}))
    columns: dict[str, F64] = {}
    for values in numbers:
        if values.queries is not None:
            for name in names & values.columns.keys():
                column = np.full(scored.reference.n_queries, np.nan)
                column[values.queries] = values.columns[name]
                columns[name] = column[queries]
    return columns
