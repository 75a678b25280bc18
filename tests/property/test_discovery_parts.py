"""Placing, coverage, token, type and boundary against literal oracles; any cut into cells; what must not matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.measures import select
from swsdask.discovery.placing import locate
from swsdask.model.discovery import NO_FOLD, Corpus, Definition, Discovered, Readings
from tests import literal_discovery as literal
from tests.discovery_worlds import World, worlds
from tests.readings import READINGS, read

DEFINITIONS: tuple[Definition, ...] = ("document", "tde2015", "tdev2")
FAMILIES = ("coverage", "token", "type", "boundary")
GIVEN = (("speakers",), ("split", "folds", "within"), ("split", "within"))
definitions = pytest.mark.parametrize("definition", DEFINITIONS)


def values(corpus: Corpus, discovered: Discovered, work: int = 10**9) -> Iterator[tuple[int, str, list[float]]]:
    for family in select(FAMILIES, corpus.definition)[1]:
        merged = reduce(type(family).statistic.merge, parts(family.statistic, corpus, discovered, work))
        for fold_set in range(len(corpus.folds)):
            for name, numbers in family.values(merged, corpus, fold_set).items():
                yield fold_set, name, numbers.tolist()


def parts(statistic: Any, corpus: Corpus, discovered: Discovered, work: int) -> list[Any]:
    return [statistic.from_cell(cell, corpus, discovered) for cell in statistic.cells(corpus, discovered, work)]


def told(corpus: Corpus, world: World) -> list[tuple[int, str, list[float]]]:
    return list(values(corpus, locate(world.fragments(corpus), corpus)))


def flat(statistic: Any) -> list[Any]:
    """The arrays of a statistic."""
    if isinstance(statistic, np.ndarray):
        return [statistic]
    inner = statistic if isinstance(statistic, tuple) else [getattr(statistic, f.name) for f in fields(statistic)]
    return [array for one in inner for array in flat(one)]


@definitions
@given(world=worlds(), given_files=st.sampled_from(GIVEN))
def test_fragments_are_placed_where_every_rule_says(
    definition: Definition, world: World, given_files: tuple[str, ...]
) -> None:
    corpus = world.corpus(definition, *given_files)
    placed, oracle = locate(world.fragments(corpus), corpus), literal.placed(world, corpus)
    stretches = [
        (corpus.files[f], s, e)
        for f, s, e in zip(placed.file.tolist(), placed.start.tolist(), placed.end.tolist(), strict=True)
    ]
    assert stretches == sorted(oracle.phones)
    assert placed.dropped == oracle.dropped
    phones = sorted(world.phones)
    spelled = []
    for row, stretch in enumerate(stretches):
        assert phones[placed.first[row] : placed.last[row]] == oracle.phones[stretch]
        spelled.append(literal.labels(oracle.phones[stretch]))
    appearing = list(dict.fromkeys(spelled))
    assert placed.type.tolist() == [appearing.index(labels) for labels in spelled]
    members = zip(placed.member_cluster.tolist(), placed.member_fragment.tolist(), strict=True)
    assert [(cluster, stretches[row]) for cluster, row in members] == sorted(oracle.members)
    for fold_set, folds in enumerate(corpus.folds):
        expected = [literal.fold_of(stretch, folds, corpus.files) for stretch in stretches]
        assert placed.fold[fold_set].tolist() == [NO_FOLD if fold is None else fold for fold in expected]


@definitions
@given(world=worlds(), given_files=st.sampled_from(GIVEN), readings=READINGS)
def test_numbers_are_the_formulas(
    definition: Definition, world: World, given_files: tuple[str, ...], readings: Readings
) -> None:
    corpus = read(world.corpus(definition, *given_files), readings)
    oracles = [literal.numbers(world, corpus, fold_set) for fold_set in range(len(corpus.folds))]
    found = told(corpus, world)
    assert len(found) == 7 * len(corpus.folds)
    for fold_set, name, numbers in found:
        np.testing.assert_array_equal(numbers, oracles[fold_set][name], err_msg=f"{name} of set {fold_set}")


@definitions
@given(world=worlds(), readings=READINGS, work=st.integers(1, 3000), seed=st.integers(0, 1000))
def test_any_cut_gives_the_same_statistics(
    definition: Definition, world: World, readings: Readings, work: int, seed: int
) -> None:
    corpus = read(world.corpus(definition, "split", "folds", "within"), readings)
    discovered = locate(world.fragments(corpus), corpus)
    for family in select(FAMILIES, definition)[1]:
        statistic = family.statistic
        (whole,) = parts(statistic, corpus, discovered, 10**9)
        cut = parts(statistic, corpus, discovered, work)
        Random(seed).shuffle(cut)
        while len(cut) > 1:
            cut.append(cut.pop(0).merge(cut.pop(seed % len(cut))))
        for one, other in zip(flat(cut[0]), flat(whole), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@definitions
@given(world=worlds(), seed=st.integers(0, 1000))
def test_the_order_of_lines_does_not_matter(definition: Definition, world: World, seed: int) -> None:
    rng = Random(seed)

    def mixed(rows: list[Any]) -> list[Any]:
        return rng.sample(rows, len(rows))

    other = replace(
        world,
        phones=mixed(world.phones),
        words=mixed(world.words),
        classes=mixed([(name, mixed(members)) for name, members in world.classes]),
    )
    same = told(world.corpus(definition, "speakers"), world)
    np.testing.assert_equal(told(other.corpus(definition, "speakers"), other), same)


def moved(world: World, file: str, by: int, scale: int = 1) -> World:
    def move(rows: list[Any]) -> list[Any]:
        return [(row[0], *(scale * t + (by if row[0] == file else 0) for t in row[1:3]), *row[3:]) for row in rows]

    return replace(
        world,
        phones=move(world.phones),
        words=move(world.words),
        classes=[(name, move(members)) for name, members in world.classes],
    )


@given(world=worlds(), by=st.integers(0, 10**6))
def test_when_a_file_begins_does_not_matter(world: World, by: int) -> None:
    later = moved(world, world.phones[0][0], by)
    same = told(world.corpus("document", "speakers"), world)
    np.testing.assert_equal(told(later.corpus("document", "speakers"), later), same)


@given(world=worlds(begins=(0, 500, 12_340)), sixteenths=st.integers(0, 10**4))
def test_when_a_file_begins_does_not_matter_to_tdev2_where_doubles_are_exact(world: World, sixteenths: int) -> None:
    """In times that are multiples of a sixteenth of a second, of 625 ticks, there is nothing to round."""
    exact = moved(world, "", 0, 625)
    later = moved(exact, world.phones[0][0], 625 * sixteenths)
    np.testing.assert_equal(told(later.corpus("tdev2"), later), told(exact.corpus("tdev2"), exact))
