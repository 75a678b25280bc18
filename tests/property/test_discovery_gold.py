"""Gold n-grams against their definition, however the work is cut."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.counting.gold import Gold, gold, gold_cover
from swsdask.model.discovery import NO_FOLD, Corpus, Definition
from tests.literal_matching import Rule, corpora, flat, fold_of, make_corpus

DEFINITIONS: list[Definition] = ["document", "tde2015"]


def literal_cover(corpus: Corpus, fold_set: int) -> list[int]:
    rule = Rule(corpus)
    if rule.tde:
        windows = {w for group in rule.all_windows().values() if len(group) > 1 for w in group}
    else:
        windows = {w for pairs in rule.gold(fold_set).values() for w in flat(pairs)}
    cover = [NO_FOLD] * len(corpus.phones)
    for start, length in windows:
        fold = fold_of(corpus, fold_set, *rule.times((start, length)))
        if fold != NO_FOLD:
            cover[start : start + length] = [fold] * length
    return cover


@pytest.mark.parametrize("definition", DEFINITIONS)
@given(data=st.data())
def test_gold_is_what_the_definition_says(definition: Definition, data: st.DataObject) -> None:
    corpus = data.draw(corpora(definition))
    rule = Rule(corpus)
    found = gold(corpus)
    repeated = [group for group in rule.all_windows().values() if len(group) > 1]
    for length in range(21):
        own = [group for group in repeated if group[0][1] == length]
        assert found.types[length] == len(own)
        assert found.fragments[length] == sum(len(group) for group in own)
    for number, folds in enumerate(corpus.folds):
        literal = rule.gold(number)
        for fold in range(len(folds.names)):
            assert found.flat[number, fold] == len(flat(literal[fold]))
            if rule.tde:
                assert found.pairs[number, fold] == len(literal[fold])
        assert gold_cover(corpus)[number].tolist() == literal_cover(corpus, number)


@pytest.mark.parametrize("definition", DEFINITIONS)
@given(data=st.data())
def test_any_cut_gives_the_same_gold(definition: Definition, data: st.DataObject) -> None:
    corpus = data.draw(corpora(definition))
    cells = list(Gold.cells(corpus, data.draw(st.sampled_from([16, 32, 100]))))
    whole = gold(corpus)
    parts = [Gold.from_cell(cell, corpus) for cell in data.draw(st.permutations(cells))]
    merged = reduce(Gold.merge, parts)
    for name in ("types", "fragments", "flat", "pairs", "longest"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))


def test_a_corpus_without_phones_has_no_gold() -> None:
    corpus = make_corpus("document", [], [[]])
    assert gold(corpus).fragments.sum() == 0
    assert gold_cover(corpus).shape == (1, 0)
