"""The coverage study: how often intervals cover the truth, and tests reject it, in simulated evaluations.

An evaluation draws its queries from a population: the difficulty of each query, its number of targets, and the scores
of the targets and of the false alarms of two systems are random. Given the query, the two systems are identically
distributed and independent, so their true values are equal: an interval of 95 % should contain the true value in 95 %
of the evaluations, and a test at 5 % should reject equality in 5 %. The true value is that of `_POPULATION` queries,
whose own error is a fraction of an evaluation's. Evaluations go through `comparison.compare`, like those of users.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swsdask.comparison.compare import compare
from swsdask.model.comparison import Resampling
from swsdask.model.samples import Averages
from swsdask.model.studies import CoverageStudy
from swsdask.model.trials import F64, Bool

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


def coverage_study(
    seed: int,
    evaluations: int,
    executor: Executor,
    *,
    n_queries: int,
    replicates: int,
    done: Callable[[int], None] | None = None,
) -> CoverageStudy:
    """Return the study over `evaluations` evaluations. `done` is called with the number of each when it ends.

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
    """Return the measures of the population; every block of its queries has its own stream of random numbers."""
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
