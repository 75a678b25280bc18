"""What an executor is: something that maps a function over items and merges what comes out. It knows no measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Part = TypeVar("Part")


class Executor(Protocol):
    """Serial, threads or dask.distributed. Results do not depend on which (law 1)."""

    workers: int
    """How many tasks run at once."""

    def share(self, value: Any) -> Any:
        """Make a value known to every worker once; the return value is what tasks are given in `shared`."""
        ...

    def map_reduce(
        self,
        function: Callable[[Item, Any], Part],
        items: Iterable[Item],
        merge: Callable[[Part, Part], Part],
        shared: Any = None,
        *,
        label: Callable[[Item], str] = str,
        done: Callable[[Item], None] | None = None,
    ) -> Part | None:
        """Everything that function(item, shared) gives, merged; None without items.

        Items are drawn lazily, a few per worker ahead. `done` is called in this process as items end. A failing item
        raises `ExecutionError` that carries `label(item)`, or the `SwsdaskError` that the item raised itself.
        """
        ...

    def close(self) -> None:
        """Let go of the workers that this executor started."""
        ...
