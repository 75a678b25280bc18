"""AP, MAP and their kin against rankings that are written out, in exact arithmetic, under every option."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.model.settings import EvaluationSettings
from tests.conftest import examples
from tests.rankings import Event, scored

DOCUMENTS = ("b", "Z", "a-1", "é", "a", "B")
CLOSE = 0.1 + 1e-12
SCORES = [-2.5, -10.25, 0.0, -0.0, 0.1, CLOSE, 0.5, 3.0, 20.0]


class Step(NamedTuple):
    """A place of a ranking: how many hits it has, hits and rank down to it, and the same in front of it."""

    hits: Fraction
    precision: Fraction
    before: Fraction | None


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, list[Event]]:
    """The number of queries, and (query, document, score or None where it is not retrieved, relevant)."""
    n_queries = draw(st.integers(1, 3))
    pairs = [(query, document) for query in range(n_queries) for document in DOCUMENTS]
    kept = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1, max_size=11))
    scores = draw(st.lists(st.sampled_from(SCORES), min_size=1, max_size=3))
    scored_pairs = st.one_of(st.none(), st.sampled_from(scores), st.sampled_from(scores))
    return n_queries, [Event(query, document, draw(scored_pairs), draw(st.booleans())) for query, document in kept]


CHOICES = {
    "ties": ["group", "best", "worst", "expected", "document-descending", "document-ascending", "input"],
    "interpolation": ["max", "none"],
    "integration": ["step", "trapezoid"],
    "no_relevant": ["exclude", "zero", "zero-if-retrieved", "nan"],
    "missing": ["zero", "skip"],
    "score_dtype": ["float64", "float32"],
    "score_order": ["number", "text"],
}
OPTIONS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})


def groups(events: Sequence[Event], options: Mapping[str, str]) -> list[list[Event]]:
    """The retrieved events by score, from the highest, in the order of the run."""

    def score(event: Event) -> Any:
        single = options["score_dtype"] == "float32"
        number = float(np.float32(event.score)) if single else float(event.score or 0.0)
        text = options["score_order"] == "text"
        return np.format_float_positional(number + 0.0, trim="-")[:16] if text else number

    found = [event for event in events if event.score is not None]
    return [[e for e in found if score(e) == s] for s in sorted({score(e) for e in found}, reverse=True)]


def in_order(group: list[Event], ties: str) -> list[bool]:
    if ties in ("best", "worst"):
        return sorted((e.relevant for e in group), reverse=ties == "best")
    if ties == "document-ascending":
        return [e.relevant for e in sorted(group, key=lambda e: (e.document, e.start, e.query))]
    if ties == "document-descending":
        return [
            e.relevant for e in sorted(group, key=lambda e: ([-ord(c) for c in e.document] + [0], e.start, e.query))
        ]
    return [e.relevant for e in group]


def single_steps(flags: Sequence[bool]) -> Iterator[Step]:
    hits = 0
    for rank, flag in enumerate(flags, 1):
        before = Fraction(hits, rank - 1) if rank > 1 else None
        hits += flag
        yield Step(Fraction(flag), Fraction(hits, rank), before)


def group_steps(ranked: list[list[Event]]) -> Iterator[Step]:
    hits = rank = 0
    for group in ranked:
        before = Fraction(hits, rank) if rank else None
        new = sum(e.relevant for e in group)
        hits, rank = hits + new, rank + len(group)
        yield Step(Fraction(new), Fraction(hits, rank), before)


def orders(group: list[Event]) -> list[list[bool]]:
    """Every order of a group's relevance, all equally likely."""
    hits = sum(e.relevant for e in group)
    return [[place in chosen for place in range(len(group))] for chosen in combinations(range(len(group)), hits)]


def expected_steps(ranked: list[list[Event]]) -> Iterator[Step]:
    """At each rank that a hit may have, the averages over the orders that have one there."""
    hits = rank = 0
    for group in ranked:
        made = orders(group)
        for place in range(len(group)):
            there = [order for order in made if order[place]]
            if there:
                down = [hits + sum(order[: place + 1]) for order in there]
                at = rank + place + 1
                precision = Fraction(sum(down), at * len(there))
                before = Fraction(sum(d - 1 for d in down), (at - 1) * len(there)) if at > 1 else None
                yield Step(Fraction(len(there), len(made)), precision, before)
        hits, rank = hits + sum(e.relevant for e in group), rank + len(group)


def area(steps: Sequence[Step], relevant: int, interpolation: str, integration: str) -> Fraction:
    total = Fraction(0)
    for number, (hits, precision, before) in enumerate(steps):
        if interpolation == "max":
            precision = max(step.precision for step in steps[number:])
            before = None if before is None else max(before, precision)
        total += hits * ((precision + before) / 2 if integration == "trapezoid" and before is not None else precision)
    return total / relevant


def average_precision(events: Sequence[Event], options: Mapping[str, str]) -> float:
    relevant = sum(e.relevant for e in events)
    if not relevant:
        return math.nan
    ranked, ties = groups(events, options), options["ties"]
    interpolation, integration = options["interpolation"], options["integration"]
    if ties == "group":
        return float(area(list(group_steps(ranked)), relevant, interpolation, integration))
    if ties == "expected" and interpolation == "max":
        return float(area(list(expected_steps(ranked)), relevant, interpolation, integration))
    if ties == "expected":
        every = [[flag for part in order for flag in part] for order in product(*map(orders, ranked))]
        areas = [area(list(single_steps(flags)), relevant, interpolation, integration) for flags in every]
        return float(sum(areas, Fraction(0)) / len(areas))
    flags = [flag for group in ranked for flag in in_order(group, ties)]
    return float(area(list(single_steps(flags)), relevant, interpolation, integration))


def same(value: float, exact: float) -> bool:
    return value == pytest.approx(exact, abs=1e-12, nan_ok=True)


@examples(400)
@given(runs(), OPTIONS, st.sampled_from(["exclude", "false_alarms_only"]))
def test_average_precision(run: tuple[int, list[Event]], options: dict[str, str], no_targets: str) -> None:
    n_queries, events = run
    asked = EvaluationSettings(trials="document", no_targets=no_targets, average_precision=options)
    found = scored(asked, n_queries, DOCUMENTS, events)
    of_query = {query: [e for e in events if e.query == query] for query in range(n_queries)}
    exact = {query: average_precision(own, options) for query, own in of_query.items()}
    has_targets = {query for query, own in of_query.items() if any(e.relevant for e in own)}
    has_trials = {query for query, own in of_query.items() if any(e.score is not None for e in own)}
    without = set(of_query) - has_targets
    ranked = has_targets if options["missing"] == "zero" else has_targets & has_trials
    zeros, unlisted = zero_queries(without, has_trials, options)
    not_defined = without if options["no_relevant"] == "nan" else set()
    averaged = [exact[query] for query in ranked] + [0.0] * len(zeros) + [math.nan] * len(not_defined)
    assert same(found["all", None, "map"], math.fsum(averaged) / len(averaged) if averaged else math.nan)
    assert found["all", None, "map_n_averaged"] == len(averaged)
    assert found["all", None, "map_n_no_relevant"] == len(without - zeros - not_defined - unlisted)
    assert found["all", None, "map_n_missing"] == len((has_targets - ranked) | unlisted)
    pooled = set(of_query) if no_targets == "false_alarms_only" else has_targets
    assert same(found["all", None, "ap"], average_precision([e for e in events if e.query in pooled], options))
    for query, value in exact.items():
        if query in ranked:
            assert same(found["all", f"q{query}", "ap"], value)
        elif query in zeros:
            assert found["all", f"q{query}", "ap"] == 0.0
        elif query in has_targets:  # skipped
            assert ("all", f"q{query}", "ap") not in found


def zero_queries(without: set[int], has_trials: set[int], options: dict[str, str]) -> tuple[set[int], set[int]]:
    """Of the queries without targets those that count as 0, and those that would if they had trials."""
    if options["no_relevant"] == "zero-if-retrieved":
        return without & has_trials, set()
    if options["no_relevant"] != "zero":
        return set(), set()
    return (without, set()) if options["missing"] == "zero" else (without & has_trials, without - has_trials)


def expected_hits(ranked: list[list[Event]], rank: int) -> Fraction:
    """Hits among the first so many trials, averaged over the orders of equal scores."""
    hits = Fraction(0)
    for group in ranked:
        made, here = orders(group), max(0, min(rank, len(group)))
        hits += Fraction(sum(sum(order[:here]) for order in made), len(made))
        rank -= len(group)
    return hits


def at_recall(steps: Sequence[Step], relevant: int, recall: Fraction) -> Fraction:
    hits, best = Fraction(0), Fraction(0)
    for step in steps:
        hits += step.hits
        if hits >= recall * relevant and step.hits:
            best = max(best, step.precision)
    return best


def ranked_precision(
    events: Sequence[Event], options: Mapping[str, str], rank: int, tenths: int
) -> tuple[float, float, float]:
    """R-precision, precision at a rank, precision at a recall."""
    relevant = sum(e.relevant for e in events)
    if not relevant:
        return math.nan, math.nan, math.nan
    ranked, ties = groups(events, options), options["ties"]
    recall = Fraction(tenths, 10)
    if ties in ("group", "expected"):
        at_ranks = [float(expected_hits(ranked, k) / k) for k in (relevant, rank)]
        return (*at_ranks, float(at_recall(list(group_steps(ranked)), relevant, recall)))
    flags = [flag for group in ranked for flag in in_order(group, ties)]
    at_ranks = [float(Fraction(sum(flags[:k]), k)) for k in (relevant, rank)]
    return (*at_ranks, float(at_recall(list(single_steps(flags)), relevant, recall)))


@examples(250)
@given(runs(), OPTIONS, st.integers(1, 12), st.integers(0, 10))
def test_ranked_precision(run: tuple[int, list[Event]], options: dict[str, str], rank: int, tenths: int) -> None:
    n_queries, events = run
    points = {"ranks": [rank], "recalls": [tenths / 10]}
    asked = EvaluationSettings(trials="document", average_precision={**options, **points, "no_relevant": "exclude"})
    names = ("r_precision", f"precision_at_rank@{rank}", f"precision_at_recall@{tenths / 10!r}")
    found = scored(asked, n_queries, DOCUMENTS, events, names)
    averaged = []
    for query in range(n_queries):
        own = [e for e in events if e.query == query]
        if any(e.relevant for e in own):
            exact = ranked_precision(own, options, rank, tenths)
            if options["missing"] == "skip" and all(e.score is None for e in own):
                assert not any(("all", f"q{query}", name) in found for name in names)
                continue
            assert all(same(found["all", f"q{query}", name], value) for name, value in zip(names, exact, strict=True))
            averaged.append(exact)
    for name, *values in zip(names, *averaged, strict=True):
        assert same(found["all", None, name], math.fsum(values) / len(values) if values else math.nan)


@examples(150)
@given(runs(), st.sampled_from(SCORES))
def test_precision_and_recall(run: tuple[int, list[Event]], theta: float) -> None:
    n_queries, events = run
    asked = EvaluationSettings(trials="document", thresholds=[theta])
    names = ("precision@", "recall@", "f1@", "best_f1", "best_f1_threshold")
    found = scored(asked, n_queries, DOCUMENTS, events, names)
    of_query: dict[str | None, list[Event]] = {f"q{q}": [e for e in events if e.query == q] for q in range(n_queries)}
    counted = {name: own for name, own in of_query.items() if any(e.relevant for e in own)}
    counted[None] = [e for own in counted.values() for e in own]
    for name, own in counted.items():
        relevant = sum(e.relevant for e in own)
        retrieved = [e for e in own if e.score is not None]
        accepted = [e for e in retrieved if (e.score or 0.0) >= theta]
        hits = sum(e.relevant for e in accepted)
        values = {kind: found["all", name, f"{kind}@{theta!r}"] for kind in ("precision", "recall", "f1")}
        assert same(values["precision"], hits / len(accepted) if accepted else math.nan)
        assert same(values["recall"], hits / relevant if relevant else math.nan)
        assert same(values["f1"], 2 * hits / (len(accepted) + relevant) if relevant else math.nan)
        if not relevant:
            assert math.isnan(found["all", name, "best_f1"])
            continue
        tried = []
        for threshold in {math.inf, *(e.score or 0.0 for e in retrieved)}:
            taken = [e.relevant for e in retrieved if (e.score or 0.0) >= threshold]
            tried.append((-Fraction(2 * sum(taken), len(taken) + relevant), threshold))
        best, threshold = min(tried)
        assert same(found["all", name, "best_f1"], float(-best))
        assert found["all", name, "best_f1_threshold"] == (threshold if best else math.inf)
