"""Names in tables as numbers, and rows in canonical order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from swsdask.errors import Problems
from swsdask.model.trials import I32, I64
from swsdask.model.wording import counted

UNKNOWN = -1


def numbers_of(column: pa.ChunkedArray, names: Sequence[str]) -> I32:
    """The place of each value of a dictionary column in `names`, `UNKNOWN` where it is not among them."""
    place = {name: number for number, name in enumerate(names)}
    codes, used = coded(column)
    table = np.array([place.get(name, UNKNOWN) for name in used], np.int32)
    return table[codes]


def sorted_numbers(column: pa.ChunkedArray) -> tuple[tuple[str, ...], I32]:
    """The distinct values of a dictionary column, sorted, and the place of each row's among them."""
    codes, used = coded(column)
    names = tuple(sorted(set(used)))
    place = {name: number for number, name in enumerate(names)}
    table = np.array([place[name] for name in used], np.int32)
    return names, table[codes]


def coded(column: pa.ChunkedArray) -> tuple[I64, list[str]]:
    """A dictionary column as codes, and what each code stands for: values that occur, each once."""
    array = column.unify_dictionaries().combine_chunks()
    present = np.zeros(len(array.dictionary), np.bool_)
    indices = array.indices.to_numpy()
    present[indices] = True
    new = np.cumsum(present) - 1
    return new[indices], array.dictionary.filter(pa.array(present)).to_pylist()


def rows_in_order(first: I32, second: I32, *others: I32) -> I64:
    """The rows sorted by some columns of 0 or more, ties in the order they have."""
    place = (first.astype(np.int64) << 32) | second
    if np.all(place[1:] > place[:-1]):
        return np.arange(len(first))
    return np.lexsort((*reversed(others), place))


def first_rows(file: I32, n_files: int) -> I64:
    """Where the rows of each file begin in rows sorted by file, and the last end: int64 [n_files + 1]."""
    return np.searchsorted(file, np.arange(n_files + 1, dtype=np.int32)).astype(np.int64)


def note_unknown(table: pa.Table, file: I32, url: str, problems: Problems) -> None:
    """Note each file that has no phones, at the line that first names it."""
    rows = np.flatnonzero(file == UNKNOWN)
    if not len(rows):
        return
    codes, names = coded(table["file"].take(pa.array(rows)))
    lines = table["line"].to_numpy()[rows]
    found, first, rows_of = np.unique(codes, return_index=True, return_counts=True)
    for code, at, count in sorted(
        zip(found.tolist(), first.tolist(), rows_of.tolist(), strict=True), key=lambda x: x[1]
    ):
        there = f"{names[code]!r}, in {counted(count, 'lines')}"
        problems.add(url, int(lines[at]), "a file of the phone alignment", there, "Mend the name or remove the lines.")


def rounding_note(table: pa.Table, url: str) -> str | None:
    """What to tell of the times of a table that were finer than a tick; None if there were none."""
    rounded = int((table.schema.metadata or {}).get(b"rounded", 0))
    return f"{url}: {counted(rounded, 'times')} finer than 0.1 ms rounded." if rounded else None
