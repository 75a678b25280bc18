"""What scoring sees of an archive, on storage or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

import pyarrow as pa

from swsdask.model.resources import Resources, times_of_list
from swsdask.model.settings import EvaluationSettings, TextFilter
from swsdask.model.trials import Detections, ScoreRange
from swsdask.model.units import whole_ticks

Finder = Literal["own", "kwseval", "stdeval", "mediaeval"]


class FindRule(NamedTuple):
    """How the occurrences of queries are found in the words: `find_gap` is in ticks; `finder` says whose rules hold."""

    find_gap: int
    text_filters: tuple[TextFilter, ...] = ()
    finder: Finder = "own"

    @classmethod
    def of(cls, settings: EvaluationSettings) -> Self:
        """The rule of an evaluation. Raises `SettingsError` for a gap that is no whole number of ticks."""
        finder: Finder = "own" if settings.compat == "none" else settings.compat
        return cls(whole_ticks("find_gap_s", settings.find_gap_s), settings.text_filters, finder)


@dataclass(frozen=True)
class Run:
    """One system's run in an archive.

    `content` is the hash of what was read (see `archive.rows`), `rows` counts the rows of known queries, `scores` is
    their range. Of these, `outside` do not lie inside an excerpt, those in `unknown_documents` (rows by document id)
    among them. `unknown_queries` counts the rows that were dropped, by query id; `rounded` the times finer than a tick.
    `resources` are what the system took, where that is reported.
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
    outside: int = 0
    resources: Resources | None = None

    @property
    def told(self) -> Resources | None:
        """What the system took: its `resources`, else the times that its list of detections gives."""
        return self.resources or times_of_list(self.attributes)


class Cell(Protocol):
    """The unit of work: detections of one system such that every (query, document) lies in one cell. Picklable."""

    @property
    def system(self) -> str:
        """Whose detections they are."""
        ...

    @property
    def rows(self) -> int:
        """How many there are."""
        ...

    @property
    def parts(self) -> tuple[int, ...]:
        """The rows of its parts, each of which is in the order of queries."""
        ...

    @property
    def source(self) -> str:
        """Where the rows come from, for messages."""
        ...

    @property
    def is_distant(self) -> bool:
        """Whether reading is mostly waiting, so that it is worth while to begin early."""
        ...

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        """The named columns of `model.schemas.DETECTIONS`; `query` and `score` are always read.

        Queries, documents, scores and decisions that the caller goes through anyway need not be `checked`: then comes
        whatever a file has. Who finds them out of bounds reads them again, for the error that names the place.
        """
        ...

    def confirm(self, columns: Sequence[str]) -> None:
        """Remember that these columns, which were read without a check, have been found sound."""
        ...


class Archive(Protocol):
    """One evaluation: its tables and its runs, at one committed version."""

    @property
    def documents(self) -> pa.Table:
        """The evaluated excerpts (`model.schemas.DOCUMENTS`)."""
        ...

    @property
    def queries(self) -> pa.Table:
        """The query list (`model.schemas.QUERIES`), its header in the schema's metadata."""
        ...

    @property
    def words(self) -> pa.Table:
        """What was spoken (`model.schemas.WORDS`)."""
        ...

    @property
    def segments(self) -> pa.Table:
        """Who spoke when (`model.schemas.SEGMENTS`)."""
        ...

    @property
    def judgments(self) -> pa.Table:
        """Which documents were judged (`model.schemas.JUDGMENTS`)."""
        ...

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, sorted by system."""
        ...

    @property
    def place(self) -> str | None:
        """A file of it that every worker must see, by path or URL; None in memory."""
        ...

    @property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the reference, by role (ecf, rttm, queries)."""
        ...

    @property
    def verification(self) -> Literal["on", "off", "no hashes"] | None:
        """Whether what is read is verified by hashes (`archive.stored_tables.Verification`); None in memory."""
        ...

    def occurrences(self, rule: FindRule) -> pa.Table:
        """Where the queries were spoken (`model.schemas.FOUND_OCCURRENCES`) by a rule."""
        ...

    def cells(self, system: str, rows_per_task: int) -> Iterator[Cell]:
        """The cells of one run, of about `rows_per_task` rows (a (query, document) is never cut).

        Raises `ArchiveError` for a system that the archive does not hold.
        """
        ...
