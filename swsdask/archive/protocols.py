"""The protocols of archives, on storage or in memory, and checks of their runs against the settings.

An archive may be scored with other settings than it was made with, so what its ingest kept or dropped is checked
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.errors import SHOWN, Problems
from swsdask.model.resources import Resources, times_of_list
from swsdask.model.results import Note
from swsdask.model.schemas import JOINED, WITHOUT_CHANNELS, WITHOUT_TIMES
from swsdask.model.settings import EvaluationSettings, TextFilter
from swsdask.model.trials import Detections, ScoreRange
from swsdask.model.units import whole_ticks
from swsdask.model.wording import counted

Finder = Literal["own", "kwseval", "stdeval", "mediaeval"]
COUNT_REPEATED = ("kwseval", "stdeval")
"""The finders that count a repeated record as one more word."""


class FindRule(NamedTuple):
    """The rule that finds occurrences of queries in the words: `find_gap` is in ticks, `finder` names the tool."""

    find_gap: int
    text_filters: tuple[TextFilter, ...] = ()
    finder: Finder = "own"

    @classmethod
    def of(cls, settings: EvaluationSettings) -> Self:
        """Return the rule of an evaluation. Raises `SettingsError` for a gap that is no whole number of ticks."""
        finder: Finder = "own" if settings.compat == "none" else settings.compat
        return cls(whole_ticks("find_gap_s", settings.find_gap_s), settings.text_filters, finder)


@dataclass(frozen=True)
class Run:
    """One system's run in an archive.

    `content` is the hash of what was read (see `archive.encode`), `rows` counts the rows of known queries, `scores` is
    their range. `outside` counts the rows that do not lie inside an excerpt, including those in `unknown_documents`
    (rows by document id). `unknown_queries` counts the rows that were dropped, by query id; `rounded` the times finer
    than a tick. `resources` are the resources of the system, if they are reported.
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
    def where(self) -> str:
        """Its files, as problems name them; the system if there are none."""
        return ", ".join(self.files) or self.system

    @property
    def reported(self) -> Resources | None:
        """The reported resources of the system: its `resources`, otherwise the times in its list of detections."""
        return self.resources or times_of_list(self.attributes)


def check_runs(archive: Archive, runs: Sequence[Run], settings: EvaluationSettings) -> dict[str, tuple[Note, ...]]:
    """Notes on runs to show with their numbers: what is dropped, rounded, or counted in an unusual way.

    Raises `InputError` with every run that has unknown queries, unknown documents or detections outside the evaluated
    excerpts, if these are errors according to the settings.
    """
    problems = Problems()
    notes: dict[str, tuple[Note, ...]] = {}
    channels = ""
    if settings.trials != "document" and any(WITHOUT_CHANNELS in run.attributes for run in runs):
        channels = ", ".join(map(str, sorted(pc.unique(archive.documents["channel"]).to_pylist())))
    for run in runs:
        _refuse(run, settings, problems)
        notes[run.system] = tuple(_notes(run, channels, settings))
    problems.raise_if_any()
    return notes


def check_reference(archive: Archive, settings: EvaluationSettings) -> tuple[str, ...]:
    """Notes on the excerpts, words and segments of the reference, to show with the numbers."""
    words, segments = archive.words, archive.segments
    said = _metadata(words)
    notes = []
    if joined := _metadata(archive.documents).get(JOINED):
        notes.append(f"Names of one document in the reference, {_ONLY_BARE}: {joined}.")
    rounded = sum(int(_metadata(table).get("rounded", 0)) for table in (archive.documents, words, segments))
    if rounded:
        notes.append(f"Times of the reference that are finer than 0.1 ms and were rounded: {rounded:,}.")
    if "encoding" in said:
        notes.append(f"The RTTM was read as {said['encoding']}, the encoding that the query list declares.")
    again = FindRule.of(settings).finder in COUNT_REPEATED
    fate = f"compat={settings.compat} counts them again" if again else "they count once"
    for things, table in {"records of words": words, "records of segments": segments}.items():
        if repeated := _metadata(table).get("repeated"):
            notes.append(f"The reference repeats {counted(int(repeated), things)}: {fate}.")
    if "unknown_types" in said:
        notes.append(f"Skipped in the reference, of types that RTTM does not have: {said['unknown_types']}.")
    return tuple(notes)


_ONLY_BARE = "which differ only in folder or extension"


def _metadata(table: pa.Table) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}


def _refuse(run: Run, settings: EvaluationSettings, problems: Problems) -> None:
    where = run.where
    if WITHOUT_TIMES in run.attributes and settings.trials != "document":
        remedy = "Give start and duration, or set trials=document."
        problems.add(where, None, f"times, for {settings.trials} trials", "documents without times", remedy)
    if run.unknown_queries and settings.unknown_queries == "error":
        found = _listed("rows", "of unknown queries", run.unknown_queries)
        problems.add(where, None, "only queries of the list", found, "Correct the ids, or set unknown_queries=drop.")
    if run.unknown_documents and settings.unknown_documents == "error":
        found = _listed("rows", "in unknown documents", run.unknown_documents)
        problems.add(
            where, None, "only documents of the ECF", found, "Correct the ids, or set unknown_documents=outside."
        )
    if run.outside and settings.outside == "error":
        found = f"{run.outside} outside them"
        problems.add(
            where, None, "only detections inside evaluated excerpts", found, "Set outside=drop or outside=false_alarm."
        )


def _notes(run: Run, channels: str, settings: EvaluationSettings) -> Iterator[Note]:
    if WITHOUT_CHANNELS in run.attributes and channels not in ("", "1"):
        text = f"the run names no channels: its detections count in channel 1; the excerpts lie in channels {channels}."
        yield Note(text, text)
    if joined := run.attributes.get(JOINED):
        text = f"names of one document in the run, {_ONLY_BARE}"
        yield Note(f"{text}: {joined}.", f"{text}.")
    if not run.rows:
        text = "the run has no detections."
        yield Note(text, text)
    fate = "counted as false alarms unless they match an occurrence" if settings.outside == "false_alarm" else "dropped"
    elsewhere = run.outside - sum(run.unknown_documents.values())
    if run.unknown_queries:
        yield _unknown("dropped", "of unknown queries", run.unknown_queries)
    if run.unknown_documents:
        yield _unknown(fate, "in documents that the evaluation does not know", run.unknown_documents)
    if elsewhere and settings.compat != "mediaeval":
        every = ", all that the run has" if elsewhere == run.rows > 1 else ""
        yield Note.of_count(f"{fate}: ", elsewhere, "detections", f" outside the evaluated excerpts{every}.")
    if run.rounded:
        yield Note.of_count("rounded: ", run.rounded, "times", " finer than 0.1 ms.")


def _unknown(fate: str, which: str, rows: Mapping[str, int]) -> Note:
    text = f"{fate}: {_listed('detections', which, rows)}."
    return Note(text, f"{fate}: {{}} detections {which}.", sum(rows.values()))


def _listed(things: str, which: str, rows: Mapping[str, int]) -> str:
    """Say how many things there are, and how many of the first ids."""
    first = [f"{name} ({count})" for name, count in list(rows.items())[:SHOWN]]
    more = f" and {counted(len(rows) - SHOWN, 'more ids')}" if len(rows) > SHOWN else ""
    return f"{counted(sum(rows.values()), things)} {which}: {', '.join(first)}{more}"


class Cell(Protocol):
    """The unit of work: detections of one system such that every (query, document) lies in one cell. Picklable."""

    @property
    def system(self) -> str:
        """The name of the system."""
        ...

    @property
    def rows(self) -> int:
        """The number of detections."""
        ...

    @property
    def parts(self) -> tuple[int, ...]:
        """The rows of its parts, each of which is in the order of queries."""
        ...

    @property
    def source(self) -> str:
        """The source of the rows, for messages."""
        ...

    @property
    def is_distant(self) -> bool:
        """Whether reading is mostly waiting, so that it should begin early."""
        ...

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        """Return the named columns of `model.schemas.DETECTIONS`; `query` and `score` are always read.

        Queries, documents, scores and decisions need not be `checked` if the caller goes through them anyway: then the
        values are those in the file. A caller that finds values out of bounds reads the columns again with checks, to
        raise the error that names the place.
        """
        ...

    def confirm(self, columns: Sequence[str]) -> None:
        """Remember that these columns, which were read without checks, are valid."""
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
        """The words that were spoken (`model.schemas.WORDS`)."""
        ...

    @property
    def segments(self) -> pa.Table:
        """The segments of talkers (`model.schemas.SEGMENTS`)."""
        ...

    @property
    def judgments(self) -> pa.Table:
        """The judged documents (`model.schemas.JUDGMENTS`)."""
        ...

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, sorted by system."""
        ...

    @property
    def place(self) -> str | None:
        """The path or URL of a file of the archive that every worker must be able to see; None in memory."""
        ...

    @property
    def is_distant(self) -> bool:
        """Whether reading its cells is mostly waiting."""
        ...

    @property
    def inputs(self) -> dict[str, str]:
        """Content hashes of the reference, by role (ecf, rttm, queries)."""
        ...

    @property
    def verification(self) -> Literal["on", "off", "no hashes"] | None:
        """Whether files are verified by hashes when read (`archive.stored_tables.Verification`); None in memory."""
        ...

    def occurrences(self, rule: FindRule) -> pa.Table:
        """Return the occurrences of the queries (`model.schemas.FOUND_OCCURRENCES`) by a rule."""
        ...

    def cells(self, system: str, rows_per_task: int) -> Iterator[Cell]:
        """Return the cells of one run, of about `rows_per_task` rows (a (query, document) is never cut).

        Raises `ArchiveError` for a system that the archive does not hold.
        """
        ...
