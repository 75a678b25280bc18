"""What a participant does: fit on a development evaluation, apply to other runs, score those."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import swsdask as sws
from swsdask.formats.runs.read import read_run
from swsdask.model.errors import Problems
from swsdask.simulate.evaluation import simulate, write
from tests.command_line import Outcome, long_form
from tests.small_evaluation import RUN, Files

Call = Callable[..., Outcome]

SYSTEMS = ("calibrated", "keyword-specific", "middling", "overconfident", "weak")
BAYES = math.log(0.01 * (1 - 0.00015) / 0.00015)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of twenty minutes: sim.ecf.xml, sim.rttm, sim.kwlist.xml, runs/*.kwslist.xml."""
    folder = tmp_path_factory.mktemp("world")
    write(simulate(7, hours=0.3, n_queries=25), folder)
    return folder


def numbers(swsdask: Call, *arguments: str | Path) -> dict[str, float]:
    scored = swsdask("score", *arguments, "--preset", "sws2013", "--format", "json")
    assert scored.code == 0, scored.err
    return {name: float(value) for name, value in long_form(json.loads(scored.out)).items() if value is not None}


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_was_promised_is_scored(swsdask: Call, world: Path, tmp_path: Path, system: str) -> None:
    run, file, calibrated = world / "runs" / f"{system}.kwslist.xml", tmp_path / "c.toml", tmp_path / "out"
    before = numbers(swsdask, world, run)
    fitted = swsdask("calibrate", run, "--on", world, "--preset", "sws2013", "--out", file)
    assert fitted.code == 0, fitted.err
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    assert said["map"] == {"method": "affine", "gamma": before["cnxe_gamma"], "delta": before["cnxe_delta"]}
    assert said["fitted_on"]["cnxe"] == before["cnxe"]
    assert said["fitted_on"]["prior_log_odds"] == pytest.approx(-BAYES, abs=1e-14)
    for count in ("n_given_target", "n_imputed_target", "n_given_nontarget", "n_imputed_nontarget"):
        assert said["fitted_on"][count] == before[count]
    assert f"C_nxe {before['cnxe']:.4f} before, {before['cnxe_min']:.4f} after" in fitted.out

    applied = swsdask("calibrate", "--apply", file, run, "--out", calibrated)
    assert applied.code == 0, applied.err
    after = numbers(swsdask, world, calibrated)
    assert after["cnxe"] == pytest.approx(before["cnxe_min"], abs=1e-12)
    assert after["cnxe_min"] == pytest.approx(before["cnxe_min"], abs=1e-12)
    assert after["cnxe_gamma"] == pytest.approx(1.0, abs=1e-6)
    assert after["cnxe_delta"] == pytest.approx(0.0, abs=1e-6)
    for unchanged in ("mtwv", "otwv", "stwv", "map", "cnxe_min_pav"):
        assert after[unchanged] == pytest.approx(before[unchanged], abs=1e-12)
    assert after["atwv"] == after["twv_bayes"]


@pytest.mark.parametrize("system", ["middling", "overconfident"])
def test_steps_promise_what_is_scored_and_leave_nothing_to_gain(
    swsdask: Call, world: Path, tmp_path: Path, system: str
) -> None:
    run, file, calibrated = world / "runs" / f"{system}.kwslist.xml", tmp_path / "c.toml", tmp_path / "out"
    before = numbers(swsdask, world, run)
    fitted = swsdask("calibrate", run, "--on", world, "--preset", "sws2013", "--method", "pav", "--out", file)
    assert fitted.code == 0, fitted.err
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    assert said["map"]["method"] == "pav"
    assert all(math.isfinite(llr) for llr in said["map"]["llr"])
    assert swsdask("calibrate", "--apply", file, run, "--out", calibrated).code == 0
    after = numbers(swsdask, world, calibrated)
    assert after["cnxe"] == pytest.approx(said["fitted_on"]["cnxe_calibrated"], abs=1e-12)
    assert after["cnxe_min_pav"] == pytest.approx(before["cnxe_min_pav"], abs=1e-12)
    assert before["cnxe_min_pav"] <= after["cnxe"] < before["cnxe_min_pav"] + 0.02
    assert after["cnxe"] < before["cnxe"]


def test_one_evaluation_gives_what_another_uses(swsdask: Call, world: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(simulate(8, hours=0.3, n_queries=25), other)
    file, runs = tmp_path / "c.toml", tmp_path / "runs"
    name = "overconfident.kwslist.xml"
    assert swsdask("calibrate", world / "runs" / name, "--on", world, "--preset", "sws2013", "--out", file).code == 0
    applied = swsdask("calibrate", "--apply", file, other / "runs", "--out", runs)
    assert applied.code == 0, applied.err
    assert len(list(runs.iterdir())) == len(SYSTEMS)
    (said,) = (line for line in applied.out.splitlines() if line.startswith("fitted on overconfident, applied to "))
    assert said.endswith(f" and {len(SYSTEMS) - 1 - 3} more")
    assert numbers(swsdask, other, runs / name)["cnxe"] < numbers(swsdask, other, other / "runs" / name)["cnxe"]


def test_decisions_follow_the_operating_point(swsdask: Call, world: Path, tmp_path: Path) -> None:
    run, file = world / "runs" / "weak.kwslist.xml", tmp_path / "c.toml"
    assert swsdask("calibrate", run, "--on", world, "--preset", "sws2013", "--out", file).code == 0
    original = [piece.decision for piece in read_run(str(run), Problems())]
    for options, threshold in (
        ([], BAYES),
        (["--preset", "quesst2014"], math.log(0.01 * (1 - 0.0008) / 0.0008)),
        (["--set", "operating_point.beta=1.0"], 0.0),
        (["--keep-decisions"], None),
    ):
        applied = swsdask("calibrate", "--apply", file, run, "--out", tmp_path / "out.tsv", *options)
        assert applied.code == 0, applied.err
        (piece,) = read_run(str(tmp_path / "out.tsv"), Problems())
        expected = original[0] if threshold is None else piece.score >= threshold
        assert np.array_equal(piece.decision.astype(bool), expected.astype(bool))
        assert f"{int(expected.sum())} decided YES" in applied.out


def test_an_imputed_number_is_mapped_too(swsdask: Call, world: Path, tmp_path: Path) -> None:
    run, file, out = world / "runs" / "middling.kwslist.xml", tmp_path / "c.toml", tmp_path / "out.kwslist.xml"
    impute = ["--set", "impute=-2.5"]
    before = numbers(swsdask, world, run, *impute)
    assert swsdask("calibrate", run, "--on", world, "--preset", "sws2013", "--out", file, *impute).code == 0
    applied = swsdask("calibrate", "--apply", file, run, "--out", out)
    gamma, delta = before["cnxe_gamma"], before["cnxe_delta"]
    assert f"impute = -2.5 becomes {gamma * -2.5 + delta!r}" in applied.out
    after = numbers(swsdask, world, out, "--set", f"impute={gamma * -2.5 + delta!r}")
    assert after["cnxe"] == pytest.approx(before["cnxe_min"], abs=1e-12)


def test_a_system_of_an_archive_is_fitted_to_the_same_numbers(swsdask: Call, world: Path, tmp_path: Path) -> None:
    archive, one, other = tmp_path / "archive", tmp_path / "one.toml", tmp_path / "other.toml"
    assert swsdask("ingest", archive, world, "--run", world / "runs", "--preset", "sws2013").code == 0
    run = world / "runs" / "weak.kwslist.xml"
    assert swsdask("calibrate", "weak", "--on", archive, "--preset", "sws2013", "--out", one).code == 0
    assert swsdask("calibrate", run, "--on", world, "--preset", "sws2013", "--out", other).code == 0
    assert one.read_bytes() == other.read_bytes()
    assert swsdask("calibrate", f"mine={run}", "--on", world, "--preset", "sws2013", "--out", other).code == 0
    assert tomllib.loads(other.read_text(encoding="utf-8"))["fitted_on"]["system"] == "mine"


def test_from_python(world: Path, tmp_path: Path) -> None:
    evaluation = sws.open(world, preset="sws2013")
    fitted = sws.calibrate(evaluation, world / "runs" / "weak.kwslist.xml")
    assert isinstance(fitted, sws.Calibration)
    assert fitted([1.0, 2.0]).tolist() == [fitted.map.gamma * s + fitted.map.delta for s in (1.0, 2.0)]
    (applied,) = sws.apply_calibration(fitted, world / "runs" / "weak.kwslist.xml", tmp_path / "out.parquet")
    result = sws.score(evaluation, ["cnxe"], runs=tmp_path / "out.parquet")
    assert result.scores["value"][0] == pytest.approx(fitted.fitted_on.cnxe_calibrated, abs=1e-12)
    assert applied.rows > 0
    with pytest.raises(sws.SettingsError, match="spline"):
        sws.calibrate(evaluation, world / "runs" / "weak.kwslist.xml", "spline")  # type: ignore[arg-type]


def refused(outcome: Outcome, *parts: str) -> None:
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in outcome.err, outcome.err


@pytest.mark.parametrize(
    ("scores", "parts"),
    [
        (("0.5", "0.5", "0.5", "0.5"), ["gamma = 0", "without information"]),
        (("0.1", "0.9", "0.1", "0.9"), ["gamma = -", "higher scores mean higher confidence"]),
    ],
)
def test_scores_that_no_map_can_correct_are_refused(
    swsdask: Call, files: Files, scores: tuple[str, ...], parts: list[str]
) -> None:
    run = RUN
    for old, new in zip(("0.9", "0.2", "0.7", "0.6"), scores, strict=True):
        run = run.replace(f'score="{old}"', f'score="<{new}>"')
    run = run.replace('"<', '"').replace('>"', '"')
    file = files.folder / "c.toml"
    outcome = swsdask("calibrate", files.write("bad.kwslist.xml", run), "--on", files.reference, "--out", file)
    refused(outcome, "bad.kwslist.xml: expected scores that a calibration can be fitted on", *parts)
    assert not file.exists()


def test_classes_that_do_not_overlap_have_steps_but_no_affine_map(swsdask: Call, files: Files) -> None:
    apart = (
        RUN.replace(' decision="YES"', "")
        .replace(' decision="NO"', "")
        .replace("</detected_kwlist>", '<kw file="b" channel="1" tbeg="2" dur="1" score="0.8"/>\n</detected_kwlist>', 1)
    )
    run, file = files.write("apart.kwslist.xml", apart), files.folder / "c.toml"
    outcome = swsdask("calibrate", run, "--on", files.reference, "--out", file)
    refused(outcome, "gamma = inf", "with the method pav")
    assert not file.exists()
    fitted = swsdask("calibrate", run, "--on", files.reference, "--out", file, "--method", "pav")
    assert fitted.code == 0, fitted.err
    steps = tomllib.loads(file.read_text(encoding="utf-8"))["map"]
    n_target, n_nontarget = 3, 2 * 60 - 3
    prior = math.log(n_target / n_nontarget)
    assert steps["begins"] == [0.7]
    assert steps["llr"] == pytest.approx(
        [math.log(0.5 / (n_nontarget + 0.5)) - prior, math.log((n_target + 0.5) / 0.5) - prior], abs=1e-12
    )


def test_questions_that_do_not_make_sense(swsdask: Call, files: Files) -> None:
    refused(swsdask("calibrate", files.run), "--on REFERENCE")
    refused(swsdask("calibrate", files.run, files.run, "--on", files.reference), "fitted on one RUN")
    refused(swsdask("calibrate", files.run, "--on", files.reference, "--keep-decisions"), "goes with --apply")
    refused(swsdask("calibrate", "--apply", "c.toml", files.run), "--apply needs --out")
    refused(swsdask("calibrate", "--apply", "c.toml", files.run, "--out", "x", "--on", files.reference), "leave out")
    refused(swsdask("calibrate", "--apply", "c.toml", files.run, "--out", "x"), "c.toml: expected", "nothing there")
    refused(swsdask("calibrate", files.run, "--on", files.folder / "none"), "none")
    two = files.write("two.csv", "system,query,document,start,duration,score\na,K1,a,1,1,1\nb,K1,a,1,1,1\n")
    refused(swsdask("calibrate", two, "--on", files.reference), "fitted on one system", "a, b")


def test_an_operating_point_from_data_needs_data(swsdask: Call, files: Files) -> None:
    file = files.folder / "c.toml"
    assert swsdask("calibrate", files.run, "--on", files.reference, "--out", file).code == 0
    outcome = swsdask(
        "calibrate",
        "--apply",
        file,
        files.run,
        "--out",
        files.folder / "out",
        "--set",
        "operating_point.from_data=sws2012",
    )
    refused(outcome, "from_data", "needs a reference")


def test_help_says_what_happens_to_decisions(swsdask: Call) -> None:
    said = " ".join(swsdask("calibrate", "--help").out.split())
    assert "Decisions are recomputed" in said
    assert "impute" in said


def test_one_rounded_time_is_one(swsdask: Call, files: Files, world: Path) -> None:
    fitted = files.folder / "c.toml"
    run = world / "runs/weak.kwslist.xml"
    assert swsdask("calibrate", run, "--on", world, "--preset", "sws2013", "--out", fitted).code == 0
    fine = files.write("fine.kwslist.xml", RUN.replace('"1.1"', '"1.10001"'))
    outcome = swsdask("calibrate", "--apply", fitted, fine, "--out", files.folder / "out")
    assert "  rounded: 1 time finer than 0.1 ms\n" in outcome.out, outcome.err


def test_a_calibration_knows_that_it_was_fitted_on_costs(swsdask: Call, files: Files, world: Path) -> None:
    costs = files.folder / "costs.csv"
    assert swsdask("convert", world / "runs/weak.kwslist.xml", costs).code == 0
    table = pd.read_csv(costs)
    table.assign(score=-table["score"]).to_csv(costs, index=False)
    fitted = files.folder / "c.toml"
    fit = ("--on", world, "--preset", "sws2013", "--negate-scores", "--out", fitted)
    assert swsdask("calibrate", costs, *fit).code == 0
    assert sws.Calibration.read(fitted).fitted_on.negated
    said = "fitted on costs (--negate-scores), applied without it"
    for options in ([], ["--negate-scores"]):
        applied = swsdask("calibrate", "--apply", fitted, costs, *options, "--out", files.folder / f"out{len(options)}")
        assert applied.code == 0
        assert (said in applied.out) == (not options)
