"""Average precision of the rankings that scores make.

Trials are sorted by score, descending; trials of equal score form a group. With H and F the hits and false alarms down
to the end of a group, its precision is P = H / (H + F), and AP = (1/R) sum over groups of (hits in the group) x P', R
being all targets, retrieved or not, and P' the interpolated precision: the highest P from this group down to the last.

- `ap`: of one ranking of all trials; per query, of that query's trials.
- `map`: the average of the AP of the queries with targets; one without detections has AP = 0.

Groups without hits have a lower precision than the last one before them that has some, so only scores of hits matter.

QUIRK, under `compat = "kwseval"`: precision is not interpolated, and within a group false alarms come first and hits
one by one: each hit is credited with (its rank among hits) / (that rank + F).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any, ClassVar

import numpy as np

from swsdask.measures import query_sweep, sweep
from swsdask.measures.base import Value
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, I64, Reference
from swsdask.statistics.base import Statistic


class AveragePrecision:
    """ap, map."""

    names: ClassVar[tuple[str, ...]] = ("ap", "map")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*sweep.NEEDS, *query_sweep.NEEDS)))

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall; ap per query as well."""
        credit = _hits_one_by_one if settings.compat == "kwseval" else _interpolated
        together = sweep.sweeps(statistics, reference)
        apart = query_sweep.query_sweeps(statistics, reference)
        for (population, line), (_, lines) in zip(together, apart, strict=True):
            steps = np.flatnonzero(line.step)
            pooled = fsum(credit(line.hits[steps], line.false_alarms[steps])) / (population.n_target or np.nan)
            of_query = np.full(reference.n_queries, np.nan)
            for query in np.flatnonzero(population.queries & (population.targets > 0)).tolist():
                rows = lines.rows(query)
                steps = rows.start + np.flatnonzero(lines.new_hits[rows])
                of_query[query] = fsum(credit(lines.hits[steps], lines.false_alarms[steps])) / population.targets[query]
            averaged = of_query[~np.isnan(of_query)]
            mean = fsum(averaged) / (len(averaged) or np.nan)
            yield from population.overall({"ap": pooled, "map": mean})
            yield from population.by_query(reference, {"ap": of_query})


def _interpolated(hits: I64, false_alarms: I64) -> F64:
    """What groups add to R AP, from hits and false alarms down to each: groups by ascending score."""
    precision: F64 = np.maximum.accumulate(hits / (hits + false_alarms))
    return _new(hits) * precision


def _hits_one_by_one(hits: I64, false_alarms: I64) -> F64:
    """What single hits add to R AP, false alarms of equal score in front of them."""
    in_front = np.repeat(false_alarms, _new(hits))
    rank = np.arange(len(in_front), 0, -1)
    credit: F64 = rank / (rank + in_front)
    return credit


def _new(hits: I64) -> I64:
    """The hits of each group itself."""
    new: I64 = -np.diff(hits, append=0)
    return new
