"""Reading of a reference from files or tables, and search of a transcript for its queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from swsdask.archive.occurrences import find_detections
from swsdask.archive.protocols import FindRule
from swsdask.archive.reference_tables import JudgedFiles, ReferenceTables, read_judged
from swsdask.formats.files import noted
from swsdask.formats.find import ReferenceFiles
from swsdask.formats.in_memory import Table
from swsdask.formats.recognise import expect
from swsdask.formats.reference.nist_xml import described, read_ecf, read_queries, spoken_encoding, texts_of
from swsdask.formats.reference.rttm import read_rttm
from swsdask.formats.reference.table import read_documents, read_occurrences
from swsdask.formats.runs.lines import CTM
from swsdask.formats.runs.read import read_run
from swsdask.model.errors import Problems
from swsdask.model.schemas import SEGMENTS, WORDS, RunPiece


def read_reference(files: ReferenceFiles | JudgedFiles | ReferenceTables) -> ReferenceTables:
    """Return the reference tables from official files, from tables or from judgments; given reference tables unchanged.

    Raises `InputError` with every problem of the files.
    """
    if isinstance(files, ReferenceTables):
        return files
    problems = Problems()
    if isinstance(files, JudgedFiles):
        judged = read_judged(files, problems)
        problems.raise_if_any()
        return judged
    if files.queries is None or files.tables:
        return reference_of_tables(files.ecf, files.rttm, files.queries)
    documents = read_ecf(files.ecf, problems)
    queries = read_queries(files.queries, problems)
    words, segments = read_rttm(files.rttm, problems, spoken_encoding(queries, files.queries, files.rttm))
    if files.lexicon or files.vocabulary:
        queries = described(queries, files.lexicon, files.vocabulary, problems)
    problems.raise_if_any()
    return ReferenceTables(documents, queries, words, segments)


def reference_of_tables(
    documents: Table | str, occurrences: Table | str, queries: Table | Iterable[str] | str | None
) -> ReferenceTables:
    """Return the reference tables from tables in files or in memory. Raises `InputError` with every problem of them."""
    problems = Problems()
    with noted(problems):
        excerpts = read_documents(documents, problems)
    with noted(problems):
        listed, words, judgments = read_occurrences(occurrences, queries, problems)
    problems.raise_if_any()
    return ReferenceTables(excerpts, listed, words, SEGMENTS.empty_table(), judgments)


def search_transcript(url: str, queries: pa.Table, rule: FindRule) -> pa.Table:
    """Search the words of a CTM with scores for queries; return the table of a run (`find_detections`).

    If no query has a text, the ids are the texts. Raises `InputError` with every problem of the CTM.
    """
    texts = texts_of(queries)
    texts = texts if any(texts) else queries["query"].to_pylist()
    problems = Problems()
    with noted(problems):
        expect(url, CTM)
        pieces = list(read_run(url, problems))
    problems.raise_if_any()
    words = pa.concat_tables([WORDS.empty_table(), *map(_words_of, pieces)])
    scores = np.concatenate([np.zeros(0), *(piece.score for piece in pieces)])
    place = queries.schema.get_field_index("text")
    with_texts = queries.set_column(place, "text", pa.array(texts, pa.string()))
    return find_detections(words, scores, with_texts, rule)


def _words_of(piece: RunPiece) -> pa.Table:
    """Return the rows of a CTM as words without a speaker."""
    columns = {
        "document": pa.array(piece.documents, pa.string()).take(pa.array(piece.document)),
        "channel": piece.channel,
        "speaker": pa.repeat("", len(piece)),
        "start": piece.start,
        "end": piece.start + piece.duration,
        "word": pa.array(piece.queries, pa.string()).take(pa.array(piece.query)),
        "subtype": pa.repeat("lex", len(piece)),
    }
    return pa.table(columns, schema=WORDS)
