"""The history of an archive: a Parquet file per night.

    history/00000001.parquet           the numbers over all queries of the systems that were scored in a night

A night is committed when its file is created, which happens only if the name is free; the file is never changed. It
has the numbers of the systems that the night scored; all others are unchanged. The other results of a night (files,
refused runs, moves, failed gates) are in the metadata of the file, as JSON, and so is the hash of both. No version of
the archive names these files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.archive.local import PART
from swsdask.archive.storage import Storage
from swsdask.model.errors import ArchiveError, StoreError
from swsdask.model.hashes import hash_bytes
from swsdask.model.leaderboard import Leaderboard, Record, Refused, leaderboard_of
from swsdask.model.limits import shortage
from swsdask.model.name_columns import coded, decoded, gathered, rows_with
from swsdask.model.tables import Row, read_parquet

NIGHTS = "history"
"""The folder with the files of nights."""

_NIGHT = re.compile(rf"{NIGHTS}/\d{{8}}\.parquet")
_RECORD, _HASH = b"night", b"hash"

HISTORY = pa.schema(
    [
        pa.field("night", pa.int64(), nullable=False),
        pa.field("date", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("system", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("signature", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""One row per number over all queries of a system that was scored in a night. `version` is that of the archive."""


def night_file(number: int) -> str:
    """Return the name of the file of a night."""
    return f"{NIGHTS}/{number:08d}.parquet"


def night_files(storage: Storage) -> list[str]:
    """Return the names of the nights that must exist: from the first on, as many as there are files."""
    found = sum(_NIGHT.fullmatch(name) is not None for name in storage.modified(NIGHTS))
    return [night_file(number) for number in range(1, found + 1)]


def night_content(table: pa.Table, record: bytes) -> bytes:
    """Return a night as a Parquet file: its numbers, and in the metadata its record and the hash of both."""
    sink = pa.BufferOutputStream()
    metadata = {_RECORD: record, _HASH: night_hash(table, record)}
    pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def read_night(content: bytes | pa.Buffer, schema: pa.Schema | None = None) -> tuple[pa.Table, bytes]:
    """Return the numbers and the record of a night. Damaged bytes can raise any exception."""
    table = read_parquet(content)
    bare, record = table.replace_schema_metadata(None), table.schema.metadata[_RECORD]
    expected = schema is None or bare.schema.equals(schema)
    if not expected or table.schema.metadata[_HASH] != night_hash(bare, record):
        raise ValueError("its hash differs")
    return bare, record


def version_of_last_night(storage: Storage) -> int:
    """Return the version of the archive that the last night was scored from; 0 if there is none, or it is damaged.

    Raises `ArchiveError` if nights cannot be listed, and `StoreError` if a store does not let the last one be read.
    """
    names = night_files(storage)
    if not names:
        return 0
    with suppress(OSError):
        content = storage.read(names[-1])
        with suppress(Exception):  # damaged bytes can make a reader raise anything
            return int(json.loads(read_night(content)[1])["version"])
    return 0


def night_hash(table: pa.Table, record: bytes) -> bytes:
    """Return the hash of a night's numbers and record."""
    schema = pa.schema([field.remove_metadata() for field in table.schema])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(table.combine_chunks().cast(schema))
    return hash_bytes(sink.getvalue().to_pybytes() + record).hex().encode()


@dataclass(frozen=True, eq=False)
class CommittedNight:
    """A night: its record and its rows of `HISTORY`, whose names are coded (`model.name_columns`)."""

    record: Record
    table: pa.Table

    @property
    def hash(self) -> str:
        """The hash of both."""
        return night_hash(decoded(self.table), self.record.to_json().encode()).decode()

    def standings(self) -> Iterator[tuple[str, Standing]]:
        """Yield the systems that the night scored, each with its standing after it."""
        _, first = np.unique(self.table["system"].combine_chunks().indices, return_index=True)
        rows = self.table.select(["system", "night", "version", "content", "signature"]).take(np.sort(first))
        for system, *standing in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            yield system, Standing(*standing)


@dataclass(frozen=True)
class Standing:
    """The state of a system: the night that scored it last, the content of its run, the signature of its numbers."""

    night: int
    version: int
    content: str
    signature: str


@dataclass(frozen=True, eq=False)
class History:
    """All nights, in order."""

    nights: Sequence[CommittedNight]

    def until(self, version: int) -> History:
        """Return the nights that were scored from a version of the archive or from earlier ones."""
        return History([night for night in self.nights if night.record.version <= version])

    @property
    def last(self) -> Record | None:
        """The record of the last night."""
        return self.nights[-1].record if self.nights else None

    @cached_property
    def table(self) -> pa.Table:
        """The rows of all nights, names coded."""
        return gathered([coded(HISTORY.empty_table(), HISTORY), *(night.table for night in self.nights)])

    @cached_property
    def stamps(self) -> dict[str, str]:
        """The latest stamp of every file that a night examined."""
        return {url: stamp for night in self.nights for url, stamp in night.record.stamps.items()}

    @cached_property
    def refused(self) -> dict[str, Refused]:
        """The refused runs, by file: those that had problems when a night last examined them."""
        found: dict[str, Refused] = {}
        for night in self.nights:
            for url in night.record.stamps:
                found.pop(url, None)
            found.update({each.url: each for each in night.record.refused})
        return found

    @cached_property
    def sources(self) -> dict[str, str]:
        """The file of each system that a night ingested last. Nights of earlier releases do not record it."""
        return {system: url for night in self.nights for system, url in night.record.sources.items()}

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """The standing of every system, by name."""
        return dict(chain.from_iterable(night.standings() for night in self.nights))

    def current(self) -> pa.Table:
        """Return the rows of every system from the night that scored it last, names coded."""
        last: dict[int, list[str]] = {}
        for system, standing in self.standings.items():
            last.setdefault(standing.night, []).append(system)
        parts = (rows_with(each.table, system=last.get(each.record.number, ())) for each in self.nights)
        return gathered([coded(HISTORY.empty_table(), HISTORY), *parts])

    def leaderboard(self, requested: Sequence[str] | None = None) -> Leaderboard:
        """Return the current leaderboard of the `requested` measures; None means all."""
        current = self.current()
        return leaderboard_of(current.append_column("query", pa.nulls(len(current), pa.string())), requested)

    def rows_of(self, measure: str, condition: str = "all") -> list[Row]:
        """Return the numbers of one measure in all nights, in order."""
        rows: list[Row] = []
        for night in self.nights:
            rows += rows_with(night.table, measure=[measure], condition=[condition]).to_pylist()
        return rows


def read_history(storage: Storage, known: History | None = None) -> History:
    """Return the history of an archive; without nights if there is none. Nights that are `known` are not read again.

    Raises
    ------
    ArchiveError
        If a night is missing or damaged.
    """
    nights = [] if known is None else [*known.nights]
    names = night_files(storage)[len(nights) :]
    contents = storage.read_all(names)
    return History([*nights, *(_night(storage, name, contents) for name in names)])


def commit_night(storage: Storage, record: Record, rows: Iterable[dict[str, object]]) -> bool:
    """Add a night to the history. Returns False, and changes nothing, if another process committed it first."""
    table = pa.Table.from_pylist(
        [{"night": record.number, "date": record.date, "version": record.version, **row} for row in rows], HISTORY
    )
    return storage.write_new(night_file(record.number), night_content(table, record.to_json().encode()))


def remove_unfinished(storage: Storage) -> None:
    """Remove the unfinished files of a night that was killed. Only the holder of the lease writes here."""
    for name in storage.modified(NIGHTS):
        if name.endswith(PART):
            storage.remove(name)


def _night(storage: Storage, name: str, contents: dict[str, bytes]) -> CommittedNight:
    where = f"{storage.url}/{name}"
    try:
        table, record = read_night(contents.get(name) or storage.read(name), HISTORY)
        return CommittedNight(Record.from_json(record.decode()), coded(table, HISTORY))
    except StoreError:
        raise
    except Exception as error:  # Damaged data may raise any error.
        if (short := shortage(error, where)) is not None:
            raise short from error
        found = "none" if isinstance(error, FileNotFoundError) else f"one that is not what was written ({error})"
        if isinstance(error, PermissionError):
            raise ArchiveError(f"{where}: no permission to read this night. Change the permissions.") from None
        raise ArchiveError(
            f"{where}: expected a night of the history; found {found}. Restore it from a copy of the archive."
        ) from None


def overall_numbers(table: pa.Table) -> dict[tuple[str, str], float]:
    """Return the numbers over all queries and documents by system and measure."""
    own = table.filter(pc.equal(table["condition"], "all"))
    names = zip(own["system"].to_pylist(), own["measure"].to_pylist(), strict=True)
    return dict(zip(names, own["value"].to_pylist(), strict=True))
