"""`swsdask correlate`: a table, a picture and clear errors."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from swsdask.comparison.rank_correlation import rank_correlations
from swsdask.render.outputs import read_outputs, write_outputs
from tests.command_line import Outcome
from tests.rank_correlations import in_two_conditions
from tests.small_evaluation import Files

NUMBERS = {"atwv": [0.4, 0.3, 0.2], "mtwv": [0.4, 0.5, 0.3], "cnxe": [0.4, 0.3, 0.2]}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    result = in_two_conditions(NUMBERS)
    write_outputs(result, tmp_path / "results", rank_correlations(result))
    return tmp_path / "results"


def test_table_and_files(swsdask: Callable[..., Outcome], results: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    ended = swsdask("correlate", results, "--out", out)
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["1", "ATWV", "0.4000", "a"] in lines
    assert ["3", "C_nxe", "0.2000", "c"] in lines
    assert ["2", "MTWV", "0.33", "-", "-0.25"] in lines
    assert "The winner depends on the measure; first under at least one of" in ended.out
    assert "Signature: swsdask" in ended.out
    assert sorted(path.name for path in out.iterdir()) == ["rank_correlation.html", "rank_correlation.parquet"]
    assert pq.read_table(out / "rank_correlation.parquet").num_rows == 9


def test_measures_and_condition(swsdask: Callable[..., Outcome], results: Path) -> None:
    ended = swsdask("correlate", results, "--measures", "cnxe, ATWV", "--condition", "oov=true")
    assert ended.code == 0
    assert ended.out.startswith("oov=true  2 systems  2 measures\n")
    assert ["1", "C_nxe", "-", "-1.00"] in [line.split() for line in ended.out.splitlines()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measures", "atwv,nope"], "measure 'nope' is not in the result"),
        (["--measures", "atwv"], "two or more measures"),
        (["--condition", "x"], "condition 'x' is not in the result. It has: all, oov=true."),
        (["--out", "https://x/y"], "a web address, which can only be read"),
    ],
)
def test_bad_options(swsdask: Callable[..., Outcome], results: Path, options: list[str], message: str) -> None:
    ended = swsdask("correlate", results, *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_what_is_no_result(swsdask: Callable[..., Outcome], tmp_path: Path) -> None:
    ended = swsdask("correlate", tmp_path)
    assert ended.code == 2
    assert "expected a file that `swsdask score --out` wrote" in ended.err


def test_scores_of_three_runs(swsdask: Callable[..., Outcome], files: Files, tmp_path: Path) -> None:
    """From runs to the report's section and the command; one run alone has no ranking."""
    text = files.run.read_text()
    second = files.write("second.kwslist.xml", text.replace("first", "second").replace('"YES"', '"NO"'))
    third = files.write("third.kwslist.xml", text.replace("first", "third").replace('score="0.7"', 'score="0.1"'))
    assert swsdask("score", files.reference, files.run, second, third, "--out", tmp_path / "all").code == 0
    assert "Rank correlation between measures" in (tmp_path / "all" / "report.html").read_text()
    assert [found.condition for found in rank_correlations(read_outputs(tmp_path / "all"))] == ["all"]
    assert swsdask("correlate", tmp_path / "all").code == 0
    assert swsdask("score", files.reference, files.run, "--out", tmp_path / "one").code == 0
    assert "Rank correlation between measures" not in (tmp_path / "one" / "report.html").read_text()
    ended = swsdask("correlate", tmp_path / "one")
    assert (ended.code, ended.err) == (
        2,
        "swsdask: Rank correlation needs at least two systems; the result has only first.\n",
    )


def test_for_programs_the_pairs_are_records(swsdask: Callable[..., Outcome], results: Path) -> None:
    records = json.loads(swsdask("correlate", results, "--format", "json").out)
    assert len(records) == 9
    assert (records[1]["measure"], records[1]["other"], records[1]["n_systems"]) == ("atwv", "mtwv", 3)
    table = list(csv.DictReader(swsdask("correlate", results, "--format", "csv").out.splitlines()))
    assert [{name: str(value) for name, value in record.items()} for record in records] == table
