"""The history of an archive: a Parquet file per night.

    history/00000001.parquet           the numbers over all queries of the systems that were scored in a night

A night is committed when its file is created, which happens only if the name is free; the file is never changed. It
has the numbers of the systems that the night scored; all others are unchanged. The other results of a night (files,
refused runs, moves, failed gates) are in the metadata of the file, as JSON, and so is the hash of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.archive.local import PART
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive
from swsdask.archive.stored_tables import NIGHTS, night_content, night_file, night_files, night_hash, read_night
from swsdask.model.errors import ArchiveError, StoreError
from swsdask.model.leaderboard import Board, Record, Refused, board
from swsdask.model.limits import shortage
from swsdask.model.tables import LateImport, Row
from swsdask.places.reading import Location, as_path

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")

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


@dataclass(frozen=True, eq=False)
class Night:
    """A committed night: its record and its rows of `HISTORY`."""

    record: Record
    table: pa.Table

    @property
    def hash(self) -> str:
        """The hash of both."""
        return night_hash(self.table, self.record.to_json().encode()).decode()


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

    nights: Sequence[Night]

    def until(self, version: int) -> History:
        """The nights that were scored from a version of the archive or from earlier ones."""
        return History([night for night in self.nights if night.record.version <= version])

    @property
    def last(self) -> Record | None:
        """The record of the last night."""
        return self.nights[-1].record if self.nights else None

    @cached_property
    def table(self) -> pa.Table:
        """The rows of all nights."""
        return pa.concat_tables([HISTORY.empty_table(), *(night.table for night in self.nights)])

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
        columns = [self.table[name].to_pylist() for name in ("system", "night", "version", "content", "signature")]
        return {system: Standing(*values) for system, *values in dict.fromkeys(zip(*columns, strict=True))}

    def current(self) -> pa.Table:
        """The rows of every system from the night that scored it last."""
        rows = zip(self.table["system"].to_pylist(), self.table["night"].to_pylist(), strict=True)
        return self.table.filter(pa.array([self.standings[name].night == night for name, night in rows], pa.bool_()))

    def board(self, requested: Sequence[str] | None = None) -> Board:
        """The current leaderboard of the `requested` measures; None means all."""
        current = self.current()
        return board(current.append_column("query", pa.nulls(len(current), pa.string())), requested)

    def rows_of(self, measure: str, condition: str = "all") -> list[Row]:
        """The numbers of one measure in all nights, in order."""
        named = pc.and_(pc.equal(self.table["measure"], measure), pc.equal(self.table["condition"], condition))
        rows: list[Row] = self.table.filter(named).to_pylist()
        return rows


def history(archive: Location) -> pd.DataFrame:
    """Return the history that `swsdask nightly` keeps in an archive.

    Parameters
    ----------
    archive : path or URL
        The archive.

    Returns
    -------
    pandas.DataFrame
        One row per number over all queries of a system that a night scored: night, date, version (of the archive),
        system, content, signature, condition, measure, value. Without nights it has no rows.

    Raises
    ------
    ArchiveError
        There is no archive, or a night is missing or damaged.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> len(sws.history("demo/archive"))
    0
    """
    past = read_history(Storage(as_path(archive)))
    if not past.nights and not is_archive(as_path(archive)):
        raise ArchiveError(f"{as_path(archive)}: expected an archive; found none.")
    frame: pd.DataFrame = past.table.to_pandas()
    return frame


def read_history(storage: Storage) -> History:
    """The history of an archive; without nights if there is none.

    Raises
    ------
    ArchiveError
        If a night is missing or damaged.
    """
    names = night_files(storage)
    contents = storage.read_all(names)
    return History([_night(storage, name, contents) for name in names])


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


def _night(storage: Storage, name: str, contents: dict[str, bytes]) -> Night:
    where = f"{storage.url}/{name}"
    try:
        table, record = read_night(contents.get(name) or storage.read(name), HISTORY)
        return Night(Record.from_json(record.decode()), table)
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


def values_of(table: pa.Table) -> dict[tuple[str, str], float]:
    """The numbers over all queries and documents by system and measure."""
    own = table.filter(pc.equal(table["condition"], "all"))
    names = zip(own["system"].to_pylist(), own["measure"].to_pylist(), strict=True)
    return dict(zip(names, own["value"].to_pylist(), strict=True))
