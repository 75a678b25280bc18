"""The Monte Carlo study of GAP: which penalty functions rank simulated systems alike.

Source: Liu and Oard, One-Sided Measures for Evaluating Ranked Retrieval Effectiveness with Spontaneous Conversational
Speech, SIGIR 2006, Section 3. Ten topics have 6 to 15 onsets among 600 points (150 minutes in steps of 15 seconds). A
system's list holds every point once. Points come from a two-state Markov model, p = 0.5: state 0 emits any point alike,
state 1 one near an onset (Gaussian with a standard deviation of 3 points, cut off at 9), both among the points not yet
emitted; once none near an onset is left, state 1 emits as state 0 does. Each point is put at a rank drawn by Zipf's law
(rank k with a probability of 0.143 / k), again where the rank is taken. 100 systems are ranked by mean GAP over topics,
under 28 penalty functions: triangular of +-10 to +-2, rectangular of +-10 to +-1, Gaussian of sigma 5 to 2 in nine even
steps cut at +-10. Kendall's tau (tau-b) compares the rankings.

Differences from the source: it draws a rank again while it is taken, here ranks are drawn among the free ones, which is
the same distribution. It is one run; this has as many replicates as wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from swsdask.kernels.onsets import gap_of_lists, ranked_lists
from swsdask.model.ranked_measures import Penalty, gaussian, rectangular, triangular
from swsdask.model.results import GapStudy
from swsdask.model.trials import F64, I64

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor

N_ONSETS = range(6, 16)
"""Of each topic."""
CUT = 10.0


@dataclass(frozen=True)
class Model:
    """The model of systems, by default the source's.

    Parameters
    ----------
    points : int
        M, the number of points in a topic.
    systems : int
        How many systems are ranked.
    p : float
        The probability of either state of the Markov model to be followed by state 1.
    sigma : float
        The standard deviation of the points near an onset, in points.
    cutoff : int
        How far from an onset these points lie at most.
    """

    points: int = 600
    systems: int = 100
    p: float = 0.5
    sigma: float = 3.0
    cutoff: int = 9

    @property
    def points_per_replicate(self) -> int:
        """How many points a replicate ranks."""
        return self.points * self.systems * len(N_ONSETS)

    @property
    def chosen(self) -> str:
        """Return the settings that differ from the source's, for signatures."""
        pairs = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return "".join(f" {name}={value}" for name, value, default in pairs if value != default)


FUNCTIONS: tuple[tuple[str, Penalty], ...] = (
    *((f"triangular ±{width}", triangular(width, width)) for width in range(10, 1, -1)),
    *((f"rectangular ±{width}", rectangular(width)) for width in range(10, 0, -1)),
    *((f"Gaussian sigma {sigma:g}", gaussian(sigma, CUT)) for sigma in np.linspace(5.0, 2.0, 9).tolist()),
)
"""The source's penalty functions in its order, by name; distances in points."""


def study(
    seed: int,
    replicates: int,
    executor: Executor,
    done: Callable[[int], None] | None = None,
    model: Model = Model(),
) -> GapStudy:
    """The study with so many replicates, at least one, of systems by a model.

    `done` is called with the number of each replicate as it ends.

    The same seed gives the same bits on every executor, and the first replicates of a longer study.
    """
    found = executor.map_reduce(
        _replicate, range(replicates), or_, (seed, model), label=lambda number: f"replicate {number}", done=done
    )
    assert found is not None
    return GapStudy(seed, tuple(name for name, _ in FUNCTIONS), np.stack([found[n] for n in range(replicates)]))


def _replicate(number: int, shared: tuple[int, Model]) -> dict[int, F64]:
    """Kendall's tau between the rankings of one set of simulated systems, by the replicate's number."""
    seed, model = shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    gap = np.zeros((len(FUNCTIONS), model.systems))
    for n_onsets in N_ONSETS:
        onsets = np.sort(rng.choice(model.points, n_onsets, replace=False)).astype(np.int64)
        lists = _lists(onsets, rng, model)
        for line, (_, penalty) in zip(gap, FUNCTIONS, strict=True):
            line += gap_of_lists(lists, onsets, *penalty)
    return {number: kendall(gap / len(N_ONSETS))}


def _lists(onsets: I64, rng: np.random.Generator, model: Model) -> I64:
    """Every system's ranked list for a topic: int64 [systems, points]."""
    distance = np.arange(model.points)[:, np.newaxis] - onsets
    weight = np.where(np.abs(distance) <= model.cutoff, np.exp(-0.5 * (distance / model.sigma) ** 2), 0.0).sum(axis=1)
    shape = (model.systems, model.points)
    intended = rng.random(shape) < model.p
    anywhere, near, place = rng.standard_exponential((3, *shape))
    return ranked_lists(weight, intended, anywhere, near, place)


def kendall(scores: F64) -> F64:
    """Kendall's tau-b between the rankings that the lines of float64 [n, n_systems] make: float64 [n, n].

    NaN where all scores of a line are equal.
    """
    first, second = np.triu_indices(scores.shape[1], 1)
    order = np.sign(scores[:, first] - scores[:, second]).astype(np.int64)
    agreeing = np.einsum("ik,jk->ij", order, order)
    untied = np.diagonal(agreeing)
    tau: F64 = agreeing / np.sqrt(np.outer(untied, untied))
    return tau
