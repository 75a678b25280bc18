"""Precision at given places of rankings, of each query and averaged over the queries that MAP averages.

- `precision_at_rank@K`: hits among the first K trials, divided by K, however many trials there are; at each of the
  settings' `average_precision.ranks`.
- `r_precision`: the same at K = R, the number of the query's targets.
- `precision_at_recall@R`: the interpolated precision, the highest at this recall or a higher one (Eq. 5.7 of the
  thesis), 0 where recall never is so high; at each of `average_precision.recalls`, by default the 11 points 0 to 1. A
  recall is reached with the smallest whole number of hits that gives it or more (`recall_rounding = "exact"`).

QUIRK, `recall_rounding = "trec_eval"`: trec_eval 9 asks for int(r R + .9) hits, in double arithmetic. It is one less
where r R has a fraction below .1, and where the sum comes out a hair too small: .7 3 + .9 < 3. (trec_eval 10 rounds r R
to the nearest whole number.)

Equal scores are ordered as for average precision (`ties`, `score_dtype`). Where that rule gives no order ("group",
"expected"), those at the edge of K count in proportion: what is expected over all orders; and recall is that of whole
groups. Queries are averaged as for MAP (`no_relevant`, `missing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, fsum
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.averaged import averaged
from swsdask.measures.base import Value
from swsdask.measures.precision_steps import false_alarms_in_front
from swsdask.measures.rankings import NEEDS, Ranking, rankings
from swsdask.model.ranking import AveragePrecisionSettings
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64, Reference
from swsdask.statistics.base import Statistic

_WITHOUT_ORDER = ("group", "expected")


class RankedPrecision:
    """r_precision, precision_at_rank@K, precision_at_recall@R."""

    names: ClassVar[tuple[str, ...]] = ("r_precision", "precision_at_rank@", "precision_at_recall@")
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Averages, and per query."""
        options = settings.average_precision
        for population, found in rankings(statistics, reference):
            queries = averaged(population, found, options)
            own = {query: found[query] for query in queries.listed}
            columns = {"r_precision": {q: precision_at_rank(r, r.relevant, options.ties) for q, r in own.items()}}
            for rank in options.ranks:
                column = {q: precision_at_rank(r, rank, options.ties) for q, r in own.items()}
                columns[f"precision_at_rank@{rank}"] = column
            for recall in options.recalls:
                column = {q: precision_at_recall(r, recall, options) for q, r in own.items()}
                columns[f"precision_at_recall@{recall!r}"] = column
            yield from population.overall({name: queries.mean(of_query) for name, of_query in columns.items()})
            yield from queries.by_query(reference, columns)


def precision_at_rank(ranking: Ranking, rank: int, ties: str) -> float:
    """The hits among the first `rank` trials, divided by `rank`; NaN where nothing is relevant."""
    if not ranking.relevant:
        return np.nan
    if ties in _WITHOUT_ORDER:
        size = ranking.new + ranking.through - ranking.above
        in_front = np.cumsum(ranking.new) - ranking.new + ranking.above
        return fsum(ranking.new * np.clip(rank - in_front, 0, size) / size) / rank
    in_front = false_alarms_in_front(ranking, ties)
    return int(np.count_nonzero(_ranks(in_front) <= rank)) / rank


def precision_at_recall(ranking: Ranking, recall: float, options: AveragePrecisionSettings) -> float:
    """The highest precision at a recall of `recall` or more; NaN where nothing is relevant."""
    if not ranking.relevant:
        return np.nan
    if options.recall_rounding == "exact":
        wanted = ceil(Fraction(repr(recall)) * ranking.relevant)
    else:
        wanted = int(recall * ranking.relevant + 0.9)
    if options.ties in _WITHOUT_ORDER:
        hits = np.cumsum(ranking.new)
        rank = hits + ranking.through
    else:
        rank = _ranks(false_alarms_in_front(ranking, options.ties))
        hits = np.arange(1, len(rank) + 1)
    first = int(np.searchsorted(hits, wanted))
    return float((hits[first:] / rank[first:]).max(initial=0.0))


def _ranks(in_front: I64) -> I64:
    """The rank of every hit, from 1."""
    ranks: I64 = in_front + np.arange(1, len(in_front) + 1)
    return ranks
