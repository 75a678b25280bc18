"""The document-trial tool of MediaEval (QUESST 2014 and 2015): its printed numbers, its lines, and what it refuses.

Its float32 arithmetic agrees to 1e-6. Where ours differ on purpose the expected value stands here with the reason.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.cli import main
from swsdask.model.errors import InputError

IMPUTE = {"base": None, "tie_tarfirst": None, "tie_tarlast": None, "inc_def": 5.0, "decinc": -10.0, "alltar": -10.0}
"""The default score that each run was scored with; None: it gives every trial."""

NAMES = ["atwv", "mtwv", "mtwv_rejected_threshold", "cnxe", "cnxe_min_pav"]
TABLE = {
    "base": [-1.3316692, 0.25, 2.0, 0.8707273, 0.4571529],
    "tie_tarfirst": [0.0, 0.0, 0.0, 1.0, 0.9624863],
    "tie_tarlast": [0.0, 0.0, 0.0, 1.0, 0.0],
    "inc_def": [0.5, 0.0, 5.0, 9.096862, 0.43367514],
    "decinc": [0.75, 0.0, 4.0, 3.2146468, 0.5873485],
}
BOUNDS = {
    "base": (0.5, 0.28788784),
    "tie_tarfirst": (0.0, 0.9624863),
    "tie_tarlast": (1.0, 0.0),
    "inc_def": (0.5, 0.38671064),
    "decinc": (0.5, 0.28788784),
}
"""The upper bound of TWV by an offset for each query, the lower bound of C_nxe by PAV of each query."""


def evaluation(folder: Path, compat: str | None = "mediaeval", impute: float | None = None) -> sws.Evaluation:
    settings = {} if impute is None else {"evaluation": {"impute": impute}}
    return sws.open(folder, preset="quesst2014", compat=compat, settings=settings)


def overall(folder: Path, compat: str | None = "mediaeval", impute: float | None = None) -> dict[str, float]:
    result = sws.score(evaluation(folder, compat, impute), runs=folder / "s.stdlist.xml")
    rows = result.table.to_pylist()
    return {row["measure"]: row["value"] for row in rows if row["query"] is None and row["condition"] == "all"}


@pytest.mark.parametrize("case", TABLE)
def test_printed_numbers(cases: Path, case: str) -> None:
    found = overall(cases / "mediaeval" / case, impute=IMPUTE[case])
    assert [found[name] for name in NAMES] == pytest.approx(TABLE[case], abs=1e-6)
    assert (found["twv_query_offset"], found["cnxe_query_pav"]) == pytest.approx(BOUNDS[case], abs=1e-6)
    assert found["beta"] == pytest.approx(12.490015, abs=1e-6)
    assert found["effective_prior"] == pytest.approx(0.0741289, abs=1e-15)


def test_the_cut_prior_is_in_the_sixth_decimal(cases: Path) -> None:
    found = overall(cases / "mediaeval/base", compat=None)
    assert found["beta"] == 12.49
    assert found["atwv"] == pytest.approx(0.75 - 12.49 / 6, abs=1e-12)
    assert abs(found["atwv"] - TABLE["base"][0]) > 2e-6


@pytest.mark.parametrize("case", ["tie_tarfirst", "tie_tarlast"])
def test_pooled_one_score_says_nothing_in_any_order(cases: Path, case: str) -> None:
    found = overall(cases / "mediaeval" / case, compat=None)
    assert found["cnxe_min_pav"] == pytest.approx(1.0, abs=1e-12)
    assert found["cnxe_query_pav"] <= 1.0
    assert found["twv_query_offset"] == 0.0


POOLED = {
    "base": [(0, 3), (2, 2), (1, 0)],
    "inc_def": [(3, 5)],
    "decinc": [(1, 4), (2, 1)],
}
"""Targets and non-targets of the blocks, by ascending score, where equal scores are pooled."""


@pytest.mark.parametrize("case", POOLED)
def test_pooled_numbers(cases: Path, case: str) -> None:
    ours = overall(cases / "mediaeval" / case, compat=None, impute=IMPUTE[case])
    prior, n_target, n_nontarget = 1 / 13.49, *(sum(counts) for counts in zip(*POOLED[case], strict=True))
    cost = 0.0
    for target, nontarget in POOLED[case]:
        if target and nontarget:
            odds = target / n_target / (nontarget / n_nontarget) * prior / (1 - prior)
            cost += prior * target / n_target * math.log1p(1 / odds)
            cost += (1 - prior) * nontarget / n_nontarget * math.log1p(odds)
    entropy = -prior * math.log(prior) - (1 - prior) * math.log(1 - prior)
    assert ours["cnxe_min_pav"] == pytest.approx(cost / entropy, abs=1e-12)
    assert TABLE[case][4] < ours["cnxe_min_pav"] <= ours["cnxe"]
    assert ours["twv_query_offset"] == ours["otwv"] <= BOUNDS[case][0] + 1e-6


def test_missing_trials_are_never_accepted_by_a_threshold_of_ours(cases: Path) -> None:
    found = overall(cases / "mediaeval/inc_def", compat=None, impute=5.0)
    assert (found["mtwv"], found["mtwv_threshold"]) == (0.5, 1.5)


def test_a_query_in_every_document_is_defined_and_said(cases: Path) -> None:
    folder = cases / "mediaeval/alltar"
    found = overall(folder, impute=-10.0)
    assert found["cnxe"] == pytest.approx(2.8862212, abs=1e-6)
    assert found["cnxe_min_pav"] == pytest.approx(0.0, abs=1e-6)
    assert (found["atwv"], found["mtwv"], found["mtwv_rejected_threshold"]) == (0.5, 0.5, -10.0)
    assert not any(math.isnan(found[name]) for name in ("p_fa", "twv_query_offset", "cnxe_query_pav") if name in found)
    notes = sws.score(evaluation(folder, impute=-10.0), ["atwv"], runs=folder / "s.stdlist.xml").notes
    assert any("without non-target" in note and "q2" in note for note in notes)


BAD = {
    "badscore": ("s.stdlist.xml", 3, "'abc'"),
    "dup": ("s.stdlist.xml", 4, "query q1 in document d1 again"),
    "lowerdec": ("s.stdlist.xml", 3, "'yes'"),
    "noscoreattr": ("s.stdlist.xml", 3, "a row without score"),
    "nanscore": ("s.stdlist.xml", 3, "'NaN'"),
    "unkq": ("s.stdlist.xml", 2, "'zz'"),
    "unkd": ("s.stdlist.xml", 3, "'dX'"),
    "inc_nodef": ("s.stdlist.xml", None, "none for query q1 in document d2, the first of 7 missing trials, of 8"),
}
"""File, line and cause of each bad input. What is missing has no line."""


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(cases: Path, case: str) -> None:
    folder = cases / "mediaeval" / case
    file, line, cause = BAD[case]
    with pytest.raises(InputError) as caught:
        sws.score(evaluation(folder), runs=folder / "s.stdlist.xml")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(folder / file), line)
    assert cause in problem.found
    assert problem.remedy


@pytest.mark.parametrize("case", BAD)
def test_bad_input_at_the_command_line(cases: Path, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    folder = cases / "mediaeval" / case
    assert command(folder, "--compat", "mediaeval") == 2
    file, line, cause = BAD[case]
    printed = capfd.readouterr()
    assert f"{folder / file}{'' if line is None else f':{line}'}: expected " in printed.err
    assert cause in printed.err
    assert "Traceback" not in printed.err + printed.out


def test_a_trial_given_twice_counts_by_its_best_detection_elsewhere(cases: Path) -> None:
    found = overall(cases / "mediaeval/dup", compat=None)
    assert (found["n_detections"], found["mtwv_threshold"]) == (1, 1.5)


def test_document_ids_lose_an_audio_extension(cases: Path) -> None:
    found = overall(cases / "mediaeval/wavext", impute=-10.0)
    assert (found["n_hit"], found["atwv"]) == (1, 0.5)


def command(folder: Path, *options: str) -> int:
    """The exit code of `swsdask score`."""
    try:
        main(["score", str(folder), str(folder / "s.stdlist.xml"), "--preset", "quesst2014", *options])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def score_out(folder: Path, run: str, out: Path, impute: float | None) -> list[str]:
    """The lines of score.out, with the run named as where the tool was called."""
    given = [] if impute is None else ["--set", f"impute={impute}"]
    options = ["--preset", "quesst2014", "--compat", "mediaeval", "--out", str(out), "--mediaeval-output"]
    main(["score", str(folder), str(folder / run), *options, "--measures", "atwv", *given])
    return (out / "score.out").read_text().replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize("case", IMPUTE)
def test_score_out_is_the_tools(cases: Path, tmp_path: Path, case: str) -> None:
    folder = cases / "mediaeval" / case
    wanted = (folder / "out.txt").read_text().splitlines()
    assert score_out(folder, "s.stdlist.xml", tmp_path, IMPUTE[case]) == wanted


def test_times_are_not_looked_at(cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every detection ends behind its file."""
    folder = cases / "mediaeval" / "beyond"
    wanted = (folder / "expected.txt").read_text().splitlines()
    assert score_out(folder, "s.stdlist.xml", tmp_path, None) == wanted
    assert "outside" not in capsys.readouterr().out.partition("Note:")[2]


@pytest.mark.parametrize("case", ["ties", "ids"])
def test_score_out_of_cases_of_our_own(own_cases: Path, tmp_path: Path, case: str) -> None:
    folder = own_cases / "quesst" / case
    assert score_out(folder, "run.stdlist.xml", tmp_path, -1.5) == (folder / "score.out").read_text().splitlines()
