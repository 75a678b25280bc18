"""Many systems of an archive are scored by worker processes without `--executor`: the same bits."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.compute as pc
import pytest

import swsdask as sws
from swsdask.execution import clusters
from swsdask.execution import open as opening
from swsdask.execution.clusters import LocalProcesses
from swsdask.execution.executor import SerialExecutor
from swsdask.model.errors import ClusterError
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS

pytestmark = pytest.mark.cluster

RUNS = [f"s{number}" for number in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of four systems beside the files that it was made from."""
    place = tmp_path_factory.mktemp("many")
    write(simulate(3, hours=0.4, n_queries=12, systems=SYSTEMS[:2]), place)
    file = sorted((place / "runs").iterdir())[0]
    sws.ingest(place / "archive", place, runs=dict.fromkeys(RUNS, file))
    return place


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MANY", 4)
    monkeypatch.setattr(opening, "cores", lambda: 2)
    monkeypatch.setattr(clusters, "CPU_COUNT", 2)
    monkeypatch.setattr(opening, "_main_can_be_imported", lambda: True)


def where(result: sws.Result) -> tuple[str, int]:
    return result.manifest["run"]["executor"], result.manifest["run"]["workers"]


def test_they_have_the_same_bits_and_kept_results_need_no_workers(folder: Path) -> None:
    serial = sws.score(folder / "archive", cache=False, executor="serial")
    many = sws.score(folder / "archive")
    again = sws.score(folder / "archive")
    assert [*map(where, (serial, many, again))] == [("SerialExecutor", 1), ("DaskExecutor", 2), ("SerialExecutor", 1)]
    for other in (many, again):
        assert other.table.to_pandas().equals(serial.table.to_pandas())
        assert other.curve_table.to_pandas().equals(serial.curve_table.to_pandas())


def test_a_measure_of_ones_own_stays_as_it_is(folder: Path) -> None:
    """Its class is sent by value, as one of a notebook is, and what it uses is changed between two scores."""
    weight = 1.0

    class Weighted:
        names = ("weighted",)
        needs = ()

        def values(self, scored: sws.Scored) -> Iterator[sws.Values]:
            yield scored.populations[0].overall({"weighted": weight})

    def found(executor: str) -> list[float]:
        result = sws.score(folder / "archive", Weighted(), executor=executor)
        return result.leaderboard()["weighted"].to_list()

    values = Weighted.values
    assert found("processes") == [1.0] * 4
    assert Weighted.values is values
    weight = 2.0
    assert found("processes") == found("serial") == [2.0] * 4


def test_few_systems_files_and_executors_that_are_requested_need_none(folder: Path) -> None:
    files = dict.fromkeys(RUNS, sorted((folder / "runs").iterdir())[0])
    for result in (
        sws.score(folder / "archive", runs=RUNS[:3], cache=False),
        sws.score(folder, runs=files),
        sws.score(folder / "archive", cache=False, executor="serial"),
        sws.score(folder / "archive", cache=False, executor=SerialExecutor()),
        sws.score(sws.open(folder / "archive", settings={"engine": {"workers": 1}}), cache=False),
    ):
        assert where(result) == ("SerialExecutor", 1)


def test_runs_with_lists_of_their_own_share_the_workers(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the systems leave a query out of their list: there are two references, and one pool of workers."""
    monkeypatch.setattr(opening, "MANY", 2)
    file = sorted((folder / "runs").iterdir())[0]
    shorter = tmp_path / file.name
    shorter.write_text(re.sub(r"<detected_kwlist.*?</detected_kwlist>", "", file.read_text(), count=1, flags=re.DOTALL))
    runs = {name: shorter if number % 2 else file for number, name in enumerate(RUNS)}
    sws.ingest(tmp_path / "archive", folder, runs=runs)
    opened = []
    connected = LocalProcesses.connect
    monkeypatch.setattr(
        LocalProcesses, "connect", lambda self, tell: opened.append(self.workers) or connected(self, tell)
    )
    evaluation = sws.open(tmp_path / "archive", settings={"evaluation": {"unlisted_queries": "exclude"}})
    many = sws.score(evaluation, cache=False)
    serial = sws.score(evaluation, cache=False, executor="serial")
    assert opened == [2]
    assert many.table.to_pandas().equals(serial.table.to_pandas())
    lists = serial.table.filter((pc.field("measure") == "ap") & pc.field("query").is_valid())["system"].to_pylist()
    assert lists.count("s1") == lists.count("s0") - 1


@pytest.mark.parametrize("lack", ["cores", "memory", "main", "processes"])
def test_where_workers_cannot_be_started_this_process_does_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lack: str
) -> None:
    @contextmanager
    def failing(self: LocalProcesses, tell: object) -> Iterator[Any]:
        raise ClusterError("no sockets here")
        yield

    if lack == "cores":
        monkeypatch.setattr(opening, "cores", lambda: 1)
    elif lack == "memory":
        monkeypatch.setattr(clusters, "MEMORY_LIMIT", (4 << 30) - 1)
    elif lack == "main":
        monkeypatch.setattr(opening, "_main_can_be_imported", lambda: False)
    else:
        monkeypatch.setattr(LocalProcesses, "connect", failing)
    assert where(sws.score(folder / "archive", cache=False)) == ("SerialExecutor", 1)


@pytest.mark.parametrize(
    ("main", "is_daemon", "can"),
    [
        (SimpleNamespace(__file__="script.py"), False, False),
        (SimpleNamespace(), False, True),
        (SimpleNamespace(), True, False),
    ],
    ids=["script", "notebook", "daemon"],
)
def test_workers_must_not_run_a_script_again(
    monkeypatch: pytest.MonkeyPatch, main: object, is_daemon: bool, can: bool
) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.delitem(sys.modules, "swsdask.cli", raising=False)
    monkeypatch.setattr(opening, "current_process", lambda: SimpleNamespace(daemon=is_daemon))
    assert opening._main_can_be_imported() is can


def test_nothing_of_them_is_logged_where_logging_is_configured(folder: Path) -> None:
    program = (
        "import logging, sys, swsdask as sws; logging.basicConfig(level=logging.INFO); "
        "sws.score(sys.argv[1], executor='processes', cache=False)"
    )
    command = [sys.executable, "-c", program, folder / "archive"]
    ended = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    assert "distributed" not in ended.stderr


def test_the_command_line_starts_them(folder: Path) -> None:
    few_are_many = (
        "from swsdask.execution import clusters as c, open as o; o.MANY, o.cores, c.CPU_COUNT = 4, lambda: 2, 2; "
    )
    command = "import sys; from swsdask.__main__ import start; sys.argv[1:] = ['score', sys.argv[1], '--no-cache', "
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{few_are_many}{command}'--out', sys.argv[2]]; start()",
            folder / "archive",
            folder / "o",
        ],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    assert "s0" in ended.stdout
    assert '"executor": "DaskExecutor"' in (folder / "o" / "manifest.json").read_text()
