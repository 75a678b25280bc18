"""Arrow schemas of an archive's tables, and runs as they are read.

In `detections`, `query` is a row of the table `queries`, `document` an index into the list of documents: the distinct
ones of the table `documents` in its order, then those that only `words` has, sorted; any other document is -1. Rows of
a fragment are sorted by (query, document, channel, start, duration, score descending, decision), so that the order of
the input does not matter. Times are ticks of 0.1 ms (`model.units`).

A run is read in pieces of rows, each with its own dictionaries; an archive replaces them by its codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.model.errors import Problems
from swsdask.model.resources import Resources

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
"""Occurrences found in an RTTM's words, and their speakers."""

JUDGMENTS = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("grade", pa.int64(), nullable=False),
    ]
)
"""One row per judged (query, document), sorted; no row for documents that were not judged. A `grade` above 0 is
relevant, 0 is not, and a grade below 0 marks a document that was selected for judgment but not judged."""

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
"""`decision`: 1 YES, 0 NO, -1 not given. `inside`: 0 where the detection does not lie entirely inside one excerpt
of its (document, channel), else 1; more where it ends at the excerpt's end and is outside in a tool's double precision
(`INSIDE`)."""

INSIDE: dict[str, tuple[int, ...]] = {"exact": (1, 2, 3, 4), "kwseval": (1, 3), "stdeval": (1, 2)}
"""The values of `inside` that mean inside, for each arithmetic: exact, KWSEval's and STDEval's."""

DETECTION_COLUMNS = DETECTIONS.append(pa.field("position", pa.int64(), nullable=False)).append(
    pa.field("unknown_document", pa.int64(), nullable=False)
)
"""With the columns that only some detections have. `position` is present if the order in a run's files counts
(`archive.encode`); it ascends in that order. `unknown_document` is present if documents are -1: the hash of the id
(`model.units.id_hash`), which identifies such a document, 0 for the others. No number depends on it."""


WITHOUT_TIMES = "without_times"
"""The attribute of a run that lists the documents of a query without times: its rows lie at 0."""

WITHOUT_CHANNELS = "without_channels"
"""The attribute of a run whose form or columns name no channel: all its rows lie in channel 1."""

JOINED = "joined"
"""The attribute that names the audio files of a run, or of a reference, that are one document (`joined_names`)."""


@dataclass(frozen=True)
class RunHeader:
    """The header of a run. `attributes` holds everything else that the file's root element or metadata gives.

    `resources` come from the file beside the run, if there is one.
    """

    system: str
    declared_scores: tuple[float, float] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    resources: Resources | None = None


@dataclass(frozen=True, eq=False)
class RunPiece:
    """Some rows of one run, in file order.

    `queries`, `documents` are this piece's dictionaries (document ids already without directory and extension, or whole
    if they are `judged` documents), with the line of each one's first use (None: the format has no lines). The columns:
    `query`, `document` int32 codes, `channel` int8, `start`, `duration` int32 ticks, `score` float64 finite, `decision`
    int8 (1 YES, 0 NO, -1 absent). `rounded` counts times finer than a tick. `listed` are the queries the file lists,
    with or without rows; all of them are among `queries`. `position` int64, where it counts, ascends with the rows of
    all pieces (see `archive.encode`).
    """

    header: RunHeader
    file: str
    queries: tuple[str, ...]
    query_lines: tuple[int | None, ...]
    documents: tuple[str, ...]
    document_lines: tuple[int | None, ...]
    query: NDArray[np.int32]
    document: NDArray[np.int32]
    channel: NDArray[np.int8]
    start: NDArray[np.int32]
    duration: NDArray[np.int32]
    score: NDArray[np.float64]
    decision: NDArray[np.int8]
    rounded: int = 0
    listed: tuple[str, ...] = ()
    position: NDArray[np.int64] | None = None
    judged: bool = False

    def __len__(self) -> int:
        return len(self.query)


class RunSource(Protocol):
    """A source of rows of runs: a file, a part of one, or a table in memory. Picklable."""

    @property
    def file(self) -> str:
        """The path or URL as the user gave it."""
        ...

    @property
    def system(self) -> str | None:
        """The name of the system, if the user gave one; else the file gives it."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory: workers need no file, and changes cannot be detected."""
        ...

    @property
    def rows_about(self) -> int:
        """The approximate number of rows, without reading them."""
        ...

    def parts(self, n_parts: int, /) -> Sequence[RunSource]:
        """Split the source into at most `n_parts` parts, in order, which can be read at the same time."""
        ...

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """Return the rows, in pieces; faults are added to `problems`."""
        ...

    def line_of(self, system: str, row: int) -> int | None:
        """Return the line in the file of a row of a system, with rows counted from 0; None if it is not known."""
        ...
