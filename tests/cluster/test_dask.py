"""The executor on worker processes: what every executor promises, and what happens when workers die."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest

import swsdask
from swsdask.execution.clusters import LocalProcesses, RunningAt, RunningByFile
from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import TASKS_AHEAD
from swsdask.execution.open import cluster
from swsdask.model.errors import ClusterError, ExecutionError
from tests.cluster import cells
from tests.cluster.conftest import Elsewhere, killing

pytestmark = pytest.mark.cluster


def test_everything_is_mapped_with_what_is_shared_and_merged(executor: DaskExecutor) -> None:
    ended: list[int] = []
    shared = (executor.share(100), executor.share(1))
    total = executor.map_reduce(cells.linear, range(30), cells.add, shared, done=ended.append)
    assert total == sum(item * 100 + 1 for item in range(30))
    assert sorted(ended) == list(range(30))
    assert executor.map_reduce(cells.linear, [7], cells.add, shared) == 701
    assert executor.map_reduce(cells.linear, [], cells.add, shared) is None


def test_what_is_shared_stays_on_the_workers(executor: DaskExecutor) -> None:
    """Not one copy per task; though Dask may drop one that no task waits for just then, and fetch it again."""
    found = executor.map_reduce(cells.where, range(80), cells.union, executor.share(list(range(1000))))
    assert found is not None
    assert len({process for process, _ in found}) == executor.workers == 2
    assert len(found) < 20


def test_items_are_drawn_only_a_few_ahead(executor: DaskExecutor) -> None:
    drawn = ended = most = 0

    def items() -> Iterator[int]:
        nonlocal drawn, most
        for item in range(60):
            drawn += 1
            most = max(most, drawn - ended)
            yield item

    def end(item: int) -> None:
        nonlocal ended
        ended += 1

    executor.map_reduce(cells.linear, items(), cells.add, (1, 0), done=end)
    assert most <= 2 * TASKS_AHEAD


def test_an_unexpected_failure_carries_the_label_and_the_cause(executor: DaskExecutor) -> None:
    with pytest.raises(ExecutionError, match=r"^cell 3: ZeroDivisionError: .*by zero$") as caught:
        executor.map_reduce(cells.invert, range(9), cells.add, label="cell {}".format)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_failing_merge_is_told(executor: DaskExecutor) -> None:
    with pytest.raises(ExecutionError, match=r"^merging partial results: ArithmeticError: they do not add up$"):
        executor.map_reduce(cells.linear, range(5), cells.unmergeable, (1, 0))


def test_a_task_that_kills_every_worker_ends_with_advice(tmp_path: Path) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalProcesses(workers=1).connected(print) as client,
        pytest.raises(ClusterError, match=r"^cell 0: the workers that tried it died.*smaller rows_per_task"),
    ):
        DaskExecutor(client).map_reduce(cells.die, [0], cells.add, label="cell {}".format)


def test_all_workers_lost_for_good(elsewhere: Elsewhere, tmp_path: Path) -> None:
    def kill() -> None:
        for worker in elsewhere.workers:
            worker.kill()
            worker.wait()

    with RunningByFile(path=elsewhere.file, workers=2).connected(print) as client:
        executor = DaskExecutor(client, patience_s=1.5)
        assert executor.map_reduce(cells.linear, range(5), cells.add, (1, 0)) == 10
        with (
            killing(tmp_path, 2, then=kill),
            pytest.raises(ClusterError, match=r"no scheduler or no workers for 1\.5 seconds.*run the command again"),
        ):
            executor.map_reduce(cells.wait, [tmp_path] * 4, cells.add)


def test_the_scheduler_lost(elsewhere: Elsewhere, tmp_path: Path) -> None:
    with cluster(elsewhere.file) as executor:
        executor.map_reduce(cells.linear, range(5), cells.add, (1, 0))
        with (
            killing(tmp_path, 1, then=elsewhere.kill),
            pytest.raises(ClusterError, match=r"the connection to the scheduler broke.*run the command again"),
        ):
            executor.map_reduce(cells.wait, [tmp_path] * 4, cells.add)
        with pytest.raises(ClusterError, match=r"the connection to the scheduler is "):
            executor.map_reduce(cells.linear, range(5), cells.add, (1, 0))


def test_workers_of_another_version_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swsdask, "__version__", "0.0.9")
    address = client.cluster.scheduler_address
    with (
        pytest.raises(ClusterError, match=r"worker tcp://.* has swsdask .*, this is 0\.0\.9"),
        RunningAt(address=address).connected(print),
    ):
        pass


def test_too_few_workers(client: Any) -> None:
    told: list[str] = []
    address = client.cluster.scheduler_address
    with (
        pytest.raises(ClusterError, match=r"fewer than 50 workers after 0\.2 seconds: 2 there"),
        RunningAt(address=address, workers=50, timeout_s=0.2).connected(told.append),
    ):
        pass
    assert told == [
        f"connecting to the scheduler at {address}, 0.2 seconds at most",
        f"waiting for 50 workers of the scheduler at {address}, 0.2 seconds at most: 2 there",
    ]


def test_a_worker_is_restarted_however_soon_dask_looks_for_it() -> None:
    """Dask's own check, here at once, would end the nanny that is restarting the worker."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}),
        LocalProcesses(workers=1).connected(print) as client,
    ):
        (process,) = client.run(os.getpid).values()
        lost = set(client.nthreads())
        os.kill(process, signal.SIGKILL)
        until = time.monotonic() + 120
        while not set(client.nthreads()) - lost:
            assert time.monotonic() < until, "the worker was not restarted"
            time.sleep(0.1)
