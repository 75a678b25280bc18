"""Gold, substring completion and matching: every number that tde printed, and the literal formula on its sets."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from swsdask.discovery.corpus import read_fragments
from swsdask.discovery.counting.gold import gold
from swsdask.discovery.measures.matching import (
    MatchedWindows,
    Matching,
    PairedWindows,
    WeightedMatching,
    pairs_of_folds,
)
from swsdask.discovery.placing import locate
from swsdask.kernels.matching import pair_up
from swsdask.model.discovery import Corpus, Definition, Discovered
from tests.corpora import read_corpus
from tests.discoveries import whole
from tests.literal_matching import Pairs, Rule, alignments, flat, fold_of

CASES = {
    "micro": ("micro/micro", "micro/micro.cross", "micro/micro.within", "micro/micro.disc", "micro/tde.out"),
    "example": (
        "tde_sample/sample",
        "tde_sample/sample.intervals.cross",
        "tde_sample/sample.intervals.within",
        "tde_sample/sample.classes.example",
        "tde_sample/sample_example.out",
    ),
    "jitA": (
        "tde_sample/sample",
        "tde_sample/sample.intervals.cross",
        "tde_sample/sample.intervals.within",
        "tde_sample/sample_jitA.classes",
        "tde_sample/sample_jitA.out",
    ),
}
LITERAL = {"micro": "micro/micro.literal.out", "jitA": "tde_sample/sample_jitA.literal.out"}


def corpus_of(cases: Path, case: str, definition: Definition) -> Corpus:
    stem, cross, within, *_ = CASES[case]
    folder = cases / "discovery"
    files = (str(folder / name) for name in (f"{stem}.phn", f"{stem}.wrd"))
    return read_corpus(
        *files,
        definition,
        split=str(folder / f"{stem}.split"),
        folds=str(folder / cross),
        within=str(folder / within),
    )


def placed(cases: Path, case: str, corpus: Corpus) -> Discovered:
    return locate(read_fragments(str(cases / "discovery" / CASES[case][3]), corpus), corpus)


def right_of(rule: Rule, pairs: Pairs, fold_set: int, fold: int) -> Pairs:
    """The pairs that are gold: of a fold and a gap-free segment, equal, and not overlapping."""
    segment = rule.corpus.segment

    def inside(window: tuple[int, int]) -> bool:
        whole = segment[window[0]] == segment[window[0] + window[1] - 1]
        return bool(whole) and fold_of(rule.corpus, fold_set, *rule.times(window)) == fold

    equal = {(a, b) for a, b in pairs if rule.text(a) == rule.text(b)}
    return {(a, b) for a, b in equal if inside(a) and inside(b) and not rule.overlap(rule.times(a), rule.times(b))}


@pytest.mark.parametrize("definition", ["document", "tde2015"])
def test_the_gold_set_of_the_sample(cases: Path, definition: Definition) -> None:
    found = gold(corpus_of(cases, "jitA", definition))
    assert (found.types.sum(), found.fragments.sum()) == (13785, 56193)
    lengths = [26259, 15020, 7707, 3742, 1809, 851, 406, 218, 108, 49, 20, 4, 0, 0, 0, 0, 0, 0]
    assert found.fragments.tolist() == [0, 0, 0, *lengths]


@pytest.mark.parametrize("case", CASES)
def test_matching_that_tde_printed(cases: Path, case: str) -> None:
    corpus = corpus_of(cases, case, "tde2015")
    found = whole(PairedWindows, corpus, placed(cases, case, corpus), 1000)
    printed = (cases / "discovery" / CASES[case][4]).read_text()
    for number, name in enumerate(("cross", "within")):
        sides = re.search(rf"^{name} match P,R (.*)$", printed, re.MULTILINE)
        assert sides is not None
        values = WeightedMatching().values(found, corpus, number)
        for mine, theirs in zip(values.values(), json.loads(sides[1]), strict=True):
            expected = [math.nan if value is None else value for value in theirs]
            np.testing.assert_allclose(mine, expected, rtol=1e-9)
    sizes = [tuple(map(int, pair)) for pair in re.findall(r"\((\d+), (\d+), [\d.]+, [\d.]+, [\d.]+\)", printed)]
    assert sizes == [
        (gold(corpus).pairs[number, fold], part.pairs)
        for number in range(2)
        for fold, part in enumerate(pairs_of_folds(found, corpus, number))
    ]


@pytest.mark.parametrize("case", LITERAL)
def test_the_literal_formula_on_the_sets_of_tde(cases: Path, case: str) -> None:
    corpus = corpus_of(cases, case, "tde2015")
    rule, discovered = Rule(corpus), placed(cases, case, corpus)
    found = whole(PairedWindows, corpus, discovered, 1000)
    completed = rule.completed(discovered, 0)
    lines = re.findall(
        r"match literal P ([\d.]+) R ([\d.]+) \(flat (\d+) (\d+) (\d+)\)",
        (cases / "discovery" / LITERAL[case]).read_text(),
    )
    assert len(lines) == len(corpus.folds[0].names)
    parts = list(pairs_of_folds(found, corpus, 0))
    for fold, (precision, recall, *sizes) in enumerate(lines):
        both = flat(right_of(rule, completed[fold], 0, fold))
        mine = len(both), parts[fold].fragments, int(gold(corpus).flat[0, fold])
        assert mine == tuple(map(int, sizes))
        assert mine[0] / mine[1] == pytest.approx(float(precision), rel=1e-11)
        assert mine[0] / mine[2] == pytest.approx(float(recall), rel=1e-11)


@pytest.mark.parametrize("case", LITERAL)
def test_matching_by_the_document_on_these_corpora(cases: Path, case: str) -> None:
    corpus = corpus_of(cases, case, "document")
    rule, discovered = Rule(corpus), placed(cases, case, corpus)
    found = whole(MatchedWindows, corpus, discovered, 1000)
    for number, folds in enumerate(corpus.folds):
        completed = rule.completed(discovered, number)
        windows, both = found.counts(corpus, number)
        for fold in range(len(folds.names)):
            assert windows[fold] == len(flat(completed[fold]))
            assert both[fold] == len(flat(right_of(rule, completed[fold], number, fold)))
        values = Matching().values(found, corpus, number)
        there = gold(corpus).flat[number, : len(both)]
        np.testing.assert_array_equal(values["matching_precision"] * windows, both)
        np.testing.assert_allclose(values["matching_recall"], np.where(there, both / np.maximum(there, 1), math.nan))


def test_substring_completion(cases: Path) -> None:
    lines = (cases / "discovery/micro/substring_completion.out").read_text().splitlines()
    assert len(lines) == 9
    for one, other, *numbers in (line.split() for line in lines):
        shortest, longest, n_pairs, n_distinct = map(int, numbers[:4])
        expected = numbers[4:]
        text = one + other
        first, last = np.array([0, len(one)]), np.array([len(one), len(text)])
        times = np.array([0, 90_000], np.int32)
        keys, lengths = pair_up(np.zeros(2, int), np.full(2, 2), first, last, times, times + 1000, 0, 2, len(text))
        found = set()
        for key, length in zip(keys.tolist(), lengths.tolist(), strict=True):
            behind, start = divmod(key, len(text))
            for size in range(shortest, min(length + 1, longest)):
                found |= {(at, at + behind, size) for at in range(start, start + length - size + 1)}
        assert {f"{text[a : a + size]}/{text[b : b + size]}" for a, b, size in found} == set(expected)
        assert len(found) == n_pairs == n_distinct == len(expected)
        if shortest == 3:
            literal = alignments((0, len(one)), (len(one), len(other)), shortest, longest - 1)
            assert {(a, b, size) for (a, size), (b, _) in literal} == found
