"""Merged statistics kept in an archive: what was counted once is not counted again.

    kept/VERSION/CONTENT/STATISTIC-KEY-HASH.arrow

VERSION is a digest of the sources that decide what a statistic is (`version`), CONTENT the content hash of the run, KEY
the hash of all that the statistic depends on: the bytes of the run's fragments, its range of scores, the reference,
and what the statistic was prepared with. HASH is that of the file's bytes, an Arrow file of one row
(`statistics.as_arrow`). So equal statistics have equal names, writers cannot conflict, and a file that is damaged or
was cut off is known by its name: it is counted again, and written again.

The rules of a reference (`model.trials.RULES`) shape only the statistics that follow them; everything else in a
reference shapes all. Only statistics of this package are kept: the version of others is unknown. Nor are those of
runs that are read unverified, for damage would be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import xxhash

from swsdask.archive.run_table import StoredRun
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive
from swsdask.archive.tables import digest
from swsdask.archive.versions import KEPT
from swsdask.model.errors import ArchiveError
from swsdask.model.trials import RULES, Reference
from swsdask.statistics.as_arrow import from_arrow, to_arrow
from swsdask.statistics.statistic import Statistic

Found = Mapping[type[Statistic], Any]
"""Statistics of one system, or what they are prepared with, by their type."""

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = ("model", "kernels", "alignment", "statistics", "archive")
_OURS = f"{PACKAGE.name}.statistics."
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(eq=False)
class KeptStatistics:
    """The statistics that an archive keeps for one reference.

    `used` and `counted` say how many were taken from it and how many were not there; `fault` why they cannot be
    written, if they cannot.
    """

    archive: StoredArchive
    reference: Reference
    used: int = 0
    counted: int = 0
    fault: str | None = None
    _runs: dict[str, StoredRun] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._runs = {stored.run.system: stored for stored in self.archive.stored_runs}
        self._files = {name.rpartition("-")[0]: name for name in self._storage.modified(f"{KEPT}/{version()}")}
        values = {each.name: getattr(self.reference, each.name) for each in fields(self.reference)}
        self._rules = {name: digest_of(values.pop(name)) for name in RULES}
        self._shape = digest_of(values)

    def read(self, prepared: Mapping[str, Found]) -> dict[str, dict[type[Statistic], Any]]:
        """The statistics that are kept, of those that are prepared for some systems."""
        wanted = {
            self._files[place]: (system, kind) for system, kind, place in self._places(prepared) if place in self._files
        }
        found: dict[str, dict[type[Statistic], Any]] = {system: {} for system in prepared}
        for name, content in self._storage.read_all(wanted).items():
            system, kind = wanted[name]
            if name.endswith(f"-{digest(content).hex()}.arrow"):
                with suppress(pa.ArrowException, ValueError):  # no file of ours, though its hash is right
                    found[system][kind] = from_arrow(kind, pa.ipc.open_file(pa.BufferReader(content)).get_batch(0))
        self.used += sum(map(len, found.values()))
        self.counted += sum(len(of) - len(found[system]) for system, of in prepared.items())
        return found

    def write(self, prepared: Mapping[str, Found], found: Mapping[str, Found]) -> None:
        """Keep what was found of what was prepared. An archive that cannot be written stays as it is: see `fault`."""
        files = {
            f"{place}-{digest(content).hex()}.arrow": content
            for system, kind, place in self._places(prepared)
            if kind in found[system]
            for content in [_file(found[system][kind])]
        }
        if self.fault is None:
            try:
                self._storage.write_all(files)
            except ArchiveError as error:
                self.fault = str(error)

    @property
    def _storage(self) -> Storage:
        return self.archive.storage

    def _places(self, prepared: Mapping[str, Found]) -> Iterator[tuple[str, type[Statistic], str]]:
        """Every statistic that may be kept: its system, its type, and the name of its file without the hash."""
        for system, of in prepared.items():
            stored = self._runs[system]
            of_run = (stored.run.scores, tuple(each.file.hash for each in stored.fragments), self._shape)
            for kind, given in of.items():
                if kind.__module__.startswith(_OURS):
                    rules = tuple(self._rules[name] for name in getattr(kind, "follows", ()))
                    key = digest_of((*of_run, rules, given))
                    yield system, kind, f"{KEPT}/{version()}/{stored.run.content}/{kind.__name__}-{key}"


def kept_statistics(archive: object, reference: Reference) -> KeptStatistics | None:
    """What an archive keeps for a reference; None where nothing can be: in memory, or read without verification."""
    if isinstance(archive, StoredArchive) and archive.verification == "on":
        return KeptStatistics(archive, reference)
    return None


def kept_for(contents: Iterable[str]) -> Callable[[str], bool]:
    """Whether a file is a statistic that this release keeps of a run with one of these content hashes."""
    folders = {f"{KEPT}/{version()}/{content}" for content in contents}
    return lambda name: name.rpartition("/")[0] in folders


@cache
def version() -> str:
    """A digest of the sources that decide what a statistic is."""
    state = xxhash.xxh3_64()
    for package in SOURCES:
        for file in sorted((PACKAGE / package).rglob("*.py")):
            content = file.read_bytes()
            state.update(f"\n{file.relative_to(PACKAGE)} {len(content)}\n".encode() + content)
    return state.hexdigest()


def digest_of(value: Any) -> str:
    """The hash of arrays, texts, numbers, and of what is made of them: equal for equal values and types."""
    state = xxhash.xxh3_128()
    _update(state, value)
    return state.hexdigest()


def _update(state: xxhash.xxh3_128, value: Any) -> None:
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype.str}{value.shape};".encode() + np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        _update(state, {each.name: getattr(value, each.name) for each in fields(value)})
    elif isinstance(value, Mapping):
        _update(state, tuple(value.items()))
    elif isinstance(value, list | tuple):
        state.update(f"{len(value)}(".encode())
        for each in value:
            _update(state, each)
    elif value is None or isinstance(value, str | int | float | np.generic):
        state.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"no hash of a {type(value).__name__}")


def _file(statistic: Statistic) -> pa.Buffer:
    row = to_arrow(statistic)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, row.schema, options=_COMPRESSED) as file:
        file.write_batch(row)
    return sink.getvalue()
