"""The detection error trade-off: P_miss against P_fa as one threshold moves over all queries.

The vertices of a curve are rejecting everything, accepting the scores >= that of each hit, and accepting everything;
from one to the next it runs straight. Between two of them only false alarms are added, which a straight line takes as
spread evenly; every vertex itself is exact. Curves:

- "det": rates averaged over queries (2013 measures document, Eq. 4-5).
- "det_pooled": all queries that averages count as one set of trials (see `measures.rates`, and its QUIRK about |Q|).
  There is no curve where N_nt is negative.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: "det_pooled" counts the false alarms of the queries that averages
leave out, as NIST's tools do (KWSEval -P), and ends at the lowest score of all queries.

Read off the averaged curve, linearly between vertices:

- `eer`: the rate at which P_miss = P_fa. NaN if the system never accepts enough for the two to meet.
- `p_miss@P_FA`: P_miss at each of the settings' `p_fa_points`, the lowest one there; NaN beyond the curve's end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from swsdask.measures.averages import Values
from swsdask.measures.measure import Curve, Scored
from swsdask.measures.rates import pooled_rates
from swsdask.measures.sweep import NEEDS, threshold_sweep
from swsdask.model.trials import F64
from swsdask.statistics.ladder import AllScores
from swsdask.statistics.statistic import Statistic


class DetectionErrorTradeoff:
    """eer, p_miss@P_FA."""

    names: ClassVar[tuple[str, ...]] = ("eer", "p_miss@")
    needs: ClassVar[tuple[type[Statistic], ...]] = (*NEEDS, AllScores)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        for population in scored.populations:
            sweep = threshold_sweep(scored, population)
            at = sweep.vertices
            p_fa, p_miss = sweep.p_fa[at], sweep.p_miss[at]
            numbers = {"eer": _equal_error_rate(p_fa, p_miss)}
            numbers |= {f"p_miss@{point!r}": _p_miss_at(point, p_fa, p_miss) for point in scored.settings.p_fa_points}
            yield population.overall(numbers)


def curves(scored: Scored) -> Iterator[Curve]:
    """Both curves of every condition, x = P_fa, y = P_miss, from the highest threshold to the lowest."""
    for population in scored.populations:
        sweep = threshold_sweep(scored, population)
        at = sweep.vertices
        threshold, name = sweep.thresholds[at], population.condition.name
        yield Curve(name, "det", threshold, sweep.p_fa[at], sweep.p_miss[at])
        hits, false_alarms = sweep.hits[at], sweep.false_alarms[at]
        if (every := scored.get(AllScores)) is not None:
            strata = population.asked[:, np.newaxis] & population.condition.groups
            scores = every.score[strata[every.query, every.group]]
            if len(scores) and scores[0] < threshold[-1]:
                threshold, hits = np.append(threshold, scores[0]), np.append(hits, hits[-1])
            false_alarms = len(scores) - np.searchsorted(scores, threshold) - hits
        p_miss, p_fa = pooled_rates(scored, population, hits, false_alarms)
        yield Curve(name, "det_pooled", threshold, np.where(np.signbit(p_fa), np.nan, p_fa), p_miss)


def _equal_error_rate(p_fa: F64, p_miss: F64) -> float:
    """Return the rate at which a curve of ascending P_fa and descending P_miss crosses the diagonal from above."""
    crossed = np.flatnonzero(p_fa >= p_miss)
    if len(crossed) == 0:
        return np.nan
    after = int(crossed[0])
    above, below = p_miss[after - 1] - p_fa[after - 1], p_fa[after] - p_miss[after]
    return float(p_fa[after - 1] + (p_fa[after] - p_fa[after - 1]) * (above / (above + below)))


def _p_miss_at(point: float, p_fa: F64, p_miss: F64) -> float:
    after = int(np.searchsorted(p_fa, point, side="right"))
    if after == 0 or np.isnan(p_fa[0]) or point > p_fa[-1]:
        return np.nan
    if after == len(p_fa):
        return float(p_miss[-1])
    share = (point - p_fa[after - 1]) / (p_fa[after] - p_fa[after - 1])
    return float(p_miss[after - 1] + share * (p_miss[after] - p_miss[after - 1]))
