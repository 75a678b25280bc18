"""Alignments, class files, stretches, folds and speaker maps: what is read, and what is said of what is wrong."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from swsdask.formats import text as run_text
from swsdask.formats.discovery import (
    CorpusFiles,
    read_alignment,
    read_classes,
    read_corpus_files,
    read_folds,
    read_speakers,
    read_stretches,
)
from swsdask.model.discovery import ALIGNMENT, CLASSES, FRAGMENTS, SPEAKERS, STRETCHES
from swsdask.model.errors import Problems
from tests.compression import zstd

Reader = Callable[[str, Problems], pa.Table]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x"


def read(reader: Callable[[str, Problems], object], path: Path, text: str) -> object:
    path.write_text(text)
    problems = Problems()
    found = reader(str(path), problems)
    problems.raise_if_any()
    return found


def faults(reader: Callable[[str, Problems], object], path: Path, text: str) -> list[str]:
    """What is said of a text, in order, each with its place but without the folder and the remedy."""
    path.write_text(text)
    problems = Problems()
    reader(str(path), problems)
    assert all(problem.remedy.endswith(".") for problem in problems)
    return [f"{problem.line}: expected {problem.expected}; found {problem.found}" for problem in problems]


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_an_alignment(path: Path) -> None:
    table = read(read_alignment, path, "s01 0.1 0.2 a\n\ns01\t0.2  .35 \tNA \r\ns02 0 1e1 <NA>\n")
    assert table.schema.equals(ALIGNMENT)
    assert rows(table) == [("s01", 1000, 2000, "a", 1), ("s01", 2000, 3500, "NA", 3), ("s02", 0, 100_000, "<NA>", 4)]
    assert table.schema.metadata == {b"rounded": b"0"}


@pytest.mark.parametrize(
    ("text", "ticks", "rounded"),
    [
        ("0.12345", 1234, 1),
        ("0.12355", 1236, 1),
        ("0.12340000000000000001", 1234, 0),
        ("0.1234567890123456789012345", 1235, 1),
        ("1234.567890000", 12_345_679, 1),
        ("214748.3646", 2_147_483_646, 0),
    ],
)
def test_times_are_ticks_rounded_half_to_even(path: Path, text: str, ticks: int, rounded: int) -> None:
    table = read(read_alignment, path, f"f {text} 214748.3647 a\nf 0 {text} a\n")
    assert table["start"].to_pylist() == [ticks, 0]
    assert table["end"].to_pylist() == [2_147_483_647, ticks]
    assert table.schema.metadata == {b"rounded": str(2 * rounded).encode()}


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_any_file_may_be_compressed(path: Path, compress: Callable[[bytes], bytes]) -> None:
    path.write_bytes(compress(b"Class 1\nf 0 1\n\n"))
    problems = Problems()
    assert len(read_classes(str(path), problems).fragments) == 1
    path.write_bytes(compress(b"f 0 1 a\n"))
    assert len(read_alignment(str(path), problems)) == 1
    path.write_bytes(compress(b"f 0 1\n"))
    assert len(read_stretches(str(path), problems)) == len(read_folds(str(path), problems)) == 1
    path.write_bytes(compress(b"f ann\n"))
    assert len(read_speakers(str(path), problems)) == 1
    assert not list(problems)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("f 0.1 0.2", "expected 4 fields with blanks between them: file, onset, offset, label; found 3"),
        ("f 0.1 0.2 a b", "expected 4 fields with blanks between them: file, onset, offset, label; found 5"),
        ("f x 0.2 a", "expected an onset in seconds; found 'x'"),
        ("f nan 0.2 a", "expected an onset in seconds; found 'nan'"),
        ("f 0.1 inf a", "expected an offset in seconds; found 'inf'"),
        ("f 0.1 1_0 a", "expected an offset in seconds; found '1_0'"),
        ("f -0.1 0.2 a", "expected an onset from 0 to 214748.3647 seconds; found '-0.1'"),
        ("f 0.1 214748.3648 a", "expected an offset from 0 to 214748.3647 seconds; found '214748.3648'"),
        ("f 0.1 1e99 a", "expected an offset from 0 to 214748.3647 seconds; found '1e99'"),
        ("f 0.2 0.1 a", "expected an offset after the onset; found 0.2 and 0.1"),
        ("f 0.2 0.2 a", "expected an offset after the onset; found 0.2 and 0.2"),
        ("f 0.20001 0.20002 a", "expected an offset after the onset; found 0.20001 and 0.20002"),
        ("a/b 0.1 0.2 a", "expected the name of a file; found a path in the id 'a/b'"),
    ],
)
def test_a_bad_line_of_an_alignment_is_reported_and_the_others_are_read(path: Path, line: str, said: str) -> None:
    text = f"f 0 0.1 a\n{line}\nf 0.3 0.4 b\n"
    assert faults(read_alignment, path, text) == [f"2: {said}"]
    table = read_alignment(str(path), Problems())
    assert rows(table) == [("f", 0, 1000, "a", 1), ("f", 3000, 4000, "b", 3)]


def test_everything_wrong_with_a_line_is_reported(path: Path) -> None:
    said = faults(read_alignment, path, "a/b x -1 a\nf 0 1 a\nf 2 1 a\n")
    assert [each.partition(":")[0] for each in said] == ["1", "1", "1", "3"]


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (read_alignment, "at least one line: file onset offset label"),
        (read_stretches, "at least one line: file onset offset"),
        (read_folds, "at least one line: file onset offset"),
        (read_speakers, "at least one line: file speaker"),
        (read_classes, "at least one class, which begins with Class N"),
    ],
)
def test_files_that_say_nothing(path: Path, reader: Reader, expected: str) -> None:
    assert f"1: expected {expected}; found none" in faults(reader, path, "\n\n")
    assert faults(reader, path, "") == ["1: expected a file with content; found an empty file"]
    path.unlink()
    problems = Problems()
    reader(str(path), problems)
    assert [problem.found for problem in problems] == ["nothing there"]


def test_text_that_is_not_utf_8(path: Path) -> None:
    path.write_bytes(b"f 0 1 a\nf 1 2 \xff\nf 2 3 c\n")
    problems = Problems()
    assert len(read_alignment(str(path), problems)) == 1
    assert [(problem.line, problem.found) for problem in problems] == [(2, "the byte 0xff")]


def test_a_class_file(path: Path) -> None:
    text = "Class 1\nf 0.1 0.2\nf 0.1 0.2\n\n\nClass 2 of   text\n\nClass 7:\ng 1 2\n"
    file = read(read_classes, path, text)
    assert file.classes.schema.equals(CLASSES)
    assert file.fragments.schema.equals(FRAGMENTS)
    assert rows(file.classes) == [("1", 1), ("2 of text", 6), ("7:", 8)]
    assert rows(file.fragments) == [(0, "f", 1000, 2000, 2), (0, "f", 1000, 2000, 3), (2, "g", 10_000, 20_000, 9)]
    assert not file.ends_blank
    assert read(read_classes, path, f"{text}\n").ends_blank


@pytest.mark.parametrize("block", [40, 1 << 20])
def test_classes_go_on_over_the_blocks_of_a_file(path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_text, "BLOCK", block)
    blocks = [f"Class {number}\n" + "f 0.1 0.2\n" * (number % 9) + "\n" for number in range(50)]
    file = read(read_classes, path, "".join(blocks))
    clusters = file.fragments["cluster"].to_pylist()
    assert [clusters.count(number) for number in range(50)] == [number % 9 for number in range(50)]
    lines = path.read_text().split("\n")
    assert all(lines[line - 1] == "f 0.1 0.2" for line in file.fragments["line"].to_pylist())
    assert all(lines[line - 1] == f"Class {name}" for name, line in rows(file.classes))


MEMBERS = "expected 3 fields with blanks between them: file, onset, offset"
OUTSIDE = "expected Class N, at the beginning of a class; found another line"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Class 1\nf 0 1\nClass 2\nf 0 1\n", ["3: expected an empty line before a class; found none"]),
        ("Class 1\nClass 2\nf 0 1\n", ["2: expected an empty line before a class; found none"]),
        ("f 0 1\nClass 1\nf 0 1\n", [f"1: {OUTSIDE}", "2: expected an empty line before a class; found none"]),
        ("Class 1\nf 0 1\n\nf 1 2\n", [f"4: {OUTSIDE}"]),
        ("\nf 0 1\n", [f"2: {OUTSIDE}"]),
        ("Class 1\nf 0 1 .9\n", [f"2: {MEMBERS}; found 4"]),
        ("Class 1\nf 0\n", [f"2: {MEMBERS}; found 2"]),
        ("Class1\nf 0 1\n", [f"1: {OUTSIDE}", f"1: {MEMBERS}; found 1"]),
        ("Class\nf 0 1\n", ["1: expected a number after Class; found none"]),
        ("Class 1\nf 1 1\n", ["2: expected an offset after the onset; found 1 and 1"]),
    ],
)
def test_what_is_wrong_with_a_class_file(path: Path, text: str, said: list[str]) -> None:
    assert faults(read_classes, path, text) == said


def test_a_file_called_as_classes_are_is_no_class(path: Path) -> None:
    file = read(read_classes, path, "Class 1\nClassic 0 1\n")
    assert rows(file.fragments) == [(0, "Classic", 0, 10_000, 2)]


def test_stretches_and_folds(path: Path) -> None:
    table = read(read_folds, path, "f 0 1\nf 2 3\n\ng 0 1\n\nf 1 2\n\n\n")
    assert table.schema.equals(STRETCHES)
    assert table["fold"].to_pylist() == [0, 0, 1, 2]
    assert table["line"].to_pylist() == [1, 2, 4, 6]
    assert read(read_stretches, path, "f 0 1\n\nf 2 3\n")["fold"].to_pylist() == [0, 0]


def test_folds_that_are_empty(path: Path) -> None:
    assert faults(read_folds, path, "f 0 1\n\n\nf 2 3\n") == [
        "3: expected one empty line between two folds; found another"
    ]
    assert faults(read_folds, path, "\nf 0 1\n") == ["1: expected a stretch of the first fold; found an empty line"]


def test_folds_go_on_over_the_blocks_of_a_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_text, "BLOCK", 16)
    table = read(read_folds, path, "\n".join("f 0 1\n" * (1 + number % 3) for number in range(20)))
    counts = [table["fold"].to_pylist().count(number) for number in range(20)]
    assert counts == [1 + number % 3 for number in range(20)]


def test_a_speaker_map(path: Path) -> None:
    table = read(read_speakers, path, "f ann\n\n g\tbob \r\n")
    assert table.schema.equals(SPEAKERS)
    assert rows(table) == [("f", "ann", 1), ("g", "bob", 3)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f\n", "1: expected 2 fields with blanks between them: file, speaker; found 1"),
        ("f ann lee\n", "1: expected 2 fields with blanks between them: file, speaker; found 3"),
        ("f ann\nf bob\n", "2: expected every file once; found the file of line 1 again"),
        ("f a/b\n", "1: expected the name of a speaker; found a path in the id 'a/b'"),
        ("../f ann\n", "1: expected the name of a file; found a path in the id '../f'"),
    ],
)
def test_what_is_wrong_with_a_speaker_map(path: Path, text: str, said: str) -> None:
    assert faults(read_speakers, path, text) == [said]


def test_what_is_wrong_with_all_the_files_is_reported_together(tmp_path: Path) -> None:
    texts = {"phn": "f 1 0 a\n", "wrd": "f 0 x a\n", "split": "f 0\n", "folds": "\nf 0 1\n", "speakers": "f\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    phones, words, split, folds, speakers = (f"{tmp_path}/{name}" for name in texts)
    files = CorpusFiles(phones, words, split, folds, f"{tmp_path}/missing", speakers)
    with pytest.raises(Exception, match="missing") as caught:
        read_corpus_files(files)
    told = [(problem.file.rsplit("/")[-1], problem.line) for problem in caught.value.problems]
    assert told == [("phn", 1), ("wrd", 1), ("split", 1), ("folds", 1), ("missing", None), ("speakers", 1)]
