"""Average precision of the rankings that scores make: AP of one ranking of everything, MAP over queries.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.averaged import averaged
from swsdask.measures.base import Value
from swsdask.measures.precision_steps import steps
from swsdask.measures.rankings import NEEDS, POOLED_NEEDS, Ranking, pooled_rankings, rankings
from swsdask.model.ranking import AveragePrecisionSettings
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic


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
