"""The table `runs`: what each run of an archive is, and which fragments hold its rows.

A fragment is listed with its size and hash, and the hashes of its parts: first that of its footer, then those of the
column chunks of its row groups, row group by row group. So what a cell reads is verified by itself, and is known to be
of this run, this row group and this column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from swsdask.archive.protocols import Run
from swsdask.archive.storage import Storage
from swsdask.archive.tables import StoredFile, damaged, read_table, write_table
from swsdask.model.resources import Resources
from swsdask.model.trials import ScoreRange

HASH_BYTES = 16


def _schema(*fragment: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [
            pa.field("system", pa.string(), nullable=False),
            pa.field("rows", pa.int64(), nullable=False),
            pa.field("content", pa.string(), nullable=False),
            pa.field("has_decisions", pa.bool_(), nullable=False),
            pa.field("declared_scores", pa.list_(pa.float64())),
            pa.field("scores", pa.list_(pa.float64()), nullable=False),
            pa.field("files", pa.list_(pa.string()), nullable=False),
            pa.field("attributes", pa.map_(pa.string(), pa.string()), nullable=False),
            pa.field("unknown_documents", pa.map_(pa.string(), pa.int64()), nullable=False),
            pa.field("unknown_queries", pa.map_(pa.string(), pa.int64()), nullable=False),
            pa.field("rounded", pa.int64(), nullable=False),
            pa.field("outside", pa.int64(), nullable=False),
            pa.field("resources", pa.string()),
            pa.field(
                "fragments",
                pa.list_(pa.struct([("file", pa.string()), ("groups", pa.list_(pa.int64())), *fragment])),
                nullable=False,
            ),
        ]
    )


RUNS = _schema(("size", pa.int64()), ("hash", pa.string()), ("parts", pa.binary()))
"""One row per run, sorted by system. A fragment's `groups` are the rows of each of its row groups, `parts` the hashes
of its parts; `size`, `hash` and `parts` are null where an earlier release wrote it. `resources` is the JSON of
`model.resources`, null where none are reported. No list is of fixed size: pyarrow before 26 cannot read its nulls."""

EARLIER_RUNS = _schema()
"""The table as releases wrote it whose files have no hashes."""

_AS_THEY_ARE = ("system", "rows", "content", "has_decisions", "rounded", "outside")
_MAPS = ("attributes", "unknown_documents", "unknown_queries")

_Count = Annotated[int, Field(ge=0)]
_Range = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]


@dataclass(frozen=True)
class Fragment:
    """A file of detections of one run, the rows of each of its row groups, and the hashes of its parts if known."""

    file: StoredFile
    groups: tuple[int, ...]
    parts: bytes | None = None

    @property
    def footer(self) -> bytes | None:
        """The hash of the footer."""
        return None if self.parts is None else self.parts[:HASH_BYTES]

    def chunks(self, group: int) -> bytes | None:
        """The hashes of the column chunks of a row group, one after the other."""
        if self.parts is None:
            return None
        per_group = (len(self.parts) - HASH_BYTES) // len(self.groups)
        return self.parts[HASH_BYTES + group * per_group : HASH_BYTES + (group + 1) * per_group]


@dataclass(frozen=True)
class StoredRun:
    """A run and the files of its rows, in order."""

    run: Run
    fragments: tuple[Fragment, ...]


class _FragmentRecord(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    file: str
    groups: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    size: _Count | None = None
    hash: str | None = None
    parts: bytes | None = None


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    system: str
    rows: _Count
    content: str
    has_decisions: bool
    declared_scores: _Range | None
    scores: _Range
    files: list[str]
    attributes: list[tuple[str, str]]
    unknown_documents: list[tuple[str, _Count]]
    unknown_queries: list[tuple[str, _Count]]
    rounded: _Count
    outside: _Count
    resources: str | None
    fragments: list[_FragmentRecord]


def write_runs_table(storage: Storage, name: str, runs: Iterable[StoredRun]) -> StoredFile:
    """Write the table of some runs, sorted by system."""
    ordered = sorted(runs, key=lambda each: each.run.system)
    return write_table(storage, name, pa.Table.from_pylist([_record(each) for each in ordered], RUNS))


def read_runs_table(storage: Storage, stored: StoredFile) -> dict[str, StoredRun]:
    """The runs of a table by system, in its order.

    Raises
    ------
    ArchiveError
        If the file is gone or damaged, or says what no writer writes.
    """
    table = read_table(storage, stored, RUNS, EARLIER_RUNS)
    runs: dict[str, StoredRun] = {}
    for record in table.to_pylist():
        where = f", system {record['system']!r}"
        try:
            run = _stored_run(record)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise damaged(storage, stored.file, f"{place}: {first['msg']}", where) from None
        except ValueError as error:
            raise damaged(storage, stored.file, f"one that says what no run has: {error}", where) from None
        if record["system"] in runs:
            raise damaged(storage, stored.file, "this system twice", where)
        runs[record["system"]] = run
    return runs


def _record(stored: StoredRun) -> dict[str, object]:
    run = stored.run
    return {
        **{name: getattr(run, name) for name in _AS_THEY_ARE},
        **{name: list(getattr(run, name).items()) for name in _MAPS},
        "declared_scores": run.scores.declared,
        "scores": run.scores.run,
        "files": run.files,
        "resources": None if run.resources is None else run.resources.to_json(),
        "fragments": [
            {
                "file": each.file.file,
                "groups": each.groups,
                "size": each.file.size,
                "hash": each.file.hash,
                "parts": each.parts,
            }
            for each in stored.fragments
        ],
    }


def _stored_run(record: dict[str, object]) -> StoredRun:
    said = _Record.model_validate(record)
    (low, high), declared = said.scores, said.declared_scores
    if low > high:
        raise ValueError(f"scores from {low} to {high}")
    fragments = tuple(_fragment(each) for each in said.fragments)
    held = sum(sum(each.groups) for each in fragments)
    if held != said.rows:
        raise ValueError(f"{said.rows} rows, and {held} in its fragments")
    as_they_are: dict[str, Any] = {name: getattr(said, name) for name in _AS_THEY_ARE}
    maps: dict[str, Any] = {name: dict(getattr(said, name)) for name in _MAPS}
    run = Run(
        **as_they_are,
        **maps,
        scores=ScoreRange(None if declared is None else (declared[0], declared[1]), (low, high)),
        files=tuple(said.files),
        resources=None if said.resources is None else Resources.from_json(said.resources),
    )
    return StoredRun(run, fragments)


def _fragment(said: _FragmentRecord) -> Fragment:
    groups, parts = len(said.groups), said.parts
    if parts is not None and (len(parts) <= HASH_BYTES or (len(parts) - HASH_BYTES) % (HASH_BYTES * groups)):
        raise ValueError(f"{len(parts)} bytes of hashes of {groups} row groups")
    return Fragment(StoredFile(said.file, said.size, said.hash), tuple(said.groups), parts)
