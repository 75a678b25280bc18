"""Many independent tasks, here or on an executor, with their results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


class Executor(Protocol):
    """What is needed of an engine's executor."""

    def share(self, value: Any) -> Any:
        """Make a value known to every worker."""
        ...

    def map_reduce(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        shared: Any = None,
        *,
        label: Callable[[Any], str] = str,
        done: Callable[[Any], None] | None = None,
    ) -> Any:
        """Everything that function(item, shared) gives, merged; None without items."""
        ...


def run_tasks(
    executor: Executor | None,
    function: Callable[[Item, Any], Found],
    items: Sequence[Item],
    shared: Any,
    label: Callable[[Item], str],
    done: Callable[[str], None] | None = None,
) -> list[Found]:
    """function(item, shared) of every item, in the order of the items; without an executor one after the other, here.

    `done` is called in this process with the label of every item that has ended.
    """
    if executor is None:
        found = []
        for item in items:
            found.append(function(item, shared))
            if done:
                done(label(item))
        return found
    numbered = executor.map_reduce(
        _Numbered(function),
        enumerate(items),
        _union,
        executor.share(shared),
        label=lambda pair: label(pair[1]),
        done=(lambda pair: done(label(pair[1]))) if done else None,
    )
    return [numbered[number] for number in range(len(items))]


@dataclass(frozen=True)
class _Numbered(Generic[Item, Found]):
    function: Callable[[Item, Any], Found]

    def __call__(self, pair: tuple[int, Item], shared: Any) -> dict[int, Found]:
        number, item = pair
        return {number: self.function(item, shared)}


def _union(one: dict[int, Found], other: dict[int, Found]) -> dict[int, Found]:
    return {**one, **other}
