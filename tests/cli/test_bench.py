"""`swsdask bench`: every phase with its rows, and nothing kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.api import benchmarking
from swsdask.api.benchmarking import PHASES
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.command_line import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def archive(swsdask: Call, tmp_path: Path) -> Path:
    write(simulate(12, hours=0.3, n_queries=8, systems=SYSTEMS[:2]), tmp_path / "files")
    place = tmp_path / "archive"
    assert swsdask("ingest", place, tmp_path / "files", "--run", tmp_path / "files" / "runs").code == 0
    return place


def test_bench(swsdask: Call, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(archive.rglob("*"))
    rows = sum(run.rows for run in sws.open(archive).archive.runs)
    told = swsdask("bench", archive, "--measures", "atwv,mtwv", "--executor", "threads", "--workers", "2")
    assert told.code == 0, told.err
    assert told.out.startswith(f"2 systems, {rows:,} detections, ")
    assert "2 workers; at best it takes " in told.out
    for few_rows, shared in ((1_000_000, ["systems"]), (1, ["round 1 of 2", "round 2 of 2", "numbers"])):
        monkeypatch.setattr("swsdask.scoring.detections.FEW_ROWS", few_rows)
        phases = json.loads(swsdask("bench", archive, "--measures", "atwv,mtwv", "--format", "json").out)
        assert [phase["phase"] for phase in phases] == ["bare read", "reference", *shared, "tables", "files"]
        assert [phase["rows"] for phase in phases] == [rows, 0, *(rows for _ in shared), 0, 0]
        assert [phase["phase"] for phase in phases if phase["workers"]] == shared
        assert all(phase["seconds"] > 0 and phase["cpu_seconds"] >= 0 for phase in phases)
        assert phases[0]["of_read"] == 1
    assert sorted(archive.rglob("*")) == files, "nothing is kept"


def test_phases_of_several_groups_of_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(simulate(12, hours=0.3, n_queries=8, systems=SYSTEMS[:3]), tmp_path / "files")
    archive = sws.ingest(tmp_path / "archive", tmp_path / "files", runs=tmp_path / "files" / "runs")
    monkeypatch.setattr("swsdask.scoring.detections.FEW_ROWS", 1)
    monkeypatch.setattr("swsdask.scoring.rounds.MOST_SYSTEMS", 2)
    found = sws.benchmark(tmp_path / "archive", ["atwv", "mtwv"], executor="serial").phase_table
    of_groups = [
        f"{phase}, {systems} of 3"
        for systems in ("systems 1-2", "system 3")
        for phase in ("round 1 of 2", "round 2 of 2", "numbers")
    ]
    assert found["phase"].to_pylist() == ["bare read", "reference", *of_groups, "tables", "files"]
    assert found["workers"].to_pylist() == [False, False, *(True for _ in of_groups), False, False]
    first, last = sum(run.rows for run in archive.runs[:2]), archive.runs[2].rows
    assert found["rows"].to_pylist() == [first + last, 0, *[first] * 3, *[last] * 3, 0, 0]


def test_only_of_an_archive_with_runs(swsdask: Call, archive: Path) -> None:
    ended = swsdask("bench", archive.parent / "files")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "A benchmark needs an archive with runs" in ended.err


def test_more_workers_share_what_workers_do() -> None:
    phases = (("bare read", False, 1.0), ("reference", False, 2.0), ("round 1 of 1", True, 6.0), ("files", False, 1.0))
    table = pa.Table.from_pylist(
        [
            {"phase": name, "workers": shared, "rows": 1, "seconds": seconds, "cpu_seconds": 0.0}
            for name, shared, seconds in phases
        ],
        schema=PHASES,
    )
    found = sws.Benchmark(table, systems=1, rows=1, file_size=1, workers=2)
    assert [found.seconds_with(workers) for workers in (1, 2, 4, 12)] == [15.0, 9.0, 6.0, 4.0]


def test_files_on_a_server_without_parts_are_read_whole(
    swsdask: Call, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> object:
        raise ValueError("The HTTP server doesn't appear to support range requests.")

    monkeypatch.setattr(benchmarking, "_read_groups", _once_refused(benchmarking._read_groups, refused))
    assert "bare read" in swsdask("bench", archive).out


def _once_refused(read: Callable[..., None], refused: Callable[..., object]) -> Callable[..., None]:
    """A function that reads buffers only."""

    def reading(source: object, *rest: object) -> None:
        if not isinstance(source, pa.BufferReader):
            refused()
        read(source, *rest)

    return reading
