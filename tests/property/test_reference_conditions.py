"""Conditions of a reference against their definitions, stratum by stratum: groups of documents, and classes."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from swsdask.archive.reference import build_reference
from swsdask.model.schemas import WORDS
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.counts import class_targets
from tests.archives import excerpt, queries, table, tables, without_runs

TYPES = {"a": "x", "b": "x", "c": "y", "d": "z"}
KEYS = ("source_type", "source_type:x+y", "talker", "n_true:1/2", "query_pattern:[01]")


@st.composite
def references(draw: st.DrawFn) -> Reference:
    spoken = draw(
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.sampled_from("stu"), st.integers(0, 8), st.integers(0, 3)),
            unique_by=lambda row: (row[0], row[2]),
            max_size=12,
        )
    )
    words = [(doc, 1, who, at * 20_000, at * 20_000 + 4000, f"w{word}", "lex") for doc, who, at, word in spoken]
    evaluation = tables(
        [excerpt(name, 0, 200_000, source_type=kind) for name, kind in TYPES.items()],
        queries({f"q{k}": f"w{k}" for k in range(4)}),
        table(WORDS, words),
    )
    keys = [key for key in KEYS if spoken or key not in ("talker", "n_true:1/2")]
    by = draw(st.lists(st.sampled_from(keys), unique=True, max_size=4))
    return build_reference(without_runs(evaluation), EvaluationSettings(), [[key] for key in by])


@given(references())
def test_strata_share_a_class_where_every_condition_says_the_same_of_them(reference: Reference) -> None:
    """Classes are numbered in the order of what conditions say; -1 where none counts the stratum."""
    n_queries, n_groups = reference.targets.shape
    said = {
        (query, group): tuple(
            condition.n_trials - reference.targets[query, condition.groups].sum()
            if condition.queries[query] and condition.groups[group]
            else -math.inf
            for condition in reference.conditions
        )
        for query in range(n_queries)
        for group in range(n_groups)
    }
    nothing = (-math.inf,) * len(reference.conditions)
    order = sorted({*said.values()} - {nothing})
    expected = [
        [-1 if said[q, g] == nothing else order.index(said[q, g]) for g in range(n_groups)] for q in range(n_queries)
    ]
    assert reference.class_of.tolist() == expected
    assert reference.n_classes == len(order)
    for number, condition in enumerate(reference.conditions):
        for (query, group), vector in said.items():
            if vector != nothing:
                inside = condition.queries[query] and condition.groups[group]
                n_act = reference.targets[query, condition.groups].sum() if inside else -1
                assert class_targets(reference)[number, reference.class_of[query, group]] == n_act


@given(references())
def test_a_condition_of_documents_has_the_groups_of_its_documents(reference: Reference) -> None:
    for condition in reference.conditions:
        key, _, value = condition.name.partition("=")
        if key == "source_type":
            inside = condition.groups[reference.group_of_document[: len(TYPES)]]
            assert inside.tolist() == [kind in value.split("+") for kind in TYPES.values()]
