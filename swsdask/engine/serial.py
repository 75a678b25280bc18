"""One task after the other, in this process: for small work, and for looking at what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from swsdask.engine.executor import Item, Part, execution_error
from swsdask.engine.tree import Tree
from swsdask.errors import SwsdaskError


class SerialExecutor:
    """The executor that starts nothing. Parts are merged in pairs, so that a large one is rarely gone through again."""

    workers = 1
    shares_memory = True

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

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
        """Nothing to let go of."""
