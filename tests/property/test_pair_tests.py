"""The tests of pairs from compiled counts are those by definition, whatever the replicates are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.comparison import paired
from swsdask.comparison.paired import Pair, compare_pairs
from swsdask.comparison.resampled import Draws, SampleReplicates
from swsdask.kernels.differences import N_COUNTS, compare_pair
from swsdask.model.comparison import Resampling
from swsdask.model.samples import Averages
from swsdask.model.trials import F64

KINDS = ["numbers", "few numbers", "thirds", "mostly equal", "heavy tails", "all equal"]


def values(kind: str, n: int, rng: np.random.Generator) -> F64:
    """Numbers by query."""
    if kind == "numbers":
        return rng.random(n)
    if kind == "few numbers":
        return rng.integers(0, 3, n) / 2
    if kind == "thirds":  # 1 - 2/3 is not 1/3
        thirds = rng.integers(0, 4, n) / 3
        return np.where(rng.random(n) < 0.5, thirds, 1 - thirds)
    if kind == "mostly equal":
        return np.where(rng.random(n) < 0.1, rng.random(n), 0.5)
    if kind == "heavy tails":
        return np.asarray(rng.standard_cauchy(n))
    return np.full(n, 0.25)


@given(
    st.sampled_from(KINDS),
    st.sampled_from([2, 15, 40, 120]),
    st.sampled_from([60, 250, 1000]),
    st.sampled_from([0.5, 0.9, 0.95, 0.999, 1 - 1e-16]),
    st.sampled_from([0.0, 0.001, 0.5]),
    st.integers(0, 99),
)
def test_counts_give_the_tests_by_definition(
    kind: str, n_queries: int, n: int, level: float, undefined: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    how = Resampling(seed, n, level, "percentile", "holm", "queries")
    draws = Draws(how, n_queries)
    columns = [values(kind, n_queries, rng) for _ in range(4)]
    columns[3][rng.random(n_queries) < undefined] = np.nan
    samples = SampleReplicates.of([Averages(0.0, (1.0,), each[None]) for each in columns], draws, [True] * len(columns))
    samples.append(replace(samples[0], exchanged=None, replicates=np.where(rng.random(n) < 0.01, np.inf, 0.0)))
    pairs = [Pair(one, other) for one in samples for other in samples]
    expected = np.array([pair.tested(how) for pair in pairs])
    np.testing.assert_array_equal(compare_pairs(pairs, how), expected)


def test_ordinary_pairs_are_counted_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    how = Resampling()
    draws = Draws(how, 200)
    columns = [rng.random((1, 200)) for _ in range(6)]
    samples = SampleReplicates.of([Averages(0.0, (1.0,), each) for each in columns], draws, [True] * len(columns))
    pairs = [Pair(one, other) for one in samples for other in samples if one is not other]
    expected = np.array([pair.tested(how) for pair in pairs])
    monkeypatch.setattr(paired.Pair, "tested", None)
    np.testing.assert_array_equal(compare_pairs(pairs, how), expected)


def test_there_is_nothing_beyond_the_highest_replicate() -> None:
    n, none, room = 200, np.zeros(0), np.full((2, 200), np.nan)
    replicates = np.random.default_rng(1).random(n)
    of_none = (none, none, none, none, 0.0, 0.0)
    ends, counts = np.zeros(4), np.zeros(N_COUNTS, np.int64)
    for high, found in ((n - 2, True), (n - 1, False)):
        given = (replicates, np.zeros(n), 0.5, 0.5, 0, high, 1.5)
        assert compare_pair(*given, *of_none, room, ends, counts) is found
        assert ends[2:].tolist() == np.sort(replicates)[-2:].tolist()
