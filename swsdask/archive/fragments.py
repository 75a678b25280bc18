"""Fragments: Parquet files of sorted detections, written once and read by row groups; and the order of their rows.

Rows are sorted by (query, document, channel, start, duration, score descending, decision, hash of an unknown document's
id). This is a total order of the content of rows, so the order of the input does not matter.

The rows of a run are spilled by bucket of their query, then each bucket is sorted and written. Neighbouring buckets
share a fragment as long as it stays small enough to sort in memory. A bucket that is too large by itself is divided
into ranges of (query, document), which are about even unless a (query, document) alone is too large. A spill file has
one Arrow record batch per partition, one after the other, so that neighbouring partitions are read by one request.

The table `runs` (`archive.stored_tables`) says which fragments hold a run's rows, and `archive.cells` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from swsdask.archive.cells import hash_parts
from swsdask.archive.encode import FileOrder, canonical_scores
from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import Fragment, StoredFile
from swsdask.archive.versions import Layout, fragment_name, new_token
from swsdask.model.columns import row_changes
from swsdask.model.schemas import DETECTION_COLUMNS, DETECTIONS
from swsdask.model.tables import number_type
from swsdask.model.trials import F64, I64, Detections

U64 = NDArray[np.uint64]
_SIGN = np.uint64(1 << 63)
_WORD = 64
_TIED = 1 << 19
"""The approximate number of rows that are compared by the whole key at once. Keys take more memory than the rows."""

_BLOCK = 1 << 15

_DICTIONARY = ["query", "document", "channel", "decision", "inside", "unknown_document"]
_ENCODINGS = {
    "start": "DELTA_BINARY_PACKED",
    "duration": "DELTA_BINARY_PACKED",
    "score": "BYTE_STREAM_SPLIT",
    "position": "DELTA_BINARY_PACKED",
}
_MOST_BINS = 1 << 22


def concatenate(parts: list[Detections]) -> Detections:
    """Return the rows of at least one part, one after the other. A column that only some parts have is 0 in the others.

    The list is emptied, so that each column of the parts is freed as soon as it is joined.
    """
    if len(parts) == 1:
        return parts.pop()
    lengths = [len(part) for part in parts]
    names = [field.name for field in fields(Detections)]
    waiting = {name: [getattr(part, name) for part in parts] for name in names}
    parts.clear()
    return Detections(**{name: _one_column(waiting.pop(name), lengths) for name in names})


def _one_column(arrays: Sequence[NDArray[Any] | None], lengths: Sequence[int]) -> Any:
    dtype = next((array.dtype for array in arrays if array is not None), None)
    return dtype and np.concatenate(
        [np.zeros(rows, dtype) if array is None else array for rows, array in zip(lengths, arrays, strict=True)]
    )


def in_order(rows: Detections) -> Detections:
    """Sort rows into canonical order (all columns but `inside` must be there); sorted rows are not copied."""
    order = canonical_order(rows)
    return rows if order is None else rows.take(order)


def canonical_order(rows: Detections) -> I64 | None:
    """Return the permutation that sorts `rows`; None if they are sorted and no two are equal.

    As many leading bits of the whole key as fit beside the row number are sorted as plain integers, which is several
    times faster than sorting an index. The few rows with equal leading bits are then sorted by the whole key.
    """
    keys = _keys(rows)
    if _ascend(keys, len(rows)):
        return None
    number_bits = max(len(rows) - 1, 0).bit_length()
    packed = _leading_bits(keys, slice(len(rows)), _WORD - number_bits)
    packed <<= np.uint64(number_bits)
    packed |= np.arange(len(rows), dtype=np.uint64)
    packed.sort()
    order: I64 = (packed & np.uint64((1 << number_bits) - 1)).view(np.int64)
    packed >>= np.uint64(number_bits)
    as_before = np.zeros(len(rows), bool)
    as_before[1:] = packed[1:] == packed[:-1]
    tied = as_before.copy()
    tied[:-1] |= as_before[1:]
    unsettled = np.flatnonzero(tied)
    for part in cut_rows(np.flatnonzero(~as_before[unsettled]), len(unsettled), _TIED):
        among = order[unsettled[part]]
        order[unsettled[part]] = among[np.lexsort([key.of(among) for key in reversed(keys)])]
    return order


def pair_starts(rows: Detections) -> I64:
    """Return the row numbers, ascending, where a (query, document) begins; `rows` must be clustered by it."""
    assert rows.document is not None
    return np.flatnonzero(row_changes(rows.query, rows.document))


def cut_rows(starts: I64, rows: int, limit: int) -> list[slice]:
    """Cut `rows` rows into parts of about equal size, none larger than `limit` unless a (query, document) alone is.

    `starts` are the rows where a cut may be made (`pair_starts`). No rows give no part.
    """
    parts: list[slice] = []
    begin = 0
    while begin < rows:
        left = rows - begin
        even = begin + -(-left // -(-left // limit))
        place = np.searchsorted(starts, even, "right") - 1
        if even < rows and starts[place] <= begin:
            place += 1
        end = rows if even >= rows or place == len(starts) else int(starts[place])
        parts.append(slice(begin, end))
        begin = end
    return parts


class _Key(NamedTuple):
    """A column as unsigned integers of `width` bits that sort as the canonical order does."""

    width: int
    of: Callable[[I64 | slice], U64]


def _keys(rows: Detections) -> list[_Key]:
    """Return the keys, most significant first."""
    first = (rows.query, rows.document, rows.channel, rows.start, rows.duration)
    last = (rows.decision, rows.unknown_document)
    before, after = ([_from_zero(column) for column in some if column is not None] for some in (first, last))
    return [*before, _Key(_WORD, partial(_descending, rows.score)), *after]


def _from_zero(column: NDArray[np.signedinteger]) -> _Key:
    if not len(column):
        return _Key(0, lambda _: np.zeros(0, np.uint64))
    least, most = int(column.min()), int(column.max())
    return _Key((most - least).bit_length(), lambda rows: (column[rows].astype(np.int64) - least).view(np.uint64))


def _descending(score: F64, rows: I64 | slice) -> U64:
    """-0.0 and 0.0 are equal, even if both are kept."""
    bits = canonical_scores(score[rows]).view(np.uint64)
    return np.where(bits & _SIGN, bits, ~(bits | _SIGN))


def _leading_bits(keys: Sequence[_Key], rows: slice, available: int) -> U64:
    packed = np.zeros(rows.stop - (rows.start or 0), np.uint64)
    for key in keys:
        taken = min(key.width, available)
        if taken:
            packed <<= np.uint64(taken)
            packed |= key.of(rows) >> np.uint64(key.width - taken)
            available -= taken
    return packed


def _ascend(keys: Sequence[_Key], rows: int) -> bool:
    """Return whether each row is greater than the previous one by the leading bits of narrow keys.

    Rows are compared block by block, because the first blocks usually show another order.
    """
    narrow = list(takewhile(lambda key: key.width < _WORD, keys))
    for first in range(0, rows, _BLOCK):
        packed = _leading_bits(narrow, slice(first, min(first + _BLOCK + 1, rows)), _WORD)
        if not (packed[1:] > packed[:-1]).all():
            return False
    return True


def detections_as_table(rows: Detections) -> pa.Table:
    """Return all columns that some rows have as an Arrow table, without a copy."""
    return pa.Table.from_batches([_as_batch(rows)])


def _as_batch(rows: Detections) -> pa.RecordBatch:
    schema = pa.schema([field for field in DETECTION_COLUMNS if getattr(rows, field.name) is not None])
    return pa.RecordBatch.from_arrays([pa.array(getattr(rows, name)) for name in schema.names], schema=schema)


def write_fragment(rows: Detections, rows_per_group: int, codec: str) -> tuple[pa.Buffer, list[int]]:
    """The bytes of a Parquet file of `rows`, which are in canonical order, and the rows of each of its row groups.

    Groups have about equal size, at most `rows_per_group` rows unless a (query, document) alone has more; none is cut.
    """
    table = detections_as_table(rows)
    groups = cut_rows(pair_starts(rows), len(rows), rows_per_group)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression=codec,
        use_dictionary=[name for name in _DICTIONARY if name in table.schema.names],
        column_encoding={name: _ENCODINGS[name] for name in table.schema.names if name in _ENCODINGS},
        write_statistics=True,
    ) as writer:
        for group in groups:
            size = group.stop - group.start
            writer.write_table(table.slice(group.start, size), row_group_size=size)
    return sink.getvalue(), [group.stop - group.start for group in groups]


@dataclass(frozen=True)
class SpillFile:
    """A temporary file: the number of rows of each partition, and the byte at which each partition ends."""

    name: str
    schema: pa.Schema
    rows: tuple[int, ...]
    ends: tuple[int, ...]


def spill(
    storage: Storage, folder: str, rows: Detections, partition: NDArray[np.integer], partitions: int
) -> SpillFile:
    """Write `rows`, all columns, to a new file in `folder`; `partition` is that of every row, below `partitions`."""
    order = np.argsort(partition.astype(np.min_scalar_type(max(partitions - 1, 0))), kind="stable")
    counts = np.bincount(partition, minlength=partitions)
    batch = _as_batch(rows.take(order))
    ends = np.cumsum(counts).tolist()
    parts = [batch.slice(end - count, count) for end, count in zip(ends, counts.tolist(), strict=True)]
    sizes = [pa.ipc.get_record_batch_size(part) if len(part) else 0 for part in parts]
    content = pa.allocate_buffer(sum(sizes))  # a growing stream would use twice the memory
    with pa.FixedSizeBufferWriter(content) as sink:
        for part in filter(len, parts):
            sink.write(part.serialize())
    name = f"{folder}/{new_token()}.spill"
    storage.write_temporary(name, content)
    return SpillFile(name, batch.schema, tuple(counts.tolist()), tuple(np.cumsum(sizes).tolist()))


def take_up(storage: Storage, files: Iterable[SpillFile], first: int, last: int) -> Detections:
    """Return all rows of the partitions `first` to `last`, in no particular order. One part of each file is read."""
    parts = []
    for file in files:
        begin, end = (0, *file.ends)[first], file.ends[last]
        if begin < end:
            with storage.open_parts(file.name, file.ends[-1]) as spilled:
                content = pa.BufferReader(spilled.read(begin, end - begin))
            parts += [
                _as_rows(pa.ipc.read_record_batch(content, file.schema)) for n in file.rows[first : last + 1] if n
            ]
    return concatenate(parts or [_no_rows()])


def _as_rows(batch: pa.RecordBatch) -> Detections:
    return Detections(**{name: batch[name].to_numpy() for name in batch.schema.names})


def _no_rows() -> Detections:
    return Detections(**{field.name: np.zeros(0, number_type(field.type)) for field in DETECTIONS})


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
        """The number of their rows."""
        return sum(sum(file.rows[self.first : self.last + 1]) for file in self.files)


@dataclass(frozen=True, eq=False)
class FragmentWriter:
    """The parameters of written fragments; `bucket_of_query` and `n_documents` are the archive's.

    If the file order counts, `in_files`, every trial must occur once.
    """

    storage: Storage
    folder: str
    bucket_of_query: I64
    n_documents: int
    layout: Layout
    in_files: FileOrder | None = None

    def write_whole(self, system: str, content: str, rows: Detections) -> list[Fragment]:
        """Write all rows of a run that fits into one fragment. A run without rows gives no fragment."""
        if not len(rows):
            return []
        buckets = self.bucket_of_query[np.flatnonzero(np.bincount(rows.query))]
        return [self._fragment(Share(system, content, int(buckets.min()), int(buckets.max()), ()), 0, rows)]

    def write(self, share: Share) -> list[Fragment]:
        """Write the rows of a share; its fragments in canonical order of their rows."""
        if share.rows <= self.layout.rows_per_fragment:
            rows = take_up(self.storage, share.files, share.first, share.last)
            return [self._fragment(share, 0, rows)]
        ranges = _Ranges(np.flatnonzero(self.bucket_of_query == share.first), self.n_documents)
        part_of_bin = self._parts(share, ranges)
        parts = int(part_of_bin.max()) + 1
        finer = []
        for file in share.files:
            rows = take_up(self.storage, [file], share.first, share.first)
            finer.append(spill(self.storage, self.folder, rows, part_of_bin[ranges.bins(rows)], parts))
        return [self._fragment(share, part, take_up(self.storage, finer, part, part)) for part in range(parts)]

    def _parts(self, share: Share, ranges: _Ranges) -> I64:
        """Return the part of every bin: neighbouring bins share one until it is full (a bin without rows: any)."""
        rows_of_bin = np.zeros(ranges.n_bins, np.int64)
        for file in share.files:
            rows = take_up(self.storage, [file], share.first, share.first)
            rows_of_bin += np.bincount(ranges.bins(rows), minlength=ranges.n_bins)
        held = np.flatnonzero(rows_of_bin)
        last_row = np.cumsum(rows_of_bin[held]) - 1
        part_of_bin = np.zeros(ranges.n_bins, np.int64)
        part_of_bin[held] = np.unique(last_row // self.layout.rows_per_fragment, return_inverse=True)[1]
        return part_of_bin

    def _fragment(self, share: Share, part: int, rows: Detections) -> Fragment:
        writer = self.folder.rsplit("/", 1)[-1]
        name = fragment_name(share.content, share.first, share.last, part, writer)
        ordered = in_order(rows)
        if self.in_files:
            self.in_files.check_once(share.system, ordered)
        content, groups = write_fragment(ordered, self.layout.rows_per_group, self.layout.codec)
        self.storage.write(name, content)
        return Fragment(StoredFile.of(name, content), tuple(groups), hash_parts(content))


class _Ranges:
    """The (query, document) pairs of some queries in bins of neighbours, few enough to count rows by."""

    def __init__(self, queries: I64, n_documents: int) -> None:
        self.queries = queries
        self.n_documents = n_documents
        pairs = len(queries) * (n_documents + 1)
        self.stride = -(-pairs // _MOST_BINS)
        self.n_bins = -(-pairs // self.stride)

    def bins(self, rows: Detections) -> I64:
        """Return the bin of every row, ascending with (query, document)."""
        assert rows.document is not None
        pair = np.searchsorted(self.queries, rows.query) * (self.n_documents + 1) + (rows.document.astype(np.int64) + 1)
        bins: I64 = pair // self.stride
        return bins


def shares(system: str, content: str, files: Sequence[SpillFile], rows_per_fragment: int) -> list[Share]:
    """Return the buckets of a run as shares of at most `rows_per_fragment` rows, or of one bucket."""
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
