"""`--stdeval-output`: the files that STDEval wrote, byte for byte.

Up to the order of the alignment's rows, as for KWSEval.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.api.official import measures_of_tool
from swsdask.cli import main
from swsdask.execution.executor import ThreadExecutor
from swsdask.model.errors import SettingsError
from swsdask.model.results import ALIGNMENT
from swsdask.render.stdeval_output import StdevalContext, occurrence_report
from tests.conformance.test_stdeval import POINTS
from tests.official_output import in_order, write_stdeval

FILES = ("s.occ.txt", "s.ali.csv")
_SWS2013 = {"tolerance_s": 0.25, "operating_point": {"c_fa": 1.0, "c_miss": 100.0, "p_target": 0.00015}}
CASES: dict[str, dict[str, Any]] = {
    "source-types": {},
    "three-types": {},
    "ecf-filter": {"outside": "drop"},
    "words": {},
    "one-term": _SWS2013,
    "outside": {**_SWS2013, "outside": "drop"},
    "silent": _SWS2013,
    "types-alike": {},
}
"""The settings of each case."""


BY = {"types-alike": ["source_type", "source_type:CTS+cts", "source_type:CTS+SplitCTS+cts"]}
"""The conditions of cases whose types have names that are alike."""


@pytest.mark.parametrize("case", CASES)
def test_reports_of_own_cases(own_cases: Path, tmp_path: Path, case: str) -> None:
    """That of `words` was printed without -d, which prints the maxima."""
    folder = own_cases / "stdeval" / case
    write_stdeval(folder, CASES[case], tmp_path, by=BY.get(case, "source_type"))
    report, expected = (file.read_text() for file in (tmp_path / "s.occ.txt", folder / "expected.occ.txt"))
    if case == "words":
        report = report.partition("\n\n")[0] + "\n"
    assert report == expected
    if case != "words":
        printed = (folder / "expected.ali.csv").read_text()
        assert in_order((tmp_path / "s.ali.csv").read_text()) == in_order(printed)


@pytest.mark.parametrize("tag", POINTS)
def test_files_of_the_synthetic_case(cases: Path, tmp_path: Path, tag: str) -> None:
    folder = cases / "stdeval/occurrences"
    tolerance, gap, point, more = POINTS[tag]
    settings = {"tolerance_s": tolerance, "find_gap_s": gap, "operating_point": point, **more}
    write_stdeval(folder, settings, tmp_path, "synthetic-occ")
    assert (tmp_path / "synthetic-occ.occ.txt").read_bytes() == (folder / f"{tag}.occ.txt").read_bytes()
    aligned = (tmp_path / "synthetic-occ.ali.csv").read_text()
    assert in_order(aligned) == in_order((folder / f"{tag}.ali.csv").read_text())


def test_the_same_bytes_over_executors_and_from_an_archive(own_cases: Path, tmp_path: Path) -> None:
    """An archive keeps the times of searching, which are read from the file otherwise, but not the text of numbers."""
    folder = own_cases / "stdeval/three-types"
    archive = str(tmp_path / "archive")
    write_stdeval(folder, {}, tmp_path / "one")
    write_stdeval(folder, {}, tmp_path / "two", buckets=3, executor=ThreadExecutor(2))
    run = f"s={folder / 's.stdlist.xml'}"
    main(["ingest", archive, str(folder), "--run", run, "--preset", "std2006", "--compat", "stdeval"])
    main(["score", archive, "--stdeval-output", "--alignment", "--by", "source_type", "--out", str(tmp_path / "three")])
    report, aligned = ([(tmp_path / at / name).read_text() for at in ("one", "two", "three")] for name in FILES)
    assert report == 3 * report[:1]
    assert aligned[0] == aligned[1]
    assert with_numbers(aligned[0]) == with_numbers(aligned[2])


def with_numbers(text: str) -> list[str]:
    """The rows in order, each number that stands alone as a float."""
    return in_order(re.sub(r"(?<=,)-?\d*\.?\d+(?=,)", lambda number: repr(float(number[0])), text))


def test_the_option_requires_out_and_one_tool(
    own_cases: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = own_cases / "stdeval/source-types"
    files = [str(folder), str(folder / "s.stdlist.xml")]
    with pytest.raises(SystemExit):
        main(["score", *files, "--stdeval-output", "--out", str(tmp_path)])
    assert "goes with --alignment and --by source_type" in " ".join(capfd.readouterr().err.split())
    evaluation = sws.open(folder, preset="std2006")
    measures = measures_of_tool("stdeval", None)
    result = sws.score(evaluation, measures, runs=files[1])
    with pytest.raises(SettingsError, match="need the alignment"):
        sws.write(result, tmp_path, tool="stdeval", evaluation=evaluation)
    result = sws.score(evaluation, measures, runs=files[1], alignment=True)
    with pytest.raises(SettingsError, match="score by source_type"):
        sws.write(result, tmp_path, tool="stdeval", evaluation=evaluation)


def test_types_whose_names_are_alike_need_conditions_that_join_them(own_cases: Path, tmp_path: Path) -> None:
    joined = "score by source_type:CTS\\+SplitCTS\\+cts and source_type:CTS\\+cts"
    with pytest.raises(SettingsError, match=joined):
        write_stdeval(own_cases / "stdeval/types-alike", {}, tmp_path)


@pytest.mark.parametrize("tool", ["stdeval", "kwseval"])
def test_a_list_without_decisions(own_cases: Path, tmp_path: Path, tool: str) -> None:
    """Either tool refuses it. Nothing is written."""
    for name in ("x.ecf.xml", "x.rttm", "x.tlist.xml", "s.stdlist.xml"):
        text = (own_cases / "stdeval/outside" / name).read_text()
        (tmp_path / name).write_text(re.sub(' decision="[A-Z]+"', "", text))
    evaluation = sws.open(tmp_path, preset="std2006", compat=tool, settings={"evaluation": {"outside": "drop"}})
    result = sws.score(evaluation, runs=tmp_path / "s.stdlist.xml", by="source_type", alignment=True)
    with pytest.raises(SettingsError, match=r"need decisions, which s did not give\. Give each detection YES or NO"):
        sws.write(result, tmp_path / "out", tool=tool, evaluation=evaluation)
    assert not (tmp_path / "out").exists()


def test_decisions_at_zero_are_compared_as_such() -> None:
    rows = [
        {"system": "s", "query": "q", "document": "d", "score": 0.0, "decision": "YES", "outcome": "false_alarm"},
        {"system": "s", "query": "q", "document": "e", "score": -0.5, "decision": "NO", "outcome": "miss"},
    ]
    evaluated = StdevalContext(0.1, 1.0, 0.0001, 1.0, "english", {}, {}, {}, {}, {"q": "word"}, {}, {"s": {}}, {})
    report = occurrence_report("s", {}, [], pa.Table.from_pylist(rows, ALIGNMENT), evaluated)
    assert "OK (Max NO: -0.5000, Min YES: 0.0000)" in report
