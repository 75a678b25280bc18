"""`swsdask compare`: tables, JSON, files, and clear errors."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from swsdask.model.comparison import DIFFERENCES, INTERVALS
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.command_line import Outcome

FEW = ("--replicates", "200")
A, B, C = (system.name for system in SYSTEMS[:3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    write(simulate(12, hours=0.3, n_queries=12, systems=SYSTEMS[:3]), folder)
    return folder


@pytest.fixture
def results(swsdask: Callable[..., Outcome], folder: Path, tmp_path: Path) -> Path:
    assert swsdask("score", folder, folder / "runs", "--measures", "atwv,mtwv", "--out", tmp_path / "r").code == 0
    return tmp_path / "r"


def test_a_result(swsdask: Callable[..., Outcome], results: Path, tmp_path: Path) -> None:
    ended = swsdask("compare", results, *FEW, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("all  ATWV\n")
    assert "best is" in ended.out
    assert "200 replicates of the queries, seed 0, percentile intervals; p adjusted: Holm" in ended.out
    assert "Signature: swsdask" in ended.out
    assert "Written to" in ended.out
    assert pq.read_schema(tmp_path / "out" / "intervals.parquet").equals(INTERVALS)
    assert pq.read_table(tmp_path / "out" / "differences.parquet").schema.equals(DIFFERENCES)


def test_the_report_of_results_shows_a_comparison_that_is_written_beside_them(
    swsdask: Callable[..., Outcome], folder: Path, results: Path
) -> None:
    measures = ("--measures", "mtwv")
    assert swsdask("compare", folder, folder / "runs", *FEW, *measures, "--out", results).code == 0
    assert swsdask("report", results).code == 0
    shown = (results / "report.html").read_text()
    assert "Differences between systems" in shown
    assert "0.95 interval of MTWV" in shown
    assert swsdask("score", folder, folder / "runs", "--measures", "mtwv", "--out", results).code == 0
    assert "Differences between systems" not in (results / "report.html").read_text()
    assert not (results / "intervals.parquet").exists()


def test_json_is_one_object_with_two_lists(swsdask: Callable[..., Outcome], results: Path) -> None:
    gate = ("--fail-if", "atwv drops 0 with p < .0001")
    ended = swsdask("compare", results, B, A, *FEW, "--format", "json", *gate)
    assert (
        ended.err.splitlines()[0]
        == "all: 11 queries; intervals and tests based on fewer than 30 queries are unreliable."
    )
    assert "cannot fail, because the least p of" in ended.err
    found = json.loads(ended.out)
    assert list(found) == ["intervals", "differences"]
    assert [list(row) for row in found["intervals"]] == [INTERVALS.names] * 3
    (row,) = found["differences"]
    assert list(row) == DIFFERENCES.names
    assert (row["a"], row["b"], row["measure"]) == (B, A, "atwv")


def test_other_formats(swsdask: Callable[..., Outcome], folder: Path, tmp_path: Path) -> None:
    """CSV has the differences; Markdown and LaTeX the systems by condition. Notes are on stderr."""
    by = ("--by", "query_pattern:[1-6]$", "--measures", "atwv,map")
    run = (folder, folder / "runs", *FEW, *by)
    rows = json.loads(swsdask("compare", *run, "--format", "json").out)["differences"]
    lines = list(csv.DictReader(swsdask("compare", *run, "--format", "csv").out.splitlines()))
    assert [list(line) for line in lines] == [DIFFERENCES.names] * len(rows)
    assert [float(line["difference"]) for line in lines] == [row["difference"] for row in rows]
    markdown = swsdask("compare", *run, "--format", "markdown").out
    assert markdown.startswith("**all**\n\n| System | ATWV | MAP |\n")
    assert "\n\n**query\\~\\[1-6]$**\n\n| System |" in markdown
    latex = swsdask("compare", *run, "--format", "latex", "--out", tmp_path / "out").out
    assert latex.startswith("% all\n\\begin{tabular}{lrr}")
    assert latex.endswith("\\end{tabular}\n")
    assert (tmp_path / "out" / "intervals.parquet").exists()


def test_an_archive_and_files_give_the_numbers_of_a_result(
    swsdask: Callable[..., Outcome], folder: Path, results: Path, tmp_path: Path
) -> None:
    options = (*FEW, "--measures", "atwv", "--format", "json")
    mtwv = json.loads(swsdask("compare", folder, folder / "runs", *FEW, "--measures", "mtwv", "--format", "json").out)
    assert [math.isnan(row["standard_error"]) for row in mtwv["intervals"]] == [False] * 3
    assert [row["p_sign"] for row in mtwv["differences"]] == [None] * 3
    of_result = swsdask("compare", results, *options).out
    assert swsdask("compare", folder, folder / "runs", *options).out == of_result
    files = ("--ecf", folder / "sim.ecf.xml", "--rttm", folder / "sim.rttm", "--queries", folder / "sim.kwlist.xml")
    assert swsdask("compare", *files, folder / "runs", *options).out == of_result
    assert swsdask("ingest", tmp_path / "archive", folder, folder / "runs").code == 0
    assert "already there" in swsdask("ingest", tmp_path / "archive", *files, folder / "runs").out
    assert swsdask("compare", tmp_path / "archive", *options).out == of_result
    pair = json.loads(swsdask("compare", tmp_path / "archive", C, A, *options).out)
    assert pair["differences"] == json.loads(swsdask("compare", results, C, A, *options).out)["differences"]


def test_a_gate_that_fails_ends_with_code_3(swsdask: Callable[..., Outcome], results: Path) -> None:
    rows = json.loads(swsdask("compare", results, *FEW, "--measures", "atwv", "--format", "json").out)["intervals"]
    worst, *_, best = sorted(rows, key=lambda row: row["value"])
    gates = ("--fail-if", "atwv drops .01 with p < .5", "--fail-if", "atwv drops 1000")
    failed = swsdask("compare", results, worst["system"], best["system"], *FEW, *gates)
    assert failed.code == 3
    assert failed.out.startswith("all  ATWV\n")
    (line,) = failed.err.splitlines()
    assert line.startswith(f"swsdask: gate 'atwv drops .01 with p < .5' failed: atwv of {worst['system']} is ")
    assert f"of {best['system']} {best['value']:.4f}" in line
    assert swsdask("compare", results, best["system"], worst["system"], *FEW, *gates).code == 0
    both = swsdask("compare", results, "--baseline", best["system"], *FEW, "--fail-if", "atwv drops")
    assert (both.code, len(both.err.splitlines())) == (3, 2)


def test_a_gate_is_checked_before_the_work(swsdask: Callable[..., Outcome], folder: Path) -> None:
    ended = swsdask("compare", folder, folder / "runs", "--baseline", A, "--fail-if", "atvw drops .01")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "swsdask: gate 'atvw drops .01': measure 'atvw' is unknown. Nearest: atwv.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-if", "atwv drops .1"], "name two systems, the second as the baseline, or a baseline"),
        (["--baseline", A, "--fail-if", "atwv drops in x"], "condition 'x' is unknown. Nearest: "),
        (
            ["--measures", "mtwv"],
            "mtwv cannot be resampled from results: it is not an average of numbers by query, and results do not keep "
            "the counts of trials by query and score. Compare the archive, or the reference and the runs. "
            "These results have measures that can be resampled: atwv.",
        ),
        (["--measures", "cnxe"], "the results have no cnxe: request it when you score, or compare the archive"),
        (["--measures", "cnxf"], "measure 'cnxf' is unknown. Nearest: cnxe"),
        (["--baseline", "nobody"], "'nobody' is none of the systems"),
        (["one"], "Name two systems"),
        (["--by", "oov"], "has been scored"),
        (["--replicates", "0"], "--replicates"),
    ],
)
def test_bad_options(swsdask: Callable[..., Outcome], results: Path, arguments: list[str], message: str) -> None:
    ended = swsdask("compare", results, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_a_measure_of_term_discovery_is_distinguished_from_an_unknown_one(
    swsdask: Callable[..., Outcome], results: Path, folder: Path
) -> None:
    is_one = "measure 'grouping' is one of term discovery, of `swsdask discover`: grouping_precision, grouping_recall, "
    of_results = swsdask("compare", results, "--measures", "grouping")
    of_files = swsdask("compare", folder, folder / "runs", "--measures", "grouping")
    scored = swsdask("score", folder, folder / "runs", "--measures", "ned")
    assert [ended.code for ended in (of_results, of_files, scored)] == [2, 2, 2]
    possible = "grouping_f_score. These results have measures that can be resampled: atwv.\n"
    assert of_results.err == f"swsdask: {is_one}{possible}"
    assert f"{is_one}grouping_f_score. Among those that can be compared are atwv, mtwv, otwv, stwv, " in of_files.err
    assert "measure 'ned' is one of term discovery, of `swsdask discover`.\n" in scored.err
