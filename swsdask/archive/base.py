"""What scoring sees of an archive, on storage or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from swsdask.model.trials import Detections, ScoreRange


@dataclass(frozen=True)
class Run:
    """One system's run in an archive. `content` is the hash of its canonical rows; `counts` what ingest found:
    rows, rounded times, rows in unknown documents (with the first ids), rows of unknown queries that were dropped.
    """

    system: str
    rows: int
    content: str
    has_decisions: bool
    scores: ScoreRange
    files: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    unknown_documents: dict[str, int] = field(default_factory=dict)
    unknown_queries: dict[str, int] = field(default_factory=dict)
    rounded: int = 0


class Cell(Protocol):
    """The unit of work: detections of one system such that every (query, document) lies in one cell. Picklable."""

    system: str
    rows: int

    @property
    def source(self) -> str:
        """Where the rows come from, for messages."""
        ...

    def read(self, columns: Sequence[str]) -> Detections:
        """The named columns of `model.schemas.DETECTIONS`; `query` and `score` are always read."""
        ...


class Archive(Protocol):
    """One evaluation: its tables and its runs, at one committed version."""

    documents: pa.Table
    queries: pa.Table
    words: pa.Table
    segments: pa.Table
    runs: tuple[Run, ...]
    inputs: dict[str, str]
    """Content hashes of the reference files, by role (ecf, rttm, queries)."""

    def cells(self, system: str, rows_per_task: int) -> Iterator[Cell]:
        """The cells of one run, of about `rows_per_task` rows (a (query, document) is never cut)."""
        ...
