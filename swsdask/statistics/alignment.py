"""Trials of a cell, made from its detections, and the events of rankings.

Virtual trials: every detection is a trial, and the occurrence it is mapped to, if any, makes it a target
---------------------------------------------------------------------------------------------------------
Independently for every (query, document, channel), a detection d and an occurrence r may be paired iff

    r.start - S <= mid(d) <= r.end + S        (both ends inclusive, S the tolerance, in whole ticks, doubled)

and pairs are one to one. Objective "nist", as in KWSEval and STDEval: maximise the sum over pairs of

    3 + 1e-6 sc(d) + 1e-8 tc(r, d)
    sc = (d.score - lo) / max(hi - lo, 1e-5)
    tc = (min(d.end, r.end) - max(d.start, r.start)) / max(r.end - r.start, 1e-5 s)

(a pair counts 1 + 1e-6 sc + 1e-8 tc, leaving both unpaired counts -2), so the number of pairs comes first. lo and hi
are the declared range of the run's scores, or else, by `score_scale`, that of the whole run (STDEval) or of all
evaluated detections of this (query, document, channel) with finite scores (KWSEval). An infinite score lies one range
beyond: sc is 2 or -1. Objective "score": as many pairs as possible, then
the greatest sum of scores, which gives the most hits at every threshold at once. Decisions play no part.

Both addends are rounded to whole multiples of 2^-59, so equal sums are equal in any order of addition. If several
alignments are optimal, detections are visited in the order of mid-point, start, score from the highest (then YES before
NO, then row), each is mapped if it can be, and then each mapped one gets the earliest occurrence that it can get. So
the result does not depend on the order of the rows.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: the tools compute mid(d), r.start - S and r.end + S in seconds and
double precision, so a detection exactly at the edge of the tolerance may fall on either side; STDEval computes r.end as
r.start + r.duration. By default the comparison is exact.

Difference from the official tools: they break ties between alignments in other ways.

The events of rankings
----------------------
An event is the subject of a trial: an occurrence, a (query, segment) or a (query, document). Alignment maps at most one
detection to an occurrence, so the other detections that may be paired with it are false alarms; for a segment or a
document the best detection is the trial. For rankings `Reference.ranking.duplicates` can change this:

- "ignore", for occurrences: a detection that is not mapped but may be paired with an occurrence is no event. (That
  occurrence has another: as many as possible are mapped.)
- "false-positive", for segments and documents: every detection is an event. The best one of a target is the hit.
- "first", for segments and documents: the event is the detection that comes first in the files of the run, whatever its
  score.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from swsdask.kernels.align import Candidates, Occurrences, align, in_time_order, near_occurrences
from swsdask.model.columns import row_changes
from swsdask.model.schemas import INSIDE
from swsdask.model.trials import F64, I8, I32, I64, AlignmentRule, Detections, Reference, ScoreRange, Trials
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.statistics.place_trials import (
    Places,
    best_entries,
    document_places,
    document_trials,
    dropped_outside,
    evaluated_places,
    evaluated_rows,
    groups_of,
    hits,
    of_rows,
    trials_of_highest,
)
from swsdask.statistics.segment_trials import segment_places, segment_trials


def virtual_trials(
    detections: Detections, reference: Reference, scores: ScoreRange, *, aligned: bool, source: str
) -> Trials:
    """Return every evaluated detection as a trial, in the order of the rows; hits are those mapped to an occurrence."""
    evaluated = evaluated_rows(detections, reference, source)
    rows = None if evaluated is None else evaluated.rows
    hit, occurrence = _mapped(detections, rows, reference, scores) if aligned else (None, None)
    group = groups_of(detections.document, slice(None) if rows is None else rows, reference)
    if group is not None and reference.group_of_occurrence is not None:
        group[hit] = reference.group_of_occurrence[occurrence]
    decision = detections.decision if aligned else None
    return Trials(
        query=of_rows(detections.query, evaluated),
        score=of_rows(detections.score, evaluated),
        decision=None if decision is None else of_rows(decision, evaluated),
        group=group,
        row=rows,
        hit=hit,
        occurrence=occurrence,
        dropped=dropped_outside(evaluated),
        detections=detections,
    )


class _OccurrenceGroups(NamedTuple):
    """The occurrences by group: a (query, document, channel) with occurrences."""

    of_query: I64
    document: I32
    channel: I8
    occurrence: I64
    reach: F64
    occurrences: Occurrences


def _in_seconds(reference: Reference) -> bool:
    """Return whether mid-points are compared as in NIST's tools."""
    return reference.rule.arithmetic != "exact"


def _edges(start: I64, end: I64, rule: AlignmentRule) -> tuple[F64, F64]:
    """Starts minus and ends plus the tolerance, from times in ticks, in the unit of `kernels.align.mid_point`."""
    unit = 0.5 if rule.arithmetic == "exact" else TICKS_PER_SECOND
    begins: F64 = start / unit
    ends: F64 = begins + (end - start) / unit if rule.arithmetic == "stdeval" else end / unit
    return begins - rule.tolerance / unit, ends + rule.tolerance / unit


@lru_cache(maxsize=2)
def _groups(reference: Reference) -> _OccurrenceGroups:
    query, document, channel = reference.query, reference.document, reference.channel
    start, end = reference.start.astype(np.int64), reference.end.astype(np.int64)
    begins = np.flatnonzero(row_changes(query, document, channel))
    occurrence = np.append(begins, len(query))
    opens, closes = _edges(start, end, reference.rule)
    closing = np.argsort(closes, kind="stable")
    rank = np.empty_like(closing)
    rank[closing] = np.arange(len(closing))
    above_others = np.repeat(np.arange(len(begins)), np.diff(occurrence)) * len(closing)
    latest = closing[np.maximum.accumulate(rank + above_others) - above_others]
    return _OccurrenceGroups(
        of_query=np.searchsorted(query[begins], np.arange(reference.n_queries + 1)),
        document=document[begins],
        channel=channel[begins],
        occurrence=occurrence,
        reach=closes[latest],
        occurrences=Occurrences(opens=opens, closes=closes, start=start, end=end),
    )


def rows_near_occurrences(detections: Detections, rows: I64 | None, reference: Reference) -> I64:
    """Return the evaluated rows (None: all) that may be paired with an occurrence, ascending int64."""
    return _near(detections, rows, reference)[0]


def _near(detections: Detections, rows: I64 | None, reference: Reference) -> tuple[I64, I32, F64, F64]:
    """Apply `near_occurrences` to the evaluated rows."""
    d = detections
    if d.document is None or d.channel is None or d.start is None or d.duration is None:
        raise ValueError("the columns of documents, channels and times were not read")
    groups = _groups(reference)
    return near_occurrences(
        d.query,
        d.document,
        d.channel,
        d.start,
        d.duration,
        d.score,
        d.inside if rows is not None and d.inside is not None else np.empty(0, np.int8),
        groups.of_query,
        groups.document,
        groups.channel,
        groups.occurrence,
        groups.occurrences.opens,
        groups.reach,
        reference.n_documents,
        _in_seconds(reference),
    )


def _mapped(detections: Detections, rows: I64 | None, reference: Reference, scores: ScoreRange) -> tuple[I64, I32]:
    """Return the trials that are mapped to an occurrence, ascending, and the occurrence of each."""
    d = detections
    groups = _groups(reference)
    near, near_group, lowest, highest = _near(d, rows, reference)
    assert d.start is not None
    assert d.duration is not None
    whole_range = scores.declared or (scores.run if reference.rule.score_scale == "run" else None)
    if whole_range is not None:
        lowest[:], highest[:] = whole_range
    decision = np.zeros(len(d), np.int8) if d.decision is None else d.decision
    # A cell concerns only a few neighbouring groups of the evaluation.
    first, last = (int(near_group.min()), int(near_group.max()) + 1) if len(near) else (0, 0)
    begins = groups.occurrence[first : last + 1]
    occurrences, within = groups.occurrences, slice(begins[0], begins[-1])
    of_group, order, middle = in_time_order(
        near, near_group - np.int32(first), last - first, d.start, d.duration, d.score, decision, _in_seconds(reference)
    )
    start = d.start[order].astype(np.int64)
    mapped = align(
        Candidates(middle, start, start + d.duration[order], d.score[order]),
        of_group,
        Occurrences(
            occurrences.opens[within], occurrences.closes[within], occurrences.start[within], occurrences.end[within]
        ),
        begins - begins[0],
        lowest[first:last],
        highest[first:last],
        reference.rule.objective == "score",
    )
    found = np.flatnonzero(mapped >= 0)
    row = order[mapped[found]]
    by_row = np.argsort(row)
    hit = row[by_row] if rows is None else np.searchsorted(rows, row[by_row])
    return hit, (begins[0] + found[by_row]).astype(np.int32)


def trial_columns(rule: AlignmentRule, n_groups: int, aligned: bool) -> tuple[str, ...]:
    """Return the columns of detections that `make_trials` needs, in the order of the table."""
    needed = {"query", "score"}
    if rule.outside != "false_alarm":
        needed.add("inside")
    if rule.trials == "document" or n_groups > 1:
        needed.add("document")
    if rule.trials == "segment" or aligned:
        needed |= {"document", "channel", "start", "duration"}
    if aligned:
        needed.add("decision")
    order = ("query", "document", "channel", "start", "duration", "score", "decision", "inside")
    return tuple(name for name in order if name in needed)


def make_trials(
    detections: Detections, reference: Reference, scores: ScoreRange, *, aligned: bool, source: str = "detections"
) -> Trials:
    """Return the trials of one system in one cell.

    `detections` has at least the columns that `trial_columns` names. Unaligned trials are the same in the same order,
    without decisions and outcomes; they do not exist if the groups of trials depend on the alignment. Scores of trials
    are never -0.0; those of `Trials.detections` may be, if the order of files counts. `scores` is the range of scores
    of the whole run, `source` the origin of the rows. Raises `InputError` for detections outside the evaluated excerpts
    if the rule is to refuse them.
    """
    if reference.rule.arithmetic != "exact" and detections.inside is not None:
        inside = np.isin(detections.inside, INSIDE[reference.rule.arithmetic])
        detections = replace(detections, inside=inside.astype(np.int8))
    aligned = aligned or reference.groups_by_alignment
    if detections.position is not None:
        plain = replace(detections, score=detections.score + 0.0)
        trials = _trials(plain, reference, scores, aligned=aligned, source=source)
        return replace(trials, detections=detections) if reference.file_order else trials
    return _trials(detections, reference, scores, aligned=aligned, source=source)


def _trials(detections: Detections, reference: Reference, scores: ScoreRange, *, aligned: bool, source: str) -> Trials:
    match reference.rule.trials:
        case "virtual":
            return virtual_trials(detections, reference, scores, aligned=aligned, source=source)
        case "segment":
            return segment_trials(detections, reference, aligned=aligned, source=source)
        case "document":
            return document_trials(detections, reference, aligned=aligned, source=source)


def ranked_events(trials: Trials, reference: Reference) -> tuple[Trials, int]:
    """Return the events of a cell's aligned trials, as trials; and the number of further detections of these events.

    The rule leaves out further detections, or makes them false alarms. The columns that `trials` was made of, and
    `position` for "first", must have been read.
    """
    match reference.ranking.duplicates:
        case None:
            return trials, 0
        case "ignore":
            return _without_further(trials, reference)
        case "false-positive":
            return _with_further(trials, reference)
        case "first":
            return _first(trials, reference)


def judged_events(trials: Trials, reference: Reference) -> tuple[Trials, I64, I64]:
    """The events of a cell's aligned document trials, the rows of those that are judged, ascending, and their grades.

    If there are several detections of a judged document, the judged event is the one that would be the hit: the best,
    or the first if the rule says so.
    """
    judgments = reference.judgments
    if judgments is None:
        raise ValueError("no documents were judged")
    events, _ = ranked_events(trials, reference)
    single = events if reference.ranking.duplicates == "first" else trials
    detections, _ = _aligned(single)
    if detections.document is None:
        raise ValueError("the column `document` was not read")
    document = detections.document[_rows(single)].astype(np.int64)
    pairs = judgments.query, judgments.document
    found, number = hits(single.query, document, pairs, reference.n_queries, reference.n_documents)
    if events is not single:
        judged = _rows(single)[found]
        order = np.argsort(judged)
        found, number = np.searchsorted(_rows(events), judged[order]), number[order]
    return events, found, judgments.grade[number]


def _without_further(trials: Trials, reference: Reference) -> tuple[Trials, int]:
    detections, hit = _aligned(trials)
    near = rows_near_occurrences(detections, trials.row, reference)
    further = near if trials.row is None else np.searchsorted(trials.row, near)
    further = np.setdiff1d(further, hit, assume_unique=True)
    kept = np.delete(np.arange(len(trials)), further)
    return replace(_of(trials, kept), hit=np.searchsorted(kept, hit), row=_rows(trials)[kept]), len(further)


def _with_further(trials: Trials, reference: Reference) -> tuple[Trials, int]:
    detections, hit = _aligned(trials)
    places, place = _places(detections, reference)
    entries = np.flatnonzero(place >= 0)
    rows = places.rows(entries)
    best = _rows(trials)
    if places.row is not None:
        best = best_entries(detections.score + 0.0, detections, reference, places, place)
    hits = best[hit]
    order = np.argsort(hits)
    made = replace(
        trials,
        query=detections.query[rows],
        score=detections.score[rows],
        decision=None if detections.decision is None else detections.decision[rows],
        group=groups_of(detections.document, rows, reference),
        row=rows,
        hit=np.searchsorted(entries, hits[order]),
        occurrence=None if trials.occurrence is None else trials.occurrence[order],
    )
    return made, len(rows) - len(trials)


def _first(trials: Trials, reference: Reference) -> tuple[Trials, int]:
    detections, _ = _aligned(trials)
    if detections.position is None:
        raise ValueError("positions of detections were not read")
    places, place = _places(detections, reference)
    worth = np.empty(len(detections))
    worth[np.argsort(detections.position)] = -np.arange(float(len(detections)))
    made = trials_of_highest(worth, detections, reference, places, evaluated_rows(detections, reference, "detections"))
    return made, int((place >= 0).sum()) - len(made)


def _aligned(trials: Trials) -> tuple[Detections, I64]:
    if trials.hit is None or trials.detections is None:
        raise ValueError("events need aligned trials")
    return trials.detections, trials.hit


def _places(detections: Detections, reference: Reference) -> tuple[Places, I64]:
    """Return the places of trials, and `Places.of_detection`, -1 where a detection does not count."""
    kind = segment_places if reference.rule.trials == "segment" else document_places
    places = kind(detections, reference, aligned=True)
    return places, evaluated_places(places, evaluated_rows(detections, reference, "detections"))


def _rows(trials: Trials) -> I64:
    return np.arange(len(trials)) if trials.row is None else trials.row


def _of(trials: Trials, kept: I64) -> Trials:
    return replace(
        trials,
        query=trials.query[kept],
        score=trials.score[kept],
        decision=None if trials.decision is None else trials.decision[kept],
        group=None if trials.group is None else trials.group[kept],
    )
