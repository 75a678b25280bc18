"""Intervals and tests from the same replicates as scipy's: equal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from swsdask.comparison.compare import compare, pairs_of
from swsdask.comparison.significance import (
    Exchanged,
    MaxT,
    all_finite,
    bca_interval,
    bootstrap_weights,
    holm,
    left_out_weights,
    p_bootstrap,
    p_randomization,
    p_sign,
    p_wilcoxon,
    percentile_interval,
    random_signs,
    rounding_of_differences,
    rounding_of_values,
    standard_error,
    t_of_bootstrap,
    t_of_exchanges,
)
from swsdask.model.comparison import Resampling
from swsdask.model.samples import Averages, weighted_sums
from swsdask.model.trials import F64, I8

VALUES = np.random.default_rng(5).beta(0.6, 0.9, 40)
WEIGHTS = bootstrap_weights(3, range(2000), len(VALUES))
SAMPLE = Averages(0.0, (1.0,), VALUES[np.newaxis])
REPLICATES = SAMPLE.replicates(WEIGHTS)


def of_scipy(method: str, level: float) -> stats._resampling.BootstrapResult:
    same = stats.bootstrap((VALUES,), np.mean, n_resamples=2, method="percentile")
    same.bootstrap_distribution = REPLICATES
    return stats.bootstrap(
        (VALUES,), np.mean, n_resamples=0, bootstrap_result=same, method=method, confidence_level=level
    )


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_intervals_are_those_of_scipy(level: float) -> None:
    found = of_scipy("percentile", level)
    assert percentile_interval(REPLICATES, level) == pytest.approx(found.confidence_interval, rel=1e-12)
    assert standard_error(REPLICATES) == pytest.approx(found.standard_error, rel=1e-12)
    left_out = SAMPLE.replicates(left_out_weights(len(VALUES), range(len(VALUES))))
    ends = bca_interval(SAMPLE.value, REPLICATES, left_out, level)
    assert ends == pytest.approx(of_scipy("BCa", level).confidence_interval, rel=1e-9)


def test_replicates_that_are_not_defined_are_left_out() -> None:
    some = np.append(REPLICATES, [math.nan] * 7)
    assert percentile_interval(some, 0.9) == percentile_interval(REPLICATES, 0.9)
    assert p_bootstrap(0.1, some) == p_bootstrap(0.1, REPLICATES)
    assert all(map(math.isnan, percentile_interval(np.array([math.nan]), 0.9)))


def test_bca_without_spread() -> None:
    same = np.full(9, 0.5)
    assert bca_interval(0.5, same, same, 0.95) == (0.5, 0.5)
    assert all(map(math.isnan, bca_interval(0.7, same, same, 0.95)))


@pytest.mark.parametrize("seed", range(5))
def test_bca_halves_replicates_that_equal_the_value(seed: int) -> None:
    """Equal averages of thirds are rounded differently; whole numbers have the same interval, three times as wide."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 12)
    weights = bootstrap_weights(seed, range(500), 12)
    ends = []
    for values in (counts / 3, counts.astype(float)):
        sample = Averages(0.0, (1.0,), values[np.newaxis])
        left_out = sample.replicates(left_out_weights(12, range(12)))
        ends.append(bca_interval(sample.value, sample.replicates(weights), left_out, 0.95))
    assert ends[0] == pytest.approx(np.array(ends[1]) / 3, rel=1e-12)


@pytest.mark.parametrize("n", [6, 10, 25])
def test_max_t_of_equal_sums_is_1(n: int) -> None:
    """A sum of differences that is 0 but for rounding is reached by every exchange, also by those that are 0."""
    rng = np.random.default_rng(n)
    a = rng.integers(0, 7, n) / 10
    b = a.copy()
    b[:2] += (0.1, -0.1)
    one, other = (exchanges(parts, random_signs(0, range(200), n)) for parts in (a, b))
    assert MaxT.of([t_of_exchanges(one, other)]).p == [1.0] == [p_randomization(one, other)]


def exchanges(parts: F64, signs: I8) -> Exchanged:
    return Exchanged.of(parts, weighted_sums(signs, parts))


def exchanged(a: F64, b: F64, signs: I8) -> float:
    return p_randomization(exchanges(a, signs), exchanges(b, signs))


@pytest.mark.parametrize("n", [2, 5, 12, 13])
def test_all_exchanges_of_a_few_queries(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random((2, n)).round(1)
    expected = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    assert exchanged(a / n, b / n, random_signs(0, range(10), n)) == pytest.approx(expected.pvalue, rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [([0.3], [0.1]), ([0.2, 0.4], [0.2, 0.4]), ([0.1, 0.3], [0.3, 0.1])])
def test_exchanges_of_one_query_or_of_no_difference(a: list[float], b: list[float]) -> None:
    assert exchanged(np.array(a), np.array(b), random_signs(0, range(10), len(a))) == 1.0


def test_random_exchanges_come_near_to_scipys() -> None:
    a, b = VALUES, np.random.default_rng(8).beta(0.6, 0.7, 40)
    expected = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=9999, rng=4
    )
    found = exchanged(a / 40, b / 40, random_signs(1, range(9999), 40))
    assert found == pytest.approx(expected.pvalue, abs=4 * math.sqrt(expected.pvalue / 9999) + 1e-3)


def test_sums_that_differ_by_rounding_only_are_equal() -> None:
    """Differences of one size: every sum is a whole number of them, and many are as large as the observed one."""
    signs = random_signs(2, range(5000), 60)
    b = np.random.default_rng(4).random(60)
    steps = np.where(np.arange(60) < 36, 1, -1)
    sums = (signs * steps[:, np.newaxis]).sum(axis=0)
    expected = (1 + np.count_nonzero(abs(sums) >= abs(steps.sum()))) / 5001
    assert exchanged(b + 0.1 * steps, b, signs) == expected


@pytest.mark.parametrize(("up", "down"), [(3, 9), (20, 20), (0, 6), (700, 760), (0, 0)])
def test_sign_test(up: int, down: int) -> None:
    parts = np.array([0.1] * up + [-0.3] * down + [0.0] * 3)
    expected = stats.binomtest(up, up + down).pvalue if up + down else 1.0
    assert p_sign(parts) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "method"), [(5, "exact"), (50, "exact"), (51, "asymptotic"), (400, "asymptotic")])
def test_wilcoxon_is_that_of_scipy(n: int, method: str) -> None:
    parts = np.random.default_rng(n).normal(0.1, 1, n)
    expected = stats.wilcoxon(parts, method=method).pvalue
    assert p_wilcoxon(np.append(parts, [0.0, 0.0])) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("up", "down"), [(9, 3), (54, 46)])
def test_differences_are_equal_that_only_rounding_distinguishes(up: int, down: int) -> None:
    """One hit of three more or less: 1/3 - 0 and 1 - 2/3 are two numbers, and their queries would not share a rank."""
    one = exchanges(np.array([1 / 3] * up + [2 / 3] * down + [1 / 3]), np.ones((up + down + 1, 1), np.int8))
    other = exchanges(np.array([0.0] * up + [1.0] * down + [1 - 2 / 3]), np.ones((up + down + 1, 1), np.int8))
    parts, hair = one.parts - other.parts, rounding_of_differences(one, other)
    assert len(np.unique(abs(parts))) == 3
    steps = np.repeat([1.0, -1.0], [up, down])
    ranks = stats.rankdata(abs(steps))
    exact = min(1.0, 2 * stats.binom.cdf(min(up, down), up + down, 0.5))  # of equal ranks, as of signs
    expected = exact if up + down <= 50 else stats.wilcoxon(steps, method="asymptotic", correction=False).pvalue
    assert len(set(ranks)) == 1
    assert p_wilcoxon(parts, hair) == pytest.approx(expected, rel=1e-9)
    assert p_sign(parts, hair) == pytest.approx(stats.binomtest(up, up + down).pvalue, rel=1e-9)


def test_wilcoxon_with_ties() -> None:
    parts = np.random.default_rng(1).integers(-3, 5, 200).astype(float)
    moved = parts[parts != 0]
    expected = stats.wilcoxon(moved, method="asymptotic", correction=False).pvalue
    assert p_wilcoxon(parts) == pytest.approx(expected, rel=1e-9)
    few = np.array([1.0, 1.0, -1.0, 2.0, 2.0, -3.0, 4.0])
    ranks = stats.rankdata(abs(few))
    sums = [ranks[np.array(signs)].sum() for signs in itertools.product([False, True], repeat=len(few))]
    positive = ranks[few > 0].sum()
    tail = min(np.mean([each >= positive for each in sums]), np.mean([each <= positive for each in sums]))
    assert p_wilcoxon(few) == pytest.approx(min(1.0, 2 * tail))
    assert p_wilcoxon(np.zeros(3)) == 1.0


def test_bootstrap_p_counts_replicates_as_far_from_the_difference_as_that_is_from_0() -> None:
    assert p_bootstrap(0.2, np.array([0.2, 0.39, 0.41, -0.01])) == 3 / 5
    assert p_bootstrap(0.0, np.zeros(99)) == 1.0
    assert p_bootstrap(0.1, np.full(99, 0.1)) == 1 / 100
    assert math.isnan(p_bootstrap(math.nan, np.zeros(9)))
    assert p_bootstrap(1e-17, np.array([0.0, 0.1]), rounding_of_values(0.5, 0.5)) == 1.0
    assert p_bootstrap(math.inf, np.array([math.inf] * 8 + [0.5])) == 2 / 10
    assert p_bootstrap(-math.inf, np.full(9, math.inf)) == 1.0


def test_holm() -> None:
    adjusted = holm(np.array([0.01, 0.04, 0.03, math.nan]))
    assert adjusted.tolist() == pytest.approx([0.03, 0.06, 0.06, math.nan], nan_ok=True)
    assert holm(np.array([0.5, 0.9])).tolist() == [1.0, 1.0]


def max_t(differences: Sequence[float], replicates: Sequence[F64]) -> list[float]:
    """The adjusted p values, of differences in two parts."""
    finite = all_finite(replicates)
    rows = [t_of_bootstrap(difference, row[finite]) for difference, row in zip(differences, replicates, strict=True)]
    return MaxT.of(rows[:1]).merge(MaxT.of(rows[1:])).p if rows[1:] else MaxT.of(rows).p


def test_max_t_is_more_than_the_p_of_one_pair() -> None:
    rng = np.random.default_rng(2)
    columns = rng.normal([0.0, 0.25, 0.4], 1.0, (60, 3)).T
    samples = [Averages(0.0, (1.0,), column[np.newaxis]) for column in columns]
    replicates = [sample.replicates(bootstrap_weights(0, range(3000), 60)) for sample in samples]
    differences = [sample.value for sample in samples]
    alone = [p_bootstrap(d, r) for d, r in zip(differences, replicates, strict=True)]
    adjusted = max_t(differences, replicates)
    assert all(p < q for p, q in zip(alone, adjusted, strict=True))
    assert max_t(differences[:1], replicates[:1]) == alone[:1]
    assert max_t([0.0, 0.3], [np.zeros(9), np.full(9, 0.3)]) == [1.0, 0.1]


def test_max_t_by_definition() -> None:
    rng = np.random.default_rng(6)
    differences = [*rng.normal(0, 0.1, 5).tolist(), 0.0]
    replicates = np.vstack([rng.normal(differences[:5], 0.05, (400, 5)).T, np.zeros(400)])
    replicates[2, 7], replicates[4, 9] = math.nan, math.inf
    kept = np.delete(replicates, [7, 9], axis=1)
    errors = [standard_error(row) for row in kept[:5]]
    largest = [max(abs(kept[k, r] - differences[k]) / errors[k] for k in range(5)) for r in range(398)]
    reach = [sum(value >= abs(differences[k]) / errors[k] for value in largest) for k in range(5)]
    assert max_t(differences, replicates) == [*((1 + each) / 399 for each in reach), 1.0]


def test_t_of_exchanges_by_definition() -> None:
    rng = np.random.default_rng(8)
    signs = random_signs(0, range(64), 12)
    one, other = (exchanges(rng.normal(size=12), signs) for _ in range(2))
    parts = one.parts - other.parts
    own, of_replicates = t_of_exchanges(one, other)
    assert own == pytest.approx(abs(parts.sum()) / math.sqrt((parts**2).sum()))
    assert of_replicates == pytest.approx(abs(signs.T.astype(float) @ parts) / math.sqrt((parts**2).sum()))
    assert t_of_exchanges(one, exchanges(one.parts * (1 + 1e-16), signs))[0] == 0.0


def test_max_t_holds_its_level_with_few_queries() -> None:
    """Of 12 equal systems on 20 queries some pair differs in about 5 % of evaluations; by the bootstrap in far more."""
    names = tuple("abcdefghijkl")
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = rng.beta(0.6, 0.9, (20, 1)) + rng.normal(0, 0.2, (20, len(names)))
        samples = {
            name: Averages(0.0, (1.0,), column[np.newaxis]) for name, column in zip(names, columns.T, strict=True)
        }
        how = Resampling(0, 400, 0.95, "percentile", "max-t", "queries")
        compared = compare({"all": {"map": samples}}, {"all": 20}, names, how, pairs_of(names))
        found += bool((np.array(compared.difference_table["p_adjusted"]) < 0.05).any())
    assert 1 <= found <= 12


def test_weights() -> None:
    weights = bootstrap_weights(7, range(500), 30)
    assert (weights.sum(axis=0) == 30).all()
    assert np.array_equal(weights[:, 90:100], bootstrap_weights(7, range(90, 100), 30))
    assert not np.array_equal(weights, bootstrap_weights(8, range(500), 30))
    drawn = stats.chisquare(weights.sum(axis=1))
    assert 1e-4 < drawn.pvalue < 1 - 1e-4
    assert weights[:, 0].tolist()[:12] == FIRST_WEIGHTS
    signs = random_signs(7, range(400), 70)
    assert np.array_equal(signs[:, 390:], random_signs(7, range(390, 400), 70))
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.mean()) < 0.03


FIRST_WEIGHTS = [1, 2, 1, 1, 0, 0, 0, 1, 4, 1, 1, 0]
"""Weights are part of what a seed means: they must not change from version to version."""


def test_all_pairs_of_many_systems_are_those_of_each_pair_alone() -> None:
    """Replicates of pairs are made when needed, so that memory grows with systems: the numbers are the same."""
    rng = np.random.default_rng(3)
    columns = rng.beta(0.6, 0.9, (46, 24))
    columns[::9, 3] = math.nan  # of some systems a query is not defined
    samples = {"all": {"map": {f"s{k:02}": Averages(0.0, (1.0,), row[None]) for k, row in enumerate(columns)}}}
    said: list[str] = []
    how = Resampling(0, 50, 0.95, "bca", "holm", "queries")
    systems = samples["all"]["map"]
    every = compare(samples, {"all": 24}, systems, how, pairs_of(systems), report=said.append).differences
    assert said == ["comparing 1,035 pairs by 1 measure"]
    alone = ["a", "b", "difference", "low", "high", "p_bootstrap", "p_randomization", "p_sign", "p_wilcoxon"]
    for a, b in (("s00", "s01"), ("s04", "s31"), ("s09", "s18")):
        one = compare(samples, {"all": 24}, [a, b], how, [(a, b)], report=said.append).differences
        (expected,) = one[alone].to_numpy()
        (found,) = every[(every["a"] == a) & (every["b"] == b)][alone].to_numpy()
        assert found.tolist() == expected.tolist()
    assert len(said) == 1


def test_too_few_replicates_for_an_interval_are_noted() -> None:
    """A 95 % interval needs 40, so that one replicate is beyond either end on average."""
    samples = {name: Averages(0.0, (1.0,), np.arange(40.0)[np.newaxis] + k) for k, name in enumerate("ab")}
    for replicates, noted in ((1, True), (39, True), (40, False)):
        how = Resampling(0, replicates, 0.95, "percentile", "holm", "queries")
        notes = compare({"all": {"map": samples}}, {"all": 40}, "ab", how, [("a", "b")]).notes
        few = "1 replicate" if replicates == 1 else f"{replicates} replicates"
        assert (f"{few}: too few for intervals of 0.95, which need at least 40." in notes) == noted


@pytest.mark.parametrize("replicates", [50, 2000])
def test_systems_with_equal_averages_have_p_1(replicates: int) -> None:
    """By definition and by counts: their difference is a rounding error."""
    a = np.array([0.5, 0.3, 0.3, 0.7, 0.3, 0.2])
    b = a + np.array([0.1, -0.1, 0.0, 0.0, 0.0, 0.0])
    samples = {name: Averages(0.0, (1.0,), own[np.newaxis]) for name, own in (("a", a), ("b", b))}
    assert samples["a"].value != samples["b"].value
    for adjust in ("holm", "max-t"):
        how = Resampling(0, replicates, 0.95, "percentile", adjust, "queries")
        found = compare({"all": {"map": samples}}, {"all": 6}, "ab", how, [("a", "b")])
        (row,) = found.difference_table.to_pylist()
        assert [row[name] for name in ("p_bootstrap", "p_randomization", "p_adjusted")] == [1.0, 1.0, 1.0]
