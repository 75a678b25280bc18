"""Segment trials: a trial is a (query, segment), as in the NIST 2013 Open Keyword Search evaluation (KWSEval -g).

Inside every excerpt the SPEAKER records in time order make speech segments (a record that overlaps the current segment
extends it, one that starts exactly at its end opens a new one), and the gaps between them make non-speech segments:
together they tile the excerpt.

A time interval, a detection or a word, lies in the segment that contains its mid-point; a mid-point on the boundary of
two segments belongs to the later one. A segment is a target of a query iff the first and the last word of an occurrence
lie in it. So a single word is always in one segment, however its ends were rounded, and a detection with the same times
lies in the same segment. The best detection in a segment represents the trial; a detection whose mid-point is in no
segment is no trial. KWSEval's own rules are below.

QUIRK, under `compat = "kwseval"`: segment trials as KWSEval -g makes them.

- Every excerpt has its own segments, also where excerpts overlap.
- A SPEAKER record that is not entirely inside the excerpt is ignored there, and so are the words of its speaker.
- A record of zero length makes a speech segment of zero length, unless it lies inside another one.
- A word lies in a segment iff it lies entirely inside the segment as it stood when a record of the word's own speaker
  was added; the last such record decides. A target's first and last word lie in the same segment.
- A mid-point on the boundary of two segments, or where excerpts overlap, is in several segments. The detection belongs
  to the earlier segment, but to the excerpt that is the first in the ECF. If it is the best one there, it makes a trial
  in every segment that contains its mid-point and is a target of the query; if that is only another segment, the other
  detections do not count. Mid-points of detections are computed in double precision.
- A detection counts by its mid-point alone, wherever it ends.

Not imitated: if a target has the best detections of two segments, KWSEval takes one of them by the order of a hash
table, and the other vanishes unless another target has it. Here the better one is taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from swsdask.model.columns import distinct_pairs
from swsdask.model.trials import I8, I32, I64, Bool, Detections, Reference, Segments, Trials
from swsdask.statistics.place_trials import Places, best_rows, evaluated_rows, middle_noise, trials_of_highest

_LIMIT = 2**34
"""Above four times any time in ticks."""


class Spans(NamedTuple):
    """Stretches of time [start, end], in ticks, in channels of documents: equally long columns in any order."""

    document: I32
    channel: I8
    start: I32
    end: I32


def segment_trials(detections: Detections, reference: Reference, *, aligned: bool, source: str) -> Trials:
    """Make one trial per (query, segment) with a detection, queries in the order of the rows, then by segment.

    Several trials may be of one detection (see the QUIRK above).
    """
    places = segment_places(detections, reference, aligned=aligned)
    evaluated = evaluated_rows(detections, reference, source)
    return trials_of_highest(detections.score, detections, reference, places, evaluated)


def segment_places(detections: Detections, reference: Reference, *, aligned: bool) -> Places:
    """Return the segments as places of trials."""
    d = detections
    if reference.segments is None or d.document is None or d.channel is None or d.start is None or d.duration is None:
        raise ValueError("segment trials need segments, and documents, channels and times of detections")
    middle = 2 * (2 * d.start.astype(np.int64) + d.duration)
    like_kwseval = reference.segments.order is not None
    if like_kwseval:
        middle += middle_noise(d.start, d.duration)
    places = Places(
        of_detection=_holding(reference.segments, d.document, d.channel, middle),
        number=len(reference.segments.start),
        targets=targets_of_segments(reference, reference.segments) if aligned else None,
        otherwise="no_segment",
    )
    if not like_kwseval:
        return places
    several = _in_several(reference.segments, d.document, d.channel, middle)
    return _in_every_target(places, several, d, targets_of_segments(reference, reference.segments), reference)


@lru_cache(maxsize=2)
def targets_of_segments(reference: Reference, segments: Segments) -> tuple[I32, I64]:
    """Return the target trials of an evaluation, as `segment_targets`."""
    return segment_targets(
        segments,
        query=reference.query,
        document=reference.document,
        channel=reference.channel,
        start=reference.start,
        end=reference.end,
        first_word_end=reference.first_word_end,
        last_word_start=reference.last_word_start,
        segment=reference.segment,
    )


def tile(excerpts: Spans, speakers: Spans) -> Segments:
    """Return the segments of an evaluation, sorted by (document, channel, start).

    `excerpts` are the evaluated excerpts, `speakers` the SPEAKER records: documents are codes of the same table,
    records of documents without excerpts (or with code -1) are ignored. Excerpts that overlap are merged; excerpts that
    only touch are not. Records are cut at the ends of excerpts; empty records and empty excerpts make no segment.
    """
    records: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for document, channel, start, end in _rows(speakers):
        records.setdefault((document, channel), []).append((start, end))
    found = [
        (document, channel, *piece)
        for (document, channel), (start, end) in _united(excerpts)
        for piece in _pieces(start, end, _speech(start, end, records.get((document, channel), [])))
    ]
    columns = np.array(found, np.int64).reshape(-1, 4).T
    return Segments(
        document=columns[0].astype(np.int32),
        channel=columns[1].astype(np.int8),
        start=columns[2].astype(np.int32),
        end=columns[3].astype(np.int32),
    )


def segment_targets(
    segments: Segments,
    *,
    query: I32,
    document: I32,
    channel: I8,
    start: I32,
    end: I32,
    first_word_end: I32,
    last_word_start: I32,
    segment: I64 | None = None,
) -> tuple[I32, I64]:
    """Return the target trials: (query, number of the segment), each pair once, sorted.

    The other columns are those of the evaluated occurrences, in ticks, in any order. An occurrence whose first and last
    word lie in different segments makes no target. `segment` is given if it is not decided by the mid-points of words.
    """
    if segment is None:
        first = segment_of(segments, document, channel, start, first_word_end)
        last = segment_of(segments, document, channel, last_word_start, end)
        segment = np.where(first == last, first, -1)
    whole = segment >= 0
    return distinct_pairs(query[whole], segment[whole])


def segment_of(segments: Segments, document: I32, channel: I8, start: I32, end: I32 | I64) -> I64:
    """Return the number of the segment that contains the mid-point of each interval [start, end]; -1 if none does."""
    return _holding(segments, document, channel, 2 * (start.astype(np.int64) + end))


class _Holders(NamedTuple):
    """The segment of every time, -1 for none: holder[2 i] at edges[i], holder[2 i + 1] from there to the next edge.

    `edges` are the ascending ends of segments, in quarters of a tick, prefixed with the number of the track among the
    sorted `tracks`. `starts` and `ends` are those of each segment, in the same form.
    """

    tracks: I64
    edges: I64
    holder: I64
    starts: I64
    ends: I64


@lru_cache(maxsize=2)
def _holders(segments: Segments) -> _Holders:
    tracks, track = np.unique(_track(segments.document, segments.channel), return_inverse=True)
    starts, ends = (track * _LIMIT + 4 * times.astype(np.int64) for times in (segments.start, segments.end))
    edges = np.unique(np.concatenate([starts, ends]))
    holder = np.full(2 * len(edges), -1, np.int64)
    first, last = 2 * np.searchsorted(edges, starts), 2 * np.searchsorted(edges, ends)
    order = np.arange(len(starts)) if segments.order is None else segments.order[::-1]
    for number, begin, end in zip(order.tolist(), first[order].tolist(), last[order].tolist(), strict=True):
        holder[begin : end + 1] = number
    return _Holders(tracks, edges, holder, starts, ends)


def _holding(segments: Segments, document: I32, channel: I8, middle: I64) -> I64:
    """Return the number of the segment that contains each time, given in quarters of a tick."""
    known = _holders(segments)
    at, there = _placed(known, document, channel, middle)
    before = np.searchsorted(known.edges, at, "right") - 1
    there &= before >= 0
    after = np.append(known.edges, -1)[before] != at
    found: I64 = np.where(there, np.append(known.holder, -1)[2 * before + after], -1)
    return found


def _placed(known: _Holders, document: I32, channel: I8, middle: I64) -> tuple[I64, Bool]:
    """Return times in quarters of a tick in the form of `_Holders`, and whether they can be in a segment."""
    wanted = _track(document, channel)
    track = np.searchsorted(known.tracks, wanted)
    at = track * _LIMIT + np.clip(middle, 0, _LIMIT - 1)
    return at, (np.append(known.tracks, -1)[track] == wanted) & (middle >= 0)


def _in_several(segments: Segments, document: I32, channel: I8, middle: I64) -> tuple[I64, I64]:
    """Return the rows of times that are in several segments, each with all of these: sorted by (row, segment)."""
    known = _holders(segments)
    at, there = _placed(known, document, channel, middle)
    last = np.searchsorted(known.starts, at, "right")
    count = last - np.searchsorted(np.sort(known.ends), at, "left")
    row = np.flatnonzero(there & (count > 1))
    left, number = count[row], last[row] - 1
    found = [(row[:0], number[:0])]
    while len(row):
        holds = known.ends[number] >= at[row]
        found.append((row[holds], number[holds]))
        left = left - holds
        row, number, left = row[left > 0], number[left > 0] - 1, left[left > 0]
    row, number = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((number, row))
    return row[order], number[order]


def _in_every_target(
    places: Places, several: tuple[I64, I64], detections: Detections, targets: tuple[I32, I64], reference: Reference
) -> Places:
    """Return the places of detections that lie in one segment each, moved to all `targets` that contain their time.

    `several` are the detections in more than one segment, and these. Only the best detection of a segment is compared
    with targets; the others go with it.
    """
    (row, place), held = several, places.of_detection
    if not len(row):
        return places
    own = detections.query.astype(np.int64) << 32
    trial = own | held
    rows = np.flatnonzero(np.isin(trial, trial[row]))
    best = rows[best_rows(detections.score[rows], detections.take(rows), held[rows], places.number, reference)]
    chosen = np.isin(row, best) & np.isin(own[row] | place, targets[0].astype(np.int64) << 32 | targets[1])
    row, place = row[chosen], place[chosen]
    found = held.copy()
    left, first = np.unique(trial[row], return_index=True)
    moved = np.flatnonzero(np.isin(trial, left))
    found[moved] = place[first[np.searchsorted(left, trial[moved])]]
    again = np.delete(np.arange(len(row)), first)
    rows = np.append(np.arange(len(held)), row[again])
    order = np.argsort(rows, kind="stable")
    return replace(places, of_detection=np.append(found, place[again])[order], row=rows[order])


def _track(document: I32, channel: I8) -> I64:
    """Number the pairs (document, channel), in that order."""
    return document.astype(np.int64) * 256 + (channel.astype(np.int64) + 128)


def _rows(spans: Spans) -> list[tuple[int, int, int, int]]:
    return sorted(zip(*(column.tolist() for column in spans), strict=True))


def _united(excerpts: Spans) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    united: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for document, channel, start, end in _rows(excerpts):
        if united and united[-1][0] == (document, channel) and start < united[-1][1][1]:
            start, end = united[-1][1][0], max(end, united[-1][1][1])
            united.pop()
        united.append(((document, channel), (start, end)))
    return united


def _speech(start: int, end: int, records: list[tuple[int, int]]) -> list[tuple[int, int]]:
    speech: list[tuple[int, int]] = []
    for record_start, record_end in records:
        begin, stop = max(record_start, start), min(record_end, end)
        if begin >= stop:
            continue
        if speech and begin < speech[-1][1]:
            begin, stop = speech[-1][0], max(stop, speech[-1][1])
            speech.pop()
        speech.append((begin, stop))
    return speech


def _pieces(start: int, end: int, speech: list[tuple[int, int]]) -> list[tuple[int, int]]:
    edges = sorted({start, end, *(edge for stretch in speech for edge in stretch)})
    return list(pairwise(edges))


Span = tuple[int, int]
_Track = tuple[int, int]


class Spoken(NamedTuple):
    """Stretches of time with the names of their speakers: SPEAKER records in file order, or words in any order."""

    spans: Spans
    speaker: Sequence[str]

    def by_track(self) -> dict[_Track, list[tuple[int, int, str, int]]]:
        """(start, end, speaker, row) by (document, channel), sorted by start; equal starts keep their order."""
        tracks: dict[_Track, list[tuple[int, int, str, int]]] = defaultdict(list)
        columns = (column.tolist() for column in self.spans)
        for row, (document, channel, start, end, speaker) in enumerate(zip(*columns, self.speaker, strict=True)):
            tracks[document, channel].append((start, end, speaker, row))
        for rows in tracks.values():
            rows.sort(key=itemgetter(0))
        return tracks


def kwseval_segments(excerpts: Spans, records: Spoken, words: Spoken) -> tuple[Segments, I64]:
    """The segments of an evaluation, sorted by (document, channel, start, end), and the segment of each word, -1: none.

    `excerpts` are the evaluated excerpts in the order of the ECF.
    """
    record_of, word_of = records.by_track(), words.by_track()
    found: list[tuple[int, int, int, int]] = []
    segment = np.full(len(words.speaker), -1, np.int64)
    for document, channel, start, end in zip(*(column.tolist() for column in excerpts), strict=True):
        track = (document, channel)
        own: dict[str, list[tuple[int, int, str, int]]] = defaultdict(list)
        for word in word_of.get(track, ()):
            own[word[2]].append(word)
        pieces: list[Span] = []
        for speaker in _taken_in(start, end, record_of.get(track, ()), pieces):
            begin, stop = pieces[-1]
            segment[list(_rows_inside(own[speaker], begin, stop))] = len(found) + len(pieces) - 1
        reached = pieces[-1][1] if pieces else start
        if reached < end:
            pieces.append((reached, end))
        found.extend((document, channel, *piece) for piece in pieces)
    columns = np.array(found, np.int64).reshape(-1, 4).T
    order = np.lexsort(columns[::-1])
    place = np.append(np.argsort(order), -1)
    document, channel, start, end = columns[:, order]
    return Segments(
        document=document.astype(np.int32),
        channel=channel.astype(np.int8),
        start=start.astype(np.int32),
        end=end.astype(np.int32),
        order=place[:-1],
    ), place[segment]


def _taken_in(start: int, end: int, records: Iterable[tuple[int, int, str, int]], pieces: list[Span]) -> Iterator[str]:
    """Add the records inside an excerpt to `pieces`; yield the speaker of each after it was added."""
    for begin, stop, speaker, _ in records:
        if begin < start or stop > end:
            continue
        reached = pieces[-1][1] if pieces else start
        if begin > reached:
            pieces.append((reached, begin))
        if begin >= reached:
            pieces.append((begin, stop))
        else:
            pieces[-1] = (pieces[-1][0], max(stop, reached))
        yield speaker


def _rows_inside(words: Sequence[tuple[int, int, str, int]], begin: int, stop: int) -> Iterator[int]:
    for start, end, _, row in words[bisect_left(words, begin, key=itemgetter(0)) :]:
        if start > stop:
            return
        if end <= stop:
            yield row
