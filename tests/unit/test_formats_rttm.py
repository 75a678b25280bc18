from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from swsdask.formats.reference.rttm import read_rttm
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import SEGMENTS, WORDS

RTTM = """;; a comment
SPKR-INFO a 1 <NA> <NA> <NA> unknown ann <NA>
SPEAKER audio/a.wav 1 0.00 10.00 <NA> <NA> ann <NA>

LEXEME a 1 1.00 0.50 good lex ann 0.9
   ;; LEXEME a 1 1.00 0.50 good lex ann 0.9
LEXEME   a\t1 1.60 0.40   m\u00f6rning fp ann <NA>\r
NOSCORE a 1 3 4 <NA> <NA> <NA> <NA>
NON-LEX a 1 3 0.1 <NA> laugh ann <NA>
NON-LEX a 1 4 0.1 <NA> breath ann <NA>
LEXEME b 2 2.00005 0 "night alpha <NA> <NA>
"""
WORDS_READ = [
    ("a", 1, "ann", 10000, 15000, "good", "lex"),
    ("a", 1, "ann", 16000, 20000, "m\u00f6rning", "fp"),
    ("b", 2, "<NA>", 20000, 20000, '"night', "alpha"),
]
SEGMENTS_READ = [("a", 1, 0, 100000, "ann")]


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def read(path: Path, content: str | bytes) -> tuple[pa.Table, pa.Table, list[Problem]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = Problems()
    words, segments = read_rttm(str(path), problems)
    assert words.schema.equals(WORDS)
    assert segments.schema.equals(SEGMENTS)
    return words, segments, list(problems)


@pytest.fixture
def rttm(tmp_path: Path) -> Path:
    return tmp_path / "x.rttm"


def test_words_and_segments_in_file_order(rttm: Path) -> None:
    words, segments, problems = read(rttm, RTTM)
    assert rows(words) == WORDS_READ
    assert rows(segments) == SEGMENTS_READ
    assert problems == []


def test_what_is_passed_over_or_rounded_is_counted(rttm: Path) -> None:
    words, segments, _ = read(rttm, RTTM)
    assert words.schema.metadata == {
        b"rounded": b"2",
        b"skipped": b"4",
        b"skipped_types": b"2 NON-LEX, 1 NOSCORE, 1 SPKR-INFO",
    }
    assert segments.schema.metadata == {b"rounded": b"0"}


def test_a_comment_may_follow_a_record(rttm: Path) -> None:
    """As in KWSEval, which cuts lines at `;;`; inside a word it is no comment here."""
    lines = RTTM.splitlines()
    commented = "".join(f"{line} \t;; checked, by JD\n" if line[:1].isalpha() else f"{line}\n" for line in lines)
    one_odd = commented + "LEXEME a 1 99 1 x;;y lex ann 1 ;;\nLEXEME a 1 soon 1 x lex ann 1 ;; odd\n"
    for content, odd in ((commented, 0), (one_odd, 1)):
        words, _, problems = read(rttm, content)
        assert rows(words)[:3] == WORDS_READ
        assert len(problems) == odd
    assert rows(words)[3][-2:] == ("x;;y", "lex")
    words, _, problems = read(rttm, ";; x\na 1 1.0 0.4 two ;; a comment\n  ;; y\na 1 2.0 0.4 three\n")
    assert (words["word"].to_pylist(), problems) == (["two", "three"], [])


def test_blanks_without_end_are_passed_over_at_once(rttm: Path) -> None:
    blanks = " " * 200_000
    words, _, problems = read(rttm, f"a 1 0 0.4 one\na 1 1.0 0.4{blanks}two{blanks};; x\n")
    assert (words["word"].to_pylist(), problems) == (["one", "two"], [])


def test_ten_fields_and_both_forms_in_one_file(rttm: Path) -> None:
    newer = "".join(f"{line} <NA>\n" if line[:1].isalpha() else f"{line}\n" for line in RTTM.splitlines())
    for content in (newer, RTTM + newer.replace(" 1.", " 11.").replace(" 2.", " 12.").replace("0.00 10.00", "30 1")):
        words, segments, problems = read(rttm, content)
        assert rows(words)[:3] == WORDS_READ
        assert rows(segments)[:1] == SEGMENTS_READ
        assert problems == []
    assert (len(words), len(segments)) == (6, 2)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda text: b"\xef\xbb\xbf" + text])
def test_forms_of_the_file(rttm: Path, pack: object) -> None:
    assert callable(pack)
    words, _, problems = read(rttm, pack(RTTM.encode()))
    assert rows(words) == WORDS_READ
    assert problems == []


FAULTS = {
    "fields": ("LEXEME a 1 3.0", "9 or 10 fields", "4"),
    "eleven fields": ("LEXEME a 1 3.0 1 x lex ann 1 2 3", "9 or 10 fields", "11"),
    "type": ("3LEXEME a 1 3.0 1 x lex ann 1", "a type of RTTM records", "'3LEXEME'"),
    "channel": ("LEXEME a A 3.0 1 x lex ann 1", "a channel", "'A'"),
    "negative channel": ("LEXEME a -1 3.0 1 x lex ann 1", "a channel", "'-1'"),
    "hexadecimal channel": ("LEXEME a 0x1 3.0 1 x lex ann 1", "a channel", "'0x1'"),
    "no channel": ("SPEAKER a <NA> 3.0 1 x lex ann 1", "a channel", "'<NA>'"),
    "large channel": ("LEXEME a 128 3.0 1 x lex ann 1", "a channel", "'128'"),
    "start": ("LEXEME a 1 soon 1 x lex ann 1", "a start in seconds", "'soon'"),
    "no start": ("LEXEME a 1 <NA> 1 x lex ann 1", "a start in seconds", "'<NA>'"),
    "negative start": ("LEXEME a 1 -1 2 x lex ann 1", "a start of 0 or more", "'-1'"),
    "NaN": ("LEXEME a 1 nan 2 x lex ann 1", "a start in seconds", "'nan'"),
    "infinite duration": ("SPEAKER a 1 1 inf x lex ann 1", "a duration in seconds", "'inf'"),
    "negative duration": ("SPEAKER a 1 1 -0.4 x lex ann 1", "a duration of 0 or more", "'-0.4'"),
    "tiny negative duration": ("SPEAKER a 1 1 -0.00001 x lex ann 1", "a duration of 0 or more", "'-0.00001'"),
    "late end": ("LEXEME a 1 214748.3 0.0648 x lex ann 1", "an end of at most", "start 214748.3 and duration 0.0648"),
    "climbing document": ("LEXEME ../../x 1 3.0 1 x lex ann 1", "the name of an audio file", "../../x"),
    "document without name": ("LEXEME x/ 1 3.0 1 x lex ann 1", "the name of an audio file", "an empty id"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_with_their_line_and_the_others_are_read(rttm: Path, kind: str) -> None:
    line, expected, found = FAULTS[kind]
    words, segments, problems = read(rttm, f";; comment\n\n{RTTM}{line}\nLEXEME z 1 0 1 z lex z 1\n")
    assert [problem.line for problem in problems] == [RTTM.count("\n") + 3]
    assert problems[0].file == str(rttm)
    assert problems[0].expected.startswith(expected)
    assert found in problems[0].found
    assert rows(words)[:-1] == WORDS_READ
    assert rows(words)[-1][0] == "z"
    assert rows(segments) == SEGMENTS_READ


def test_every_fault_is_reported(rttm: Path) -> None:
    _, _, problems = read(
        rttm, "LEXEME a/ x -1 ? x lex ann 1\nfoo\nLEXEME a 1 0 1 x lex ann 1\nSPEAKER b 1 x 1 a b c d\n"
    )
    assert [problem.line for problem in problems] == [1, 1, 1, 2, 4]


def test_repeated_records_are_counted(rttm: Path) -> None:
    again = "LEXEME a.sph 1 1.000 5e-1 good lex ann 0.1\n"
    words, _, problems = read(rttm, RTTM + again + again.replace("ann", "bob") + again)
    assert words.schema.metadata[b"repeated"] == b"2"
    assert problems == []


def test_a_repeated_record_far_behind(rttm: Path) -> None:
    body = "".join(f"LEXEME d{n % 10} 1 {n // 10}.5 0.5 word{n % 100} lex ann 0.5\n" for n in range(60_000))
    words, _, _ = read(rttm, body + "LEXEME d7 1 12.5 0.5 word27 lex ann 0.5\n")
    assert words.schema.metadata[b"repeated"] == b"1"
    assert len(words) == 60_001


@pytest.mark.parametrize("odd", ["", "SPEAKER a 1 soon 1 <NA> <NA> ann <NA>\n"])
def test_types_that_score_nothing_are_passed_over_and_counted(rttm: Path, odd: str) -> None:
    more = "nonlex a 1 1 1 x y z 1\nNON-SPEECH a 1 1 1 x y z 1\nLEXEM a 1 1 1 x y z 1\nlexeme a 1 7 1 low lex ann 1\n"
    words, _, _ = read(rttm, RTTM + more + odd)
    assert words.schema.metadata[b"skipped_types"] == (
        b"1 LEXEM, 2 NON-LEX, 1 NON-SPEECH, 1 NONLEX, 1 NOSCORE, 1 SPKR-INFO"
    )
    assert words.schema.metadata[b"unknown_types"] == b"1 LEXEM"
    assert words["word"].to_pylist()[-1] == "low"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": expected a file with content"),
        (b";; nothing\n\n", ":1: expected at least one record"),
        (
            b"<ecf/>",
            ":1: expected an RTTM reference or words with times (a CTM); found an ECF. Give an ECF with --ecf.",
        ),
        (RTTM.encode("latin-1"), ":7: expected text in UTF-8; found the byte 0xf6"),
        (RTTM.encode("utf-16-le"), ":1: expected text in UTF-8; found text in UTF-16LE without a byte order mark"),
        (RTTM.encode()[:80] + b"x" * (2 << 20), ":3: expected a line of at most 1048576 bytes"),
        (gzip.compress(RTTM.encode())[:-9], ": expected whole gzip data; found data that break off"),
    ],
)
def test_files_that_are_no_whole_rttm(rttm: Path, content: bytes, message: str) -> None:
    _, _, problems = read(rttm, content)
    assert str(problems[-1]).startswith(f"{rttm}{message}")
    assert len(problems) == 1


def test_a_file_of_other_types_only(rttm: Path) -> None:
    words, _, problems = read(rttm, "NOSCORE a 1 3 4 <NA> <NA> <NA> <NA>\n")
    assert words.schema.metadata[b"skipped"] == b"1"
    assert problems == []
