"""Means and spreads over folds, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from swsdask.discovery.placing import f_score, spreads, with_f_scores
from swsdask.model.discovery import Definition

NAN = math.nan


def test_f_scores_are_per_fold() -> None:
    made = f_score(np.array([0.5, 0.0, 1.0, NAN, 0.25]), np.array([0.5, 0.0, 0.0, 1.0, 0.75]))
    assert made[:3].tolist() == [0.5, 0.0, 0.0]
    assert math.isnan(made[3])
    assert made[4] == 2 * 0.25 * 0.75 / 1.0


def test_an_f_score_comes_after_its_recall_and_single_numbers_stay() -> None:
    one = np.array([1.0])
    made = with_f_scores({"ned": one, "type_precision": one, "type_recall": one, "n_pairs": one})
    assert list(made) == ["ned", "type_precision", "type_recall", "type_f_score", "n_pairs"]


@pytest.mark.parametrize("definition", ["document", "tde2015", "tdev2"])
def test_mean_and_population_deviation(definition: Definition) -> None:
    spread = spreads({"ned": np.array([1.0, 2.0, 4.0, 5.0])}, definition)["ned"]
    assert (spread.mean, spread.least, spread.most, spread.left_out) == (3.0, 1.0, 5.0, 0)
    assert spread.std == math.sqrt(10 / 4)


def test_tde_adds_deviations_up_as_numpy_does() -> None:
    """It prints 0.188 here; the nearest number to the deviation, 0.18749999999999997, would be printed as 0.187."""
    spread = spreads({"token_f_score": np.array([0.5, 0.12500000000000003])}, "tde2015")["token_f_score"]
    assert f"{spread.mean:.3f} {spread.std:.3f}" == "0.312 0.188"


def test_the_mean_f_score_is_not_that_of_the_means() -> None:
    values = with_f_scores({"type_precision": np.array([1.0, 0.0]), "type_recall": np.array([0.0, 1.0])})
    found = spreads(values, "document")
    assert found["type_precision"].mean == found["type_recall"].mean == 0.5
    assert found["type_f_score"].mean == 0.0


def test_tde_leaves_folds_out_of_precision_and_recall_together() -> None:
    values = with_f_scores({"grouping_precision": np.array([0.5, 0.0]), "grouping_recall": np.array([1 / 3, NAN])})
    found = spreads(values, "tde2015")
    assert found["grouping_precision"].mean == 0.5
    assert found["grouping_recall"].mean == 1 / 3
    assert found["grouping_f_score"].mean == pytest.approx(0.4)
    assert [found[name].left_out for name in values] == [1, 1, 1]


def test_the_document_leaves_out_each_number_on_its_own() -> None:
    values = with_f_scores({"grouping_precision": np.array([0.5, 0.0]), "grouping_recall": np.array([1 / 3, NAN])})
    found = spreads(values, "document")
    assert found["grouping_precision"].mean == 0.25
    assert found["grouping_f_score"].mean == pytest.approx(0.4)
    assert [found[name].left_out for name in values] == [0, 1, 1]


def test_tde_leaves_out_ned_and_coverage_on_their_own() -> None:
    found = spreads({"coverage": np.array([0.5, NAN, NAN]), "ned": np.array([0.0, 0.5, NAN])}, "tde2015")
    assert (found["coverage"].mean, found["coverage"].left_out) == (0.5, 2)
    assert (found["ned"].mean, found["ned"].left_out) == (0.25, 1)


def test_no_fold_left() -> None:
    nothing = np.array([NAN, NAN])
    values = {"ned": nothing, "coverage": nothing, "type_precision": nothing, "type_recall": nothing}
    tde = spreads(values, "tde2015")
    assert [spread.mean for spread in tde.values()] == [1.0, 0.0, 0.0, 0.0]
    assert all(spread.std == 0.0 and spread.left_out == 2 for spread in tde.values())
    assert all(math.isnan(spread.mean) and spread.left_out == 2 for spread in spreads(values, "document").values())
