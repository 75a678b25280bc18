"""What an executor is: something that maps a function over items and merges what comes out. It knows no measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from swsdask.errors import ExecutionError

Item = TypeVar("Item")
Part = TypeVar("Part")

TASKS_AHEAD = 4
"""How many items per worker are drawn and not yet done: enough that no worker waits, few enough for flat memory."""


class Executor(Protocol):
    """Serial, threads or dask.distributed. Results do not depend on which (law 1)."""

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether tasks see this process's memory, so that data need not be stored for them."""
        ...

    def share(self, value: Any) -> Any:
        """Make a value known to every worker once; the return value, or a tuple of such, is a map's `shared`."""
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

        `merge` is associative and commutative and leaves its arguments as they are: parts are merged as they come, and
        again where a worker was lost. Items are drawn lazily, a few per worker ahead. `done` is called in this process
        as items end. A failing item raises `ExecutionError` that carries `label(item)`, or the `SwsdaskError` that the
        item raised itself.
        """
        ...

    def close(self) -> None:
        """Let go of the workers that this executor started."""
        ...


def execution_error(what: str, cause: BaseException) -> ExecutionError:
    """The error for something that failed unexpectedly: what it was, and the cause in one line."""
    reason = str(cause).strip().split("\n", 1)[0]
    return ExecutionError(f"{what}: {type(cause).__name__}{': ' + reason if reason else ''}")
