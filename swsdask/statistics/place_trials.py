"""Trials of places, which are segments or documents: the best detection represents all detections in a place.

Document trials: a trial is a (query, document), as in MediaEval's SWS 2011 and QUESST 2014 and 2015. A document is a
target of a query iff it contains an evaluated occurrence of the query, on any channel; the time of a detection in the
document does not matter. The best detection over all channels represents the trial. Detections in documents that are
not in the ECF are no trials.

QUIRK, under `compat = "mediaeval"`: its tool ignores times and channels, so that no detection and no occurrence lies
outside the excerpts; `archive.occurrences` describes how it finds occurrences.

The rule `outside` decides about detections that do not lie inside an evaluated excerpt: "drop" makes no trials of them
and counts them (KWSEval drops them silently), "false_alarm" treats them as ordinary detections, aligned like the rest
(STDEval without its -E option: false alarms if they match nothing), "error" refuses them.

QUIRK, under `compat = "kwseval"`: a detection that ends exactly at the end of an excerpt is outside if begin +
duration in double precision is greater. STDEval -E (`compat = "stdeval"` with `outside = "drop"`) adds up the end of
the excerpt in double precision as well. Both tools read begin and duration as doubles and add them, so that 0.1 + 0.2
lies after an end at 0.3: the column `inside` of a detection and `middle_noise` say on which side of the exact time the
tools' result lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdask.kernels.rows import best_detections, pairs_ascend, target_rows
from swsdask.model.columns import distinct_pairs
from swsdask.model.errors import SHOWN, InputError, Problem
from swsdask.model.trials import F64, I16, I32, I64, Detections, Reference, Scalar, Trials
from swsdask.model.units import TICKS_PER_SECOND, seconds


def groups_of(document: I32 | None, rows: I64 | slice, reference: Reference) -> I16 | None:
    """Return the group of the document (-1: unknown) in each of the rows, or None if no condition distinguishes
    documents.
    """
    if reference.n_groups == 1:
        return None
    if document is None:
        raise ValueError("the column `document` was not read")
    return reference.group_of_document[document[rows]]


OUTSIDE = "outside"
"""The reason under which `Trials.dropped` counts detections outside the evaluated excerpts."""


class Evaluated(NamedTuple):
    """The rows of detections that are evaluated, and the others: int64, ascending."""

    rows: I64
    outside: I64


_SHORT_STRETCH = 600
"""The number of rows up to which copying a stretch takes longer than copying row by row. Stretches of 10,000 rows take
less than half as long."""


def of_rows(column: NDArray[Scalar], evaluated: Evaluated | None) -> NDArray[Scalar]:
    """Return the values of a column in the evaluated rows; None: all."""
    if evaluated is None:
        return column
    rows, outside = evaluated
    if len(outside) * _SHORT_STRETCH > len(column):
        return column[rows]
    bounds = [-1, *outside.tolist(), len(column)]
    return np.concatenate([column[before + 1 : after] for before, after in pairwise(bounds)])


def evaluated_rows(detections: Detections, reference: Reference, source: str) -> Evaluated | None:
    """Return the rows that are evaluated; None: all of them.

    Raises `InputError` if the rule is "error" and a detection lies outside; `source` is the origin of the rows.
    """
    if reference.rule.outside == "false_alarm":
        return None
    if detections.inside is None:
        raise ValueError("the column `inside` was not read")
    outside = np.flatnonzero(detections.inside == 0)
    if not len(outside):
        return None
    if reference.rule.outside == "error":
        problems = (_problem(detections, reference, source, row) for row in outside[:SHOWN].tolist())
        raise InputError(*problems, total=len(outside))
    return Evaluated(np.flatnonzero(detections.inside != 0), outside)


def dropped_outside(evaluated: Evaluated | None) -> dict[str, int]:
    """Return the count for `Trials.dropped`; empty if no row was dropped."""
    return {} if evaluated is None else {OUTSIDE: len(evaluated.outside)}


def _problem(detections: Detections, reference: Reference, source: str, row: int) -> Problem:
    found = f"a detection of query {reference.query_ids[detections.query[row]]}"
    if detections.document is not None:
        code = int(detections.document[row])
        found += f" in {reference.document_ids[code] if code >= 0 else 'a document without excerpts'}"
    if detections.start is not None and detections.duration is not None:
        start, duration = int(detections.start[row]), int(detections.duration[row])
        found += f" at {seconds(start)} - {seconds(start + duration)} s"
    return Problem(
        file=source,
        line=None,
        expected="detections inside the evaluated excerpts",
        found=found,
        remedy='Take it out, or set outside = "drop" or "false_alarm".',
    )


@dataclass(frozen=True, eq=False)
class Places:
    """The documents or segments that are the trials of a query, numbered from 0.

    `of_detection` is the number of the place that each detection lies in, -1 if it lies in none; `otherwise` is the
    reason for these in `Trials.dropped`. `targets` are the target trials, sorted pairs (query, place); None for
    unaligned trials. If detections lie in several places, `row` is the detection that each of `of_detection` is of,
    ascending, and all detections count.
    """

    of_detection: I64
    number: int
    targets: tuple[I32, I64] | None
    otherwise: str
    row: I64 | None = None

    def rows(self, entries: I64) -> I64:
        """Return the detections of some places in `of_detection`."""
        return entries if self.row is None else self.row[entries]


def trials_of_highest(
    worth: F64, detections: Detections, reference: Reference, places: Places, evaluated: Evaluated | None
) -> Trials:
    """Make one trial per (query, place) with an evaluated detection, queries in the order of the rows, then by place.

    A trial has the score and decision of its best detection: the one of highest `worth`, which is the score or another
    number; among equal ones that with the earlier start, then the longer, then the one on the lower channel, then YES
    before NO, then the earlier row. An unaligned trial's `row` is that of any detection of highest worth. Of the rows
    only those `evaluated` count; None: all.
    """
    place = evaluated_places(places, evaluated)
    outside = dropped_outside(evaluated)
    nowhere = int((place < 0).sum()) - sum(outside.values())
    entries = best_entries(worth, detections, reference, places, place)
    rows = places.rows(entries)
    aligned = places.targets is not None
    query = detections.query[rows]
    hit, occurrence = (
        (None, None)
        if places.targets is None
        else hits(query, place[entries], places.targets, reference.n_queries, places.number)
    )
    return Trials(
        query=query,
        score=detections.score[rows],
        decision=detections.decision[rows] if aligned and detections.decision is not None else None,
        group=groups_of(detections.document, rows, reference),
        row=rows,
        hit=hit,
        occurrence=occurrence,
        dropped=outside | ({places.otherwise: nowhere} if nowhere else {}),
        detections=detections,
    )


def best_entries(worth: F64, detections: Detections, reference: Reference, places: Places, place: I64) -> I64:
    """Return the numbers in `Places.of_detection` of the best detection of every (query, place), by `best_rows`.

    `place` is `of_detection`, or -1 where a detection does not count.
    """
    if places.row is not None:
        worth, detections = worth[places.row], detections.take(places.row)
    return best_rows(worth, detections, place, places.number, reference)


def best_rows(worth: F64, detections: Detections, place: I64, n_places: int, reference: Reference) -> I64:
    """Return the row of the best detection of every (query, place), in the order of `kernels.rows.best_detections`."""
    n_rows = len(detections)
    return best_detections(
        detections.query,
        place,
        worth,
        _or_zeros(detections.start, np.int32, n_rows),
        _or_zeros(detections.duration, np.int32, n_rows),
        _or_zeros(detections.channel, np.int8, n_rows),
        _or_zeros(detections.decision, np.int8, n_rows),
        reference.n_queries,
        n_places,
    )


def hits(query: I32, place: I32 | I64, targets: tuple[I32, I64], n_queries: int, n_places: int) -> tuple[I64, I32]:
    """Return the trials that are targets, ascending, and the number of the target of each."""
    of_query = np.searchsorted(targets[0], np.arange(n_queries + 1))
    return target_rows(query, place, of_query, targets[1], n_places)


def evaluated_places(places: Places, evaluated: Evaluated | None) -> I64:
    """Return the place of every detection, -1 also if it does not count."""
    if evaluated is None:
        return places.of_detection
    place = places.of_detection.copy()
    place[evaluated.outside] = -1
    return place


def _or_zeros(column: NDArray[Scalar] | None, dtype: type[Scalar], length: int) -> NDArray[Scalar]:
    return np.zeros(length, dtype) if column is None else column


def middle_noise(start: I32, duration: I32) -> I64:
    """Return the sign of (begin + duration / 2 in doubles) - (the mid-point's nearest double); times in ticks."""
    doubled = 2 * start.astype(np.int64) + duration
    noise = np.sign(start / TICKS_PER_SECOND + duration / TICKS_PER_SECOND / 2 - doubled / (2 * TICKS_PER_SECOND))
    return noise.astype(np.int64)


def document_trials(detections: Detections, reference: Reference, *, aligned: bool, source: str) -> Trials:
    """Make one trial per (query, document) with a detection, queries in the order of the rows, then by document."""
    evaluated = evaluated_rows(detections, reference, source)
    if evaluated is None and pairs_ascend(detections.query, _document(detections), _n_evaluated(reference)):
        return _every_row(detections, reference, aligned=aligned)
    places = document_places(detections, reference, aligned=aligned)
    return trials_of_highest(detections.score, detections, reference, places, evaluated)


def _every_row(detections: Detections, reference: Reference, *, aligned: bool) -> Trials:
    """Return the trials if every row is one, in the order of the rows."""
    query, document = detections.query, _document(detections)
    n_evaluated, n_queries = _n_evaluated(reference), reference.n_queries
    hit, occurrence = hits(query, document, _targets(reference), n_queries, n_evaluated) if aligned else (None, None)
    return Trials(
        query=query,
        score=detections.score,
        decision=detections.decision if aligned else None,
        group=groups_of(document, slice(None), reference),
        row=None,
        hit=hit,
        occurrence=occurrence,
        dropped={},
        detections=detections,
    )


def document_places(detections: Detections, reference: Reference, *, aligned: bool) -> Places:
    """Return the documents as places of trials."""
    n_evaluated, document = _n_evaluated(reference), _document(detections)
    return Places(
        of_detection=np.where(document < n_evaluated, document.astype(np.int64), -1),
        number=n_evaluated,
        targets=_targets(reference) if aligned else None,
        otherwise="unknown_document",
    )


def _document(detections: Detections) -> I32:
    if detections.document is None:
        raise ValueError("the column `document` was not read")
    return detections.document


def _n_evaluated(reference: Reference) -> int:
    return reference.n_documents - reference.n_without_excerpts


@lru_cache(maxsize=2)
def _targets(reference: Reference) -> tuple[I32, I64]:
    return distinct_pairs(reference.query, reference.document)
