"""Executors in this process: serial, for small work and for debugging, and threads.

Reading, kernels and large array operations release the interpreter's lock, so that threads run at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial, reduce
from typing import Any

from swsdask.execution.executor import TASKS_AHEAD, Item, Part, Tree, execution_error
from swsdask.model.errors import SwsdaskError


class _Local(ABC):
    """An executor in this process. Parts are merged in pairs, so that a large one is rarely gone through again."""

    shares_memory = True

    def share(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def check(self, places: Sequence[str]) -> None:  # noqa: B027
        """Do nothing: tasks see what this process sees."""

    def map_reduce(
        self,
        function: Callable[[Item, Any], Part],
        items: Iterable[Item],
        merge: Callable[[Part, Part], Part],
        shared: Any = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",
    ) -> Part | None:
        """See `Executor.map_reduce`."""
        tree: Tree[Part] = Tree(lambda parts: reduce(merge, parts), fan_in=2)
        for part in self.map(function, items, shared, label=label, done=done, name=name):
            with _naming("merging partial results"):
                tree.add(part)
        return tree.total()

    def map(
        self,
        function: Callable[[Item, Any], Part],
        items: Iterable[Item],
        shared: Any = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",  # noqa: ARG002
    ) -> Iterator[Part]:
        """See `Executor.map`."""
        with closing(self._calls(function, items, shared)) as calls:
            for item, result in calls:
                with _naming(item, label):
                    part = result()
                if done is not None:
                    done(item)
                yield part

    @abstractmethod
    def _calls(
        self, function: Callable[[Item, Any], Part], items: Iterable[Item], shared: Any
    ) -> Generator[tuple[Item, Callable[[], Part]], None, None]:
        """Yield each item with what returns, or raises, its result."""


class SerialExecutor(_Local):
    """The executor that starts nothing."""

    workers = 1

    def _calls(
        self, function: Callable[[Item, Any], Part], items: Iterable[Item], shared: Any
    ) -> Generator[tuple[Item, Callable[[], Part]], None, None]:
        for item in items:
            yield item, partial(function, item, shared)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ThreadExecutor(_Local):
    """The executor over `workers` threads; parts are merged in the calling thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="swsdask")

    def _calls(
        self, function: Callable[[Item, Any], Part], items: Iterable[Item], shared: Any
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


@contextmanager
def _naming(item: Item, label: Callable[[Item], str] = str) -> Iterator[None]:
    """Name the item in the error of what fails inside."""
    try:
        yield
    except SwsdaskError:
        raise
    except Exception as error:
        raise execution_error(label(item), error) from error
