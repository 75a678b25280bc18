"""The official tools' reference files are read, and what their tools complain of is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.archive.validate import validate
from swsdask.formats.find import find_reference
from swsdask.formats.reference.nist_xml import read_ecf, read_queries
from swsdask.formats.reference.rttm import read_rttm
from swsdask.model.errors import Problem, Problems

COUNTS = {
    "kwseval/synthetic": (20, 100, 114_814, 2_879),
    "kwseval/short": (1, 4, 60, 20),
    "kwseval/segments": (2, 3, 12, 7),
    "stdeval/occurrences": (40, 12, 60, 0),
    "mediaeval/base": (4, 3, 4, 0),
    "mediaeval/alltar": (4, 3, 6, 0),
}


def problems_in(folder: Path) -> list[Problem]:
    return list(validate([str(folder)]).problems)


@pytest.mark.parametrize("case", COUNTS)
def test_rows(cases: Path, case: str) -> None:
    files = find_reference(str(cases / case))
    problems = Problems()
    words, segments = read_rttm(files.rttm, problems)
    read = read_ecf(files.ecf, problems), read_queries(files.queries, problems), words, segments
    assert list(problems) == []
    assert tuple(len(table) for table in read) == COUNTS[case]


def test_every_reference_of_mediaeval_is_right(cases: Path) -> None:
    folders = sorted(path.parent for path in (cases / "mediaeval").glob("*/t.rttm"))
    assert len(folders) > 10
    assert not any(problems_in(folder) for folder in folders)


def test_a_repeated_record_is_counted_where_the_official_tool_warns(cases: Path) -> None:
    folder = cases / "mediaeval/duprttm"
    words, _ = read_rttm(str(folder / "t.rttm"), Problems())
    assert words.schema.metadata[b"repeated"] == b"1"
    assert "at line 5 " in (folder / "err.txt").read_text()
