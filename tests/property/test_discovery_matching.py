"""Matching by the measures document against its formula over sets of pairs, however the work is cut."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.counting.gold import gold
from swsdask.discovery.measures.matching import MatchedWindows, Matching
from swsdask.model.discovery import DEFAULT_READINGS, Corpus
from tests.discoveries import whole
from tests.literal_matching import Pairs, Rule, Window, corpora, flat, make_corpus, make_discovered, systems
from tests.readings import read


def windows_of(found: MatchedWindows, corpus: Corpus, fold_set: int, fold: int) -> tuple[set[Window], set[Window]]:
    most = max(len(folds.names) for folds in corpus.folds)
    sets: tuple[set[Window], set[Window]] = set(), set()
    for key, *masks in zip(found.key.tolist(), found.completed.tolist(), found.gold.tolist(), strict=True):
        part, start = divmod(key, len(corpus.phones))
        if part == fold_set * most + fold:
            for mask, own in zip(masks, sets, strict=True):
                own |= {(start, length) for length in range(1, 21) if mask >> (length - 1) & 1}
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
    rule, found = Rule(corpus), whole(MatchedWindows, corpus, discovered)
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
    found, expected = reduce(MatchedWindows.merge, parts), whole(MatchedWindows, corpus, discovered)
    for name in ("key", "completed", "gold"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def laid_end_to_end(durations: list[int], labels: list[int]) -> Corpus:
    edges = np.cumsum([0, *durations]).tolist()
    phones = [(0, low, high, label) for (low, high), label in zip(pairwise(edges), labels, strict=True)]
    return make_corpus("document", phones, [[(0, 0, edges[-1], 0)]])


def test_fragments_may_overlap_although_they_have_no_phone_in_common() -> None:
    """30 ms and half of a phone are not in a fragment: two may share so much on either side."""
    corpus = laid_end_to_end([10, 10, 600, 600, 10, 10], [0, 0, 0, 0, 0, 0])
    discovered = make_discovered(corpus, [[(0, 0, 920), (0, 320, 1240)]])
    assert discovered.first.tolist() == [0, 3]
    assert discovered.last.tolist() == [3, 6]
    assert len(whole(MatchedWindows, corpus, discovered).key) == 0


def test_fragments_may_have_a_phone_in_common_although_they_do_not_overlap() -> None:
    """Their windows then share more than half: completed, but not gold."""
    corpus = laid_end_to_end([100, 100, 1000, 100, 100], [0, 1, 0, 1, 0])
    found = whole(MatchedWindows, corpus, make_discovered(corpus, [[(0, 0, 700), (0, 700, 1400)]]))
    assert windows_of(found, corpus, 0, 0) == ({(0, 3), (2, 3)}, set())


@given(st.data())
def test_gold_as_discovered_is_matched_exactly(data: st.DataObject) -> None:
    """Where every type of 3 to 20 phones is a class, all that is completed is gold, and all gold is completed."""
    corpus = read(data.draw(corpora("document")), DEFAULT_READINGS)
    rule = Rule(corpus)
    groups = [group for group in rule.all_windows().values() if len(group) > 1]
    classes = [[rule.times(window) for window in group] for group in groups]
    found = whole(MatchedWindows, corpus, make_discovered(corpus, classes))
    for number in range(len(corpus.folds)):
        windows, both = found.counts(corpus, number)
        there = gold(corpus).flat[number, : len(both)]
        np.testing.assert_array_equal(both, there)
        np.testing.assert_array_equal(windows >= both, True)
        if not any(overlapping(rule, group) for group in groups):
            np.testing.assert_array_equal(windows, both)


def overlapping(rule: Rule, group: list[Window]) -> bool:
    """Whether windows of one type share any phone: what is completed may then overlap, though they do not."""
    starts = sorted(start for start, _ in group)
    return any(later - earlier < group[0][1] for earlier, later in pairwise(starts))


@given(st.data())
def test_the_order_of_classes_and_a_class_given_twice_change_nothing(data: st.DataObject) -> None:
    corpus = data.draw(corpora("document"))
    discovered = data.draw(systems(corpus))
    d = discovered
    classes = [
        [(int(d.file[x]), int(d.start[x]), int(d.end[x])) for x in d.member_fragment[d.member_cluster == number]]
        for number in range(len(d.classes))
    ]
    turned = make_discovered(corpus, [*reversed(classes), classes[0], [classes[0][0]] if classes[0] else []])
    found, expected = (whole(MatchedWindows, corpus, each) for each in (turned, discovered))
    for name in ("key", "completed", "gold"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
