"""NED and grouping as sets of pairs that are enumerated, and small systems whose fragments are in many classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from swsdask.model.discovery import Corpus, Definition, Discovered, FileIntervals, Folds, Tokens
from tests.literal_matching import first_of_files
from tests.readings import READINGS, read

Pair = tuple[int, int]
"""Two rows of fragments, the first one not after the second."""

DEFINITIONS: tuple[Definition, ...] = ("document", "tde2015", "tdev2")


def levenshtein(one: Iterable[int], other: Iterable[int]) -> int:
    """Insertions, deletions and substitutions, by the table of all prefixes."""
    other = list(other)
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (a != b)))
    return row[-1]


class Literal:
    """The sets of the measures document in one fold, under a definition."""

    def __init__(self, corpus: Corpus, discovered: Discovered, fold_set: int, fold: int) -> None:
        self.corpus, self.d, self.definition = corpus, discovered, corpus.definition
        self.inside = {x for x in range(len(discovered)) if discovered.fold[fold_set, x] == fold}
        self.classes: list[list[int]] = [[] for _ in discovered.classes]
        for c, x in zip(discovered.member_cluster.tolist(), discovered.member_fragment.tolist(), strict=True):
            if x in self.inside:
                self.classes[c].append(x)

    def text(self, x: int) -> tuple[int, ...]:
        return tuple(self.corpus.phones.label[self.d.first[x] : self.d.last[x]].tolist())

    def shared(self, a: int, b: int) -> int:
        return min(int(self.d.end[a]), int(self.d.end[b])) - max(int(self.d.start[a]), int(self.d.start[b]))

    def near(self, a: int, b: int) -> bool:
        (a0, a1), (b0, b1) = ((int(self.d.start[x]) / 10_000, int(self.d.end[x]) / 10_000) for x in (a, b))
        shared = min(a1, b1) - max(a0, b0) if min(a1, b1) >= max(a0, b0) else 0.0
        return abs(shared) > 1e-8 and (shared > 0.03 or shared > 0.5 * (a1 - a0) or shared > 0.5 * (b1 - b0))

    def overlap(self, a: int, b: int) -> bool:
        """Whether a pair of a class overlaps."""
        if self.definition == "tdev2":
            return False
        if self.definition == "tde2015":
            return self.near(a, b)
        shorter = min(int(self.d.end[x] - self.d.start[x]) for x in (a, b))
        return bool(self.d.file[a] == self.d.file[b]) and 2 * self.shared(a, b) > shorter

    def same_time(self, a: int, b: int) -> bool:
        """Whether a pair of one transcription overlaps."""
        if self.definition == "tde2015" and self.near(a, b):
            return True
        return bool(self.d.file[a] == self.d.file[b]) and self.shared(a, b) > 0

    def listed(self) -> list[Pair]:
        return [(min(p), max(p)) for members in self.classes for p in combinations(members, 2)]

    def heard(self, pair: Pair) -> bool:
        """Whether one of a pair has phones, where that counts."""
        return any(map(self.text, pair)) or self.definition != "document"

    def apart(self) -> set[Pair]:
        """The pairs of classes that do not overlap."""
        return {pair for pair in self.listed() if not self.overlap(*pair)}

    def found(self) -> set[Pair]:
        kept = self.corpus.readings.overlapping_pairs == "kept"
        return {
            pair
            for pair in (self.listed() if kept else self.apart())
            if self.heard(pair) and (not kept or pair[0] != pair[1])
        }

    def gold(self) -> set[Pair]:
        several = 2 if self.definition == "tde2015" else 1
        fragments = sorted({x for members in self.classes if len(members) >= several for x in members})
        return {
            pair for pair in combinations(fragments, 2) if self.text(pair[0]) == self.text(pair[1])
            if not self.same_time(*pair) and self.heard(pair)
        }  # fmt: skip

    def ned(self) -> tuple[Fraction | None, int]:
        """The mean, None if there is none, and the number of pairs."""
        pairs = self.listed() if self.definition == "tdev2" else [p for p in self.apart() if any(map(self.text, p))]
        total = Fraction(0)
        for pair in pairs:
            one, other = (self.text(x) for x in pair)
            if self.definition == "tdev2":
                one, other = ([c for c in text if self.corpus.phones.labels[c] != "SIL"] for text in (one, other))
            if one or other:
                total += Fraction(levenshtein(one, other), max(len(one), len(other)))
            else:
                total += self.definition == "tdev2"
        return (total / len(pairs) if pairs else None), len(pairs)

    def element(self, x: int) -> object:
        if self.definition != "tdev2":
            return x
        p = self.corpus.phones
        return tuple((int(p.start[i]), int(p.end[i]), int(p.label[i])) for i in range(self.d.first[x], self.d.last[x]))

    def flat(self, pairs: set[Pair]) -> dict[object, tuple[int, ...]]:
        """The fragments of pairs, with their types."""
        return {self.element(x): self.text(x) for pair in pairs for x in pair}

    def weighed(self, whole: set[Pair], part: set[Pair]) -> Fraction | None:
        """The sum over types of freq(t, whole) * |match(t, part)| / |match(t, whole)|; None if there are none."""
        types = Counter(self.flat(whole).values())
        if self.definition == "tde2015":
            matched, of = (Counter(self.text(max(pair)) for pair in pairs) for pairs in (part, whole))
        else:
            matched, of = Counter(self.flat(part).values()), types
        terms = [Fraction(n, types.total()) * Fraction(matched[t], of[t]) for t, n in types.items() if of[t]]
        return sum(terms, Fraction(0)) if whole else None


def exact(value: Fraction | None) -> float:
    return float("nan") if value is None else float(value)


@st.composite
def corpora(draw: st.DrawFn, definition: Definition) -> Corpus:
    """Phones of some files that have the same times, and two sets of folds (tdev2: one fold)."""
    label = st.integers(0, draw(st.integers(0, 3)))
    texts = draw(st.lists(st.lists(label, min_size=1, max_size=8), min_size=1, max_size=3))
    return read(corpus_of(definition, texts), draw(READINGS))


def corpus_of(definition: Definition, texts: list[list[int]]) -> Corpus:
    """Files of phones of 50 ms each; label 0 is SIL."""
    n_files, n_labels = len(texts), max(map(max, texts)) + 1
    rows = [(f, 500 * i, 500 * i + 500, c) for f, text in enumerate(texts) for i, c in enumerate(text)]
    columns = np.array(rows, np.int32).T.copy()
    labels = ("SIL", *(f"p{n}" for n in range(1, n_labels)))
    tokens = Tokens(*columns, labels, first_of_files(columns[0], n_files))
    silence = np.array([label == "SIL" for label in labels])
    none = np.zeros(0, np.int32)
    stretches = FileIntervals(none, none, none, none.astype(np.int16), np.zeros(n_files + 1, np.int64))
    names = (("all",),) if definition == "tdev2" else (("1", "2"), ("s", "t", "u"))
    folds = tuple(Folds("all", own, stretches) for own in names)
    files = tuple(f"f{n}" for n in range(n_files))
    return Corpus(definition, files, tokens, tokens, columns[0], silence, silence, None, folds)


@st.composite
def systems(draw: st.DrawFn, corpus: Corpus, most_fragments: int = 14) -> Discovered:
    """Fragments that overlap often, whatever their phones, in classes that share many of them."""
    start, length = st.integers(0, 24), st.sampled_from([1, 1, 2, 3, 4, 6, 9])
    fragment = st.tuples(st.integers(0, len(corpus.files) - 1), start, length)
    rows = draw(st.lists(fragment, min_size=1, max_size=most_fragments))
    rows = [(file, 150 * begin, 150 * (begin + n)) for file, begin, n in rows]
    rows = sorted(set(rows))
    place = st.integers(0, len(rows) - 1)
    classes = draw(st.lists(st.lists(place, max_size=8), max_size=5)) + draw(
        st.lists(place.map(lambda x: [x]), max_size=3)
    )
    classes += draw(st.lists(st.sampled_from(classes), max_size=2)) if classes else []
    used = sorted({x for members in classes for x in members})
    number = {x: n for n, x in enumerate(used)}
    least = int(corpus.definition == "tdev2")
    phones = corpus.phones.first.tolist()
    ranges = []
    for x in used:
        first = draw(st.integers(phones[rows[x][0]], phones[rows[x][0] + 1] - least))
        ranges.append((first, draw(st.integers(first + least, phones[rows[x][0] + 1]))))
    fold = [[draw(st.integers(least - 1, len(folds.names) - 1)) for _ in used] for folds in corpus.folds]
    return system_of(corpus, [rows[x] for x in used], ranges, fold, [[number[x] for x in own] for own in classes])


def system_of(
    corpus: Corpus,
    rows: list[tuple[int, int, int]],
    ranges: list[tuple[int, int]],
    fold: list[list[int]],
    classes: list[list[int]],
) -> Discovered:
    """Fragments (file, start, end), sorted, with the phones `ranges` and the folds of each set, in classes of some."""
    file, start, end = np.array(rows, np.int32).reshape(-1, 3).T.copy()
    first, last = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    texts = [tuple(corpus.phones.label[a:b].tolist()) for a, b in ranges]
    types = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    members = np.array(sorted((c, x) for c, own in enumerate(classes) for x in own), np.int64).reshape(-1, 2)
    return Discovered(
        "s",
        tuple(str(n) for n in range(len(classes))),
        file,
        start,
        end,
        first,
        last,
        np.array([types[text] for text in texts], np.int32),
        np.array(fold, np.int16).reshape(len(corpus.folds), len(rows)),
        members[:, 0].astype(np.int32),
        members[:, 1].copy(),
        {},
    )
