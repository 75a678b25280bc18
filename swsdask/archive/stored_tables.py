"""Tables of an archive and their files, which are written with size and hash, and verified and checked when read.

The hash is xxh3-128 (`xxhash`), which runs at the speed of memory: 37 to 48 GB/s in cache, compared with 4 GB/s for
BLAKE3. It protects against damage and mix-ups. It need not protect against people who may write the archive, because
they may write any numbers into it.

The table `runs` describes each run and the fragments with its rows. A fragment is listed with its size and hash, and
the hashes of its parts: first that of its footer, then those of the column chunks of its row groups, row group by row
group. So each cell verifies exactly what it reads, as belonging to this run, this row group and this column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from swsdask.archive.protocols import Run
from swsdask.archive.storage import Storage
from swsdask.model.errors import ArchiveError, ResourceError
from swsdask.model.hashes import HASH_BYTES, hash_bytes
from swsdask.model.limits import shortage
from swsdask.model.resources import Resources
from swsdask.model.tables import read_parquet
from swsdask.model.trials import ScoreRange

REMEDY = (
    "Restore it from a copy of the archive (`swsdask verify ARCHIVE --repair COPY`), or ingest the reference and the "
    "runs into a new one."
)
_EXPIRED = "If `swsdask expire` removed its version meanwhile, open the archive again."

Verification = Literal["on", "off", "no hashes"]
"""Whether files of an archive are verified by hashes; "no hashes" if an earlier release wrote one of them."""


@dataclass(frozen=True)
class StoredFile:
    """A file of an archive, as the table or manifest that names it describes it.

    Parameters
    ----------
    file : str
        Its name, relative to the archive.
    size : int, optional
        Its size in bytes. None, like the hash, if an earlier release wrote the file, or if nothing is verified.
    hash : str, optional
        The hash of its bytes, 32 hexadecimal digits.
    """

    file: str
    size: int | None = None
    hash: str | None = None

    @classmethod
    def of(cls, file: str, content: pa.Buffer | bytes) -> Self:
        """Describe a file by the bytes that are written into it."""
        return cls(file, len(content), hash_bytes(content).hex())

    @property
    def unverified(self) -> Self:
        """Leave out size and hash, so that the file is read as it is."""
        return replace(self, size=None, hash=None)

    def fault(self, content: pa.Buffer | bytes) -> str | None:
        """Describe how bytes differ from those that were written; None if they do not, or if this is unknown."""
        if self.size is not None and len(content) != self.size:
            return f"one of {len(content):,} bytes instead of {self.size:,}"
        if self.hash is not None and hash_bytes(content).hex() != self.hash:
            return "one whose content is not what was written (its hash differs)"
        return None


def unreadable(storage: Storage, name: str, error: Exception) -> ArchiveError | ResourceError:
    """Say that reading a file of the archive raised `error`."""
    if (short := shortage(error, f"{storage.url}/{name}")) is not None:
        return short
    if isinstance(error, FileNotFoundError):
        return damaged(storage, name, "none", remedy=f"{_EXPIRED} {REMEDY}")
    return damaged(storage, name, f"one that cannot be read ({error})")


def damaged(storage: Storage, name: str, found: str, where: str = "", remedy: str = "") -> ArchiveError:
    """Say what was found in place of a file of the archive; `where` in the file, if that is known."""
    return ArchiveError(
        f"{storage.url}/{name}{where}: expected a Parquet file of this archive; found {found}. {remedy or REMEDY}"
    )


def read_file(storage: Storage, stored: StoredFile) -> bytes:
    """Return the bytes of a file. Raises `ArchiveError` if it is missing or damaged."""
    try:
        content = storage.read(stored.file, stored.size)
    except OSError as error:
        raise unreadable(storage, stored.file, error) from error
    if fault := stored.fault(content):
        raise damaged(storage, stored.file, fault)
    return content


def read_table(storage: Storage, stored: StoredFile, *schemas: pa.Schema) -> pa.Table:
    """Read a whole Parquet file.

    Parameters
    ----------
    storage : Storage
        The storage of the archive.
    stored : StoredFile
        The file.
    *schemas : pa.Schema
        The allowed schemas of the table, compared without metadata.

    Returns
    -------
    pa.Table
        The table; its columns are valid, and without nulls where the schema says so.

    Raises
    ------
    ArchiveError
        If the file is missing or damaged, or contains another table.
    """
    content = read_file(storage, stored)
    try:
        table = read_parquet(_with_plain_lists(content))
        table.validate(full=True)
        faults = [_table_fault(table, schema) for schema in schemas]
    except Exception as error:  # Damaged bytes can make a reader raise anything.
        raise unreadable(storage, stored.file, error) from error
    if None not in faults:
        raise damaged(storage, stored.file, f"one with {faults[0]}")
    return table


_ARROW_SCHEMA, _NO_SCHEMA = b"ARROW:schema", b"-----:schema"


def _with_plain_lists(content: bytes) -> bytes:
    """Return a Parquet file whose lists of fixed size, if it has any, are read as the plain lists that Parquet stores.

    0.1.0 first wrote the ranges of scores in such lists. pyarrow before 26 cannot read nulls of lists of fixed size;
    only the schema of Arrow in the footer gives the size, and readers ignore an entry under another key.
    """
    if not any(map(pa.types.is_fixed_size_list, pq.read_schema(pa.BufferReader(content)).types)):
        return content
    end = len(content) - 8
    begin = end - int.from_bytes(content[end : end + 4], "little")
    return content[:begin] + content[begin:].replace(_ARROW_SCHEMA, _NO_SCHEMA)


def _table_fault(table: pa.Table, schema: pa.Schema) -> str | None:
    if table.schema.names != schema.names:
        return f"the columns {', '.join(table.schema.names)} instead of {', '.join(schema.names)}"
    for field in schema:
        column = table[field.name]
        if not _same_type(column.type, field.type):
            return f"{column.type} in the column {field.name} instead of {field.type}"
        if column.null_count and not field.nullable:
            return f"nulls in the column {field.name}"
        if pa.types.is_map(field.type) and _has_null(column):
            return f"nulls in the column {field.name}"
    return None


def _same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether types are equal, ignoring the names and nullability of the fields inside them."""
    if pa.types.is_map(other):
        return bool(pa.types.is_map(one) and one.key_type == other.key_type and one.item_type == other.item_type)
    if pa.types.is_list(other):
        return pa.types.is_list(one) and _same_type(one.value_type, other.value_type)
    return bool(one.equals(other))


def _has_null(column: pa.ChunkedArray) -> bool:
    return any(chunk.keys.null_count or chunk.items.null_count for chunk in column.chunks)


def write_table(storage: Storage, name: str, table: pa.Table) -> StoredFile:
    """Write a table as a Parquet file, and describe it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content = sink.getvalue()
    storage.write(name, content)
    return StoredFile.of(name, content)


def check_spans(storage: Storage, stored: StoredFile, table: pa.Table, *pairs: tuple[str, str]) -> None:
    """Raise `ArchiveError` for invalid times: each pair of columns must be an ascending span from 0 on."""
    for first, last in pairs:
        check_range(storage, stored, table, first, None)
        if pc.any(pc.less(table[last], table[first])).as_py():
            raise damaged(storage, stored.file, f"one with {last} before {first} in a row")


def check_range(storage: Storage, stored: StoredFile, table: pa.Table, column: str, high: int | None) -> None:
    """Raise `ArchiveError` for values below 0, or not below `high`."""
    found = pc.min_max(table[column]).as_py()
    if len(table) and (found["min"] < 0 or (high is not None and found["max"] >= high)):
        least, most = found["min"], found["max"]
        expected = "from 0 on" if high is None else f"from 0 to {high - 1}"
        raise damaged(storage, stored.file, f"one with {column} from {least} to {most} instead of {expected}")


NO_HASHES = (
    "Files of the archive carry no hashes, for an earlier release wrote them: damage cannot be seen. `swsdask verify "
    "ARCHIVE --adopt` adds them."
)


def verification_notes(verification: Verification | None) -> tuple[str, ...]:
    """Return the note on files without hashes, if an archive has such."""
    return (NO_HASHES,) if verification == "no hashes" else ()


def verification(files: Iterable[StoredFile], verify: bool) -> Verification:
    """Return whether some files are verified when read."""
    if not verify:
        return "off"
    return "no hashes" if any(each.hash is None for each in files) else "on"


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
`model.resources`, null where none are reported. No list is of fixed size: pyarrow before 26 cannot read its nulls
(`_with_plain_lists`)."""

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
        """Return the hashes of the column chunks of a row group, one after the other."""
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
    """Return the runs of a table by system, in its order.

    Raises
    ------
    ArchiveError
        If the file is missing or damaged, or has content that no writer writes.
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
