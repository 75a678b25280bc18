"""Computed conditions against a literal grouping of the reference and the alignment, and by any partitioning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import swsdask as sws
from tests import engines
from tests.conftest import examples

DOCUMENTS = [
    {"document": "a", "duration": 40.0, "source_type": "bnews"},
    {"document": "b", "duration": 60.0, "source_type": "cts"},
    {"document": "c", "duration": 20.0, "source_type": "splitcts"},
]
TEXTS = {"q0": "one", "q1": "one two", "q2": "three of them", "q3": "a b", "q4": ""}
MEASURES = ["n_target", "n_hit", "n_false_alarm", "p_miss", "p_fa", "atwv", "mtwv", "map"]
BETA = 999.9

Row = dict[str, Any]


def bins(number: float, edges: Sequence[float]) -> int:
    return sum(number >= edge for edge in edges)


def quarter(number: float, every: Iterable[float]) -> int:
    numbers = list(every)
    return min(4 * sum(each < number for each in numbers) // len(numbers), 3)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    place = {
        "query": st.sampled_from(list(TEXTS)),
        "document": st.sampled_from("abc"),
        "start": st.integers(0, 180).map(lambda tenth: tenth / 10),
        "duration": st.integers(1, 9).map(lambda tenth: tenth / 10),
    }
    spoken = draw(
        st.lists(
            st.fixed_dictionaries({**place, "speaker": st.sampled_from(["ann", "bob", "cy", ""])}),
            min_size=1,
            max_size=12,
            unique_by=lambda row: (row["query"], row["document"], row["start"]),
        )
    )
    found = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    **place,
                    "score": st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.7]),
                    "decision": st.sampled_from(["YES", "NO"]),
                }
            ),
            min_size=1,
            max_size=20,
        )
    )
    return spoken, found


def opened(spoken: Sequence[Row], **more: Any) -> sws.Evaluation:
    queries = [{"query": name, "text": text} for name, text in TEXTS.items()]
    return sws.open(documents=DOCUMENTS, occurrences=list(spoken), queries=queries, **more)


def by_level(rows: Iterable[Any], level: Callable[[Any], Any]) -> Mapping[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in rows:
        if level(row) is not None:
            found.setdefault(level(row), []).append(row)
    return dict(sorted(found.items()))


def literal(alignment: list[Row], queries: set[str], targets: list[Row], n_trials: int) -> dict[str, float]:
    """The numbers of a part: `targets` are the occurrences in it, and every false alarm of its queries counts."""

    def key(row: Row) -> tuple[Any, ...]:
        start = row.get("reference_start", row["start"])
        return row["query"], row["document"], round(start * 10)

    there = {key(row) for row in targets}
    n_act = {query: sum(row["query"] == query for row in targets) for query in queries}
    counted = sorted(query for query in queries if n_act[query])
    trials = [
        (row["query"], row["score"], row["reference_start"] is not None, row["decision"] == "YES")
        for row in alignment
        if row["start"] is not None
        and row["query"] in counted
        and (row["reference_start"] is None or key(row) in there)
    ]

    def rates(accepted: list[tuple[Any, ...]]) -> tuple[float, float]:
        misses = [1 - sum(t[0] == query and t[2] for t in accepted) / n_act[query] for query in counted]
        alarms = [sum(t[0] == query and not t[2] for t in accepted) / (n_trials - n_act[query]) for query in counted]
        n = len(counted) or math.nan
        return sum(misses) / n, sum(alarms) / n

    yes = [trial for trial in trials if trial[3]]
    p_miss, p_fa = rates(yes)
    best = 0.0 if counted else math.nan
    for threshold in {trial[1] for trial in trials}:
        miss, alarm = rates([trial for trial in trials if trial[1] >= threshold])
        best = max(best, 1 - miss - BETA * alarm)
    return {
        "n_target": len([row for row in targets if row["query"] in counted]),
        "n_hit": sum(trial[2] for trial in yes),
        "n_false_alarm": sum(not trial[2] for trial in yes),
        "p_miss": p_miss,
        "p_fa": p_fa,
        "atwv": 1 - p_miss - BETA * p_fa,
        "mtwv": best,
    }


def conditions(spoken: list[Row]) -> list[tuple[str, Mapping[Any, set[str]], Mapping[Any, list[Row]] | None]]:
    """Keys, and their levels in order: by queries, or by occurrences."""
    n_true = {query: sum(row["query"] == query for row in spoken) for query in TEXTS}
    words = {query: len(text.split()) for query, text in TEXTS.items() if text}
    letters = {query: len(text.replace(" ", "")) for query, text in TEXTS.items() if text}
    durations = [row["duration"] for row in spoken]

    def of_queries(level: Callable[[str], Any]) -> Mapping[Any, set[str]]:
        return {value: set(queries) for value, queries in by_level(TEXTS, level).items()}

    return [
        ("n_words", of_queries(words.get), None),
        ("n_characters:3/5/9", of_queries(lambda q: bins(letters.get(q, 0), [3, 5, 9]) or None), None),
        (
            "n_characters:quartiles",
            of_queries(lambda query: quarter(letters[query], letters.values()) if query in letters else None),
            None,
        ),
        ("n_true", of_queries(lambda q: bins(n_true[q], [1, 2, 5, 10, 20]) or None), None),
        ("n_words:1+3", {0: {query for query, number in words.items() if number in (1, 3)}}, None),
        ("talker", {}, by_level(spoken, lambda row: row["speaker"] or None)),
        ("duration", {}, by_level(spoken, lambda row: quarter(row["duration"], durations))),
        ("duration:0.2/0.5", {}, by_level(spoken, lambda row: bins(row["duration"], [0.2, 0.5]) or None)),
    ]


@examples(12)
@given(world=worlds())
def test_numbers_are_those_of_a_literal_grouping(world: tuple[list[Row], list[Row]]) -> None:
    spoken, found = world
    keys = [each for each in conditions(spoken) if any(each[1].values()) or each[2]]
    evaluation = opened(spoken)
    result = sws.score(evaluation, MEASURES, runs={"x": found}, by=[key for key, *_ in keys], alignment=True)
    alignment = result.to_arrow("alignment").to_pylist()
    scores = result.scores
    overall = scores[scores["query"].isna() & (scores["condition"] != "all")]
    names = list(dict.fromkeys(overall["condition"]))
    parts = []
    for key, queries, occurrences in keys:
        parts += [(key, asked, spoken) for asked in queries.values()]
        parts += [(key, set(TEXTS), rows) for rows in (occurrences or {}).values()]
    assert len(names) == len(parts), (names, parts)
    for name, (key, asked, rows) in zip(names, parts, strict=True):
        targets = [row for row in rows if row["query"] in asked]
        own = overall[overall["condition"] == name].set_index("measure")["value"]
        for measure, value in literal(alignment, asked, targets, 110).items():
            assert own[measure] == pytest.approx(value, abs=1e-12, nan_ok=True), (key, name, measure)


@examples(8)
@given(world=worlds(), rows=st.sampled_from([1, 3]), seed=st.randoms(use_true_random=False))
def test_any_partitioning_gives_the_same_bits(world: tuple[list[Row], list[Row]], rows: int, seed: Any) -> None:
    spoken, found = world
    by = ["talker", "duration", "talker,duration:0.1/0.5", "n_true,source_type", "n_words:quartiles"]
    if not any(row["speaker"] for row in spoken):
        by = by[1:2]
    measures = [*MEASURES, "cnxe", "cnxe_min", "otwv", "ap", "stwv", "eer"]
    whole = sws.score(opened(spoken), measures, runs={"x": found, "y": found[:3]}, by=by)
    cut = opened(spoken[::-1], settings={"engine": {"rows_per_task": rows, "executor": "threads", "workers": 2}})
    mixed = seed.sample(found, len(found))
    again = sws.score(cut, measures, runs={"y": found[:3][::-1], "x": mixed}, by=by, buckets=seed.randint(1, 5))
    assert engines.parquet(again.table) == engines.parquet(whole.table)
