"""Archives made by hand to do harm: each case changes a copy of a sound one, with the hashes of what it then holds."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from swsdask.archive.cells import hash_parts
from swsdask.archive.storage import Storage
from swsdask.archive.store import open_archive
from swsdask.archive.stored_tables import Fragment, StoredFile, StoredRun, read_runs_table, write_runs_table
from swsdask.archive.versions import new_token, table_name
from swsdask.model.schemas import DETECTIONS, INSIDE
from tests.archives import rewritten, without_hashes
from tests.faults.samples import N_DOCUMENTS, N_QUERIES

Case = Callable[[Path], None]

LEAST, MOST = -(2**31), 2**31 - 1
VALUES: dict[str, tuple[Any, ...]] = {
    "query": (-1, N_QUERIES, MOST, LEAST),
    "document": (-2, N_DOCUMENTS, MOST, LEAST),
    "start": (-1, LEAST),
    "duration": (-1, LEAST),
    "score": (float("nan"), float("inf"), float("-inf"), 1e300, -1e300),
    "decision": (-1, 2, -2, 127),
    "inside": (-1, max(INSIDE["exact"]) + 1, 127),
}
"""Values that no run of the sample has, by column."""

OTHER_TYPES = (pa.int64(), pa.float32(), pa.string())


def cases() -> Iterator[tuple[str, Case]]:
    """Every case by name; those of rows with right hashes, and as an earlier release would have written them."""
    for name, case in _of_rows():
        yield name, case
        yield f"{name}, without hashes", unhashed(case)
    yield from _of_tables()
    yield from _of_places()


def _of_rows() -> Iterator[tuple[str, Case]]:
    for name, values in VALUES.items():
        for value in values:
            for row in (0, 17, -1):
                yield f"{name} = {value} in row {row}", _edited(_with_value(name, row, value))
    for name in DETECTIONS.names:
        for other in OTHER_TYPES:
            if other != DETECTIONS.field(name).type:
                yield f"{name} as {other}", _edited(_cast(name, other))
        yield f"nulls in {name}", _edited(_with_null(name))
        yield f"without {name}", _edited(lambda table, name=name: table.drop_columns([name]))
        yield f"{name} twice", _edited(lambda table, name=name: table.append_column(table.field(name), table[name]))
    yield "rows in reverse", _edited(lambda table: table.take(list(range(len(table)))[::-1]))
    yield "a row less", _edited(lambda table: table.slice(1))
    yield "a row more", _edited(lambda table: pa.concat_tables([table, table.slice(len(table) - 1)]))
    yield "no rows", _edited(lambda table: table.slice(0, 0))
    yield "another table", _edited(lambda table: pa.table({"x": list(range(len(table)))}))


def _of_tables() -> Iterator[tuple[str, Case]]:
    for count in (0, -1, 2**31, 2**62):
        yield f"row groups of {count} rows", _runs_edited(_with_groups(count))
    for parts in (b"", b"x", bytes(16), bytes(16 * 1000)):
        yield (
            f"{len(parts)} bytes of hashes",
            _runs_edited(lambda fragment, parts=parts: replace(fragment, parts=parts)),
        )
    for file in ("", ".", "..", "../x", "/etc/passwd", "tables", "detections/../..", "x\0y", "x" * 5000):
        yield (
            f"a fragment named {file[:20]!r}",
            _runs_edited(lambda fragment, file=file: replace(fragment, file=replace(fragment.file, file=file))),
        )
    for table in ("documents", "queries", "words", "segments", "occurrences", "runs"):
        yield f"no {table} in the manifest", _manifest(lambda said, table=table: said["tables"].pop(table))
        yield (
            f"{table} in a file that is not there",
            _manifest(lambda said, table=table: said["tables"][table].update(file=f"tables/{table}-0.parquet")),
        )
        yield f"{table} named by a number", _manifest(lambda said, table=table: said["tables"].update({table: 7}))
        yield f"{table} empty", _table_edited(table, lambda _: b"")
        yield f"{table} of other bytes", _table_edited(table, lambda content: os.urandom(len(content)))
        yield f"{table} cut short", _table_edited(table, lambda content: content[: len(content) // 2])
        for number in range(3):
            yield f"{table} without column {number}", _table_edited(table, _dropped(number))
            yield f"nulls in column {number} of {table}", _table_edited(table, _nulled(number))
    for what, edit in {
        "that is not there": lambda part: {**part, "file": "tables/runs-0.parquet"},
        "of another size": lambda part: {**part, "size": part["size"] + 1},
        "of another hash": lambda part: {**part, "hash": "0" * 32},
        "without a hash": lambda part: {"file": part["file"]},
        "out of the archive": lambda part: {**part, "file": "../x"},
        "that is a number": lambda _: 7,
    }.items():
        yield f"a newer part {what}", _manifest(lambda said, edit=edit: said.update(newer=[*map(edit, said["newer"])]))
    yield "a newer part that is another table", _manifest(lambda said: said.update(newer=[said["tables"]["words"]]))
    for key in ("version", "tables", "newer", "inputs", "buckets", "find_gap", "text_filters", "settings"):
        for value in (None, -1, 2**80, "x", [], {"x": 1}):
            if (key, value) not in (("settings", None), ("text_filters", []), ("newer", [])):
                yield (
                    f"{key} = {value!r} in the manifest",
                    _manifest(lambda said, key=key, value=value: said.update({key: value})),
                )


def _of_places() -> Iterator[tuple[str, Case]]:
    for what in ("link", "pipe", "folder", "socket"):
        for place in ("manifest", "table", "fragment", "folder"):
            if (what, place) != ("folder", "folder"):
                yield f"a {what} in place of a {place}", _replaced(what, place)


def _first(folder: Path) -> tuple[Storage, StoredRun]:
    archive = open_archive(str(folder))
    return archive.storage, archive.stored_runs[0]


def _edited(edit: Callable[[pa.Table], pa.Table]) -> Case:
    """Another content of the first fragment, its row groups as the table of runs says."""

    def case(folder: Path) -> None:
        _, stored = _first(folder)
        fragment = stored.fragments[0]
        file = folder / fragment.file.file
        table = edit(pq.ParquetFile(file).read())
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, table.schema) as writer:
            begin = 0
            for place, size in enumerate(fragment.groups):
                last = place == len(fragment.groups) - 1
                group = table.slice(begin, None if last else size)
                if len(group):
                    writer.write_table(group, row_group_size=len(group))
                begin += size
        content = sink.getvalue()
        file.write_bytes(content)
        _write_runs(
            folder,
            lambda _: replace(
                fragment, file=StoredFile.of(fragment.file.file, content), parts=_hashes(content, len(fragment.groups))
            ),
        )

    return case


def _hashes(content: pa.Buffer, groups: int) -> bytes | None:
    parts = hash_parts(content)
    return parts if len(parts) > 16 and (len(parts) - 16) % (16 * groups) == 0 else None


def _runs_edited(edit: Callable[[Fragment], Fragment]) -> Case:
    return lambda folder: _write_runs(folder, edit)


def _write_runs(folder: Path, edit: Callable[[Fragment], Fragment]) -> None:
    """Another first fragment in the table of runs, and in the run's number of rows."""
    storage, _ = _first(folder)
    manifest = max(folder.glob("manifest-*"))
    stored = open_archive(str(folder)).manifest.tables["runs"]
    runs = list(read_runs_table(storage, stored).values())
    fragments = (edit(runs[0].fragments[0]), *runs[0].fragments[1:])
    rows = sum(sum(each.groups) for each in fragments)
    runs[0] = StoredRun(replace(runs[0].run, rows=min(max(rows, 0), 2**63 - 1)), fragments)
    written = write_runs_table(storage, table_name("runs", new_token()), runs)  # An older version has the other one.
    rewritten(manifest, lambda said: said["tables"].update(runs=vars(written)))


def _with_groups(count: int) -> Callable[[Fragment], Fragment]:
    return lambda fragment: replace(fragment, groups=(count, *fragment.groups[1:]))


def _manifest(edit: Callable[[dict[str, Any]], Any]) -> Case:
    return lambda folder: rewritten(max(folder.glob("manifest-*")), edit)


def _table_edited(table: str, edit: Callable[[bytes], bytes]) -> Case:
    def case(folder: Path) -> None:
        name = open_archive(str(folder)).manifest.tables[table].file
        content = edit((folder / name).read_bytes())
        (folder / name).write_bytes(content)
        described = vars(StoredFile.of(name, content))
        rewritten(max(folder.glob("manifest-*")), lambda said: said["tables"].update({table: described}))

    return case


def _parquet(edit: Callable[[pa.Table], pa.Table]) -> Callable[[bytes], bytes]:
    def edited(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(edit(pq.read_table(pa.BufferReader(content), use_threads=False)), sink)
        return sink.getvalue().to_pybytes()

    return edited


def _dropped(number: int) -> Callable[[bytes], bytes]:
    return _parquet(lambda table: table.remove_column(number))


def _nulled(number: int) -> Callable[[bytes], bytes]:
    def edit(table: pa.Table) -> pa.Table:
        field = table.field(number).with_nullable(True)
        rows = max(len(table), 1)
        padded = table if len(table) else table.schema.empty_table()
        values = pa.nulls(rows, field.type)
        columns = {
            name: padded[name] if len(table) else pa.nulls(rows, padded[name].type) for name in table.column_names
        }
        columns[field.name] = values
        schema = pa.schema([each.with_nullable(True) for each in table.schema])
        return pa.table(columns, schema=schema)

    return _parquet(edit)


def _with_value(name: str, row: int, value: Any) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values[row] = value
        field = table.field(name)
        return table.set_column(table.column_names.index(name), field, pa.chunked_array([pa.array(values, field.type)]))

    return edit


def _with_null(name: str) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        values = [None, *table[name].to_pylist()[1:]]
        field = table.field(name).with_nullable(True)
        return table.set_column(table.column_names.index(name), field, [pa.array(values, field.type)])

    return edit


def _cast(name: str, other: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        column = table[name].cast(other, safe=False)
        return table.set_column(table.column_names.index(name), pa.field(name, other, nullable=False), column)

    return edit


def _replaced(what: str, place: str) -> Case:
    """Something else in the place of a file, or of the folder of the fragments."""

    def case(folder: Path) -> None:
        archive = open_archive(str(folder))
        names = {
            "manifest": max(folder.glob("manifest-*")).name,
            "table": archive.manifest.tables["documents"].file,
            "fragment": archive.stored_runs[0].fragments[0].file.file,
            "folder": "detections",
        }
        target = folder / names[place]
        aside = folder.parent / f"{folder.name}-aside"
        target.rename(aside)
        if what == "link":
            target.symlink_to(aside)
        elif what == "pipe":
            os.mkfifo(target)
        elif what == "folder":
            target.mkdir()
        else:
            here = os.getcwd()
            os.chdir(target.parent)
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind("s")
            os.chdir(here)
            (target.parent / "s").rename(target)

    return case


def unhashed(case: Case) -> Case:
    """The same change of an archive that an earlier release wrote."""

    def both(folder: Path) -> None:
        case(folder)
        without_hashes(folder)

    return both
