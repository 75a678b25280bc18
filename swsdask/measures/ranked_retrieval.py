"""Measures of ranked retrieval beside precision: those of trec_eval and ir_measures for binary judgments.

Of the ranking of each query, with R targets of which n are retrieved among N trials; t_i is the rank of the i-th target
that is retrieved. Averaged over the queries that MAP averages (`no_relevant`, `missing` of
`measures.average_precision`); equal scores are ordered as there. Where that rule gives no order ("group", "expected"),
recall counts those at the edge of K in proportion, as `precision_at_rank@K` does, and the other measures put targets
behind what has their score.

- `recall_at_rank@K`: targets among the first K trials, divided by R. K is one of the settings'
  `average_precision.ranks`, here and below.
- `success_at_rank@K`: 1 if one of the first K trials is a target, else 0.
- `ap_at_rank@K`: sum of i / t_i over the t_i <= K, divided by R: AP without interpolation of a ranking that ends at K.
- `reciprocal_rank`: 1 / t_1, 0 if no target is retrieved.
- `rbp@p`: rank-biased precision, (1 - p) times the sum of p^(t_i - 1): a reader goes on to the next trial with
  probability p, one of the settings' `average_precision.persistences`.
- `eleven_point_precision`: the mean of `precision_at_recall@R` at R = 0, .1 to 1.
- `set_precision`, `set_recall`, `set_f1`, `set_map`: of all that was retrieved as a set, n / N, n / R, their harmonic
  mean and their product; 0 where n = 0.
- `gm_map`: the geometric mean over queries of AP, of which one below .00001 counts as .00001 (AP by the settings of
  `average_precision`).
- `n_retrieved`, `n_relevant`, `n_relevant_retrieved`: N, R and n; over all queries their sums.

Names of trec_eval 9: recall_K, success_K, map_cut_K, recip_rank, 11pt_avg, set_P, set_recall, set_F, set_map, gm_map,
num_ret, num_rel, num_rel_ret. Those of ir_measures are read as well (`measures.names`). Measures of graded judgments
(nDCG, ERR) and of judged non-relevance (bpref, infAP) are not here: a judgment is relevant or not.

Sources: trec_eval 9; Moffat and Zobel, ACM TOIS 2008, for RBP.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import ClassVar

import numpy as np

from swsdask.kernels.sums import rounded_sums
from swsdask.measures.average_precision import ap_of_queries, hits_at_rank, over, precisions_at_recalls, ranked_queries
from swsdask.measures.averages import Population, Values
from swsdask.measures.measure import Scored
from swsdask.measures.rankings import JUDGED, NEEDS, Rankings, query_rankings
from swsdask.model.measures import named_at
from swsdask.model.retrieval import WITHOUT_ORDER, AveragePrecisionSettings
from swsdask.model.trials import F64, I64
from swsdask.statistics.statistic import Statistic

_ELEVEN = tuple(tenths / 10 for tenths in range(11))


class RankedRetrieval:
    """recall_at_rank@K and the other names of this module."""

    names: ClassVar[tuple[str, ...]] = (
        "recall_at_rank@",
        "success_at_rank@",
        "ap_at_rank@",
        "reciprocal_rank",
        "rbp@",
        "eleven_point_precision",
        "set_precision",
        "set_recall",
        "set_f1",
        "set_map",
        "gm_map",
        "n_retrieved",
        "n_relevant",
        "n_relevant_retrieved",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = (*NEEDS, *JUDGED)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Averages and sums, and per query."""
        options = scored.settings.average_precision
        for population, level in product(scored.populations, options.all_levels):
            rankings, queries = query_rankings(scored, population, level), ranked_queries(scored, population, level)
            retrieved = np.diff(rankings.hit_offsets)
            counts = {
                "n_retrieved": rankings.retrieved,
                "n_relevant": rankings.relevant,
                "n_relevant_retrieved": retrieved,
            }
            eleven = {"eleven_point_precision": _eleven_point_precision(scored, population, level)}
            columns = {**_of_ranks(rankings, options), **eleven, **_of_sets(rankings, retrieved)}
            means = queries.means(columns)
            means["gm_map"] = queries.geometric_mean(ap_of_queries(scored, population, level))
            sums = {name: int(column[queries.averaged].sum()) for name, column in counts.items()}
            yield population.overall(named_at(level, {**means, **sums}))
            yield queries.by_query(named_at(level, columns))
            yield queries.counts_by_query(named_at(level, counts))


def _of_ranks(rankings: Rankings, options: AveragePrecisionSettings) -> dict[str, F64]:
    """The measures of ranks, by name: one number for each ranking, NaN where nothing is relevant."""
    ties = "worst" if options.ties in WITHOUT_ORDER else options.ties
    rank = rankings.false_alarms_in_front(ties) + rankings.hit_ranks
    precision: F64 = rankings.hit_ranks / rank
    columns: dict[str, F64] = {}
    for cut in options.ranks:
        inside = rank <= cut
        hits = hits_at_rank(rankings, np.full(len(rankings), cut), options.ties)
        columns[f"recall_at_rank@{cut}"] = over(hits, rankings.relevant)
        found = np.diff(np.append(0, np.cumsum(inside))[rankings.hit_offsets])
        columns[f"success_at_rank@{cut}"] = _where_relevant(found > 0, rankings)
        columns[f"ap_at_rank@{cut}"] = over(_sums(np.where(inside, precision, 0.0), rankings), rankings.relevant)
    first = np.zeros(len(rankings))
    first[np.diff(rankings.hit_offsets) > 0] = 1.0 / rank[rankings.hit_ranks == 1]
    columns["reciprocal_rank"] = _where_relevant(first, rankings)
    for persistence in options.persistences:
        weights = (1.0 - persistence) * _powers(persistence, rank - 1)
        columns[f"rbp@{persistence!r}"] = _where_relevant(_sums(weights, rankings), rankings)
    return columns


def _eleven_point_precision(scored: Scored, population: Population, level: int) -> F64:
    points = precisions_at_recalls(scored, population, level, _ELEVEN)
    offsets = np.arange(points.shape[1] + 1) * len(_ELEVEN)
    return rounded_sums(points.T.ravel(), offsets) / len(_ELEVEN)


def _of_sets(rankings: Rankings, retrieved: I64) -> dict[str, F64]:
    """The measures of what was retrieved as a set."""
    trials, relevant = rankings.retrieved, rankings.relevant
    return {
        "set_precision": _where_relevant(over(retrieved, np.maximum(trials, 1)), rankings),
        "set_recall": over(retrieved, relevant),
        "set_f1": over(2 * retrieved, np.where(relevant > 0, trials + relevant, 0)),
        "set_map": over(retrieved * retrieved, np.maximum(trials, 1) * relevant),
    }


def _powers(base: float, exponents: I64) -> F64:
    """base^exponent, for base < 1: by multiplication, which gives the same bits on every machine."""
    vanished = int(-745 / math.log(base)) + 2
    last = min(int(exponents.max(initial=0)), vanished)
    return np.append(1.0, np.cumprod(np.full(last, base)))[np.minimum(exponents, last)]


def _sums(terms: F64, rankings: Rankings) -> F64:
    """The sums of terms of hits, of each ranking, each rounded once."""
    return rounded_sums(terms, rankings.hit_offsets)


def _where_relevant(column: F64 | np.ndarray[tuple[int], np.dtype[np.bool_]], rankings: Rankings) -> F64:
    return np.where(rankings.relevant > 0, column, np.nan)
