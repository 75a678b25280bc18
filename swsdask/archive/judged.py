"""A reference made of judgments: documents of a collection that are relevant to queries or not.

Every judged document and every document of the runs is one excerpt, and every query one word, spoken in the documents
that are relevant to it: so judgments are tables like those of any reference, for trials that are documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from swsdask.archive.tables import ReferenceTables
from swsdask.errors import Problems
from swsdask.formats.runs import read_run
from swsdask.formats.trec import read_judgments
from swsdask.model.ids import DocumentCodes
from swsdask.model.schemas import DOCUMENTS, QUERIES, SEGMENTS, WORDS
from swsdask.model.ticks import TICKS_PER_SECOND


@dataclass(frozen=True)
class JudgedFiles:
    """A file of judgments, and the runs whose documents are of the collection as well, judged or not."""

    qrels: str
    runs: tuple[str, ...] = ()


def read_judged(files: JudgedFiles, problems: Problems) -> ReferenceTables:
    """The tables that judgments make; whatever is wrong with the judgments is added to `problems`.

    What is wrong with the runs is told where they are read as such.
    """
    judged = read_judgments(files.qrels, problems)
    documents = sorted({*judged.documents, *_others(files.runs, DocumentCodes(judged.documents))})
    return ReferenceTables(
        documents=_table(DOCUMENTS, ((name, 1, 0, TICKS_PER_SECOND, "", "") for name in documents)),
        queries=_table(QUERIES, ((name, name, []) for name in judged.queries)),
        words=_table(WORDS, ((name, 1, query, 0, TICKS_PER_SECOND, query, "lex") for query, name in judged.relevant)),
        segments=SEGMENTS.empty_table(),
    )


def _others(runs: Iterable[str], codes: DocumentCodes) -> set[str]:
    """The documents of runs that are not those with codes."""
    pieces = (piece for run in runs for piece in read_run(run, Problems()))
    return {name for piece in pieces for name in piece.documents if codes.get(name, judged=piece.judged) is None}


def _table(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)
