"""The files of a folder that is one table are read by several workers: the same archive as in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.archive import ingest as writing
from swsdask.formats.runs.read import RunFile
from swsdask.formats.runs.write import convert
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.cluster.cells import Noting

pytestmark = pytest.mark.cluster


def test_workers_read_the_files_of_a_folder(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(simulate(11, hours=0.5, n_queries=8, systems=SYSTEMS[:1]), tmp_path / "files")
    (run,) = (tmp_path / "files" / "runs").glob("*.xml")
    convert(str(run), str(tmp_path / "whole.parquet"))
    table = pq.read_table(tmp_path / "whole.parquet")
    (tmp_path / "run.parquet").mkdir()
    for number in range(12):
        begin, end = (at * len(table) // 12 for at in (number, number + 1))
        pq.write_table(table.slice(begin, end - begin), tmp_path / f"run.parquet/part.{number}.parquet")
    monkeypatch.setattr(writing, "ROWS_PER_PART", 1)
    executor = Noting(client, tmp_path / "noted")
    contents = []
    for name, given, how in (("one", "whole.parquet", "serial"), ("several", "run.parquet", executor)):
        sws.ingest(tmp_path / name, tmp_path / "files", runs=tmp_path / given, executor=how)
        (stored,) = sws.open(tmp_path / name).archive.runs
        contents.append((stored.content, stored.rows))
    assert contents[0] == contents[1] == (contents[0][0], len(table))
    assert len(writing.divide([RunFile(str(tmp_path / "run.parquet"))], executor.workers)) > 1
    assert executor.processes
    assert os.getpid() not in executor.processes
