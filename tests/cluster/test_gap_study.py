"""The Monte Carlo study of GAP gives the same bits on worker processes."""

from __future__ import annotations

import pytest

from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import SerialExecutor
from swsdask.simulate.gap_study import study

pytestmark = pytest.mark.cluster


def test_the_same_bits_on_worker_processes(executor: DaskExecutor) -> None:
    assert study(11, 5, executor).tau.tobytes() == study(11, 5, SerialExecutor()).tau.tobytes()
