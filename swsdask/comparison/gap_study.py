"""The GAP study: which penalty functions rank simulated systems alike.

Source: Liu and Oard, One-Sided Measures for Evaluating Ranked Retrieval Effectiveness with Spontaneous Conversational
Speech, SIGIR 2006, Section 3. Ten topics have 6 to 15 onsets among 600 points (150 minutes in steps of 15 seconds). A
system's list holds every point once. Points come from a two-state Markov model, p = 0.5: state 0 emits all points with
equal probability, state 1 a point near an onset (Gaussian with a standard deviation of 3 points, cut off at 9), both
among the points not yet emitted; once none near an onset is left, state 1 emits like state 0. Each point is put at a
rank drawn by Zipf's law (rank k with a probability of 0.143 / k); the draw is repeated if the rank is taken. 100
systems are ranked by mean GAP over topics, under 28 penalty functions: triangular of +-10 to +-2, rectangular of +-10
to +-1, Gaussian of sigma 5 to 2 in nine even steps cut at +-10. Kendall's tau (tau-b) compares the rankings.

Differences from the source: it repeats a draw while the rank is taken; here ranks are drawn among the free ones, which
is the same distribution. The source has one run; this study has any number of replicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from swsdask.comparison.rank_correlation import correlated
from swsdask.kernels.onsets import gap_of_lists, ranked_lists
from swsdask.model.ranked_measures import Penalty, gaussian, rectangular, triangular
from swsdask.model.studies import GapStudy
from swsdask.model.trials import F64, I64

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor

N_ONSETS = range(6, 16)
"""The numbers of onsets of the ten topics."""
CUT = 10.0


@dataclass(frozen=True)
class GapModel:
    """The model of systems, by default the source's.

    Parameters
    ----------
    points : int
        M, the number of points in a topic.
    systems : int
        The number of systems that are ranked.
    p : float
        The probability that state 1 follows either state of the Markov model.
    sigma : float
        The standard deviation of the points near an onset, in points.
    cutoff : int
        The greatest distance of these points from an onset.
    """

    points: int = 600
    systems: int = 100
    p: float = 0.5
    sigma: float = 3.0
    cutoff: int = 9

    @property
    def points_per_replicate(self) -> int:
        """The number of points that a replicate ranks."""
        return self.points * self.systems * len(N_ONSETS)

    @property
    def chosen(self) -> str:
        """The settings that differ from the source's, for signatures."""
        pairs = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return "".join(f" {name}={value}" for name, value, default in pairs if value != default)


FUNCTIONS: tuple[tuple[str, Penalty], ...] = (
    *((f"triangular ±{width}", triangular(width, width)) for width in range(10, 1, -1)),
    *((f"rectangular ±{width}", rectangular(width)) for width in range(10, 0, -1)),
    *((f"Gaussian sigma {sigma:g}", gaussian(sigma, CUT)) for sigma in np.linspace(5.0, 2.0, 9).tolist()),
)
"""The source's penalty functions in its order, by name; distances in points."""


def gap_study(
    seed: int,
    replicates: int,
    executor: Executor,
    done: Callable[[int], None] | None = None,
    model: GapModel = GapModel(),
) -> GapStudy:
    """Return the study with `replicates` replicates, at least one, of systems by a model.

    `done` is called with the number of each replicate when it ends.

    The same seed gives the same bits on every executor; a longer study begins with the same replicates.
    """
    found = executor.map_reduce(
        _replicate, range(replicates), or_, (seed, model), label=lambda number: f"replicate {number}", done=done
    )
    assert found is not None
    return GapStudy(seed, tuple(name for name, _ in FUNCTIONS), np.stack([found[n] for n in range(replicates)]))


def _replicate(number: int, shared: tuple[int, GapModel]) -> dict[int, F64]:
    """Return Kendall's tau between the rankings of one set of simulated systems, by the replicate's number."""
    seed, model = shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    gap = np.zeros((len(FUNCTIONS), model.systems))
    for n_onsets in N_ONSETS:
        onsets = np.sort(rng.choice(model.points, n_onsets, replace=False)).astype(np.int64)
        lists = _lists(onsets, rng, model)
        for line, (_, penalty) in zip(gap, FUNCTIONS, strict=True):
            line += gap_of_lists(lists, onsets, *penalty)
    return {number: correlated(gap / len(N_ONSETS)).tau_b}


def _lists(onsets: I64, rng: np.random.Generator, model: GapModel) -> I64:
    """Return every system's ranked list for a topic: int64 [systems, points]."""
    distance = np.arange(model.points)[:, np.newaxis] - onsets
    weight = np.where(np.abs(distance) <= model.cutoff, np.exp(-0.5 * (distance / model.sigma) ** 2), 0.0).sum(axis=1)
    shape = (model.systems, model.points)
    intended = rng.random(shape) < model.p
    anywhere, near, place = rng.standard_exponential((3, *shape))
    return ranked_lists(weight, intended, anywhere, near, place)
