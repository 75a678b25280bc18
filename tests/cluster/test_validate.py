"""Files are checked on worker processes: the same report as in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.cluster.cells import Noting

pytestmark = pytest.mark.cluster


def test_workers_check_files(client: Any, tmp_path: Path) -> None:
    """Good files, files with problems, one that is not there and a folder."""
    write(simulate(11, hours=0.2, n_queries=8, systems=SYSTEMS[:3]), tmp_path / "files")
    run = next((tmp_path / "files" / "runs").iterdir())
    (tmp_path / "wrong.kwslist.xml").write_text(run.read_text().replace('kwid="', 'kwid="not-'))
    (tmp_path / "broken.kwslist.xml").write_text(run.read_text()[:-40])
    paths = [str(tmp_path / name) for name in ("files/runs", "wrong.kwslist.xml", "none.tsv", "broken.kwslist.xml")]
    executor = Noting(client, tmp_path / "noted")
    there = sws.validate(paths, tmp_path / "files", executor=executor)
    assert there == sws.validate(paths, tmp_path / "files")
    assert there.total > len(paths)
    assert {problem.file for problem in there.problems} == set(paths[1:])
    assert executor.processes
    assert os.getpid() not in executor.processes
