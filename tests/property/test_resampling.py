"""Replicates: MTWV against its definition, every score of the queries drawn tried as a threshold, exactly; and every
measure with equal weights against itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from swsdask.measures import select
from swsdask.measures.measure import Scored
from swsdask.measures.resampling import NAMES, SampleObserver
from swsdask.measures.resampling.ladders import ResampledMaximum, ResampledPooledPrecision
from tests.conftest import examples
from tests.property.worlds import World, worlds
from tests.worlds import Row, make_reference, place, statistics, with_thresholds
from tests.worlds import settings as evaluation


@examples(120)
@given(
    worlds(no_targets=True),
    st.sampled_from([0.1, 3.0, 50.0]),
    st.sampled_from(["none", "kwseval", "mediaeval"]),
    st.sampled_from(["min", -0.5, 0.25]),
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4),
)
def test_mtwv(world: World, beta: float, compat: str, impute: str | float, drawn: list[list[int]]) -> None:
    trials = "document" if compat == "mediaeval" else "virtual"
    asked = evaluation(operating_point={"beta": beta}, compat=compat, impute=impute, trials=trials)
    reference = with_thresholds(world.reference, asked)
    scored = Scored(statistics([world.rows], reference), reference, asked)
    for population in scored.populations:
        queries = np.flatnonzero(population.queries).tolist()
        weights = np.array([row[: len(queries)] for row in drawn], np.int32).T
        sample = ResampledMaximum().samples(scored, population)["mtwv"]
        for times, value in zip(
            weights.T.tolist(), sample.replicates(np.ascontiguousarray(weights)).tolist(), strict=True
        ):
            exact = literal_mtwv(world, population.condition, dict(zip(queries, times, strict=True)), scored)
            assert value == pytest.approx(exact, rel=1e-12, abs=1e-12, nan_ok=True)


def literal_mtwv(world: World, condition: object, times: dict[int, int], scored: Scored) -> float:
    compat, beta = scored.settings.compat, scored.weights.exact_beta
    n_act = world.reference.condition_targets(condition)  # type: ignore[arg-type]
    groups, n_trials = condition.groups, condition.n_trials  # type: ignore[attr-defined]
    rows = [(q, s, mapped) for q, g, s, _, mapped in world.rows if times.get(q, 0) and groups[g]]
    with_targets = sum(k for q, k in times.items() if n_act[q])
    every = sum(times.values())
    if not with_targets or not every:
        return math.nan
    if compat == "mediaeval":
        lowest = min((s for q, _, s, *_ in world.rows if times.get(q, 1)), default=0.0)
        imputed = lowest if scored.settings.impute == "min" else scored.settings.impute
        for q in (q for q, k in times.items() if k):
            given = [mapped for p, _, mapped in rows if p == q]
            n_nontarget = n_trials - int(n_act[q])
            rows += [(q, imputed, True)] * (int(n_act[q]) - sum(given))
            rows += [(q, imputed, False)] * (n_nontarget - len(given) + sum(given))
    losses = []
    scores = {s for _, s, _ in rows}
    for threshold in scores | ({math.inf} if compat != "kwseval" or not scores else set()):
        miss = alarm = Fraction(0)
        for q, k in times.items():
            accepted = [mapped for p, s, mapped in rows if p == q and s >= threshold]
            if n_act[q]:
                miss += k * Fraction(int(n_act[q]) - sum(accepted), int(n_act[q]))
            alarm += k * Fraction(len(accepted) - sum(accepted), n_trials - int(n_act[q]))
        losses.append(miss / with_targets + beta * alarm / every)
    return float(1 - min(losses))


@examples(50)
@given(
    worlds(no_targets=True),
    st.sampled_from(["group", "best", "worst", "document-ascending"]),
    st.sampled_from(["max", "none"]),
    st.sampled_from(["step", "trapezoid"]),
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4),
)
def test_ap(world: World, ties: str, interpolation: str, integration: str, drawn: list[list[int]]) -> None:
    rule = {"ties": ties, "interpolation": interpolation, "integration": integration}
    asked = evaluation(average_precision=rule)
    reference = with_thresholds(world.reference, asked)
    scored = Scored(statistics([world.rows], reference), reference, asked)
    for population in scored.populations:
        queries = np.flatnonzero(population.queries).tolist()
        weights = np.ascontiguousarray(np.array([row[: len(queries)] for row in drawn], np.int32).T)
        sample = ResampledPooledPrecision().samples(scored, population)["ap"]
        for column, value in zip(weights.T.tolist(), sample.replicates(weights).tolist(), strict=True):
            times = dict(zip(queries, column, strict=True))
            assert value == pytest.approx(
                literal_ap(world, population.condition, times, **rule), abs=1e-12, nan_ok=True
            )


def literal_ap(world: World, condition: object, times: dict[int, int], ties: str, **rule: str) -> float:
    groups = condition.groups  # type: ignore[attr-defined]
    n_act = world.reference.condition_targets(condition)  # type: ignore[arg-type]
    relevant = sum(k * int(n_act[q]) for q, k in times.items())
    if not relevant:
        return math.nan

    def order(row: Row) -> tuple[int, ...]:
        query, *_, mapped = row
        placed = (place(row), query, not mapped)
        return {"best": (not mapped,), "worst": (mapped,)}.get(ties, placed)

    trials = sorted((-(row[2] + 0.0), order(row), row[-1]) for row in world.rows if groups[row[1]]
                    for _ in range(times.get(row[0], 0)))  # fmt: skip
    steps = [[mapped] for _, _, mapped in trials]
    if ties == "group":
        steps = [[mapped for s, _, mapped in trials if s == score] for score in sorted({s for s, _, _ in trials})]
    precision, before, hits, n = [], [], 0, 0
    for step in steps:
        before.append(None if n == 0 else Fraction(hits, n))
        hits, n = hits + sum(step), n + len(step)
        precision.append(Fraction(hits, n))
    if rule["interpolation"] == "max":
        precision = [max(precision[k:]) for k in range(len(steps))]
        before = [None if each is None else max(each, at) for each, at in zip(before, precision, strict=True)]
    if rule["integration"] == "trapezoid":
        precision = [at if each is None else (each + at) / 2 for each, at in zip(before, precision, strict=True)]
    return float(sum(sum(step) * at for step, at in zip(steps, precision, strict=True)) / relevant)


def _family(name: str) -> str:
    return name.partition("@")[0]


SO_SURE_THAT_COSTS_OVERFLOW = World([(0, 0, 1e307, 0, True)], make_reference([[1]], {"all": ([True], [True], 2)}))


@examples(40)
@example(SO_SURE_THAT_COSTS_OVERFLOW, "none", "group", 3)
@given(
    worlds(no_targets=True),
    st.sampled_from(["none", "kwseval", "mediaeval"]),
    st.sampled_from(["group", "best", "worst", "expected", "document-descending"]),
    st.integers(1, 3),
)
def test_with_equal_weights_a_measure_is_itself(world: World, compat: str, ties: str, times: int) -> None:
    assume(times * sum(abs(row[2]) for row in world.rows) < 1e308)  # else a sum of costs is infinite, and was not
    trials = "document" if compat == "mediaeval" else "virtual"
    asked = evaluation(compat=compat, thresholds=(0.5,), average_precision={"ties": ties}, trials=trials)
    reference = with_thresholds(world.reference, asked)
    scored = Scored(statistics([world.rows], reference), reference, asked)
    observed = SampleObserver(NAMES).observe("mine", scored)
    numbers = {
        (values.condition, name): column[0]
        for family in select(NAMES)
        for values in family.values(scored)
        if values.queries is None
        for name, column in values.columns.items()
    }
    for condition, of in observed.items():
        found = set(map(_family, of.samples))
        assert found | ({"otwv"} if math.isnan(numbers[condition, "otwv"]) else set()) == set(map(_family, NAMES))
        for measure, sample in of.samples.items():
            counted = 1 if measure == "ap" and ties != "group" else times  # two queries' hits have ranks of their own
            weights = np.full((len(of.queries), 1), counted, np.int32)
            expected = numbers[condition, measure]
            for found in (sample.value, *sample.replicates(weights).tolist()):
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True), (condition, measure)
