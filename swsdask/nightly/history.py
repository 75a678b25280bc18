"""The history of an archive (a Parquet file per night), the lease of a night, and the board of the history.

    history/00000001.parquet           the numbers over all queries of the systems that were scored in a night

A night is committed when its file is created, which happens only if the name is free; the file is never changed. It
has the numbers of the systems that the night scored; all others are unchanged. The other results of a night (files,
refused runs, moves, failed gates) are in the metadata of the file, as JSON, and so is the hash of both.

The board consists of pages and files. Except for the report of the last night, the history alone determines them:

    index.html                 the current leaderboard, the last moves, refused runs, trend lines, all nights
    nights/00000001.html       the report of a night: its new systems and their baselines
    feed.xml                   an Atom entry per night
    metrics.prom               OpenMetrics, for monitoring; the only file that has the duration
    latest.json                the current numbers; written last: a board that has it is complete

If two hosts begin a night, only the holder of the lease works; the lease of a dead process is taken over:

    nightly/lease-00000001.json        the highest number is the lease that counts

A lease is created only if its name is free, so one of two hosts wins. It names its holder and the time when it expires,
and is removed at the end. A process that finds an expired lease, or one whose process on this machine is gone, creates
the lease with the next number. A host that was paused meanwhile finds, before it commits, that its lease no longer
counts. The clocks of hosts must agree to within minutes. If they do not, there are still no two commits of a night: a
night is committed only if its number is free.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from swsdask import __version__
from swsdask.api.results import report
from swsdask.archive.local import PART
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive
from swsdask.archive.stored_tables import NIGHTS, night_content, night_file, night_files, night_hash, read_night
from swsdask.archive.versions import new_token
from swsdask.model.errors import ArchiveError, StoreError, SwsdaskError
from swsdask.model.leaderboard import Board, Record, Refused, board
from swsdask.model.limits import shortage
from swsdask.model.measures import better
from swsdask.model.results import Result
from swsdask.model.tables import LateImport, Row
from swsdask.nightly.settings import NightlyEvaluation
from swsdask.places.reading import Location
from swsdask.places.writing import temporary_folder
from swsdask.render.nightly import BoardPage, Trend, atom_feed, index, metrics, page_of

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

LATEST = "latest.json"
BOARD = ("index.html", "feed.xml", "metrics.prom", LATEST)
"""The files of a board beside the reports of nights, in the order in which they are written."""


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
        """The runs that are set aside, by file: those that were refused when a night last examined them."""
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
    past = read_history(Storage(os.fspath(archive)))
    if not past.nights and not is_archive(os.fspath(archive)):
        raise ArchiveError(f"{os.fspath(archive)}: expected an archive; found none.")
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


def is_published(job: NightlyEvaluation, past: History, *, by_this_release: bool = True) -> bool:
    """Whether the board is whole, and shows the last night of this history; if `by_this_release`, made by this one."""
    out = Storage(job.out)
    if not {*BOARD} <= {*out.files(below=False)}:
        return False
    try:
        said = json.loads(out.read_all([LATEST]).get(LATEST, b"{}"))
    except (ValueError, RecursionError):
        return False
    expected = {"evaluation": job.name, "hash": past.nights[-1].hash}
    expected |= {"swsdask": __version__} if by_this_release else {}
    return all(said.get(name) == value for name, value in expected.items())


def publish(job: NightlyEvaluation, past: History, result: Result | None, began: float) -> bytes:
    """Write the board of the history. Returns `latest.json`.

    `result` has the systems of the last night's report; `began` is the value of `time.monotonic` when the call began.
    """
    out, last = Storage(job.out), past.nights[-1].record
    place = page_of(last)
    if result is not None and place is not None:
        with temporary_folder() as folder:
            path = folder / "report.html"
            report(result, path)
            out.replace(place, path.read_bytes())
    page = board_page(job, past, reports=out.files(below=True))
    latest = (json.dumps(_latest(page, past), sort_keys=True, allow_nan=False) + "\n").encode()
    out.replace("index.html", index(page).encode())
    out.replace("feed.xml", atom_feed(page).encode())
    out.replace("metrics.prom", metrics(page, time.monotonic() - began).encode())
    out.replace(LATEST, latest)
    for name in out.modified():
        if name.endswith(PART):  # Left by a killed night: only the holder of the lease publishes.
            out.remove(name)
    return latest


def board_page(job: NightlyEvaluation, past: History, reports: Iterable[str] = ()) -> BoardPage:
    """The content of the board; `reports` are files of the board, among them the existing reports of nights."""
    current = past.current()
    trends: dict[str, list[tuple[int, float]]] = {}
    found = past.board(job.scored)
    leading = found.by[0] if found.by else ""
    for row in past.rows_of(leading):
        trends.setdefault(row["system"], []).append((row["night"], row["value"]))
    return BoardPage(
        name=job.name,
        measures=found.columns,
        leading=leading,
        board=found,
        nights=tuple(night.record for night in past.nights),
        reports=frozenset(reports),
        refused=tuple(past.refused.values()),
        trends=tuple(Trend(system, tuple(trends.get(system, ()))) for system in found.systems),
        n_systems=len(set(current["system"].to_pylist())),
    )


def _latest(page: BoardPage, past: History) -> dict[str, object]:
    last, found = page.nights[-1], page.board
    return {
        "evaluation": page.name,
        "night": last.number,
        "hash": past.nights[-1].hash,
        "date": last.date,
        "swsdask": __version__,
        "systems": {
            system: {
                "night": past.standings[system].night,
                "content": past.standings[system].content,
                "signature": past.standings[system].signature,
                "values": {
                    condition: {measure: _number(found.value(condition, system, measure)) for measure in found.measures}
                    for condition in found.conditions
                },
            }
            for system in found.systems
        },
        "leading": page.leading,
        "new": [move.system for move in last.moves],
        "refused": [each.url for each in page.refused],
        "gates": list(last.gates),
        "order": {measure: better(measure) for measure in found.measures},
    }


def _number(value: float) -> float | str | None:
    """A number for JSON: infinite ones as text, NaN as None."""
    return None if math.isnan(value) else value if math.isfinite(value) else str(value)


HOLDS_S = 3600.0
"""The number of seconds that a lease holds without renewal; it is renewed after a quarter of that time."""

FOLDER = "nightly"
_LEASE = re.compile(rf"{FOLDER}/lease-(\d{{8}})\.json")


class BusyError(SwsdaskError):
    """Another process works on the same evaluation. This is no failure: there is nothing to do."""

    exit_code = 0


@dataclass(frozen=True)
class Holder:
    """The holder of a lease: a unique token, host, machine and process; and when the lease expires (Unix time)."""

    token: str
    host: str
    machine: str
    process: int
    until: float

    @classmethod
    def me(cls) -> Holder:
        """The current process, with a lease that begins now."""
        return cls(new_token(), socket.gethostname(), _machine(), os.getpid(), time.time() + HOLDS_S)

    @property
    def is_dead(self) -> bool:
        """Whether the lease has expired, or its process ran on this machine and is gone."""
        if time.time() > self.until:
            return True
        if not self.machine or self.machine != _machine() or self.process == os.getpid():
            return False
        try:
            os.kill(self.process, 0)  # sends nothing; /proc may hide processes of other users
        except (OSError, OverflowError) as error:
            return not isinstance(error, PermissionError)
        return False


@dataclass
class NightLease:
    """The right to work on an archive's night."""

    storage: Storage
    number: int
    holder: Holder
    _renewed: float

    def renew(self) -> None:
        """Extend the lease if a quarter of its time has passed."""
        if time.time() - self._renewed > HOLDS_S / 4:
            self.check()
            self.holder = Holder(**{**asdict(self.holder), "until": time.time() + HOLDS_S})
            self.storage.replace(_name(self.number), _said(self.holder))
            self._renewed = time.time()

    def check(self) -> None:
        """Raise `BusyError` if another process has taken the lease over."""
        now = _highest(self.storage)
        if now is None or now[1] is None or now[1].token != self.holder.token:
            raise BusyError(
                f"{self.storage.url}: expected the lease of this night; another process has taken it over, because it "
                "was not renewed in time. What was done so far stays; the other process goes on."
            )


@contextmanager
def night_lease(storage: Storage) -> Iterator[NightLease]:
    """Hold the lease of an archive's night. Raises `BusyError` if another process that is alive holds it."""
    lease = _taken(storage)
    try:
        yield lease
    finally:
        # A lease that cannot be removed expires.
        with suppress(ArchiveError):
            if (there := _highest(storage)) and there[1] and there[1].token == lease.holder.token:
                storage.remove(_name(lease.number))


def _taken(storage: Storage) -> NightLease:
    there = _highest(storage)
    number, holder = there or (0, None)
    if there is not None and (holder is None or not holder.is_dead):
        raise _busy(storage, holder)
    me = Holder.me()
    if not storage.write_new(_name(number + 1), _said(me)):
        raise _busy(storage, None)
    for name, found in _leases(storage):
        if found <= number:
            storage.remove(name)
    return NightLease(storage, number + 1, me, time.time())


def _busy(storage: Storage, holder: Holder | None) -> BusyError:
    who = "another process" if holder is None else f"process {holder.process} on {holder.host}"
    return BusyError(f"{storage.url}: {who} works at this night. There is nothing to do here.")


def _highest(storage: Storage) -> tuple[int, Holder | None] | None:
    """The lease that counts; its holder is None if it cannot be read, for example because it was just removed."""
    found = sorted(_leases(storage), key=lambda each: each[1])
    if not found:
        return None
    name, number = found[-1]
    content = storage.read_all([name]).get(name)
    try:
        return number, None if content is None else Holder(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        raise ArchiveError(f"{storage.url}/{name}: expected a lease; found something else. Remove the file.") from None


def _leases(storage: Storage) -> Iterator[tuple[str, int]]:
    for name in storage.modified(FOLDER):
        if found := _LEASE.fullmatch(name):
            yield name, int(found[1])


def _name(number: int) -> str:
    return f"{FOLDER}/lease-{number:08d}.json"


def _said(holder: Holder) -> bytes:
    return (json.dumps(asdict(holder), sort_keys=True) + "\n").encode()


def _machine() -> str:
    """Identify the current boot of this machine and its namespace of process ids; empty if that is impossible."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
