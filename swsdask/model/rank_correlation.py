"""How alike measures rank the systems of a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from swsdask.model.trials import F64, I64

RANK_CORRELATION = pa.schema(
    [
        pa.field("condition", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("other", pa.string(), nullable=False),
        pa.field("n_systems", pa.int64(), nullable=False),
        pa.field("n_left_out", pa.int64(), nullable=False),
        pa.field("tau_b", pa.float64(), nullable=False),
        pa.field("tau_ap", pa.float64(), nullable=False),
        pa.field("tau_ap_symmetric", pa.float64(), nullable=False),
    ]
)
"""A row for every ordered pair of measures, a measure with itself among them. `tau_ap` is of the ranking under
`measure` with that under `other` as the truth. NaN where fewer than two systems have both measures, or where all of
them are tied."""


@dataclass(frozen=True, eq=False)
class RankCorrelation:
    """Rankings of the systems of one condition under each of n_measures measures, compared pair by pair.

    A pair goes by the systems that have both measures: `n_systems` int64 [n_measures, n_measures] of `systems`. `tau_b`
    and `tau_ap` float64 of that shape: see `compare.kendall`. `winners` holds the best systems by measure, several
    where they are equal; none where no system has the measure.
    """

    condition: str
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    winners: tuple[tuple[str, ...], ...]
    n_systems: I64
    tau_b: F64
    tau_ap: F64

    @property
    def tau_ap_symmetric(self) -> F64:
        """The mean of tau_AP in both directions."""
        return (self.tau_ap + self.tau_ap.T) / 2

    @property
    def same_winner(self) -> list[list[bool]]:
        """Whether a system is the best, alone or among equals, under both measures of a pair."""
        return [[not set(own).isdisjoint(others) for others in self.winners] for own in self.winners]

    @property
    def table(self) -> pa.Table:
        """All pairs as rows of `RANK_CORRELATION`."""
        n = len(self.measures)
        names = pa.array(self.measures, pa.string())
        measure, other = (axis.ravel() for axis in np.indices((n, n)))
        columns = [
            pa.array([self.condition] * n * n, pa.string()),
            names.take(pa.array(measure)),
            names.take(pa.array(other)),
            self.n_systems.ravel(),
            len(self.systems) - self.n_systems.ravel(),
            self.tau_b.ravel(),
            self.tau_ap.ravel(),
            self.tau_ap_symmetric.ravel(),
        ]
        return pa.table(columns, schema=RANK_CORRELATION)
