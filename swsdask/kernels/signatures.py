"""Types for the signatures of kernels."""

from __future__ import annotations

from typing import Any

from numba import types

_untyped: Any = types


def column(dtype: types.Type) -> types.Array:
    """A contiguous array that a kernel only reads: read-only buffers, such as Arrow's, fit as well as others."""
    return types.Array(dtype, 1, "C", readonly=True)


def several(*kinds: types.Type) -> types.Type:
    """A tuple."""
    kind: types.Type = _untyped.Tuple(kinds)
    return kind


def record(name: type, *kinds: types.Type) -> types.Type:
    """A NamedTuple."""
    uniform = len(set(kinds)) == 1
    kind: types.Type = (
        _untyped.NamedUniTuple(kinds[0], len(kinds), name) if uniform else _untyped.NamedTuple(kinds, name)
    )
    return kind
