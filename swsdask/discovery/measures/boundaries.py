"""Boundary precision and recall: how many edges of words were found.

document: |B_disc ∩ B_gold| over |B_disc|, and over |B_gold|, of the measures document of the Zero Resource challenge.
The boundary of an edge (a start or an end of a fragment or word) is the nearest edge of a phone of its file, of two as
near the earlier, if it is less than 30 ms away. An edge without one is a wrong boundary: one by itself (edges at one
time are one), never in both sets; with `boundaries = "together"` all wrong boundaries of a set are one element of it,
the document's index -1, which both sets may have. Starts and ends are not distinguished.

tde2015: the distinct edges (file, time) of fragments that have an edge of a word nearer than 30 ms (in doubles), over
all edges of fragments; and the edges of words that have an edge of a fragment nearer than 30 ms, over all edges of
words. QUIRK: this is not one to one: any number of edges may have the same edge near. QUIRK: edges of fragments are
as clipped to speech; words labelled SIL or SPN have edges.

tdev2: the edges of a fragment are those of its phones: the start of the first, the end of the last. A start is right if
it is the start of a word, exactly, and an end if it is the end of one; the distinct right times over the distinct times
of edges of fragments, and over those of words. QUIRK: a start at the end of a word, with silence behind it, is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from swsdask.discovery.counting.per_fold import (
    Agreement,
    ByFiles,
    FileRange,
    by_fold,
    common,
    distinct,
    rows_of,
    words_of,
)
from swsdask.model.corpus import Corpus, Definition, Discovered
from swsdask.model.trials import F64, I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND

_NEAR_TICKS = 300
_NEAR_SECONDS = 0.03
_TIME_BITS = 32
_TIME = (1 << _TIME_BITS) - 1
_NOWHERE = np.array([-1 << _TIME_BITS])

Edges = tuple[I64, I64]
"""Moments at which something starts, and ends."""

Numbers = tuple[int, int, int, int, int, int]
"""Those of a `BoundaryAgreement`."""


@dataclass(frozen=True, eq=False)
class BoundaryAgreement(ByFiles, Agreement):
    """Boundaries of fragments and of words; `wrong` and `gold_wrong` are the wrong ones of each, counted singly."""

    wrong: I64
    gold_wrong: I64

    def read(self, corpus: Corpus) -> Agreement:
        """The boundaries with the wrong ones, singly or together."""
        if corpus.readings.boundaries == "singly":
            return Agreement(self.found + self.wrong, self.right, self.gold + self.gold_wrong, self.recalled)
        wrong, gold_wrong = (np.minimum(count, 1) for count in (self.wrong, self.gold_wrong))
        both = wrong * gold_wrong
        return Agreement(self.found + wrong, self.right + both, self.gold + gold_wrong, self.recalled + both)

    @classmethod
    def from_cell(cls, cell: FileRange, corpus: Corpus, discovered: Discovered) -> Self:
        """The boundaries in a range of files."""
        counts = cls.nothing(corpus)
        rows = rows_of(cell, discovered.file)
        starts, ends = _edges_of_fragments(rows, corpus, discovered)
        phones = _edges_of_phones(cell, corpus)
        for fold_set in range(len(corpus.folds)):
            words = words_of(cell, corpus, fold_set)
            word_starts, word_ends = _moment(words.file, words.start), _moment(words.file, words.end)
            found, gold = dict(by_fold(discovered.fold[fold_set, rows])), dict(by_fold(words.fold))
            nothing = np.empty(0, np.int64)
            for fold in found.keys() | gold.keys():
                own, own_gold = found.get(fold, nothing), gold.get(fold, nothing)
                numbers = _COMPARE[corpus.definition](
                    (starts[own], ends[own]), (word_starts[own_gold], word_ends[own_gold]), phones
                )
                for field, number in zip(fields(counts), numbers, strict=True):
                    getattr(counts, field.name)[fold_set, fold] = number
        return counts


class Boundary:
    """boundary_precision, boundary_recall."""

    names: ClassVar[tuple[str, ...]] = ("boundary_precision", "boundary_recall")
    statistic: ClassVar[type[BoundaryAgreement]] = BoundaryAgreement

    def values(self, statistic: BoundaryAgreement, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """NaN where there are no fragments, or no words."""
        agreement = statistic.read(corpus)
        return {
            "boundary_precision": agreement.precision(corpus, fold_set),
            "boundary_recall": agreement.recall(corpus, fold_set),
        }


def _moment(file: I32, time: I32) -> I64:
    """File and time as one number. Those of one file differ as their times do, those of two files by far more."""
    return (file.astype(np.int64) << _TIME_BITS) | time


def _edges_of_fragments(rows: slice, corpus: Corpus, discovered: Discovered) -> Edges:
    file = discovered.file[rows]
    if corpus.definition != "tdev2":
        return _moment(file, discovered.start[rows]), _moment(file, discovered.end[rows])
    first, last = discovered.first[rows], discovered.last[rows] - 1
    return _moment(file, corpus.phones.start[first]), _moment(file, corpus.phones.end[last])


def _edges_of_phones(files: FileRange, corpus: Corpus) -> I64:
    rows = rows_of(files, corpus.phones.file)
    file, start, end = (column[rows] for column in (corpus.phones.file, corpus.phones.start, corpus.phones.end))
    return distinct(_moment(file, start), _moment(file, end))


def _compare_nearest(found: Edges, gold: Edges, phones: I64) -> Numbers:
    boundaries, wrong = _nearest(distinct(*found), phones)
    gold_boundaries, gold_wrong = _nearest(distinct(*gold), phones)
    both = len(common(boundaries, gold_boundaries))
    return len(boundaries), both, len(gold_boundaries), both, wrong, gold_wrong


def _nearest(edges: I64, phones: I64) -> tuple[I64, int]:
    """The distinct edges of phones nearest to some edges, and how many of these have none nearer than 30 ms."""
    before, after = _neighbours(edges, phones)
    nearest = np.where(np.abs(edges - before) <= np.abs(after - edges), before, after)
    near = np.abs(edges - nearest) < _NEAR_TICKS
    return distinct(nearest[near]), int(np.count_nonzero(~near))


def _compare_within(found: Edges, gold: Edges, phones: I64) -> Numbers:  # noqa: ARG001
    edges, gold_edges = distinct(*found), distinct(*gold)
    right = int(np.count_nonzero(_are_near(edges, gold_edges)))
    recalled = int(np.count_nonzero(_are_near(gold_edges, edges)))
    return len(edges), right, len(gold_edges), recalled, 0, 0


def _are_near(edges: I64, others: I64) -> Bool:
    """Whether each edge has one of the others nearer than 30 ms."""
    near = np.zeros(len(edges), np.bool_)
    for neighbour in _neighbours(edges, others):
        same_file = edges >> _TIME_BITS == neighbour >> _TIME_BITS
        near |= same_file & (np.abs(_seconds(neighbour) - _seconds(edges)) < _NEAR_SECONDS)
    return near


def _compare_exactly(found: Edges, gold: Edges, phones: I64) -> Numbers:  # noqa: ARG001
    right = len(distinct(common(distinct(found[0]), distinct(gold[0])), common(distinct(found[1]), distinct(gold[1]))))
    return len(distinct(*found)), right, len(distinct(*gold)), right, 0, 0


def _neighbours(edges: I64, others: I64) -> tuple[I64, I64]:
    """Return, of the ascending others, the last before each edge and the first that is not; at the ends one twice."""
    if not len(others):
        return _NOWHERE.repeat(len(edges)), _NOWHERE.repeat(len(edges))
    behind = np.searchsorted(others, edges)
    return others[np.maximum(behind - 1, 0)], others[np.minimum(behind, len(others) - 1)]


def _seconds(moment: I64) -> F64:
    return (moment & _TIME) / TICKS_PER_SECOND


_COMPARE: dict[Definition, Callable[[Edges, Edges, I64], Numbers]] = {
    "document": _compare_nearest,
    "tde2015": _compare_within,
    "tdev2": _compare_exactly,
}
"""How edges of fragments and of words become numbers; the third are the edges of phones."""
