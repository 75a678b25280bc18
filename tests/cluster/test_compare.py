"""Comparisons and errors on worker processes: the same bits as in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

import swsdask as sws
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.systems import SYSTEMS
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
