"""An archive of judged documents: every system scores every document for every query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdask.archive.ingest import write_runs
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.model.errors import Problems
from swsdask.model.schemas import DOCUMENTS, QUERIES, SEGMENTS, WORDS, RunHeader, RunPiece
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import I64
from swsdask.model.units import TICKS_PER_SECOND
from tests.archives import Made
from tests.bench.cost import cost
from tests.bench.data import SEED, Archived

QUERIES_PER_PIECE = 50


@dataclass(frozen=True)
class Collection:
    """How many queries and documents there are, and what share of the documents is relevant to a query."""

    n_queries: int
    n_documents: int
    relevant: float = 0.002

    @property
    def query_ids(self) -> tuple[str, ...]:
        """In order."""
        return tuple(f"q{number:04d}" for number in range(self.n_queries))

    @property
    def document_ids(self) -> tuple[str, ...]:
        """In order."""
        return tuple(f"d{number:06d}" for number in range(self.n_documents))

    def judgments(self) -> tuple[I64, I64]:
        """The relevant pairs (query, document), sorted; every query has at least one."""
        chance = np.random.default_rng(SEED)
        relevant = chance.random((self.n_queries, self.n_documents)) < self.relevant
        relevant[np.arange(self.n_queries), chance.integers(self.n_documents, size=self.n_queries)] = True
        query, document = np.nonzero(relevant)
        return query, document


@dataclass(frozen=True)
class JudgedRun(Made):
    """A source of the scores of one system."""

    collection: Collection
    number: int

    @property
    def file(self) -> str:
        """There is none."""
        return f"simulated system {self.number}"

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """Scores are normal, two standard deviations apart; a piece has some queries."""
        of = self.collection
        target = np.zeros((of.n_queries, of.n_documents))
        target[of.judgments()] = 2.0
        chance = np.random.default_rng([SEED, self.number])
        for first in range(0, of.n_queries, QUERIES_PER_PIECE):
            queries = np.arange(first, min(first + QUERIES_PER_PIECE, of.n_queries), dtype=np.int32)
            shape = len(queries), of.n_documents
            n = shape[0] * shape[1]
            yield RunPiece(
                header=RunHeader(f"system{self.number:02d}"),
                file=self.file,
                queries=of.query_ids,
                query_lines=(None,) * of.n_queries,
                documents=of.document_ids,
                document_lines=(None,) * of.n_documents,
                query=np.repeat(queries, of.n_documents),
                document=np.tile(np.arange(of.n_documents, dtype=np.int32), len(queries)),
                channel=np.ones(n, np.int8),
                start=np.zeros(n, np.int32),
                duration=np.full(n, TICKS_PER_SECOND, np.int32),
                score=(chance.standard_normal(shape) + target[queries]).ravel(),
                decision=np.full(n, -1, np.int8),
            )


def judged_archive(folder: Path, collection: Collection, n_systems: int) -> Archived:
    """The archive, through the product's own writer."""
    url = str(folder / "judged")
    rows = collection.n_queries * collection.n_documents * n_systems
    return Archived(url, rows, cost(_write, url, collection, n_systems, repeats=1))


def judgments_file(folder: Path, collection: Collection) -> str:
    """The relevant pairs by the archive's codes, as Parquet."""
    query, document = collection.judgments()
    name = str(folder / "judgments.parquet")
    pq.write_table(pa.table({"query": query.astype(np.int32), "document": document.astype(np.int32)}), name)
    return name


def _write(url: str, collection: Collection, n_systems: int) -> Callable[[], None]:
    second = TICKS_PER_SECOND
    query, document = collection.judgments()
    spoken = zip(query.tolist(), document.tolist(), strict=True)
    queries, documents = collection.query_ids, collection.document_ids
    tables = ReferenceTables(
        _table(DOCUMENTS, [(name, 1, 0, second, "", "") for name in documents]),
        _table(QUERIES, [(name, name, []) for name in queries]),
        _table(WORDS, [(documents[d], 1, queries[q], 0, second, queries[q], "lex") for q, d in spoken]),
        SEGMENTS.empty_table(),
    )
    sources = [JudgedRun(collection, number) for number in range(n_systems)]

    def write() -> None:
        write_runs(Storage(url, {}), tables, sources, EvaluationSettings(trials="document"))

    return write


def _table(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)
