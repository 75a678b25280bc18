"""Detections by the million, in the archive's canonical order, for measuring speed and memory.

All recordings are equally long, queries have one word, and everything lies on one line of places: query after query,
document after document, channel after channel, tick after tick. The line is cut between documents into blocks of about
as many detections each. Any block can be made alone, in any process; blocks put one after the other are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from swsdask.model import schemas
from swsdask.model.trials import F64, I32, I64, Detections
from swsdask.model.units import TICKS_PER_SECOND

_JITTER = TICKS_PER_SECOND // 10
_WORD = (3_000, 7_000)
_DURATION = (2_000, 9_000)


@dataclass(frozen=True, eq=False)
class Line:
    """The line of places: where each query's share of the detections ends (the last at 1.0), and how long a track is.

    A track is one channel of one document; a query takes `n_documents * n_channels` tracks of the line.
    """

    shares_end: F64
    n_documents: int
    n_channels: int
    track: int

    @property
    def per_query(self) -> int:
        """Places per query."""
        return self.n_documents * self.n_channels * self.track

    def places(self, shares: F64) -> I64:
        """The places that have the given shares of all detections before them."""
        last = len(self.shares_end) - 1
        query = np.searchsorted(self.shares_end, shares, "right").clip(0, last)
        before = np.concatenate(([0.0], self.shares_end))[query]
        part = (shares - before) / (self.shares_end[query] - before)
        found: I64 = query * self.per_query + (part * self.per_query).astype(np.int64).clip(0, self.per_query - 1)
        return found

    def shares(self, places: I64) -> F64:
        """The share of all detections before each place: the inverse of `places`."""
        query, rest = np.divmod(places, self.per_query)
        ends = np.concatenate(([0.0], self.shares_end, [1.0]))
        before: F64 = ends[query] + (ends[query + 1] - ends[query]) * (rest / self.per_query)
        return before

    def columns(self, places: I64) -> tuple[I32, I32, I64, I32]:
        """Query, document, channel and start of each place."""
        line, start = np.divmod(places, self.track)
        line, channel = np.divmod(line, self.n_channels)
        query, document = np.divmod(line, self.n_documents)
        return query.astype(np.int32), document.astype(np.int32), channel + 1, start.astype(np.int32)


@dataclass(frozen=True, eq=False)
class DetectionBlocks:
    """Detections of any number of systems on one evaluation; made by `detections`.

    `documents`, `queries`, `words` and `occurrences` are tables in the schemas of `model.schemas`: the words hold
    exactly these occurrences. `edges` are the places where blocks begin and the last ends, int64 [n_blocks + 1];
    `rows` are their sizes, int64 [n_blocks].
    """

    seed: int
    line: Line
    documents: pa.Table
    queries: pa.Table
    words: pa.Table
    occurrences: pa.Table
    edges: I64
    rows: I64
    occurrence_places: I64

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Detections]:
        """The blocks of system 0."""
        return (self.block(number) for number in range(len(self)))

    def block(self, number: int, system: int = 0) -> Detections:
        """One block of one system: whole (query, document) pairs, sorted as `model.schemas.DETECTIONS` wants it.

        A system finds about 80 % of the occurrences, some of them twice; all other detections are spread evenly over
        the recordings. Scores are normal, two standard deviations apart, with six decimals; YES from 1.5 on.
        """
        rng = np.random.default_rng([self.seed, 1, system, number])
        place, target = self._places(number, rng)
        n = len(place)
        score = (rng.standard_normal(n) + 2.0 * target).round(6)
        duration = rng.integers(*_DURATION, n, dtype=np.int32)
        _sort_ties(place, duration, score)
        query, document, channel, start = self.line.columns(place)
        return Detections(
            query=query,
            score=score,
            document=document,
            channel=channel.astype(np.int8),
            start=start,
            duration=duration,
            decision=(score >= 1.5).astype(np.int8),
            inside=(start + duration <= self.line.track).astype(np.int8),
        )

    def _places(self, number: int, rng: np.random.Generator) -> tuple[I64, I64]:
        """Where the detections of a block start, sorted, and which are of an occurrence (1) or of nothing (0)."""
        low, high = self.edges[number], self.edges[number + 1]
        n = int(self.rows[number])
        near = self.occurrence_places[slice(*np.searchsorted(self.occurrence_places, (low, high)))]
        times = rng.choice(np.array((0, 1, 2)), len(near), p=(0.2, 0.72, 0.08))
        found = np.repeat(near, times)[:n]
        in_track = found % self.line.track + rng.integers(-_JITTER, _JITTER, len(found))
        found += in_track.clip(0, self.line.track - 1) - found % self.line.track
        first, last = self.line.shares(self.edges[number : number + 2]).tolist()
        rest = self.line.places(rng.uniform(first, last, n - len(found)))
        marked = np.concatenate((2 * found + 1, 2 * rest.clip(low, high - 1)))
        marked.sort()
        return marked >> 1, marked & 1


def detections(
    seed: int,
    *,
    n_rows: int,
    n_queries: int = 500,
    n_documents: int = 1000,
    n_channels: int = 1,
    n_occurrences: int = 10_000,
    document_s: float = 600.0,
    shares: Sequence[float] | None = None,
    rows_per_block: int = 5_000_000,
) -> DetectionBlocks:
    """Prepare `n_rows` detections per system; nothing is made before a block is read.

    `shares` says how the detections are spread over the queries (relative numbers, one per query; by default the
    k-th query has about 1/(k + 10)). Occurrences are spread evenly.
    """
    rng = np.random.default_rng([seed, 0])
    weights = np.asarray(shares, np.float64) if shares is not None else 1 / (np.arange(n_queries) + 10.0)
    shares_end = np.cumsum(weights) / weights.sum()
    shares_end[-1] = 1.0
    line = Line(shares_end, n_documents, n_channels, round(document_s * TICKS_PER_SECOND))
    per_document = n_channels * line.track
    whole = n_queries * line.per_query
    n_blocks = max(1, round(n_rows / rows_per_block))
    edges = line.places(np.arange(n_blocks + 1) / n_blocks) // per_document * per_document
    edges[-1] = whole
    edges = np.unique(edges)
    rows: I64 = np.diff(np.round(line.shares(edges) * n_rows)).astype(np.int64)

    spoken = np.sort(rng.integers(0, whole, n_occurrences))
    duration = rng.integers(*_WORD, n_occurrences)
    spoken -= np.maximum(spoken % line.track + duration - line.track, 0)
    query, document, channel, start = line.columns(spoken)
    order = np.lexsort((duration, start, channel, document, query))
    return DetectionBlocks(
        seed=seed,
        line=line,
        **_tables(line, query[order], document[order], channel[order], start[order], duration[order]),
        edges=edges,
        rows=rows,
        occurrence_places=np.sort(spoken),
    )


def _tables(line: Line, query: I32, document: I32, channel: I64, start: I32, duration: I64) -> dict[str, pa.Table]:
    documents = np.array([f"d{number:06d}" for number in range(line.n_documents)])
    queries = np.array([f"q{number:06d}" for number in range(len(line.shares_end))])
    end = start + duration
    n_tracks = line.n_documents * line.n_channels
    place = {"document": documents[document], "channel": channel, "start": start, "end": end}
    tables = {
        "documents": (
            schemas.DOCUMENTS,
            {
                "document": np.repeat(documents, line.n_channels),
                "channel": np.tile(np.arange(1, line.n_channels + 1), line.n_documents),
                "start": np.zeros(n_tracks, np.int32),
                "end": np.full(n_tracks, line.track),
                "source_type": np.full(n_tracks, "bnews"),
                "language": np.full(n_tracks, "simulated"),
            },
        ),
        "queries": (
            schemas.QUERIES,
            {
                "query": queries,
                "text": queries,
                "attributes": pa.array([[]] * len(queries), pa.map_(pa.string(), pa.string())),
            },
        ),
        "words": (
            schemas.WORDS,
            {
                **place,
                "speaker": documents[document],
                "word": queries[query],
                "subtype": np.full(len(query), "lex"),
            },
        ),
        "occurrences": (
            schemas.OCCURRENCES,
            {**place, "query": query, "first_word_end": end, "last_word_start": start},
        ),
    }
    return {name: pa.table(columns).select(schema.names).cast(schema) for name, (schema, columns) in tables.items()}


def _sort_ties(place: I64, duration: I32, score: F64) -> None:
    """Put detections that start at the same place in order of duration, then of falling score; in place."""
    same = place[1:] == place[:-1]
    if not same.any():
        return
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    order = tied[np.lexsort((-score[tied], duration[tied], place[tied]))]
    duration[tied], score[tied] = duration[order], score[order]
