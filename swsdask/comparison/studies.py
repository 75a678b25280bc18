"""Two simulation studies: how often intervals cover the truth and tests reject it, and which penalty functions agree.

Intervals and tests: an evaluation draws its queries from a population: the difficulty of each query, its number of
targets, and the scores of the targets and of the false alarms of two systems are random. Given the query, the two
systems are identically distributed and independent, so their true values are equal: an interval of 95 % should contain
the true value in 95 % of the evaluations, and a test at 5 % should reject equality in 5 %. The true value is that of
`_POPULATION` queries, whose own error is a fraction of an evaluation's. Evaluations go through `comparison.compare`,
like those of users.

GAP: which penalty functions rank simulated systems alike. Source: Liu and Oard, One-Sided Measures for Evaluating
Ranked Retrieval Effectiveness with Spontaneous Conversational Speech, SIGIR 2006, Section 3. Ten topics have 6 to 15
onsets among 600 points (150 minutes in steps of 15 seconds). A system's list holds every point once. Points come from a
two-state Markov model, p = 0.5: state 0 emits all points with equal probability, state 1 a point near an onset
(Gaussian with a standard deviation of 3 points, cut off at 9), both among the points not yet emitted; once none near an
onset is left, state 1 emits like state 0. Each point is put at a rank drawn by Zipf's law (rank k with a probability of
0.143 / k); the draw is repeated if the rank is taken. 100 systems are ranked by mean GAP over topics, under 28 penalty
functions: triangular of +-10 to +-2, rectangular of +-10 to +-1, Gaussian of sigma 5 to 2 in nine even steps cut at
+-10. Kendall's tau (tau-b) compares the rankings.

Differences from the source: it repeats a draw while the rank is taken; here ranks are drawn among the free ones, which
is the same distribution. The source has one run; this study has any number of replicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swsdask.comparison.compare import compare
from swsdask.comparison.rank_correlation import correlated
from swsdask.kernels.onsets import gap_of_lists, ranked_lists
from swsdask.model.comparison import CoverageStudy, Resampling
from swsdask.model.ranked_measures import Penalty, gaussian, rectangular, triangular
from swsdask.model.results import GapStudy
from swsdask.model.samples import Averages
from swsdask.model.trials import F64, I64, Bool

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor

_POPULATION = 100_000
_BLOCK = 20_000

_BETA = 66.7
_NONTARGETS = 36_000
"""The seconds without targets: ten hours."""

_MEAN_TARGETS, _MOST_TARGETS = 6.0, 30
_FALSE_ALARMS = 8.0
"""The mean number of false alarms of a query."""

EVALUATIONS, N_QUERIES, REPLICATES = 4000, 200, 500
"""The size of a study. With 4000 evaluations a share of 4 % has a standard error of .31 points. Every test must reject
in 3 to 7 %; the lower bound is three standard errors below the most conservative test, the sign test, which can reject
in 4.2 % at most. With 400 evaluations it would be one, and one study in six would miss the bound by chance.
"""

_MEASURES = ("atwv", "map")
_INTERVALS = ("percentile", "bca")
_TESTS = ("p_bootstrap", "p_randomization", "p_sign", "p_wilcoxon")

NAMES = tuple(
    (measure, name) for measure in _MEASURES for name in (*(f"{kind} interval" for kind in _INTERVALS), *_TESTS)
)
"""The outcomes of every evaluation: whether the interval contains the truth, or whether the test rejects."""


class _Shared(NamedTuple):
    seed: int
    n_queries: int
    how: Resampling
    truth: dict[str, float]


def interval_study(
    seed: int,
    evaluations: int,
    executor: Executor,
    *,
    n_queries: int = N_QUERIES,
    replicates: int = REPLICATES,
    done: Callable[[int], None] | None = None,
) -> CoverageStudy:
    """The study over `evaluations` evaluations. `done` is called with the number of each when it ends.

    The same seed gives the same bits on every executor; a longer study begins with the same evaluations.
    """
    truth = _truth(seed)
    shared = _Shared(seed, n_queries, Resampling(seed, replicates), truth)
    found = executor.map_reduce(
        _evaluation, range(evaluations), or_, shared, label=lambda number: f"evaluation {number}", done=done
    )
    assert found is not None
    return CoverageStudy(seed, n_queries, shared.how, NAMES, np.stack([found[n] for n in range(evaluations)]), truth)


def _truth(seed: int) -> dict[str, float]:
    """The measures of the population; every block of its queries has its own stream of random numbers."""
    sums: dict[str, list[float]] = {measure: [] for measure in _MEASURES}
    for block in range(_POPULATION // _BLOCK):
        (one, other) = _systems(np.random.default_rng([seed, 1, block]), _BLOCK)
        for measure in _MEASURES:
            sums[measure] += [one[measure].value, other[measure].value]
    return {measure: float(np.mean(values)) for measure, values in sums.items()}


def _evaluation(number: int, shared: _Shared) -> dict[int, Bool]:
    """Return, for each of `NAMES`, whether the interval contains the truth, or the test rejects."""
    systems = _systems(np.random.default_rng([shared.seed, 0, number]), shared.n_queries)
    samples = {"all": {measure: {"a": systems[0][measure], "b": systems[1][measure]} for measure in _MEASURES}}
    n_queries, how = {"all": shared.n_queries}, replace(shared.how, seed=shared.seed + number)
    both = compare(samples, n_queries, ("a", "b"), replace(how, interval="percentile"), [("a", "b")])
    alone = compare(samples, n_queries, ("a",), replace(how, interval="bca"), [])
    found: dict[tuple[str, str], bool] = {}
    for measure in _MEASURES:
        for kind, compared in zip(_INTERVALS, (both, alone), strict=True):
            row = compared.intervals_of("all", measure)[0]
            found[measure, f"{kind} interval"] = row["low"] <= shared.truth[measure] <= row["high"]
        (tests,) = both.differences_of("all", measure)
        found |= {(measure, test): tests[test] < 1 - how.level for test in _TESTS}
    return {number: np.array([found[name] for name in NAMES])}


def _systems(rng: np.random.Generator, n_queries: int) -> tuple[dict[str, Averages], dict[str, Averages]]:
    """Two identically distributed systems, as the averages over queries that ATWV and MAP are."""
    ease = rng.normal(0.0, 0.7, n_queries)
    n_targets = np.minimum(rng.geometric(1 / _MEAN_TARGETS, n_queries), _MOST_TARGETS)
    return _system(rng, ease, n_targets), _system(rng, ease, n_targets)


def _system(rng: np.random.Generator, ease: F64, n_targets: np.ndarray) -> dict[str, Averages]:
    n = len(ease)
    n_false = rng.poisson(_FALSE_ALARMS * np.exp(0.5 * rng.normal(size=n)))
    target = rng.normal(0.8 + ease[:, np.newaxis], 1.0, (n, _MOST_TARGETS))
    target[np.arange(_MOST_TARGETS) >= n_targets[:, np.newaxis]] = -np.inf
    target[rng.random(target.shape) < 0.15] = -np.inf  # not found at all
    false = rng.normal(-1.0, 0.8, (n, int(n_false.max(initial=0)) or 1))
    false[np.arange(false.shape[1]) >= n_false[:, np.newaxis]] = -np.inf
    p_miss = 1 - (target >= 0).sum(axis=1) / n_targets
    p_fa = (false >= 0).sum(axis=1) / (_NONTARGETS - n_targets)
    score = np.concatenate([target, false], axis=1)
    order = np.argsort(-score, axis=1, kind="stable")
    hit = np.take_along_axis(np.isfinite(score) & (np.arange(score.shape[1]) < _MOST_TARGETS), order, axis=1)
    precision = np.cumsum(hit, axis=1) / np.arange(1, score.shape[1] + 1)
    ap = (precision * hit).sum(axis=1) / n_targets
    return {
        "atwv": Averages(1.0, (-1.0, -_BETA), np.array([p_miss, p_fa])),
        "map": Averages(0.0, (1.0,), ap[np.newaxis]),
    }


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
        """Return the settings that differ from the source's, for signatures."""
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
    """The study with `replicates` replicates, at least one, of systems by a model.

    `done` is called with the number of each replicate when it ends.

    The same seed gives the same bits on every executor; a longer study begins with the same replicates.
    """
    found = executor.map_reduce(
        _replicate, range(replicates), or_, (seed, model), label=lambda number: f"replicate {number}", done=done
    )
    assert found is not None
    return GapStudy(seed, tuple(name for name, _ in FUNCTIONS), np.stack([found[n] for n in range(replicates)]))


def _replicate(number: int, shared: tuple[int, GapModel]) -> dict[int, F64]:
    """Kendall's tau between the rankings of one set of simulated systems, by the replicate's number."""
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
    """Every system's ranked list for a topic: int64 [systems, points]."""
    distance = np.arange(model.points)[:, np.newaxis] - onsets
    weight = np.where(np.abs(distance) <= model.cutoff, np.exp(-0.5 * (distance / model.sigma) ** 2), 0.0).sum(axis=1)
    shape = (model.systems, model.points)
    intended = rng.random(shape) < model.p
    anywhere, near, place = rng.standard_exponential((3, *shape))
    return ranked_lists(weight, intended, anywhere, near, place)
