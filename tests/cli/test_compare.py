"""`swsdask compare`: tables, JSON, files, and clear errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from swsdask.model.results import DIFFERENCES, INTERVALS
from swsdask.simulate.evaluation import simulate
from swsdask.simulate.files import write
from swsdask.simulate.systems import SYSTEMS
from tests.cli.conftest import Outcome

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


def test_json_is_one_object_with_two_lists(swsdask: Callable[..., Outcome], results: Path) -> None:
    ended = swsdask("compare", results, B, A, *FEW, "--format", "json")
    found = json.loads(ended.out)
    assert list(found) == ["intervals", "differences"]
    assert [list(row) for row in found["intervals"]] == [INTERVALS.names] * 3
    (row,) = found["differences"]
    assert list(row) == DIFFERENCES.names
    assert (row["a"], row["b"], row["measure"]) == (B, A, "atwv")


def test_an_archive_and_files_give_the_numbers_of_a_result(
    swsdask: Callable[..., Outcome], folder: Path, results: Path, tmp_path: Path
) -> None:
    options = (*FEW, "--measures", "atwv", "--format", "json")
    mtwv = json.loads(swsdask("compare", folder, folder / "runs", *FEW, "--measures", "mtwv", "--format", "json").out)
    assert [math.isnan(row["standard_error"]) for row in mtwv["intervals"]] == [False] * 3
    assert [row["p_sign"] for row in mtwv["differences"]] == [None] * 3
    of_result = swsdask("compare", results, *options).out
    assert swsdask("compare", folder, folder / "runs", *options).out == of_result
    assert swsdask("ingest", tmp_path / "archive", folder, "--run", folder / "runs").code == 0
    assert swsdask("compare", tmp_path / "archive", *options).out == of_result
    pair = json.loads(swsdask("compare", tmp_path / "archive", C, A, *options).out)
    assert pair["differences"] == json.loads(swsdask("compare", results, C, A, *options).out)["differences"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--measures", "mtwv"], "MTWV can be resampled from an archive, or a reference and runs."),
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
