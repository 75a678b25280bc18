"""Measures of a small evaluation whose numbers were worked out by hand, and where they are not defined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from swsdask.measures import MEASURES, curves
from swsdask.measures.measure import Measure, Scored
from swsdask.measures.sweep import threshold_sweep
from swsdask.measures.twv import TwvLosses
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from tests.worlds import Row, make_reference, numbers, settings, statistics, with_thresholds

ROWS: list[Row] = [
    (0, 0, 9.0, 1, True),
    (0, 0, 8.0, 1, False),
    (0, 0, 7.0, 1, True),
    (0, 0, 2.0, 0, False),
    (1, 0, 8.5, 1, True),
    (1, 0, 6.0, 1, False),
    (1, 0, 5.0, 0, True),
    (1, 0, 4.0, 0, False),
]
REFERENCE = make_reference([[4], [2]], {"all": ([True, True], [True], 24)})
"""N_nt is 20 and 22."""

BETA = 4.0
ASKED = settings(operating_point={"beta": BETA}, thresholds=[6.0, 7.5], p_fa_points=[0.0, 0.05, 0.5])


def scored(
    rows: list[Row], reference: Reference, asked: EvaluationSettings, families: Sequence[Measure] = MEASURES
) -> dict[tuple[str | None, str], float]:
    reference = with_thresholds(reference, asked)
    found = statistics([rows], reference)
    values = numbers(families, Scored(found, reference, asked))
    return {(value.query, value.measure): value.value for value in values if value.condition == "all"}


VALUES = scored(ROWS, REFERENCE, ASKED)


def test_counts() -> None:
    expected = {
        "n_queries": 2,
        "n_target": 6,
        "n_detections": 8,
        "n_nontarget": 4,
        "n_hit": 3,
        "n_miss": 3,
        "n_false_alarm": 2,
        "n_correct_nondetection": 2,
    }
    assert {name: VALUES[None, name] for name in expected} == expected
    assert [VALUES["q1", name] for name in ("n_target", "n_hit", "n_miss", "n_false_alarm")] == [2, 1, 1, 1]


def test_decisions() -> None:
    p_miss, p_fa = (2 / 4 + 1 / 2) / 2, (1 / 20 + 1 / 22) / 2
    assert VALUES[None, "p_miss"] == p_miss
    assert VALUES[None, "p_fa"] == pytest.approx(p_fa)
    assert VALUES[None, "atwv"] == pytest.approx(1 - (p_miss + BETA * p_fa))
    assert VALUES["q0", "atwv"] == pytest.approx(1 - (0.5 + BETA / 20))
    assert VALUES[None, "p_miss_pooled"] == 3 / 6
    assert VALUES[None, "p_fa_pooled"] == 2 / (2 * 24 - 6)
    assert VALUES[None, "occurrence_weighted_value"] == pytest.approx((3 - BETA * 2) / 6)
    assert VALUES["q0", "occurrence_weighted_value"] == pytest.approx((2 - BETA * 1) / 4)
    assert VALUES[None, "c_det"] == pytest.approx(0.5 * p_miss + 0.5 * BETA * p_fa)
    assert VALUES[None, "c_default"] == 0.5
    assert VALUES[None, "c_norm"] == pytest.approx(1 - VALUES[None, "atwv"])


def test_thresholds_that_explain_decisions() -> None:
    assert VALUES[None, "actual_threshold"] == (6.0 + 5.0) / 2
    assert VALUES["q0", "actual_threshold"] == (7.0 + 2.0) / 2
    every_yes = [(*row[:3], 1, row[4]) for row in ROWS]
    assert scored(every_yes, REFERENCE, ASKED)[None, "actual_threshold"] == 2.0
    no_yes = [(*row[:3], 0, row[4]) for row in ROWS]
    assert math.isnan(scored(no_yes, REFERENCE, ASKED)[None, "actual_threshold"])
    crossed = [(*row[:3], int(row[2] < 5), row[4]) for row in ROWS]
    assert math.isnan(scored(crossed, REFERENCE, ASKED)[None, "actual_threshold"])


def test_mtwv() -> None:
    p_miss, p_fa = (2 / 4 + 0) / 2, (1 / 20 + 1 / 22) / 2
    assert VALUES[None, "mtwv"] == pytest.approx(1 - (p_miss + BETA * p_fa))
    assert VALUES[None, "mtwv_threshold"] == 5.0
    assert VALUES[None, "mtwv_rejected_threshold"] == 4.0
    assert VALUES[None, "mtwv_p_miss"] == p_miss
    assert VALUES[None, "mtwv_p_fa"] == pytest.approx(p_fa)


LOSSES = ("loss_not_found", "loss_within_query", "loss_across_queries", "loss_threshold")


def test_losses() -> None:
    """MTWV is at 5, OTWV at 7 and 5, and decisions are as a threshold of 6."""
    stwv, otwv = 1 - (2 / 4) / 2, 1 - ((2 / 4 + 0) / 2 + BETA * (1 / 20 + 1 / 22) / 2)
    mtwv, atwv = otwv, 1 - ((2 / 4 + 1 / 2) / 2 + BETA * (1 / 20 + 1 / 22) / 2)
    expected = [1 - stwv, stwv - otwv, otwv - mtwv, mtwv - atwv]
    assert [VALUES[None, name] for name in LOSSES] == pytest.approx(expected)
    shifted = [(*row[:2], row[2] - 6.0 * row[0], *row[3:]) for row in ROWS]
    apart = scored(shifted, REFERENCE, ASKED)
    assert apart[None, "otwv"] == pytest.approx(otwv)
    assert apart[None, "loss_across_queries"] == apart[None, "otwv"] - apart[None, "mtwv"] > 0


def test_losses_that_are_not_defined() -> None:
    undecided = [(*row[:3], -1, row[4]) for row in ROWS]
    without = scored(undecided, REFERENCE, ASKED)
    assert [math.isnan(without[None, name]) for name in LOSSES] == [False, False, False, True]
    asked = ASKED.model_copy(update={"compat": "mediaeval", "trials": "document"})
    imputing = scored(ROWS, REFERENCE, asked, [TwvLosses()])
    assert [math.isnan(imputing[None, name]) for name in LOSSES] == [False, False, True, True]


def test_of_equal_values_the_lowest_threshold() -> None:
    """The second hit is worth 1/10, the false alarm in front of it costs beta / 33."""
    rows: list[Row] = [(0, 0, 3.0, 1, True), (0, 0, 2.0, 1, False), (0, 0, 1.0, 1, True)]
    reference = make_reference([[10]], {"all": ([True], [True], 43)})
    tied = scored(rows, reference, settings(operating_point={"beta": 3.3}))
    assert tied[None, "mtwv_threshold"] == tied["q0", "otwv_threshold"] == 1.0
    tied = scored(rows, reference, settings(operating_point={"beta": 3.3000000001}))
    assert tied[None, "mtwv_threshold"] == tied["q0", "otwv_threshold"] == 3.0


def test_ties_where_the_averages_have_different_queries() -> None:
    """The second hit is worth 1/10, the false alarm in front of it costs beta / 33 / 2: q1 only enters P_fa."""
    rows: list[Row] = [(0, 0, 3.0, 1, True), (0, 0, 2.0, 1, False), (0, 0, 1.0, 1, True)]
    reference = make_reference([[10], [0]], {"all": ([True, True], [True], 43)})
    for beta, threshold in ((6.6, 1.0), (6.6000000001, 3.0)):
        asked = settings(operating_point={"beta": beta}, no_targets="false_alarms_only")
        assert scored(rows, reference, asked)[None, "mtwv_threshold"] == threshold


def test_rejecting_everything_may_be_best() -> None:
    rows: list[Row] = [(0, 0, 3.0, 1, False), (0, 0, 2.0, 1, True), (1, 0, 1.0, 1, True)]
    dear = settings(operating_point={"beta": 1000.0})
    best = scored(rows, REFERENCE, dear)
    assert (best[None, "mtwv"], best[None, "mtwv_threshold"]) == (0.0, math.inf)
    assert best[None, "mtwv_rejected_threshold"] == 3.0
    assert (best["q0", "otwv"], best["q0", "otwv_threshold"]) == (0.0, math.inf)
    quirk = scored(rows, REFERENCE, dear.model_copy(update={"compat": "kwseval"}))
    assert quirk[None, "mtwv_threshold"] == 1.0
    assert quirk[None, "mtwv"] == pytest.approx(1 - ((3 / 4 + 1 / 2) / 2 + 1000.0 / 20 / 2))
    alone = scored(rows[:1], REFERENCE, dear.model_copy(update={"compat": "kwseval"}))
    assert alone[None, "mtwv_threshold"] == alone["q0", "otwv_threshold"] == 3.0
    assert alone[None, "mtwv"] == pytest.approx(-1000.0 / 20 / 2)


def test_optimum_and_supremum() -> None:
    assert VALUES["q0", "otwv_threshold"] == 7.0
    assert VALUES["q0", "otwv"] == pytest.approx(1 - (2 / 4 + BETA / 20))
    assert VALUES["q1", "otwv_threshold"] == 5.0
    assert VALUES["q1", "otwv"] == pytest.approx(1 - BETA / 22)
    assert VALUES[None, "otwv"] == pytest.approx((VALUES["q0", "otwv"] + VALUES["q1", "otwv"]) / 2)
    assert VALUES[None, "stwv"] == 0.75
    assert (VALUES["q0", "stwv"], VALUES["q1", "stwv_p_miss"]) == (0.5, 0.0)


def test_at_thresholds() -> None:
    assert VALUES[None, "twv@6.0"] == VALUES[None, "atwv"]
    assert VALUES[None, "twv@7.5"] == pytest.approx(1 - ((3 / 4 + 1 / 2) / 2 + BETA / 20 / 2))
    assert VALUES[None, "bayes_threshold"] == pytest.approx(math.log(4))
    assert VALUES[None, "effective_prior"] == pytest.approx(0.2)
    every = 1 - ((2 / 4 + 0) / 2 + BETA * (2 / 20 + 2 / 22) / 2)
    assert VALUES[None, "twv_bayes"] == pytest.approx(every)
    measured = Scored(statistics([ROWS], REFERENCE), REFERENCE, ASKED)
    with pytest.raises(ValueError, match="no rung"):
        threshold_sweep(measured, measured.populations[0]).place(6.5)


def test_det() -> None:
    found = Scored(statistics([ROWS], REFERENCE), REFERENCE, ASKED)
    averaged, pooled = (curve for curve in curves(found) if curve.curve.startswith("det"))
    assert averaged.threshold.tolist() == pooled.threshold.tolist() == [math.inf, 9.0, 8.5, 7.0, 5.0, 2.0]
    assert pooled.x.tolist() == pytest.approx([0, 0, 0, 1 / 42, 2 / 42, 4 / 42])
    assert pooled.y.tolist() == pytest.approx([1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 2 / 6])
    assert averaged.x.tolist() == pytest.approx([0, 0, 0, 1 / 40, 1 / 40 + 1 / 44, 2 / 40 + 2 / 44])
    assert averaged.y.tolist() == pytest.approx([1, 7 / 8, 5 / 8, 4 / 8, 2 / 8, 2 / 8])
    assert math.isnan(VALUES[None, "eer"])
    assert VALUES[None, "p_miss@0.0"] == 5 / 8
    assert VALUES[None, "p_miss@0.05"] == pytest.approx(1 / 4)
    assert math.isnan(VALUES[None, "p_miss@0.5"])


def test_p_miss_at_a_vertex_whose_p_fa_is_rounded() -> None:
    """P_fa is (2 / 20 + 2 / 10) / 3 = .1 at two vertices; in the second world the curve ends at (3 / 20) / 3 = .05."""
    false_alarms: list[Row] = [(0, 0, 5.0, 1, False)] * 2 + [(1, 0, 5.0, 1, False)] * 2
    rows = sorted([*false_alarms, (0, 0, 4.0, 1, True), (1, 0, 3.0, 1, True), (2, 0, 2.0, 1, True)])
    reference = make_reference([[1], [1], [1]], {"all": ([True] * 3, [True], 21)})
    wider = make_reference([[1], [11], [1]], {"all": ([True] * 3, [True], 21)})
    asked = ASKED.model_copy(update={"p_fa_points": (0.1,)})
    assert (2 / 20 + 2 / 10) / 3 > 0.1
    assert scored(rows, wider, asked)[None, "p_miss@0.1"] == pytest.approx(10 / 11 / 3)
    ending = ASKED.model_copy(update={"p_fa_points": (0.049, 0.05, 0.051)})
    found = scored([(0, 0, 1.0, 1, False)] * 3, reference, ending)
    assert [found[None, f"p_miss@{point}"] for point in (0.049, 0.05)] == [1.0, 1.0]
    assert math.isnan(found[None, "p_miss@0.051"])


def test_quirk_of_the_end_of_pooled_points() -> None:
    """q1, which averages leave out, has the lowest score."""
    rows: list[Row] = [(0, 0, 1.0, 1, True), (1, 0, 0.1, 0, False)]
    for compat in ("kwseval", "stdeval"):
        asked = ASKED.model_copy(update={"compat": compat})
        reference = with_thresholds(make_reference([[1], [0]], {"all": ([True, False], [True], 100)}), asked)
        found = Scored(statistics([rows], reference), reference, asked)
        averaged, pooled = (curve for curve in curves(found) if curve.curve.startswith("det"))
        assert averaged.threshold.tolist() == [math.inf, 1.0]
        assert pooled.threshold.tolist() == [math.inf, 1.0, 0.1]
        assert pooled.x.tolist() == [0, 0, 1 / 99]
        assert pooled.y.tolist() == [1, 0, 0]


def test_equal_error_rate() -> None:
    rows: list[Row] = [(0, 0, 3.0, 1, True), *[(0, 0, 2.0, 1, False)] * 4, (0, 0, 1.0, 1, True)]
    reference = make_reference([[2]], {"all": ([True], [True], 12)})
    """From (0, .5) to (.4, 0): they meet where .5 - 1.25 x = x."""
    assert scored(rows, reference, ASKED)[None, "eer"] == pytest.approx(0.5 / 2.25)


def test_quirk_of_pooled_false_alarms() -> None:
    for compat in ("kwseval", "stdeval"):
        quirk = scored(ROWS, REFERENCE, ASKED.model_copy(update={"compat": compat}))
        assert quirk[None, "p_fa_pooled"] == 2 / (24 - 6)


def test_pooled_false_alarms_with_more_targets_than_trials() -> None:
    """N_nt is -2, which NIST's tools divide by."""
    rows: list[Row] = [(0, 0, 1.0, 1, False)]
    reference = make_reference([[4]], {"all": ([True], [True], 2)})
    assert math.isnan(scored(rows, reference, ASKED)[None, "p_fa_pooled"])
    for compat in ("kwseval", "stdeval"):
        quirk = scored(rows, reference, ASKED.model_copy(update={"compat": compat}))
        assert quirk[None, "p_fa_pooled"] == 1 / (2 - 4)


def test_without_decisions() -> None:
    undefined = scored([*ROWS[:-1], (*ROWS[-1][:3], -1, False)], REFERENCE, ASKED)
    by_decision = {"n_hit", "n_miss", "n_false_alarm", "n_correct_nondetection", "p_miss", "p_fa", "p_miss_pooled"}
    by_decision |= {"p_fa_pooled", "atwv", "actual_threshold", "c_det", "c_norm", "occurrence_weighted_value"}
    by_decision |= {"precision", "recall", "f1", "loss_threshold"}
    for key, value in undefined.items():
        if key[1] in by_decision:
            assert math.isnan(value), key
        else:
            assert value == VALUES[key] or (math.isnan(value) and math.isnan(VALUES[key])), key


def test_without_decisions_and_nobody_to_average() -> None:
    rows = [(*row[:3], -1, row[4]) for row in ROWS]
    out = scored(rows, make_reference([[4], [2]], {"all": ([False, False], [True], 24)}), ASKED)
    assert out[None, "n_target"] == out[None, "n_detections"] == 0
    assert all(math.isnan(out[None, name]) for name in ("n_hit", "n_miss", "n_false_alarm", "n_correct_nondetection"))


def test_without_targets_or_nontargets() -> None:
    """q1 has no targets; all of q2's trials are targets."""
    targets, rows = [[4], [0], [24]], [(0, 0, 2.0, 1, True), (1, 0, 1.0, 1, False), (2, 0, 3.0, 1, True)]
    out = scored(rows, make_reference(targets, {"all": ([True, False, True], [True], 24)}), ASKED)
    assert out[None, "n_queries"] == 2
    assert out[None, "p_miss"] == (3 / 4 + 23 / 24) / 2
    assert out[None, "p_fa"] == 0.0
    assert out[None, "mtwv"] == pytest.approx(1 - out[None, "p_miss"])
    assert math.isnan(out["q2", "p_fa"])
    assert math.isnan(out["q2", "atwv"])
    assert ("q1", "p_fa") not in out
    counted = settings(operating_point={"beta": BETA}, no_targets="false_alarms_only")
    out = scored(rows, make_reference(targets, {"all": ([True, True, True], [True], 24)}), counted)
    assert out[None, "n_queries"] == 3
    assert out[None, "p_miss"] == (3 / 4 + 23 / 24) / 2
    assert out[None, "p_fa"] == (1 / 24) / 2
    assert math.isnan(out["q1", "p_miss"])
    assert out["q1", "otwv_threshold"] == math.inf


@pytest.mark.parametrize("rows", [[], ROWS])
def test_nothing_to_average(rows: list[Row]) -> None:
    out = scored(rows, make_reference([[4], [2]], {"all": ([False, False], [True], 24)}), ASKED)
    assert out.pop((None, "n_queries")) == 0
    assert all(math.isnan(out[None, name]) for name in ("p_miss", "p_fa", "atwv", "mtwv", "otwv", "stwv", "eer", "map"))


def test_a_system_that_finds_nothing() -> None:
    out = scored([], REFERENCE, ASKED)
    expected: dict[str, Any] = {"p_miss": 1, "p_fa": 0, "atwv": 0, "mtwv": 0, "otwv": 0, "stwv": 0, "ap": 0, "map": 0}
    assert {name: out[None, name] for name in expected} == expected
    assert out[None, "mtwv_threshold"] == math.inf
    assert out[None, "mtwv_rejected_threshold"] == -math.inf
