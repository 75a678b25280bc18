"""The table of measures: names, directions, and the measure that ranks systems."""

from __future__ import annotations

import math

from swsdask.measures import MEASURES
from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.measures import BALANCED, TABLE, better, ranking_measures, select_measures, written
from swsdask.model.results import SCORES
from tests.results import table

NEITHER = set(
    "n_queries n_target n_nontarget n_detections n_correct_nondetection actual_threshold mtwv_threshold "
    "mtwv_rejected_threshold otwv_threshold c_default beta effective_prior bayes_threshold cxe_prior n_given_target "
    "n_imputed_target n_given_nontarget n_imputed_nontarget impute_score cnxe_gamma cnxe_delta best_f1_threshold "
    "map_n_averaged map_n_no_relevant map_n_missing mediaeval_threshold mediaeval_offset_threshold mediaeval_min_score "
    "mediaeval_max_score n_retrieved n_relevant judged_at_rank@ n_nonrelevant_judged".split()
)
"""Measures without an order of merit. A new measure has a direction in `model.measures.TABLE` or is here."""

NAMES = [name for family in MEASURES for name in family.names]


def test_every_measure_has_its_direction_or_none() -> None:
    assert {name for name in NAMES if better(name) == 0} == NEITHER
    assert [better(name) for name in ("atwv", "twv@-0.5", "p_miss@0.001", "cnxe", "beta", "no_such")] == [
        1,
        1,
        -1,
        -1,
        0,
        0,
    ]


def test_the_table_has_every_measure_once() -> None:
    assert sorted(row.name for row in TABLE) == sorted(NAMES)
    assert all(row.better in (-1, 0, 1) for row in TABLE)


def test_balanced_measures_are_measures_with_a_direction() -> None:
    assert set(BALANCED) <= set(NAMES)
    assert all(better(name) for name in BALANCED)


def test_names_with_a_point() -> None:
    measures = ("twv@0.5", "eer", "twv@1.0", "p_miss")
    assert list(select_measures(["eer", "twv@"], measures)) == ["eer", "twv@0.5", "twv@1.0"]
    assert list(select_measures(["twv@1.0", "p_miss@", "mtwv"], measures)) == ["twv@1.0"]


def test_systems_are_ranked_by_the_first_requested_measure() -> None:
    assert ranking_measures(("n_hit", "atwv", "mtwv"), None) == ("atwv", "mtwv")
    assert ranking_measures(("eer", "mtwv"), None) == ("mtwv",)
    assert ranking_measures(("mtwv", "atwv"), ["n_queries", "mtwv", "atwv"]) == ("mtwv",)
    assert ranking_measures(("eer", "p_miss@0.1"), ["p_miss@", "eer"]) == ("p_miss@0.1",)
    assert ranking_measures(("beta",), ["beta"]) == ()


def test_a_board_where_less_is_better() -> None:
    rows = [
        (system, "all", None, "cnxe", value) for system, value in zip("abcd", (0.5, math.nan, 0.2, 0.9), strict=True)
    ]
    rows += [("a", "all", None, "atwv", 0.9), ("d", "all", None, "atwv", 0.95)]
    assert leaderboard_of(table(rows, SCORES), ["cnxe", "atwv"]).systems == ("c", "a", "d", "b")
    assert leaderboard_of(table(rows, SCORES), ["atwv", "cnxe"]).systems == ("d", "a", "b", "c")
    assert leaderboard_of(table(rows, SCORES)).systems == ("d", "a", "b", "c")


def test_numbers_near_infinity_are_short() -> None:
    """The threshold between a decision at inf and another is one: a table with its 308 digits cannot be read."""
    assert written("actual_threshold", 8.98846567431158e307) == "8.98847e+307"
    assert written("actual_threshold", -123456789.0) == "-123,456,789.0000"
    assert written("n_nontarget", 4e12) == "4,000,000,000,000"
