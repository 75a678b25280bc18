"""Matching as tde computes it against its formula over sets of pairs, however the work is cut."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.measures.matching import PairedWindows, WeightedMatching, pairs_of_folds
from swsdask.model.discovery import Corpus
from tests.discoveries import whole
from tests.literal_matching import Pairs, Rule, corpora, flat, make_corpus, make_discovered, systems


def by_pairs(corpus: Corpus, pairs: Pairs, both: Pairs) -> float:
    """The sum over types of the share of fragments times the share of pairs, by their second members."""
    if not pairs:
        return float("nan")
    text = Rule(corpus).text
    total = 0.0
    for kind in {text(window) for window in flat(pairs)}:
        weight = sum(text(window) == kind for window in flat(pairs)) / len(flat(pairs))
        total += weight * sum(text(b) == kind for _, b in both) / sum(text(b) == kind for _, b in pairs)
    return total


@given(st.data())
def test_matching_is_what_tde_computes(data: st.DataObject) -> None:
    corpus = data.draw(corpora("tde2015"))
    discovered = data.draw(systems(corpus))
    rule, found = Rule(corpus), whole(PairedWindows, corpus, discovered)
    for number, folds in enumerate(corpus.folds):
        completed, gold = rule.completed(discovered, number), rule.gold(number)
        values = WeightedMatching().values(found, corpus, number)
        parts = list(pairs_of_folds(found, corpus, number))
        assert len(parts) == len(folds.names)
        for fold, part in enumerate(parts):
            assert part.pairs == len(completed[fold])
            assert part.fragments == len(flat(completed[fold]))
            both = completed[fold] & gold[fold]
            assert part.types[:, 2].sum() == len(both)
            precision, recall = by_pairs(corpus, completed[fold], both), by_pairs(corpus, gold[fold], both)
            np.testing.assert_allclose(values["matching_precision"][fold], precision, rtol=1e-12)
            np.testing.assert_allclose(values["matching_recall"][fold], recall, rtol=1e-12)


@given(st.data())
def test_any_cut_gives_the_same_pairs(data: st.DataObject) -> None:
    corpus = data.draw(corpora("tde2015"))
    discovered = data.draw(systems(corpus))
    cells = list(PairedWindows.cells(corpus, discovered, data.draw(st.sampled_from([1, 3, 10]))))
    parts = [PairedWindows.from_cell(cell, corpus, discovered) for cell in data.draw(st.permutations(cells))]
    found, expected = reduce(PairedWindows.merge, parts), whole(PairedWindows, corpus, discovered)
    np.testing.assert_array_equal(found.key, expected.key)
    np.testing.assert_array_equal(found.length, expected.length)


def counts_of(corpus: Corpus, classes: list[list[tuple[int, int, int]]]) -> tuple[int, int]:
    """The ordered pairs of the first fold, and how many the literal sets have."""
    discovered = make_discovered(corpus, classes)
    (part,) = pairs_of_folds(whole(PairedWindows, corpus, discovered), corpus, 0)
    return part.pairs, len(Rule(corpus).completed(discovered, 0)[0])


def test_pairs_that_lie_in_others_count_once() -> None:
    """Intervals of one diagonal, of which the second lies in the first and the third goes on behind it."""
    phones = [(file, place * 1000, place * 1000 + 1000, 0) for file in range(2) for place in range(20)]
    corpus = make_corpus("tde2015", phones, [[(0, 0, 20_000, 0), (1, 0, 20_000, 0)]])
    ranges = [(0, 6), (1, 4), (2, 8)]
    classes = [
        [(file, 1000 * (low + 10 * file), 1000 * (high + 10 * file)) for file in range(2)] for low, high in ranges
    ]
    pairs, expected = counts_of(corpus, classes)
    assert pairs == expected


def test_a_window_may_be_paired_with_itself() -> None:
    """Three short phones in two fragments that are not near."""
    edges = [0, 5000, 10_000, 10_090, 10_180, 10_270]
    phones = [(0, low, high, 0) for low, high in pairwise(edges)]
    corpus = make_corpus("tde2015", phones, [[(0, 0, 11_000, 0)]])
    assert counts_of(corpus, [[(0, 0, 10_270), (0, 10_000, 11_000)]]) == (5, 5)
