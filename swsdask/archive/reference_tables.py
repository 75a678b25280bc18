"""The tables of a reference, and what is derived from them: excerpts, judgments, audio time, hashes.

Evaluated excerpts determine the documents, and the stretches of time inside one excerpt. A reference of judgments has
the same tables: every judged document and every document of the runs is one excerpt, and every query is one word,
spoken in the documents that are relevant to it.

Audio time is the searched time in seconds, which determines the number of trials of a query. By default, the excerpts
of a document are united, whatever their channels (as by NIST: two channels of one call count once), and the lengths are
summed over documents. Time that only `splitcts` excerpts cover counts half. All arithmetic is exact, in half ticks of
0.05 ms. The total in the ECF is never used.

Quirks of the official tools, each under its `compat` only:

- `kwseval` does not unite: it sorts a document's excerpts by start, then by end, and cuts each at the next one's start;
  different for nested excerpts alone. N is T divided by the trials per second, not multiplied.
- `stdeval` adds up the excerpts of channel 1, overlapping or not; `splitcts` counts whole.
- Both add up seconds in double precision, so that T = 92.5 s can make 93 trials; so does `trial_counter`. It adds up
  documents in the order of the ECF; KWSEval uses the order of a hash table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from swsdask.archive.protocols import Archive
from swsdask.execution.executor import Executor, SerialExecutor, run_tasks
from swsdask.formats.reference.rttm import GENDERS
from swsdask.formats.reference.table import read_judgments
from swsdask.kernels.rows import TRACK_BITS, place_rows
from swsdask.model.errors import Problems
from swsdask.model.hashes import hash_tables
from swsdask.model.safe_text import without_secrets
from swsdask.model.schemas import DOCUMENTS, JUDGMENTS, QUERIES, SEGMENTS, WORDS, RunSource
from swsdask.model.settings import Compat
from swsdask.model.trials import F64, I8, I32, I64, UNKNOWN_DOCUMENT, Bool
from swsdask.model.units import TICKS_PER_SECOND, DocumentCodes

COLLECTION = "ecf"
"""The role of the input with the documents. For judged documents, it grows with the runs."""


@dataclass(frozen=True, eq=False)
class ReferenceTables:
    """The tables of `model.schemas` that do not depend on any run."""

    documents: pa.Table
    queries: pa.Table
    words: pa.Table
    segments: pa.Table
    judgments: pa.Table = field(default_factory=JUDGMENTS.empty_table)

    @classmethod
    def of(cls, archive: Archive) -> Self:
        """Take the tables of an archive. Fields inside a map, which Parquet renames, get the names of QUERIES."""
        queries = archive.queries.cast(QUERIES.with_metadata(archive.queries.schema.metadata))
        return cls(archive.documents, queries, archive.words, archive.segments, archive.judgments)

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Content hashes by role. They do not depend on the compression or layout of the files.

        Data on talkers, if there are any, have their own role, which archives of earlier releases lack.
        """
        said = dict(self.segments.schema.metadata or {})
        genders = said.pop(GENDERS.encode(), None)
        hashes = {
            COLLECTION: hash_tables(self.documents),
            "rttm": hash_tables(self.words, self.segments.replace_schema_metadata(said)),
            "queries": hash_tables(self.queries),
        }
        hashes |= {} if genders is None else {GENDERS: xxhash.xxh3_128_hexdigest(genders)}
        return hashes | ({"judgments": hash_tables(self.judgments)} if len(self.judgments) else {})


@dataclass(frozen=True)
class JudgedFiles:
    """A file or table of judgments, and runs whose documents belong to the collection too, judged or not."""

    qrels: str | pa.Table
    runs: tuple[RunSource, ...] = ()


def read_judged(files: JudgedFiles, problems: Problems) -> ReferenceTables:
    """Return the reference tables from judgments. Problems of the judgments are added to `problems`.

    Problems of the runs are reported when these are read as runs.
    """
    judged = read_judgments(files.qrels, problems)
    others = other_documents(files.runs, judged.documents)
    return ReferenceTables(
        documents=collection(sorted({*judged.documents, *others})),
        queries=_table(QUERIES, ((name, name, []) for name in judged.queries)),
        words=_table(WORDS, ((name, 1, query, 0, TICKS_PER_SECOND, query, "lex") for query, name in judged.relevant)),
        segments=SEGMENTS.empty_table(),
        judgments=judged.pairs,
    )


def collection(documents: Iterable[str]) -> pa.Table:
    """Return the table of documents that make a collection, each one excerpt."""
    return _table(DOCUMENTS, ((name, 1, 0, TICKS_PER_SECOND, "", "") for name in documents))


def with_documents_of(tables: ReferenceTables, runs: Sequence[RunSource], executor: Executor) -> ReferenceTables:
    """Judged tables whose collection also has the documents of runs, judged or not."""
    known = document_ids(tables.documents)
    others = other_documents(runs, known, executor)
    return replace(tables, documents=collection(sorted({*known, *others}))) if others else tables


def other_documents(
    runs: Sequence[RunSource],
    known: Sequence[str],
    executor: Executor | None = None,
    done: Callable[[RunSource], None] | None = None,
) -> set[str]:
    """Return the documents of runs that are not among the known ones. Each run is read by a task.

    `done` is called with each source that has been read.
    """
    return {
        *chain.from_iterable(run_tasks(executor or SerialExecutor(), _others, runs, DocumentCodes(known), _what, done))
    }


def _others(run: RunSource, codes: DocumentCodes) -> set[str]:
    """Return the documents of a run that are not those with codes."""
    pieces = run.read(Problems())
    return {name for piece in pieces for name in piece.documents if codes.get(name, judged=piece.judged) is None}


def _what(run: RunSource) -> str:
    return f"documents of {without_secrets(run.file)}"


def _table(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)


def document_ids(documents: pa.Table) -> tuple[str, ...]:
    """Return the distinct documents in the order of the table `documents`: a document's code is its place here."""
    return tuple(pc.unique(documents["document"]).to_pylist())


def n_documents(documents: pa.Table) -> int:
    """Return the number of distinct documents in the table `documents`."""
    return len(pc.unique(documents["document"]))


def spoken_elsewhere(documents: pa.Table, words: pa.Table) -> tuple[str, ...]:
    """Return the sorted documents with words that are not in the table `documents`.

    Their codes follow those of the table.
    """
    column, spoken = documents["document"], pc.unique(words["document"])
    known = pc.unique(column.filter(pc.is_in(column, value_set=spoken)))
    return tuple(sorted({*spoken.to_pylist()} - {*known.to_pylist()}))


def document_codes(ids: tuple[str, ...], column: pa.ChunkedArray) -> I32:
    """Return the codes of a column of document ids, int32; -1 for documents that are not among `ids`."""
    found = pc.fill_null(pc.index_in(column, value_set=pa.array(ids, pa.string())), UNKNOWN_DOCUMENT)
    codes: I32 = found.to_numpy().astype(np.int32)
    return codes


def _own_codes(documents: pa.Table) -> tuple[I32, int]:
    """Return the code of each excerpt's document, int32, and the number of documents."""
    column = documents["document"].combine_chunks().dictionary_encode()
    return column.indices.to_numpy(), len(column.dictionary)


@dataclass(frozen=True, eq=False)
class Excerpts:
    """The excerpts, prepared for lookup.

    `begins` are (document, channel, start) packed in an int64, ascending. `reaches` is the latest end of the excerpts
    of that (document, channel) that begin no later, packed likewise. `added` is that end in seconds as in STDEval, the
    sum of begin and duration in double precision, the latest of equal ends.
    """

    begins: I64
    reaches: I64
    added: F64

    @classmethod
    def of(cls, documents: pa.Table) -> Self:
        """Return the excerpts of a table of `model.schemas.DOCUMENTS`."""
        codes, _ = _own_codes(documents)
        channel = documents["channel"].to_numpy()
        start, end = documents["start"].to_numpy(), documents["end"].to_numpy()
        begins, ends = _packed(codes, channel, start), _packed(codes, channel, end)
        added = start / TICKS_PER_SECOND + (end - start) / TICKS_PER_SECOND
        order = np.argsort(begins, kind="stable")
        by_end = np.lexsort((added, ends))
        rank = np.empty_like(by_end)
        rank[by_end] = np.arange(len(by_end))
        farthest = by_end[np.maximum.accumulate(rank[order])]
        return cls(begins[order], ends[farthest], added[farthest])

    def contain(self, document: I32, channel: I8, start: I32, end: NDArray[np.signedinteger]) -> Bool:
        """Return whether each [start, end] (ticks) lies entirely inside one excerpt of its (document, channel), ends
        inclusive.

        An excerpt that holds it begins no later, and of those the one that reaches farthest decides.
        """
        inside: Bool = self.inside(document, channel, start, end) != 0
        return inside

    def inside(self, document: I32, channel: I8, start: I32, end: NDArray[np.signedinteger]) -> I8:
        """Classify each [start, end] (ticks) as `model.schemas.DETECTIONS` says."""
        if not len(self.begins):
            return np.zeros(len(document), np.int8)
        inside: I8 = np.empty(len(document), np.int8)
        place_rows(
            self.begins,
            self.reaches,
            self.added,
            float(TICKS_PER_SECOND),
            document,
            channel,
            start,
            end.astype(np.int64, copy=False),
            inside,
        )
        return inside


def _packed(document: I32, channel: I8, time: NDArray[np.signedinteger]) -> I64:
    track = document.astype(np.int64) * 256 + (channel.astype(np.int64) + 128)
    return (track << TRACK_BITS) + time


HALF = "splitcts"
HALF_TICKS_PER_SECOND = 2 * TICKS_PER_SECOND
_STDEVAL_CHANNEL = 1


class _Excerpts(NamedTuple):
    """Columns by excerpt, grouped by document and sorted by start. `worth` is the weight of a tick."""

    document: I64
    channel: I64
    start: I64
    end: I64
    worth: I64

    def chosen(self, rows: Bool) -> _Excerpts:
        return _Excerpts(*(column[rows] for column in self))


def audio_time(documents: pa.Table, compat: Compat) -> I64:
    """T of every document in half ticks, int64 [n_documents], by the code of the document."""
    excerpts, size = _sorted(documents)
    totals = np.zeros(size, np.int64)
    np.add.at(totals, excerpts.document, _MEASURES.get(compat, _united)(excerpts))
    return totals


def speech_seconds(documents: pa.Table, compat: Compat) -> float:
    """Return the duration of the evaluated audio, added as the official tool does under its compat."""
    if compat in _SECONDS:
        return _added(_SECONDS[compat](documents)[1])
    return int(audio_time(documents, compat).sum()) / (2 * TICKS_PER_SECOND)


def trial_counter(documents: pa.Table, trials_per_second: float, compat: Compat) -> Callable[[I64], int]:
    """Return a function from weights of documents, int64 [n_documents], to N, the virtual trials of a query (Eq. 2)."""
    if compat in _SECONDS:
        document, seconds = _SECONDS[compat](documents)
        trials = _TRIALS[compat]
        return lambda times: trials(_added(np.repeat(seconds, times[document])), trials_per_second)
    time = audio_time(documents, compat)
    return lambda times: n_virtual_trials(trials_per_second, int(time @ times))


def _seconds_of_kwseval(documents: pa.Table) -> tuple[I64, F64]:
    excerpts, _ = _sorted(documents)
    seconds = _ends_cut_at_the_next(excerpts) / TICKS_PER_SECOND - excerpts.start / TICKS_PER_SECOND
    return excerpts.document, seconds * (excerpts.worth / 2)


def _seconds_of_stdeval(documents: pa.Table) -> tuple[I64, F64]:
    codes, _ = _own_codes(documents)
    first = documents["channel"].to_numpy() == _STDEVAL_CHANNEL
    seconds = (documents["end"].to_numpy() - documents["start"].to_numpy()) / TICKS_PER_SECOND
    return codes[first].astype(np.int64), seconds[first]


_SECONDS: dict[Compat, Callable[[pa.Table], tuple[I64, F64]]] = {
    "kwseval": _seconds_of_kwseval,
    "stdeval": _seconds_of_stdeval,
}
"""The codes of documents, and the seconds that a tool adds up, one excerpt after the other."""

_TRIALS: dict[Compat, Callable[[float, float], int]] = {
    "kwseval": lambda seconds, trials_per_second: round(seconds / trials_per_second),
    "stdeval": lambda seconds, trials_per_second: round(trials_per_second * seconds),
}


def _added(seconds: F64) -> float:
    """Return the sum in double precision, term by term, as the tools add; other methods are more exact."""
    return float(np.add.accumulate(seconds)[-1]) if len(seconds) else 0.0


def _sorted(documents: pa.Table) -> tuple[_Excerpts, int]:
    """Return the excerpts by (document, start, end), and the number of documents."""
    codes, size = _own_codes(documents)
    document, channel, start, end = (
        column.astype(np.int64)
        for column in (codes, *(documents[name].to_numpy() for name in ("channel", "start", "end")))
    )
    half = pc.equal(documents["source_type"], HALF).to_numpy()
    order = np.lexsort([end, start, document])
    columns = (document, channel, start, end, 2 - half.astype(np.int64))
    return _Excerpts(*(column[order] for column in columns)), size


def n_virtual_trials(trials_per_second: float, half_ticks: int) -> int:
    """N = n_tps T, the product of the decimals given, rounded half to even to an integer as NIST does (Eq. 2)."""
    return round(Fraction(repr(trials_per_second)) * Fraction(half_ticks, HALF_TICKS_PER_SECOND))


def _united(excerpts: _Excerpts) -> I64:
    whole = excerpts.worth == 2
    counted = _uncovered(excerpts)
    counted[whole] += _uncovered(excerpts.chosen(whole))
    return counted


def _uncovered(excerpts: _Excerpts) -> I64:
    """Return the part of each excerpt that is after the ends of those before it in its document."""
    before = excerpts.document * (excerpts.end.max(initial=0) + 1)
    reached = np.append(0, np.maximum.accumulate(before + excerpts.end)[:-1])[: len(before)] - before
    uncovered: I64 = np.maximum(excerpts.end - np.maximum(excerpts.start, reached), 0)
    return uncovered


def _cut_at_the_next(excerpts: _Excerpts) -> I64:
    cut: I64 = (_ends_cut_at_the_next(excerpts) - excerpts.start) * excerpts.worth
    return cut


def _ends_cut_at_the_next(excerpts: _Excerpts) -> I64:
    last = np.append(excerpts.document[1:] != excerpts.document[:-1], True)[: len(excerpts.document)]
    following = np.where(last, excerpts.end, np.append(excerpts.start[1:], 0)[: len(last)])
    ends: I64 = np.minimum(excerpts.end, following)
    return ends


def _first_channel(excerpts: _Excerpts) -> I64:
    first: I64 = 2 * (excerpts.end - excerpts.start) * (excerpts.channel == _STDEVAL_CHANNEL)
    return first


_MEASURES: dict[Compat, Callable[[_Excerpts], I64]] = {
    "kwseval": _cut_at_the_next,
    "stdeval": _first_channel,
}
"""The half ticks that each excerpt adds to its document, if excerpts are not united."""
