"""NED and grouping against sets of pairs that are enumerated, however the work is cut; and what must not matter."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.measures.clustering import Grouping, GroupingTde, PairSets
from swsdask.discovery.measures.ned import EditDistances, Ned
from swsdask.discovery.placing import locate
from swsdask.model.discovery import Corpus, Definition, Discovered
from tests.conftest import examples
from tests.discoveries import whole
from tests.discovery_worlds import World, worlds
from tests.literal_pairs import DEFINITIONS, Literal, corpora, corpus_of, exact, system_of, systems

STATISTICS: tuple[type[Any], ...] = (EditDistances, PairSets)
every_definition = pytest.mark.parametrize("definition", DEFINITIONS)


def columns(statistic: EditDistances | PairSets) -> list[list[int]]:
    if isinstance(statistic, EditDistances):
        return [x.tolist() for x in (statistic.slot, statistic.length, statistic.distance, statistic.pairs)]
    return [x.tolist() for one in statistic.sets for x in (one.flat, one.group, one.pairs)]


def grouping(corpus: Corpus) -> Grouping | GroupingTde:
    return GroupingTde() if corpus.definition == "tde2015" else Grouping()


def numbers(corpus: Corpus, discovered: Discovered) -> list[dict[str, list[float]]]:
    """Every number of every fold, by set of folds."""
    ned, pairs = (whole(statistic, corpus, discovered) for statistic in STATISTICS)
    return [
        {
            name: values.tolist()
            for found in (Ned().values(ned, corpus, s), grouping(corpus).values(pairs, corpus, s))
            for name, values in found.items()
        }
        for s in range(len(corpus.folds))
    ]


def check_everything(corpus: Corpus, discovered: Discovered) -> None:
    ned, pairs = (whole(statistic, corpus, discovered) for statistic in STATISTICS)
    for number, folds in enumerate(corpus.folds):
        values = {**Ned().values(ned, corpus, number), **grouping(corpus).values(pairs, corpus, number)}
        for fold in range(len(folds.names)):
            literal = Literal(corpus, discovered, number, fold)
            mean, n = literal.ned()
            found, gold = literal.found(), literal.gold()
            assert values["n_pairs"][fold] == n
            np.testing.assert_array_equal(values["ned"][fold], exact(mean))
            expected = exact(literal.weighed(found, found & gold)), exact(literal.weighed(gold, found & gold))
            given_now = values["grouping_precision"][fold], values["grouping_recall"][fold]
            np.testing.assert_allclose(given_now, expected, rtol=1e-15)
            for counted, own in zip(pairs.sets, (found, gold, found & gold), strict=True):
                assert pairs.n_pairs(counted, corpus, number)[fold] == len(own)
                assert pairs.n_flat(counted, corpus, number)[fold] == len(literal.flat(own))


@every_definition
@given(data=st.data())
def test_every_number_is_what_the_sets_say(definition: Definition, data: st.DataObject) -> None:
    corpus = data.draw(corpora(definition))
    check_everything(corpus, data.draw(systems(corpus)))


@every_definition
@given(world=worlds())
@examples(25)
def test_numbers_of_whole_corpora_are_those_of_the_sets(definition: Definition, world: World) -> None:
    corpus = world.corpus(definition, *(() if definition == "tdev2" else ("folds", "within")))
    check_everything(corpus, locate(world.fragments(corpus), corpus))


@every_definition
@given(data=st.data())
@examples(40)
def test_any_cut_and_order_gives_the_same(definition: Definition, data: st.DataObject) -> None:
    corpus = data.draw(corpora(definition))
    discovered = data.draw(systems(corpus, most_fragments=30))
    for statistic in STATISTICS:
        cells = data.draw(st.permutations(list(statistic.cells(corpus, discovered, data.draw(st.integers(1, 20))))))
        parts = [statistic.from_cell(cell, corpus, discovered) for cell in cells]
        cut = data.draw(st.integers(0, len(parts) - 1))
        left = [reduce(statistic.merge, part) for part in (parts[:cut], parts[cut:]) if part]
        merged = reduce(lambda one, other: other.merge(one), left)
        assert columns(merged) == columns(whole(statistic, corpus, discovered))


@pytest.mark.parametrize("definition", ["document", "tde2015"])
@given(data=st.data())
@examples(40)
def test_a_class_given_twice_and_classes_given_as_pairs_change_nothing(
    definition: Definition, data: st.DataObject
) -> None:
    corpus = data.draw(corpora(definition))
    discovered = data.draw(systems(corpus))
    rows = list(
        dict.fromkeys(zip(discovered.member_cluster.tolist(), discovered.member_fragment.tolist(), strict=True))
    )
    classes = [[x for c, x in rows if c == number] for number in range(len(discovered.classes))]
    classes = [own for own in classes if len(own) > 1]
    chosen = data.draw(st.lists(st.sampled_from(classes), max_size=3)) if classes else []
    as_pairs = [[a, b] for own in classes for n, a in enumerate(own) for b in own[n + 1 :]]
    plain, doubled, paired = (with_classes(discovered, own) for own in (classes, classes + chosen, as_pairs))
    for statistic in STATISTICS:
        expected = columns(whole(statistic, corpus, plain))
        assert columns(whole(statistic, corpus, doubled)) == expected
        if definition == "document":
            assert columns(whole(statistic, corpus, paired)) == expected
    assert str(numbers(corpus, paired)) == str(numbers(corpus, plain))


def with_classes(discovered: Discovered, classes: list[list[int]]) -> Discovered:
    """The same fragments in other classes, of which all that were in a class stay in one."""
    members = np.array(sorted((c, x) for c, own in enumerate(classes) for x in own), np.int64).reshape(-1, 2)
    names = tuple(map(str, range(len(classes))))
    return replace(
        discovered,
        classes=names,
        member_cluster=members[:, 0].astype(np.int32),
        member_fragment=members[:, 1].copy(),
    )


@every_definition
def test_a_giant_class_in_tiles(definition: Definition) -> None:
    """Of short and long types, given twice, with others that share parts of it."""
    rng = np.random.default_rng(5)
    corpus = corpus_of(definition, [rng.integers(0, 4, 200).tolist() for _ in range(3)])
    starts = rng.integers(0, 60_000, 90)
    rows = sorted((int(rng.integers(3)), int(start), int(start + rng.integers(1, 4_000))) for start in starts)
    lengths = np.where(rng.random(90) < 0.2, rng.integers(60, 140, 90), rng.integers(1, 5, 90))
    first = [200 * row[0] + int(rng.integers(0, 200 - length)) for row, length in zip(rows, lengths, strict=True)]
    ranges = [(a, a + int(length)) for a, length in zip(first, lengths, strict=True)]
    fold = [rng.integers(0, len(folds.names), 90).tolist() for folds in corpus.folds]
    everything = list(range(90))
    classes = [everything, everything, everything[20:50], everything[40:80], [3, 4], [4, 4, 89]]
    discovered = system_of(corpus, rows, ranges, fold, classes)
    check_everything(corpus, discovered)
    for statistic in STATISTICS:
        expected = columns(whole(statistic, corpus, discovered))
        for work in (3, 40):
            assert len(list(statistic.cells(corpus, discovered, work))) > 5
            assert columns(whole(statistic, corpus, discovered, work)) == expected


@every_definition
@given(world=worlds(), data=st.data())
@examples(25)
def test_the_order_of_classes_and_members_does_not_matter(
    definition: Definition, world: World, data: st.DataObject
) -> None:
    other = replace(
        world, classes=[(n, data.draw(st.permutations(m))) for n, m in data.draw(st.permutations(world.classes))]
    )
    found = []
    for one in (world, other):
        corpus = one.corpus(definition)
        found.append(str(numbers(corpus, locate(one.fragments(corpus), corpus))))
    assert found[0] == found[1]


@pytest.mark.parametrize("definition", ["document", "tdev2"])
@given(world=worlds())
@examples(25)
def test_the_names_of_files_do_not_matter_but_for_tde(definition: Definition, world: World) -> None:
    names = sorted({row[0] for row in world.phones})
    new = dict(zip(names, reversed(names), strict=True))

    def renamed(rows: Any) -> Any:
        return [(new[row[0]], *row[1:]) for row in rows]

    other = replace(
        world,
        phones=renamed(world.phones),
        words=renamed(world.words),
        classes=[(name, renamed(members)) for name, members in world.classes],
    )
    found = []
    for one in (world, other):
        corpus = one.corpus(definition, n_folds=1)
        found.append(str(numbers(corpus, locate(one.fragments(corpus), corpus))))
    assert found[0] == found[1]


@every_definition
@given(world=worlds())
@examples(25)
def test_gold_as_found_is_perfect(definition: Definition, world: World) -> None:
    corpus = world.corpus(definition)
    d = locate(world.fragments(corpus), corpus)
    alike: dict[int, list[tuple[str, int, int]]] = {}
    for f, start, end, kind, a, b in zip(d.file, d.start, d.end, d.type, d.first, d.last, strict=True):
        if not corpus.silence[corpus.phones.label[a:b]].all():
            alike.setdefault(int(kind), []).append((corpus.files[f], int(start), int(end)))
    perfect = replace(world, classes=[(str(kind), members) for kind, members in alike.items()])
    discovered = locate(perfect.fragments(corpus), corpus)
    for number, folds in enumerate(corpus.folds):
        values = numbers(corpus, discovered)[number]
        for fold in range(len(folds.names)):
            assert values["ned"][fold] == 0 or values["n_pairs"][fold] == 0
            recall = values["grouping_recall"][fold]
            assert abs(recall - 1) < 1e-15 or np.isnan(recall)
