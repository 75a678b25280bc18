"""Strategies: random small evaluations with ties, empty queries, several groups and conditions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from swsdask.model.trials import Reference
from tests.worlds import Row, make_reference

SCORES = st.one_of(
    st.sampled_from([-1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0]),
    st.floats(-1e308, 1e308),
    st.floats(-3.0, 3.0),
)


@dataclass(frozen=True)
class World:
    """Rows clustered by query, and a reference that has room for their hits."""

    rows: list[Row]
    reference: Reference


@st.composite
def worlds(draw: st.DrawFn, *, no_targets: bool = False, decisions: tuple[int, ...] = (0, 1)) -> World:
    """`no_targets`: whether averages count queries without targets."""
    n_queries, n_groups = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    query, group = st.integers(0, n_queries - 1), st.integers(0, n_groups - 1)
    row = st.tuples(query, group, SCORES, st.sampled_from(decisions), st.booleans())
    rows = draw(st.lists(row, max_size=40))
    rows.sort(key=lambda each: each[0])
    targets = np.zeros((n_queries, n_groups), np.int64)
    for q, g, _, _, mapped in rows:
        targets[q, g] += mapped
    missed = draw(st.lists(st.tuples(query, group, st.integers(1, 4)), max_size=6))
    for q, g, n in missed:
        targets[q, g] += n
    masks = st.lists(st.booleans(), min_size=n_queries, max_size=n_queries)
    parts = st.lists(st.booleans(), min_size=n_groups, max_size=n_groups)
    asked = [([True] * n_queries, [True] * n_groups), *draw(st.lists(st.tuples(masks, parts), max_size=3))]
    conditions = {}
    for number, (queries, groups) in enumerate(asked):
        n_act = targets[:, np.array(groups)].sum(axis=1)
        counted = [bool(chosen and (no_targets or n > 0)) for chosen, n in zip(queries, n_act, strict=True)]
        n_trials = int(n_act.max()) + draw(st.integers(1, 50))
        conditions["all" if number == 0 else f"part {number}"] = (counted, groups, n_trials)
    thresholds = draw(st.lists(SCORES, max_size=2))
    return World(rows, make_reference(targets.tolist(), conditions, thresholds))


@st.composite
def cells(draw: st.DrawFn, rows: list[Row]) -> list[list[Row]]:
    """The rows in any order, cut into any cells, some of them empty."""
    shuffled = draw(st.permutations(rows))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    return [shuffled[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
