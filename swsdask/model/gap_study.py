"""What the Monte Carlo study of GAP gives: how much rankings of systems depend on the penalty function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.model.trials import F64


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
        """The least over the other functions: [n_replicates, n_functions]."""
        least: F64 = self._others.min(axis=2)
        return least

    @property
    def highest(self) -> F64:
        """The greatest over the other functions: [n_replicates, n_functions]."""
        greatest: F64 = self._others.max(axis=2)
        return greatest

    @property
    def best(self) -> F64:
        """The share of replicates in which a function's median is the highest, equal ones sharing it: [n_functions]."""
        first = self.median == self.median.max(axis=1, keepdims=True)
        share: F64 = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
        return share
