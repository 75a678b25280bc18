"""The targets that trials are mapped to, numbered as `Trials.occurrence` does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.alignment.document import document_targets
from swsdask.alignment.segment import segment_targets
from swsdask.model.trials import I64, Reference

ABSENT = int(np.iinfo(np.int64).min)
"""Where a target has no channel or no times."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Equally long int64 columns; times in ticks."""

    query: I64
    document: I64
    channel: I64
    start: I64
    end: I64


def targets_of(reference: Reference) -> Targets:
    """Occurrences for virtual trials; for the others (query, segment) or (query, document) with an occurrence."""
    if reference.rule.trials == "virtual":
        return _targets(reference.query, reference.document, reference.channel, reference.start, reference.end)
    if reference.rule.trials == "document":
        query, document = document_targets(reference.query, reference.document)
        absent = np.full(len(query), ABSENT)
        return _targets(query, document, absent, absent, absent)
    segments = reference.segments
    if segments is None:
        raise ValueError("segment trials need segments")
    query, segment = segment_targets(
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
    return _targets(query, *(getattr(segments, name)[segment] for name in ("document", "channel", "start", "end")))


def _targets(*columns: np.ndarray[tuple[int], np.dtype[np.integer]]) -> Targets:
    return Targets(*(column.astype(np.int64) for column in columns))
