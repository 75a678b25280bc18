"""Tables of an evaluation for other tools: with ids instead of codes, and seconds instead of ticks.

- documents: `document`, `channel`, `start`, `end`, `source_type`, `language`; a row is an evaluated excerpt.
- queries: `query`, `text` where the list has texts, and a column for each attribute.
- occurrences: `query`, `document`, `channel`, `start`, `end`, `speaker`, as found by the term finder of the settings.
  For judged documents, they are the relevant documents.
- judgments: `query`, `document`, `relevance`; without rows where documents were not judged.
- detections: `system`, `query`, `document`, `channel`, `start`, `duration`, `score`, `decision` (YES, NO or null); the
  columns of a run. Unknown documents have the ids in the files of the run ("" in an archive of a release that did not
  keep them).

The columns are those of tables in memory, so the tables can be used as input. Columns of ids are dictionaries, the same
in all batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from swsdask.archive.protocols import Archive, Cell, FindRule, Run
from swsdask.archive.reference_tables import document_ids, spoken_elsewhere
from swsdask.formats.reference.nist_xml import texts_of
from swsdask.model.trials import I64, Detections, given_scores
from swsdask.model.units import TICKS_PER_SECOND, id_hash

_ID = pa.dictionary(pa.int32(), pa.string())

DETECTED = pa.schema(
    [
        pa.field("system", _ID, nullable=False),
        pa.field("query", _ID, nullable=False),
        pa.field("document", _ID, nullable=False),
        pa.field("channel", pa.int8(), nullable=False),
        pa.field("start", pa.float64(), nullable=False),
        pa.field("duration", pa.float64(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("decision", _ID),
    ]
)
"""Detections of an evaluation, decoded."""

REFERENCE = ("documents", "queries", "occurrences", "judgments")
"""The other tables."""

_READ = ("document", "channel", "start", "duration", "decision", "unknown_document")
_DECISIONS = ("NO", "YES")


@dataclass(frozen=True, eq=False)
class UnknownDocuments:
    """The unknown documents of runs: ids in order, and the hashes that rows have.

    Their codes are -len(ids) to -1, so that they sort by id before the others. A document whose id is not kept has the
    code -len(ids) - 1.
    """

    ids: tuple[str, ...]
    hashes: I64

    @classmethod
    def of(cls, *runs: Run) -> Self:
        """Select some runs."""
        ids = tuple(sorted({name for run in runs for name in run.unknown_documents}))
        return cls(ids, np.array([id_hash(each) for each in ids], np.int64))

    def codes(self, detections: Detections) -> I64:
        """Return the codes of the documents of some rows, including the codes of unknown ones."""
        codes: I64 = np.asarray(detections.document).astype(np.int64)
        own = np.flatnonzero(codes < 0)
        if not len(own):
            return codes
        hashes = (
            np.zeros(len(own), np.int64) if detections.unknown_document is None else detections.unknown_document[own]
        )
        found = dict(zip(self.hashes.tolist(), range(-len(self.ids), 0), strict=True))
        codes[own] = [found.get(each, -len(self.ids) - 1) for each in hashes.tolist()]
        return codes

    def names(self, known: Sequence[str]) -> pa.Array:
        """Return the ids of all documents, those of negative codes at the end."""
        return pa.array((*known, "", *self.ids), pa.string())


def reference_table(archive: Archive, name: str, rule: FindRule) -> pa.Table:
    """Return one of the tables of `REFERENCE`."""
    if name == "documents":
        return _in_seconds(archive.documents)
    if name == "judgments":
        return archive.judgments.rename_columns(["query", "document", "relevance"])
    if name == "occurrences":
        found = archive.occurrences(rule).drop_columns(["first_word_end", "last_word_start"])
        ids = archive.queries["query"].combine_chunks()
        return _in_seconds(found.set_column(0, "query", ids.take(found["query"].combine_chunks())))
    said = [dict(attributes) for attributes in archive.queries["attributes"].to_pylist()]
    names = sorted({attribute for own in said for attribute in own})
    columns = {each: pa.array([own.get(each) for own in said], pa.string()) for each in names}
    texts = texts_of(archive.queries)
    text = {"text": pa.array([each or None for each in texts], pa.string())} if any(texts) else {}
    return pa.table({"query": archive.queries["query"], **text, **(columns | text)})


def decode_detections(archive: Archive, systems: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the detections of some systems as batches of about `rows` rows, one system after the other.

    Within a system rows are clustered by query and document.
    """
    runs = {run.system: run for run in archive.runs}
    unknown = UnknownDocuments.of(*(runs[system] for system in systems))
    known = document_ids(archive.documents) + spoken_elsewhere(archive.documents, archive.words)
    documents, queries = unknown.names(known), archive.queries["query"].combine_chunks()
    for number, system in enumerate(systems):
        for cell in archive.cells(system, rows):
            yield _batch(cell, number, (pa.array(systems, pa.string()), queries, documents), unknown)


def _batch(
    cell: Cell, system: int, ids: tuple[pa.Array, pa.Array, pa.Array], unknown: UnknownDocuments
) -> pa.RecordBatch:
    rows = cell.read(_READ)
    document = unknown.codes(rows)
    codes = (np.full(len(rows), system), rows.query, np.where(document < 0, len(ids[2]) + document, document))
    decision = np.asarray(rows.decision)
    columns = [
        *(
            pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), names)
            for code, names in zip(codes, ids, strict=True)
        ),
        pa.array(rows.channel),
        pa.array(np.asarray(rows.start) / TICKS_PER_SECOND),
        pa.array(np.asarray(rows.duration) / TICKS_PER_SECOND),
        pa.array(given_scores(rows.score)),
        pa.DictionaryArray.from_arrays(pa.array(decision.astype(np.int32), mask=decision < 0), pa.array(_DECISIONS)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DETECTED)


def _in_seconds(table: pa.Table) -> pa.Table:
    for name in ("start", "end"):
        seconds = pa.array(table[name].to_numpy() / TICKS_PER_SECOND)
        table = table.set_column(table.column_names.index(name), name, seconds)
    return table.replace_schema_metadata(None)
