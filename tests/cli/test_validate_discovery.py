"""`swsdask validate` with files of term discovery: each on its own, and against each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Outcome

Call = Callable[..., Outcome]

GOOD = {
    "c.phn": "f1 0.0 0.1 a\nf1 0.1 0.2 b\nf1 0.2 0.3 c\nf2 0.0 0.1 é\nf2 0.1 0.20001 5\n",
    "c.wrd": "f1 0.0 0.3 abc\nf2 0.0 0.2 ab\n",
    "c.split": "f1 0.0 0.3\nf2 0.0 0.2\n",
    "c.cross": "f1 0.0 0.3\n\nf2 0.0 0.2\n",
    "c.speakers": "f1 ann\nf2 bob\n",
    "s.classes": "Class 1\nf1 0.0 0.3\nf2 0.0 0.2\n\nClass 2 of 3\n\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in GOOD.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_file_says_what_it_is(swsdask: Call, folder: Path) -> None:
    outcome = swsdask("validate", "-q", *sorted(GOOD))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "c.cross: folds: 2 folds, 2 stretches, 2 files",
        "c.phn: an alignment of phones or words: 5 lines, 2 files, 5 labels, 1 rounded time",
        "c.speakers: a speaker map: 2 files, 2 speakers",
        "c.split: stretches of speech: 2 stretches, 2 files",
        "c.wrd: an alignment of phones or words: 2 lines, 2 files, 2 labels",
        "s.classes: a class file: 2 classes, 2 fragments, 2 files",
    ]
    of_folder = swsdask("validate", "-q", folder)
    assert sorted(of_folder.out.replace(f"{folder}/", "").splitlines()) == outcome.out.splitlines()


def test_repeated_lines_are_counted(swsdask: Call, folder: Path) -> None:
    (folder / "c.wrd").write_text("f1 0.0 0.3 abc\nf2 0.0 0.2 ab\nf1 0 0.30 abc\n")
    found = "c.wrd: an alignment of phones or words: 3 lines, 2 files, 2 labels, 1 repeated line\n"
    assert swsdask("validate", "-q", "c.wrd").out == found


@pytest.mark.parametrize("name", ["c.phn", "c.cross", "c.split", "s.classes"])
def test_content_decides_where_names_do_not(swsdask: Call, folder: Path, name: str) -> None:
    by_name = swsdask("validate", "-q", name).out.partition(": ")[2]
    (folder / name).rename(folder / "plain")
    assert swsdask("validate", "-q", "plain").out == f"plain: {by_name}"


def test_a_map_of_speakers_is_reported_by_its_option(swsdask: Call, folder: Path) -> None:
    (folder / "c.speakers").rename(folder / "who")
    alone = swsdask("validate", "-q", "who")
    assert alone.code == 2
    assert "a speaker map goes with --speakers" in alone.err
    outcome = swsdask("validate", "-q", "--phones", "c.phn", "--words", "c.wrd", "--speakers", "who")
    assert outcome.code == 0, outcome.err
    assert "who: a speaker map: 2 files, 2 speakers\n" in outcome.out


BAD = "Class 1\nf1 0.0 0.3\nf2 0.2 0.1\n\nf1 0 1\n\nClass 1\nf9 0 1\nf1 0 x\nf9 1 2\n"


def test_every_problem_of_a_file(swsdask: Call, folder: Path) -> None:
    (folder / "bad.classes").write_text(BAD)
    (folder / "bad.phn").write_text("f1 0.0 0.1 a\nf1 -1 0.2 b\nf1 0.2\n")
    (folder / "bad.cross").write_text("\nf1 0 1\n\n\nf2 0 1\n")
    (folder / "bad.speakers").write_text("f1 ann\nf1 bob\nf2\n")
    outcome = swsdask("validate", "-q", "bad.classes", "bad.phn", "bad.cross", "bad.speakers")
    assert outcome.code == 2
    assert outcome.out == ""
    assert [line.split(": ")[0] for line in outcome.err.splitlines()] == [
        *("bad.classes:3", "bad.classes:5", "bad.classes:9"),
        *("bad.phn:2", "bad.phn:3"),
        *("bad.cross:1", "bad.cross:4"),
        *("bad.speakers:2", "bad.speakers:3"),
        "swsdask",
    ]
    assert outcome.err.endswith("swsdask: 9 problems\n")


def test_files_against_each_other(swsdask: Call, folder: Path) -> None:
    (folder / "bad.classes").write_text("Class 1\nf1 0.0 0.3\nf9 0.0 0.3\n\nClass 1\nf8 0 1\nf9 1 2\n\n")
    corpus = ("--phones", "c.phn", "--words", "c.wrd")
    outcome = swsdask("validate", "-q", "s.classes", "bad.classes", *corpus, "--split", "c.split")
    assert outcome.code == 2
    assert [line.split(": ")[0] for line in outcome.err.splitlines()] == [
        *("bad.classes:3", "bad.classes:5", "bad.classes:6"),
        "swsdask",
    ]
    assert [line.split(": ")[0] for line in swsdask("validate", "-q", "bad.classes").err.splitlines()] == [
        "bad.classes:5",
        "swsdask",
    ]
    lenient = swsdask("validate", "-q", "bad.classes", *corpus, "--definition", "tde2015")
    assert lenient.code == 0, lenient.err
    assert lenient.out.splitlines()[-1] == (
        "bad.classes: a class file: 2 classes, 4 fragments, 3 files, "
        "2 fragments dropped: replaced class, 2 fragments dropped: unknown file"
    )


def test_a_corpus_against_itself(swsdask: Call, folder: Path) -> None:
    (folder / "bad.phn").write_text("f1 0.0 0.1 a\nf1 0.05 0.2 b\nf2 0 1 c\n")
    (folder / "bad.wrd").write_text("f1 0.0 0.1 a\nf3 0.05 0.2 b\n")
    assert swsdask("validate", "-q", "bad.phn", "bad.wrd").code == 0
    (folder / "few.speakers").write_text("f1 ann\n")
    options = ("--phones", "bad.phn", "--words", "bad.wrd", "--speakers", "few.speakers")
    outcome = swsdask("validate", "-q", *options)
    assert outcome.code == 2
    assert [line.split(": ")[0] for line in outcome.err.splitlines()] == [
        *("bad.phn:2", "bad.wrd:2", "few.speakers", "swsdask"),
    ]


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ((), "Give the files to check."),
        (("s.classes", "--phones", "c.phn"), "A corpus needs the alignments"),
        (("s.classes", "--phones", "nowhere", "--words", "c.wrd"), "nowhere: expected a file or folder"),
        (("--phones", "s.classes", "--words", "c.wrd"), "s.classes:1: expected 4 fields"),
    ],
)
def test_wrong_options(swsdask: Call, folder: Path, options: tuple[str, ...], reported: str) -> None:
    outcome = swsdask("validate", "-q", *options)
    assert outcome.code == 2
    assert reported in outcome.err


def test_many_problems_are_listed_all(swsdask: Call, folder: Path) -> None:
    (folder / "bad.phn").write_text("".join(f"f1 {at} {at}.6 a\nf1 {at}.5 {at + 1} b\n" for at in range(1200)))
    (folder / "far.classes").write_text("Class 1\n" + "".join(f"far{number} 0 1\n" for number in range(1200)))
    (folder / "f1.wrd").write_text("f1 0 1 ab\n")
    corpus = swsdask("validate", "-q", "--phones", "bad.phn", "--words", "f1.wrd")
    classes = swsdask("validate", "-q", "far.classes", "--phones", "c.phn", "--words", "c.wrd")
    for outcome in (corpus, classes):
        assert outcome.err.endswith("swsdask: 1,200 problems\n")
        assert len(outcome.err.splitlines()) == 1201
