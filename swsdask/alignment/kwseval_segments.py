"""Segment trials as KWSEval -g makes them (QUIRK, under `compat = "kwseval"`), where `alignment.segment` does not.

- Every excerpt has segments of its own, also where excerpts overlap.
- A SPEAKER record that is not entirely inside the excerpt is passed over, and with it the words of its speaker there.
- A record of zero length makes a speech segment of zero length, unless it lies inside another one.
- A word lies in a segment iff it lies entirely inside the segment as it was made so far when a record of the word's own
  speaker was taken in; the last such record decides. A target's first and last word lie in the same segment.
- A mid-point on the boundary of two segments belongs to the earlier one, but to the excerpt that is the first in the
  ECF, unless only the other one is a target of the query: then the best detection of the segment goes there, and the
  others count for nothing. Mid-points of detections are computed in double precision.
- A detection counts by its mid-point alone, wherever it ends.

Not imitated: KWSEval maps a detection on the boundary of two targets to both, and one on the boundary of a target that
has another detection by the order of a hash table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from swsdask.alignment.segment import Spans
from swsdask.model.trials import I64, Segments

Span = tuple[int, int]
_Track = tuple[int, int]


class Spoken(NamedTuple):
    """Stretches of time with the names of their speakers: SPEAKER records in file order, or words in any order."""

    spans: Spans
    speaker: Sequence[str]

    def by_track(self) -> dict[_Track, list[tuple[int, int, str, int]]]:
        """(start, end, speaker, row) by (document, channel), by start; equal starts as they come."""
        tracks: dict[_Track, list[tuple[int, int, str, int]]] = defaultdict(list)
        columns = (column.tolist() for column in self.spans)
        for row, (document, channel, start, end, speaker) in enumerate(zip(*columns, self.speaker, strict=True)):
            tracks[document, channel].append((start, end, speaker, row))
        for rows in tracks.values():
            rows.sort(key=itemgetter(0))
        return tracks


def kwseval_segments(excerpts: Spans, records: Spoken, words: Spoken) -> tuple[Segments, I64]:
    """The segments of an evaluation, sorted by (document, channel, start, end), and the one of each word, -1: none.

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
    """The speaker of every record inside an excerpt, when `pieces` has been made longer by it."""
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
