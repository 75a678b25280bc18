"""How much there is to average: queries, targets and detections by outcome.

- `n_queries`: queries that averages count; `n_target`: their target trials (N_act added up).
- `n_detections`: detections that are trials; `n_nontarget`: those of them mapped to no target (KWSEval's #NTarg).
- `n_hit`, `n_miss`, `n_false_alarm`, `n_correct_nondetection`: outcomes by the system's decisions (2013 measures
  document, section 2.1). Not defined (NaN) where a trial has no decision.

Detections of queries that averages leave out are not counted, as in KWSEval's summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from swsdask.measures.base import Value
from swsdask.measures.outcomes import outcomes, undefined_without
from swsdask.measures.population import populations
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class Totals:
    """n_queries, n_target, n_nontarget, n_detections and the outcomes."""

    names: ClassVar[tuple[str, ...]] = (
        "n_queries",
        "n_target",
        "n_nontarget",
        "n_detections",
        "n_hit",
        "n_miss",
        "n_false_alarm",
        "n_correct_nondetection",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall and per query."""
        counts: Counts = statistics[Counts]
        defined = undefined_without(counts.has_decisions)
        for population in populations(reference):
            found = outcomes(counts, population)
            counted = {
                "n_target": population.targets,
                "n_nontarget": found.unmapped,
                "n_detections": found.mapped + found.unmapped,
            }
            decided = {
                "n_hit": found.hit,
                "n_miss": found.miss,
                "n_false_alarm": found.false_alarm,
                "n_correct_nondetection": found.correct_nondetection,
            }
            chosen = population.queries
            yield from population.overall({"n_queries": population.n_queries})
            yield from population.overall({name: column[chosen].sum() for name, column in counted.items()})
            yield from population.overall({name: column[chosen].sum() * defined for name, column in decided.items()})
            yield from population.by_query(
                reference, counted | {name: column * defined for name, column in decided.items()}
            )
