"""Libraries that others import where they can, and that nothing here needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Needless(MetaPathFinder):
    """Finds no pandas, which pyarrow imports with its first array where it can, and no scipy, as numba with a kernel.

    No command makes or is given a Series, and to import pandas takes a seventh of the time in which a small evaluation
    is scored. No kernel calls BLAS, and where memory is limited scipy's may wait without end for the buffer that it
    allocates when it is loaded.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in {"pandas", "scipy"}:
            raise ModuleNotFoundError(f"{name} is left out of the command line", name=name)
        return None


def leave_out() -> _Needless:
    """Find them no more in this process."""
    finder = _Needless()
    sys.meta_path.insert(0, finder)
    return finder


@contextmanager
def left_out() -> Iterator[None]:
    """Find them as little until the context ends: who has asked in vain does not ask again."""
    finder = leave_out()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
