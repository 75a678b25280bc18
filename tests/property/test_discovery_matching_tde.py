"""Matching as tde computes it against its formula over sets of pairs, however the work is cut."""

from __future__ import annotations

from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.matching_tde import PairedWindows, WeightedMatching, counted
from swsdask.model.corpus import Corpus, Discovered
from tests.literal_matching import Pairs, Rule, corpora, flat, systems


def whole(corpus: Corpus, discovered: Discovered, work: int = 1 << 20) -> PairedWindows:
    parts = [PairedWindows.from_cell(c, corpus, discovered) for c in PairedWindows.cells(corpus, discovered, work)]
    return reduce(PairedWindows.merge, parts)


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
    rule, found = Rule(corpus), whole(corpus, discovered)
    for number, folds in enumerate(corpus.folds):
        completed, gold = rule.completed(discovered, number), rule.gold(number)
        values = WeightedMatching().values(found, corpus, number)
        parts = list(counted(found, corpus, number))
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
    found, expected = reduce(PairedWindows.merge, parts), whole(corpus, discovered)
    np.testing.assert_array_equal(found.key, expected.key)
    np.testing.assert_array_equal(found.length, expected.length)
