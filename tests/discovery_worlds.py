"""Small corpora with what systems found in them, made from a seed: as objects and as the official files.

A world is plain lists of rows (times in ticks), which is what literal oracles want; `corpus` and `fragments` are made
of them by the product's own reading of tables, `write` makes the files. Edges lie often at 30 ms and at half a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import hypothesis.strategies as st
import pyarrow as pa

from swsdask.discovery.corpus import build_corpus, build_fragments
from swsdask.formats.discovery import ClassFile, CorpusFiles, CorpusTables
from swsdask.model.discovery import ALIGNMENT, CLASSES, FRAGMENTS, SPEAKERS, STRETCHES, Corpus, Definition, Fragments

Token = tuple[str, int, int, str]
Stretch = tuple[str, int, int]

DURATIONS = (100, 300, 400, 500, 590, 600, 610, 700, 800, 1000, 1500)
GAPS = (50, 500, 1200, 4000)
SHIFTS = (-700, -500, -301, -300, -299, -250, -100, 0, 0, 0, 0, 100, 250, 299, 300, 301, 500, 700)
LATE = 29_000_000
"""So late, in ticks, that tde joins fragments over 29 ms. Gaps in the alignment must be longer than that."""
LABELS = ("a", "b", "c", "d", "SIL", "SPN")


@dataclass(frozen=True)
class World:
    """Rows in file order; `folds` and `within` are lists of folds, `classes` pairs of a name and its fragments."""

    phones: list[Token]
    words: list[Token]
    classes: list[tuple[str, list[Stretch]]]
    split: list[Stretch]
    folds: list[list[Stretch]]
    within: list[list[Stretch]]
    speakers: dict[str, str]

    def tables(self, *given: str) -> CorpusTables:
        """The tables of the corpus, with those of `given` (split, folds, within, speakers) only."""
        made = {
            "split": _stretches([self.split]),
            "folds": _stretches(self.folds),
            "within": _stretches(self.within),
            "speakers": _table([(*row, n) for n, row in enumerate(self.speakers.items(), 1)], SPEAKERS),
        }
        alignments = [_table([(*row, n) for n, row in enumerate(rows, 1)], ALIGNMENT) for rows in self._alignments]
        names = CorpusFiles("w.phn", "w.wrd", **{name: f"w.{name}" for name in given})
        return CorpusTables(names, *alignments, **{name: made[name] for name in given})

    @property
    def _alignments(self) -> tuple[list[Token], list[Token]]:
        return self.phones, self.words

    def corpus(self, definition: Definition, *given: str, n_folds: int = 2) -> Corpus:
        """The corpus, made of the tables."""
        return build_corpus(self.tables(*given), definition, n_folds=n_folds)

    def fragments(self, corpus: Corpus, system: str = "w") -> Fragments:
        """What was found, made of the tables."""
        line, names, rows = 1, [], []
        for cluster, (name, members) in enumerate(self.classes):
            names.append((name, line))
            rows += [(cluster, *member, line + place) for place, member in enumerate(members, 1)]
            line += len(members) + 2
        file = ClassFile("w.classes", _table(names, CLASSES), _table(rows, FRAGMENTS), ends_blank=True)
        return build_fragments(file, corpus, system=system)

    def write(self, folder: Path) -> CorpusFiles:
        """The files of the corpus, and `w.classes`, in a folder."""
        texts = {
            "phn": _lines(self.phones),
            "wrd": _lines(self.words),
            "split": _lines(self.split),
            "folds": "\n".join(_lines(fold) for fold in self.folds),
            "within": "\n".join(_lines(fold) for fold in self.within),
            "speakers": "".join(f"{file} {speaker}\n" for file, speaker in self.speakers.items()),
            "classes": "".join(f"Class {name}\n{_lines(members)}\n" for name, members in self.classes),
        }
        for name, text in texts.items():
            (folder / f"w.{name}").write_text(text)
        return CorpusFiles(*(str(folder / f"w.{name}") for name in list(texts)[:6]))


def random_world(
    seed: int,
    *,
    n_files: int = 3,
    words_per_file: int = 8,
    n_classes: int = 6,
    most_members: int = 5,
    begins: Sequence[int] = (0, 500, 12_340),
) -> World:
    """A world of a small lexicon, so that stretches of phones recur; speakers have one or two files each.

    Words are runs of phones without a gap but for some that are shifted or doubled; fragments are runs of phones or
    random, mostly with shifted edges, some twice in a class or in two classes, some over gaps or beyond the last phone.
    """
    rng = Random(seed)
    lexicon = [[rng.choice(LABELS[:4]) for _ in range(rng.randint(1, 4))] for _ in range(4)] + [["SIL"], ["SPN"]]
    phones, words, speech = [], [], []
    files = [f"s{number // 2}{'ab'[number % 2]}" for number in range(n_files)]
    for file in files:
        now = begun = rng.choice(begins)
        gaps = GAPS if now < LATE else GAPS[1:]
        for _ in range(words_per_file):
            start, word = now, rng.choice(lexicon)
            for label in word:
                phones.append((file, now, now + rng.choice(DURATIONS), label))
                now = phones[-1][2]
            words.append((file, start, now, "".join(word)))
            if rng.random() < 0.1:
                words.append((file, start + 40, now + rng.choice(SHIFTS[8:]), "".join(word[:2])))
            if rng.random() < 0.25:
                speech.append((file, begun, now))
                now = begun = now + rng.choice(gaps)
        if now > begun:
            speech.append((file, begun, now))
    found = [_fragment(rng, files, phones) for _ in range(n_classes * most_members // 2 + 1)]
    names = [f"{number} some text" if rng.random() < 0.2 else f"{number}" for number in range(n_classes)]
    classes = [(name, rng.choices(found, k=rng.randint(0, most_members))) for name in names]
    speakers = {file: file[:2] for file in files}
    return World(phones, words, classes, speech, _folds(rng, speech, 2), _by_speaker(speech, speakers), speakers)


@st.composite
def worlds(draw: st.DrawFn, *, begins: Sequence[int] = (0, 500, 12_340, LATE)) -> World:
    """Worlds of 1 to 5 files with up to about 100 phones."""
    return random_world(
        draw(st.integers(0, 2**32 - 1)),
        n_files=draw(st.integers(1, 5)),
        words_per_file=draw(st.integers(1, 10)),
        n_classes=draw(st.integers(0, 8)),
        most_members=draw(st.integers(1, 8)),
        begins=begins,
    )


def _fragment(rng: Random, files: Sequence[str], phones: Sequence[Token]) -> Stretch:
    if rng.random() < 0.1:
        start = rng.randrange(0, 20_000)
        return rng.choice(files), start, start + rng.randint(1, 5_000)
    first = rng.randrange(len(phones))
    last = first
    for _ in range(rng.randrange(6)):
        if last + 1 < len(phones) and phones[last + 1][0] == phones[first][0]:
            last += 1
    shifts = (0, 0) if rng.random() < 0.4 else (rng.choice(SHIFTS), rng.choice(SHIFTS))
    start = max(0, phones[first][1] + shifts[0])
    return phones[first][0], start, max(start + 1, phones[last][2] + shifts[1])


def _folds(rng: Random, speech: Sequence[Stretch], n_folds: int) -> list[list[Stretch]]:
    """Some of the stretches of speech, each in one of the folds; no fold is empty."""
    folds: list[list[Stretch]] = [[] for _ in range(n_folds)]
    for stretch in speech:
        if rng.random() < 0.9:
            rng.choice(folds).append(stretch)
    return [fold for fold in folds if fold] or [list(speech)]


def _by_speaker(speech: Sequence[Stretch], speakers: dict[str, str]) -> list[list[Stretch]]:
    names = sorted(set(speakers.values()))
    return [[stretch for stretch in speech if speakers[stretch[0]] == name] for name in names]


def _stretches(folds: Sequence[Sequence[Stretch]]) -> pa.Table:
    rows, line = [], 1
    for number, fold in enumerate(folds):
        for stretch in fold:
            rows.append((*stretch, number, line))
            line += 1
        line += 1
    return _table(rows, STRETCHES)


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _lines(rows: Sequence[tuple[object, ...]]) -> str:
    return "".join(
        f"{file} {start / 10_000} {end / 10_000}{''.join(f' {x}' for x in rest)}\n" for file, start, end, *rest in rows
    )
