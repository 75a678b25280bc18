"""Tasks on the workers of dask.distributed, only by its public futures API.

Tasks are submitted in waves, so that the client holds only a few per worker. Parts are merged as a tree on the workers.
Each merge is submitted together with the last task that it needs, and only the final part is returned. Results that are
not merged are returned task by task. Results of a lost worker are computed again. Data that tasks share are a task's
result too, not scattered data, so they survive the loss of every worker that had them. They are sent pickled, so that
only workers unpickle them. The scheduler would unpickle them too; if it is in this process, cloudpickle would change
classes of `__main__`, such as a measure of the user.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pickle import PickleBuffer  # nosec B403
from queue import Empty, SimpleQueue
from socket import gethostname
from typing import Any, cast
from uuid import uuid4

import cloudpickle
import dask
import numpy as np
from distributed import CancelledError, Client, Future, KilledWorker, Worker, WorkerPlugin
from numpy.typing import NDArray

from swsdask.execution.checks import check_answers, looking, within
from swsdask.execution.executor import TASKS_AHEAD, Item, Part, Shared, Tree, execution_error
from swsdask.model.errors import ClusterError, SwsdaskError
from swsdask.model.wording import counted
from swsdask.places.store_options import options, set_options, unset_options

LOG = logging.getLogger("swsdask")

RETRIES = 2
"""The number of retries of a task that raised an error: network storage sometimes fails."""

POLL_S = 1.0
"""The time without a finished task after which the cluster is checked."""

RECOUNT_S = 1.0
"""The time for which the number of workers is assumed to be unchanged."""

LEAST_AHEAD = 32
"""The least number of submitted tasks, so that an adaptive cluster sees that there is work for more workers."""

ANSWER_S = 60.0
"""The least time that a scheduler or a worker may be silent: it imports modules for the first tasks."""

CANCEL_S = 5.0
"""The time to wait for a scheduler to remove a plugin."""

MORE_MEMORY = "Give each worker more memory, or set a smaller rows_per_task."

RESUME = "What was stored is untouched: run the command again when the cluster works."


class DaskExecutor:
    """The executor over the workers of a connected client, which its owner closes.

    If the cluster has no scheduler or no workers, or all workers are paused, and no task ends for `patience_s`, a
    `ClusterError` is raised. A worker that is silent for so long is restarted; if it has no nanny to do this, a
    `ClusterError` is raised. `folder` is one that all workers see.
    """

    shares_memory = False

    def __init__(self, client: Client, fan_in: int = 8, patience_s: float = 60.0, folder: str | None = None) -> None:
        self.folder = folder
        self._client = client
        self._fan_in = fan_in
        self._patience_s = patience_s
        self._most = LEAST_AHEAD
        self._counted_at = -RECOUNT_S
        self._present: frozenset[str] = frozenset()

    @property
    def workers(self) -> int:
        """The number of threads of all workers, now; 1 while there are none.

        Raises `ClusterError` if the scheduler does not answer.
        """
        return max(1, sum(self._threads().values()))

    def _threads(self) -> dict[str, int]:
        """Return the number of threads of each worker by its address."""
        if self._client.status != "running":
            raise ClusterError(f"the connection to the scheduler is {self._client.status}. {RESUME}")
        try:
            threads: dict[str, int] = within(max(self._patience_s, ANSWER_S), self._client.nthreads)
        except OSError:  # a TimeoutError too
            raise ClusterError(f"the scheduler does not answer. {RESUME}") from None
        return threads

    def share(self, value: Shared) -> Shared:
        """A future of the value: workers that need it fetch it from a neighbour, and keep it while tasks need it."""
        buffers: list[PickleBuffer] = []
        pickled = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        arrays = [np.asarray(buffer.raw()) for buffer in buffers]  # Dask sends them as they are, without a copy.
        key = f"share-{uuid4().hex}"
        return cast("Shared", self._submit(_unpickle, pickled, *arrays, key=key, priority=1))

    def keep(
        self,
        function: Callable[[Item, Shared], Part],
        items: Sequence[Item],
        shared: Shared | None = None,
        *,
        name: str = "map",
    ) -> list[Part]:
        """Futures of the values. Maps that need one that failed fail with its error."""
        return [cast("Part", future) for future, _ in self._tasks(function, items, shared, str, name)]

    def check(self, places: Sequence[str]) -> None:
        """See `Executor.check`."""
        look = looking(places, options())
        try:
            answers = within(max(self._patience_s, ANSWER_S), lambda: self._client.run(look, on_error="return"))
        except TimeoutError:
            raise ClusterError(f"a worker does not answer. {RESUME}") from None
        except OSError as error:
            raise _broke(error) from error
        check_answers(answers)

    def map_reduce(
        self,
        function: Callable[[Item, Shared], Part],
        items: Iterable[Item],
        merge: Callable[[Part, Part], Part],
        shared: Shared | None = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",
    ) -> Part | None:
        """See `Executor.map_reduce`. Raises `ClusterError` when the scheduler or all workers are lost for good."""
        watch = _FutureWatch(self._client, self._patience_s)
        ended: SimpleQueue[Future[object]] = SimpleQueue()
        running: dict[object, tuple[Future[object], Item]] = {}

        def join(parts: list[Future[object]]) -> Future[object]:
            return self._submit(_merge_parts, merge, parts, key=f"merge-{uuid4().hex}", priority=1)

        def collect() -> None:
            self._recount()
            future, item = running.pop(watch.next_of(ended).key)
            _raise_failure(future, label(item))
            if done is not None:
                done(item)

        tree: Tree[Future[object]] = Tree(join, self._fan_in)
        try:
            for future, item in self._tasks(function, items, shared, label, name):
                running[future.key] = (future, item)
                future.add_done_callback(ended.put)
                tree.add(future)
                if len(running) >= self._most:
                    collect()
            total = tree.total()
            if total is None:
                return None
            while running:
                collect()
            part: Part = self._result(watch, total, "merging partial results")
            return part
        finally:
            self._release([*(future for future, _ in running.values()), *tree.waiting])

    def map(
        self,
        function: Callable[[Item, Shared], Part],
        items: Iterable[Item],
        shared: Shared | None = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",
    ) -> Iterator[Part]:
        """See `Executor.map`. Raises `ClusterError` as `map_reduce` does."""
        watch = _FutureWatch(self._client, self._patience_s)
        running: deque[tuple[Future[object], Item]] = deque()

        def first() -> Part:
            self._recount()
            future, item = running[0]
            part: Part = self._result(watch, future, label(item))
            running.popleft()[0].release()
            if done is not None:
                done(item)
            return part

        try:
            for each in self._tasks(function, items, shared, label, name):
                running.append(each)
                if len(running) >= self._most:
                    yield first()
            while running:
                yield first()
        finally:
            self._release([future for future, _ in running])

    def _tasks(
        self,
        function: Callable[..., object],
        items: Iterable[Item],
        shared: object,
        label: Callable[[Item], str],
        name: str,
    ) -> Iterator[tuple[Future[object], Item]]:
        """Submit each item as it is drawn."""
        unique = uuid4().hex
        self._counted_at, self._present = -RECOUNT_S, frozenset()
        for number, item in enumerate(items):
            self._recount()
            yield self._submit(function, item, shared, key=(name, label(item), f"{unique}-{number}")), item

    def _result(self, watch: _FutureWatch, future: Future[object], what: str) -> Any:
        """Wait for the result of a future; raise its failure as an error of swsdask."""
        ended: SimpleQueue[Future[object]] = SimpleQueue()
        future.add_done_callback(ended.put)
        watch.next_of(ended)
        _raise_failure(future, what)
        return watch.result_of(future)

    def _release(self, futures: Iterable[Future[object]]) -> None:
        """Release futures after a failure: the scheduler forgets tasks that no client holds.

        Client.cancel is not used: with a waiting merge that only another merge holds, it would end the connection.
        """
        if self._client.status == "running":
            for future in futures:
                future.release()

    def close(self) -> None:
        """Do nothing: the owner of the client closes it."""

    def _recount(self) -> None:
        """Count the workers, which come and go, once a second: for the limit of submitted tasks, and to report losses.

        Dask's own log of lost workers is switched off, and losses explain why a run is slow.
        """
        now = time.monotonic()
        if now - self._counted_at < RECOUNT_S:
            return
        threads = self._threads()
        for address in sorted(self._present - threads.keys()):
            LOG.warning("worker %s left the cluster: its unfinished tasks run again on other workers.", address)
        self._present = frozenset(threads)
        self._most = max(LEAST_AHEAD, sum(threads.values()) * TASKS_AHEAD)
        self._counted_at = now

    def _submit(
        self, function: Callable[..., object], *arguments: object, key: object, priority: int = 0
    ) -> Future[object]:
        """Return a future of function(*arguments), which begins after those that were submitted before.

        Dask's warning of large arguments is switched off.
        """
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self._client.submit(
                function, *arguments, key=key, retries=RETRIES, priority=priority, fifo_timeout="0 s"
            )


class StoreOptions(WorkerPlugin):
    """Sets the options of stores on every worker, also on later ones, until the plugin is removed."""

    def __init__(self, given: Mapping[str, Mapping[str, object]]) -> None:
        self.name = f"swsdask store options {uuid4()}"
        self._given = given
        self._sender = _this_process()

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        """Called on a worker."""
        if self._sender != _this_process():
            set_options(self._given)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Called on a worker."""
        if self._sender != _this_process():
            unset_options(self._given)


def _this_process() -> tuple[str, int]:
    return gethostname(), os.getpid()


@contextmanager
def sent_options(client: Client, *, shared: bool) -> Iterator[None]:
    """Give the workers this process's options of stores until the context ends.

    Workers that are `shared` may have the options of other commands, so they get even empty options.
    """
    if not shared and not options():
        yield
        return
    plugin = StoreOptions(options())
    try:
        within(ANSWER_S, lambda: client.register_plugin(plugin))
    except OSError as error:  # A TimeoutError too.
        raise _broke(error) from error
    try:
        yield
    finally:
        with suppress(OSError):  # A TimeoutError too: the scheduler is gone.
            within(CANCEL_S, lambda: client.unregister_worker_plugin(plugin.name))


class _FutureWatch:
    """Waits for futures, and detects a cluster without usable workers and workers that have stopped."""

    def __init__(self, client: Client, patience_s: float) -> None:
        self._client = client
        self._patience_s = patience_s
        self._silence_s = max(patience_s, ANSWER_S)
        self._well = time.monotonic()
        self._heard: dict[str, tuple[float, float]] = {}
        """The time of each worker's last sign of life, by the scheduler's clock, and of its arrival here, by ours."""

    def next_of(self, ended: SimpleQueue[Future[object]]) -> Future[object]:
        while True:
            try:
                future = ended.get(timeout=POLL_S)
            except Empty:
                self._look()
            else:
                self._well = time.monotonic()
                return future

    def result_of(self, future: Future[object]) -> object:
        while True:
            try:
                return future.result(timeout=self._patience_s)
            except TimeoutError:
                self._look()
            except (CancelledError, OSError) as error:
                raise _broke(error) from error

    def _look(self) -> None:
        """Raise `ClusterError` if no task has ended for `patience_s`, and the cluster is the reason."""
        fault = self._fault()
        now = time.monotonic()
        if fault is None:
            self._well = now
        elif now - self._well >= self._patience_s:
            patience = counted(self._patience_s, "seconds", "g")
            raise ClusterError(f"{fault.format(patience=patience)} {RESUME}")

    def _fault(self) -> str | None:
        """Return the fault that keeps the cluster from completing a task, None if there is none."""
        nobody = "the cluster has had no scheduler that answers, or no workers, for {patience}."
        if self._client.status != "running":
            return nobody
        try:
            if not within(self._silence_s, self._client.nthreads):
                return nobody
            workers = within(self._silence_s, lambda: self._client.scheduler_info(n_workers=-1))["workers"]
        except OSError:  # a TimeoutError too
            return nobody
        self._heed_silent(workers)
        if workers and all(worker["status"] == "paused" for worker in workers.values()):
            return f"all workers have been paused for {{patience}}, for lack of memory. {MORE_MEMORY}"
        return None

    def _heed_silent(self, workers: Mapping[str, Mapping[str, float]]) -> None:
        """Restart workers that have been silent for `patience_s`, and for `ANSWER_S` at least.

        A process that is stopped, or whose machine is gone, keeps its connections, so the scheduler waits for it.
        Raises `ClusterError` for a worker without a nanny, which cannot be restarted.
        """
        now = time.monotonic()
        before, self._heard = self._heard, {}
        for address, worker in workers.items():
            last, since = before.get(address, (None, now))
            if last != worker["last_seen"]:
                since = now
            elif now - since >= self._silence_s:
                self._restart(address, can_be=bool(worker["nanny"]))
                continue
            self._heard[address] = worker["last_seen"], since

    def _restart(self, address: str, *, can_be: bool) -> None:
        if not can_be:
            raise ClusterError(
                f"worker {address} has not responded for {counted(self._silence_s, 'seconds', 'g')}, and has no "
                f"nanny that could restart it. Restart it, or remove it from the cluster. {RESUME}"
            )
        with suppress(TimeoutError, OSError):
            within(ANSWER_S, lambda: self._client.restart_workers([address], raise_for_error=False))


def _broke(error: Exception) -> ClusterError:
    return ClusterError(f"the connection to the scheduler broke: {str(error) or 'it does not answer'}. {RESUME}")


def _unpickle(pickled: bytes, *buffers: NDArray[np.uint8]) -> object:
    return cloudpickle.loads(pickled, buffers=buffers)


def _merge_parts(merge: Callable[[Part, Part], Part], parts: list[Part]) -> Part:
    return reduce(merge, parts)


def _raise_failure(future: Future[object], what: str) -> None:
    """Raise the failure of a future as an error of swsdask.

    A result that was lost later with its worker is no failure: the scheduler computes it again.
    """
    if future.cancelled():
        raise ClusterError(f"{what}: the connection to the scheduler broke. {RESUME}")
    if future.status != "error":
        return
    cause = future.exception()
    if isinstance(cause, SwsdaskError):
        raise cause
    if isinstance(cause, KilledWorker):
        raise ClusterError(
            f"{what}: the workers that tried it died, one after the other, probably for lack of memory. {MORE_MEMORY}"
        ) from cause
    raise execution_error(what, cause) from cause
