"""The tables that term discovery reads, in the order of their files: before any definition is applied.

Times are ticks of 0.1 ms. `line` is the line of the file that a row was read from, for messages; it is content of no
table. The metadata's `rounded` counts the times that were finer than a tick.
"""

from __future__ import annotations

import pyarrow as pa

_NAME = pa.dictionary(pa.int32(), pa.string())

ALIGNMENT = pa.schema(
    [
        pa.field("file", _NAME, nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("label", _NAME, nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per phone, or per word."""

STRETCHES = pa.schema(
    [
        pa.field("file", _NAME, nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("fold", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per stretch of speech (`fold` 0), or per stretch of a fold, numbered in the order of the file."""

SPEAKERS = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per file: who speaks in it."""

CLASSES = pa.schema(
    [
        pa.field("class", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per class, empty ones too: what stands behind `Class`, in the order of the file."""

FRAGMENTS = pa.schema(
    [
        pa.field("cluster", pa.int32(), nullable=False),
        pa.field("file", _NAME, nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per fragment as it was read; `cluster` is a row of the classes."""
