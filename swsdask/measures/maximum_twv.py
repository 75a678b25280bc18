"""MTWV: the highest TWV that one threshold over all queries gives (2013 measures document, section 2.3).

The maximum is over all distinct scores and over rejecting everything, which has TWV = 0. Lowering the threshold between
the scores of two hits only adds false alarms, so only the scores of hits are looked at. Of thresholds with exactly
the same TWV (decided in exact arithmetic) the lowest counts.

- `mtwv`, and `mtwv_p_miss`, `mtwv_p_fa` at its threshold.
- `mtwv_threshold`: the smallest accepted score (NIST's convention); inf where rejecting everything is best.
- `mtwv_rejected_threshold`: the largest rejected score (as MediaEval's tool prints it); -inf if nothing is rejected.

QUIRK, under `compat = "kwseval"`: KWSEval cannot reject everything. Its MTWV is over the distinct scores only, so it
can be negative, and the highest score of all is looked at too, even if only false alarms have it. STDEval does reject
everything; it then prints the highest score as the threshold, here it is inf.

QUIRK, under `compat = "mediaeval"`: imputed trials are accepted too where the threshold is low enough, so their score
is a threshold (`measures.imputed_sweep`). Ties are decided in floating point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from swsdask.measures.base import Value
from swsdask.measures.censoring import censored
from swsdask.measures.imputed_sweep import with_imputed
from swsdask.measures.sweep import NEEDS, Sweep, best_place, sweeps
from swsdask.measures.twv import twv
from swsdask.model.application import weights
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts

_HAIR = 1e-12


class MaximumTwv:
    """mtwv, its thresholds and its error rates."""

    names: ClassVar[tuple[str, ...]] = (
        "mtwv",
        "mtwv_threshold",
        "mtwv_rejected_threshold",
        "mtwv_p_miss",
        "mtwv_p_fa",
    )
    needs: ClassVar[tuple[type[Statistic], ...]] = NEEDS

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        point = weights(reference, settings)
        for population, sweep in sweeps(statistics, reference):
            if not (population.n_with_targets and population.n_with_nontargets):
                yield from population.overall(dict.fromkeys(self.names, np.nan))
                continue
            if settings.compat == "mediaeval":
                sweep = with_imputed(sweep, population, censored(statistics[Counts], population, settings))
                best = _first_best(sweep, _candidates(sweep, reject_all=True), point.beta)
            else:
                candidates = _candidates(sweep, reject_all=settings.compat != "kwseval")
                best = best_place(statistics, reference, population, sweep, candidates, point)
            p_miss, p_fa = sweep.p_miss[best], sweep.p_fa[best]
            yield from population.overall(
                {
                    "mtwv": twv(p_miss, p_fa, point.beta),
                    "mtwv_threshold": sweep.thresholds[best],
                    "mtwv_rejected_threshold": sweep.rejected[best],
                    "mtwv_p_miss": p_miss,
                    "mtwv_p_fa": p_fa,
                }
            )


def _first_best(sweep: Sweep, places: I64, beta: float) -> int:
    value = twv(sweep.p_miss[places], sweep.p_fa[places], beta)
    return int(places[np.argmax(value >= value.max() - _HAIR)])


def _candidates(sweep: Sweep, *, reject_all: bool) -> I64:
    chosen = sweep.step.copy()
    chosen[-1 if reject_all else sweep.top] = True
    return np.flatnonzero(chosen)
