"""From detections to trials, of the three kinds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from swsdask.alignment.document import document_trials
from swsdask.alignment.segment import segment_trials
from swsdask.alignment.virtual import virtual_trials
from swsdask.model.trials import AlignmentRule, Detections, Reference, ScoreRange, Trials


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
    without decisions and outcomes. `scores` is the range of scores of the whole run, `source` where the rows come from.
    Raises `InputError` for detections outside the evaluated excerpts if the rule is to refuse them.
    """
    if reference.rule.doubles and detections.inside is not None:
        detections = replace(detections, inside=(detections.inside == 1).astype(np.int8))
    match reference.rule.trials:
        case "virtual":
            return virtual_trials(detections, reference, scores, aligned=aligned, source=source)
        case "segment":
            return segment_trials(detections, reference, aligned=aligned, source=source)
        case "document":
            return document_trials(detections, reference, aligned=aligned, source=source)
