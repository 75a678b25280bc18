"""Official tools' runs, good and bad, as the readers take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from swsdask.formats.runs.read import read_run
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import RunPiece


def read(file: Path) -> tuple[list[RunPiece], list[Problem]]:
    problems = Problems()
    return list(read_run(str(file), problems)), list(problems)


def test_kwseval_runs(cases: Path) -> None:
    (piece,), problems = read(cases / "kwseval" / "synthetic" / "kwslist.xml")
    assert not problems
    assert (piece.header.system, len(piece), len(piece.listed)) == ("synthetic", 10_000, 100)
    assert piece.header.attributes["kwlist_filename"] == "kwlist.xml"
    assert piece.header.attributes["search_time.SYN-0000"] == "1.0"
    assert (piece.queries[0], piece.documents[0], piece.start[0], piece.duration[0], piece.score[0]) == (
        "SYN-0000",
        "SYN_0000_A",
        716_920,
        4030,
        0.4331,
    )
    for case, rows in (("short", 27), ("segments", 12)):
        (piece,), problems = read(cases / "kwseval" / case / "kwslist.xml")
        assert not problems
        assert (piece.header.system, len(piece), len(piece.listed)) == ("kwslist", rows, 3)


def test_stdeval_run(cases: Path) -> None:
    (piece,), problems = read(cases / "stdeval" / "occurrences" / "s.stdlist.xml")
    assert not problems
    assert (piece.header.system, len(piece), len(piece.listed)) == ("synthetic-occ", 145, 12)
    assert np.unique(piece.decision).tolist() == [0, 1]


def test_mediaeval_run(cases: Path) -> None:
    (piece,), problems = read(cases / "mediaeval" / "base" / "s.stdlist.xml")
    assert not problems
    assert (piece.header.system, piece.queries, piece.documents) == ("S", ("q1", "q2"), ("d1", "d2", "d3", "d4"))
    assert piece.score.tolist() == [1.5, 0.5, -1.0, 2.0, -2.0, 0.1, 3.0, 0.5]
    assert piece.decision.tolist() == [1, 0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("badscore", "'abc'"),
        ("lowerdec", "'yes'"),
        ("noscoreattr", "a row without score"),
        ("nanscore", "'NaN'"),
    ],
)
def test_bad_runs_are_refused(cases: Path, case: str, found: str) -> None:
    _, (problem,) = read(cases / "mediaeval" / case / "s.stdlist.xml")
    assert (problem.line, problem.found) == (3, found)


@pytest.mark.parametrize("case", ["wavext", "dup", "unkq", "unkd", "decinc", "alltar", "tie_tarlast"])
def test_runs_whose_form_is_right(cases: Path, case: str) -> None:
    (piece,), problems = read(cases / "mediaeval" / case / "s.stdlist.xml")
    assert not problems
    if case == "wavext":
        assert piece.documents == ("d1",)
    if case == "tie_tarlast":
        assert (piece.queries, piece.query.tolist()) == (("q1", "q2"), [0, 0, 0, 1, 1, 0, 1, 1])
    if case == "dup":
        assert len(piece) == 2


@pytest.mark.parametrize("reference", ["t.ecf.xml", "t.rttm", "t.tlist.xml"])
def test_a_reference_is_no_run(cases: Path, reference: str) -> None:
    pieces, (problem,) = read(cases / "mediaeval" / "base" / reference)
    assert not pieces
    assert problem.expected.startswith("a run")
