"""Which queries averages of rankings count: `no_relevant` and `missing` of `measures.average_precision`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.population import Population
from swsdask.measures.rankings import Ranking
from swsdask.model.ranking import AveragePrecisionSettings
from swsdask.model.trials import Bool, Reference


@dataclass(frozen=True, eq=False)
class Averaged:
    """Queries of one condition: bool [n_queries].

    `ranked` have targets and are averaged; `as_zero` and `as_nan` have none and count so; the others are left out.
    """

    population: Population
    ranked: Bool
    as_zero: Bool
    as_nan: Bool
    n_no_relevant: int
    n_missing: int

    @property
    def n_averaged(self) -> int:
        """How many queries an average has."""
        return int((self.ranked | self.as_zero | self.as_nan).sum())

    @property
    def listed(self) -> list[int]:
        """The queries that have numbers of their own: the condition's, and those averaged."""
        queries = self.population.queries | self.ranked | self.as_zero | self.as_nan
        return [int(query) for query in np.flatnonzero(queries)]

    def mean(self, of_query: Mapping[int, float]) -> float:
        """The average of a number over queries; NaN over none."""
        if self.as_nan.any() or not self.n_averaged:
            return float(np.nan)
        return fsum(of_query[query] for query in np.flatnonzero(self.ranked).tolist()) / self.n_averaged

    def by_query(self, reference: Reference, columns: Mapping[str, Mapping[int, float]]) -> Iterator[Value]:
        """The numbers of every listed query, 0 where one counts so."""
        for query in self.listed:
            for name, of_query in columns.items():
                value = 0.0 if self.as_zero[query] else float(of_query[query])
                yield Value(self.population.condition.name, reference.query_ids[query], name, value)


def averaged(population: Population, rankings: Sequence[Ranking], options: AveragePrecisionSettings) -> Averaged:
    """The queries that count in averages of one condition."""
    asked = population.condition.asked
    relevant = np.array([ranking.relevant > 0 for ranking in rankings], np.bool_)
    retrieved = np.array([ranking.retrieved > 0 for ranking in rankings], np.bool_)
    nobody = np.zeros_like(asked)
    without, skipped = asked & ~relevant, asked & ~retrieved if options.missing == "skip" else nobody
    as_zero = {"zero": without & ~skipped, "zero-if-retrieved": without & retrieved}.get(options.no_relevant, nobody)
    as_nan = without if options.no_relevant == "nan" else nobody
    missing = skipped if options.no_relevant == "zero" else skipped & relevant
    return Averaged(
        population=population,
        ranked=asked & relevant & ~skipped,
        as_zero=as_zero,
        as_nan=as_nan,
        n_no_relevant=int((without & ~as_zero & ~as_nan & ~missing).sum()),
        n_missing=int(missing.sum()),
    )
