"""Notes on the numbers of term discovery."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swsdask.discovery.placing import folds_of
from swsdask.model.corpus import NO_FOLD, Corpus, Coverage, Definition, Discovered, OverlappingPairs, WrongBoundaries
from swsdask.model.errors import counted
from swsdask.model.trials import I16

DEFINITIONS: dict[Definition, str] = {
    "document": "Measures follow the Zero Resource challenge's measures document, with these readings:",
    "tde2015": "Measures follow tde, the challenge's tool of 2015, with its quirks.",
    "tdev2": "Measures follow tdev2, the challenge's tool of 2017 and 2020, with its quirks; there are no folds.",
}

_COVERAGE: dict[Coverage, str] = {
    "intersected": "coverage counts phones that are covered and gold",
    "union": "coverage counts phones that are covered, gold or not",
}
_BOUNDARIES: dict[WrongBoundaries, str] = {
    "singly": "each wrong boundary counts",
    "together": "all wrong boundaries count as one",
}
_PAIRS: dict[OverlappingPairs, str] = {
    "left_out": "overlapping pairs are left out of P_clus",
    "kept": "overlapping pairs are kept in P_clus",
}


def meaning(corpus: Corpus) -> str:
    """The definition of the measures, and how the measures document is read where it is ambiguous."""
    definition = DEFINITIONS[corpus.definition]
    if corpus.definition != "document":
        return definition
    read = corpus.readings
    shortest = f"matching pairs strings of {counted(read.min_phones, 'phones')} or more"
    ways = (_COVERAGE[read.coverage], shortest, _BOUNDARIES[read.boundaries], _PAIRS[read.overlapping_pairs])
    return f"{definition} {'; '.join(ways)}."


def word_notes(corpus: Corpus) -> Iterator[str]:
    """The number of words that are in no fold."""
    words = corpus.words
    for folds, fold in zip(corpus.folds, folds_of(words.file, words.start, words.end, corpus.folds), strict=True):
        yield from _outside(folds.condition, fold, "words")


def fragment_notes(discovered: Discovered, corpus: Corpus) -> Iterator[str]:
    """The numbers of fragments that were dropped, clipped, without phones or in no fold."""
    for reason, count in discovered.dropped.items():
        yield f"{discovered.system}: {counted(count, 'fragments')} dropped: {reason}."
    if discovered.clipped:
        yield f"{discovered.system}: {counted(discovered.clipped, 'fragments')} clipped to the stretches of speech."
    silent = int(np.count_nonzero(discovered.first == discovered.last))
    if silent:
        yield f"{discovered.system}: {counted(silent, 'fragments')} without phones."
    for folds, fold in zip(corpus.folds, discovered.fold, strict=True):
        yield from _outside(f"{discovered.system}: {folds.condition}", fold, "fragments")


def _outside(where: str, fold: I16, things: str) -> Iterator[str]:
    outside = int(np.count_nonzero(fold == NO_FOLD))
    if outside:
        yield f"{where}: {outside:,} of {counted(len(fold), things)} left out: not inside one stretch of a fold."
