"""impute = "error": a run that leaves out a trial is refused, with the first one and how many there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.model.errors import InputError
from tests.document_trials import World

WORLD = World(
    documents=("a", "b", "c"),
    queries=("silent", "q", "r"),
    targets=frozenset({("q", "a"), ("r", "b")}),
    run=(*(("q", d, 0.5, True) for d in "cba"), ("r", "c", 0.5, False), ("r", "a", 0.25, True)),
)


def score(folder: Path, world: World, impute: str | float = "error") -> sws.Result:
    run = world.write(folder)
    evaluation = sws.open(str(folder), preset="quesst2014", settings={"evaluation": {"impute": impute}})
    return sws.score(evaluation, ["mtwv"], runs=str(run))


def test_the_first_missing_trial_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        score(tmp_path, WORLD)
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "run.stdlist.xml")
    assert problem.found == "none for query r in document b, the first of 1 missing trial, of 6"
    assert "impute=min" in problem.remedy
    assert score(tmp_path, WORLD, "min").table.num_rows == score(tmp_path, WORLD, -5.0).table.num_rows == 1


def test_a_run_that_gives_nothing_lacks_everything(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none for query q in document a, the first of 6 missing trials, of 6"):
        score(tmp_path, replace(WORLD, run=()))


def test_queries_without_targets_need_no_trials(tmp_path: Path) -> None:
    assert score(tmp_path, replace(WORLD, run=(*WORLD.run, ("r", "b", 1.0, True)))).table.num_rows == 1
