"""One system of more detections than a disk holds: copies of one block, each in recordings of its own.

A cell is made when it is read. Every copy has as many hits, misses and false alarms as the block, so that counts are
multiples of the block's, term-weighted values are equal to it, and what is computed of billions is known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from swsdask.archive.fragments import cut_rows, pair_starts
from swsdask.archive.memory import MemoryArchive, MemoryCell
from swsdask.archive.protocols import Run
from swsdask.archive.reference import build_reference
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.execution.executor import SerialExecutor
from swsdask.measures import select
from swsdask.model.trials import Detections, ScoreRange
from swsdask.scoring.detections import ROWS_PER_CELL
from swsdask.scoring.score import score_archive
from tests.bench.data import Shape, tables_of
from tests.bench.scoring import settings

SYSTEM = "copies"
MEASURES = ("atwv", "mtwv", "n_hit", "n_false_alarm", "n_detections")


@dataclass(frozen=True, eq=False)
class CopiedCell(MemoryCell):
    """A part of the block, in the recordings of one copy."""

    first_document: int

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        """The named columns, `query` and `score`."""
        rows = super().read(columns, checked=checked)
        if rows.document is None:
            return rows
        return replace(rows, document=rows.document + np.int32(self.first_document))


@dataclass(frozen=True, eq=False)
class Copies(MemoryArchive):
    """The archive of `number` copies of a block, cut into parts."""

    parts: tuple[Detections, ...] = ()
    n_documents: int = 0
    number: int = 0

    def cells(self, system: str, rows_per_task: int) -> Iterator[CopiedCell]:
        """Copy after copy."""
        for copy in range(self.number):
            yield from (CopiedCell(SYSTEM, SYSTEM, part, copy * self.n_documents) for part in self.parts)


def copies(shape: Shape, number: int) -> Copies:
    """So many copies of the only block of a shape."""
    blocks = shape.blocks()
    (block,) = blocks
    once = tables_of(blocks)
    documents, words = (_repeated(table, number) for table in (once.documents, once.words))
    scores = ScoreRange(None, (float(block.score.min()), float(block.score.max())))
    run = Run(SYSTEM, number * len(block), "made when it is read", True, scores)
    parts = tuple(block.take(part) for part in cut_rows(pair_starts(block), len(block), ROWS_PER_CELL))
    tables = ReferenceTables(documents, once.queries, words, once.segments)
    return Copies(tables, (run,), {}, parts, shape.n_documents, number)


def _repeated(table: pa.Table, number: int) -> pa.Table:
    """The rows with the documents of every copy, in the order of their names."""
    names = table["document"].to_pylist()
    at, field = table.schema.get_field_index("document"), table.schema.field("document")
    column = pa.array([f"{copy:06d}-{name}" for copy in range(number) for name in names], field.type)
    return pa.concat_tables([table] * number).set_column(at, field, column)


def score_copies(shape: Shape, number: int) -> Callable[[], dict[str, float]]:
    """The measures over all queries of copies of a block."""
    archive, chosen = copies(shape, number), settings({})

    def step() -> dict[str, float]:
        reference = build_reference(archive, chosen.evaluation)
        tables = score_archive(archive, [SYSTEM], reference, select(MEASURES), chosen, SerialExecutor(), names=MEASURES)
        rows = tables.overall.to_pylist()
        return {row["measure"]: row["value"] for row in rows if row["condition"] == "all"}

    return step
