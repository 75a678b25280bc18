"""Merging as a tree: as soon as `fan_in` parts of one level are there, they become one part of the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Part = TypeVar("Part")


class Tree(Generic[Part]):
    """Parts that wait to be joined: fewer than `fan_in` per level, so a logarithm of the parts that were added.

    `join` makes one part of a list of them; where parts are only promised it may return the promise of their union.
    """

    def __init__(self, join: Callable[[list[Part]], Part], fan_in: int) -> None:
        self._join = join
        self._fan_in = fan_in
        self._levels: list[list[Part]] = []

    def add(self, part: Part) -> None:
        """Take one more part."""
        for level in self._levels:
            level.append(part)
            if len(level) < self._fan_in:
                return
            part = self._join(level.copy())
            level.clear()
        self._levels.append([part])

    def total(self) -> Part | None:
        """All parts as one, or None if there were none. The tree is spent afterwards."""
        rest: list[Part] = []
        for level in self._levels:
            waiting = [*level, *rest]
            rest = [self._join(waiting)] if len(waiting) > 1 else waiting
        return rest[0] if rest else None
