"""TWV where every query's scores may be moved by an offset of its own: what one threshold cannot give.

`twv_query_offset` is the TWV with each query's best threshold, hence OTWV (`measures.optimum_twv`), which MediaEval's
tool calls the upper bound of TWV. It is the best that a calibration of the scores that knows the query can do.

QUIRK, under `compat = "mediaeval"`: the tool cuts each query's list of trials (`measures.file_order`) anywhere, between
equal scores too, and imputed trials are in it. So its bound can be higher than any threshold gives. What it prints is
a bound of scores that PAV has overwritten, `mediaeval_offset_atwv` (`measures.mediaeval_tool`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from swsdask.measures import file_order, query_sweep
from swsdask.measures.base import Value
from swsdask.measures.file_order import TrialList, trial_list
from swsdask.measures.optimum_twv import best_rows, own_hits
from swsdask.measures.query_sweep import query_sweeps
from swsdask.measures.twv import twv
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64, Reference
from swsdask.statistics.base import Statistic


class QueryOffset:
    """twv_query_offset."""

    names: ClassVar[tuple[str, ...]] = ("twv_query_offset",)
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*query_sweep.NEEDS, *file_order.NEEDS)))

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        point = weights(reference, settings)
        for population, sweep in query_sweeps(statistics, reference):
            if settings.compat == "mediaeval":
                trials = trial_list(statistics, reference, population, settings)
                misses, false_alarms = np.zeros((2, reference.n_queries), np.int64)
                misses[population.with_targets], false_alarms[population.with_targets] = _of_cuts(trials, point.beta)
            else:
                best = best_rows(sweep, population, own_hits(sweep), point)
                misses, false_alarms = population.targets - sweep.hits[best], sweep.false_alarms[best]
            yield from population.overall(
                {"twv_query_offset": twv(*population.rates_of(misses, false_alarms), point.beta)}
            )


def _of_cuts(trials: TrialList, beta: float) -> tuple[I64, I64]:
    """Misses and false alarms of every query of a list, int64, where its trials are best cut in two."""
    rows = trials.rows_of_queries
    misses, accepted = (np.append(0, np.cumsum(side)) for side in (rows.target, rows.nontarget))
    found = np.zeros((2, len(rows.offsets) - 1), np.int64)
    for query, (begin, end) in enumerate(pairwise(rows.offsets.tolist())):
        missed = misses[begin : end + 1] - misses[begin]
        alarms = accepted[end] - accepted[begin : end + 1]
        loss = missed / max(missed[-1], 1) + beta * (alarms / max(alarms[0], 1))
        best = int(np.argmin(loss))
        found[:, query] = missed[best], alarms[best]
    return found[0], found[1]
