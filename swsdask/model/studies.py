"""Results of the two simulation studies: the coverage study and the GAP study."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from swsdask.model.comparison import Resampling
    from swsdask.model.tables import Row
    from swsdask.model.trials import F64, Bool

EVALUATIONS, N_QUERIES, REPLICATES = 4000, 200, 500
"""The size of a study. With 4000 evaluations a share of 4 % has a standard error of .31 points. Every test must reject
in 3 to 7 %; the lower bound is three standard errors below the most conservative test, the sign test, which can reject
in 4.2 % at most. With 400 evaluations it would be one, and one study in six would miss the bound by chance.
"""


@dataclass(frozen=True, eq=False)
class CoverageStudy:
    """Coverage of intervals and rejection rates of tests, over simulated evaluations.

    `found` bool [n_evaluations, n_names]; `names` are (measure, interval or test), `truth` the true values.
    """

    seed: int
    n_queries: int
    how: Resampling
    names: tuple[tuple[str, str], ...]
    found: Bool
    truth: dict[str, float]

    @property
    def rows(self) -> list[Row]:
        """A row for every name: the share, and the 95 % interval (Wilson) that its number of evaluations gives it.

        `expected` is its nominal value: the level of the intervals, or the share that a test should reject.
        """
        n, z = len(self.found), 1.959963984540054
        rows = []
        for (measure, name), share in zip(self.names, self.found.mean(axis=0).tolist(), strict=True):
            middle = (share + z * z / (2 * n)) / (1 + z * z / n)
            half = z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
            expected = self.how.level if name.endswith("interval") else 1 - self.how.level
            ends = {"low": middle - half, "high": middle + half, "expected": expected}
            rows.append({"measure": measure, "name": name, "share": share, **ends})
        return rows


@dataclass(frozen=True, eq=False)
class GapStudy:
    """`tau` float64 [n_replicates, n_functions, n_functions]: Kendall's tau-b between the rankings of the simulated
    systems by mean GAP under each pair of `functions`. Replicate i has the stream of random numbers (seed, i).
    """

    seed: int
    functions: tuple[str, ...]
    tau: F64

    @property
    def _others(self) -> F64:
        """The tau of every function with the others: [n_replicates, n_functions, n_functions - 1]."""
        n = len(self.functions)
        return self.tau[:, ~np.eye(n, dtype=np.bool_)].reshape(len(self.tau), n, n - 1)

    @property
    def median(self) -> F64:
        """The median over the other functions: [n_replicates, n_functions]."""
        return np.median(self._others, axis=2)

    @property
    def lowest(self) -> F64:
        """The minimum over the other functions: [n_replicates, n_functions]."""
        least: F64 = self._others.min(axis=2)
        return least

    @property
    def highest(self) -> F64:
        """The maximum over the other functions: [n_replicates, n_functions]."""
        greatest: F64 = self._others.max(axis=2)
        return greatest

    @property
    def best(self) -> F64:
        """The share of replicates in which a function's median is the highest; equal ones share it: [n_functions]."""
        first = self.median == self.median.max(axis=1, keepdims=True)
        share: F64 = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
        return share
