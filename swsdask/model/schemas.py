"""The Arrow schemas of an archive's tables. Times are ticks of 0.1 ms (see `model.ticks`).

In `detections`, `query` is a row number of the table `queries`, `document` one of the list of documents: the distinct
ones of the table `documents` in its order, then those that only `words` has, sorted; any other document is -1. Rows of
a fragment are sorted by (query, document, channel, start, duration, score descending, decision), so that the order of
the input never shows.
"""

from __future__ import annotations

import pyarrow as pa

DOCUMENTS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("source_type", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
    ]
)
"""One row per evaluated excerpt, in the order of the ECF. `source_type` and `language` are "" when not given."""

QUERIES = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("attributes", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)
"""One row per query, in the order of the list. `attributes` holds kwinfo/terminfo names and values, and `language`,
`oov` where the list gives them. The list's own header (language, compareNormalize) is in the table's metadata."""

WORDS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8(), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("word", pa.string(), nullable=False),
        pa.field("subtype", pa.string(), nullable=False),
    ]
)
"""One row per LEXEME record of the RTTM, in file order."""

SEGMENTS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
    ]
)
"""One row per SPEAKER record of the RTTM, in file order."""

OCCURRENCES = pa.schema(
    [
        pa.field("query", pa.int32(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("first_word_end", pa.int32(), nullable=False),
        pa.field("last_word_start", pa.int32(), nullable=False),
    ]
)
"""One row per place where a query was spoken; `query` is the row number in `queries`."""

FOUND_OCCURRENCES = OCCURRENCES.append(pa.field("speaker", pa.string(), nullable=False))
"""Occurrences found in an RTTM's words, and who spoke them."""

DETECTIONS = pa.schema(
    [
        pa.field("query", pa.int32(), nullable=False),
        pa.field("document", pa.int32(), nullable=False),
        pa.field("channel", pa.int8(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("duration", pa.int32(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("decision", pa.int8(), nullable=False),
        pa.field("inside", pa.int8(), nullable=False),
    ]
)
"""`decision`: 1 YES, 0 NO, -1 not given. `inside`: 1 where the detection lies entirely inside one excerpt of its
(document, channel), 2 where it does but not if its end is added up in double precision, else 0."""

DETECTION_COLUMNS = DETECTIONS.append(pa.field("position", pa.int64(), nullable=False)).append(
    pa.field("unknown_document", pa.int64(), nullable=False)
)
"""With the columns that only some detections have. `position` is there where the order in a run's files counts
(`archive.file_order`), in which it ascends. `unknown_document` is there where documents are -1: the hash of the id
(`model.ids.id_hash`), by which such a document is named, 0 for the others. No number depends on it."""
