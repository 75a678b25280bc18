"""An archive keeps the settings that it was made with: every command uses them, and says where others are used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.model.layers import KEPT_NONE
from tests.archives import rewritten
from tests.command_line import Outcome
from tests.discovery_worlds import random_world
from tests.small_evaluation import RUN, Files

Call = Callable[..., Outcome]
HOW = ("--measures", "atwv,beta,mtwv", "--format", "json")


@pytest.fixture
def archive(swsdask: Call, files: Files) -> str:
    files.write("mine.toml", 'notes = ["The second document is hard."]\n\n[evaluation]\nfind_gap_s = 0.01\n')
    made = swsdask("ingest", files.folder / "archive", files.reference, "--run", files.run, *kept_options(files))
    assert made.code == 0, made.err
    return str(files.folder / "archive")


def kept_options(files: Files) -> list[str]:
    return ["--preset", "sws2013", "--settings", str(files.folder / "mine.toml"), "--set", "tolerance_s=1.0"]


def without_settings(archive: str) -> None:
    """The archive as an earlier release would have made it."""
    for path in Path(archive).glob("manifest-*.json"):
        rewritten(path, lambda said: [said.pop(name, None) for name in ("settings", "finder")])


def test_it_is_scored_with_what_it_keeps(swsdask: Call, files: Files, archive: str) -> None:
    of_files = swsdask("score", files.reference, files.run, *kept_options(files), *HOW)
    of_archive = swsdask("score", archive, *HOW)
    assert (of_files.code, of_archive.code) == (0, 0)
    assert json.loads(of_archive.out) == json.loads(of_files.out)
    assert json.loads(of_archive.out) != json.loads(swsdask("score", files.reference, files.run, *HOW).out)
    assert json.loads(swsdask("score", archive, files.run, *HOW).out) == json.loads(of_files.out)
    straight = sws.score(
        sws.open(files.reference, preset="sws2013", settings=sws.open(archive).archive.kept.explicit),
        ["atwv"],
        runs=files.run,
    )
    assert sws.score(archive, ["atwv"]).manifest["signature"] == straight.manifest["signature"]
    assert "Note: The second document is hard." in swsdask("score", archive, "--measures", "atwv").out
    assert "The second document is hard." in swsdask("score", archive, "--dry-run").out
    assert "keeps" not in swsdask("score", archive, "--measures", "atwv").out


def test_what_is_used_instead_is_reported(swsdask: Call, files: Files, archive: str) -> None:
    out = files.folder / "out"
    told = swsdask("score", archive, "--measures", "atwv", "--set", "tolerance_s=2.0", "--out", out).out
    assert "Note: Setting tolerance_s is 2.0; the archive keeps 1.0." in told
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["overridden"] == {"tolerance_s": {"kept": "1.0", "used": "2.0"}}
    assert manifest["settings"]["find_gap_s"] == 0.01
    plan = swsdask("score", archive, "--preset", "openkws13", "--dry-run").out
    assert "Setting find_gap_s is 0.5; the archive keeps 0.01." in plan
    assert "Setting tolerance_s is 0.5; the archive keeps 1.0." in plan
    other, same = (
        swsdask("score", *where, "--preset", "openkws13", *HOW) for where in ([archive], [files.reference, files.run])
    )
    assert json.loads(other.out) == json.loads(same.out)


def test_calibration_uses_it(swsdask: Call, archive: str, tmp_path: Path) -> None:
    fitted = swsdask(
        "calibrate",
        "first",
        "--on",
        archive,
        "--method",
        "pav",
        "--set",
        "tolerance_s=2.0",
        "--out",
        tmp_path / "c.toml",
    )
    assert fitted.code == 0, fitted.err
    assert "  Bayes threshold: 4.1996\n" in fitted.out
    assert "Note: Setting tolerance_s is 2.0; the archive keeps 1.0.\n" in fitted.out


def test_it_is_shown(swsdask: Call, archive: str) -> None:
    shown = swsdask("show", archive).out
    assert "  settings: tolerance_s=1.0 find_gap_s=0.01 outside=false_alarm p_target=0.00015" in shown
    assert "  The second document is hard.\n" in shown
    assert "2 relevant, 2 occurrences\n" in shown


def test_later_runs_are_read_with_it(swsdask: Call, files: Files, archive: str) -> None:
    unknown = files.write("second.kwslist.xml", RUN.replace('"K2"', '"K9"').replace('"first"', '"second"'))
    assert swsdask("ingest", archive, "--run", unknown).code == 2
    changed = swsdask("ingest", archive, "--run", unknown, "--set", "unknown_queries=drop", "--set", "tolerance_s=3.0")
    assert changed.code == 2
    assert changed.err == (
        f"swsdask: {archive}: expected the settings that this archive keeps; found others: tolerance_s: kept 1.0, "
        "given 3.0; unknown_queries: kept error, given drop. Leave them out, or change what it keeps "
        "(--change-settings; in Python change_settings=True).\n"
    )
    assert "  settings: tolerance_s=1.0 find_gap_s=0.01 outside" in swsdask("show", archive).out
    again = swsdask("ingest", archive, "--run", files.run, *kept_options(files))
    assert again.out.startswith(f"{archive}: version 1, ")
    change = ("ingest", archive, "--run", unknown, "--set", "unknown_queries=drop", "--change-settings")
    assert swsdask(*change).out.startswith(f"{archive}: version 2, 2 runs\n")
    assert "find_gap_s=0.01 outside=false_alarm unknown_queries=drop" in swsdask("show", archive).out
    assert swsdask(*change).out.startswith(f"{archive}: version 2, 2 runs\n")
    assert "unknown_queries" not in swsdask("show", archive, "--version", "1").out


def test_an_archive_of_an_earlier_release_keeps_none(swsdask: Call, files: Files, archive: str) -> None:
    without_settings(archive)
    plain = swsdask("score", archive, *HOW)
    assert json.loads(plain.out) == json.loads(swsdask("score", files.reference, files.run, *HOW).out)
    assert f"Note: {KEPT_NONE}" in swsdask("score", archive, "--measures", "atwv").out
    assert f"  settings: {KEPT_NONE}\n" in swsdask("show", archive).out
    assert KEPT_NONE in swsdask("ingest", archive, "--run", files.run, "--preset", "sws2013").out
    assert f"  settings: {KEPT_NONE}\n" in swsdask("show", archive).out
    kept = swsdask("ingest", archive, "--preset", "sws2013", "--change-settings").out
    assert KEPT_NONE not in kept
    assert "  settings: outside=false_alarm p_target=0.00015" in swsdask("show", archive).out


def test_an_archive_of_discovery_keeps_its_number_of_folds(swsdask: Call, tmp_path: Path) -> None:
    files = random_world(11).write(tmp_path)
    corpus = ["--phones", files.phones, "--words", files.words, "--set", "fold_by=time"]
    classes, archive = f"{tmp_path}/w.classes", tmp_path / "archive"
    how = ["--measures", "coverage", "--format", "json"]
    of_files = swsdask("discover", classes, *corpus, "--n-folds", "3", *how)
    assert swsdask("discover", classes, *corpus, "--n-folds", "3", "--ingest", archive).code == 0
    assert json.loads(swsdask("discover", "--archive", archive, *how).out) == json.loads(of_files.out)
    assert "all/3" in of_files.out
    assert "all/4" not in of_files.out
    assert " fold_by=time n_folds=3\n" in swsdask("show", archive).out
    other = swsdask("discover", "--archive", archive, "--n-folds", "2", "--measures", "coverage")
    assert "Note: Setting discovery.n_folds is 2; the archive keeps 3." in other.out
    refused = swsdask("discover", f"second={classes}", "--ingest", archive, "--set", "n_folds=2")
    assert "found others: discovery.n_folds: kept 3, given 2." in refused.err


def test_an_archive_of_discovery_keeps_its_definition(swsdask: Call, tmp_path: Path) -> None:
    files = random_world(11).write(tmp_path)
    corpus = ["--phones", files.phones, "--words", files.words]
    classes, archive = f"{tmp_path}/w.classes", tmp_path / "archive"
    how = ["--measures", "coverage,boundary", "--format", "json"]
    of_files = swsdask("discover", classes, *corpus, "--definition", "tde2015", *how)
    assert swsdask("discover", classes, *corpus, "--definition", "tde2015", "--ingest", archive).code == 0
    assert json.loads(swsdask("discover", "--archive", archive, *how).out) == json.loads(of_files.out)
    assert "  settings: definition=tde2015 fold_by=file\n" in swsdask("show", archive).out
    other = swsdask("discover", "--archive", archive, "--definition", "tdev2", "--measures", "coverage")
    assert "Note: Setting discovery.definition is tdev2; the archive keeps tde2015." in other.out
    plan = swsdask("discover", "--archive", archive, "--definition", "tdev2", "--dry-run").out
    assert "Setting discovery.definition is tdev2; the archive keeps tde2015." in plan
    second = [f"second={classes}", "--ingest", archive]
    refused = swsdask("discover", *second, "--definition", "tdev2")
    assert refused.code == 2
    assert "found others: discovery.definition: kept tde2015, given tdev2." in refused.err
    assert swsdask("discover", *second).out.startswith(f"{archive}: version 2, 2 systems\n")
    changed = swsdask("discover", *second, "--definition", "tdev2", "--change-settings")
    assert changed.out.startswith(f"{archive}: version 3, 2 systems\n")
    assert "  settings: definition=tdev2 fold_by=file\n" in swsdask("show", archive).out
    literal = ["--definition", "document", "--set", "coverage=union", "--set", "discovery.min_phones=2"]
    assert swsdask("discover", *second, *literal, "--change-settings").code == 0
    assert (
        "  settings: definition=document coverage=union min_phones=2 boundaries=singly" in swsdask("show", archive).out
    )
    union = swsdask("discover", classes, *corpus, *literal, *how)
    assert json.loads(swsdask("discover", "--archive", archive, "w", *how).out) == json.loads(union.out)
    bad = swsdask("discover", "--archive", archive, "--set", "coverages=union")
    assert bad.code == 2
    assert "setting discovery.coverages: unknown key. Nearest valid key: coverage." in bad.err
    without_settings(str(archive))
    assert f"Note: {KEPT_NONE}" in swsdask("discover", "--archive", archive, "--measures", "coverage").out
    assert f"  settings: {KEPT_NONE}\n" in swsdask("show", archive).out
    assert "--change-settings goes with --ingest" in swsdask("discover", classes, *corpus, "--change-settings").err
