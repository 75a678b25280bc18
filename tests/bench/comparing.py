"""Replicates of ATWV, MTWV and MAP, and of AP, over scipy's bootstrap with the same measures as its statistic.

Both sides begin with merged statistics and run in one thread. scipy is given the cheapest statistic that numpy has
without compiling: averages of arrays, for MTWV and AP two running sums over all cells of a system. It draws fewer
replicates, and its cost is that of as many. Pairs are tested from compiled counts, and by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

import swsdask as sws
from swsdask.api.comparing import sample_evaluation
from swsdask.api.runs import given_runs
from swsdask.comparison.compare import compare, pairs_of
from swsdask.comparison.paired import Pair, compare_pairs
from swsdask.comparison.resampled import Draws, SampleReplicates
from swsdask.measures.resampling.ladders import BestThreshold, PooledPrecision
from swsdask.model.comparison import Resampling
from swsdask.model.samples import Among, Averages
from tests.bench.cost import cost, in_turn
from tests.bench.data import SEED, Data
from tests.bench.table import Row

MEASURES = ["atwv", "mtwv", "map"]
REPLICATES, OF_SCIPY = 10_000, 20
N_SYSTEMS, N_QUERIES = 60, 500


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds of all replicates of ten systems, their intervals and tests."""
    archive = data.ten_systems
    for measures, least in ((MEASURES, 50.0), (["ap"], 20.0)):
        ours = cost(ours_of, archive.url, measures, repeats=1)
        theirs = cost(theirs_of, archive.url, measures, repeats=1)
        scaled = theirs.cpu * REPLICATES / (OF_SCIPY + 1)  # it computes the measure itself too
        names = ", ".join(measures).upper()
        what = f"{REPLICATES:,} replicates of {names} of {archive.rows:,} detections, statistics merged"
        if measures is MEASURES:
            yield Row(what, ours.cpu, "limit", 10.0, ours.cpu / 10.0, most=1.0, peak=ours.peak)
        yield Row(
            what,
            ours.cpu,
            f"scipy.stats.bootstrap, {OF_SCIPY} replicates, scaled",
            scaled,
            scaled / ours.cpu,
            least=least,
            peak=ours.peak,
            peak_of_theirs=theirs.peak,
        )
    ours, theirs = in_turn((tests_of_pairs, True), (tests_of_pairs, False))
    yield Row(
        f"tests of {len(_pairs()):,} pairs over {N_QUERIES} queries, {REPLICATES:,} replicates",
        ours.cpu,
        "NumPy, one test after the other",
        theirs.cpu,
        theirs.cpu / ours.cpu,
        least=2.0,
        peak=ours.peak,
        peak_of_theirs=theirs.peak,
    )


def tests_of_pairs(compiled: bool) -> Callable[[], None]:
    """The tests of all pairs of some systems, from compiled counts or by definition."""
    how = Resampling(replicates=REPLICATES)
    draws = Draws(how, N_QUERIES)
    columns = np.random.default_rng(SEED).random((N_SYSTEMS, 1, N_QUERIES))
    samples = SampleReplicates.of([Averages(0.0, (1.0,), each) for each in columns], draws, [True] * len(columns))
    pairs = [Pair(samples[one], samples[other]) for one, other in _pairs()]

    def work() -> None:
        if compiled:
            compare_pairs(pairs, how)
        else:
            for pair in pairs:
                pair.tested(how)

    return work


def _pairs() -> list[tuple[int, int]]:
    return list(combinations(range(N_SYSTEMS), 2))


def ours_of(url: str, measures: list[str]) -> Callable[[], None]:
    """Intervals, and the tests of every pair."""
    evaluation = sws.open(url)
    given = given_runs(None, evaluation.systems)
    result, samples, n_queries, _ = sample_evaluation(evaluation, measures, given)
    systems = result.table["system"].unique().to_pylist()

    def work() -> None:
        compare(samples, n_queries, systems, Resampling(replicates=REPLICATES), pairs_of(systems))

    return work


def theirs_of(url: str, measures: list[str]) -> Callable[[], None]:
    """Intervals alone."""
    evaluation = sws.open(url)
    given = given_runs(None, evaluation.systems)
    _, samples, n_queries, _ = sample_evaluation(evaluation, measures, given)
    systems = [sample for by_system in samples["all"].values() for sample in by_system.values()]
    statistics = [_statistic(each.sample if isinstance(each, Among) else each) for each in systems]
    queries = (np.arange(n_queries["all"]),)

    def work() -> None:
        for statistic in statistics:
            stats.bootstrap(queries, statistic, n_resamples=OF_SCIPY, vectorized=False, method="percentile", rng=1)

    return work


def _statistic(sample: Any) -> Callable[[Any], float]:
    if isinstance(sample, BestThreshold):
        return _best(sample)
    return _precision(sample) if isinstance(sample, PooledPrecision) else _average(sample)


def _average(sample: Any) -> Callable[[Any], float]:
    columns = sample.columns

    def statistic(drawn: Any) -> float:
        means = np.nanmean(columns[:, drawn], axis=1)
        return float(sample.constant + np.dot(sample.factors, means))

    return statistic


def _best(sample: BestThreshold) -> Callable[[Any], float]:
    per_target, per_nontarget = 1 / sample.targets, sample.beta / sample.nontargets
    last = np.append(np.diff(sample.level) > 0, True)

    def statistic(drawn: Any) -> float:
        weights = np.bincount(drawn, minlength=len(sample.targets)) / len(drawn)
        gains = (weights * per_target)[sample.query] * sample.hits
        losses = (weights * per_nontarget)[sample.query] * sample.false_alarms
        return float(max(0.0, np.cumsum(gains - losses)[last].max()))

    return statistic


def _precision(sample: PooledPrecision) -> Callable[[Any], float]:
    kinds = (sample.hits, sample.tied, sample.between)
    rung, query, hits, false_alarms = (
        np.concatenate(columns)
        for columns in zip(
            *(
                (np.repeat(np.arange(len(begin) - 1), np.diff(begin)), query, *(count * own for own in (one, 1 - one)))
                for (begin, query, count), one in zip(kinds, (1, 0, 0), strict=True)
            ),
            strict=True,
        )
    )
    behind = np.repeat([0, 0, 1], [len(query) for _, query, _ in kinds])
    order = np.lexsort((-behind, -rung))  # by falling score: what lies between a rung and the next, then the rung
    rung, query, hits, false_alarms = (column[order] for column in (rung, query, hits, false_alarms))
    last = np.flatnonzero(np.append(np.diff(rung) != 0, True))

    def statistic(drawn: Any) -> float:
        weights = np.bincount(drawn, minlength=len(sample.targets))
        of_query = weights[query]
        found = np.cumsum(of_query * hits)[last]
        precision = found / np.maximum(found + np.cumsum(of_query * false_alarms)[last], 1)
        highest = np.maximum.accumulate(precision[::-1])[::-1]
        return float(np.dot(np.diff(found, prepend=0), highest) / (weights @ sample.targets))

    return statistic
