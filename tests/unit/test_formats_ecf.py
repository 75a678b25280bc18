from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.formats.reference.nist_xml import read_ecf
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import DOCUMENTS


def read(path: Path, *excerpts: str, root: str = "<ecf>") -> tuple[list[dict[str, object]], list[Problem]]:
    path.write_text("\n".join([root, *excerpts, "</ecf>"]), encoding="utf-8")
    problems = Problems()
    table = read_ecf(str(path), problems)
    assert table.schema.equals(DOCUMENTS)
    return table.to_pylist(), list(problems)


def excerpt(**attributes: str | None) -> str:
    given = {"audio_filename": "a.wav", "channel": "1", "tbeg": "0", "dur": "1", **attributes}
    return f"<excerpt {' '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)}/>"


@pytest.fixture
def ecf(tmp_path: Path) -> Path:
    return tmp_path / "x.ecf.xml"


def test_excerpts_in_file_order_may_overlap_and_differ(ecf: Path) -> None:
    rows, problems = read(
        ecf,
        excerpt(audio_filename="b/two.SPH", channel="2", tbeg="10.5", dur="2.25", source_type="cts", new="x"),
        excerpt(audio_filename="one.v2.wav", tbeg="0.0001", dur="1e1", language="fr"),
        excerpt(audio_filename="b/two.SPH", channel="0", tbeg="11", dur="3", source_type="bnews"),
        root='<ecf language="english" source_type="meeting" source_signal_duration="nonsense" version="1">',
    )
    assert problems == []
    assert [tuple(row.values()) for row in rows] == [
        ("two", 2, 105000, 127500, "cts", "english"),
        ("one.v2", 1, 1, 100001, "meeting", "fr"),
        ("two", 0, 110000, 140000, "bnews", "english"),
    ]


def test_nothing_given_is_empty(ecf: Path) -> None:
    rows, _ = read(ecf, excerpt())
    assert (rows[0]["source_type"], rows[0]["language"]) == ("", "")


def test_times_are_exact_and_rounded_once_half_even(ecf: Path) -> None:
    ecf.write_text(
        "<ecf>"
        + excerpt(tbeg="0.00005", dur="0.00010")
        + excerpt(tbeg="0.00015", dur="0.1")
        + excerpt(tbeg="0.1", dur="0.2")
        + "</ecf>"
    )
    problems = Problems()
    table = read_ecf(str(ecf), problems)
    assert table["start"].to_pylist() == [0, 2, 1000]
    assert table["end"].to_pylist() == [2, 1002, 3000]
    assert table.schema.metadata[b"rounded"] == b"4"
    assert not problems


FAULTS = {
    "no channel": (excerpt(channel=None), "the attributes", "without channel"),
    "nothing": ("<excerpt/>", "the attributes", "without audio_filename, channel, tbeg, dur"),
    "channel": (excerpt(channel="A"), "a channel", "'A'"),
    "large channel": (excerpt(channel="128"), "a channel", "'128'"),
    "negative duration": (excerpt(dur="-1"), "a duration of 0 or more seconds", "'-1'"),
    "zero duration": (excerpt(dur="0.0"), "a duration of more than 0 seconds", "'0.0'"),
    "tiny duration": (excerpt(dur="0.00000001"), "a duration of more than 0 seconds", "'0.00000001'"),
    "negative start": (excerpt(tbeg="-0.5"), "a start of 0 or more seconds", "'-0.5'"),
    "NaN": (excerpt(dur="NaN"), "a duration in seconds", "'NaN'"),
    "infinity": (excerpt(tbeg="inf"), "a start in seconds", "'inf'"),
    "no number": (excerpt(tbeg="1:30"), "a start in seconds", "'1:30'"),
    "underscore": (excerpt(tbeg="1_0"), "a start in seconds", "'1_0'"),
    "other digits": (excerpt(tbeg="\u0661"), "a start in seconds", "'\u0661'"),
    "empty": (excerpt(tbeg=""), "a start in seconds", "''"),
    "samples": (excerpt(dur="99999999"), "a duration of at most", "'99999999'"),
    "huge exponent": (excerpt(dur="1e999999999"), "a duration in seconds", "'1e999999999'"),
    "late end": (
        excerpt(tbeg="214748", dur="1"),
        "an end of at most 214748.3647 seconds",
        "start 214748 and duration 1",
    ),
    "climbing": (excerpt(audio_filename="../../x"), "the name of an audio file", "climbs out of its folder"),
    "no name": (excerpt(audio_filename="audio/"), "the name of an audio file", "an empty id"),
    "unknown element": ("<exerpt/>", "an excerpt", "the element 'exerpt'"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_with_their_line_and_the_others_are_read(ecf: Path, kind: str) -> None:
    line, expected, found = FAULTS[kind]
    rows, problems = read(ecf, excerpt(), line, excerpt())
    assert len(rows) == 2
    (problem,) = problems
    assert (problem.file, problem.line) == (str(ecf), 3)
    assert problem.expected.startswith(expected)
    assert found in problem.found


def test_every_fault_is_reported(ecf: Path) -> None:
    _, problems = read(ecf, excerpt(channel="x", dur="-1", audio_filename=".."), "text", excerpt(tbeg="?"))
    assert [problem.line for problem in problems] == [2, 2, 2, 4, 5]


def test_no_excerpt(ecf: Path) -> None:
    _, problems = read(ecf)
    assert [problem.expected for problem in problems] == ["at least one excerpt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<kwlist/>", ":1: expected an ECF; found a query list. Give a query list with --queries."),
        ("LEXEME a 1 0 1 b lex c <NA>", ":1: expected an ECF; found an RTTM reference. Give an RTTM reference with"),
        ("", ": expected a file with content"),
        ("<ecf>\n" + excerpt() + "\n<exc", ":3: expected more XML; found the end of the file"),
    ],
)
def test_files_that_are_no_whole_ecf(ecf: Path, content: str, message: str) -> None:
    ecf.write_text(content)
    problems = Problems()
    table = read_ecf(str(ecf), problems)
    (problem,) = problems
    assert str(problem).startswith(f"{ecf}{message}")
    assert len(table) == content.count("<excerpt")
