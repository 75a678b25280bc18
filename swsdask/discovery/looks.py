"""Exemplars and histograms of a system: illustrations for the report, not scores.

Exemplars are the classes with the lowest and the highest mean normalised edit distance between members (Levenshtein
distance of phones over the length of the longer transcription; 0 for two empty ones). Of a class with more than
`MOST_MEMBERS` members that many, evenly spaced in corpus order, are compared. Overlapping pairs count, and folds are
ignored. Classes of one member have no pairs and are left out. Of classes with equal distances larger ones come first,
then those that come first in the file.

Histograms are rows of curves. "class_size": y classes have x members (with duplicates); empty classes are left out.
"fragment_length": y distinct fragments have x phones. Both count everything that was found, regardless of folds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from math import lcm
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from swsdask.kernels.edit_distance import edit_distances
from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.results import CURVES
from swsdask.model.trials import F64, I64

SHOWN = 10
"""The number of classes of each kind that are kept."""

MOST_MEMBERS = 64

MOST_TRANSCRIPTIONS = 8
"""The number of transcriptions of a class that are reported."""

_PAIRS_PER_CELL = 1 << 20
_UNIT = lcm(*range(1, 31))
"""Distances are integer multiples of 1 / this: exact for transcriptions of up to 30 phones, so that ties are exact."""


class ClassRange(NamedTuple):
    """A cell: the classes low:high."""

    low: int
    high: int


class Exemplar(NamedTuple):
    """A class, by its number in `Discovered.classes`, and the mean distance within it."""

    distance: float
    members: int
    cluster: int


@dataclass(frozen=True)
class Exemplars:
    """The `SHOWN` best and worst classes, best or worst first."""

    best: tuple[Exemplar, ...]
    worst: tuple[Exemplar, ...]

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[ClassRange]:
        """Ranges that partition the classes, with about `work` pairs or one class each."""
        taken = np.minimum(np.bincount(discovered.member_cluster, minlength=len(discovered.classes)), MOST_MEMBERS)
        before = np.concatenate(([0], np.cumsum(taken * (taken - 1) // 2)))
        low = 0
        while low < len(taken):
            high = int(np.searchsorted(before, before[low] + min(work, _PAIRS_PER_CELL), side="right")) - 1
            yield ClassRange(low, max(low + 1, high))
            low = max(low + 1, high)
        if not len(taken):
            yield ClassRange(0, 0)

    @classmethod
    def from_cell(cls, cell: ClassRange, corpus: Corpus, discovered: Discovered) -> Self:
        """The best and the worst of a range of classes."""
        low, high = np.searchsorted(discovered.member_cluster, cell).tolist()
        member = discovered.member_fragment[low:high]
        sizes = np.bincount(discovered.member_cluster[low:high] - cell.low, minlength=cell.high - cell.low)
        means = _mean_distances(member, sizes, corpus, discovered)
        found = [
            Exemplar(float(means[place]), int(sizes[place]), cell.low + place)
            for place in np.flatnonzero(sizes > 1).tolist()
        ]
        return cls(_best(found), _worst(found))

    def merge(self, other: Self) -> Self:
        """The best and the worst of both parts."""
        return type(self)(_best([*self.best, *other.best]), _worst([*self.worst, *other.worst]))

    def report(self, corpus: Corpus, discovered: Discovered) -> dict[str, list[dict[str, object]]]:
        """The classes with their most frequent transcriptions, for the manifest."""
        return {
            "best": [_report(each, corpus, discovered) for each in self.best],
            "worst": [_report(each, corpus, discovered) for each in self.worst],
        }


def _best(found: list[Exemplar]) -> tuple[Exemplar, ...]:
    return tuple(nsmallest(SHOWN, found, key=lambda each: (each.distance, -each.members, each.cluster)))


def _worst(found: list[Exemplar]) -> tuple[Exemplar, ...]:
    return tuple(nsmallest(SHOWN, found, key=lambda each: (-each.distance, -each.members, each.cluster)))


def _mean_distances(member: I64, sizes: I64, corpus: Corpus, discovered: Discovered) -> F64:
    """The mean distance within each class, float64 [n_classes]; NaN without pairs. `member` is sorted by class."""
    begins = np.cumsum(sizes) - sizes
    taken = np.minimum(sizes, MOST_MEMBERS)
    place = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
    chosen = member[
        np.repeat(begins, taken) + place * np.repeat(sizes, taken) // np.maximum(np.repeat(taken, taken), 1)
    ]
    others = np.repeat(taken, taken) - 1 - place
    left = np.repeat(np.arange(len(chosen)), others)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(others) - others, others)
    first, last = discovered.first[chosen], discovered.last[chosen]
    label, n_labels = corpus.phones.label, len(corpus.phones.labels)
    distance = edit_distances(label, n_labels, first[left], last[left], first[right], last[right]).astype(np.int64)
    longer = np.maximum(np.maximum((last - first)[left], (last - first)[right]), 1)
    sums = np.zeros(len(sizes), np.int64)
    np.add.at(sums, np.repeat(np.repeat(np.arange(len(sizes)), taken), others), distance * _UNIT // longer)
    pairs = taken * (taken - 1) // 2
    return np.where(pairs == 0, np.nan, sums / (np.maximum(pairs, 1) * _UNIT))


def _report(each: Exemplar, corpus: Corpus, discovered: Discovered) -> dict[str, object]:
    low, high = np.searchsorted(discovered.member_cluster, (each.cluster, each.cluster + 1)).tolist()
    fragments = discovered.member_fragment[low:high]
    types, example, counts = np.unique(discovered.type[fragments], return_index=True, return_counts=True)
    spelled = Counter(
        {
            _transcription(int(fragments[row]), corpus, discovered): int(n)
            for row, n in zip(example, counts, strict=True)
        }
    )
    common = sorted(spelled.items(), key=lambda item: (-item[1], item[0]))[:MOST_TRANSCRIPTIONS]
    return {
        "class": discovered.classes[each.cluster],
        "members": each.members,
        "distance": each.distance,
        "transcriptions": len(types),
        "common": [{"phones": phones, "members": members} for phones, members in common],
    }


def _transcription(fragment: int, corpus: Corpus, discovered: Discovered) -> str:
    labels = corpus.phones.label[discovered.first[fragment] : discovered.last[fragment]]
    return " ".join(corpus.phones.labels[label] for label in labels.tolist())


def histograms(discovered: Discovered) -> pa.Table:
    """Rows of `model.results.CURVES` in the condition "all", by ascending x, without those whose y is 0."""
    of_members = np.bincount(discovered.member_cluster, minlength=len(discovered.classes))
    counted = {
        "class_size": of_members[of_members > 0],
        "fragment_length": discovered.last - discovered.first,
    }
    return pa.concat_tables(_rows(discovered.system, curve, each) for curve, each in counted.items())


def _rows(system: str, curve: str, each: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    x, y = np.unique(each, return_counts=True)
    names = [[text] * len(x) for text in (system, "all", curve)]
    return pa.table([*names, np.full(len(x), np.nan), x.astype(np.float64), y.astype(np.float64)], schema=CURVES)
