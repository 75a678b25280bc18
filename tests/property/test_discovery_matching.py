"""Matching by the measures document against its formula over sets of pairs, however the work is cut."""

from __future__ import annotations

from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.matching import MatchedWindows, Matching
from swsdask.model.corpus import Corpus, Discovered
from tests.literal_matching import Pairs, Rule, Window, corpora, flat, systems


def whole(corpus: Corpus, discovered: Discovered, work: int = 1 << 20) -> MatchedWindows:
    parts = [MatchedWindows.from_cell(c, corpus, discovered) for c in MatchedWindows.cells(corpus, discovered, work)]
    return reduce(MatchedWindows.merge, parts)


def windows_of(found: MatchedWindows, corpus: Corpus, fold_set: int, fold: int) -> tuple[set[Window], set[Window]]:
    most = max(len(folds.names) for folds in corpus.folds)
    sets: tuple[set[Window], set[Window]] = set(), set()
    for key, *masks in zip(found.key.tolist(), found.completed.tolist(), found.gold.tolist(), strict=True):
        part, start = divmod(key, len(corpus.phones))
        if part == fold_set * most + fold:
            for mask, own in zip(masks, sets, strict=True):
                own |= {(start, length) for length in range(3, 21) if mask >> (length - 3) & 1}
    return sets


def by_type(corpus: Corpus, pairs: Pairs, gold: Pairs) -> float:
    """The formula as it is written, with its sum over types, of the pairs of which `gold` are right."""
    text = Rule(corpus).text

    def match(kind: tuple[int, ...], some: Pairs) -> set[Window]:
        return {window for window in flat(some) if text(window) == kind}

    total = 0.0
    for kind in {text(window) for window in flat(pairs)}:
        own = match(kind, pairs)
        total += len(own) / len(flat(pairs)) * len(match(kind, pairs & gold)) / len(own)
    return total if pairs else float("nan")


@given(st.data())
def test_matching_is_what_the_document_says(data: st.DataObject) -> None:
    corpus = data.draw(corpora("document"))
    discovered = data.draw(systems(corpus))
    rule, found = Rule(corpus), whole(corpus, discovered)
    for number, folds in enumerate(corpus.folds):
        completed, gold = rule.completed(discovered, number), rule.gold(number)
        values = Matching().values(found, corpus, number)
        for fold in range(len(folds.names)):
            own, both = windows_of(found, corpus, number, fold)
            assert own == flat(completed[fold])
            assert both == flat(completed[fold] & gold[fold])
            counts = found.counts(corpus, number)
            assert (counts[0][fold], counts[1][fold]) == (len(own), len(both))
            precision, recall = (
                by_type(corpus, completed[fold], gold[fold]),
                by_type(corpus, gold[fold], completed[fold]),
            )
            np.testing.assert_allclose(values["matching_precision"][fold], precision, rtol=1e-12)
            np.testing.assert_allclose(values["matching_recall"][fold], recall, rtol=1e-12)


@given(st.data())
def test_any_cut_gives_the_same_windows(data: st.DataObject) -> None:
    corpus = data.draw(corpora("document"))
    discovered = data.draw(systems(corpus))
    cells = list(MatchedWindows.cells(corpus, discovered, data.draw(st.sampled_from([1, 7, 40]))))
    parts = [MatchedWindows.from_cell(cell, corpus, discovered) for cell in data.draw(st.permutations(cells))]
    found, expected = reduce(MatchedWindows.merge, parts), whole(corpus, discovered)
    for name in ("key", "completed", "gold"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
