"""From the rows of a run, spilled by bucket, to its fragments: each sorted and written on its own.

Neighbouring buckets share a fragment as long as it stays small enough to sort in memory. A bucket that is too large
by itself is divided into ranges of (query, document), which are about even unless a (query, document) alone is too
large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsdask.archive.file_order import FileOrder
from swsdask.archive.fragment import write_fragment
from swsdask.archive.layout import Layout, fragment_name
from swsdask.archive.order import in_order
from swsdask.archive.spill import SpillFile, spill, take_up
from swsdask.archive.storage import Storage
from swsdask.archive.stored_runs import Fragment
from swsdask.model.trials import I64, Detections

_MOST_BINS = 1 << 22


@dataclass(frozen=True)
class Share:
    """Some neighbouring buckets of one run, to be written as a fragment, or as several if it is one large bucket."""

    system: str
    content: str
    first: int
    last: int
    files: tuple[SpillFile, ...]

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return sum(sum(file.rows[self.first : self.last + 1]) for file in self.files)


@dataclass(frozen=True, eq=False)
class FragmentWriter:
    """How fragments are written; `bucket_of_query` and `n_documents` are the archive's.

    Where the file order counts, `in_files`, every trial must be there once.
    """

    storage: Storage
    folder: str
    bucket_of_query: I64
    n_documents: int
    layout: Layout
    in_files: FileOrder | None = None

    def write(self, share: Share) -> list[Fragment]:
        """Write the rows of a share; its fragments in canonical order of their rows."""
        if share.rows <= self.layout.rows_per_fragment:
            rows = take_up(self.storage, share.files, range(share.first, share.last + 1))
            return [self._fragment(share, 0, rows)]
        ranges = _Ranges(np.flatnonzero(self.bucket_of_query == share.first), self.n_documents)
        part_of_bin = self._parts(share, ranges)
        parts = int(part_of_bin.max()) + 1
        finer = []
        for file in share.files:
            rows = take_up(self.storage, [file], [share.first])
            finer.append(spill(self.storage, self.folder, rows, part_of_bin[ranges.bins(rows)], parts))
        return [self._fragment(share, part, take_up(self.storage, finer, [part])) for part in range(parts)]

    def _parts(self, share: Share, ranges: _Ranges) -> I64:
        """The part of every bin: neighbouring bins share one until it is full (a bin without rows: any)."""
        rows_of_bin = np.zeros(ranges.n_bins, np.int64)
        for file in share.files:
            rows = take_up(self.storage, [file], [share.first])
            rows_of_bin += np.bincount(ranges.bins(rows), minlength=ranges.n_bins)
        held = np.flatnonzero(rows_of_bin)
        last_row = np.cumsum(rows_of_bin[held]) - 1
        part_of_bin = np.zeros(ranges.n_bins, np.int64)
        part_of_bin[held] = np.unique(last_row // self.layout.rows_per_fragment, return_inverse=True)[1]
        return part_of_bin

    def _fragment(self, share: Share, part: int, rows: Detections) -> Fragment:
        name = fragment_name(share.content, share.first, share.last, part)
        ordered = in_order(rows)
        if self.in_files:
            self.in_files.check_once(share.system, ordered)
        content, groups = write_fragment(ordered, self.layout.rows_per_group, self.layout.codec)
        self.storage.write(name, content)
        return Fragment(name, tuple(groups))


class _Ranges:
    """The (query, document) pairs of some queries in bins of neighbours, few enough to count rows by."""

    def __init__(self, queries: I64, n_documents: int) -> None:
        self.queries = queries
        self.n_documents = n_documents
        pairs = len(queries) * (n_documents + 1)
        self.stride = -(-pairs // _MOST_BINS)
        self.n_bins = -(-pairs // self.stride)

    def bins(self, rows: Detections) -> I64:
        """The bin of every row, ascending with (query, document)."""
        assert rows.document is not None
        pair = np.searchsorted(self.queries, rows.query) * (self.n_documents + 1) + (rows.document.astype(np.int64) + 1)
        bins: I64 = pair // self.stride
        return bins


def shares(system: str, content: str, files: Sequence[SpillFile], rows_per_fragment: int) -> list[Share]:
    """The buckets of a run as shares of at most `rows_per_fragment` rows, or of one bucket."""
    rows = np.array([file.rows for file in files], np.int64).sum(axis=0) if files else np.zeros(0, np.int64)
    found: list[Share] = []
    held = 0
    for bucket in np.flatnonzero(rows).tolist():
        held += int(rows[bucket])
        if found and held <= rows_per_fragment:
            found[-1] = replace(found[-1], last=bucket)
        else:
            found.append(Share(system, content, bucket, bucket, tuple(files)))
            held = int(rows[bucket])
    return found
