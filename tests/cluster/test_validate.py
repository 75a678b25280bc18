"""Files are checked on worker processes: the same report as in one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.execution.dask import DaskExecutor
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.systems import SYSTEMS
from tests.cluster.cells import Noted

pytestmark = pytest.mark.cluster


class Noting(DaskExecutor):
    """An executor whose tasks note where they run."""

    folder: Path

    def map(
        self, function: Callable[[Any, Any], Any], items: Iterable[Any], shared: Any = None, **more: Any
    ) -> Iterator[Any]:
        return super().map(Noted(function, self.folder), items, shared, **more)


def test_workers_check_files(client: Any, tmp_path: Path) -> None:
    """Good files, files with problems, one that is not there and a folder."""
    write(simulate(11, hours=0.2, n_queries=8, systems=SYSTEMS[:3]), tmp_path / "files")
    run = next((tmp_path / "files" / "runs").iterdir())
    (tmp_path / "wrong.kwslist.xml").write_text(run.read_text().replace('kwid="', 'kwid="not-'))
    (tmp_path / "broken.kwslist.xml").write_text(run.read_text()[:-40])
    paths = [str(tmp_path / name) for name in ("files/runs", "wrong.kwslist.xml", "none.tsv", "broken.kwslist.xml")]
    noted = tmp_path / "noted"
    noted.mkdir()
    executor = Noting(client)
    executor.folder = noted
    there = sws.validate(paths, tmp_path / "files", executor=executor)
    assert there == sws.validate(paths, tmp_path / "files")
    assert there.total > len(paths)
    assert {problem.file for problem in there.problems} == set(paths[1:])
    workers = {int(each.name.partition("-")[2]) for each in noted.iterdir()}
    assert workers
    assert os.getpid() not in workers
