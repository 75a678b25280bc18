"""Rankings of runs that have several detections of one event, against rankings that are written out."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.model.settings import EvaluationSettings
from tests.conftest import examples
from tests.property.test_rankings_oracle import (
    CHOICES,
    DOCUMENTS,
    OPTIONS,
    SCORES,
    average_precision,
    ranked_precision,
    same,
    zero_queries,
)
from tests.rankings import END, Event, Row, numbers, tables_of_rows

AWAY = 4 * END
AREAS = ("ties", "interpolation", "integration")
MEASURES = ("ap", "map", "r_precision", "precision_at_rank@3", "precision_at_recall@0.5")

Pair = tuple[int, str]


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, list[Pair], list[Row]]:
    """How many queries there are, the relevant pairs of query and document, and the rows of a run."""
    n_queries = draw(st.integers(1, 2))
    pairs = [(query, document) for query in range(n_queries) for document in DOCUMENTS[:4]]
    relevant = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5))
    scores = draw(st.lists(st.sampled_from(SCORES), min_size=1, max_size=3))
    row = st.builds(
        lambda pair, score, start: Row(*pair, score, start),
        st.sampled_from(pairs),
        st.sampled_from(scores),
        st.sampled_from([0, 0, AWAY]),
    )
    return n_queries, relevant, draw(st.lists(row, max_size=10))


def best(rows: Sequence[Row]) -> Row:
    """Of equal scores the earlier start; of equal rows the first."""
    return min(rows, key=lambda row: (-row.score, row.start))


def events(trials: str, duplicates: str, relevant: Sequence[Pair], rows: list[Row]) -> tuple[list[Event], int]:
    """The events in the order of the run, and how many rows are beside one of their event."""
    made: list[tuple[int, Event]] = []
    further = 0
    pairs = {(row.query, row.document): None for row in rows}
    for pair in pairs:
        own = [(at, row) for at, row in enumerate(rows) if (row.query, row.document) == pair]
        alone: list[tuple[int, Row]] = []
        if trials == "virtual":
            alone = [(at, row) for at, row in own if row.start == AWAY or pair not in relevant]
            own = [each for each in own if each not in alone]
        if own:
            chosen = (
                own[0] if duplicates == "first" else next(each for each in own if each[1] is best([r for _, r in own]))
            )
            made.append((chosen[0], Event(*pair, chosen[1].score, pair in relevant, chosen[1].start)))
            rest = [each for each in own if each is not chosen]
            if duplicates == "false-positive":
                alone += rest
            further += len(rest)
        made += [(at, Event(*pair, row.score, False, row.start)) for at, row in alone]
    found = [event for _, event in sorted(made, key=lambda each: each[0])]
    hit = {(event.query, event.document) for event in found if event.relevant}
    return found + [Event(*pair, None, True) for pair in relevant if pair not in hit], further


RULES = [
    *product(["virtual", "segment", "document"], ["as-trials", "ignore", "false-positive"]),
    ("segment", "first"),
    ("document", "first"),
]
OF_TRIALS = {"virtual": "false-positive", "segment": "ignore", "document": "ignore"}


@examples(300)
@given(runs(), OPTIONS, st.sampled_from(RULES))
def test_rankings_with_duplicates(
    run: tuple[int, list[Pair], list[Row]], options: dict[str, str], rule: tuple[str, str]
) -> None:
    check(run, options, *rule)


@pytest.mark.parametrize("rule", RULES)
def test_every_combination_of_ties_and_areas(rule: tuple[str, str]) -> None:
    """Each with all the other options in turn."""
    chance = random.Random(str(rule))
    areas = list(product(*(CHOICES[name] for name in AREAS)))
    others = list(product(*(values for name, values in CHOICES.items() if name not in AREAS)))
    for number, area in enumerate(areas):
        other = dict(zip((name for name in CHOICES if name not in AREAS), others[number % len(others)], strict=True))
        check(random_run(chance), {**dict(zip(AREAS, area, strict=True)), **other}, *rule)


def random_run(chance: random.Random) -> tuple[int, list[Pair], list[Row]]:
    pairs = [(query, document) for query in range(3) for document in DOCUMENTS[:4]]
    scores = chance.sample(SCORES, 3)
    rows = [Row(*chance.choice(pairs), chance.choice(scores), chance.choice([0, 0, AWAY])) for _ in range(16)]
    return 4, [*chance.sample(pairs[:8], 4), (3, "a")], rows


def check(run: tuple[int, list[Pair], list[Row]], options: dict[str, str], trials: str, duplicates: str) -> None:
    n_queries, relevant, rows = run
    chosen = {**options, "duplicates": duplicates, "ranks": [3], "recalls": [0.5]}
    tables = tables_of_rows(
        EvaluationSettings(trials=trials, average_precision=chosen), n_queries, DOCUMENTS, relevant, rows, MEASURES
    )
    found = numbers(tables)
    made, further = events(trials, OF_TRIALS[trials] if duplicates == "as-trials" else duplicates, relevant, rows)
    counted = {query for query, _ in relevant}
    averaged: list[tuple[float, ...]] = []
    for query in range(n_queries):
        own = [event for event in made if event.query == query]
        retrieved = any(event.score is not None for event in own)
        if query not in counted:
            zeros, _ = zero_queries({query}, {query} if retrieved else set(), options)
            if zeros or options["no_relevant"] == "nan":
                averaged.append((0.0 if zeros else math.nan,) * 4)
            continue
        if options["missing"] == "skip" and not retrieved:
            assert ("all", f"q{query}", "ap") not in found
            continue
        exact = average_precision(own, options), *ranked_precision(own, options, 3, 5)
        for name, value in zip(("ap", *MEASURES[2:]), exact, strict=True):
            assert same(found["all", f"q{query}", name], value), name
        averaged.append(exact)
    for name, *values in zip(("map", *MEASURES[2:]), *averaged, strict=True):
        assert same(found["all", None, name], math.fsum(values) / len(values) if values else math.nan), name
    assert same(found["all", None, "ap"], average_precision([e for e in made if e.query in counted], options))
    told = [note.text for own in tables.notes.values() for note in own if "Rankings" in note.text]
    if duplicates in ("as-trials", OF_TRIALS[trials]) or not further:
        assert not told
    else:
        assert len(told) == 1
        assert f" {further} detection" in told[0]
