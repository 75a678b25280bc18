"""Compressed files, which Python itself compresses from 3.14 on only."""

from __future__ import annotations

import pyarrow as pa


def zstd(content: bytes) -> bytes:
    """The content as a frame of Zstandard."""
    compressed = pa.compress(content, codec="zstd", asbytes=True)
    assert isinstance(compressed, bytes)
    return compressed
