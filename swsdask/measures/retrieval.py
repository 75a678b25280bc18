"""Measures of ranked retrieval other than precision, as in trec_eval and ir_measures, for binary and graded judgments.

Measures of ranked retrieval for binary judgments
-------------------------------------------------
The ranking of a query has N trials, of which n are targets, out of R targets in all; t_i is the rank of the i-th target
that is retrieved. The measures are averaged over the queries that MAP averages (`no_relevant`, `missing` of
`measures.average_precision`); equal scores are ordered as there. Where that rule gives no order ("group", "expected"),
recall counts a group that rank K divides in proportion, as `precision_at_rank@K` does, and the other measures put
targets behind other trials of the same score.

- `recall_at_rank@K`: targets among the first K trials, divided by R. K is one of the settings'
  `average_precision.ranks`, here and below.
- `success_at_rank@K`: 1 if one of the first K trials is a target, else 0.
- `ap_at_rank@K`: sum of i / t_i over the t_i <= K, divided by R: AP without interpolation of a ranking that ends at K.
- `reciprocal_rank`: 1 / t_1, 0 if no target is retrieved.
- `rbp@p`: rank-biased precision, (1 - p) times the sum of p^(t_i - 1): a reader goes on to the next trial with
  probability p, one of the settings' `average_precision.persistences`.
- `eleven_point_precision`: the mean of `precision_at_recall@R` at R = 0, .1 to 1.
- `set_precision`, `set_recall`, `set_f1`, `set_map`: of the set of all retrieved trials, n / N, n / R, their harmonic
  mean and their product; 0 if n = 0. QUIRK, `addition = "running"`: as in trec_eval, the harmonic mean is computed from
  both quotients, not from counts, which decides how exact halves are rounded.
- `gm_map`: the geometric mean over queries of AP; an AP below .00001 counts as .00001 (AP by the settings of
  `average_precision`).
- `n_retrieved`, `n_relevant`, `n_relevant_retrieved`: N, R and n; over all queries their sums.

Names of trec_eval 9: recall_K, success_K, map_cut_K, recip_rank, 11pt_avg, set_P, set_recall, set_F, set_map, gm_map,
num_ret, num_rel, num_rel_ret. Those of ir_measures are read as well (`measures.names`).

Sources: trec_eval 9; Moffat and Zobel, ACM TOIS 2008, for RBP.

Measures of judged documents: graded relevance, judged non-relevance, and other measures of trec_eval
-----------------------------------------------------------------------------------------------------
They need judged documents (qrels, or occurrences with grades), and are computed from the ranking of each query. A
judgment has a grade g: from 1 on the document is relevant, at 0 it is not, and below 0 it is in the pool that was to be
judged, but was not judged. A document without judgment is not in the pool. Measures of binary relevance take documents
as relevant from grade 1 on, and once more from each grade L of `average_precision.levels`: `bpref(rel=2)`. In the
ranking of a query with N trials and R relevant documents, r runs over ranks; i numbers the relevant documents that are
retrieved, at the ranks t_i, and n_i is the number of judged non-relevant ones before the i-th. The measures are
averaged over the queries that MAP averages; equal scores are ordered as there, and where that rule gives no order, the
lower grade comes first. But `precision_at_relevant@M` and `relative_precision_at_rank@K` then count a group that the
rank divides in proportion.

- `ndcg`, `ndcg_at_rank@K`: DCG, the sum of max(g_r, 0) / log2(r + 1) over all ranks, or r <= K, divided by the DCG of
  the ideal ranking, all relevant documents by descending grade. `exponential_ndcg_at_rank@K` has 2^g - 1 for g; grades
  above `average_precision.highest_grade` count as that grade.
- `err_at_rank@K`: the sum over r <= K of s_r / r times the product over q < r of 1 - s_q; a reader is satisfied by a
  document with the probability s = (2^g - 1) / 2^G. G is `average_precision.highest_grade`, 4 as in gdeval; higher
  grades count as G.
- `bpref`: the sum over i of 1 - min(n_i, R) / min(M, R), divided by R; M is the number of judged non-relevant
  documents, retrieved or not. `gm_bpref` is its geometric mean over queries, as `gm_map` is that of AP.
- `inferred_ap`: the sum over i of 1 / t_i + p_i / t_i (i - 1 + e) / (i - 1 + n_i + 2 e), divided by R; p_i is the
  number of documents of the pool before the i-th, e = .00001.
- `judged_at_rank@K`: the share of documents with a judgment, whatever its grade, among the first K, or among all N if
  there are fewer.
- `ndcg_at_levels`: the mean of nDCG at the ranks where the ideal gain falls, the last of them R, and at N if it is more
  than R + 1.
- `ndcg_of_relevant`: the mean over relevant documents of the quotient of both sums down to the document's rank; for a
  document that is not retrieved, of the sum down to N and the whole ideal sum.
- `normalised_gain`: the sum of g_r / log2(2 + C_r - G_r) over the sum of all positive grades; G_r is the sum of gains
  down to rank r, C_r that of the ideal ranking, where each gain counts at least 1.
- `binary_gain`: the sum of 1 / log2(2 + t_i - i), divided by R.
- `precision_at_relevant@M`: the relevant documents among the first int(M R + .9), divided by that; M is one of
  `average_precision.multiples`.
- `relative_precision_at_rank@K`, `set_relative_precision`: relevant documents among the first K, or N, divided by
  min(K, R) or min(N, R).
- `reciprocal_rank_at_rank@K`: 1 / t_1 if t_1 <= K, else 0.
- `utility`: 2 n - N, where n relevant documents are retrieved.
- `n_nonrelevant_judged`: judged non-relevant documents that are retrieved; over all queries their sum.

Sources: trec_eval 9, which prints the same numbers except for rounding; Järvelin and Kekäläinen, ACM TOIS 2002;
Buckley and Voorhees, SIGIR 2004; Yilmaz and Aslam, CIKM 2006; Chapelle et al., CIKM 2009, as in TREC's gdeval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from itertools import product
from operator import add
from typing import ClassVar

import numpy as np

from swsdask.measures.average_precision import (
    ap_of_queries,
    hits_at_rank,
    precisions_at_recalls,
    ranked_queries,
    sums_of,
)
from swsdask.measures.measure import Population, Scored, Values
from swsdask.measures.rankings import JUDGED, NEEDS, JudgedRankings, Rankings, judged_rankings, query_rankings
from swsdask.model.columns import list_sums, ratio
from swsdask.model.measures import named_at
from swsdask.model.ranked_measures import RELEVANT, Addition, AveragePrecisionSettings
from swsdask.model.trials import F64, I64, Bool
from swsdask.statistics.statistic import Statistic

_ELEVEN = tuple(tenths / 10 for tenths in range(11))


class RankedRetrieval:
    """Ranked retrieval with binary relevance."""

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
        """Yield averages and sums, and numbers per query."""
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
            columns = {**_of_ranks(rankings, options), **eleven, **_of_sets(rankings, retrieved, options)}
            means = queries.means(columns)
            means["gm_map"] = queries.geometric_mean(ap_of_queries(scored, population, level))
            sums = {name: int(column[queries.averaged].sum()) for name, column in counts.items()}
            yield population.overall(named_at(level, {**means, **sums}))
            yield queries.by_query(named_at(level, columns))
            yield queries.counts_by_query(named_at(level, counts))


def _of_ranks(rankings: Rankings, options: AveragePrecisionSettings) -> dict[str, F64]:
    """Return the measures of ranks, by name: one number for each ranking, NaN where nothing is relevant."""
    rank = rankings.false_alarms_in_front(options.ordered_ties) + rankings.hit_ranks
    precision: F64 = rankings.hit_ranks / rank

    def _sums(terms: F64) -> F64:
        return sums_of(terms, rankings.hit_offsets, options.addition)

    columns: dict[str, F64] = {}
    for cut in options.ranks:
        inside = rank <= cut
        hits = hits_at_rank(rankings, np.full(len(rankings), cut), options.ties)
        columns[f"recall_at_rank@{cut}"] = ratio(hits, rankings.relevant)
        found = list_sums(inside, rankings.hit_offsets)
        columns[f"success_at_rank@{cut}"] = _where_relevant(found > 0, rankings)
        columns[f"ap_at_rank@{cut}"] = ratio(_sums(np.where(inside, precision, 0.0)), rankings.relevant)
    columns["reciprocal_rank"] = _where_relevant(_reciprocal_ranks(rankings, options.ordered_ties), rankings)
    for persistence in options.persistences:
        weights = (1.0 - persistence) * _powers(persistence, rank - 1)
        columns[f"rbp@{persistence!r}"] = _where_relevant(_sums(weights), rankings)
    return columns


def _reciprocal_ranks(rankings: Rankings, ties: str) -> F64:
    """1 / t_1 of each ranking, 0 if no target is retrieved."""
    reciprocal, found = np.zeros(len(rankings)), np.flatnonzero(np.diff(rankings.hit_offsets))
    reciprocal[found] = 1.0 / (rankings.false_alarms_in_front(ties)[rankings.hit_offsets[found]] + 1)
    return reciprocal


def _eleven_point_precision(scored: Scored, population: Population, level: int) -> F64:
    points = precisions_at_recalls(scored, population, level, _ELEVEN[::-1])  # from 1 down, as trec_eval adds them
    offsets = np.arange(points.shape[1] + 1) * len(_ELEVEN)
    return sums_of(points.T.ravel(), offsets, scored.settings.average_precision.addition) / len(_ELEVEN)


def _of_sets(rankings: Rankings, retrieved: I64, options: AveragePrecisionSettings) -> dict[str, F64]:
    """Return the measures of the set of retrieved trials."""
    trials, relevant = rankings.retrieved, rankings.relevant
    precision, recall = _where_relevant(ratio(retrieved, np.maximum(trials, 1)), rankings), ratio(retrieved, relevant)
    f1 = ratio(2 * retrieved, np.where(relevant > 0, trials + relevant, 0))
    if options.addition == "running":
        f1 = np.where(retrieved > 0, 2.0 * precision * recall / np.where(retrieved > 0, precision + recall, 1.0), f1)
    return {
        "set_precision": precision,
        "set_recall": recall,
        "set_f1": f1,
        "set_map": ratio(retrieved * retrieved, np.maximum(trials, 1) * relevant),
    }


def _powers(base: float, exponents: I64) -> F64:
    """base^exponent, for base < 1: by multiplication, which gives the same bits on every machine."""
    vanished = int(-745 / math.log(base)) + 2
    last = min(int(exponents.max(initial=0)), vanished)
    return np.append(1.0, np.cumprod(np.full(last, base)))[np.minimum(exponents, last)]


def _where_relevant(column: F64 | Bool, rankings: Rankings) -> F64:
    return np.where(rankings.relevant > 0, column, np.nan)


_EPSILON = 0.00001


class GradedRetrieval:
    """Ranked retrieval with grades of relevance."""

    names: ClassVar[tuple[str, ...]] = (
        "ndcg",
        "ndcg_at_rank@",
        "exponential_ndcg_at_rank@",
        "err_at_rank@",
        "judged_at_rank@",
        "ndcg_at_levels",
        "ndcg_of_relevant",
        "normalised_gain",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = (*NEEDS, *JUDGED)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield averages, and numbers per query; nothing if no documents were judged."""
        if scored.reference.judgments is None:
            return
        for population in scored.populations:
            queries = ranked_queries(scored, population, RELEVANT)
            columns = _graded(judged_rankings(scored, population), scored.settings.average_precision)
            yield population.overall(queries.means(columns))
            yield queries.by_query(columns)


class JudgedRetrieval:
    """Ranked retrieval with relevant and judged non-relevant documents."""

    names: ClassVar[tuple[str, ...]] = (
        "bpref",
        "gm_bpref",
        "inferred_ap",
        "binary_gain",
        "precision_at_relevant@",
        "relative_precision_at_rank@",
        "set_relative_precision",
        "reciprocal_rank_at_rank@",
        "utility",
        "n_nonrelevant_judged",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = (*NEEDS, *JUDGED)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield averages and sums, and numbers per query; nothing if no documents were judged."""
        options = scored.settings.average_precision
        if scored.reference.judgments is None:
            return
        for population in scored.populations:
            judged = judged_rankings(scored, population)
            for level in options.all_levels:
                queries = ranked_queries(scored, population, level)
                columns = _binary(judged, level, options)
                columns |= _at_ranks(query_rankings(scored, population, level), options)
                nonrelevant = judged.sums((judged.grade >= 0) & (judged.grade < level))
                numbers = queries.means(columns)
                numbers["gm_bpref"] = queries.geometric_mean(columns["bpref"])
                numbers["n_nonrelevant_judged"] = int(nonrelevant[queries.averaged].sum())
                yield population.overall(named_at(level, numbers))
                yield queries.by_query(named_at(level, columns))
                yield queries.counts_by_query(named_at(level, {"n_nonrelevant_judged": nonrelevant}))


def _graded(judged: JudgedRankings, options: AveragePrecisionSettings) -> dict[str, F64]:
    """Return the measures of grades, by name: one number for each ranking, NaN where nothing is relevant."""
    gain, ideal = _Gains.of(judged, np.maximum(judged.grade, 0), np.maximum(judged.judged, 0), options.addition)
    satisfied, most = (
        np.exp2(np.clip(grades, 0, options.highest_grade)) - 1.0 for grades in (judged.grade, judged.judged)
    )
    steep, steepest = _Gains.of(judged, satisfied, most, options.addition)
    columns = {"ndcg": ratio(gain.down_to(None), ideal.down_to(None))}
    for cut in options.ranks:
        columns[f"ndcg_at_rank@{cut}"] = ratio(gain.down_to(cut), ideal.down_to(cut))
        columns[f"exponential_ndcg_at_rank@{cut}"] = ratio(steep.down_to(cut), steepest.down_to(cut))
    columns |= _expected_reciprocal_rank(judged, satisfied / 2.0**options.highest_grade, options)
    for cut in options.ranks:
        first = np.maximum(np.minimum(judged.rankings.retrieved, cut), 1)
        columns[f"judged_at_rank@{cut}"] = ratio(judged.sums(judged.rank <= cut), first)
    return columns | _along(judged, gain, ideal)


class _Gains:
    """Gains at ranks, those of ranking i at rows offsets[i] .. offsets[i + 1], and their terms of DCG."""

    def __init__(self, gain: F64, rank: I64, offsets: I64, addition: Addition) -> None:
        self.gain, self.rank, self.offsets, self.addition = gain, rank, offsets, addition
        ranks, place = np.unique(rank, return_inverse=True)
        self.discounted: F64 = gain / np.array([math.log2(each + 1) for each in ranks.tolist()])[place]

    @classmethod
    def of(cls, judged: JudgedRankings, gain: F64 | I64, ideal: F64 | I64, addition: Addition) -> tuple[_Gains, _Gains]:
        """Return the gains of rankings, and of the ideal ones."""
        offsets = judged.judged_offsets
        rank = np.arange(1, len(ideal) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
        gains, ideals = gain.astype(np.float64), ideal.astype(np.float64)
        return cls(gains, judged.rank, judged.offsets, addition), cls(ideals, rank, offsets, addition)

    def down_to(self, cut: int | None) -> F64:
        """Return DCG of each ranking, down to a rank."""
        terms = self.discounted if cut is None else np.where(self.rank <= cut, self.discounted, 0.0)
        return sums_of(terms, self.offsets, self.addition)

    def ranking(self, number: int) -> tuple[F64, I64, F64]:
        """Return the positive gains of one ranking, their ranks, and DCG down to each, preceded by 0."""
        rows = slice(self.offsets[number], self.offsets[number + 1])
        gain = self.gain[rows]
        some = gain > 0
        return gain[some], self.rank[rows][some], np.append(0.0, np.cumsum(self.discounted[rows][some]))


def _along(judged: JudgedRankings, gains: _Gains, ideals: _Gains) -> dict[str, F64]:
    """Return the measures that compare a ranking with the ideal one rank by rank."""
    n = len(judged.rankings)
    at_levels, of_relevant, normalised = np.full((3, n), np.nan)
    for number in range(n):
        ideal, _, best = ideals.ranking(number)
        if not len(ideal):
            continue
        gain, rank, dcg = gains.ranking(number)
        falls = np.append(np.flatnonzero(ideal[1:] < ideal[:-1]) + 1, len(ideal))
        quotients = (dcg[np.searchsorted(rank, falls, "right")] / best[falls]).tolist()
        if judged.rankings.retrieved[number] > len(ideal) + 1:
            quotients.append(float(dcg[-1] / best[-1]))
        at_levels[number] = _total(quotients, gains.addition) / len(quotients)
        reached = dcg[1:] / best[np.minimum(rank, len(ideal))]
        missed = (len(ideal) - len(rank)) * dcg[-1] / best[-1]
        of_relevant[number] = (_total(reached.tolist(), gains.addition) + missed) / len(ideal)
        cost = np.append(0.0, np.cumsum(np.maximum(ideal, 1.0)))
        paid = cost[np.minimum(rank, len(ideal))] + np.maximum(rank - len(ideal), 0) - np.cumsum(gain)
        terms = [each / math.log2(2.0 + lost) for each, lost in zip(gain.tolist(), paid.tolist(), strict=True)]
        normalised[number] = _total(terms, gains.addition) / math.fsum(ideal.tolist())
    return {"ndcg_at_levels": at_levels, "ndcg_of_relevant": of_relevant, "normalised_gain": normalised}


def _total(terms: list[float], addition: Addition) -> float:
    return math.fsum(terms) if addition == "exact" else reduce(add, terms, 0.0)


def _expected_reciprocal_rank(
    judged: JudgedRankings, satisfied: F64, options: AveragePrecisionSettings
) -> dict[str, F64]:
    terms = np.zeros(len(satisfied))
    for begin, end in zip(judged.offsets[:-1].tolist(), judged.offsets[1:].tolist(), strict=True):
        unsatisfied = np.append(1.0, np.cumprod(1.0 - satisfied[begin:end]))[:-1]
        terms[begin:end] = satisfied[begin:end] * unsatisfied / judged.rank[begin:end]
    relevant = judged.n_judged(judged.judged >= RELEVANT) > 0
    return {
        f"err_at_rank@{cut}": np.where(
            relevant, sums_of(np.where(judged.rank <= cut, terms, 0.0), judged.offsets, options.addition), np.nan
        )
        for cut in options.ranks
    }


def _binary(judged: JudgedRankings, level: int, options: AveragePrecisionSettings) -> dict[str, F64]:
    """Return the measures of judged documents that are relevant or not, by name."""
    relevant, other = judged.grade >= level, (judged.grade >= 0) & (judged.grade < level)
    n_relevant = judged.n_judged(judged.judged >= level)
    n_other = judged.n_judged((judged.judged >= 0) & (judged.judged < level))
    bound = np.repeat(n_relevant, np.diff(judged.offsets))
    least = np.repeat(np.minimum(n_relevant, n_other), np.diff(judged.offsets))
    nonrelevant, pool, earlier = judged.before(other), judged.before(judged.grade < 0), judged.before(relevant)
    preferred: F64 = 1.0 - np.minimum(nonrelevant, bound) / np.maximum(least, 1)
    rank = judged.rank.astype(np.float64)
    judged_before = earlier + nonrelevant
    precision = (earlier + _EPSILON) / (judged_before + 2 * _EPSILON)
    front = rank - 1.0  # In the order in which trec_eval multiplies.
    inferred = 1.0 / rank + front / rank * ((judged_before + pool) / np.maximum(front, 1.0)) * precision
    others = [1.0 / math.log2(2 + each) for each in (judged.rank - 1 - earlier)[relevant].tolist()]
    gain = np.zeros(len(relevant))
    gain[relevant] = others
    columns = {
        name: ratio(sums_of(np.where(relevant, terms, 0.0), judged.offsets, options.addition), n_relevant)
        for name, terms in (("bpref", preferred), ("inferred_ap", inferred), ("binary_gain", gain))
    }
    retrieved = judged.sums(relevant)
    columns["set_relative_precision"] = _where(n_relevant, retrieved, np.minimum(judged.rankings.retrieved, n_relevant))
    columns["utility"] = (2 * retrieved - judged.rankings.retrieved).astype(np.float64)
    return columns


def _at_ranks(rankings: Rankings, options: AveragePrecisionSettings) -> dict[str, F64]:
    """Return the measures at ranks and at multiples of the number of relevant documents, by name."""
    relevant, columns = rankings.relevant, dict[str, F64]()
    for multiple in options.multiples:
        rank = np.array([int(multiple * each + 0.9) for each in relevant.tolist()], np.int64)
        hits = hits_at_rank(rankings, rank, options.ties)
        columns[f"precision_at_relevant@{multiple!r}"] = _where(relevant, hits, rank)
    first = _reciprocal_ranks(rankings, options.ordered_ties)
    for cut in options.ranks:
        hits = hits_at_rank(rankings, np.full(len(rankings), cut), options.ties)
        columns[f"relative_precision_at_rank@{cut}"] = _where(relevant, hits, np.minimum(relevant, cut))
        inside = np.where(first >= 1.0 / cut, first, 0.0)
        columns[f"reciprocal_rank_at_rank@{cut}"] = _where_relevant(inside, rankings)
    return columns


def _where(relevant: I64, sums: F64 | I64, counts: I64) -> F64:
    """Return quotients, 0 if the count is 0, NaN if nothing is relevant."""
    return np.where(relevant > 0, ratio(sums, np.maximum(counts, 1)), np.nan)
