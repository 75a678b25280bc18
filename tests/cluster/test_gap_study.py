"""The Monte Carlo study of GAP gives the same bits on worker processes."""

from __future__ import annotations

import pytest

from swsdask.comparison.gap_study import gap_study
from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import SerialExecutor

pytestmark = pytest.mark.cluster


def test_the_same_bits_on_worker_processes(executor: DaskExecutor) -> None:
    assert gap_study(11, 5, executor).tau.tobytes() == gap_study(11, 5, SerialExecutor()).tau.tobytes()
