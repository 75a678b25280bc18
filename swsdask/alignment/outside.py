"""What becomes of detections that do not lie inside an evaluated excerpt.

The rule `outside` says it: "drop" makes no trials of them and counts them (KWSEval drops them silently), "false_alarm"
leaves them ordinary detections, aligned like the rest (STDEval without its -E option: false alarms where they match
nothing), "error" refuses them.

QUIRK, under `compat = "kwseval"`: a detection that ends exactly at the end of an excerpt is outside if begin + duration
in double precision lies behind it (`alignment.doubles`).
"""

from __future__ import annotations

import numpy as np

from swsdask.errors import SHOWN, InputError, Problem
from swsdask.model.ticks import seconds
from swsdask.model.trials import I64, Detections, Reference

OUTSIDE = "outside"
"""The reason under which `Trials.dropped` counts detections outside the evaluated excerpts."""


def evaluated_rows(detections: Detections, reference: Reference, source: str) -> I64 | None:
    """The rows that are evaluated, ascending int64; None: all of them.

    Raises `InputError` if the rule is "error" and a detection lies outside; `source` says where the rows come from.
    """
    if reference.rule.outside == "false_alarm":
        return None
    if detections.inside is None:
        raise ValueError("the column `inside` was not read")
    if detections.inside.all():
        return None
    if reference.rule.outside == "error":
        outside = np.flatnonzero(detections.inside == 0)
        problems = (_problem(detections, reference, source, row) for row in outside[:SHOWN].tolist())
        raise InputError(*problems, total=len(outside))
    return np.flatnonzero(detections.inside != 0)


def dropped_outside(detections: Detections, rows: I64 | None) -> dict[str, int]:
    """The count for `Trials.dropped`; no entry without a row that was dropped."""
    return {} if rows is None else {OUTSIDE: len(detections) - len(rows)}


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
