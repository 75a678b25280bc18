"""Law 1 for every statistic: any cells, any order of rows, any tree of merges give the same bits; and what they count,
against counting by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.statistics.counts import Counts, class_layers, class_targets
from swsdask.statistics.ladder import Hits, Ladder, QueryLadder
from swsdask.statistics.resampling import StratumLadder
from tests.conftest import examples
from tests.engines import plain
from tests.property.worlds import World, cells, worlds
from tests.worlds import statistics

DECISIONS = (-1, 0, 1)


@examples(150)
@given(worlds(decisions=DECISIONS).flatmap(lambda w: st.tuples(st.just(w), cells(w.rows))), st.integers(0, 99))
def test_any_split_gives_the_same_bits(split: tuple[World, list[list[Any]]], tree: int) -> None:
    world, parts = split
    whole = statistics([world.rows], world.reference)
    merged = statistics(parts, world.reference, tree)
    assert {kind: plain(value) for kind, value in merged.items()} == {kind: plain(v) for kind, v in whole.items()}


@given(worlds(decisions=DECISIONS))
def test_counts(world: World) -> None:
    counts: Counts = statistics([world.rows], world.reference)[Counts]
    for q, g in np.ndindex(*world.reference.targets.shape):
        here = [(score, decision, mapped) for a, b, score, decision, mapped in world.rows if (a, b) == (q, g)]
        for decision in DECISIONS:
            assert counts.mapped[q, g, decision] == sum(d == decision and mapped for _, d, mapped in here)
            assert counts.unmapped[q, g, decision] == sum(d == decision and not mapped for _, d, mapped in here)
        assert counts.min_yes[q, g] == min((s for s, d, _ in here if d == 1), default=math.inf)
        assert counts.max_no[q, g] == max((s for s, d, _ in here if d == 0), default=-math.inf)
        assert counts.lowest[q, g] == min((s for s, _, _ in here), default=math.inf)
        assert counts.highest[q, g] == max((s for s, _, _ in here), default=-math.inf)
    assert counts.has_decisions == all(row[3] >= 0 for row in world.rows)


@given(worlds())
def test_hits(world: World) -> None:
    hits: Hits = statistics([world.rows], world.reference)[Hits]
    expected = sorted((row[2], row[0], row[1]) for row in world.rows if row[4])
    assert list(zip(hits.score.tolist(), hits.query.tolist(), hits.group.tolist(), strict=True)) == expected


@given(worlds())
def test_ladder(world: World) -> None:
    reference = world.reference
    ladder: Ladder = statistics([world.rows], reference)[Ladder]
    rows = [(int(reference.class_of[row[0], row[1]]), row[2], row[4]) for row in world.rows]
    rows = [row for row in rows if row[0] >= 0]
    rungs = {score for _, score, mapped in rows if mapped} | set(reference.thresholds) | {math.inf}
    for condition in reference.conditions:
        inside = [row[2] for row in world.rows if condition.queries[row[0]] and condition.groups[row[1]]]
        rungs |= {min(inside), max(inside)} if inside else set()
    assert ladder.rungs.tolist() == sorted(rungs)

    assert ladder.classes.tolist() == sorted({number for number, _, _ in rows})
    layer, n_layers = class_layers(reference)
    assert ladder.highest.shape == (n_layers, len(ladder.rungs))
    low = -math.inf
    for slot, high in enumerate(ladder.rungs.tolist()):
        inside = [(number, score) for number, score, _ in rows if low <= score < high]
        for line, number in enumerate(ladder.classes.tolist()):
            assert ladder.counts[line, slot] == sum(n == number for n, _ in inside)
        for each in range(n_layers):
            assert ladder.highest[each, slot] == max((s for n, s in inside if layer[n] == each), default=-math.inf)
        low = high


@given(worlds())
def test_stratum_ladder(world: World) -> None:
    found = statistics([world.rows], world.reference)
    ladder: StratumLadder = found[StratumLadder]
    rungs = ladder.rungs.tolist()
    assert rungs == sorted({*found[Ladder].rungs.tolist(), *found[Counts].highest[np.isfinite(found[Counts].highest)]})
    slots = [
        ((q * world.reference.n_groups + g) * len(rungs) + sum(rung <= score for rung in rungs))
        for q, g, score, _, _ in world.rows
    ]
    assert ladder.cells.tolist() == sorted(set(slots))
    assert ladder.counts.tolist() == [slots.count(cell) for cell in sorted(set(slots))]


@given(worlds())
def test_query_ladder(world: World) -> None:
    reference = world.reference
    ladder: QueryLadder = statistics([world.rows], reference)[QueryLadder]
    for q in range(reference.n_queries):
        rows = [row for row in world.rows if row[0] == q]
        tops = {max(row[2] for row in rows if row[1] == g) for g in {row[1] for row in rows}}
        rungs = ladder.rungs[ladder.offsets[q] : ladder.offsets[q + 1]].tolist()
        hits = {row[2] for row in rows if row[4]}
        assert rungs == sorted(hits | tops | set(reference.thresholds) | {math.inf})
        low = -math.inf
        for slot, high in enumerate(rungs):
            for g in range(reference.n_groups):
                expected = sum(row[1] == g and low <= row[2] < high for row in rows)
                assert ladder.counts[ladder.offsets[q] + slot, g] == expected
            low = high


@given(worlds(no_targets=True))
def test_numbers_of_conditions_follow_from_those_of_classes(world: World) -> None:
    reference = world.reference
    table = class_targets(reference)
    for number, condition in enumerate(reference.conditions):
        n_act = reference.condition_targets(condition)
        for q, g in np.ndindex(*reference.targets.shape):
            if reference.class_of[q, g] >= 0:
                expected = n_act[q] if condition.queries[q] and condition.groups[g] else -1
                assert table[number, reference.class_of[q, g]] == expected
