"""Trials of a cell, made from its detections, and the events that rankings are of.

An event is what trials are of: an occurrence, a (query, segment) or a (query, document). Alignment maps at most one
detection to an occurrence, so the other detections that may be paired with it are false alarms; of a segment or a
document the best detection is the trial. For rankings `Reference.ranking.duplicates` can say otherwise:

- "ignore", of occurrences: a detection that is not mapped but may be paired with an occurrence is no event. (That
  occurrence has another: as many as possible are mapped.)
- "false-positive", of segments and documents: every detection is an event. Of a target, the best one is the hit.
- "first", of segments and documents: the event is the detection that the files of the run have first, whatever its
  score.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from swsdask.model.schemas import INSIDE
from swsdask.model.trials import I64, AlignmentRule, Detections, Reference, ScoreRange, Trials
from swsdask.statistics.place_trials import (
    Places,
    document_places,
    document_trials,
    evaluated_places,
    evaluated_rows,
    groups_of,
    hits,
    trials_of_highest,
)
from swsdask.statistics.segment_trials import segment_places, segment_trials
from swsdask.statistics.virtual_trials import rows_near_occurrences, virtual_trials


def trial_columns(rule: AlignmentRule, n_groups: int, aligned: bool) -> tuple[str, ...]:
    """The columns of detections that `make_trials` needs, in the order of the table."""
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
    """The trials of one system in one cell.

    `detections` has at least the columns that `trial_columns` names. Unaligned trials are the same in the same order,
    without decisions and outcomes; there are none where the groups of trials depend on the alignment. Scores of trials
    are never -0.0; those of `Trials.detections` may be, where the order of files counts. `scores` is the range of
    scores of the whole run, `source` where the rows come from. Raises `InputError` for detections outside the evaluated
    excerpts if the rule is to refuse them.
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
    """The events that a cell's aligned trials become, as trials; how many detections are beside one of their event.

    These are the detections that the rule leaves out, or makes false alarms. Columns that `trials` was made of, and
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

    Of several detections of one judged document the one that is judged is the best, or the first where the rule says
    so: that which would be the hit.
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
    rows = np.flatnonzero(_places(detections, reference)[1] >= 0)
    hits = _rows(trials)[hit]
    order = np.argsort(hits)
    made = replace(
        trials,
        query=detections.query[rows],
        score=detections.score[rows],
        decision=None if detections.decision is None else detections.decision[rows],
        group=groups_of(detections.document, rows, reference),
        row=rows,
        hit=np.searchsorted(rows, hits[order]),
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
    """The places of trials, and that of every detection, -1 where it does not count."""
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
