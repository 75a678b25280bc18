"""Small evaluations for tests of archives, from rows of plain values."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdask.archive.change import ChangePolicy
from swsdask.archive.discovery import EARLIER_SYSTEMS
from swsdask.archive.ingest import write_runs
from swsdask.archive.memory import MemoryArchive
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive
from swsdask.archive.stored_tables import EARLIER_RUNS
from swsdask.archive.versions import Layout
from swsdask.execution.executor import Executor, Progress
from swsdask.model.errors import Problems
from swsdask.model.hashes import hash_json
from swsdask.model.schemas import DETECTIONS, DOCUMENTS, QUERIES, SEGMENTS, WORDS, RunHeader, RunPiece
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections

Row = tuple[str, str, int, int, int, float, int]
"""A detection as it is read: query, document, channel, start, duration, score, decision."""

Excerpt = tuple[str, int, int, int, str, str]


def table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(column), each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def excerpt(
    document: str, start: int, end: int, channel: int = 1, source_type: str = "", language: str = ""
) -> Excerpt:
    return (document, channel, start, end, source_type, language)


def queries(
    texts: Mapping[str, str], attributes: Mapping[str, Mapping[str, str]] | None = None, **header: str
) -> pa.Table:
    rows = [(name, text, list((attributes or {}).get(name, {}).items())) for name, text in texts.items()]
    return table(QUERIES, rows).replace_schema_metadata(header)


def words(
    rows: Iterable[tuple[str, int, int, str]], document: str = "d", channel: int = 1, speaker: str = "s"
) -> pa.Table:
    """Rows are (word, start, end, subtype)."""
    return table(WORDS, [(document, channel, speaker, start, end, word, kind) for word, start, end, kind in rows])


def tables(
    documents: Iterable[Excerpt],
    query_table: pa.Table,
    word_table: pa.Table | None = None,
    segments: Iterable[tuple[str, int, int, int, str]] = (),
) -> ReferenceTables:
    spoken = table(WORDS, []) if word_table is None else word_table
    return ReferenceTables(table(DOCUMENTS, documents), query_table, spoken, table(SEGMENTS, segments))


def without_runs(reference: ReferenceTables) -> MemoryArchive:
    return MemoryArchive(reference, (), {})


def piece(
    rows: Sequence[Row],
    system: str = "a",
    file: str = "a.tsv",
    first_line: int = 2,
    dictionary: Sequence[str] = (),
    header: RunHeader | None = None,
    listed: Sequence[str] = (),
    rounded: int = 0,
) -> RunPiece:
    """Row i stands on line first_line + i; `dictionary` are query ids that come first in the piece's dictionary."""
    columns = list(zip(*rows, strict=True)) or [()] * 7
    query_ids = tuple(dict.fromkeys((*dictionary, *listed, *columns[0])))
    document_ids = tuple(dict.fromkeys(columns[1]))
    return RunPiece(
        header=header or RunHeader(system),
        file=file,
        queries=query_ids,
        query_lines=tuple(first_line + columns[0].index(name) if name in columns[0] else None for name in query_ids),
        documents=document_ids,
        document_lines=tuple(first_line + columns[1].index(name) for name in document_ids),
        query=np.array([query_ids.index(name) for name in columns[0]], np.int32),
        document=np.array([document_ids.index(name) for name in columns[1]], np.int32),
        channel=np.array(columns[2], np.int8),
        start=np.array(columns[3], np.int32),
        duration=np.array(columns[4], np.int32),
        score=np.array(columns[5], np.float64),
        decision=np.array(columns[6], np.int8),
        rounded=rounded,
        listed=tuple(listed),
    )


class Made:
    """A source whose rows no file has (`model.schemas.RunSource`)."""

    system: str | None = None
    in_memory = True
    rows_about = 0

    def parts(self, _: int, /) -> list[Self]:
        return [self]


@dataclass(frozen=True)
class Pieces(Made):
    """A source that gives some pieces."""

    pieces: tuple[RunPiece, ...]
    file: str = "a.tsv"
    system: str | None = None
    wrong: tuple[int, ...] = field(default=())

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        for line in self.wrong:
            problems.add(self.file, line, "a number", "x", "Write a number.")
        yield from self.pieces


def source(rows: Sequence[Row], system: str = "a", **more: Any) -> Pieces:
    file = f"{system}.tsv"
    return Pieces((piece(rows, system, file, **more),), file)


def rewritten(manifest: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Write another manifest in the place of one, with the hash of what it then says."""
    said = json.loads(manifest.read_bytes())
    del said["hash"]
    edit(said)
    manifest.write_text(json.dumps({**said, "hash": hash_json(said)}))


def without_hashes(folder: Path) -> None:
    """Make the newest version of a local archive one as earlier releases wrote it."""
    manifest = max(folder.glob("manifest-*.json"))
    said = json.loads(manifest.read_bytes())
    newer = [each["file"] for each in said.pop("newer")]
    for name, schema in (("runs", EARLIER_RUNS), ("systems", EARLIER_SYSTEMS)):
        if name in said["tables"]:
            parts = [said["tables"][name]["file"], *newer]  # Earlier releases had one table.
            found = {row["system"]: row for part in parts for row in pq.read_table(folder / part).to_pylist()}
            rows = [row for _, row in sorted(found.items())]
            for row in rows:
                for place in ("classes", "fragments"):
                    if name == "systems":
                        row[place] = row[place]["file"]
                if name == "runs":
                    row["fragments"] = [{"file": each["file"], "groups": each["groups"]} for each in row["fragments"]]
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / parts[-1])
            said["tables"][name]["file"] = parts[-1]
    said["tables"] = {name: each["file"] for name, each in said["tables"].items()}
    del said["hash"]
    if said["kind"] == "detections":
        del said["kind"]
    manifest.write_text(json.dumps({**said, "format_version": 1}, indent=2, sort_keys=True))


def as_rows(detections: Iterable[Detections]) -> list[tuple[Any, ...]]:
    """The rows of some detections, all columns, in order; scores as their bits."""
    found: list[tuple[Any, ...]] = []
    for each in detections:
        columns = [getattr(each, name) for name in DETECTIONS.names]
        found += zip(
            *(c.view(np.uint64).tolist() if c.dtype == np.float64 else c.tolist() for c in columns), strict=True
        )
    return found


SETTINGS = EvaluationSettings()
COLUMNS = ("query", "document", "channel", "start", "duration", "score", "decision", "inside")
TABLES = tables(
    [excerpt("d0", 0, 900), excerpt("d1", 0, 500), excerpt("d2", 100, 1000, source_type="cts")],
    queries(
        {f"q{number}": f"w{number} v" for number in range(12)}, {"q3": {"NGram": "2"}}, compareNormalize="lowercase"
    ),
    words([("W3", 0, 10, "lex"), ("v", 40, 50, "lex"), ("w4", 60, 70, "lex"), ("v", 400, 410, "lex")], document="d1"),
    [("d1", 1, 0, 100, "s")],
)


def rows(n: int, seed: int = 0, queries_used: int = 12, documents_used: int = 3) -> list[Row]:
    rng = np.random.default_rng(seed)
    columns = [
        [f"q{number}" for number in rng.integers(0, queries_used, n)],
        [f"d{number}" for number in rng.integers(0, documents_used, n)],
        [1] * n,
        rng.integers(0, 900, n).tolist(),
        rng.integers(0, 200, n).tolist(),
        rng.integers(-50, 50, n).tolist(),
        [1] * n,
    ]
    return list(zip(*columns, strict=True))


def write(
    url: str,
    *sources: Pieces,
    layout: Layout | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **policy: Any,
) -> StoredArchive:
    allowed = ChangePolicy(**policy)
    return write_runs(
        Storage(url), TABLES, sources, SETTINGS, policy=allowed, layout=layout, executor=executor, progress=progress
    )


def detections(archive: StoredArchive, system: str, rows_per_task: int = 10**6) -> list[Detections]:
    return [cell.read(COLUMNS) for cell in archive.cells(system, rows_per_task)]


def rows_of(read: list[RunPiece]) -> list[tuple[object, ...]]:
    return [
        (
            piece.queries[piece.query[row]],
            piece.documents[piece.document[row]],
            *(int(column[row]) for column in (piece.channel, piece.start, piece.duration, piece.decision)),
            struct.pack("<d", piece.score[row]),
        )
        for piece in read
        for row in range(len(piece))
    ]
