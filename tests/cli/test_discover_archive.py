"""`swsdask discover` with archives: what is kept is scored as what is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import swsdask as sws
from tests.command_line import Outcome
from tests.discovery_worlds import random_world

Call = Callable[..., Outcome]


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    files = random_world(11).write(tmp_path)
    (tmp_path / "first.classes").write_bytes((tmp_path / "w.classes").read_bytes())
    (tmp_path / "second.classes").write_text("Class 1\ns0a 1.3 2.1\ns0b 0.1 0.9\n\n")
    return ["--phones", files.phones, "--words", files.words, "--split", str(files.split), "--folds", str(files.folds)]


@pytest.mark.parametrize("definition", ["document", "tde2015", "tdev2"])
def test_an_archive_gives_the_same_numbers_as_files(
    swsdask: Call, tmp_path: Path, corpus: list[str], definition: str
) -> None:
    classes = [f"{tmp_path}/{name}.classes" for name in ("first", "second")]
    how = ["--definition", definition, "--measures", "coverage,token,boundary", "--format", "json"]
    of_files = swsdask("discover", *classes, *corpus, *how)
    assert swsdask("discover", *classes, *corpus, "--ingest", tmp_path / "archive").code == 0
    of_archive = swsdask("discover", "--archive", tmp_path / "archive", *how)
    assert (of_files.code, of_archive.code) == (0, 0)
    assert json.loads(of_archive.out) == json.loads(of_files.out)
    one = swsdask("discover", "--archive", tmp_path / "archive", "second", *how)
    assert {row["system"] for row in json.loads(one.out)} == {"second"}


def test_what_was_ingested_is_reported(swsdask: Call, tmp_path: Path, corpus: list[str]) -> None:
    archive = tmp_path / "archive"
    second, first = f"{tmp_path}/second.classes", f"{tmp_path}/first.classes"
    assert swsdask("discover", second, *corpus, "--ingest", archive).out == (
        f"{archive}: version 1, 1 system\n  second: 1 class, 2 fragments\n"
    )
    assert swsdask("discover", second, "--ingest", archive).out.startswith(f"{archive}: version 1, ")
    assert swsdask("discover", first, "--ingest", archive).out.startswith(f"{archive}: version 2, 2 systems\n")
    refused = swsdask("discover", f"second={first}", "--ingest", archive)
    assert refused.code == 2
    assert "a system 'second' with other content is there" in refused.err
    replaced = swsdask("discover", f"second={first}", "--ingest", archive, "--replace")
    assert replaced.out.startswith(f"{archive}: version 3, 2 systems\n")


def test_what_contradicts_itself_is_reported(swsdask: Call, tmp_path: Path, corpus: list[str]) -> None:
    archive, classes = tmp_path / "archive", f"{tmp_path}/first.classes"
    for arguments, said in (
        ([], "Give CLASSES, --phones and --words, or --archive ARCHIVE."),
        ([classes], "Give CLASSES, --phones and --words, or --archive ARCHIVE."),
        ([classes, "--ingest", archive, "--dry-run"], "--ingest scores nothing"),
        ([classes, "--ingest", archive, "--measures", "ned"], "--ingest scores nothing"),
        ([classes, *corpus, "--dry-run", "--format", "json"], "--dry-run prints the plan in words"),
        ([classes, *corpus, "--replace"], "--replace goes with --ingest ARCHIVE"),
        ([classes, "--ingest", archive], "expected an archive; found none. Give phones and words to make one."),
        ([classes, "--ingest", archive, *corpus[:2]], "A corpus needs the alignments"),
        (["--archive", archive], "expected an archive with manifest-00000001.json or later"),
    ):
        outcome = swsdask("discover", *arguments)
        assert outcome.code == 2
        assert said in outcome.err
    assert swsdask("discover", *corpus, "--ingest", archive).code == 0
    for arguments, said in (
        (["--archive", archive], "the archive has no systems. Ingest class files first."),
        ([str(archive), *corpus], f"{archive} is an archive of term discovery: give it by the option archive"),
        (["--archive", archive, *corpus], "An archive has its corpus: leave phones, words, split, folds out."),
    ):
        outcome = swsdask("discover", *arguments)
        assert outcome.code == 2
        assert said in outcome.err
    swsdask("discover", classes, "--ingest", archive)
    assert "nix is not a system of the archive: first." in swsdask("discover", "--archive", archive, "nix").err


def test_a_corpus_that_no_definition_takes_is_not_kept(swsdask: Call, tmp_path: Path) -> None:
    (tmp_path / "phn").write_text("f 0 1 a\nf 0.5 2 b\n")
    (tmp_path / "wrd").write_text("f 0 1 ab\n")
    told = swsdask("discover", "--phones", tmp_path / "phn", "--words", tmp_path / "wrd", "--ingest", tmp_path / "a")
    assert told.code == 2
    assert f"{tmp_path}/phn:2: expected phones that do not overlap" in told.err
    assert not (tmp_path / "a").exists()


def test_what_an_archive_holds_is_shown(swsdask: Call, tmp_path: Path) -> None:
    (tmp_path / "c.phn").write_text("f1 0 3600 a\nf1 3600 5400 b\nf2 0 10 a\n")
    (tmp_path / "c.wrd").write_text("f1 0 5400 ab\n")
    (tmp_path / "c.split").write_text("f1 0 5400\nf1 5400 9000\n")
    (tmp_path / "c.folds").write_text("f1 0 5400\n\nf2 0 10\n")
    (tmp_path / "c.speakers").write_text("f1 ann\nf2 ann\n")
    (tmp_path / "first.classes").write_text("Class 1\nf1 0 1\nf2 0 1\n\n")
    corpus = [f"--{role}={tmp_path}/c.{end}" for role, end in (("phones", "phn"), ("words", "wrd"))]
    corpus += [f"--{role}={tmp_path}/c.{role}" for role in ("split", "folds", "speakers")]
    archive = tmp_path / "archive"
    assert swsdask("discover", tmp_path / "first.classes", *corpus, "--ingest", archive).code == 0
    assert swsdask("discover", f"second={tmp_path}/first.classes", "--ingest", archive).code == 0
    lines = swsdask("show", archive).out.splitlines()
    assert lines[:7] == [
        f"{archive}, version 2, of term discovery",
        "  settings: definition=document coverage=intersected min_phones=3 boundaries=singly "
        "overlapping_pairs=left_out fold_by=file",
        "  2 files, 3 phones (2 labels) in 1.50 h, 1 word (1 label)",
        "  split: 2 stretches of speech, 2.50 h",
        "  folds: 2 folds of 2 stretches, 1.50 h",
        "  speakers: 1 speaker of 2 files",
        *lines[6:7],
    ]
    rows = [line.split() for line in lines[8:]]
    assert [row[:3] for row in rows] == [["first", "1", "2"], ["second", "1", "2"]]
    assert rows[0][3] == rows[1][3]
    assert "second" not in swsdask("show", archive, "--version", "1").out
    missing = swsdask("show", archive, "--version", "3")
    assert missing.code == 2
    assert "versions found: 1, 2" in missing.err


@pytest.mark.parametrize("kept", [["--n-folds", "3"], ["--set", "coverage=union"], ["--set", "fold_by=time"]])
@pytest.mark.parametrize("definition", ["tde2015", "tdev2"])
def test_another_definition_leaves_out_what_is_kept_for_the_first(
    swsdask: Call, tmp_path: Path, corpus: list[str], kept: list[str], definition: str
) -> None:
    classes, plain = f"{tmp_path}/first.classes", corpus[:4]
    assert swsdask("discover", classes, *plain, *kept, "--ingest", tmp_path / "archive").code == 0
    how = ["--definition", definition, "--measures", "ned", "--format", "json"]
    of_archive = swsdask("discover", "--archive", tmp_path / "archive", *how)
    takes = definition == "tde2015" and "union" not in kept[1]
    of_files = swsdask("discover", classes, *plain, *how, *(kept if takes else []))
    assert (of_archive.code, of_files.code) == (0, 0), of_archive.err
    assert json.loads(of_archive.out) == json.loads(of_files.out)


def test_classes_are_files_and_talkers_are_given_once(tmp_path: Path, corpus: list[str]) -> None:
    places = {"phones": corpus[1], "words": corpus[3]}
    table = pd.DataFrame({"class": [1, 1], "file": ["s0a", "s0b"], "start": [0.1, 0.1], "end": [0.9, 0.9]})
    for classes in (table, {"mine": table}, [("mine", 1)], 3):
        with pytest.raises(sws.SettingsError, match="Classes are given by their files"):
            sws.discover(classes, **places)  # type: ignore[arg-type]
    with pytest.raises(sws.SettingsError, match="Within and speakers both define"):
        sws.discover(f"{tmp_path}/first.classes", **places, within="w", speakers="s")


def test_ingest_refuses_what_the_kept_definition_refuses(swsdask: Call, tmp_path: Path, corpus: list[str]) -> None:
    (tmp_path / "bad.classes").write_text("Class one\nzzz 0 1\n\n")
    bad, first, archive = f"{tmp_path}/bad.classes", f"{tmp_path}/first.classes", tmp_path / "archive"
    for definition, problem in (
        ("document", f"{bad}:2: expected a file of the phone alignment; found 'zzz'"),
        ("tde2015", f"{bad}:1: expected a whole number after Class (tde2015); found 'one'"),
    ):
        there = tmp_path / definition
        outcome = swsdask("discover", bad, first, *corpus[:4], "--definition", definition, "--ingest", there)
        assert outcome.code == 2
        assert problem in outcome.err
        assert not list(there.glob("manifest-*"))
    assert swsdask("discover", first, *corpus, "--ingest", archive).code == 0
    assert "found 'zzz'" in swsdask("discover", bad, "--ingest", archive).err
