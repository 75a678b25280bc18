"""Small rankings of documents, scored through the whole chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdask.archive.memory import read_into_memory
from swsdask.archive.reference import build_reference
from swsdask.execution.executor import SerialExecutor
from swsdask.measures import select
from swsdask.model.schemas import WORDS
from swsdask.model.settings import EvaluationSettings, Settings
from swsdask.scoring.rounds import ResultTables
from swsdask.scoring.score import score_archive
from tests.archives import excerpt, queries, source, table, tables

END = 10_000


class Event(NamedTuple):
    """A (query, document) pair; its score is None where the run does not have it."""

    query: int
    document: str
    score: float | None
    relevant: bool
    start: int = 0


class Row(NamedTuple):
    """A detection as the run has it."""

    query: int
    document: str
    score: float
    start: int = 0


def tables_of(
    asked: EvaluationSettings,
    n_queries: int,
    documents: Sequence[str],
    events: Sequence[Event],
    measures: Sequence[str] | None = None,
) -> ResultTables:
    rows = [Row(e.query, e.document, e.score) for e in events if e.score is not None]
    relevant = [(e.query, e.document) for e in events if e.relevant]
    return tables_of_rows(asked, n_queries, documents, relevant, rows, measures)


def tables_of_rows(
    asked: EvaluationSettings,
    n_queries: int,
    documents: Sequence[str],
    relevant: Sequence[tuple[int, str]],
    rows: Sequence[Row],
    measures: Sequence[str] | None = None,
) -> ResultTables:
    """What is spoken lies at the beginning of a document, for its first second."""
    reference = tables(
        [excerpt(document, 0, 10 * END) for document in documents],
        queries({f"q{query}": f"word{query}" for query in range(n_queries)}),
        table(WORDS, [(document, 1, "s", 0, END, f"word{query}", "lex") for query, document in relevant]),
    )
    detected = [(f"q{row.query}", row.document, 1, row.start, END, row.score, -1) for row in rows]
    archive = read_into_memory(reference, [source(detected)], asked)
    return score_archive(
        archive,
        ["a"],
        build_reference(archive, asked),
        select(measures),
        Settings(evaluation=asked),
        SerialExecutor(),
        names=measures,
    )


def scored(
    asked: EvaluationSettings,
    n_queries: int,
    documents: Sequence[str],
    events: Sequence[Event],
    measures: Sequence[str] = ("ap", "map", "map_n_averaged", "map_n_no_relevant", "map_n_missing"),
) -> dict[tuple[str, str | None, str], float]:
    return numbers(tables_of(asked, n_queries, documents, events, measures))


def numbers(made: ResultTables) -> dict[tuple[str, str | None, str], float]:
    return {(row["condition"], row["query"], row["measure"]): row["value"] for row in made.scores.table.to_pylist()}
