"""The table `runs` of an archive on storage: what each run is and which files hold its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from swsdask.archive.base import Run
from swsdask.model.resources import Resources
from swsdask.model.trials import ScoreRange

RUNS = pa.schema(
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
            "fragments", pa.list_(pa.struct({"file": pa.string(), "groups": pa.list_(pa.int64())})), nullable=False
        ),
    ]
)
"""One row per run, sorted by system. A fragment's `groups` are the rows of each of its row groups; `resources` is the
JSON of `model.resources`, null where none are told. No list is of fixed size: pyarrow before 26
cannot read its nulls."""

_AS_THEY_ARE = ("system", "rows", "content", "has_decisions", "rounded", "outside")
_MAPS = ("attributes", "unknown_documents", "unknown_queries")


@dataclass(frozen=True)
class Fragment:
    """A file of detections of one run and the rows of each of its row groups."""

    file: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class StoredRun:
    """A run and the files of its rows, in order."""

    run: Run
    fragments: tuple[Fragment, ...]


def to_table(runs: Iterable[StoredRun]) -> pa.Table:
    """The table of some runs."""
    return pa.Table.from_pylist([_record(each) for each in sorted(runs, key=lambda each: each.run.system)], RUNS)


def from_table(table: pa.Table) -> list[StoredRun]:
    """The runs of a table, in its order."""
    return [_stored_run(record) for record in table.to_pylist()]


def _record(stored: StoredRun) -> dict[str, Any]:
    run = stored.run
    return {
        **{name: getattr(run, name) for name in _AS_THEY_ARE},
        **{name: list(getattr(run, name).items()) for name in _MAPS},
        "declared_scores": run.scores.declared,
        "scores": run.scores.run,
        "files": run.files,
        "resources": None if run.resources is None else run.resources.to_json(),
        "fragments": [{"file": each.file, "groups": each.groups} for each in stored.fragments],
    }


def _stored_run(record: dict[str, Any]) -> StoredRun:
    declared = record["declared_scores"]
    low, high = record["scores"]
    told = record.get("resources")
    said = {name: record[name] for name in _AS_THEY_ARE} | {name: dict(record[name]) for name in _MAPS}
    run = Run(
        **said,
        scores=ScoreRange(None if declared is None else (declared[0], declared[1]), (low, high)),
        files=tuple(record["files"]),
        resources=None if told is None else Resources.from_json(told),
    )
    return StoredRun(run, tuple(Fragment(each["file"], tuple(each["groups"])) for each in record["fragments"]))
