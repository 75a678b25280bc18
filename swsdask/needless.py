"""Optional dependencies of other libraries that this package does not need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Needless(MetaPathFinder):
    """Hides pandas, which pyarrow imports with its first array if it can, and scipy, which numba imports with a kernel.

    No command makes or receives a Series, and importing pandas takes a seventh of the time of scoring a small
    evaluation. No kernel calls BLAS, and if memory is limited, the BLAS of scipy may wait forever for the buffer that
    it allocates when it is loaded.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in {"pandas", "scipy"}:
            raise ModuleNotFoundError(f"{name} is left out of the command line", name=name)
        return None


def leave_out() -> _Needless:
    """Hide them for the rest of this process."""
    finder = _Needless()
    sys.meta_path.insert(0, finder)
    return finder


@contextmanager
def left_out() -> Iterator[None]:
    """Hide them until the context ends. A library that did not find them does not try again."""
    finder = leave_out()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
