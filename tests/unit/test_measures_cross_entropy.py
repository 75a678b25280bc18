"""Cross entropy on evaluations small enough to work out by hand, what is imputed, and what is reported."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from swsdask.measures import interpretation, system_notes
from swsdask.measures.calibration import AffineCalibration, PavCalibration
from swsdask.measures.cross_entropy import CrossEntropy
from swsdask.measures.logistic_fit import ScoreShares, Shares, sigmoid
from swsdask.measures.measure import Scored
from swsdask.measures.threshold_curves import bayes_error_rates, curves
from swsdask.model.settings import weights
from swsdask.model.trials import Reference
from swsdask.statistics.moments import Overlap, ZoomedMoments
from tests.worlds import Row, make_reference, numbers, settings, statistics, with_thresholds

FAMILIES = (CrossEntropy(), AffineCalibration(), PavCalibration())
EVEN = {"beta": 1.0}
"""P_tar = .5: costs in bits are log2(1 + e^-s) of a target and log2(1 + e^s) of a non-target."""


def scored(rows: Sequence[Row], bare: Reference, **asked: Any) -> dict[tuple[str | None, str], float]:
    """By query (None: overall) and measure, of the condition "all"."""
    asked_for = settings(**{"operating_point": EVEN, **asked})
    reference = with_thresholds(bare, asked_for)
    found = statistics([rows], reference)
    values = numbers(FAMILIES, Scored(found, reference, asked_for))
    return {(v.query, v.measure): v.value for v in values if v.condition == "all"}


def notes(rows: Sequence[Row], bare: Reference, **asked: Any) -> str:
    asked_for = settings(**{"operating_point": EVEN, **asked})
    reference = with_thresholds(bare, asked_for)
    return " ".join(note.text for note in system_notes(Scored(statistics([rows], reference), reference, asked_for)))


def one_condition(targets: Sequence[int], n_trials: int) -> Reference:
    return make_reference([[n] for n in targets], {"all": ([n > 0 for n in targets], [True], n_trials)})


TWO_QUERIES = one_condition([2, 1], 4)
ROWS: list[Row] = [
    (0, 0, math.log(3), 1, True),
    (0, 0, 0.0, 0, False),
    (1, 0, math.log(3), 0, False),
    (1, 0, -math.log(3), 1, True),
]


def test_by_hand() -> None:
    """Targets at log 3, -log 3 and imputed at -log 3; non-targets at 0, log 3 and three at -log 3."""
    found = scored(ROWS, TWO_QUERIES)
    seldom, often = math.log2(4), math.log2(4 / 3)
    targets, nontargets = (often + 2 * seldom) / 3, (1 + seldom + 3 * often) / 5
    assert found[None, "cxe"] == pytest.approx((targets + nontargets) / 2, rel=1e-15)
    assert found[None, "cnxe"] == found[None, "cxe"]
    assert found[None, "cxe_prior"] == 1.0
    assert found["q0", "cnxe"] == pytest.approx(((often + seldom) / 2 + (1 + often) / 2) / 2, rel=1e-15)
    assert found["q1", "cnxe"] == pytest.approx((seldom + (seldom + 2 * often) / 3) / 2, rel=1e-15)
    given = {name: found[None, name] for name in CrossEntropy.names[3:]}
    assert given == {
        "n_given_target": 2,
        "n_imputed_target": 1,
        "n_given_nontarget": 2,
        "n_imputed_nontarget": 3,
        "impute_score": -math.log(3),
    }
    assert found["q1", "n_imputed_nontarget"] == 2
    # Pooled blocks: 2 targets of 5 trials at -log 3 with the one at 0, 1 target of 2 at log 3: 2 of 6, then 1 of 2.
    u, v = (2 / 3 / 2, 1 / 3 / 2), (4 / 5 / 2, 1 / 5 / 2)
    pav = sum(a * math.log2(1 + b / a) + b * math.log2(1 + a / b) for a, b in zip(u, v, strict=True))
    assert found[None, "cnxe_min_pav"] == pytest.approx(pav)
    assert found[None, "calibration_loss_pav"] == pytest.approx(found[None, "cnxe"] - pav)


def test_a_number_is_imputed() -> None:
    found = scored(ROWS, TWO_QUERIES, impute=0.0)
    often, seldom = math.log2(4 / 3), math.log2(4)
    assert found[None, "cxe"] == pytest.approx(((often + seldom + 1) / 3 + (seldom + 4) / 5) / 2, rel=1e-15)
    assert found[None, "impute_score"] == 0.0


def test_the_lowest_score_is_that_of_the_whole_run() -> None:
    """A query without targets and trials outside a condition have a say in it, and in nothing else."""
    bare = make_reference(
        [[1, 0], [0, 0]], {"all": ([True, False], [True, True], 9), "first": ([True, False], [True, False], 5)}
    )
    rows: list[Row] = [(0, 0, 2.0, 1, True), (0, 1, -7.0, 0, False), (1, 0, -11.0, 0, False)]
    asked = settings(operating_point=EVEN)
    reference = with_thresholds(bare, asked)
    found = statistics([rows], reference)
    values = {v[:3]: v.value for v in numbers([CrossEntropy()], Scored(found, reference, asked))}
    assert values["all", None, "impute_score"] == values["first", None, "impute_score"] == -11.0
    assert values["all", None, "n_imputed_nontarget"] == 7
    assert values["first", None, "n_imputed_nontarget"] == 4


def test_scores_that_say_nothing() -> None:
    constant: list[Row] = [(0, 0, 0.0, 1, True), (0, 0, 0.0, 0, False), (1, 0, 0.0, 1, True)]
    for rows in ([], constant, [(q, g, -2.5, d, hit) for q, g, _, d, hit in constant]):
        found = scored(rows, TWO_QUERIES, operating_point={"beta": 66.656667})
        said = rows[0][2] if rows else 0.0
        assert (found[None, "cnxe"] == 1.0) == (said == 0.0)
        assert found[None, "cnxe_min"] == 1.0
        assert (found[None, "cnxe_gamma"], found[None, "cnxe_delta"]) == (0.0, 0.0)
        assert found[None, "cnxe_min_pav"] == pytest.approx(1.0, rel=1e-15)
        assert found[None, "impute_score"] == said


def test_perfect_scores() -> None:
    """All targets given and above all else: nothing is left of C_nxe_min, and no gamma is the best."""
    rows: list[Row] = [(0, 0, 5.0, 1, True), (0, 0, 4.0, 1, True), (1, 0, 4.5, 1, True), (1, 0, 1.0, 0, False)]
    found = scored(rows, TWO_QUERIES)
    assert found[None, "cnxe_min"] == found[None, "cnxe_min_pav"] == found[None, "cnxe_query_pav"] == 0.0
    assert found[None, "cnxe_gamma"] == math.inf
    assert math.isnan(found[None, "cnxe_delta"])
    assert found[None, "calibration_loss"] == found[None, "cnxe"] > 0.0
    assert "separate targets from non-targets" in notes(rows, TWO_QUERIES)
    upside_down = [(q, g, -s, d, hit) for q, g, s, d, hit in rows]
    assert scored(upside_down, TWO_QUERIES, impute=9.0)[None, "cnxe_gamma"] == -math.inf


def test_scores_that_mislead() -> None:
    rows: list[Row] = [(0, 0, -1.0, 1, True), (0, 0, 0.0, 1, True), (0, 0, 1.0, 0, False), (1, 0, 2.0, 1, False)]
    bare = one_condition([2, 1], 3)
    free = scored(rows, bare, impute=-0.5)
    assert free[None, "cnxe_gamma"] < 0
    assert free[None, "cnxe_min"] < 1
    rising = scored(rows, bare, impute=-0.5, nonnegative_gamma=True)
    assert (rising[None, "cnxe_gamma"], rising[None, "cnxe_delta"], rising[None, "cnxe_min"]) == (0.0, 0.0, 1.0)
    assert "affine map of the scores falls, gamma = -" in notes(rows, bare, impute=-0.5)
    assert "falls" not in notes(rows, bare, impute=-0.5, nonnegative_gamma=True)


def test_a_query_in_every_document() -> None:
    """It has no non-target trial: its targets are in the pool, it has no number of its own, and both are reported."""
    bare = one_condition([4, 1], 4)
    rows: list[Row] = [(0, 0, 1.5, 1, True), (1, 0, 0.5, 1, True)]
    found = scored(rows, bare)
    assert math.isnan(found["q0", "cnxe"])
    assert found["q1", "cnxe"] > 0
    assert found[None, "n_given_target"] + found[None, "n_imputed_target"] == 5
    target = (math.log2(1 + math.exp(-1.5)) + 4 * math.log2(1 + math.exp(-0.5))) / 5
    assert found[None, "cxe"] == pytest.approx((target + math.log2(1 + math.exp(0.5))) / 2, rel=1e-15)
    told = " ".join(interpretation(bare, settings()))
    assert "1 query without non-target trials, and so without P_fa (q0). Their targets count" in told
    alone = scored(rows[:1], one_condition([4], 4))
    assert all(math.isnan(alone[None, name]) for name in ("cnxe", "cnxe_min", "cnxe_min_pav", "cnxe_query_pav"))


def test_no_targets_at_all() -> None:
    bare = make_reference([[0]], {"all": ([True], [True], 9)})
    found = scored([(0, 0, 1.0, 1, False)], bare, no_targets="false_alarms_only")
    for family in FAMILIES[1:]:
        assert all(math.isnan(found[None, name]) for name in family.names)
    assert math.isnan(found[None, "cnxe"])
    assert "No query has target trials: TWV and C_nxe are not defined." in interpretation(bare, settings())


def test_more_false_alarms_than_there_is_time_for() -> None:
    rows: list[Row] = [(0, 0, float(n), 1, n == 3) for n in range(4)]
    found = scored(rows, one_condition([1], 3))
    assert (found[None, "n_given_nontarget"], found[None, "n_imputed_nontarget"]) == (3, 0)
    nontargets = [math.log2(1 + math.exp(n)) for n in range(3)]
    assert found[None, "cxe"] == pytest.approx((math.log2(1 + math.exp(-3)) + sum(nontargets) / 3) / 2)


def test_an_imputed_score_above_given_ones_is_reported() -> None:
    assert "lies above the run's lowest, -1.09861: 4 trials without a score rank" in notes(
        ROWS, TWO_QUERIES, impute=0.5
    )
    assert "lies above" not in notes(ROWS, TWO_QUERIES, impute=-3.0)
    assert "lies above" not in notes(ROWS, TWO_QUERIES)
    assert "lies above" not in notes([], TWO_QUERIES, impute=5.0)


@pytest.mark.parametrize("compat", ["kwseval", "stdeval"])
def test_beta_is_rounded_as_the_official_tools_round_it_and_ties_are_exact(compat: str) -> None:
    openkws = {"p_target": 0.0001, "c_miss": 1.0, "c_fa": 0.1}
    point = weights(TWO_QUERIES, settings(operating_point=openkws, compat=compat))
    assert (point.beta, point.exact_beta) == (999.9000000000001, Fraction(9999, 10))
    assert weights(TWO_QUERIES, settings(operating_point=openkws)).beta == 999.9


def test_the_operating_point_of_sws2013() -> None:
    point = weights(TWO_QUERIES, settings(operating_point={"p_target": 0.00015, "c_miss": 100.0, "c_fa": 1.0}))
    assert point.effective_prior == pytest.approx(0.0147805, abs=5e-8)
    assert point.prior_log_odds == pytest.approx(-4.199555, abs=5e-7)
    prior = scored(ROWS, TWO_QUERIES, operating_point={"effective_prior": 0.25})[None, "cxe_prior"]
    assert prior == pytest.approx(0.25 * 2 + 0.75 * math.log2(4 / 3), rel=1e-15)


def test_a_hundred_million_imputed_trials_are_one_group() -> None:
    few, many = (scored(ROWS, one_condition([2, 1], n)) for n in (10**3, 10**8))
    assert many[None, "n_imputed_nontarget"] == 2 * 10**8 - 3 - 2
    n = many[None, "n_imputed_nontarget"]
    targets = (math.log2(4 / 3) + 2 * 2) / 3
    nontargets = math.fsum([1.0, 2.0, n * math.log2(4 / 3)]) / (n + 2)
    assert many[None, "cxe"] == pytest.approx((targets + nontargets) / 2, rel=1e-15)
    assert 0 < many[None, "cnxe_min"] < few[None, "cnxe_min"] < 1


def spread_rows() -> list[Row]:
    chance = random.Random(11)
    hits: list[Row] = [(chance.randrange(2), 0, chance.gauss(2, 1), 1, True) for _ in range(60)]
    return hits + [(chance.randrange(2), 0, chance.gauss(-1, 1.5), 0, False) for _ in range(900)]


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e4), (1e3, -1e6), (1.0, 1e8)])
def test_affine_maps_of_the_scores_change_no_minimum(scale: float, offset: float) -> None:
    bare = one_condition([40, 50], 5000)
    plain = scored(spread_rows(), bare)
    rows = [(q, g, scale * s + offset, d, hit) for q, g, s, d, hit in spread_rows()]
    moved = scored(rows, bare)
    hair = 1e-9 if offset == 1e8 else 1e-12
    assert moved[None, "cnxe_min"] == pytest.approx(plain[None, "cnxe_min"], abs=hair)
    assert moved[None, "cnxe_min_pav"] == plain[None, "cnxe_min_pav"]
    assert moved[None, "cnxe_query_pav"] == plain[None, "cnxe_query_pav"]
    gamma, delta = plain[None, "cnxe_gamma"], plain[None, "cnxe_delta"]
    assert moved[None, "cnxe_gamma"] * scale == pytest.approx(gamma, rel=1e-6)
    assert moved[None, "cnxe_delta"] + moved[None, "cnxe_gamma"] * offset == pytest.approx(delta, rel=1e-5)


def test_only_scores_far_from_zero_are_looked_at_closely() -> None:
    reference = with_thresholds(one_condition([40, 50], 5000), settings())
    assert ZoomedMoments not in statistics([spread_rows()], reference)
    far = [(q, g, s + 1e6, d, hit) for q, g, s, d, hit in spread_rows()]
    assert ZoomedMoments in statistics([far], reference)


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_close_to_zero_are_reported_apart(seed: int) -> None:
    """Hits spread over 0 .. 1, but classes overlap at a millionth: C_nxe min does not depend on the scale of scores."""
    rng = np.random.default_rng(seed)
    hits, others = (1 / (1 + np.exp(-rng.normal(*at, n))) for at, n in (((1.0, 6.0), 40), ((-14.0, 1.2), 300)))
    bare = one_condition([43], 5000)

    def least(scale: float) -> dict[tuple[str | None, str], float]:
        rows = [(0, 0, scale * float(s), 1, hit) for own, hit in ((hits, True), (others, False)) for s in own]
        return scored(rows, bare)

    plain, larger = least(1.0), least(2.0**20)
    assert plain[None, "cnxe_min"] == pytest.approx(larger[None, "cnxe_min"], rel=1e-12)
    assert plain[None, "cnxe_gamma"] == pytest.approx(2.0**20 * larger[None, "cnxe_gamma"], rel=1e-6)
    assert plain[None, "cnxe_min_pav"] <= plain[None, "cnxe_min"]


@pytest.mark.parametrize("away", [1.0, 1e4, 1e8])
def test_hits_far_from_other_trials_do_not_blur_them(away: float) -> None:
    """The curve at the operating point is the cross entropy, which is exact."""
    rng = np.random.default_rng(2)
    hits, others = away + rng.normal(2.0, 1.0, 20), rng.normal(-2.0, 2.0, 200)
    rows: list[Row] = [(0, 0, float(s), 1, hit) for own, hit in ((hits, True), (others, False)) for s in own]
    asked = settings(operating_point=EVEN)
    reference = with_thresholds(one_condition([20], 5000), asked)
    found = Scored(statistics([rows], reference), reference, asked)
    (curve,) = (each for each in curves(found) if each.curve == "ece_actual")
    expected = scored(rows, one_condition([20], 5000))[None, "cxe"]
    assert curve.y[curve.x == reference.prior_log_odds] == pytest.approx([expected], rel=1e-12)


@pytest.mark.parametrize("above", [0.0, 1e-12, 1e-3])
def test_ends_that_lie_close_together_are_counted(above: float) -> None:
    """Whether classes are separated does not hang on how wide bins are."""
    rows: list[Row] = [(0, 0, 3.0 + above, 1, True), (0, 0, 3.0, 0, False), (0, 0, 2.0, 0, False)]
    bare = one_condition([1], 9)
    found = scored(rows, bare)
    assert found[None, "cnxe_gamma"] == math.inf
    u, v = 0.5, 0.125 / 2
    shared = u * math.log2(1 + v / u) + v * math.log2(1 + u / v)
    assert found[None, "cnxe_min"] == (pytest.approx(shared) if above == 0.0 else 0.0)
    overlapping = scored([*rows, (0, 0, 3.0 + 2 * above, 0, False)], bare)
    assert math.isinf(overlapping[None, "cnxe_gamma"]) == (above == 0.0)
    reference = with_thresholds(bare, settings())
    assert Overlap in statistics([rows], reference)
    assert Overlap not in statistics([spread_rows()], with_thresholds(one_condition([40, 50], 5000), settings()))


def test_extreme_scores() -> None:
    """No score that a run may hold breaks anything; what a float cannot hold is infinite."""
    rows: list[Row] = [(0, 0, 1.7e308, 1, True), (0, 0, -1.7e308, 0, False), (1, 0, 1.7e308, 0, False)]
    found = scored(rows, TWO_QUERIES)
    assert found[None, "cnxe"] > 1e307
    assert 0.0 < found[None, "cnxe_min_pav"] <= found[None, "cnxe_min"] * (1 + 1e-15) <= 1.0
    subnormal: list[Row] = [(0, 0, 5e-324, 1, True), (0, 0, 0.0, 0, False), (1, 0, 1e-323, 0, False)]
    assert 0.0 < scored(subnormal, TWO_QUERIES)[None, "cnxe_min"] <= 1.0


@pytest.mark.parametrize("hits", [[1.0], [1.0] * 4])
def test_equal_hits_have_the_least_entropy_of_any_scale(hits: list[float]) -> None:
    found = []
    for scale in (1.0, 2.0**-80, 2.0**-130, 2.0**-900):
        rows: list[Row] = [(0, 0, scale * score, 1, True) for score in hits]
        rows += [(0, 0, scale * score, 1, False) for score in (-1.0, -0.5, 0.0, 0.75, 1.5)]
        found.append(scored(rows, TWO_QUERIES))
    assert {each[None, "cnxe_min"] for each in found} == {found[0][None, "cnxe_min"]}
    assert math.isfinite(found[0][None, "cnxe_gamma"])


def test_error_rates_of_many_scores_are_wrong_by_a_bin_at_most() -> None:
    chance = np.random.default_rng(3)
    hits, others = chance.normal(2.0, 2.0, (2, 50)), chance.normal(-2.0, 2.0, (2, 1950))
    rows: list[Row] = [(query, 0, float(score), 1, True) for query in range(2) for score in hits[query]]
    rows += [(query, 0, float(score), 0, False) for query in range(2) for score in others[query]]
    asked = settings(operating_point=EVEN)
    reference = with_thresholds(one_condition([50, 50], 2000), asked)
    (curve,) = (
        each for each in curves(Scored(statistics([rows], reference), reference, asked)) if each.curve == "ape_actual"
    )
    assert len(curve.x) == 81
    exact = [
        sigmoid(x) * (hits < -x).mean() + sigmoid(-x) * (others >= -x).mean() for x in np.asarray(curve.x).tolist()
    ]
    assert np.abs(curve.y - exact).max() < 0.002


def test_error_rates_at_bayes_thresholds_are_those_of_every_trial() -> None:
    target, nontarget = [-0.5, 0.5, 1.0, 1.0], [-3.0, -0.25, 0.5, 8.0]
    share = np.full(4, 0.25)
    scores = ScoreShares(Shares(np.array(target), share), Shares(np.array(nontarget), share))
    priors = np.arange(-40, 41) / 4
    for gamma, delta in ((1.0, 0.0), (2.0, 0.5), (0.0, 0.25), (-1.0, 0.0)):
        rates = bayes_error_rates(scores, priors, gamma, delta)
        for x, rate in zip(priors.tolist(), rates.tolist(), strict=True):
            missed = sum(gamma * s + delta < -x for s in target) / 4
            accepted = sum(gamma * s + delta >= -x for s in nontarget) / 4
            assert rate == pytest.approx(sigmoid(x) * missed + sigmoid(-x) * accepted, abs=1e-15)
