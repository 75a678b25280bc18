"""What is shown beside the numbers: sizes by fold, histograms, and the classes that are most and least alike."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given

from swsdask.discovery import score
from swsdask.discovery.measures.parsing import sizes
from swsdask.discovery.placing import locate
from swsdask.discovery.score import Exemplars, histograms
from swsdask.model.discovery import Corpus, Definition, Discovered
from tests.conftest import examples
from tests.discoveries import DEFINITIONS, corpus_of
from tests.discovery_worlds import World, worlds


def literal_distance(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def strings(corpus: Corpus, found: Discovered) -> list[tuple[str, ...]]:
    labels = [corpus.phones.labels[label] for label in corpus.phones.label]
    return [tuple(labels[a:b]) for a, b in zip(found.first, found.last, strict=True)]


def members(found: Discovered) -> dict[int, list[int]]:
    of: dict[int, list[int]] = {}
    for cluster, fragment in zip(found.member_cluster.tolist(), found.member_fragment.tolist(), strict=True):
        of.setdefault(cluster, []).append(fragment)
    return of


@pytest.mark.parametrize("definition", DEFINITIONS)
@examples(40)
@given(world=worlds())
def test_sizes_and_histograms(definition: Definition, world: World) -> None:
    corpus = corpus_of(world, definition)
    found = locate(world.fragments(corpus), corpus)
    told, classes = strings(corpus, found), members(found)
    for number, folds in enumerate(corpus.folds):
        totals, by_fold = sizes(found, corpus, number)
        fold = found.fold[number].tolist()
        for place, those in [(None, set(range(len(folds.names)))), *((n, {n}) for n in range(len(folds.names)))]:
            inside = [row for row in range(len(found)) if fold[row] in those]
            expected = {
                "n_classes": sum(any(fold[row] in those for row in rows) for rows in classes.values()),
                "n_fragments": len(inside),
                "n_words": len({told[row] for row in inside} - {()}),
            }
            assert {n: totals[n] if place is None else by_fold[n][place] for n in expected} == expected
    rows = histograms(found).to_pylist()
    drawn = {kind: {r["x"]: r["y"] for r in rows if r["curve"] == kind} for kind in ("class_size", "fragment_length")}
    assert drawn["class_size"] == Counter(map(len, classes.values()))
    assert drawn["fragment_length"] == Counter(map(len, told))


@examples(60)
@given(world=worlds())
def test_exemplars(world: World) -> None:
    corpus = corpus_of(world, "document")
    found = locate(world.fragments(corpus), corpus)
    told, classes = strings(corpus, found), members(found)
    means = {}
    for cluster, rows in classes.items():
        if len(rows) > 1:
            pairs = [(told[a], told[b]) for a, b in combinations(rows, 2)]
            distances = [literal_distance(a, b) / max(len(a), len(b), 1) for a, b in pairs]
            means[cluster] = sum(distances) / len(pairs)
    cell = next(Exemplars.cells(corpus, found, 10**9))
    whole = Exemplars.from_cell(cell, corpus, found)
    for kind, sign in ((whole.best, 1), (whole.worst, -1)):
        assert {each.cluster: each.distance for each in kind} == pytest.approx(
            {e.cluster: means[e.cluster] for e in kind}
        )
        order = sorted(means, key=lambda c: (sign * round(means[c], 9), -len(classes[c]), c))[: score.CLASSES_KEPT]
        assert [each.cluster for each in kind] == order
    for each in whole.report(corpus, found)["best"]:
        rows = classes[found.classes.index(each["class"])]
        spelled = Counter(" ".join(told[row]) for row in rows)
        assert each["transcriptions"] == len(spelled)
        assert {one["phones"]: one["members"] for one in each["common"]}.items() <= spelled.items()


def test_some_members_represent_a_large_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five members three are taken, at 0, 5 // 3 and 10 // 3."""
    monkeypatch.setattr(score, "MOST_MEMBERS", 3)
    phones = [("f", 1000 * n, 1000 * n + 1000, label) for n, label in enumerate("aabab")]
    spoken = [(start, end) for _, start, end, _ in phones]
    world = World(phones, phones, [("1", [("f", *times) for times in spoken])], [], [[("f", 0, 9000)]], [], {"f": "s"})
    corpus = world.corpus("tdev2")
    found = locate(world.fragments(corpus), corpus)
    whole = Exemplars.from_cell(next(Exemplars.cells(corpus, found, 10)), corpus, found)
    assert [(each.distance, each.members) for each in whole.best] == [(0.0, 5)]
