"""Small rankings of documents, scored through the whole chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdask.archive.memory import read_into_memory
from swsdask.archive.reference import build_reference
from swsdask.engine.score import Tables, score_archive
from swsdask.engine.serial import SerialExecutor
from swsdask.measures import select
from swsdask.model.schemas import WORDS
from swsdask.model.settings import EvaluationSettings, Settings
from tests.archives import excerpt, queries, source, table, tables

END = 10_000


class Event(NamedTuple):
    """A (query, document) pair; its score is None where the run does not have it."""

    query: int
    document: str
    score: float | None
    relevant: bool


def tables_of(
    asked: EvaluationSettings,
    n_queries: int,
    documents: Sequence[str],
    events: Sequence[Event],
    measures: Sequence[str] | None = None,
) -> Tables:
    reference = tables(
        [excerpt(document, 0, END) for document in documents],
        queries({f"q{query}": f"word{query}" for query in range(n_queries)}),
        table(WORDS, [(e.document, 1, "s", 0, END, f"word{e.query}", "lex") for e in events if e.relevant]),
    )
    rows = [(f"q{e.query}", e.document, 1, 0, END, e.score, -1) for e in events if e.score is not None]
    archive = read_into_memory(reference, [source(rows)], asked)
    return score_archive(
        archive,
        ["a"],
        build_reference(archive, asked),
        select(measures),
        Settings(evaluation=asked),
        SerialExecutor(),
        measures=measures,
    )


def scored(
    asked: EvaluationSettings,
    n_queries: int,
    documents: Sequence[str],
    events: Sequence[Event],
    measures: Sequence[str] = ("ap", "map", "map_n_averaged", "map_n_no_relevant", "map_n_missing"),
) -> dict[tuple[str, str | None, str], float]:
    rows = tables_of(asked, n_queries, documents, events, measures).scores.to_pylist()
    return {(row["condition"], row["query"], row["measure"]): row["value"] for row in rows}
