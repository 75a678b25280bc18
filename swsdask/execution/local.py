"""Executors in this process: serial, for small work and for debugging, and threads.

Reading, kernels and large array operations release the interpreter's lock, so that threads run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import reduce
from typing import Any

from swsdask.execution.executor import TASKS_AHEAD, Item, Part, Tree, execution_error
from swsdask.model.errors import SwsdaskError


class SerialExecutor:
    """The executor that starts nothing. Parts are merged in pairs, so that a large one is rarely gone through again."""

    workers = 1
    shares_memory = True

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def check(self, places: Sequence[str]) -> None:
        """Nothing: tasks see what this process sees."""

    def map_reduce(
        self,
        function: Callable[[Item, Any], Part],
        items: Iterable[Item],
        merge: Callable[[Part, Part], Part],
        shared: Any = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",  # noqa: ARG002
    ) -> Part | None:
        """See `Executor.map_reduce`."""
        tree: Tree[Part] = Tree(lambda parts: reduce(merge, parts), fan_in=2)
        for item in items:
            try:
                tree.add(function(item, shared))
            except SwsdaskError:
                raise
            except Exception as error:
                raise execution_error(label(item), error) from error
            if done is not None:
                done(item)
        return tree.total()

    def close(self) -> None:
        """There is nothing to release."""


class ThreadExecutor:
    """The executor over `workers` threads; parts are merged in pairs in the calling thread, in the order they come."""

    shares_memory = True

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="swsdask")

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def check(self, places: Sequence[str]) -> None:
        """Nothing: tasks see what this process sees."""

    def map_reduce(
        self,
        function: Callable[[Item, Any], Part],
        items: Iterable[Item],
        merge: Callable[[Part, Part], Part],
        shared: Any = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
        name: str = "map",  # noqa: ARG002
    ) -> Part | None:
        """See `Executor.map_reduce`."""
        tree: Tree[Part] = Tree(lambda parts: reduce(merge, parts), fan_in=2)
        running: dict[Future[Part], Item] = {}

        def collect() -> None:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                item = running.pop(future)
                try:
                    tree.add(future.result())
                except SwsdaskError:
                    raise
                except Exception as error:
                    raise execution_error(label(item), error) from error
                if done is not None:
                    done(item)

        try:
            for item in items:
                running[self._pool.submit(function, item, shared)] = item
                if len(running) >= self.workers * TASKS_AHEAD:
                    collect()
            while running:
                collect()
        finally:
            for future in running:
                future.cancel()
            wait(running)
        return tree.total()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)
