"""Where a system loses: the parts of 1 - ATWV, over all queries of a condition.

Each of 1, STWV, OTWV, MTWV and ATWV takes one freedom away from the one before; a part is what that costs.

- `loss_not_found` = 1 - STWV: targets that no detection is mapped to.
- `loss_within_query` = STWV - OTWV: false alarms that score like hits of their own query.
- `loss_across_queries` = OTWV - MTWV: scores that mean different things in different queries, so that one threshold
  does not suit all.
- `loss_threshold` = MTWV - ATWV: decisions that are not those of the best threshold. Negative where decisions by query
  are better than any one threshold.

Each part is one subtraction of two measures, rounded once; together they are 1 - ATWV. A part is not defined (NaN)
where one of its two measures is not. `loss_not_found` and `loss_within_query` are never negative.
`loss_across_queries` can be, but only where P_miss and P_fa average over different queries (`measures.averages`): OTWV
is then best for each query, not for the averages.

QUIRK, under `compat = "kwseval"`: MTWV and OTWV cannot reject everything, so both can be negative; `loss_threshold` is
negative for a system that rejects everything where no threshold is better than that.

QUIRK, under `compat = "mediaeval"`: MTWV may accept imputed trials, which the other measures never do. So
`loss_across_queries` and `loss_threshold` are not defined.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import numpy as np

from swsdask.measures.averages import Values
from swsdask.measures.measure import Scored
from swsdask.measures.optimum import OptimumTwv
from swsdask.measures.twv import ActualTwv, MaximumTwv, SupremumTwv
from swsdask.statistics.statistic import Statistic

_STEPS = (SupremumTwv(), OptimumTwv(), MaximumTwv(), ActualTwv())
"""The families of the measures that parts lie between; the first name of each."""


class TwvLosses:
    """loss_not_found, loss_within_query, loss_across_queries, loss_threshold."""

    names: ClassVar[tuple[str, ...]] = ("loss_not_found", "loss_within_query", "loss_across_queries", "loss_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(
        dict.fromkeys(needed for family in _STEPS for needed in family.needs)
    )

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        overall = {
            (values.condition, name): float(column[0])
            for family in _STEPS
            for values in family.values(scored)
            if values.queries is None
            for name, column in values.columns.items()
        }
        imputes = scored.settings.compat == "mediaeval"
        for population in scored.populations:
            stwv, otwv, mtwv, atwv = (overall[population.condition.name, family.names[0]] for family in _STEPS)
            reached = (1.0, stwv, otwv, np.nan if imputes else mtwv, atwv)
            parts = (before - after for before, after in pairwise(reached))
            yield population.overall(dict(zip(self.names, parts, strict=True)))
