"""Scores of term discovery: numbers in long form over each set of folds, with their spread, and for every fold.

Systems are scored like those of detections (`scoring.rounds`): there is one round, and a task is a cell of a statistic.

Exemplars and histograms of a system: illustrations for the report, not scores.

Exemplars are the classes with the lowest and the highest mean normalised edit distance between members (Levenshtein
distance of phones over the length of the longer transcription; 0 for two empty ones). Of a larger class,
`MOST_MEMBERS` members, evenly spaced in corpus order, are compared. Overlapping pairs count, and folds are ignored.
Classes of one member have no pairs and are left out. Among classes with equal distances, larger ones come first, then
those that come first in the file.

Histograms are rows of curves. "class_size": y classes have x members (with duplicates); empty classes are left out.
"fragment_length": y distinct fragments have x phones. Both count everything that was found, regardless of folds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from math import lcm
from typing import Generic, NamedTuple, Self

import numpy as np
import pyarrow as pa

from swsdask.discovery.measures import DiscoveryMeasure, DiscoveryStatistic
from swsdask.discovery.measures.parsing import sizes
from swsdask.discovery.placing import COUNT, folds_of, spreads, with_f_scores
from swsdask.execution.executor import Executor
from swsdask.kernels.edit_distance import edit_distances
from swsdask.model.discovery import NO_FOLD, Corpus, Coverage, Definition, Discovered, OverlappingPairs, WrongBoundaries
from swsdask.model.results import CURVES, SCORES, Note
from swsdask.model.trials import F64, I16, I64
from swsdask.model.wording import counted
from swsdask.scoring.rounds import AnySystem, Plan, Shared, Statistics, StatisticType, SystemResults

CLASSES_KEPT = 10
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
    """The `CLASSES_KEPT` best and worst classes, best or worst first."""

    best: tuple[Exemplar, ...]
    worst: tuple[Exemplar, ...]

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[ClassRange]:
        """Yield ranges that partition the classes, with about `work` pairs or one class each."""
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
        """Return the best and the worst of a range of classes."""
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
        """Return the best and the worst of both parts."""
        return type(self)(_best([*self.best, *other.best]), _worst([*self.worst, *other.worst]))

    def report(self, corpus: Corpus, discovered: Discovered) -> dict[str, list[dict[str, object]]]:
        """Return the classes with their most frequent transcriptions, for the manifest."""
        return {
            "best": [_report(each, corpus, discovered) for each in self.best],
            "worst": [_report(each, corpus, discovered) for each in self.worst],
        }


def _best(found: list[Exemplar]) -> tuple[Exemplar, ...]:
    return tuple(nsmallest(CLASSES_KEPT, found, key=lambda each: (each.distance, -each.members, each.cluster)))


def _worst(found: list[Exemplar]) -> tuple[Exemplar, ...]:
    return tuple(nsmallest(CLASSES_KEPT, found, key=lambda each: (-each.distance, -each.members, each.cluster)))


def _mean_distances(member: I64, sizes: I64, corpus: Corpus, discovered: Discovered) -> F64:
    """Return the mean distance within each class, float64 [n_classes]; NaN without pairs.

    `member` is sorted by class.
    """
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
    """Return rows of `model.results.CURVES` in the condition "all", by ascending x; rows with y = 0 are left out."""
    of_members = np.bincount(discovered.member_cluster, minlength=len(discovered.classes))
    counted = {
        "class_size": of_members[of_members > 0],
        "fragment_length": discovered.last - discovered.first,
    }
    return pa.concat_tables(_exemplar_rows(discovered.system, curve, each) for curve, each in counted.items())


def _exemplar_rows(system: str, curve: str, each: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    x, y = np.unique(each, return_counts=True)
    names = [[text] * len(x) for text in (system, "all", curve)]
    return pa.table([*names, np.full(len(x), np.nan), x.astype(np.float64), y.astype(np.float64)], schema=CURVES)


MOST_FRAGMENTS = 4_000_000
"""The number of fragments that fill a group: it bounds the memory."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A system that was read and placed in the corpus: its fragments, its notes, its entry in the manifest."""

    discovered: Discovered
    notes: tuple[Note, ...]
    run: dict[str, object]


def _placed(system: str, shared: Shared) -> Placed:
    """Return the system of a group; `shared` is the corpus, then the systems of the group."""
    found: Placed = next(each for each in shared[1:] if each.discovered.system == system)
    return found


@dataclass(frozen=True)
class FragmentTask:
    """One cell of a statistic of one system.

    `number` counts a statistic's cells from 1, `measures` are those that need the statistic, for error messages.
    """

    system: str
    measures: str
    statistic: type[DiscoveryStatistic]
    number: int
    cell: object
    rows: int = 1

    def count(self, shared: Shared) -> dict[str, Statistics]:
        """Return the statistic of the cell; `shared` is the corpus, then the systems of the group."""
        corpus, discovered = shared[0], _placed(self.system, shared).discovered
        return {self.system: {self.statistic: self.statistic.from_cell(self.cell, corpus, discovered)}}

    def __str__(self) -> str:
        return f"system {self.system}: {self.measures}, cell {self.number} ({self.cell})"


class FragmentSource(Generic[AnySystem]):
    """Systems that tasks read and `place` in a corpus, where they stay: no fragment comes to the client.

    `statistics` names the measures that need each, for error messages; `work` is roughly the number of elementary steps
    per task.
    """

    enough = MOST_FRAGMENTS

    def __init__(
        self,
        corpus: Corpus,
        place: Callable[[AnySystem, Corpus], Placed],
        statistics: Mapping[type[DiscoveryStatistic], str],
        executor: Executor,
        work: int,
    ) -> None:
        self.rounds = (tuple(statistics),)
        self.shared = (executor.share(corpus),)
        self._place = place
        self._statistics = statistics
        self._executor = executor
        self._work = work

    def share(self, group: Sequence[AnySystem]) -> Shared:
        """Return the systems of a group, placed; those of worker processes stay there."""
        (of_corpus,) = self.shared
        return tuple(self._executor.keep(self._place, group, of_corpus, name="place"))

    def plan(
        self,
        group: Sequence[AnySystem],
        shared: Shared,
        statistics: Sequence[StatisticType],
        found: Mapping[str, Statistics],
    ) -> Plan:
        """Return the one round: every cell of every statistic of the systems."""
        systems = [each.system for each in group]
        cut = partial(_cells, statistics=statistics, work=self._work)
        cells = self._executor.map(cut, systems, shared, name="cut")
        tasks = [
            task
            for system, of_system in zip(systems, cells, strict=True)
            for statistic, own in zip(statistics, of_system, strict=True)
            for task in self._tasks(system, statistic, own)
        ]
        return Plan(tasks, len(tasks))

    def _tasks(self, system: str, statistic: StatisticType, cells: Sequence[object]) -> Iterator[FragmentTask]:
        for number, cell in enumerate(cells, 1):
            yield FragmentTask(system, self._statistics[statistic], statistic, number, cell)


def _cells(system: str, shared: Shared, statistics: Sequence[StatisticType], work: int) -> list[list[object]]:
    """Return the cells of each statistic of a system, which are small."""
    discovered = _placed(system, shared).discovered
    return [list(statistic.cells(shared[0], discovered, work)) for statistic in statistics]


class Details(NamedTuple):
    """A system in the manifest: examples of its classes, and its file and counts."""

    classes: dict[str, list[dict[str, object]]]
    run: dict[str, object]


@dataclass(frozen=True, eq=False)
class CountedDiscovery:
    """A system with its merged statistics, the families to compute, and the names of the requested numbers.

    Its statistics include `Exemplars`.
    """

    system: str
    statistics: Statistics
    families: Sequence[DiscoveryMeasure]
    names: Collection[str]
    rows: int = 1

    def __str__(self) -> str:
        return f"system {self.system}"

    def results(self, shared: Shared) -> SystemResults:
        """Compute its results, which observe `Details`; `shared` is the corpus, then the systems of the group."""
        corpus, placed = shared[0], _placed(self.system, shared)
        discovered = placed.discovered
        conditions = numbers(discovered, self.statistics, self.families, corpus, self.names)
        left_out = left_out_notes(conditions) if corpus.definition != "tdev2" else ()
        return SystemResults.of(
            score_table(self.system, conditions),
            histograms(discovered),
            (*placed.notes, *left_out),
            Details(self.statistics[Exemplars].report(corpus, discovered), placed.run),
        )


def needed(families: Iterable[DiscoveryMeasure]) -> dict[type[DiscoveryStatistic], str]:
    """Return every statistic that measures and the report need, with the names of these measures."""
    names: dict[type[DiscoveryStatistic], list[str]] = {}
    for family in families:
        names.setdefault(family.statistic, []).extend(family.names)
    return {**{statistic: ", ".join(those) for statistic, those in names.items()}, Exemplars: "examples of classes"}


@dataclass(frozen=True, eq=False)
class FoldNumbers:
    """The numbers of one system over one set of folds.

    `overall` are the means, spreads and counts of the whole set by name; `by_fold` the numbers of its folds,
    float64 [n_folds]; `left_out` the number of folds that a mean leaves out, if any.
    """

    condition: str
    folds: tuple[str, ...]
    overall: dict[str, float]
    by_fold: dict[str, F64]
    left_out: dict[str, int]


def numbers(
    discovered: Discovered,
    found: Statistics,
    families: Sequence[DiscoveryMeasure],
    corpus: Corpus,
    names: Collection[str],
) -> list[FoldNumbers]:
    """Return the numbers `names` (and the spreads of means), in this order, for each set of folds.

    tdev2 has one fold, the corpus, and therefore no spreads and no numbers of folds.
    """
    made = []
    for place, folds in enumerate(corpus.folds):
        totals, by_fold = sizes(discovered, corpus, place)
        values = dict(by_fold)
        for family in families:
            values.update(family.values(found[family.statistic], corpus, place))
        values = with_f_scores(values)
        whole = corpus.definition == "tdev2"
        overall, left_out = _overall({name: values[name] for name in names}, values, totals, corpus, spread=not whole)
        kept = {} if whole else {name: values[name] for name in names}
        made.append(FoldNumbers(folds.condition, folds.names, overall, kept, left_out))
    return made


def _overall(
    requested: Mapping[str, F64],
    values: Mapping[str, F64],
    totals: Mapping[str, float],
    corpus: Corpus,
    *,
    spread: bool,
) -> tuple[dict[str, float], dict[str, int]]:
    over_folds = spreads(values, corpus.definition)
    overall: dict[str, float] = {}
    left_out: dict[str, int] = {}
    for name, numbers_of_folds in requested.items():
        if name.startswith(COUNT):
            overall[name] = totals.get(name, float(numbers_of_folds.sum()))
            continue
        this = over_folds[name]
        overall[name] = this.mean
        if spread:
            overall |= {f"{name}_std": this.std, f"{name}_min": this.least, f"{name}_max": this.most}
        if this.left_out:
            left_out[name] = this.left_out
    return overall, left_out


def score_table(system: str, conditions: Sequence[FoldNumbers]) -> pa.Table:
    """Return rows of `model.results.SCORES`: "all" or "within_talker", then a condition per fold, "all/<fold>"."""
    rows = [(condition, name, value) for numbers in conditions for condition, name, value in _rows(numbers)]
    names, measures, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [[system] * len(rows), names, pa.nulls(len(rows), pa.string()), measures, values]
    return pa.table(columns, schema=SCORES)


def _rows(numbers: FoldNumbers) -> Iterator[tuple[str, str, float]]:
    for name, value in numbers.overall.items():
        yield numbers.condition, name, value
    for place, fold in enumerate(numbers.folds):
        for name, values in numbers.by_fold.items():
            yield f"{numbers.condition}/{fold}", name, float(values[place])


def left_out_notes(conditions: Sequence[FoldNumbers]) -> Iterator[Note]:
    """Yield the means that leave out folds in which the measure is not defined."""
    for numbers in conditions:
        by_count: dict[int, list[str]] = {}
        for name, count in numbers.left_out.items():
            by_count.setdefault(count, []).append(name)
        for count, names in by_count.items():
            where = f"folds where {', '.join(names)} are not defined"
            text = f"{numbers.condition}: means leave out {count} of {len(numbers.folds)} {where}."
            yield Note(text, f"{numbers.condition}: means leave out {where}.")


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
    """Return the definition of the measures, and how the measures document is read where it is ambiguous."""
    definition = DEFINITIONS[corpus.definition]
    if corpus.definition != "document":
        return definition
    read = corpus.readings
    shortest = f"matching pairs strings of {counted(read.min_phones, 'phones')} or more"
    ways = (_COVERAGE[read.coverage], shortest, _BOUNDARIES[read.boundaries], _PAIRS[read.overlapping_pairs])
    return f"{definition} {'; '.join(ways)}."


def word_notes(corpus: Corpus) -> Iterator[str]:
    """Yield the number of words that are in no fold."""
    words = corpus.words
    for folds, fold in zip(corpus.folds, folds_of(words.file, words.start, words.end, corpus.folds), strict=True):
        yield from (note.text for note in _outside(folds.condition, fold, "words"))


def fragment_notes(discovered: Discovered, corpus: Corpus) -> Iterator[Note]:
    """Yield the numbers of fragments that were dropped, clipped, without phones or in no fold."""
    for reason, count in discovered.dropped.items():
        yield Note.of_count("", count, "fragments", f" dropped: {reason}.")
    if discovered.clipped:
        yield Note.of_count("", discovered.clipped, "fragments", " clipped to the stretches of speech.")
    silent = int(np.count_nonzero(discovered.first == discovered.last))
    if silent:
        yield Note.of_count("", silent, "fragments", " without phones.")
    for folds, fold in zip(corpus.folds, discovered.fold, strict=True):
        yield from _outside(folds.condition, fold, "fragments")


def _outside(condition: str, fold: I16, things: str) -> Iterator[Note]:
    outside = int(np.count_nonzero(fold == NO_FOLD))
    if outside:
        why = "left out: not inside one stretch of a fold."
        text = f"{condition}: {outside:,} of {counted(len(fold), things)} {why}"
        yield Note(text, f"{condition}: {{}} {things} {why}", outside)
