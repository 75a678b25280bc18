"""Comparisons and errors on worker processes: the same bits as in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import swsdask as sws
from swsdask.api.runs import given_runs
from swsdask.api.scoring import score_observed
from swsdask.comparison.compare import compare, pairs_of
from swsdask.execution.dask import DaskExecutor
from swsdask.model.comparison import Resampling
from swsdask.scoring import detections
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.cluster.cells import NotedAverages, NotedSystems
from tests.replicates import write_turned

pytestmark = pytest.mark.cluster

MEASURES = "atwv otwv stwv map mgap mtwv twv_bayes cxe cnxe cnxe_min ap".split()


def test_worker_processes_give_the_same_bits_in_any_order(tmp_path: Path) -> None:
    """Systems and queries are in the opposite order there."""
    there, turned = tmp_path / "there", tmp_path / "turned"
    write(simulate(11, hours=0.4, n_queries=18, systems=SYSTEMS[:3]), there)
    write_turned(there, turned)
    compared, listed = [], []
    for name, folder in (("serial", there), ("processes", turned)):
        evaluation = sws.open(folder, settings={"engine": {"rows_per_task": 50}})
        runs = [str(path) for path in sorted((folder / "runs").iterdir(), reverse=folder == turned)]
        with sws.cluster(name, workers=2) as executor:
            compared.append(sws.compare(evaluation, MEASURES, runs=runs, replicates=20, executor=executor))
            listed.append(sws.errors(evaluation, runs=runs, executor=executor))
    assert compared[0].interval_table.equals(compared[1].interval_table)
    assert compared[0].difference_table.to_pandas().equals(compared[1].difference_table.to_pandas())
    assert listed[0].query_table.equals(listed[1].query_table)
    assert listed[0].event_table.equals(listed[1].event_table)


@pytest.mark.parametrize("adjust", ["holm", "max-t"])
def test_workers_resample_and_test_pairs_and_the_bits_are_the_same(
    executor: DaskExecutor, tmp_path: Path, adjust: Literal["holm", "max-t"]
) -> None:
    """Twenty systems make more pairs than one task takes; some lack queries that others have."""
    noted = [tmp_path / name for name in ("here", "there")]
    rng = np.random.default_rng(5)
    columns = rng.random((20, 1, 30))
    columns[::3, :, :4] = np.nan
    compared = []
    for folder, where in zip(noted, (None, executor), strict=True):
        folder.mkdir()
        by_system = {f"s{n:02d}": NotedAverages(0.0, (1.0,), column, folder) for n, column in enumerate(columns)}
        how = Resampling(replicates=400, adjust=adjust)
        pairs = pairs_of(by_system)
        compared.append(compare({"all": {"map": by_system}}, {"all": 30}, by_system, how, pairs, executor=where))
    here, there = ({int(each.name.partition("-")[2]) for each in folder.iterdir()} for folder in noted)
    assert here == {os.getpid()}
    assert there
    assert os.getpid() not in there
    assert compared[0].interval_table.equals(compared[1].interval_table)
    assert compared[0].difference_table.equals(compared[1].difference_table)
    assert compared[0].notes == compared[1].notes
    assert compared[0].difference_table.num_rows == 190


@pytest.mark.parametrize("rows_of_a_small_run", [0, 1_000_000])
def test_workers_observe_systems(
    executor: DaskExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_of_a_small_run: int
) -> None:
    """Of a run that is several tasks, and of one that is part of a task, only what was taken comes back."""
    monkeypatch.setattr(detections, "FEW_ROWS", rows_of_a_small_run)
    write(simulate(11, hours=0.2, n_queries=8, systems=SYSTEMS[:3]), tmp_path)
    taken = []
    for where in (executor, "serial"):
        given = given_runs(tmp_path / "runs")
        _, observed = score_observed(
            sws.open(tmp_path), ["n_target"], given, (), executor=where, observer=NotedSystems()
        )
        taken.append(observed)
    there, here = taken
    assert os.getpid() not in {pid for pid, *_ in there.values()}
    assert {pid for pid, *_ in here.values()} == {os.getpid()}
    assert {system: found for system, (_, *found) in there.items()} == {s: found for s, (_, *found) in here.items()}
    assert len(here) == 3
