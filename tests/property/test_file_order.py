"""The numbers that depend on the order of a file, against a literal list of trials: any split gives the same bits."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import swsdask as sws
from swsdask.archive.ingest import ingest
from swsdask.archive.versions import Layout
from swsdask.formats.find import find_reference
from swsdask.formats.runs.read import RunFile
from swsdask.measures.mediaeval_tool import MediaEvalTool
from tests.conftest import examples
from tests.document_trials import Literal, World
from tests.literal_mediaeval import tool_numbers

PRIOR = 0.0741289
"""QUESST's effective prior, cut to seven decimals."""
BETA = (1 - PRIOR) / PRIOR
TOOL = list(MediaEvalTool.names)

MEASURES = ["mtwv", "mtwv_rejected_threshold", "cnxe_min_pav", "cnxe_query_pav", "twv_query_offset"]
BY = ["document_pattern:a", "document_pattern:b"]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    documents = tuple(f"{kind}{number}" for number in range(draw(st.integers(1, 3))) for kind in "ab")
    queries = tuple(f"q{number}" for number in range(draw(st.integers(1, 4))))
    trials = [(q, d) for q in queries for d in documents]
    targets = draw(st.sets(st.sampled_from(trials), min_size=1, max_size=len(trials) - 1))
    given_trials = draw(st.permutations(trials))[: draw(st.integers(0, len(trials)))]
    scores = st.sampled_from([-2.0, -0.0, 0.0, 0.5, 1.0, 3.0])
    run = tuple((q, d, draw(scores), draw(st.booleans())) for q, d in given_trials)
    return World(documents, queries, frozenset(targets), run)


def opened(source: str, impute: float) -> sws.Evaluation:
    return sws.open(source, preset="quesst2014", compat="mediaeval", settings={"evaluation": {"impute": impute}})


@given(world=worlds(), impute=st.sampled_from([-10.0, 0.0, 0.25, 1.0, 5.0]))
@examples(60)
def test_numbers_of_a_literal_list(world: World, impute: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = world.write(Path(folder))
        result = sws.score(opened(folder, impute), MEASURES, runs=str(run), by=BY)
    rows = result.table.to_pylist()
    for name, documents in conditions(world).items():
        found = {row["measure"]: row["value"] for row in rows if row["query"] is None and row["condition"] == name}
        literal = Literal.of(world, impute, BETA, world.queries, documents)
        if not len(literal.target) or literal.target.all():
            continue
        best, rejected = literal.maximum()
        assert found["mtwv"] == pytest.approx(best, abs=1e-9)
        assert found["mtwv_rejected_threshold"] == rejected
        assert found["cnxe_min_pav"] == pytest.approx(literal.minimum(), abs=1e-9)
        assert found["cnxe_query_pav"] == pytest.approx(literal.query_minimum(), abs=1e-9)
        assert found["twv_query_offset"] == pytest.approx(literal.query_offset(), abs=1e-9)


def conditions(world: World) -> dict[str, tuple[str, ...]]:
    return {"all": world.documents} | {f"document~{kind}": of_kind(world, kind) for kind in "ab"}


def of_kind(world: World, kind: str) -> tuple[str, ...]:
    return tuple(document for document in world.documents if document[0] == kind)


NEAR_TIES = World(
    documents=("a0", "b0", "a1", "b1"),
    queries=("q0", "q1", "q2"),
    targets=frozenset({("q0", "a0"), ("q0", "b0")}),
    run=(("q0", "a1", 0.0, False), ("q0", "b0", -2.0, False)),
)


@given(world=worlds(), impute=st.sampled_from([-10.0, 0.0, 0.25, 1.0, 5.0]))
@example(world=NEAR_TIES, impute=-10.0)
@examples(60)
def test_the_numbers_of_the_tool(world: World, impute: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = world.write(Path(folder))
        result = sws.score(opened(folder, impute), TOOL, runs=str(run), by=BY)
    rows = result.table.to_pylist()
    for name, documents in conditions(world).items():
        found = {row["measure"]: row["value"] for row in rows if row["query"] is None and row["condition"] == name}
        literal = Literal.of(world, impute, BETA, world.queries, documents)
        expected = tool_numbers(literal, PRIOR) if len(literal.target) else [math.nan] * len(TOOL)
        assert [found[each] for each in TOOL] == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)


def test_the_highest_twv_where_a_target_has_the_score_minus_infinity() -> None:
    """It is rejected at every threshold, and none is better than accepting all: the tool gives the value without it."""
    world = World(
        documents=("a0", "a1", "a2", "a3"),
        queries=("q0",),
        targets=frozenset({("q0", "a0")}),
        run=(("q0", "a0", -math.inf, False), ("q0", "a1", 1.0, True), ("q0", "a2", 2.0, True), ("q0", "a3", 3.0, True)),
    )
    prior = 0.625
    point = {"p_target": prior, "c_miss": 1.0, "c_fa": 1.0}
    settings = {"evaluation": {"impute": -10.0, "operating_point": point}}
    with tempfile.TemporaryDirectory() as folder:
        run = world.write(Path(folder))
        evaluation = sws.open(folder, preset="quesst2014", compat="mediaeval", settings=settings)
        result = sws.score(evaluation, TOOL, runs=str(run))
    literal = Literal.of(world, -10.0, (1 - prior) / prior, world.queries, world.documents)
    found = {row["measure"]: row["value"] for row in result.table.to_pylist() if row["query"] is None}
    expected = tool_numbers(literal, prior)
    assert found["mediaeval_mtwv"] == pytest.approx(expected[TOOL.index("mediaeval_mtwv")], abs=1e-12)
    assert found["mediaeval_mtwv"] < 0.3  # 1 - beta is .4


@given(world=worlds(), impute=st.sampled_from([-10.0, 0.5]), buckets=st.integers(1, 3))
@examples(15)
def test_any_cells_give_the_same_bits(world: World, impute: float, buckets: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = world.write(Path(folder))
        evaluation = opened(folder, impute)
        whole = sws.score(evaluation, [*MEASURES, *TOOL], runs=str(run), by=BY)
        archive = f"{folder}/archive"
        layout = Layout(buckets=buckets, rows_per_group=1, rows_in_memory=3, rows_per_fragment=4)
        ingest(archive, find_reference(folder), [RunFile(str(run))], evaluation.settings.evaluation, layout=layout)
        stored = sws.score(opened(archive, impute), [*MEASURES, *TOOL], by=BY)
    assert np.array_equal(
        stored.table["value"].to_numpy().view(np.uint64), whole.table["value"].to_numpy().view(np.uint64)
    )


def test_of_zeros_the_tool_names_the_negative_one() -> None:
    """Threshold: -0.0, as the tool prints it for this list."""
    world = World(("a0", "b0", "b1"), ("q0",), frozenset({("q0", "b1")}), ())
    scores = {"a0": 0.0, "b0": -0.0, "b1": 1.0}
    run = tuple(("q0", document, score, False) for document, score in scores.items())
    with tempfile.TemporaryDirectory() as folder:
        path = replace(world, run=run).write(Path(folder))
        table = sws.score(opened(folder, -10.0), ["mediaeval_threshold"], runs=str(path)).table
    threshold = table["value"][0].as_py()
    assert (threshold, math.copysign(1.0, threshold)) == (0.0, -1.0)
