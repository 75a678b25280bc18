"""Small evaluations for tests of alignment, from rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from swsdask.model.trials import AlignmentRule, Detections, Reference, ScoreRange, Segments, Trials
from swsdask.statistics.alignment import make_trials

Row = tuple[int, int, int, int, int, float, int, int]
"""A detection: query, document, channel, start, duration, score, decision, inside."""

DTYPES = (np.int32, np.int32, np.int8, np.int32, np.int32, np.float64, np.int8, np.int8)
NAMES = ("query", "document", "channel", "start", "duration", "score", "decision", "inside")


def detections(rows: Sequence[Row], names: Iterable[str] = NAMES) -> Detections:
    columns = {
        name: np.array([row[i] for row in rows], dtype)
        for i, (name, dtype) in enumerate(zip(NAMES, DTYPES, strict=True))
        if name in names
    }
    return Detections(**columns)


def reference(
    occurrences: Iterable[tuple[int, ...]],
    n_queries: int = 3,
    n_documents: int = 3,
    groups: Sequence[int] | None = None,
    segments: Segments | None = None,
    **rule: Any,
) -> Reference:
    """Occurrences are (query, document, channel, start, end[, first word's end, last word's start]); any order."""
    whole = sorted((*row, row[4], row[3])[:7] if len(row) == 5 else row for row in occurrences)
    columns = np.array(whole, np.int32).reshape(-1, 7).T.copy()
    settings: dict[str, Any] = {
        "trials": "virtual",
        "tolerance": 5,
        "objective": "nist",
        "score_scale": "group",
        "outside": "drop",
    }
    of_document = np.array([0] * (n_documents + 1) if groups is None else groups, np.int16)
    n_groups = int(of_document.max()) + 1
    return Reference(
        rule=AlignmentRule(**(settings | rule)),
        query_ids=tuple(f"q{i}" for i in range(n_queries)),
        document_ids=tuple(f"d{i}" for i in range(n_documents)),
        query=columns[0],
        document=columns[1],
        channel=columns[2].astype(np.int8),
        start=columns[3],
        end=columns[4],
        first_word_end=columns[5],
        last_word_start=columns[6],
        segments=segments,
        group_of_document=of_document,
        targets=np.zeros((n_queries, n_groups), np.int64),
        class_of=np.zeros((n_queries, n_groups), np.int32),
        n_classes=1,
        conditions=(),
    )


def score_range(rows: Sequence[Row], declared: tuple[float, float] | None = None) -> ScoreRange:
    scores = [row[5] for row in rows] or [0.0]
    return ScoreRange(declared=declared, run=(min(scores), max(scores)))


def trials(rows: Sequence[Row], evaluation: Reference, declared: tuple[float, float] | None = None) -> Trials:
    return make_trials(detections(rows), evaluation, score_range(rows, declared), aligned=True)


def pairs(made: Trials) -> list[tuple[int, int]]:
    """(row, occurrence) of every hit, by row."""
    assert made.hit is not None
    assert made.occurrence is not None
    rows = made.hit if made.row is None else made.row[made.hit]
    return list(zip(rows.tolist(), made.occurrence.tolist(), strict=True))
