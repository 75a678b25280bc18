"""`swsdask discover` as a user types it: its output, files, errors and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

import swsdask as sws
from swsdask.discovery.measures import measures_of
from swsdask.model.discovery import FAMILIES, Definition
from swsdask.model.results import CURVES, SCORES
from swsdask.render.outputs import read_outputs
from tests.command_line import Outcome
from tests.discovery_worlds import random_world

Call = Callable[..., Outcome]

PHONES = """f1 0.0 0.1 a
f1 0.1 0.2 b
f1 0.2 0.3 c
f1 0.5 0.6 a
f1 0.6 0.7 b
f1 0.7 0.8 c
f2 0.0 0.1 a
f2 0.1 0.2 b
f2 0.2 0.3 d
"""
WORDS = """f1 0.0 0.3 abc
f1 0.5 0.8 abc
f2 0.0 0.3 abd
"""
CLASSES = """Class 1
f1 0.0 0.3
f1 0.5 0.8

Class 2
f1 0.0 0.2
f2 0.0 0.3

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.phn").write_text(PHONES)
    (tmp_path / "c.wrd").write_text(WORDS)
    (tmp_path / "one.classes").write_text(CLASSES)
    return tmp_path


def corpus(folder: Path) -> tuple[str | Path, ...]:
    return "--phones", folder / "c.phn", "--words", folder / "c.wrd"


def values(out: str) -> dict[tuple[str, str], float]:
    return {(row["condition"], row["measure"]): row["value"] for row in json.loads(out)}


def test_by_hand(swsdask: Call, folder: Path) -> None:
    """tdev2: classes abc, abc and ab, abd; of four fragments three are words, whose edges are six of seven."""
    outcome = swsdask("discover", folder / "one.classes", *corpus(folder), "--definition", "tdev2", "--format", "json")
    assert outcome.code == 0, outcome.err
    found = values(outcome.out)
    assert set(found) == {("all", name) for name in measures_of("tdev2")}
    of = {name: value for (_, name), value in found.items()}
    assert (of["n_classes"], of["n_fragments"], of["n_words"], of["n_pairs"]) == (2, 4, 3, 2)
    assert of["ned"] == (0 + 1 / 3) / 2
    assert of["coverage"] == 1.0
    assert (of["token_precision"], of["token_recall"]) == (3 / 4, 1.0)
    assert of["token_f_score"] == 2 * 0.75 / 1.75
    assert (of["type_precision"], of["type_recall"]) == (2 / 3, 1.0)
    assert (of["boundary_precision"], of["boundary_recall"]) == (6 / 7, 1.0)
    assert (of["grouping_precision"], of["grouping_recall"]) == (2 / 4, 1.0)


def test_a_table_for_one_system(swsdask: Call, folder: Path) -> None:
    outcome = swsdask("discover", folder / "one.classes", *corpus(folder), "--measures", "coverage,token,n_classes")
    assert outcome.code == 0, outcome.err
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[0] == ["all", "one", "2", "folds"]
    assert lines[1] == ["Measure", "Mean", "Std", "Min", "Max"]
    assert [line[0] for line in lines[3:8]] == ["Coverage", "Token", "Token", "Token", "Classes"]
    assert lines[7] == ["Classes", "2"]
    assert "2 folds instead of 10, one for each file." in outcome.out


def test_out_holds_a_whole_result(swsdask: Call, folder: Path) -> None:
    out = folder / "out"
    outcome = swsdask("discover", folder / "one.classes", f"{folder}/*.classes", *corpus(folder), "--out", out)
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("scores.parquet, scores.json, curves.parquet, manifest.json, report.html\n")
    assert {path.name for path in out.iterdir()} == {
        "scores.parquet",
        "scores.json",
        "curves.parquet",
        "manifest.json",
        "report.html",
    }
    assert pq.read_table(out / "scores.parquet").schema.equals(SCORES)
    curves = pq.read_table(out / "curves.parquet")
    assert curves.schema.equals(CURVES)
    sizes = [(row["x"], row["y"]) for row in curves.to_pylist() if row["curve"] == "class_size"]
    lengths = [(row["x"], row["y"]) for row in curves.to_pylist() if row["curve"] == "fragment_length"]
    assert (sizes, lengths) == ([(2, 2)], [(2, 1), (3, 3)])
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["runs"]["one"]["classes"] == 2
    assert [each["class"] for each in manifest["classes"]["one"]["worst"]] == ["2", "1"]
    page = (out / "report.html").read_text()
    again = swsdask("report", out, folder / "again.html")
    assert again.code == 0, again.err
    assert (folder / "again.html").read_text() == page


def test_systems_can_be_named(swsdask: Call, folder: Path) -> None:
    named = [f"{name}={folder / 'one.classes'}" for name in ("b", "a")]
    outcome = swsdask("discover", *named, *corpus(folder), "--measures", "ned", "--definition", "tdev2")
    assert outcome.code == 0, outcome.err
    assert [line.split() for line in outcome.out.splitlines()[3:5]] == [["b", "0.167"], ["a", "0.167"]]


@pytest.mark.parametrize(
    ("definition", "files"),
    [
        ("document", {"matching", "group", "token_type", "nlp", "boundary", f"VERSION_swsdask_{sws.__version__}"}),
        ("tde2015", {"matching", "group", "token_type", "nlp", "boundary", "VERSION_0.2.1"}),
        ("tdev2", {"boundary", "grouping", "token_type", "coverage", "ned", "scores.json"}),
    ],
)
def test_official_files(swsdask: Call, folder: Path, definition: Definition, files: set[str]) -> None:
    out = folder / "out"
    options = ("--definition", definition, "--tde-output", "--out", out)
    outcome = swsdask("discover", folder / "one.classes", *corpus(folder), *options)
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("report.html, tde\n")
    assert {path.name for path in (out / "tde").iterdir()} == files
    if definition == "tdev2":
        assert (out / "tde/coverage").read_text() == "metric: coverage\ncoverage: 1.0\n"
        assert (out / "tde/ned").read_text() == f"metric: ned\nscore: {1 / 6!r}\n"
        reported = json.loads((out / "tde/scores.json").read_text())["c"]
        assert reported["matching"] is None
        assert reported["nlp"] == {"ned": 1 / 6, "coverage": 1.0, "npairs": 2, "nwords": 3}
    else:
        assert "boundary total\n#folds:    2\n#samples:  2\n" in (out / "tde/boundary").read_text()


def test_official_files_are_of_one_definition(swsdask: Call, folder: Path) -> None:
    out = folder / "out"
    given: Any = ("discover", folder / "one.classes", *corpus(folder), "--tde-output", "--out", out)
    for definition in ("document", "tdev2", "tde2015"):
        assert swsdask(*given, "--definition", definition).code == 0
        (out / "tde/mine").write_text("kept")
    assert {path.name for path in (out / "tde").iterdir()} == {
        *("matching", "group", "token_type", "nlp", "boundary", "VERSION_0.2.1", "mine"),
    }


def test_official_files_of_several_systems(swsdask: Call, folder: Path) -> None:
    named = [f"{name}={folder / 'one.classes'}" for name in "ab"]
    options = ("--tde-output", "--out", folder / "out")
    outcome = swsdask("discover", *named, *corpus(folder), "--speakers", speakers(folder), *options)
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("report.html, tde/a, tde/b\n")
    within = (folder / "out/tde/a/nlp").read_text().split("\n\n")
    assert [block.splitlines()[1:3] for block in within] == [
        ["NLP total", "#folds:    1"],
        ["NLP within-speaker only", "#folds:    2"],
    ]


def speakers(folder: Path) -> Path:
    path = folder / "speakers"
    path.write_text("f1 ann\nf2 ann\n")
    return path


def test_a_dry_run_reads_and_reports(swsdask: Call, folder: Path) -> None:
    outcome = swsdask("discover", folder / "one.classes", *corpus(folder), "--dry-run", "--measures", "type")
    assert outcome.code == 0, outcome.err
    assert "2 files, 9 phones, 3 words" in outcome.out
    assert "one: 2 classes, 4 fragments" in outcome.out
    assert outcome.out.endswith("measures: type_precision, type_recall, type_f_score\n")


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--measures", "matchin"), "measure 'matchin' is unknown under document. Nearest: matching"),
        (("--measures", "matching", "--definition", "tdev2"), "measure 'matching' is unknown under tdev2"),
        (("--tde-output",), "--tde-output goes with --out DIRECTORY"),
        (("--tde-output", "--out", "o", "--measures", "ned"), "--tde-output has all measures"),
        (("--within", "w", "--speakers", "s"), "--within and --speakers both define the folds within talkers"),
        (("--definition", "tde2016"), "'tde2016' is not one of 'document', 'tde2015', 'tdev2'"),
        (("--folds", "nowhere"), "nowhere: expected a file or folder; found nothing there"),
    ],
)
def test_wrong_options(swsdask: Call, folder: Path, options: tuple[str, ...], reported: str) -> None:
    outcome = swsdask("discover", folder / "one.classes", *corpus(folder), *options)
    assert outcome.code == 2
    assert reported in outcome.err
    assert "Traceback" not in outcome.err


def test_wrong_classes_are_reported_with_their_lines(swsdask: Call, folder: Path) -> None:
    (folder / "bad.classes").write_text("Class 1\nf1 0.0 0.3\nf9 0.0 0.3\nf1 0.3 0.2\n\nClass 1\nf1 0.0\n\n")
    outcome = swsdask("discover", folder / "bad.classes", *corpus(folder))
    assert outcome.code == 2
    assert outcome.out == ""
    assert "bad.classes:4: " in outcome.err
    assert "bad.classes:7: " in outcome.err
    assert swsdask("discover", f"{folder}/no*.classes", *corpus(folder)).code == 2


def test_two_files_of_one_name(swsdask: Call, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/one.classes").write_text(CLASSES)
    outcome = swsdask("discover", folder / "one.classes", folder / "sub/one.classes", *corpus(folder))
    assert outcome.code == 2
    assert "Give each as NAME=FILE" in outcome.err


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_how_it_runs_changes_nothing(swsdask: Call, tmp_path: Path, executor: str) -> None:
    files = random_world(5).write(tmp_path)
    given: Any = ("discover", tmp_path / "w.classes", "--phones", files.phones, "--words", files.words)
    whole = swsdask(*given, "--format", "json")
    cut = swsdask(*given, "--format", "json", "--executor", executor, "--rows-per-task", "1")
    assert whole.code == cut.code == 0, cut.err
    assert cut.out == whole.out


def test_the_signature_is_of_what_was_read(tmp_path: Path) -> None:
    files = random_world(6).write(tmp_path)
    given: Any = {"phones": files.phones, "words": files.words, "measures": "ned"}
    signature = sws.discover(tmp_path / "w.classes", **given).manifest["signature"]
    text = (tmp_path / "w.classes").read_text()
    (tmp_path / "w.classes").write_text(f"{text}\n")
    assert sws.discover(tmp_path / "w.classes", **given).manifest["signature"] == signature
    (tmp_path / "w.classes").write_text(f"{text}Class 99\n{text.splitlines()[1]}\n")
    assert sws.discover(tmp_path / "w.classes", **given).manifest["signature"] != signature


def test_systems_are_compared_over_folds_which_may_be_files(swsdask: Call, tmp_path: Path) -> None:
    """A replicate of a mean over folds is the mean of the folds drawn; those of scipy are drawn otherwise."""
    made = swsdask("simulate", "discovery", "--out", tmp_path, "--phones", "20000", "--seed", "7")
    assert made.code == 0, made.err
    classes = sorted(tmp_path.glob("*.classes"))[:2]
    given: Any = ("--phones", tmp_path / "sim.phn", "--words", tmp_path / "sim.wrd")
    options = ("--n-folds", "1000", "--measures", "coverage,boundary_f_score", "--out", tmp_path / "r")
    ended = swsdask("discover", *classes, *given, *options)
    assert ended.code == 0, ended.err
    result = read_outputs(str(tmp_path / "r"))
    folds = {name for name in result.scores["condition"] if name.startswith("all/")}
    assert len(folds) == len({line.split()[0] for line in (tmp_path / "sim.phn").read_text().splitlines()})
    found = sws.compare(tmp_path / "r", ["coverage", "boundary_f_score"], replicates=4000)
    assert found.how.resample == "folds"
    assert {row["condition"] for row in found.interval_table.to_pylist()} == {"all"}
    for row in found.interval_table.to_pylist():
        own = result.scores[(result.scores["system"] == row["system"]) & (result.scores["measure"] == row["measure"])]
        of_folds = own[own["condition"].isin(folds)]["value"].dropna()
        assert row["value"] == pytest.approx(own[own["condition"] == "all"]["value"].iloc[0])
        literal = stats.bootstrap((of_folds,), np.mean, n_resamples=4000, method="percentile", rng=1)
        assert row["standard_error"] == pytest.approx(literal.standard_error, rel=0.1)
        assert row["low"] == pytest.approx(literal.confidence_interval.low, abs=0.5 * row["standard_error"])
        assert row["high"] == pytest.approx(literal.confidence_interval.high, abs=0.5 * row["standard_error"])
    shown = swsdask("compare", tmp_path / "r", "--measures", "coverage", "--replicates", "50")
    assert shown.code == 0, shown.err
    assert "50 replicates of the folds, seed 0" in shown.out


def test_results_of_all_measures_are_compared_and_correlated(swsdask: Call, tmp_path: Path) -> None:
    assert swsdask("simulate", "discovery", "--out", tmp_path, "--phones", "8000").code == 0
    given: Any = ("--phones", tmp_path / "sim.phn", "--words", tmp_path / "sim.wrd", "--out", tmp_path / "r")
    assert swsdask("discover", tmp_path, *given).code == 0
    scored = ["ned", "coverage", *(f"{name}_f_score" for name in FAMILIES)]
    found = sws.compare(tmp_path / "r", replicates=200)
    assert found.interval_table["measure"].unique().to_pylist() == scored
    shown = swsdask("compare", tmp_path / "r", "--replicates", "200", "--baseline", "careful", "--fail-if", "ned rises")
    assert shown.code == 3
    assert "gate 'ned rises' failed: ned of dense is 0." in shown.err
    ranks = [line.split()[0] for line in shown.out.partition("all  NED")[2].splitlines()[4:8]]
    values = found.interval_table.to_pandas().set_index(["measure", "system"])["value"]["ned"]
    assert ranks == list(values.sort_values().index)
    result = read_outputs(str(tmp_path / "r"))
    assert list(sws.rank_correlation(result)["measure"].unique()) == scored
    assert "| careful | **" in result.to_markdown("ned")


def test_simulated_files_are_scored(swsdask: Call, tmp_path: Path) -> None:
    made = swsdask("simulate", "discovery", "--out", tmp_path, "--phones", "4000", "--seed", "7")
    assert made.code == 0, made.err
    assert [line.split()[0] for line in made.out.splitlines()[1:]] == [
        "careful.classes:",
        "pairs.classes:",
        "dense.classes:",
        "giant.classes:",
    ]
    files = ("--phones", tmp_path / "sim.phn", "--words", tmp_path / "sim.wrd", "--speakers", tmp_path / "sim.speakers")
    assert swsdask("discover", f"{tmp_path}/*.classes", *files, "--measures", "ned").code == 0


def test_how_many_folds(swsdask: Call, folder: Path) -> None:
    given: Any = ("discover", folder / "one.classes", *corpus(folder), "--measures", "coverage,n_pairs")
    whole = swsdask(*given, "--n-folds", "1", "--format", "json")
    assert whole.code == 0, whole.err
    assert {condition for condition, _ in values(whole.out)} == {"all", "all/1"}
    assert values(whole.out)["all", "n_pairs"] == 2
    assert "discover definition=document folds=1 " in swsdask(*given, "--n-folds", "1").out
    assert "discover definition=document folds=2 " in swsdask(*given).out


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("0",), "n_folds"),
        (("2", "--definition", "tdev2"), "tdev2 has no folds"),
        (("2", "--folds", "one.folds"), "A fold file defines the folds: leave n_folds out"),
    ],
)
def test_folds_that_nobody_makes(
    swsdask: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], reported: str
) -> None:
    monkeypatch.chdir(folder)
    (folder / "one.folds").write_text("f1 0 1\n")
    outcome = swsdask("discover", "one.classes", *corpus(folder), "--n-folds", *options)
    assert outcome.code == 2
    assert reported in outcome.err


def test_a_folder_of_class_files(swsdask: Call, folder: Path) -> None:
    (folder / "two.disc").write_text(CLASSES)
    (folder / "c.split").write_text("f1 0 1\n")
    (folder / "README").write_text("What lies here.\n")
    outcome = swsdask("discover", folder, *corpus(folder), "--measures", "ned")
    assert outcome.code == 0, outcome.err
    assert [line.split()[0] for line in outcome.out.splitlines()[3:5]] == ["one", "two"]
    (folder / "notes").write_text("What lies here.\n")
    outcome = swsdask("discover", folder, *corpus(folder))
    assert outcome.code == 2
    assert "notes:1: expected" in outcome.err


@pytest.mark.parametrize("how", [(), ("--dry-run",)])
def test_what_no_fold_has_and_what_has_no_phones_is_reported(swsdask: Call, folder: Path, how: tuple[str, ...]) -> None:
    (folder / "one.folds").write_text("f1 0 0.4\n\nf2 0 0.2\n")
    (folder / "odd.classes").write_text(f"{CLASSES}Class 3\nf2 0.9 1.0\nf2 0.1 0.2\n\n")
    given: Any = ("discover", folder / "odd.classes", *corpus(folder), *how)
    outcome = swsdask(*given, "--folds", folder / "one.folds", "--speakers", speakers(folder))
    assert outcome.code == 0, outcome.err
    reported = [line.removeprefix("Note: ") for line in outcome.out.splitlines()]
    for note in (
        "all: 2 of 3 words left out: not inside one stretch of a fold.",
        "odd: all: 3 of 6 fragments left out: not inside one stretch of a fold.",
        "odd: 1 fragment without phones.",
    ):
        assert note in reported
    assert not [note for note in reported if "within_talker" in note and "left out" in note]
    assert "not inside" not in swsdask(*given).out


@pytest.mark.parametrize("how", [(), ("--dry-run",)])
def test_a_note_that_holds_for_many_systems_is_one_line(swsdask: Call, folder: Path, how: tuple[str, ...]) -> None:
    for number in range(5):
        silent = "".join(f"Class {each}\nf2 0.{each} 0.{each + 1}\n\n" for each in range(3, 3 + number))
        (folder / f"s{number}.classes").write_text(f"{CLASSES}{silent}")
    outcome = swsdask("discover", *sorted(folder.glob("s*.classes")), *corpus(folder), *how)
    assert outcome.code == 0, outcome.err
    reported = [line.removeprefix("Note: ") for line in outcome.out.splitlines() if "without phones" in line]
    assert reported == ["4 of 5 systems (s1, s2, s3 and 1 more), together: 10 fragments without phones."]


def test_nothing_to_find_is_no_class_file(swsdask: Call, tmp_path: Path) -> None:
    outcome = swsdask("simulate", "discovery", "--out", tmp_path, "--phones", "1")
    assert outcome.code == 2
    assert "The system careful finds nothing in 3 phones: increase --phones." in outcome.err
    assert not list(tmp_path.glob("*.classes"))


def test_every_file_that_is_missing_is_named(swsdask: Call, folder: Path, tmp_path: Path) -> None:
    classes = [tmp_path / name for name in ("a.classes", "b.classes", "c.classes")]
    alignments = ("--phones", tmp_path / "no.phn", "--words", tmp_path / "no.wrd")
    said = "expected a file or folder; found nothing there. Check the path.\n"
    outcome = swsdask("discover", "-q", *classes, *alignments)
    assert (outcome.code, outcome.out) == (2, "")
    missing = [alignments[1], alignments[3], *classes]
    assert outcome.err == "swsdask: " + "".join(f"{place}: {said}" for place in missing)
    dry = swsdask("discover", "-q", *classes, folder / "one.classes", *corpus(folder), "--dry-run")
    assert dry.err == "swsdask: " + "".join(f"{place}: {said}" for place in classes)
