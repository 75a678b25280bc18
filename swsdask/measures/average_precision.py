"""Average precision, its mean over queries, and precision at ranks and recalls.

Average precision of rankings by score
--------------------------------------
Trials are sorted by score, descending; g runs over groups of equal scores, with H_g the hits and F_g the false alarms
down to the end of a group, P_g = H_g / (H_g + F_g) its precision, and R all targets, retrieved or not:

    AP = (1/R) sum over g of (H_g - H_(g-1)) Q_g

- `ap`: AP of one ranking of all trials of the queries that averages count; per query, of that query's trials. NaN
  without targets.
- `map`: the average of the AP of queries. `map_n_averaged` queries are averaged. The rule `no_relevant` leaves out
  `map_n_no_relevant` queries of the condition, the rule `missing` leaves out `map_n_missing` others.

An event is a trial: an occurrence or a detection (virtual trials), a (query, segment) or a (query, document) with the
best score of the pair. If several detections are of one event, `duplicates` can change this.

Settings, in `[evaluation.average_precision]`:

- `integration`: "step", Q_g = P_g (default), or "trapezoid", Q_g = (P_(g-1) + P_g) / 2, Q_1 = P_1. A group without hits
  is a group too.
- `interpolation`: "max" (default) first replaces P_g by the highest P_h, h >= g ("interpolated precision", Eq. 5.7
  of the thesis), or "none".
- `ties`: the treatment of equal scores. "group" (default): they are one group. "best" and "worst": single trials are
  ranked, with targets first or last. "document-descending", "document-ascending": single trials are ordered by the id
  of their document (by code points; unknown documents have the id ""), those of one document by start; if that is equal
  too, targets come first. "input": single trials are in the order of the run's files; the archive must have been
  written under this setting. In the ranking of all queries, trials that are still equal are ordered by query.
  "expected": the expected AP over all orders of equal scores; with "max" it takes the highest, from each rank on, of
  the precision that is expected if a hit is at that rank, not the expectation of the highest.
- `duplicates`: the treatment of several detections of one event, in all rankings, of queries and of all trials (every
  other measure uses the evaluation's trials). "as-trials" (default): as the kind of trials treats them, which is one of
  the next two. "false-positive", the rule of occurrences: one is the event, the others are false alarms, each at its
  own score. "ignore", the rule of segments and documents: one, there the best, is the event, the others are left out;
  for occurrences, detections that could be paired with one but are not mapped are left out. "first": the detection of
  a segment or a document that comes first in the run's files is the event, whatever its score, the others are left out;
  the archive must have been written under this setting. It is refused for occurrences: there the alignment decides
  which detection is mapped. A note counts the detections that a rule adds or leaves out.
- `score_dtype`: "float32" rounds scores before they are compared, as tools written in C do.
- `score_floor`: scores below it count as equal to it (0 in kws-assessment; by default there is no floor).
- `score_order`: "number" (default), or "text": scores are compared character by character, in their shortest decimal
  form, of which 16 characters count (QUIRK): 9.5 precedes 10, and -2 precedes -1. QUIRK, with "text": the terms of a
  query's AP are added one by one, from the first rank, as KWSEval does, not rounded once.
- `no_relevant`: queries of the condition without targets are left out of MAP ("exclude", default), count as AP = 0
  ("zero"; those without trials follow `missing`), count as AP = 0 if they have trials and are left out otherwise
  ("zero-if-retrieved"), or make it NaN ("nan"). As everywhere, the evaluation's `no_targets` decides whether their
  trials are in the ranking of all queries.
- `addition`: terms of a query and numbers of queries are added exactly and rounded once ("exact", default), or one
  after the other in double precision, from the first rank and in the order of the query list ("running"; trec_eval,
  with topics by id), which decides how exact halves are rounded.
- `missing`: queries without trials count as AP = 0 ("zero", default; `trec_eval -c` and ir_measures, with
  no_relevant = "zero") or are left out and have no numbers ("skip"; trec_eval).

Presets (files of `conf/`, to be joined to an evaluation's own: `--preset quesst2014,trec`): simplekwseval,
kws-assessment, trec, trec10, sklearn, kwseval. Several detections of one event: KWSEval follows its trials; trec_eval
refuses a document that a query has twice, and so do we in TREC's files; SimpleKwsEval takes the best detection of a
relevant event and every detection of another event (not imitated); the input of the other tools is events.
`compat = "kwseval"` implies the rule of the preset kwseval: scores are compared as text, and among equal ones false
alarms come first; with `no_targets = "false_alarms_only"` (its -inc) also `no_relevant = "zero"`. Not imitated: the
tool compares the texts of the file, so that 0.50 precedes 0.5, and 1e-1 is greater than 0.5; it adds percentages
separately, which decides how exact halves are rounded.

Sources: thesis chapter 5.2 (Eq. 5.1-5.7); McSherry and Najork, ECIR 2008, for expected AP.

Precision at given ranks and recalls
------------------------------------
The measures are per query, and averaged over the queries that MAP averages.

- `precision_at_rank@K`: hits among the first K trials, divided by K even if there are fewer trials; at each of the
  settings' `average_precision.ranks`.
- `r_precision`: the same at K = R, the number of the query's targets.
- `precision_at_recall@R`: the interpolated precision, the highest at this recall or a higher one (Eq. 5.7 of the
  thesis), 0 if the ranking never reaches this recall; at each of `average_precision.recalls`, by default the 11 points
  0 to 1. A recall is reached with the smallest whole number of hits that gives it or more
  (`recall_rounding = "exact"`).

QUIRK, `recall_rounding = "trec_eval"`: trec_eval 9 needs int(r R + .9) hits, in double arithmetic. This is one less
where r R has a fraction below .1, and where the sum is rounded down slightly: .7 3 + .9 < 3. trec_eval 10 takes the
whole number nearest to the product r R in double arithmetic, the higher of two: `recall_rounding = "nearest"`.

Equal scores are ordered as for average precision (`ties`, `score_dtype`). Where that rule gives no order ("group",
"expected"), a group that rank K divides counts in proportion, which is the expectation over all orders; and recall is
that of whole groups. Queries are averaged as for MAP (`no_relevant`, `missing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import ClassVar

import numpy as np

from swsdask.kernels.sums import highest_behind, rounded_sums, running_sums
from swsdask.measures.measure import Population, Scored, Values, cached
from swsdask.measures.rankings import (
    JUDGED,
    NEEDS,
    POOLED_NEEDS,
    Rankings,
    Steps,
    expected_steps,
    pooled_ranking,
    query_rankings,
    steps,
)
from swsdask.model.columns import list_sums, ratio
from swsdask.model.measures import at_level, named_at
from swsdask.model.ranked_measures import WITHOUT_ORDER, Addition, AveragePrecisionSettings
from swsdask.model.trials import F64, I64, Bool
from swsdask.statistics.statistic import Statistic

LEAST = 0.00001
"""The least value in a geometric mean: lower ones count as this."""


@dataclass(frozen=True, eq=False)
class RankedQueries:
    """The queries of a condition that averages of rankings count: bool [n_queries].

    `ranked` have targets and are averaged; `as_zero` and `as_nan` have none and count as 0 or NaN; the others are left
    out. Of these, the `skipped` have no numbers by query either, so that an average is that of the numbers by query.
    """

    population: Population
    ranked: Bool
    as_zero: Bool
    as_nan: Bool
    skipped: Bool
    n_no_relevant: int
    n_missing: int
    addition: Addition

    @cached_property
    def averaged(self) -> Bool:
        """The queries that averages count."""
        return self.ranked | self.as_zero | self.as_nan

    @cached_property
    def n_averaged(self) -> int:
        """The number of queries of an average."""
        return int(self.averaged.sum())

    def means(self, columns: Mapping[str, F64]) -> dict[str, float]:
        """Return the average of each column [n_queries]; NaN over no query."""
        if self.as_nan.any() or not self.n_averaged:
            return dict.fromkeys(columns, math.nan)
        counted = np.concatenate([self._with_zeros(column)[self.averaged] for column in columns.values()])
        offsets = np.arange(len(columns) + 1) * self.n_averaged
        sums = sums_of(counted, offsets, self.addition)
        return dict(zip(columns, (sums / self.n_averaged).tolist(), strict=True))

    def geometric_mean(self, column: F64) -> float:
        """Return the geometric mean of a column [n_queries].

        Values below `LEAST` count as `LEAST`; NaN over no query.
        """
        counted = self._with_zeros(column)[self.averaged].tolist()
        if self.as_nan.any() or not counted:
            return math.nan
        return math.exp(math.fsum(math.log(max(LEAST, each)) for each in counted) / len(counted))

    def by_query(self, columns: Mapping[str, F64]) -> Values:
        """Numbers by query, of the condition's queries and those averaged, by measure, from columns [n_queries]."""
        return self.counts_by_query({name: self._with_zeros(column) for name, column in columns.items()})

    def counts_by_query(self, columns: Mapping[str, F64 | I64]) -> Values:
        """Return `by_query` for numbers that queries have whether they count as zero or not."""
        listed = np.flatnonzero(self.population.queries & ~self.skipped | self.averaged)
        numbers = {name: column[listed].astype(np.float64) for name, column in columns.items()}
        return Values(self.population.condition.name, listed, numbers)

    def _with_zeros(self, column: F64) -> F64:
        """Return a column with 0 where a query counts as zero and has no number."""
        return np.where(self.as_zero & np.isnan(column), 0.0, column) if self._some_as_zero else column

    @cached_property
    def _some_as_zero(self) -> bool:
        return bool(self.as_zero.any())


@cached
def ranked_queries(scored: Scored, population: Population, level: int) -> RankedQueries:
    """Return the queries that averages of the rankings of one condition count, if relevant grades begin at `level`."""
    options, rankings = scored.settings.average_precision, query_rankings(scored, population, level)
    all_queries = population.all_queries
    relevant, retrieved = rankings.relevant > 0, rankings.retrieved > 0
    nobody = np.zeros_like(all_queries)
    without, skipped = all_queries & ~relevant, all_queries & ~retrieved if options.missing == "skip" else nobody
    as_zero = {"zero": without & ~skipped, "zero-if-retrieved": without & retrieved}.get(options.no_relevant, nobody)
    as_nan = without if options.no_relevant == "nan" else nobody
    missing = skipped if options.no_relevant == "zero" else skipped & relevant
    return RankedQueries(
        population=population,
        ranked=all_queries & relevant & ~skipped,
        as_zero=as_zero,
        as_nan=as_nan,
        skipped=skipped,
        n_no_relevant=int((without & ~as_zero & ~as_nan & ~missing).sum()),
        n_missing=int(missing.sum()),
        addition=options.addition,
    )


class AveragePrecision:
    """Average precision of all trials as one ranking, and query by query."""

    names: ClassVar[tuple[str, ...]] = ("ap",)
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*NEEDS, *POOLED_NEEDS, *JUDGED)))

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall and per query."""
        for population in scored.populations:
            pooled = average_precision(pooled_ranking(scored, population), scored.settings.average_precision)
            yield population.overall({"ap": float(pooled[0])})
            for level in scored.settings.average_precision.all_levels:
                queries = ranked_queries(scored, population, level)
                yield queries.by_query({at_level("ap", level): ap_of_queries(scored, population, level)})


class MeanAveragePrecision:
    """Mean average precision over queries, and their number; it needs no ranking of all trials."""

    names: ClassVar[tuple[str, ...]] = ("map", "map_n_averaged", "map_n_no_relevant", "map_n_missing")
    needs: ClassVar[tuple[type[Statistic], ...]] = (*NEEDS, *JUDGED)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        for population, level in product(scored.populations, scored.settings.average_precision.all_levels):
            queries = ranked_queries(scored, population, level)
            numbers = {
                **queries.means({"map": ap_of_queries(scored, population, level)}),
                "map_n_averaged": queries.n_averaged,
                "map_n_no_relevant": queries.n_no_relevant,
                "map_n_missing": queries.n_missing,
            }
            yield population.overall(named_at(level, numbers))


@cached
def ap_of_queries(scored: Scored, population: Population, level: int) -> F64:
    """Return AP of every query; NaN where nothing is relevant."""
    return average_precision(query_rankings(scored, population, level), scored.settings.average_precision)


def average_precision(rankings: Rankings, options: AveragePrecisionSettings) -> F64:
    """Return AP of each ranking; NaN where nothing is relevant."""
    if options.ties == "expected":
        areas = np.array([expected_area(rankings, number, options) for number in range(len(rankings))], np.float64)
    else:
        areas = _areas(steps(rankings, options.ties), options, 0.0)[0]
    return ratio(areas, rankings.relevant)


def expected_area(rankings: Rankings, number: int, options: AveragePrecisionSettings) -> float:
    """Return R times the expected AP of one ranking over all orders of equal scores."""
    highest, areas = 0.0, []
    for block in expected_steps(rankings, number):
        area, highest = _areas(block, options, highest)
        areas.append(float(area[0]))
    return math.fsum(areas)


def _areas(ranked: Steps, options: AveragePrecisionSettings, behind: float) -> tuple[F64, float]:
    """Return the sums of hits times precision of every ranking, and the highest precision of the first.

    Terms are added as `addition` says; if scores are compared as text, one by one (the QUIRK above). `behind` is the
    highest precision after the steps.
    """
    precision, before = ranked.precision, ranked.before
    if options.interpolation == "max" and len(precision):
        precision = np.maximum(highest_behind(precision, ranked.offsets), behind)
        before = np.maximum(before, precision)
        behind = float(precision[0])
    height = precision
    if options.integration == "trapezoid":
        height = np.where(np.isnan(before), precision, (before + precision) / 2)
    addition: Addition = "running" if options.score_order == "text" else options.addition
    return sums_of(ranked.hits * height, ranked.offsets, addition), behind


def sums_of(terms: F64, offsets: I64, addition: Addition) -> F64:
    """Return the sum of each list of terms: rounded once, or running."""
    if addition == "exact":
        return rounded_sums(terms, offsets)
    ends = np.append(0.0, running_sums(terms, offsets))[offsets[1:]]
    return np.where(np.diff(offsets) > 0, ends, 0.0)


class RankedPrecision:
    """Precision at ranks, at the number of targets and at recalls."""

    names: ClassVar[tuple[str, ...]] = ("r_precision", "precision_at_rank@", "precision_at_recall@")
    needs: ClassVar[tuple[type[Statistic], ...]] = (*NEEDS, *JUDGED)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield averages, and numbers per query."""
        options = scored.settings.average_precision
        for population, level in product(scored.populations, options.all_levels):
            rankings, queries = query_rankings(scored, population, level), ranked_queries(scored, population, level)
            by_rank = {"r_precision": rankings.relevant}
            by_rank |= {f"precision_at_rank@{rank}": np.full(len(rankings), rank) for rank in options.ranks}
            columns = {name: _precision_at_rank(rankings, rank, options.ties) for name, rank in by_rank.items()}
            columns |= {
                f"precision_at_recall@{recall!r}": precision
                for recall, precision in zip(
                    options.recalls, precisions_at_recalls(scored, population, level, options.recalls), strict=True
                )
            }
            columns = named_at(level, columns)
            yield population.overall(queries.means(columns))
            yield queries.by_query(columns)


def _precision_at_rank(rankings: Rankings, rank: I64, ties: str) -> F64:
    """Return the hits among the first `rank` [n_rankings] trials of each ranking, divided by `rank`."""
    return ratio(hits_at_rank(rankings, rank, ties), np.where(rankings.relevant > 0, rank, 0))


def hits_at_rank(rankings: Rankings, rank: I64, ties: str) -> F64:
    """Return the hits among the first `rank` [n_rankings] trials of each ranking."""
    if ties not in WITHOUT_ORDER:
        ranks = rankings.false_alarms_in_front(ties) + rankings.hit_ranks
        within = ranks <= np.repeat(rank, np.diff(rankings.hit_offsets))
        return list_sums(within, rankings.hit_offsets).astype(np.float64)
    size = rankings.new + rankings.through - rankings.above
    in_front = rankings.hits - rankings.new + rankings.above
    places = np.clip(rank[rankings.number] - in_front, 0, size)
    whole = np.where(places == size, rankings.new, 0)
    # At most one group of a ranking is cut: a whole number and one fraction add up to the exact sum, rounded once.
    cut = np.flatnonzero((places > 0) & (places < size))
    sums = list_sums(whole, rankings.offsets).astype(np.float64)
    sums[rankings.number[cut]] += rankings.new[cut] * places[cut] / size[cut]
    return sums


@cached
def precisions_at_recalls(scored: Scored, population: Population, level: int, recalls: tuple[float, ...]) -> F64:
    """Return the highest precision at a recall or a higher one: float64 [len(recalls), n_rankings]."""
    options, rankings = scored.settings.average_precision, query_rankings(scored, population, level)
    ranked = steps(rankings, "group" if options.ties in WITHOUT_ORDER else options.ties)
    highest = np.append(highest_behind(ranked.precision, ranked.offsets), 0.0)
    number = np.arange(len(rankings))
    most = int(max(ranked.recalled.max(initial=0.0), rankings.relevant.max(initial=0))) + 2
    place = np.repeat(number, np.diff(ranked.offsets)) * most + ranked.recalled.astype(np.int64)
    levels, of_level = np.unique(rankings.relevant, return_inverse=True)
    hits = _hits_at_recalls(recalls, tuple(levels.tolist()), options.recall_rounding)[:, of_level]
    first = np.searchsorted(place, number * most + hits)
    reached = np.where(first < ranked.offsets[1:], highest[first], 0.0)
    return np.where(rankings.relevant > 0, reached, np.nan)


@lru_cache(maxsize=16)
def _hits_at_recalls(recalls: tuple[float, ...], levels: tuple[int, ...], rounding: str) -> I64:
    """Return the hits needed for each recall, for each number of relevant trials: int64 [len(recalls), n_levels]."""
    found = np.empty((len(recalls), len(levels)), np.int64)
    for row, recall in enumerate(recalls):
        if rounding == "exact":
            over, under = Fraction(repr(recall)).as_integer_ratio()
            found[row] = [-(-over * relevant // under) for relevant in levels]
        elif rounding == "nearest":
            found[row] = [int(hits) + (hits - int(hits) >= 0.5) for hits in (recall * relevant for relevant in levels)]
        else:
            found[row] = [int(recall * relevant + 0.9) for relevant in levels]
    return found
