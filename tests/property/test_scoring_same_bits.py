"""Law 1: cells, their order, tasks, groups of systems, executors, workers and the shape of the tree change no bit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.execution.executor import SerialExecutor, ThreadExecutor
from swsdask.model.ranked_measures import RankRule
from swsdask.model.trials import Reference
from swsdask.scoring import detections, rounds
from tests import engines
from tests.alignment import Row
from tests.conftest import examples

GROUPS = [0, 1, 0, 1]
SCORES = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 0.5, 0.1 + 0.2, 1.0]) | st.floats(-3, 3)
ROWS = st.tuples(
    st.integers(0, 3),
    st.integers(-1, 2),
    st.integers(1, 2),
    st.integers(0, 60),
    st.integers(0, 12),
    SCORES,
    st.integers(0, 1),
    st.sampled_from([1, 1, 1, 0]),
)
OCCURRENCES = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), st.integers(0, 60), st.integers(0, 10))


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[Reference, dict[str, list[Row]]]:
    occurrences = draw(st.lists(OCCURRENCES, min_size=1, max_size=14))
    trials = draw(st.sampled_from(["virtual", "virtual", "document"]))
    evaluated = engines.evaluation(
        [(q, d, c, start, start + length) for q, d, c, start, length in occurrences],
        GROUPS,
        n_queries=4,
        trials=trials,
        objective=draw(st.sampled_from(["nist", "score"])),
        outside=draw(st.sampled_from(["drop", "false_alarm"])),
    )
    order = draw(st.sampled_from([None, "document-descending", "document-ascending", "input"]))
    rules = ["ignore"] if trials == "virtual" else ["false-positive", "first"]
    duplicates = draw(st.sampled_from([None, *rules]))
    evaluated = replace(evaluated, ranking=RankRule(order, draw(st.booleans()), duplicates))
    names = draw(st.permutations(["a", "b", "c"]))
    return evaluated, {name: draw(st.lists(ROWS, max_size=25)) for name in names[: draw(st.integers(1, 3))]}


@st.composite
def ways(draw: st.DrawFn) -> tuple[engines.Executor, int]:
    """An executor, and how many rows a task has."""
    workers = draw(st.integers(1, 5))
    made = [
        SerialExecutor(),
        ThreadExecutor(workers),
        engines.AnyOrder(random.Random(draw(st.integers(0, 10**6))), draw(st.integers(2, 6)), workers),
    ]
    return draw(st.sampled_from(made)), draw(st.sampled_from([1, 3, 10, 10**6]))


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detections, "FEW_ROWS", 1)
    monkeypatch.setattr(rounds, "MOST_SYSTEMS", 2)


@examples(120)
@given(world=evaluations(), way=ways(), seed=st.integers(0, 10**6))
def test_statistics_do_not_depend_on_how_they_were_computed(
    world: tuple[Reference, dict[str, list[Row]]], way: tuple[engines.Executor, int], seed: int
) -> None:
    evaluated, systems = world
    executor, rows_per_task = way
    whole = engines.statistics(engines.archive_of(systems), evaluated, SerialExecutor())
    cut = engines.archive_of(systems, random.Random(seed))
    try:
        assert engines.statistics(cut, evaluated, executor, engines.settings(rows_per_task)) == whole
    finally:
        executor.close()


@examples(60)
@given(world=evaluations(), way=ways(), seed=st.integers(0, 10**6))
def test_tables_do_not_depend_on_how_they_were_computed(
    world: tuple[Reference, dict[str, list[Row]]], way: tuple[engines.Executor, int], seed: int
) -> None:
    evaluated, systems = world
    executor, rows_per_task = way
    ties = {"ties": evaluated.ranking.order or "group"}
    whole = engines.score(
        engines.archive_of(systems), evaluated, SerialExecutor(), engines.settings(average_precision=ties)
    )
    cut = engines.archive_of(systems, random.Random(seed))
    try:
        using = engines.settings(rows_per_task, average_precision=ties)
        assert engines.score(cut, evaluated, executor, using) == whole
    finally:
        executor.close()


@given(parts=st.lists(st.integers()), fan_in=st.integers(2, 9))
def test_a_tree_loses_and_doubles_nothing(parts: list[int], fan_in: int) -> None:
    sizes = []

    def join(some: list[list[int]]) -> list[int]:
        sizes.append(len(some))
        return [each for part in some for each in part]

    tree: engines.Tree[list[int]] = engines.Tree(join, fan_in)
    for part in parts:
        tree.add([part])
    total = tree.total()
    assert sorted(total or []) == sorted(parts)
    assert (total is None) == (not parts)
    assert all(2 <= size <= fan_in for size in sizes)
