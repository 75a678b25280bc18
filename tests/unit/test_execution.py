"""What serial and threads promise alike; the cluster's executor has the same tests in tests/cluster."""

import operator
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from swsdask.execution.executor import TASKS_AHEAD, Executor, SerialExecutor, ThreadExecutor, execution_error
from swsdask.model.errors import ExecutionError, InputError, Problem, ResourceError
from tests.engines import most_ahead


@pytest.fixture(params=["serial", "threads"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made: Executor = SerialExecutor() if request.param == "serial" else ThreadExecutor(2)
    yield made
    made.close()


def test_everything_is_mapped_with_what_is_shared_and_merged(executor: Executor) -> None:
    ended: list[int] = []
    shared = (executor.share(100), executor.share(1))
    total = executor.map_reduce(
        lambda item, both: item * both[0] + both[1], range(50), operator.add, shared, done=ended.append
    )
    assert total == sum(item * 100 + 1 for item in range(50))
    assert sorted(ended) == list(range(50))


def test_what_is_mapped_comes_in_the_order_of_the_items(executor: Executor) -> None:
    found = executor.map(lambda item, shared: time.sleep(0.01 * (item == 0)) or item + shared, range(20), 7)
    assert list(found) == list(range(7, 27))


def test_no_items_give_none(executor: Executor) -> None:
    assert executor.map_reduce(lambda item, shared: item, [], operator.add) is None


def test_items_are_drawn_only_a_few_ahead(executor: Executor) -> None:
    assert most_ahead(executor, 200) <= executor.workers * TASKS_AHEAD


def test_an_unexpected_failure_carries_the_label_and_the_cause(executor: Executor) -> None:
    with pytest.raises(ExecutionError, match=r"^cell 3: ZeroDivisionError: .*by zero$") as caught:
        executor.map_reduce(lambda item, shared: 1 // (item - 3), range(9), operator.add, label="cell {}".format)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_error_of_ours_comes_through_as_it_is(executor: Executor) -> None:
    error = InputError(Problem("a.tsv", 7, "a number", "x", "Correct it."))

    def fail(item: int, shared: None) -> int:
        raise error

    with pytest.raises(InputError) as caught:
        executor.map_reduce(fail, range(3), operator.add, label="cell {}".format)
    assert caught.value is error


def test_nothing_runs_on_after_a_failure() -> None:
    threads = ThreadExecutor(2)
    begun: list[int] = []
    gate = threading.Event()

    def work(item: int, shared: None) -> int:
        begun.append(item)
        if item == 0:
            raise ValueError("no")
        gate.wait(10)
        return item

    timer = threading.Timer(0.2, gate.set)
    timer.start()
    with pytest.raises(ExecutionError):
        threads.map_reduce(work, range(1000), operator.add)
    timer.join()
    assert threads.map_reduce(lambda item, shared: item, range(5), operator.add) == 10
    assert len(begun) <= 2 * TASKS_AHEAD
    threads.close()


def test_what_waits_for_a_thread_is_cancelled_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = ThreadExecutor(1)
    begun: list[int] = []
    cancelled: list[Future[int]] = []
    all_cancelled = threading.Event()
    cancel = Future.cancel

    def noted(future: Future[int]) -> bool:
        done = cancel(future)
        cancelled.append(future)
        if len(cancelled) == TASKS_AHEAD - 1:
            all_cancelled.set()
        return done

    def work(item: int, shared: None) -> int:
        begun.append(item)
        if item == 0:
            raise ValueError("no")
        assert all_cancelled.wait(60)
        return item

    monkeypatch.setattr(Future, "cancel", noted)
    with pytest.raises(ExecutionError):
        threads.map_reduce(work, range(TASKS_AHEAD), operator.add)
    threads.close()
    assert begun in ([0], [0, 1])


def test_the_cause_is_reported_in_one_line() -> None:
    assert str(execution_error("x", ValueError("first\nsecond"))) == "x: ValueError: first"
    assert str(execution_error("x", AssertionError())) == "x: AssertionError"
    short = execution_error("x", MemoryError())
    assert isinstance(short, ResourceError)
    assert str(short).startswith("x: out of memory. ")


def test_scoring_without_a_cluster_does_not_import_dask() -> None:
    """Nor pandas, where Arrow leaves it: versions before 26 import it for the type of a column."""
    code = (
        "import sys\n"
        "import pyarrow\n"
        "pyarrow.int32().to_pandas_dtype()\n"
        "by_arrow = set(sys.modules)\n"
        "from swsdask.execution.open import open_executor\n"
        "from swsdask.model.settings import EngineSettings\n"
        "import swsdask.scoring.score\n"
        "for name in ('auto', 'serial', 'threads'):\n"
        "    with open_executor(EngineSettings(executor=name), 1000) as executor: pass\n"
        "print(sorted({'dask', 'distributed', 'pandas'} & (set(sys.modules) - by_arrow)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
