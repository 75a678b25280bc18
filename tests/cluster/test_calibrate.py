"""Runs are calibrated on worker processes: the same files as in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.model.errors import InputError
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.cluster.cells import Noting

pytestmark = pytest.mark.cluster


def test_workers_apply_a_calibration(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists and a table, into a folder by a relative path; where one run has a problem nothing is written."""
    write(simulate(11, hours=0.4, n_queries=18, systems=SYSTEMS[:3]), tmp_path / "files")
    runs = [str(path) for path in sorted((tmp_path / "files" / "runs").iterdir())]
    (tmp_path / "table.tsv").write_text("query\tdocument\tstart\tduration\tscore\nq\td\t1.0\t0.50\t2\n")
    calibration = sws.calibrate(tmp_path / "files", runs[0], method="pav")
    monkeypatch.chdir(tmp_path)
    made = []
    noting = Noting(client, tmp_path / "noted")
    for out, executor in (("here", None), ("there", noting)):
        sws.apply_calibration(calibration, [*runs, str(tmp_path / "table.tsv")], out, executor=executor)
        made.append({path.name: path.read_bytes() for path in (tmp_path / out).iterdir()})
    assert made[0] == made[1]
    assert len(made[0]) == 4
    assert noting.processes
    assert os.getpid() not in noting.processes
    broken = tmp_path / "broken.kwslist.xml"
    broken.write_text(Path(runs[0]).read_text()[:-40])
    with pytest.raises(InputError, match="the end of the file"):
        sws.apply_calibration(calibration, [*runs, str(broken)], "none", executor=noting)
    assert list((tmp_path / "none").iterdir()) == []
