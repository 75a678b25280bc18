"""`swsdask simulate compare`: a reduced study, the same on any executor, whose shares are near what they should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swsdask.cli.simulate import compare
from swsdask.comparison import coverage_study
from swsdask.execution.executor import SerialExecutor, ThreadExecutor
from swsdask.model.studies import EVALUATIONS, N_QUERIES, REPLICATES, CoverageStudy
from swsdask.render.studies import coverage_json, coverage_page
from tests.command_line import Outcome

N = 30


@pytest.fixture(autouse=True)
def _smaller_population(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_study, "_POPULATION", 20_000)


@pytest.fixture(scope="module")
def made() -> CoverageStudy:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage_study, "_POPULATION", 20_000)
        return coverage_study.coverage_study(5, N, SerialExecutor(), n_queries=60, replicates=200)


def test_intervals_cover_and_tests_reject_as_often_as_they_should(made: CoverageStudy) -> None:
    """Of 30, 24 or more intervals hold the truth and 6 or fewer tests reject, unless shares are far from 95 and 5 %."""
    for row in made.rows:
        if row["name"].endswith("interval"):
            assert row["share"] >= 24 / N, row
        else:
            assert row["share"] <= 6 / N, row
        assert row["low"] - 1e-9 <= row["share"] <= row["high"] + 1e-9


def test_the_same_bits_on_any_executor_and_in_a_shorter_study(made: CoverageStudy) -> None:
    shorter = coverage_study.coverage_study(5, 4, ThreadExecutor(2), n_queries=60, replicates=200)
    assert np.array_equal(shorter.found, made.found[:4])
    assert shorter.truth == made.truth


def test_a_table_a_page_and_files(swsdask: Callable[..., Outcome], tmp_path: Path) -> None:
    few = ("--evaluations", "2", "--queries", "20", "--replicates", "20", "--seed", "3")
    ended = swsdask("simulate", "compare", *few, "--out", tmp_path / "new")
    assert ended.code == 0
    assert "percentile interval" in ended.out
    assert "evaluations=2 queries=20 replicates=20" in ended.out
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["compare.html", "compare.json"]
    found = json.loads((tmp_path / "new" / "compare.json").read_text())
    assert [(row["measure"], row["name"]) for row in found["rows"]] == list(coverage_study.NAMES)
    assert json.loads(swsdask("simulate", "compare", *few, "--format", "json").out) == found


def test_the_size_of_a_study_is_that_of_the_bounds() -> None:
    """The command repeats the numbers, so that it does not import numpy for its help."""
    defaults = {option.name: option.default for option in compare.params}
    assert (defaults["evaluations"], defaults["queries"], defaults["replicates"]) == (
        EVALUATIONS,
        N_QUERIES,
        REPLICATES,
    )


def test_the_page_has_a_dot_for_every_row(made: CoverageStudy) -> None:
    text = coverage_page(made, "swsdask <1>")
    assert text.count('class="dot"') == len(coverage_study.NAMES)
    assert "swsdask &lt;1&gt;" in text
    assert json.loads(coverage_json(made, "s"))["evaluations"] == N
