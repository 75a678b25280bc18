"""Average precision, its mean over queries, and precision at ranks.

Average precision of the rankings that scores make: AP of one ranking of everything, MAP over queries.

Trials are sorted by score, descending; g runs over groups of equal scores, with H_g the hits and F_g the false alarms
down to the end of a group, P_g = H_g / (H_g + F_g) its precision, and R all targets, retrieved or not:

    AP = (1/R) sum over g of (H_g - H_(g-1)) Q_g

- `ap`: of one ranking of all trials of the queries that averages count; per query, of that query's trials. NaN without
  targets.
- `map`: the average of the AP of queries. `map_n_averaged` are averaged; `map_n_no_relevant` queries of the condition
  are left out because they have no targets, `map_n_missing` because they have no trials and would count with trials.

An event is a trial: an occurrence or a detection (virtual trials), a (query, segment) or a (query, document) with the
best score of the pair. Where several detections are of one event, `duplicates` can have it otherwise.

Settings, in `[evaluation.average_precision]`:

- `integration`: "step", Q_g = P_g (default), or "trapezoid", Q_g = (P_(g-1) + P_g) / 2, Q_1 = P_1. A group without hits
  is a group.
- `interpolation`: "max" (default) first replaces P_g by the highest P_h, h >= g (seed: "interpolated precision",
  Eq. 5.7 of the thesis that it quotes), or "none".
- `ties`: what equal scores are. "group" (default): one group. "best" and "worst": a ranking of single trials with
  targets first or last. "document-descending", "document-ascending": single trials ordered by the id of their document
  (by code points; unknown documents have the id ""), those of one document by start, and where that is equal too,
  targets first; "input": in the order of the run's files, for which an archive must have been written under this
  setting. In the ranking of all queries, what is still equal is ordered by query. "expected": the expected AP over all
  orders of equal scores; with "max" it takes the highest, from each rank on, of the precision that is expected if a hit
  is at that rank, not the expectation of the highest.
- `duplicates`: what several detections of one event are, in all rankings (here and in `ranked_precision`; every other
  measure takes the evaluation's trials). "as-trials" (default): what the trials make of them, which is one of the next
  two. "false-positive": one is the event, the others are false alarms, each at its own score; so it is with
  occurrences. "ignore": one is the event, the others are left out; so it is with segments and documents, whose event is
  the best one. Of occurrences all detections are left out that may be paired with one and are not mapped. "first": of a
  segment or a document, the one that the run's files have first is the event, whatever its score, the others are left
  out; an archive must have been written under this setting. Of occurrences it is refused: alignment says which
  detection is mapped. Detections that a rule takes in or leaves out are counted in a note.
- `score_dtype`: "float32" rounds scores before they are compared, as tools written in C do.
- `score_floor`: scores below it count as equal to it (0 in kws-assessment; without it, default, none does).
- `no_relevant`: queries of the condition without targets are left out of MAP ("exclude", default), count as AP = 0
  ("zero"; without trials, as `missing` says), count as AP = 0 if they have trials and are left out if not
  ("zero-if-retrieved"), or make it NaN ("nan"). Whether their trials are in the ranking of all queries is said by the
  evaluation's `no_targets`, as everywhere.
- `missing`: queries without trials count as AP = 0 ("zero", default; `trec_eval -c` and ir_measures, with
  no_relevant = "zero") or are left out ("skip"; trec_eval).

Presets (files of `conf/`, to be joined to an evaluation's own: `--preset quesst2014,trec`): simplekwseval,
kws-assessment, trec, sklearn, kwseval. None of these tools has a rule of its own for several detections of one event:
KWSEval's is that of its trials, the others are given events (trec_eval refuses a document that a query has twice, and
so do we in TREC's files). `compat = "kwseval"` implies the last one's rule: false alarms come first; with
`no_targets = "false_alarms_only"` (its -inc) also `no_relevant = "zero"`. Not imitated: KWSEval orders scores as text,
which is their order as numbers where they have no sign, no exponent and one length.

Sources: thesis chapter 5.2 (Eq. 5.1-5.7); McSherry and Najork, ECIR 2008, for expected AP.

Which queries averages of rankings count: `no_relevant` and `missing` of `measures.average_precision`.

Precision at given places of rankings, of each query and averaged over the queries that MAP averages.

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, fsum
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.averages import Population
from swsdask.measures.measure import Value
from swsdask.measures.rankings import (
    NEEDS,
    POOLED_NEEDS,
    Ranking,
    false_alarms_in_front,
    pooled_rankings,
    rankings,
    steps,
)
from swsdask.model.retrieval import AveragePrecisionSettings
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64, Bool, Reference
from swsdask.statistics.statistic import Statistic


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
    asked = population.asked
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


class AveragePrecision:
    """ap."""

    names: ClassVar[tuple[str, ...]] = ("ap",)
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*NEEDS, *POOLED_NEEDS)))

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall and per query."""
        options = settings.average_precision
        together = pooled_rankings(statistics, reference)
        for (population, found), pooled in zip(rankings(statistics, reference), together, strict=True):
            queries = averaged(population, found, options)
            of_query = {query: average_precision(found[query], options) for query in queries.listed}
            yield from population.overall({"ap": average_precision(pooled, options)})
            yield from queries.by_query(reference, {"ap": of_query})


class MeanAveragePrecision:
    """map, and over how many queries; it needs no ranking of everything."""

    names: ClassVar[tuple[str, ...]] = ("map", "map_n_averaged", "map_n_no_relevant", "map_n_missing")
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        options = settings.average_precision
        for population, found in rankings(statistics, reference):
            queries = averaged(population, found, options)
            of_query = {
                query: average_precision(found[query], options) for query in np.flatnonzero(queries.ranked).tolist()
            }
            numbers = {
                "map": queries.mean(of_query),
                "map_n_averaged": queries.n_averaged,
                "map_n_no_relevant": queries.n_no_relevant,
                "map_n_missing": queries.n_missing,
            }
            yield from population.overall(numbers)


def average_precision(ranking: Ranking, options: AveragePrecisionSettings) -> float:
    """AP of one ranking; NaN where nothing is relevant."""
    highest = 0.0
    areas = []
    for hits, _, precision, before in steps(ranking, options.ties):
        if options.interpolation == "max" and len(precision):
            precision = np.maximum(np.maximum.accumulate(precision[::-1])[::-1], highest)
            before = np.maximum(before, precision)
            highest = precision[0]
        height = precision
        if options.integration == "trapezoid":
            height = np.where(np.isnan(before), precision, (before + precision) / 2)
        areas.append(fsum(hits * height))
    return fsum(areas) / ranking.relevant if ranking.relevant else np.nan


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
