"""GAP over cells, executors and conditions against its definition: ranks, ties, onsets that are used once."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.execution.executor import Executor, SerialExecutor, ThreadExecutor, Unseen
from swsdask.measures import interpretation
from swsdask.measures.generalised_average_precision import GeneralisedAveragePrecision
from swsdask.measures.measure import Scored
from swsdask.model.ranked_measures import Penalty, ReplayRule, gaussian, rectangular, table, triangular
from swsdask.model.settings import EngineSettings, EvaluationSettings
from swsdask.model.trials import Condition, Reference
from swsdask.scoring.score import count_archive
from tests import engines
from tests.alignment import Row
from tests.conftest import examples
from tests.literal_gap import earnings, gap_of
from tests.worlds import numbers

GROUPS = [0, 1, 0, 1]
"""Of three documents and the unknown ones."""

ROWS = st.tuples(
    st.integers(0, 3),
    st.integers(-1, 2),
    st.integers(1, 2),
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from([-1.5, -0.0, 0.0, 0.25, 0.5, 1.0]) | st.floats(-3, 3),
    st.integers(0, 1),
    st.sampled_from([1, 1, 1, 0]),
)
OCCURRENCES = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), st.integers(0, 40), st.integers(0, 10))
PENALTIES = st.one_of(
    st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda w: triangular(*w)),
    st.integers(1, 15).map(lambda w: triangular(w, w)),
    st.integers(1, 15).map(rectangular),
    st.floats(0.5, 6.0).map(lambda sigma: gaussian(sigma, 10.0)),
    st.just(table([(-6, 0.5), (-4, 0.0), (-3, 0.0), (0, 1.0), (8, 0.9)])),
)


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[Reference, list[Row]]:
    occurrences = draw(st.lists(OCCURRENCES, min_size=1, max_size=20))
    evaluated = engines.evaluation(
        [(q, d, c, start, start + length) for q, d, c, start, length in occurrences],
        GROUPS,
        n_queries=4,
        outside=draw(st.sampled_from(["drop", "false_alarm"])),
    )
    rule = ReplayRule(draw(st.sampled_from([1, 1, 3, 10])), draw(PENALTIES))
    ids = tuple(draw(st.permutations(evaluated.document_ids)))
    return replace(evaluated, replay=rule, document_ids=ids), draw(st.lists(ROWS, max_size=40))


def scored(archive: engines.CellArchive, evaluated: Reference, executor: Executor, rows: int = 10**6) -> dict[str, str]:
    """Every number, to its last bit."""
    family = GeneralisedAveragePrecision()
    engine = EngineSettings(rows_per_task=rows)
    ((_, found),) = count_archive(archive, ["a"], evaluated, [family], executor, engine, Unseen())
    values = numbers([family], Scored(found, evaluated, EvaluationSettings()))
    return {f"{value.condition} {value.query} {value.measure}": value.value.hex() for value in values}


def literal(evaluated: Reference, rows: list[Row], condition: Condition, query: int) -> float:
    """GAP of one query, point by point."""
    step, penalty = evaluated.replay
    there = np.append(condition.groups[evaluated.group_of_document[:-1]], condition.groups[GROUPS[-1]])
    points = sorted(
        (-row[5], row[1] < 0, evaluated.document_ids[row[1]], row[3], row[1])
        for row in rows
        if row[0] == query and there[row[1]] and (row[7] or evaluated.rule.outside == "false_alarm")
    )
    earned = [0.0] * len(points)
    n_onsets = 0
    for document in range(evaluated.n_documents):
        onsets = evaluated.start[(evaluated.query == query) & (evaluated.document == document)].tolist()
        if not there[document]:
            continue
        n_onsets += len(onsets)
        ranks = [rank for rank, point in enumerate(points) if point[4] == document]
        times = [int(points[rank][3]) // step * step for rank in ranks]
        for rank, each in zip(ranks, earnings(times, [t // step * step for t in onsets], penalty), strict=True):
            earned[rank] = each
    return gap_of(earned, n_onsets) if n_onsets else math.nan


@examples(300)
@given(world=evaluations())
def test_gap_is_what_its_definition_says(world: tuple[Reference, list[Row]]) -> None:
    evaluated, rows = world
    found = scored(engines.archive_of({"a": rows}), evaluated, SerialExecutor())
    for condition in evaluated.conditions:
        expected = {q: literal(evaluated, rows, condition, q) for q in np.flatnonzero(condition.queries).tolist()}
        for query, value in expected.items():
            got = float.fromhex(found[f"{condition.name} q{query} gap"])
            assert got == pytest.approx(value, abs=1e-12, nan_ok=True)
        known = [value for value in expected.values() if not math.isnan(value)]
        mean = float.fromhex(found[f"{condition.name} None mgap"])
        assert mean == pytest.approx(sum(known) / len(known) if known else math.nan, abs=1e-12, nan_ok=True)


@examples(100)
@given(world=evaluations(), seed=st.integers(0, 10**6), rows_per_task=st.sampled_from([1, 4, 10**6]))
def test_cells_and_executors_change_no_bit(world: tuple[Reference, list[Row]], seed: int, rows_per_task: int) -> None:
    evaluated, rows = world
    whole = scored(engines.archive_of({"a": rows}), evaluated, SerialExecutor())
    chance = random.Random(seed)
    threads = ThreadExecutor(2)
    try:
        for executor in (SerialExecutor(), threads, engines.AnyOrder(chance, 3, 2)):
            assert scored(engines.archive_of({"a": rows}, chance), evaluated, executor, rows_per_task) == whole
    finally:
        threads.close()


def one_query(points: list[tuple[int, int, float]], onsets: list[tuple[int, int]], penalty: Penalty) -> float:
    """mGAP of points (document, start, score) and onsets (document, start) of the only query."""
    evaluated = engines.evaluation([(0, d, 1, start, start + 1) for d, start in onsets], [0, 0, 0], n_queries=2)
    rows: list[Row] = [(0, d, 1, start, 5, score, 1, 1) for d, start, score in points]
    found = scored(engines.archive_of({"a": rows}), replace(evaluated, replay=ReplayRule(1, penalty)), SerialExecutor())
    assert "all q1 gap" not in found
    assert found["all None mgap"] == found["all q0 gap"]
    return float.fromhex(found["all None mgap"])


def test_the_sources_example() -> None:
    """Fig. 1: onsets A2 and B2; 1 at the onset itself, 0.7 one step away, nothing at P."""
    penalty = table([(-20, 0.0), (-10, 0.7), (0, 1.0), (10, 0.7), (20, 0.0)])
    onsets = [(0, 100), (0, 300)]
    a1, p, b2, b3 = 90, 200, 300, 310
    assert one_query([(0, a1, 3.0), (0, p, 2.0), (0, b3, 1.0)], onsets, penalty) == pytest.approx(7 / 12, abs=1e-15)
    assert one_query([(0, p, 3.0), (0, b2, 2.0), (0, a1, 1.0)], onsets, penalty) == pytest.approx(8 / 15, abs=1e-15)


def test_an_onset_is_used_once_and_only_in_its_document() -> None:
    assert one_query([(0, 100, 3.0), (0, 100, 2.0)], [(0, 100)], triangular(50, 50)) == 1.0
    assert one_query([(1, 100, 3.0), (0, 100, 2.0)], [(0, 100)], triangular(50, 50)) == 0.5
    assert one_query([(0, 100, 3.0), (0, 110, 2.0)], [(0, 100), (0, 120)], triangular(50, 50)) == pytest.approx(0.95)
    assert one_query([(-1, 100, 3.0)], [(0, 100)], triangular(50, 50)) == 0.0
    assert one_query([], [(0, 100)], triangular(50, 50)) == 0.0


def test_equal_scores_rank_by_document_then_start() -> None:
    one = rectangular(5)
    assert one_query([(1, 100, 1.0), (0, 100, 1.0)], [(0, 100)], one) == 1.0
    assert one_query([(1, 100, 1.0), (0, 100, 1.0)], [(1, 100)], one) == 0.5
    assert one_query([(0, 200, 1.0), (0, 100, 1.0)], [(0, 200)], one) == 0.5
    assert one_query([(-1, 0, 1.0), (1, 100, 1.0)], [(1, 100)], one) == 1.0


def test_points_of_one_score_and_document_have_ranks_of_their_own() -> None:
    assert one_query([(0, 200, 1.0), (0, 100, 1.0)], [(0, 100), (0, 200)], rectangular(5)) == 1.0


def test_of_two_equally_near_onsets_the_one_that_earns_more_is_used() -> None:
    points, onsets = [(0, 100, 2.0), (0, 110, 1.0)], [(0, 90), (0, 110)]
    assert one_query(points, onsets, triangular(20, 11)) == 0.25
    """The second point is too late for the other one."""
    assert one_query(points, onsets, rectangular(15)) == 1.0
    """Where both earn the same, the earlier one is used, and leaves the other to the second point."""


def test_a_nearer_onset_that_earns_nothing_hides_a_farther_one() -> None:
    early_only = triangular(50, 1)
    assert one_query([(0, 105, 1.0)], [(0, 100), (0, 120)], early_only) == 0.0


def test_queries_without_onsets_are_reported() -> None:
    evaluated = engines.evaluation([(0, 0, 1, 10, 14)], [0, 0], n_queries=2)
    every = replace(evaluated.conditions[0], queries=np.array([True, True]))
    asked = EvaluationSettings(no_targets="false_alarms_only")
    notes = interpretation(replace(evaluated, conditions=(every,)), asked)
    assert "Left out of mGAP: 1 query without onsets, and so without GAP (q1)." in notes
    assert "onsets" not in " ".join(interpretation(evaluated, asked))


def test_of_a_document_trial_the_best_detection_is_the_point() -> None:
    evaluated = engines.evaluation([(0, 0, 1, 10, 14), (0, 1, 1, 10, 14)], [0, 0, 0], n_queries=1, trials="document")
    rows: list[Row] = [(0, 0, 1, 15, 5, 3.0, 1, 1), (0, 0, 1, 10, 5, 2.0, 1, 1), (0, 1, 1, 10, 5, 1.0, 1, 1)]
    evaluated = replace(evaluated, replay=ReplayRule(1, triangular(10, 10)))
    found = scored(engines.archive_of({"a": rows}), evaluated, SerialExecutor())
    assert float.fromhex(found["all None mgap"]) == (0.5 + (0.5 + 1.0) / 2) / 2
