"""Virtual trials: every detection is a trial, and the occurrence it is mapped to, if any, makes it a target.

Independently for every (query, document, channel), a detection d and an occurrence r may be paired iff

    r.start - S <= mid(d) <= r.end + S        (both ends inclusive, S the tolerance, in whole ticks, doubled)

and pairs are one to one. Objective "nist", as KWSEval and STDEval have it: maximise the sum over pairs of

    3 + 1e-6 sc(d) + 1e-8 tc(r, d)
    sc = (d.score - lo) / max(hi - lo, 1e-5)
    tc = (min(d.end, r.end) - max(d.start, r.start)) / max(r.end - r.start, 1e-5 s)

(a pair counts 1 + 1e-6 sc + 1e-8 tc, where leaving both alone counts -2), so the number of pairs comes first. lo and hi
are the declared range of the run's scores, or else, by `score_scale`, that of the whole run (STDEval) or of all
evaluated detections of this (query, document, channel) (KWSEval). Objective "score": as many pairs as possible, then
the greatest sum of scores, which gives the most hits at every threshold at once. Decisions play no part.

Weights are whole multiples of 2^-59, so equal sums are equal whatever the order of adding. Where several alignments are
optimal, detections are walked in the order of mid-point, start, score from the highest (then YES before NO, then row),
each is mapped if it can be, and then each mapped one gets the earliest occurrence that it can get. So the order of the
rows never shows.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: the tools compute mid(d), r.start - S and r.end + S in seconds and
double precision, so a detection exactly at the edge of the tolerance may fall on either side. By default the
comparison is exact.

Difference from the official tools: they settle equal alignments in orders of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from swsdask.kernels.align import Candidates, Occurrences, align, in_time_order, near_occurrences
from swsdask.model.trials import F64, I8, I32, I64, Detections, Reference, ScoreRange, Trials
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.statistics.place_trials import dropped_outside, evaluated_rows, groups_of


def virtual_trials(
    detections: Detections, reference: Reference, scores: ScoreRange, *, aligned: bool, source: str
) -> Trials:
    """Every evaluated detection as a trial, in the order of the rows; hits are those mapped to an occurrence."""
    rows = evaluated_rows(detections, reference, source)
    hit, occurrence = _mapped(detections, rows, reference, scores) if aligned else (None, None)
    kept = slice(None) if rows is None else rows
    group = groups_of(detections.document, kept, reference)
    if group is not None and reference.group_of_occurrence is not None:
        group[hit] = reference.group_of_occurrence[occurrence]
    return Trials(
        query=detections.query[kept],
        score=detections.score[kept],
        decision=detections.decision[kept] if aligned and detections.decision is not None else None,
        group=group,
        row=rows,
        hit=hit,
        occurrence=occurrence,
        dropped=dropped_outside(detections, rows),
        detections=detections,
    )


class _Groups(NamedTuple):
    """The occurrences by group: a (query, document, channel) with occurrences."""

    of_query: I64
    document: I32
    channel: I8
    occurrence: I64
    reach: F64
    occurrences: Occurrences


def _in_seconds(reference: Reference) -> bool:
    """Whether mid-points are compared as NIST's tools do."""
    return reference.rule.arithmetic != "exact"


def _moved(time: I64, by: int, in_seconds: bool) -> F64:
    """Times in ticks moved by some ticks, in the unit of `kernels.align.mid_point`."""
    if in_seconds:
        return time / TICKS_PER_SECOND + by / TICKS_PER_SECOND
    return (2 * (time + by)).astype(np.float64)


@lru_cache(maxsize=2)
def _groups(reference: Reference) -> _Groups:
    query, document, channel = reference.query, reference.document, reference.channel
    start, end = reference.start.astype(np.int64), reference.end.astype(np.int64)
    changes = (query[1:] != query[:-1]) | (document[1:] != document[:-1]) | (channel[1:] != channel[:-1])
    begins = np.flatnonzero(np.append(len(query) > 0, changes))
    occurrence = np.append(begins, len(query))
    above_others = np.repeat(np.arange(len(begins)), np.diff(occurrence)) * 2**32
    latest = np.maximum.accumulate(end + above_others) - above_others
    tolerance, in_seconds = reference.rule.tolerance, _in_seconds(reference)
    return _Groups(
        of_query=np.searchsorted(query[begins], np.arange(reference.n_queries + 1)),
        document=document[begins],
        channel=channel[begins],
        occurrence=occurrence,
        reach=_moved(latest, tolerance, in_seconds),
        occurrences=Occurrences(
            opens=_moved(start, -tolerance, in_seconds),
            closes=_moved(end, tolerance, in_seconds),
            start=start,
            end=end,
        ),
    )


def rows_near_occurrences(detections: Detections, rows: I64 | None, reference: Reference) -> I64:
    """The evaluated rows (None: all) that may be paired with an occurrence, ascending int64."""
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
    """The trials that are mapped to an occurrence, ascending, and the occurrence of each."""
    d = detections
    groups = _groups(reference)
    near, near_group, lowest, highest = _near(d, rows, reference)
    assert d.start is not None
    assert d.duration is not None
    whole_range = scores.declared or (scores.run if reference.rule.score_scale == "run" else None)
    if whole_range is not None:
        lowest[:], highest[:] = whole_range
    decision = np.zeros(len(d), np.int8) if d.decision is None else d.decision
    # Of an evaluation's groups a cell has to do with a few neighbours.
    first, last = (int(near_group.min()), int(near_group.max()) + 1) if len(near) else (0, 0)
    begins = groups.occurrence[first : last + 1]
    of, within = groups.occurrences, slice(begins[0], begins[-1])
    of_group, order, middle = in_time_order(
        near, near_group - np.int32(first), last - first, d.start, d.duration, d.score, decision, _in_seconds(reference)
    )
    start = d.start[order].astype(np.int64)
    mapped = align(
        Candidates(middle, start, start + d.duration[order], d.score[order]),
        of_group,
        Occurrences(of.opens[within], of.closes[within], of.start[within], of.end[within]),
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
