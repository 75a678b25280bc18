"""Executors map a function over items and merge or return the results. They are independent of measures.

Results are merged as a tree: `fan_in` parts of one level become one part of the next level. `run_tasks` returns the
results of independent tasks in order. Work reports to a `Progress`.

This module has the executors within this process: serial, for small work and for debugging, and threads. Reading,
kernels and large array operations release the interpreter's lock, so threads run in parallel.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial, reduce
from typing import Generic, Protocol, TypeVar, cast

from swsdask.model.errors import ExecutionError, ResourceError, SettingsError, SwsdaskError
from swsdask.model.limits import NO_SPACE, check_addresses, check_threads, shortage
from swsdask.model.wording import counted, cut

Item = TypeVar("Item")
Part = TypeVar("Part")
Shared = TypeVar("Shared")

_ADDRESSES, _THREADS = 1 << 30, 5
"""The address space with which threads leave enough for a small evaluation, and the number of other threads."""

TASKS_AHEAD = 4
"""The number of items per worker that are drawn but not yet done, so that no worker waits and memory stays flat."""


class Executor(Protocol):
    """Serial, threads or dask.distributed. Results do not depend on the executor."""

    @property
    def workers(self) -> int:
        """The number of tasks that run at once."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether tasks see the memory of this process, so that data need not be stored for them."""
        ...

    @property
    def folder(self) -> str | None:
        """A folder that this process and all workers see, for data that then need not be sent; None without one."""
        ...

    def share(self, value: Shared) -> Shared:
        """Send a value to every worker once. Pass the returned value as `shared` of a map, alone or in a tuple."""
        ...

    def keep(
        self,
        function: Callable[[Item, Shared], Part],
        items: Sequence[Item],
        shared: Shared | None = None,
        *,
        name: str = "map",
    ) -> list[Part]:
        """function(item, shared) of each item, kept where it was computed. Pass them as `shared`, as those of `share`.

        An item that fails raises its error, at the latest in the first map that needs it.
        """
        ...

    def check(self, places: Sequence[str]) -> None:
        """Raise `ClusterError` for a worker that lacks this code or temporary space, or does not see a file.

        `places` are the files, paths or URLs, that tasks are to read.
        """
        ...

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
        """Merge the results of function(item, shared) for all items; None without items.

        `merge` must be associative and commutative and must not change its arguments: parts are merged as they arrive,
        and again if a worker was lost. Items are drawn lazily, a few per worker ahead. `done` is called in this process
        when items end. A failing item raises an `ExecutionError` with `label(item)`, or the `SwsdaskError` that the
        item itself raised. Displays of tasks show `name`, such as the round, before the label.
        """
        ...

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
        """Yield function(item, shared) in the order of the items. Otherwise as `map_reduce`.

        Results that are not drawn yet stay where they were computed, a few per worker.
        """
        ...

    def close(self) -> None:
        """Release the workers that this executor started."""
        ...


def execution_error(what: str, cause: BaseException) -> ExecutionError | ResourceError:
    """Return the error for a failure: what failed, the cause in one line and, for lack of memory, the remedy."""
    if (short := shortage(cause, what)) is not None:
        return short
    if isinstance(cause, OSError) and cause.errno in NO_SPACE:
        where = "" if cause.filename is None else f"{cause.filename}: "
        return ResourceError(f"{what}: {where}{os.strerror(cause.errno)}. Free some space, or write elsewhere.")
    reason = str(cause).strip().split("\n", 1)[0]
    return ExecutionError(f"{what}: {type(cause).__name__}{': ' + reason if reason else ''}")


@contextmanager
def naming(item: Item, label: Callable[[Item], str] = str) -> Iterator[None]:
    """Name the item in the error of a failure within the context; a `SwsdaskError` passes unchanged."""
    try:
        yield
    except SwsdaskError:
        raise
    except Exception as error:
        raise execution_error(label(item), error) from error


class Progress(Protocol):
    """Receives the phases of the work, with their numbers of rows, and the rows that are done."""

    def begin(self, phase: str, rows: int) -> None:
        """A new phase."""
        ...

    def advance(self, rows: int) -> None:
        """Add rows of the phase that are done."""
        ...


class Unseen:
    """Progress that is not shown."""

    def begin(self, phase: str, rows: int) -> None:
        """Do nothing."""

    def advance(self, rows: int) -> None:
        """Do nothing."""


def or_unseen(progress: Progress | None) -> Progress:
    """Return the given progress, or one that is not shown. Raises `SettingsError` for an object of another kind."""
    if progress is not None and not hasattr(progress, "begin"):
        found = cut(repr(progress))
        raise SettingsError(f"progress: expected an object with the methods begin and advance; found {found}.")
    return progress or Unseen()


class Tree(Generic[Part]):
    """Parts that wait to be joined: fewer than `fan_in` per level, so their number grows with the logarithm of all.

    `join` makes one part of a list of parts. If parts are futures, it may return a future of the joined part.
    """

    def __init__(self, join: Callable[[list[Part]], Part], fan_in: int) -> None:
        self._join = join
        self._fan_in = fan_in
        self._levels: list[list[Part]] = []

    def add(self, part: Part) -> None:
        """Add a part."""
        for level in self._levels:
            level.append(part)
            if len(level) < self._fan_in:
                return
            part = self._join(level.copy())
            level.clear()
        self._levels.append([part])

    @property
    def waiting(self) -> list[Part]:
        """The parts that wait to be joined."""
        return [part for level in self._levels for part in level]

    def total(self) -> Part | None:
        """Return all parts joined, or None if there are none. The tree cannot be used afterwards."""
        rest: list[Part] = []
        for level in self._levels:
            waiting = [*level, *rest]
            rest = [self._join(waiting)] if len(waiting) > 1 else waiting
        return rest[0] if rest else None


def run_tasks(
    executor: Executor,
    function: Callable[[Item, Shared], Part],
    items: Sequence[Item],
    shared: Shared,
    label: Callable[[Item], str],
    done: Callable[[Item], None] | None,
) -> list[Part]:
    """Return function(item, shared) of every item, in the order of the items.

    `done` is called in this process with every item that has ended.
    """
    return list(executor.map(function, items, executor.share(shared), label=label, done=done))


class _LocalExecutor(ABC):
    """An executor in this process. Parts are merged in pairs, so that large parts are rarely merged again."""

    shares_memory = True
    folder = None

    def share(self, value: Shared) -> Shared:
        """Return the value itself."""
        return value

    def keep(
        self,
        function: Callable[[Item, Shared], Part],
        items: Sequence[Item],
        shared: Shared | None = None,
        *,
        name: str = "map",
    ) -> list[Part]:
        """See `Executor.keep`."""
        return list(self.map(function, items, shared, name=name))

    def check(self, places: Sequence[str]) -> None:  # noqa: B027
        """Do nothing: tasks see what this process sees."""

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
        """See `Executor.map_reduce`."""
        tree: Tree[Part] = Tree(lambda parts: reduce(merge, parts), fan_in=2)
        for part in self.map(function, items, shared, label=label, done=done, name=name):
            with naming("merging partial results"):
                tree.add(part)
        return tree.total()

    def map(
        self,
        function: Callable[[Item, Shared], Part],
        items: Iterable[Item],
        shared: Shared | None = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",  # noqa: ARG002
    ) -> Iterator[Part]:
        """See `Executor.map`."""
        # Without `shared`, functions receive None.
        call = cast("Callable[[Item, Shared | None], Part]", function)
        with closing(self._calls(call, items, shared)) as calls:
            for item, result in calls:
                with naming(item, label):
                    part = result()
                if done is not None:
                    done(item)
                yield part

    @abstractmethod
    def _calls(
        self, function: Callable[[Item, Shared], Part], items: Iterable[Item], shared: Shared
    ) -> Generator[tuple[Item, Callable[[], Part]], None, None]:
        """Yield each item with a function that returns or raises its result."""


class SerialExecutor(_LocalExecutor):
    """The executor without threads or processes."""

    workers = 1

    def _calls(
        self, function: Callable[[Item, Shared], Part], items: Iterable[Item], shared: Shared
    ) -> Generator[tuple[Item, Callable[[], Part]], None, None]:
        for item in items:
            yield item, partial(function, item, shared)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ThreadExecutor(_LocalExecutor):
    """The executor over `workers` threads; parts are merged in the calling thread."""

    def __init__(self, workers: int) -> None:
        check_addresses(_ADDRESSES, "a process with threads")
        check_threads(_THREADS + workers, f"a process with {counted(workers, 'threads')}")
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="swsdask")

    def _calls(
        self, function: Callable[[Item, Shared], Part], items: Iterable[Item], shared: Shared
    ) -> Generator[tuple[Item, Callable[[], Part]], None, None]:
        running: deque[tuple[Item, Future[Part]]] = deque()
        try:
            for item in items:
                running.append((item, self._pool.submit(function, item, shared)))
                if len(running) >= self.workers * TASKS_AHEAD:
                    first, future = running.popleft()
                    yield first, future.result
            while running:
                first, future = running.popleft()
                yield first, future.result
        finally:
            for _, future in running:
                future.cancel()
            wait([future for _, future in running])

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)
