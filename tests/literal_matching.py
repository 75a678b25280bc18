"""Gold, substring completion and matching as sets that are enumerated: what the measures are, and small worlds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from swsdask.model.discovery import NO_FOLD, Corpus, Definition, Discovered, FileIntervals, Folds, Tokens
from tests.readings import READINGS, read

Window = tuple[int, int]
"""First phone and number of phones."""

Pairs = set[tuple[Window, Window]]


def _columns(rows: list[tuple[int, ...]], n_columns: int) -> list[Any]:
    return list(np.ascontiguousarray(np.array(sorted(rows), np.int32).reshape(-1, n_columns).T))


def first_of_files(file: Any, n_files: int) -> Any:
    """The row at which each file begins, and the end, of rows in the order of files."""
    return np.searchsorted(file, np.arange(n_files + 1)).astype(np.int64)


def make_corpus(
    definition: Definition, phones: list[tuple[int, int, int, int]], fold_sets: list[list[tuple[int, int, int, int]]]
) -> Corpus:
    """A corpus of phones (file, start, end, label) and sets of stretches (file, start, end, fold)."""
    n_files = max((row[0] for row in phones), default=-1) + 1
    n_labels = max((row[3] for row in phones), default=-1) + 1
    columns = _columns(phones, 4)
    labels = tuple(f"{number:02}" for number in range(n_labels))
    tokens = Tokens(*columns, labels, first_of_files(columns[0], n_files))
    file, start, end = columns[:3]
    changes = np.ones(len(phones), np.bool_)
    changes[1:] = (file[1:] != file[:-1]) | (start[1:] != end[:-1])
    segment = (np.cumsum(changes) - 1).astype(np.int32)
    folds = []
    for number, rows in enumerate(fold_sets):
        *places, fold = _columns(rows, 4)
        names = tuple(str(n) for n in range(max((row[3] for row in rows), default=-1) + 1))
        stretches = FileIntervals(*places, fold.astype(np.int16), first_of_files(places[0], n_files))
        folds.append(Folds("within_talker" if number else "all", names, stretches))
    none = np.zeros(n_labels, np.bool_)
    files = tuple(f"f{number}" for number in range(n_files))
    return Corpus(definition, files, tokens, tokens, segment, none, none, None, tuple(folds))


def fold_of(corpus: Corpus, fold_set: int, file: int, start: int, end: int) -> int:
    """The fold of which a stretch holds a fragment."""
    s = corpus.folds[fold_set].stretches
    rows = zip(s.file.tolist(), s.start.tolist(), s.end.tolist(), s.fold.tolist(), strict=True)
    return next((fold for f, low, high, fold in rows if f == file and low <= start and end <= high), NO_FOLD)


def make_discovered(corpus: Corpus, classes: list[list[tuple[int, int, int]]]) -> Discovered:
    """Classes of fragments (file, start, end) placed in a corpus, with the phones that are in them by half or 30 ms."""
    rows = sorted({fragment for members in classes for fragment in members})
    number = {fragment: n for n, fragment in enumerate(rows)}
    members = sorted((c, number[fragment]) for c, own in enumerate(classes) for fragment in own)
    p = corpus.phones
    ranges, types = [], []
    for file, start, end in rows:
        inside = []
        for phone in range(len(p)):
            shared = min(end, int(p.end[phone])) - max(start, int(p.start[phone]))
            if p.file[phone] == file and (shared > 300 or 2 * shared > int(p.end[phone]) - int(p.start[phone])):
                inside.append(phone)
        first, last = (inside[0], inside[-1] + 1) if inside else (0, 0)
        ranges.append((first, last))
        types.append(tuple(p.label[first:last].tolist()))
    ids = {kind: n for n, kind in enumerate(sorted(set(types)))}
    fold = [[fold_of(corpus, number, *row) for row in rows] for number in range(len(corpus.folds))]
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    first_last = np.array(ranges, np.int64).reshape(-1, 2).T
    by_class = np.array(members, np.int64).reshape(-1, 2).T
    return Discovered(
        "s",
        tuple(str(n) for n in range(len(classes))),
        *(np.ascontiguousarray(column) for column in columns),
        *(np.ascontiguousarray(column) for column in first_last),
        np.array([ids[kind] for kind in types], np.int32),
        np.array(fold, np.int16).reshape(len(corpus.folds), len(rows)),
        by_class[0].astype(np.int32),
        by_class[1].copy(),
        {},
    )


class Rule:
    """How a definition tells that fragments overlap, and the longest substring that it completes."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.tde = corpus.definition == "tde2015"
        self.longest = 19 if self.tde else 20

    def overlap(self, a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
        shared = min(a[2], b[2]) - max(a[1], b[1])
        if not self.tde:
            return a[0] == b[0] and 2 * shared > min(a[2] - a[1], b[2] - b[1])
        a0, a1, b0, b1 = a[1] / 10_000, a[2] / 10_000, b[1] / 10_000, b[2] / 10_000
        seconds = min(a1, b1) - max(a0, b0) if shared >= 0 else 0.0
        return abs(seconds) > 1e-8 and (seconds > 0.03 or seconds > 0.5 * (a1 - a0) or seconds > 0.5 * (b1 - b0))

    def times(self, window: Window) -> tuple[int, int, int]:
        p = self.corpus.phones
        return int(p.file[window[0]]), int(p.start[window[0]]), int(p.end[window[0] + window[1] - 1])

    def text(self, window: Window) -> tuple[int, ...]:
        return tuple(self.corpus.phones.label[window[0] : window[0] + window[1]].tolist())

    def all_windows(self) -> dict[tuple[int, ...], list[Window]]:
        """The windows of 3 to 20 phones in gap-free segments, by what is said."""
        found = defaultdict(list)
        segment = self.corpus.segment
        for start in range(len(segment)):
            for length in range(3, 21):
                if start + length <= len(segment) and segment[start] == segment[start + length - 1]:
                    found[self.text((start, length))].append((start, length))
        return found

    def gold(self, fold_set: int) -> dict[int, Pairs]:
        """P_all of each fold, both directions of a pair."""
        found = defaultdict(set)
        for group in self.all_windows().values():
            for a, b in combinations(group, 2):
                fold = fold_of(self.corpus, fold_set, *self.times(a))
                if fold == NO_FOLD or fold != fold_of(self.corpus, fold_set, *self.times(b)):
                    continue
                if not self.overlap(self.times(a), self.times(b)):
                    found[fold] |= {(a, b), (b, a)}
        return found

    def completed(self, discovered: Discovered, fold_set: int) -> dict[int, Pairs]:
        """P_disc* of each fold, both directions of a pair."""
        d = discovered
        found = defaultdict(set)
        for number in range(len(d.classes)):
            members = sorted(set(d.member_fragment[d.member_cluster == number].tolist()))
            for a, b in combinations(members, 2):
                times = [(int(d.file[x]), int(d.start[x]), int(d.end[x])) for x in (a, b)]
                fold = int(d.fold[fold_set, a])
                if fold == NO_FOLD or fold != d.fold[fold_set, b] or self.overlap(*times):
                    continue
                ranges = [(int(d.first[x]), int(d.last[x] - d.first[x])) for x in (a, b)]
                for x, y in alignments(*ranges, self.corpus.readings.min_phones, self.longest):
                    found[fold] |= {(x, y), (y, x)}
        return found


def alignments(a: Window, b: Window, shortest: int, longest: int) -> Iterator[tuple[Window, Window]]:
    """Windows of `shortest` to `longest` phones that face each other wherever the shorter lies along the longer one."""
    (i, m), (j, n) = a, b
    shorter = min(m, n)
    for offset, length in product(range(abs(m - n) + 1), range(shortest, min(shorter, longest) + 1)):
        for k in range(shorter - length + 1):
            yield (i + k + (offset if m > n else 0), length), (j + k + (offset if n > m else 0), length)


def flat(pairs: Pairs) -> set[Window]:
    return {window for pair in pairs for window in pair}


@st.composite
def phone_rows(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Phones of a few files, of few labels and uneven lengths, with gaps."""
    rows = []
    duration = st.sampled_from([100, 200, 290, 310, 600, 1000, 2500])
    n_labels = draw(st.integers(1, 3))
    for file in range(draw(st.integers(1, 3))):
        time = draw(st.integers(0, 500))
        for _ in range(draw(st.integers(0, 22))):
            time += draw(st.sampled_from([0, 0, 0, 0, 0, 0, 150]))
            end = time + draw(duration)
            rows.append((file, time, end, draw(st.integers(0, n_labels - 1))))
            time = end
    return rows


@st.composite
def stretches(
    draw: st.DrawFn, phones: list[tuple[int, int, int, int]], n_folds: int
) -> list[tuple[int, int, int, int]]:
    """Stretches of folds, cut anywhere."""
    rows = []
    for file in sorted({row[0] for row in phones}):
        end = max(row[2] for row in phones if row[0] == file)
        cuts = sorted({0, end, *draw(st.lists(st.integers(1, end), max_size=3))})
        for low, high in pairwise(cuts):
            if draw(st.integers(0, 9)):
                rows.append((file, low, high, draw(st.integers(0, n_folds - 1))))
    return rows


@st.composite
def corpora(draw: st.DrawFn, definition: Definition) -> Corpus:
    """Small corpora that repeat themselves, with two sets of folds."""
    phones = draw(phone_rows())
    corpus = make_corpus(definition, phones, [draw(stretches(phones, 2)), draw(stretches(phones, 3))])
    return read(corpus, draw(READINGS))


@st.composite
def systems(draw: st.DrawFn, corpus: Corpus) -> Discovered:
    """Classes of fragments whose edges lie at or near those of phones, some of them duplicates."""
    p = corpus.phones
    classes = []
    for _ in range(draw(st.integers(1, 3))):
        members = []
        for _ in range(draw(st.integers(0, 6))):
            if not len(p):
                break
            first = draw(st.integers(0, len(p) - 1))
            last = min(first + draw(st.integers(0, 9)), int(p.first[p.file[first] + 1]) - 1)
            shift = st.sampled_from([0, 0, 0, -280, -60, 60, 280])
            start = max(int(p.start[first]) + draw(shift), 0)
            end = int(p.end[last]) + draw(shift)
            if end > start:
                members.append((int(p.file[first]), start, end))
        classes.append(members)
    return make_discovered(corpus, classes)
