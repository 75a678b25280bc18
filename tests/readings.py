"""Every way to read the measures document, for property tests of term discovery."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import strategies as st

from swsdask.model.discovery import DEFAULT_READINGS, Corpus, Coverage, OverlappingPairs, Readings, WrongBoundaries

LITERAL = Readings(coverage="union", min_phones=1, boundaries="together", overlapping_pairs="kept")
"""The document as it stands."""

READINGS = st.just(DEFAULT_READINGS) | st.builds(
    Readings,
    coverage=st.sampled_from(get_args(Coverage)),
    min_phones=st.integers(1, 3),
    boundaries=st.sampled_from(get_args(WrongBoundaries)),
    overlapping_pairs=st.sampled_from(get_args(OverlappingPairs)),
)


def read(corpus: Corpus, readings: Readings) -> Corpus:
    """A corpus by the readings, if its definition has a choice."""
    return replace(corpus, readings=readings) if corpus.definition == "document" else corpus
