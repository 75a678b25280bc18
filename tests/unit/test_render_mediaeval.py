"""score.out: numbers as Java prints floats, one file for each system, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.cli import main
from swsdask.model.errors import SettingsError
from swsdask.render.short_outputs import java_float
from tests.document_trials import World

WORLD = World(
    documents=("a", "b"),
    queries=("q", "silent"),
    targets=frozenset({("q", "a")}),
    run=(("q", "a", 0.1, True), ("q", "b", -1e-4, False)),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.33166922752125, "-1.3316692"),
        (0.4571529146222529, "0.4571529"),
        (1 / 3, "0.33333334"),
        (100.0, "100.0"),
        (1e-3, "0.001"),
        (9.9e-4, "9.9E-4"),
        (1e-5, "1.0E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.23456e10, "-1.23456E10"),
        (1e300, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_printed_as_java_prints_floats(value: float, text: str) -> None:
    assert java_float(value) == text


def arguments(folder: Path, *options: str) -> list[str]:
    run = WORLD.write(folder)
    return ["score", str(folder), str(run), "--preset", "quesst2014", "--mediaeval-output", *options]


def test_lines_of_one_system(tmp_path: Path) -> None:
    main(arguments(tmp_path, "--compat", "mediaeval", "--out", str(tmp_path / "out")))
    assert (tmp_path / "out/score.out").read_text().splitlines() == [
        "Loading tlist file: t.tlist.xml ...  Done (size: 2)",
        "Loading ecf file: t.ecf.xml ...  Done (size: 2)",
        "Loading rttm file: t.rttm ...  Done (size: 1)",
        "Removing unseen models metadata ...  Done (removed: 1)",
        f"Loading stdlist file: {tmp_path / 'run.stdlist.xml'} ... Done",
        "Scores: 2 (1 model x 2 test)  given: 2  default(null): 0  minScore: -1.0E-4  maxScore: 0.1",
        "",
        "Main Results:",
        "",
        "actTWV: 1.0  maxTWV: 1.0  Threshold: -1.0E-4",
        "actCnxe: 0.9740942  minCnxe: 0.0",
        "",
        "Model-dependent calibration Results:",
        "",
        "Upper-bound TWV (model-dependent offset)  -  actTWV: 1.0  maxTWV: 0.0  Threshold: NaN",
        "Lower-bound Cnxe (model-dependent PAV)    -  actCnxe: 0.0  minCnxe: 0.0",
    ]


def test_a_file_for_each_system(tmp_path: Path) -> None:
    run = WORLD.write(tmp_path)
    evaluation = sws.open(tmp_path, preset="quesst2014", compat="mediaeval")
    result = sws.score(evaluation, runs={"one": run, "two": run})
    out = tmp_path / "out"
    written = sws.write(result, out, tool="mediaeval", evaluation=evaluation)
    assert written[-2:] == ["one.score.out", "two.score.out"]
    assert (out / "one.score.out").read_text() == (out / "two.score.out").read_text()


def test_words_of_unknown_documents_are_no_occurrences(tmp_path: Path) -> None:
    run = WORLD.write(tmp_path)
    with (tmp_path / "t.rttm").open("a") as rttm:
        rttm.write("LEXEME elsewhere 1 0 10 q lex SELF <NA>\n")
    main(["score", str(tmp_path), str(run), "--preset", "quesst2014", "--out", str(tmp_path), "--mediaeval-output"])
    assert "Done (size: 1)" in (tmp_path / "score.out").read_text().splitlines()[2]


def test_an_empty_run_has_no_scores(tmp_path: Path) -> None:
    run = replace(WORLD, run=()).write(tmp_path)
    evaluation = sws.open(tmp_path, preset="quesst2014", settings={"evaluation": {"impute": -10}})
    result = sws.score(evaluation, runs=run)
    sws.write(result, tmp_path / "out", tool="mediaeval", evaluation=evaluation)
    line = "Scores: 2 (1 model x 2 test)  given: 0  default(-10.0): 2  minScore: Infinity  maxScore: -Infinity"
    assert line in (tmp_path / "out" / "score.out").read_text().splitlines()


@pytest.mark.parametrize("options", [[], ["--out", "x", "--preset", "sws2013"]])
def test_the_option_requires_out_and_one_tool(
    tmp_path: Path, options: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(arguments(tmp_path, *options))
    assert done.value.code == 2
    assert "--mediaeval-output goes with" in capfd.readouterr().err


def test_numbers_that_were_not_requested_are_named(tmp_path: Path) -> None:
    run = WORLD.write(tmp_path)
    evaluation = sws.open(tmp_path, preset="quesst2014")
    with pytest.raises(SettingsError, match="not requested: atwv, cnxe"):
        sws.write(sws.score(evaluation, ["mtwv"], runs=run), tmp_path, tool="mediaeval", evaluation=evaluation)
