"""Cells of an archive on storage: row groups of fragments, verified and checked when they are read.

Bytes are hashed before the Parquet reader gets them: the footer when a fragment is opened, and every column chunk when
it is read. So exactly the bytes that are used are verified, and nothing else is read. The rows are then checked even if
the hashes are right, because kernels use codes as array indices: types, nulls, numbers of rows, order and range. Times
and scores are not indices: the minimum and maximum of a verified chunk are taken from the footer, which is verified
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from swsdask.archive.protocols import Run
from swsdask.archive.storage import Parts, Storage, Whole
from swsdask.archive.stored_tables import Fragment, damaged, unreadable
from swsdask.kernels.rows import rows_in_bounds
from swsdask.model.errors import ArchiveError, SwsdaskError
from swsdask.model.hashes import HASH_BYTES, hash_bytes
from swsdask.model.schemas import DETECTION_COLUMNS, DETECTIONS, INSIDE
from swsdask.model.tables import number_type
from swsdask.model.trials import Detections
from swsdask.model.units import MAX_TICKS

_MAGIC = 4
_LENGTH = 4
_FOOTER_GUESS = 1 << 14
_FOOTERS = 512
"""The number of verified footers that are kept in memory. A footer without a hash is read again, because it may have
changed."""

_footers: dict[tuple[str, str, bytes], pq.FileMetaData] = {}

_CHECKED = 1 << 16
"""The number of columns of row groups that are remembered as checked, by the hashes of the row groups, so that later
rounds need not check them again."""

_Key = tuple[bytes, str, tuple[float, float]]

_checked: dict[_Key | None, None] = {}

_TIMES = ("start", "duration")

_DTYPES = {field.name: number_type(field.type) for field in DETECTION_COLUMNS}

_COMPILED = ("query", "document", "score")
_COUNTED = (*_COMPILED, "decision")
"""The columns that need no check where they are counted (`Cell.read`)."""
_NO_VALUES = {name: np.empty(0, _DTYPES[name]) for name in _COMPILED}


class Bounds(NamedTuple):
    """The limits of the rows of a run: numbers of queries and documents, range of scores, lowest decision."""

    n_queries: int
    n_documents: int
    scores: tuple[float, float]
    decided: bool

    @classmethod
    def of(cls, run: Run, n_queries: int, n_documents: int) -> Bounds:
        """Return the bounds of the rows of a run in an archive with these numbers of queries and documents."""
        return cls(n_queries, n_documents, run.scores.run, run.has_decisions)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the minimum and maximum of each column that has limits."""
        return {
            "query": (0, self.n_queries - 1),
            "document": (-1, self.n_documents - 1),
            "start": (0, MAX_TICKS),
            "duration": (0, MAX_TICKS),
            "score": self.scores,
            "decision": (0, 1) if self.decided else (-1, -1),
            "inside": (0, max(INSIDE["exact"])),
        }


class RowGroups(NamedTuple):
    """Some row groups of a fragment: their numbers, how many rows each has, and the hashes of their chunks."""

    file: str
    numbers: tuple[int, ...]
    rows: tuple[int, ...]
    size: int | None
    footer: bytes | None
    chunks: tuple[bytes | None, ...]

    @classmethod
    def of(cls, fragment: Fragment, numbers: Sequence[int], *, verify: bool) -> RowGroups:
        """Row groups of a fragment, with their hashes if they are to be verified."""
        file = fragment.file if verify else fragment.file.unverified
        return cls(
            fragment.file.file,
            tuple(numbers),
            tuple(fragment.groups[number] for number in numbers),
            file.size,
            fragment.footer if verify else None,
            tuple(fragment.chunks(number) if verify else None for number in numbers),
        )


@dataclass(frozen=True)
class StoredCell:
    """Some row groups of some fragments of one run: their places, not their rows."""

    storage: Storage
    system: str
    rows: int
    groups: tuple[RowGroups, ...]
    bounds: Bounds

    @property
    def source(self) -> str:
        """The files."""
        return ", ".join(f"{self.storage.url}/{each.file}" for each in self.groups)

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of rows of each fragment."""
        return tuple(sum(each.rows) for each in self.groups)

    @property
    def is_distant(self) -> bool:
        """Whether the storage is."""
        return self.storage.is_distant

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        """Read the named columns, `query` and `score`.

        Parameters
        ----------
        columns : sequence of str
            Names of `model.schemas.DETECTION_COLUMNS`.
        checked : bool
            Whether to check queries, documents, scores and decisions. False if the caller goes through them anyway.

        Returns
        -------
        Detections
            The rows of all groups, in order.

        Raises
        ------
        ArchiveError
            If a file is missing or damaged, or has rows that this archive cannot hold. The error names the file and, if
            known, the row group.
        """
        wanted = list(dict.fromkeys(("query", "score", *columns)))
        found: dict[str, list[NDArray[Any]]] = {name: [] for name in wanted}
        ordered = False
        for part in self.groups:
            last = 0
            reader = _Reader(self.storage, part, self.bounds, wanted, self.system, checked)
            for columns_of_group in reader.read():
                query = columns_of_group["query"]
                if checked and query[0] < last:
                    raise damaged(self.storage, part.file, "row groups that are not in the order of queries")
                last = query[-1]
                for name, values in columns_of_group.items():
                    found[name].append(values)
            ordered = ordered or reader.ordered
        columns_of_cell = {
            name: arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for name, arrays in found.items()
        }
        return without_signed_zeros(Detections(**columns_of_cell)) if ordered else Detections(**columns_of_cell)

    def confirm(self, columns: Sequence[str]) -> None:
        """Remember that these columns are valid, if hashes guarantee that they stay the same."""
        ranges = self.bounds.ranges()
        for hashes in (each for part in self.groups for each in part.chunks):
            _remember(_key(hashes, name, ranges) for name in columns)


def _key(hashes: bytes | None, name: str, ranges: Mapping[str, tuple[float, float]]) -> _Key | None:
    """Return the key by which a checked column of a row group is remembered; None if it is not remembered."""
    return None if hashes is None or name not in ranges else (hashes, name, ranges[name])


def _remember(keys: Iterable[_Key | None]) -> None:
    if len(_checked) >= _CHECKED:
        _checked.clear()
    _checked.update((key, None) for key in keys if key is not None)


def without_signed_zeros(detections: Detections) -> Detections:
    """Replace every score -0.0 by 0.0 in rows whose order counts, unless they were read for that order.

    Such rows keep their scores as read, because MediaEval's tool, which takes rows in the order of the files,
    distinguishes the two zeros (`measures.mediaeval_tool`). For everything else they are equal.
    """
    return detections if detections.position is not None else replace(detections, score=detections.score + 0.0)


class _Reader:
    """Reads some columns of some row groups of one fragment."""

    def __init__(
        self, storage: Storage, part: RowGroups, bounds: Bounds, wanted: Sequence[str], system: str, checked: bool
    ) -> None:
        self.storage = storage
        self.part = part
        self.ranges = bounds.ranges()
        self.wanted = wanted
        self.system = system
        self.checked = checked
        self.ordered = False
        self.stated: dict[tuple[int, str], tuple[float, float] | None] = {}

    def read(self) -> Iterable[Mapping[str, NDArray[np.generic]]]:
        """Yield the columns, group by group. Raises `ArchiveError`."""
        try:
            with self.storage.open_parts(self.part.file, self.part.size) as parts:
                metadata = self._metadata(parts)
                place = self._places(metadata)
                chunks = self._chunks(metadata, place)
                parts.fetch(chunks)
                source = pa.PythonFile(VerifiedFile(parts, chunks), mode="r")
                with pq.ParquetFile(source, metadata=metadata, pre_buffer=False) as file:
                    for number, rows, hashes in zip(self.part.numbers, self.part.rows, self.part.chunks, strict=True):
                        yield self._group(file, place, number, rows, hashes)
        except SwsdaskError:
            raise
        except _Mismatch as error:
            raise damaged(self.storage, self.part.file, str(error)) from None
        except Exception as error:  # Damaged bytes can make a reader raise anything.
            raise unreadable(self.storage, self.part.file, error) from error

    def _metadata(self, parts: Parts) -> pq.FileMetaData:
        """Return the metadata of the footer, verified."""
        if self.part.size is not None and parts.size != self.part.size:
            raise _Mismatch(f"one of {parts.size:,} bytes instead of {self.part.size:,}")
        key = None if self.part.footer is None else (self.storage.url, self.part.file, self.part.footer)
        if key is not None and key in _footers:
            return _footers[key]
        footer = read_footer(parts)
        if key is not None and hash_bytes(footer) != self.part.footer:
            raise _Mismatch("one whose footer is not what was written (its hash differs)")
        metadata = pq.read_metadata(pa.BufferReader(footer))
        if key is not None:
            _footers[key] = metadata
            while len(_footers) > _FOOTERS:
                _footers.pop(next(iter(_footers)), None)
        return metadata

    def _places(self, metadata: pq.FileMetaData) -> dict[str, int]:
        """Return the index of each requested column that the file has. Raises if a required column is missing."""
        names = metadata.schema.to_arrow_schema().names
        self.ordered = "position" in names
        if "position" in self.wanted and "position" not in names:
            raise self._without_order()
        missing = [name for name in DETECTIONS.names if name not in names]
        if missing or len(set(names)) != metadata.num_columns:
            raise _Mismatch(f"one with the columns {', '.join(names)}")
        return {name: names.index(name) for name in self.wanted if name in names}

    def _chunks(self, metadata: pq.FileMetaData, place: Mapping[str, int]) -> dict[tuple[int, int], _Chunk]:
        """Return the column chunks to read, by offset and length."""
        chunks = {}
        for number, rows, hashes in zip(self.part.numbers, self.part.rows, self.part.chunks, strict=True):
            if number >= metadata.num_row_groups or metadata.row_group(number).num_rows != rows:
                raise _Mismatch(f"one whose row group {number} does not have {rows:,} rows")
            group = metadata.row_group(number)
            if hashes is not None and len(hashes) != HASH_BYTES * group.num_columns:
                raise _Mismatch(f"one with {group.num_columns} columns")
            for name, column in place.items():
                stated = None if name == "score" else _stated(group, column)
                self.stated[number, name] = stated
                if _constant(stated) is None:
                    own = None if hashes is None else hashes[HASH_BYTES * column : HASH_BYTES * (column + 1)]
                    chunks[chunk_range(group.column(column))] = _Chunk(f"row group {number}, column {name}", own)
        return chunks

    def _group(
        self, file: pq.ParquetFile, place: Mapping[str, int], number: int, rows: int, hashes: bytes | None
    ) -> Mapping[str, NDArray[np.generic]]:
        """Return the columns of a row group, checked.

        A column of integers is not read but filled if its statistics say that all values of the group are equal. A
        column that the file lacks is filled with 0.
        """
        constant = {
            name: value
            for name in self.wanted
            if (value := _constant(self.stated[number, name]) if name in place else 0) is not None
        }
        read = [name for name in self.wanted if name not in constant]
        table = file.read_row_group(number, columns=read, use_threads=False)
        where = f"row group {number} with"
        found = {name: self._array(table, name, rows, where) for name in read}
        self._check(found, number, hashes, where)
        for name, value in constant.items():
            self._check_range(name, value, value, where)
            found[name] = np.full(rows, value, _DTYPES[name])
        return {name: found[name] for name in self.wanted}

    def _array(self, table: pa.Table, name: str, rows: int, where: str) -> NDArray[np.generic]:
        """Return the values of a column, without a copy if they are in one chunk."""
        column = table[name]
        if column.type != DETECTION_COLUMNS.field(name).type:
            raise _Mismatch(f"{where} {column.type} in the column {name}")
        if column.null_count:
            raise _Mismatch(f"{where} nulls in the column {name}")
        if len(column) != rows:
            raise _Mismatch(f"{where} {len(column):,} rows in the column {name} instead of {rows:,}")
        dtype = _DTYPES[name]
        pieces = [
            np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
            for chunk in column.chunks
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _check(self, columns: Mapping[str, NDArray[Any]], number: int, hashes: bytes | None, where: str) -> None:
        """Raise `_Mismatch` for columns with values that no run of this archive can have.

        A column that was valid before in a row group with these hashes is skipped, because it has the same values.
        """
        keys = {name: _key(hashes, name, self.ranges) for name in columns if self.checked or name not in _COUNTED}
        new = {name: columns[name] for name, key in keys.items() if name in self.ranges and key not in _checked}
        query, document, score = (new.get(name, _NO_VALUES[name]) for name in _COMPILED)
        (_, queries), (_, documents), (lowest, highest) = (self.ranges[name] for name in _COMPILED)
        if not new.keys().isdisjoint(_COMPILED) and not rows_in_bounds(
            query, document, score, int(queries), int(documents), lowest, highest
        ):
            self._explain(new, where)
        for name in (each for each in new if each not in _COMPILED):
            stated = self.stated[number, name] if name in _TIMES and hashes is not None else None
            if stated is not None:
                self._check_range(name, *stated, where)
            elif _greatest_unsigned(new[name]) > self.ranges[name][1]:
                self._check_range(name, new[name].min(), new[name].max(), where)
        _remember(keys[name] for name in new)

    def _explain(self, columns: Mapping[str, NDArray[Any]], where: str) -> None:
        """Raise `_Mismatch` for the first column that `rows_in_bounds` refuses."""
        query = columns.get("query", _NO_VALUES["query"])
        if (query[1:] < query[:-1]).any():
            raise _Mismatch(f"{where} rows that are not in the order of queries")
        for name in (each for each in _COMPILED if each in columns):
            self._check_range(name, columns[name].min(), columns[name].max(), where)
        raise _Mismatch(f"{where} rows out of range")

    def _check_range(self, name: str, least: float, most: float, where: str) -> None:
        low, high = self.ranges.get(name, (least, most))
        if not (low <= least and most <= high):
            raise _Mismatch(f"{where} {name} from {least} to {most} instead of {low} to {high}")

    def _without_order(self) -> ArchiveError:
        return ArchiveError(
            f"{self.storage.url}: expected a run of {self.system!r} with the order of its rows, which "
            "compat=mediaeval, average_precision.ties=input and average_precision.duplicates=first need; found one "
            "ingested without. "
            "Ingest it again under that setting: --compat mediaeval --change-settings --replace, or "
            "--set average_precision.ties=input --change-settings --replace."
        )


class _Mismatch(Exception):  # noqa: N818
    """A fragment that does not fit this archive. The text says what was found."""


@dataclass(frozen=True)
class _Chunk:
    """A column chunk, by its name for messages, and its hash if it is known."""

    name: str
    hash: bytes | None


class VerifiedFile:
    """The file that Parquet reads column chunks from: each is verified when it is first requested."""

    closed = False

    def __init__(self, parts: Parts, chunks: Mapping[tuple[int, int], _Chunk]) -> None:
        self._parts = parts
        self._waiting = dict(chunks)
        self._verified: dict[tuple[int, int], pa.Buffer] = {}
        self._place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to an offset from the beginning, the current position or the end."""
        self._place = offset + (0, self._place, self._parts.size)[whence]
        return self._place

    def read(self, size: int = -1) -> pa.Buffer:
        """Bytes of one chunk. Raises `_Mismatch` if the chunk is not what was written."""
        begin, self._place = self._place, self._place + size
        for (offset, length), content in self._verified.items():
            if offset <= begin and self._place <= offset + length:
                return content.slice(begin - offset, size)
        for (offset, length), chunk in self._waiting.items():
            if offset <= begin and self._place <= offset + length:
                content = self._parts.read(offset, length)
                if len(content) != length:
                    raise _Mismatch(f"{chunk.name} cut short")
                if chunk.hash is not None and hash_bytes(content) != chunk.hash:
                    raise _Mismatch(f"{chunk.name} whose content is not what was written (its hash differs)")
                self._verified = {(offset, length): content}
                return content.slice(begin - offset, size)
        raise _Mismatch(f"a footer that leads to {size} bytes at {begin}")

    def close(self) -> None:
        """Release what was read."""
        self._verified.clear()


def read_footer(parts: Parts) -> pa.Buffer:
    """Return the footer of a Parquet file, from the metadata to the last byte. Raises `ValueError` if there is none."""
    tail = parts.read(max(parts.size - _FOOTER_GUESS, 0), min(_FOOTER_GUESS, parts.size))
    end = _LENGTH + _MAGIC
    if len(tail) < end:
        raise ValueError("it is too short for a Parquet file")
    length = int.from_bytes(tail.slice(len(tail) - end, _LENGTH).to_pybytes(), "little") + end
    if length > parts.size - _MAGIC:
        raise ValueError("its footer is longer than the file")
    return tail.slice(len(tail) - length) if length <= len(tail) else parts.read(parts.size - length, length)


def chunk_range(column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the offset and the length of a column chunk. Raises `ValueError` if they are impossible."""
    begin = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < begin:
        begin = column.dictionary_page_offset
    if begin < _MAGIC or column.total_compressed_size < 0:
        raise ValueError("its footer leads out of the file")
    return begin, column.total_compressed_size


def hash_parts(content: pa.Buffer) -> bytes:
    """The hashes of the parts of a fragment: of its footer, then of the column chunks, row group by row group."""
    parts = Whole(content)
    footer = read_footer(parts)
    metadata = pq.read_metadata(pa.BufferReader(footer))
    chunks = (
        parts.read(*chunk_range(metadata.row_group(group).column(column)))
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    return b"".join(hash_bytes(part) for part in (footer, *chunks))


def _greatest_unsigned(values: NDArray[Any]) -> int:
    """Return the maximum of some integers read as unsigned: negative ones are greater than all others."""
    return int(values.view(f"u{values.itemsize}").max())


def _stated(group: pq.RowGroupMetaData, place: int) -> tuple[float, float] | None:
    """Return the minimum and maximum of a column of numbers without NaN, as the footer states; None if it does not."""
    statistics = group.column(place).statistics
    if statistics is None or not statistics.has_min_max or not isinstance(statistics.min, int | float):
        return None
    return statistics.min, statistics.max


def _constant(stated: tuple[float, float] | None) -> int | None:
    """Return the only value of a column of integers with this minimum and maximum; None if there may be several."""
    return int(stated[0]) if stated is not None and stated[0] == stated[1] else None
