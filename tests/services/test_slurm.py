"""Workers in jobs of SLURM: a job that is killed is replaced, and the numbers have the same bits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import SerialExecutor
from swsdask.execution.open import read_cluster
from swsdask.execution.slurm import SlurmJobs
from swsdask.scoring import detections
from tests import engines
from tests.cluster.cells import OCCURRENCES, SYSTEMS, by_query
from tests.cluster.conftest import ROOT, killing
from tests.services.slurm import slurm


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture(autouse=True)
def _with_slurm(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(detections, "FEW_ROWS", 1)


def jobs() -> list[str]:
    listed = subprocess.run(["squeue", "--noheader", "--states=R", "--format=%i"], capture_output=True, text=True)
    return listed.stdout.split()


def cluster_file(folder: Path, *lines: str) -> SlurmJobs:
    file = folder / "slurm.toml"
    given = ['kind = "slurm"', 'memory = "2 GiB"', f'folder = "{folder}"', f"prologue = ['export PYTHONPATH={ROOT}']"]
    file.write_text("\n".join([*given, *lines]))
    found = read_cluster(str(file))
    assert isinstance(found, SlurmJobs)
    return found


def test_a_job_that_is_killed_is_replaced_and_the_bits_are_the_same(tmp_path: Path) -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 1, 0, 1, 1], n_queries=6)
    whole = engines.score(engines.archive_of(SYSTEMS), evaluated, SerialExecutor())
    waiting = {name: list(by_query(name, rows, tmp_path)) for name, rows in SYSTEMS.items()}
    archive = engines.CellArchive(engines.archive_of(SYSTEMS).runs, waiting)
    with cluster_file(tmp_path, "workers = 2").connect(print) as client:
        before = jobs()

        def kill_a_job() -> None:
            subprocess.run(["scancel", "--signal=KILL", "--full", before[0]], check=True)
            (tmp_path / "go").touch()

        with killing(tmp_path, 1, then=kill_a_job):
            found = engines.score(archive, evaluated, DaskExecutor(client, patience_s=300), engines.settings(30))
        client.wait_for_workers(2, timeout=200)
        assert len(before) == 2
        assert before[0] not in jobs()
        assert set(jobs()) - set(before)
    assert found == whole


def test_jobs_come_with_the_work_and_go_with_the_context(tmp_path: Path) -> None:
    told: list[str] = []
    evaluated = engines.evaluation(OCCURRENCES, [0, 1, 0, 1, 1], n_queries=6)
    with cluster_file(tmp_path, "minimum = 0", "workers = 2").connect(told.append) as client:
        found = engines.score(engines.archive_of(SYSTEMS), evaluated, DaskExecutor(client))
    assert found == engines.score(engines.archive_of(SYSTEMS), evaluated, SerialExecutor())
    assert told[:2] == [
        "submitting jobs to SLURM: 0 to 2",
        "waiting for 1 worker of SLURM, 600 seconds at most: 0 so far",
    ]
    assert not list(tmp_path.glob("swsdask-keys-*"))
