"""`swsdask simulate gap`: a table, a page and files, the same on any executor."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from swsdask.comparison.gap_study import gap_study
from swsdask.execution.executor import SerialExecutor
from swsdask.model.studies import GapStudy
from swsdask.render.studies import gap_numbers, gap_page
from tests.command_line import Outcome


@pytest.fixture(scope="module")
def made() -> GapStudy:
    return gap_study(3, 2, SerialExecutor())


def test_table_and_files(swsdask: Callable[..., Outcome], tmp_path: Path, made: GapStudy) -> None:
    ended = swsdask("simulate", "gap", "--seed", "3", "--replicates", "2", "--out", tmp_path / "new")
    assert ended.code == 0
    rows = re.findall(r"^ *(\d+) +(\w+ .+?) +(0\.\d+) ", ended.out, re.MULTILINE)
    assert [(int(n), name, float(tau)) for n, name, tau in rows] == [
        (row["number"], row["function"], round(row["median"], 4)) for row in gap_numbers(made)
    ]
    assert "Signature: swsdask" in ended.out
    assert "seed=3 replicates=2" in ended.out
    assert "2 replicates" in ended.err
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["gap.html", "gap.json", "gap.parquet"]
    tau = pq.read_table(tmp_path / "new" / "gap.parquet")
    assert tau["tau"].to_numpy().reshape(2, 28, 28).tobytes() == made.tau.tobytes()
    assert tau.slice(28 + 3, 1).drop_columns("tau").to_pylist() == [
        {"replicate": 0, "function": "triangular ±9", "other": "triangular ±7"}
    ]


def test_json_is_the_same_on_any_executor(swsdask: Callable[..., Outcome], made: GapStudy) -> None:
    asked = ("simulate", "gap", "--seed", "3", "--replicates", "2", "--format", "json")
    alone, together = swsdask(*asked, "--executor", "serial"), swsdask(*asked, "--executor", "threads")
    assert alone.out == together.out
    told = json.loads(alone.out)
    assert (told["seed"], told["replicates"]) == (3, 2)
    assert told["functions"] == gap_numbers(made)


def test_the_page_shows_every_function_and_every_pair(made: GapStudy) -> None:
    text = gap_page(made, "swsdask <1>")
    assert "swsdask &lt;1&gt;" in text
    assert "http" not in text.replace("http-equiv", "")
    assert text.count('class="dot"') == 28
    greys = np.array([int(grey) for grey in re.findall(r'fill="rgb\((\d+),', text)]).reshape(28, 28)
    tau = made.tau.mean(axis=0)
    assert (greys == greys.T).all()
    assert greys[tau.argmin() // 28, tau.argmin() % 28] == 255 == greys.max()
    assert (np.diagonal(greys) == greys.min()).all()
    order = np.argsort(tau.ravel())
    assert (np.diff(greys.ravel()[order]) <= 0).all()


def test_a_page_of_one_replicate_has_no_averages() -> None:
    text = gap_page(gap_study(5, 1, SerialExecutor()), "s")
    assert "averaged over replicates" not in text
    assert 'class="middling"' not in text


def test_bad_options(swsdask: Callable[..., Outcome]) -> None:
    assert swsdask("simulate", "gap", "--replicates", "0").code == 2
    assert swsdask("simulate", "gap", "--seed", "-1").code == 2
    assert swsdask("simulate", "gaps").code == 2
    assert swsdask("simulate", "gap", "--executor", "nowhere").code == 2


def test_the_model_is_a_setting(swsdask: Callable[..., Outcome], made: GapStudy) -> None:
    asked = ("simulate", "gap", "--seed", "3", "--replicates", "1", "--format", "json", "--executor", "serial")
    source = ("--points", "600", "--systems", "100", "--p", "0.5", "--sigma", "3", "--cutoff", "9")
    default = json.loads(swsdask(*asked).out)
    assert json.loads(swsdask(*asked, *source).out) == default
    for changed in (("--points", "300"), ("--p", "0.9"), ("--sigma", "5"), ("--cutoff", "4"), ("--systems", "20")):
        told = json.loads(swsdask(*asked, *changed).out)
        assert told["functions"] != default["functions"]
        assert f"{changed[0][2:]}={changed[1]}" in told["signature"].replace(".0", "")
