"""The affine fit against 50 digits, a literal loop with scipy, scikit-learn, and what must not change it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from swsdask.kernels.entropy import logistic_cost, logistic_expansion
from swsdask.measures.calibration import isotonic_blocks
from swsdask.measures.logistic_fit import Fit, ScoreShares, Separation, Shares, fit, prior_entropy, sigmoid, softplus
from swsdask.model.trials import F64
from tests.recalibration import Row, exact_minimum, overlapping

ROWS = st.lists(
    st.tuples(
        st.integers(-40, 40).map(lambda n: n / 4) | st.floats(-6, 6).map(lambda x: round(x * 2**40) / 2**40),
        st.integers(0, 3),
        st.integers(0, 60),
    ),
    min_size=2,
    max_size=12,
).filter(lambda rows: any(row[1] for row in rows) and any(row[2] for row in rows))
LOG_ODDS = st.floats(-8, 4)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of scores at each evaluation of the cost of a class and its derivatives."""
    lengths: list[int] = []

    def counted(score: F64, *more: Any) -> Any:
        lengths.append(len(score))
        return logistic_expansion(score, *more)

    monkeypatch.setattr("swsdask.measures.logistic_fit.logistic_expansion", counted)
    return lengths


def shares(rows: Sequence[Row]) -> ScoreShares:
    target, nontarget = (
        Shares(np.array([row[0] for row in rows if row[side]]), np.array([row[side] for row in rows if row[side]]))
        for side in (1, 2)
    )
    return ScoreShares(
        Shares(target.score, target.share / target.share.sum()),
        Shares(nontarget.score, nontarget.share / nontarget.share.sum()),
    )


def fitted(rows: Sequence[Row], eta: float, **more: Any) -> Fit:
    scores = shares(rows)
    return fit(scores, Separation.of(scores), eta, **more)


def literal_cost(rows: Sequence[Row], eta: float, gamma: float, delta: float) -> float:
    """C of gamma s + delta in nats, trial by trial."""
    target = [score for score, n, _ in rows for _ in range(n)]
    nontarget = [score for score, _, n in rows for _ in range(n)]
    missed = math.fsum(softplus(-(gamma * score + delta + eta)) for score in target) / len(target)
    accepted = math.fsum(softplus(gamma * score + delta + eta) for score in nontarget) / len(nontarget)
    return sigmoid(eta) * missed + sigmoid(-eta) * accepted


def random_case(number: int) -> tuple[list[Row], float]:
    """A few given trials, often tied, above one heavy group of others; scores of many sizes and places."""
    chance = random.Random(number)
    unit, centre = chance.choice([1.0, 1.0, 1e-6, 1e6]), chance.choice([0.0, 0.0, 3.0, -1e8])
    while True:
        rows = [
            (
                centre + unit * (chance.gauss(0, 2) if number % 3 else chance.randrange(-4, 5)),
                chance.choice([0, 0, 1, 1, 2]),
                chance.choice([0, 1, 1, 5]),
            )
            for _ in range(chance.randint(3, 10))
        ]
        lowest = min(row[0] for row in rows)
        rows.append((lowest, chance.randint(0, 3), chance.choice([0, 10, 10**4, 10**8])))
        if any(row[1] for row in rows) and any(row[2] for row in rows) and overlapping(rows):
            return rows, chance.uniform(-8, 2)


@pytest.mark.parametrize("part", range(4))
def test_the_minimum_is_that_of_50_digits(part: int) -> None:
    with localcontext(prec=50):
        for number in range(part, 200, 4):
            rows, eta = random_case(number)
            cost, gamma, _ = exact_minimum(rows, eta)
            found = fitted(rows, eta)
            assert abs(Decimal(found.cost / prior_entropy(eta)) - cost) < Decimal("1e-12"), number
            assert abs(Decimal(found.gamma) - gamma) <= abs(gamma) * Decimal("1e-6"), number


@given(rows=ROWS, eta=LOG_ODDS)
def test_no_other_map_is_better(rows: list[Row], eta: float) -> None:
    assume(overlapping(rows))
    found = fitted(rows, eta)
    spread = max(row[0] for row in rows) - min(row[0] for row in rows)
    assert found.cost == pytest.approx(literal_cost(rows, eta, found.gamma, found.delta), rel=1e-11)
    assert found.cost == pytest.approx(shares(rows).cost(eta, found.gamma, found.delta), rel=1e-11)
    for by in (1e-4, 0.1, 3.0):
        for gamma, delta in ((by / spread, 0.0), (-by / spread, 0.0), (0.0, by), (0.0, -by), (by, -by), (-by, by)):
            other = literal_cost(rows, eta, found.gamma + gamma, found.delta + delta)
            assert found.cost <= other * (1 + 1e-12)


@pytest.mark.parametrize("number", range(3))
def test_scipy_finds_the_same(number: int) -> None:
    chance = random.Random(number)
    rows = [(chance.gauss(1, 1), 1, 0) for _ in range(30)] + [(chance.gauss(-1, 1), 0, 1) for _ in range(200)]
    found = fitted(rows, -2.0)
    other = minimize(lambda at: literal_cost(rows, -2.0, *at), [0.0, 0.0], method="BFGS", options={"gtol": 1e-8})
    assert found.cost == pytest.approx(other.fun, rel=1e-12)
    assert (found.gamma, found.delta) == pytest.approx(tuple(other.x), rel=1e-5)


@pytest.mark.parametrize("number", range(3))
def test_scikit_learn_finds_the_same(number: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    chance = random.Random(number)
    rows = [(chance.gauss(1, 1), 1, 0) for _ in range(40)] + [(chance.gauss(-1, 1), 0, 7) for _ in range(100)]
    rows.append((-3.0, 5, 100_000))
    scores = shares(rows)
    weights = np.concatenate([sigmoid(-3.0) * scores.target.share, sigmoid(3.0) * scores.nontarget.share])
    every = np.concatenate([scores.target.score, scores.nontarget.score])[:, np.newaxis]
    is_target = np.arange(len(every)) < len(scores.target.score)
    fitting = linear_model.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    fitting.fit(every, is_target, sample_weight=weights * len(rows))
    found = fitted(rows, -3.0)
    assert found.gamma == pytest.approx(fitting.coef_[0, 0], rel=1e-6)
    assert found.delta - 3.0 == pytest.approx(fitting.intercept_[0], rel=1e-6)


@given(
    rows=ROWS,
    eta=LOG_ODDS,
    scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]),
    offset=st.sampled_from([0.0, 1.0, -1e4, 1e8]),
)
def test_affine_maps_of_the_scores_do_not_change_the_minimum(
    rows: list[Row], eta: float, scale: float, offset: float
) -> None:
    moved = [(score * scale + offset * scale, target, nontarget) for score, target, nontarget in rows]
    before, after = {row[0] for row in rows}, {row[0] for row in moved}
    assume(len(before) == len(after) and min(np.diff(sorted(before)), default=1.0) > 0.01)
    one, other = fitted(rows, eta), fitted(moved, eta)
    assert other.cost == pytest.approx(one.cost, rel=1e-6 if offset == 1e8 else 1e-10)
    if math.isfinite(one.gamma):
        assert other.gamma * scale == pytest.approx(one.gamma, rel=1e-5, abs=1e-7)


def test_offsets_and_scales_without_rounding_change_no_digit() -> None:
    chance = random.Random(5)
    rows = [(float(chance.randrange(-60, 60)), chance.randint(0, 2), chance.randint(0, 50)) for _ in range(40)]
    one = fitted(rows, -4.0)
    for scale, offset in ((2.0**-20, 0.0), (2.0**20, 0.0), (1.0, 1e8), (1e-6, 100.0), (1e6, -1e14)):
        other = fitted([(score * scale + offset, *more) for score, *more in rows], -4.0)  # type: ignore[misc]
        assert other.cost == pytest.approx(one.cost, rel=1e-12)


@given(rows=ROWS, eta=LOG_ODDS, reverse=st.booleans())
def test_isotonic_below_affine_below_nothing(rows: list[Row], eta: float, reverse: bool) -> None:
    rows = [(-score if reverse else score, *more) for score, *more in rows]  # type: ignore[misc]
    bound = prior_entropy(eta)
    nonnegative, free = fitted(rows, eta, nonnegative=True), fitted(rows, eta)
    score = np.unique([row[0] for row in rows])
    target, nontarget = (
        np.bincount(np.searchsorted(score, [r[0] for r in rows]), [r[c] for r in rows], len(score)).astype(np.int64)
        for c in (1, 2)
    )
    pooled = isotonic_blocks(target, nontarget).cost(int(target.sum()), int(nontarget.sum()), eta)
    hair = 1e-13 * bound
    assert pooled <= nonnegative.cost + hair
    assert free.cost <= nonnegative.cost + hair
    assert nonnegative.gamma >= 0.0
    assert nonnegative.cost <= min(bound, literal_cost(rows, eta, 1.0, 0.0)) + hair


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(rows=ROWS, eta=LOG_ODDS)
@example(rows=[(0.0, 1, 0), (0.0, 0, 3)], eta=-1.0)
@example(rows=[(0.0, 0, 3), (1.0, 2, 1), (2.0, 1, 0)], eta=-1.0)
@example(rows=[(0.0, 1, 0), (1.0, 2, 1), (2.0, 0, 3)], eta=-1.0)
@example(rows=[(0.0, 0, 3), (1.0, 2, 0)], eta=-1.0)
@example(rows=[(0.0, 2, 0), (1.0, 0, 2)], eta=-1.0)
def test_separated_classes(rows: list[Row], eta: float) -> None:
    assume(not overlapping(rows))
    found = fitted(rows, eta)
    targets, nontargets = [row[0] for row in rows if row[1]], [row[0] for row in rows if row[2]]
    if {*targets} == {*nontargets}:
        assert found == Fit(0.0, 0.0, prior_entropy(eta))
        return
    up = min(targets) >= max(nontargets)
    assert found.gamma == (math.inf if up else -math.inf)
    assert math.isnan(found.delta)
    shared = {*targets} & {*nontargets}
    if not shared:
        assert found.cost == 0.0
        return
    (at,) = shared
    steep = 1e4 if up else -1e4
    scale = 1.0 / min(abs(score - at) for score in {*targets, *nontargets} - {at})
    reached = minimize(
        lambda x: literal_cost(rows, eta, steep * scale, x[0] - steep * scale * at), [0.0], method="Nelder-Mead"
    )
    assert found.cost == pytest.approx(reached.fun, rel=1e-6)


def test_a_map_that_must_not_fall() -> None:
    upside_down = [(0.0, 3, 1), (1.0, 1, 4)]
    assert fitted(upside_down, -1.0).gamma < 0
    assert fitted(upside_down, -1.0, nonnegative=True) == Fit(0.0, 0.0, prior_entropy(-1.0))
    assert fitted([(0.0, 3, 0), (1.0, 0, 4)], -1.0, nonnegative=True) == Fit(0.0, 0.0, prior_entropy(-1.0))
    assert fitted([(0.0, 0, 4), (1.0, 3, 0)], -1.0, nonnegative=True).cost == 0.0


@pytest.mark.parametrize("unit", [5e-324, 1e-323, 1e-310, 2.0**-1022])
@pytest.mark.parametrize("counts", [[(0, 1, 9), (1, 2, 3)], [(0, 0, 9), (1, 2, 3), (2, 1, 4), (3, 5, 1)]])
def test_scores_may_differ_by_less_than_the_smallest_normal_number(unit: float, counts: list[Row]) -> None:
    with np.errstate(invalid="ignore"):
        near = fitted([(place * unit, targets, others) for place, targets, others in counts], -1.0)
    assert near.cost == pytest.approx(fitted(counts, -1.0).cost, rel=1e-9)


@pytest.mark.parametrize("far", [1e5, 1e30, 1.7e308])
def test_a_score_that_is_far_away(far: float) -> None:
    """On the right side it changes nothing but its own cost; on the wrong side it spoils every map."""
    rows = [(-1.0, 1, 40), (0.0, 1, 30), (1.0, 2, 20), (2.0, 5, 10), (3.0, 4, 1)]
    right = fitted([*rows, (-far, 0, 7)], -2.0)
    nearer = fitted([*rows, (-1e3, 0, 7)], -2.0)
    assert right.cost == pytest.approx(nearer.cost, rel=1e-12)
    assert right.gamma == pytest.approx(nearer.gamma, rel=1e-9)
    wrong = fitted([*rows, (-far, 1, 0), (far, 0, 1)], -2.0)
    assert abs(wrong.gamma) < 20 / far + 1e-14
    assert wrong.cost == pytest.approx(fitted([*rows, (-1e9, 1, 0), (1e9, 0, 1)], -2.0).cost, rel=1e-3)


@pytest.mark.parametrize("number", range(12))
def test_a_rare_target_far_below_costs_no_digits_and_few_steps(evaluated: list[int], number: int) -> None:
    """One among millions: the map is that of the others, at one place in the unit that the far one makes."""
    chance = random.Random(number)
    counts = [0, 10**6, 10**9]
    rows = [(round(chance.gauss(0, 1), 3), chance.choice(counts), chance.choice(counts)) for _ in range(10)]
    rows.append((-(10.0 ** chance.randint(4, 7)), 1, 0))
    eta = chance.uniform(-5, 2)
    found = fitted(rows, eta)
    assert len(evaluated) <= 60
    with localcontext(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX):
        cost, gamma, delta = exact_minimum(rows, eta, (found.gamma, found.delta))
        assert abs(Decimal(found.cost / prior_entropy(eta)) - cost) <= cost * Decimal("1e-15")
        assert abs(Decimal(found.gamma) - gamma) <= abs(gamma) * Decimal("1e-11")
        assert abs(Decimal(found.delta) - delta) <= Decimal("1e-11")


@pytest.mark.parametrize("number", [584, 2379, 4559, 78346, 88140, 115168])
def test_steps_that_rounding_turns_back_end(evaluated: list[int], number: int) -> None:
    """Few places, light weights: the last digit of the sums decides where a step leads, and would for ever."""
    generator = np.random.default_rng(number)
    target = np.round(generator.normal(3 * generator.normal(), 10 ** generator.uniform(-3, 2), 200))
    nontarget = np.round(generator.normal(0, 10 ** generator.uniform(-3, 2), 400))
    weights = [10 ** generator.uniform(-12, 0, n) for n in (200, 400)]
    scores = ScoreShares(*(Shares(s, w / w.sum()) for s, w in zip((target, nontarget), weights, strict=True)))
    eta = generator.uniform(-6, 2)
    found = fit(scores, Separation(None, None), eta)
    assert len(evaluated) <= 100
    assert found.cost == pytest.approx(scores.cost(eta, found.gamma, found.delta), rel=1e-13)


def test_scores_that_rounding_makes_one_are_mapped_to_the_prior() -> None:
    """As those of a condition may be beside a score of 1e272 elsewhere in the evaluation."""
    one = Shares(np.zeros(2), np.full(2, 0.5))
    found = fit(ScoreShares(one, one), Separation(None, None), -1.0)
    assert (found.gamma, found.delta) == (0.0, 0.0)
    assert found.cost == pytest.approx(prior_entropy(-1.0), rel=1e-15)


def test_the_order_of_rows_hardly_matters() -> None:
    rows, eta = random_case(7)
    assert fitted(rows[::-1], eta).cost == pytest.approx(fitted(rows, eta).cost, rel=1e-15)


@given(x=st.floats(-700, 700))
def test_costs_are_those_of_probabilities(x: float) -> None:
    with localcontext(prec=400):
        odds = Decimal(x).exp()
        assert softplus(x) == pytest.approx(float((1 + odds).ln()), rel=1e-15)
        assert sigmoid(x) == pytest.approx(float(odds / (1 + odds)), rel=1e-15)
        classes = odds / (1 + odds), 1 / (1 + odds)
        entropy = -sum(share * share.ln() for share in classes)
        assert prior_entropy(x) == pytest.approx(float(entropy), rel=1e-14)


@pytest.mark.parametrize("n_rows", [0, 1, 15, 16, 17, 1024, 1025, 5000])
def test_sums_of_the_kernel_are_those_of_a_loop(n_rows: int) -> None:
    generator = np.random.default_rng(n_rows)
    score, weight = generator.normal(0, 8, n_rows), generator.random(n_rows)
    slope, offset = -1.7, 3.25
    rows = list(zip(score.tolist(), weight.tolist(), strict=True))
    each = [(s, w, sigmoid(slope * s + offset), softplus(slope * s + offset)) for s, w in rows]
    literal = [
        math.fsum(w * cost for _, w, _, cost in each),
        math.fsum(w * p * s for s, w, p, _ in each),
        math.fsum(w * p for _, w, p, _ in each),
        math.fsum(w * p * (1 - p) * s * s for s, w, p, _ in each),
        math.fsum(w * p * (1 - p) * s for s, w, p, _ in each),
        math.fsum(w * p * (1 - p) for _, w, p, _ in each),
    ]
    assert logistic_cost(score, weight, slope, offset) == pytest.approx(literal[0], rel=1e-14)
    assert logistic_expansion(score, weight, slope, offset) == pytest.approx(literal, rel=1e-12, abs=1e-12)


def test_a_step_that_is_far_too_long_is_shortened_at_once(evaluated: list[int]) -> None:
    """Nearly all non-targets at one score: the second Newton step is a million times too long."""
    generator = np.random.default_rng(5)
    target = np.append(generator.normal(2, 1, 8000), -4.7)
    nontarget = np.append(generator.normal(-1, 1, 10000), -4.7)
    weight_of_target = np.append(np.full(8000, 1e-4), 0.2)
    weight_of_nontarget = np.append(np.full(10000, 3e-9), 1 - 3e-5)
    scores = ScoreShares(Shares(target, weight_of_target), Shares(nontarget, weight_of_nontarget))
    found = fit(scores, Separation(None, None), -4.2)
    assert 0.0 < found.gamma < 10.0
    assert sum(evaluated) <= 16 * (len(target) + len(nontarget))


@pytest.mark.parametrize("kind", ["overlapping", "groups are separated", "unordered", "few of one class"])
def test_a_search_that_begins_among_groups_ends_at_the_same_map(
    monkeypatch: pytest.MonkeyPatch, evaluated: list[int], kind: str
) -> None:
    generator = np.random.default_rng(11)
    target, nontarget = np.sort(generator.normal(2, 1, 3000)), np.sort(generator.normal(-1, 1, 4000))
    if kind == "groups are separated":
        target, nontarget = np.append(-0.5, generator.random(3000) + 2.0), np.append(generator.random(4000) - 1.0, 2.5)
    elif kind == "unordered":
        target, nontarget = (generator.permutation(scores) for scores in (target, nontarget))
    elif kind == "few of one class":
        target = target[:3]
    scores = ScoreShares(*(Shares(each, np.full(len(each), 1 / len(each))) for each in (target, nontarget)))
    found = fit(scores, Separation(None, None), -3.0)
    whole = sum(evaluated)
    evaluated.clear()
    monkeypatch.setattr("swsdask.measures.logistic_fit._MANY", len(target) + len(nontarget))
    alone = fit(scores, Separation(None, None), -3.0)
    assert found.cost == pytest.approx(alone.cost, rel=1e-14)
    assert (found.gamma, found.delta) == pytest.approx((alone.gamma, alone.delta), rel=1e-9)
    if kind == "overlapping":
        assert whole < 0.8 * sum(evaluated)
