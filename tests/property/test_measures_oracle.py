"""Every threshold measure against its definition, tried at every score in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.measures import MEASURES, curves, select
from swsdask.measures.measure import Measure, Scored
from swsdask.model.settings import EvaluationSettings, weights
from swsdask.model.trials import Reference
from tests.conftest import examples
from tests.property.worlds import World, cells, worlds
from tests.worlds import numbers, statistics, with_thresholds
from tests.worlds import settings as evaluation

POINTS = [
    {"beta": 3.0},
    {"p_target": 0.05, "c_miss": 2.0, "c_fa": 1.0},
    {"beta": 0.1},
    {"p_target": 1e-4, "c_miss": 1.0, "c_fa": 0.1},
]
Numbers = dict[tuple[str, str | None, str], float]


@dataclass(frozen=True)
class Part:
    """What one condition holds: per query its N_act and the (score, decision, mapped) of its trials."""

    name: str
    n_trials: int
    n_act: dict[int, int]
    rows: dict[int, list[tuple[float, int, bool]]]

    @property
    def scores(self) -> list[float]:
        return sorted({score for rows in self.rows.values() for score, _, _ in rows})

    def rates(self, accept: Any) -> tuple[Fraction, Fraction]:
        """Eq. 4-5 where `accept(score, decision)`."""
        misses, alarms = [], []
        for q, n_act in self.n_act.items():
            miss, alarm = self.query_rates(q, accept)
            misses += [miss] if n_act else []
            alarms.append(alarm)
        return sum(misses, Fraction(0)) / len(misses), sum(alarms, Fraction(0)) / len(alarms)

    def query_rates(self, q: int, accept: Any) -> tuple[Fraction, Fraction]:
        hits = sum(mapped and accept(score, decision) for score, decision, mapped in self.rows[q])
        false_alarms = sum(not mapped and accept(score, decision) for score, decision, mapped in self.rows[q])
        n_act = self.n_act[q]
        return Fraction(n_act - hits, n_act) if n_act else Fraction(0), Fraction(false_alarms, self.n_trials - n_act)


def parts(world: World) -> Iterable[Part]:
    for condition in world.reference.conditions:
        n_act = world.reference.condition_targets(condition)
        queries = np.flatnonzero(condition.queries).tolist()
        rows: dict[int, list[tuple[float, int, bool]]] = {q: [] for q in queries}
        for q, g, score, decision, mapped in world.rows:
            if q in rows and condition.groups[g]:
                rows[q].append((score, decision, mapped))
        yield Part(condition.name, condition.n_trials, {q: int(n_act[q]) for q in queries}, rows)


def above(threshold: float) -> Any:
    return lambda score, decision: score >= threshold


def score(
    world: World, asked: EvaluationSettings, families: Sequence[Measure] = MEASURES
) -> tuple[Numbers, dict[type, Any], Reference]:
    reference = with_thresholds(world.reference, asked)
    found = statistics([world.rows], reference)
    values = list(numbers(families, Scored(found, reference, asked)))
    scored = {value[:3]: value.value for value in values}
    assert len(scored) == len(values)
    return scored, found, reference


def close(value: float, exact: Fraction) -> bool:
    return value == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def best(losses: list[tuple[Fraction, float]]) -> tuple[Fraction, float]:
    """The least loss and the lowest threshold that has it."""
    return min(losses)


@examples(150)
@given(worlds(), st.sampled_from(POINTS), st.sampled_from(["none", "kwseval"]))
def test_mtwv(world: World, point: dict[str, float], compat: str) -> None:
    asked = evaluation(operating_point=point, compat=compat)
    scored, _, reference = score(world, asked)
    beta = weights(reference, asked).exact_beta
    for part in parts(world):
        found = {name: scored[part.name, None, name] for _, _, name in scored if name.startswith("mtwv")}
        if not part.n_act:
            assert all(math.isnan(value) for value in found.values())
            continue
        thresholds = [*part.scores, *([math.inf] if compat == "none" or not part.scores else [])]
        losses = []
        for threshold in thresholds:
            miss, alarm = part.rates(above(threshold))
            losses.append((miss + beta * alarm, threshold))
        loss, threshold = best(losses)
        if compat == "kwseval" and not part.scores:
            assert math.isnan(found["mtwv_threshold"])
        else:
            assert found["mtwv_threshold"] == threshold
        assert found["mtwv_rejected_threshold"] == max((s for s in part.scores if s < threshold), default=-math.inf)
        miss, alarm = part.rates(above(threshold))
        assert close(found["mtwv"], 1 - loss)
        assert close(found["mtwv_p_miss"], miss)
        assert close(found["mtwv_p_fa"], alarm)


@examples(150)
@given(worlds(), st.sampled_from(POINTS), st.sampled_from(["none", "kwseval"]))
def test_losses_add_up(world: World, point: dict[str, float], compat: str) -> None:
    names = ("atwv", "mtwv", "otwv", "stwv", "loss_threshold")
    scored, _, reference = score(world, evaluation(operating_point=point, compat=compat), select(names))
    for condition in reference.conditions:
        found = {
            name: scored[condition.name, None, name]
            for where, query, name in scored
            if (where, query) == (condition.name, None)
        }
        parts = [found[f"loss_{part}"] for part in ("not_found", "within_query", "across_queries", "threshold")]
        atwv = found["atwv"]
        if any(math.isnan(part) for part in parts):
            assert any(math.isnan(found[name]) for name in ("stwv", "otwv", "mtwv", "atwv"))
            continue
        last_bit = math.ulp(1.0 + max(abs(found[name]) for name in ("otwv", "mtwv", "atwv")))
        assert abs(math.fsum(parts) - (1 - atwv)) <= 5 * last_bit / 2
        n_act = reference.condition_targets(condition)[condition.queries]
        if (n_act > 0).all():
            assert min(parts[:3]) >= -1e-12 * (1 + abs(found["mtwv"]))


def looked_up(rows: list[tuple[float, int, bool]], at: float) -> float:
    """The threshold that KWSEval prints for a query with its optimum at `at`."""
    hits, others = (sorted(score for score, _, mapped in rows if mapped == wanted) for wanted in (True, False))
    number = sum(score < at for score in hits)
    n_false_alarms = sum(score >= at for score in others)
    found = [*hits[number : number + 1], *others[n_false_alarms : n_false_alarms + 1]]
    if not found and at < 0:
        return math.nan
    return min(found) if len(found) == 2 and min(found) > at else max([*found, at])


@examples(150)
@given(worlds(), st.sampled_from(POINTS), st.sampled_from(["none", "kwseval"]))
def test_otwv(world: World, point: dict[str, float], compat: str) -> None:
    asked = evaluation(operating_point=point, compat=compat)
    scored, _, reference = score(world, asked)
    beta = weights(reference, asked).exact_beta
    for part in parts(world):
        if compat == "kwseval" and not part.scores:
            names = [None, *(reference.query_ids[q] for q in part.n_act)]
            found = [scored[part.name, name, measure] for name in names for measure in ("otwv", "otwv_p_fa", "stwv")]
            assert all(math.isnan(value) for value in found)
            continue
        misses, alarms = Fraction(0), Fraction(0)
        for q in part.n_act:
            thresholds = [*part.scores, *([math.inf] if compat == "none" or not part.scores else [])]
            losses = []
            for threshold in thresholds:
                own = min((s for s, _, _ in part.rows[q] if s >= threshold), default=math.inf)
                miss, alarm = part.query_rates(q, above(threshold))
                losses.append((miss + beta * alarm, threshold, own))
            loss, at, threshold = min(losses)
            name = reference.query_ids[q]
            printed = looked_up(part.rows[q], at) if compat == "kwseval" else threshold
            if math.isnan(printed):
                assert math.isnan(scored[part.name, name, "otwv_threshold"])
                assert math.isnan(scored[part.name, name, "otwv"])
            else:
                assert scored[part.name, name, "otwv_threshold"] == printed
                assert close(scored[part.name, name, "otwv"], 1 - loss)
            miss, alarm = part.query_rates(q, above(threshold))
            misses, alarms = misses + miss, alarms + alarm
        if part.n_act:
            n = len(part.n_act)
            assert close(scored[part.name, None, "otwv_p_miss"], misses / n)
            assert close(scored[part.name, None, "otwv_p_fa"], alarms / n)
            assert close(scored[part.name, None, "otwv"], 1 - (misses + beta * alarms) / n)


@given(worlds(no_targets=True), st.sampled_from(POINTS))
def test_decisions(world: World, point: dict[str, float]) -> None:
    asked = evaluation(operating_point=point, no_targets="false_alarms_only")
    scored, _, reference = score(world, asked)
    beta = weights(reference, asked).exact_beta
    for part in parts(world):
        if not any(part.n_act.values()):
            assert not part.n_act or math.isnan(scored[part.name, None, "atwv"])
            continue
        miss, alarm = part.rates(lambda _, decision: decision == 1)
        assert close(scored[part.name, None, "p_miss"], miss)
        assert close(scored[part.name, None, "p_fa"], alarm)
        assert close(scored[part.name, None, "atwv"], 1 - (miss + beta * alarm))
        assert scored[part.name, None, "c_norm"] == pytest.approx(
            scored[part.name, None, "c_det"] / scored[part.name, None, "c_default"]
        )
        if beta >= 1:
            assert close(scored[part.name, None, "c_norm"], miss + beta * alarm)
        miss, _ = part.rates(lambda *_: True)
        assert close(scored[part.name, None, "stwv"], 1 - miss)
        rows = [row for rows in part.rows.values() for row in rows]
        assert scored[part.name, None, "n_detections"] == len(rows)
        assert scored[part.name, None, "n_hit"] == sum(decision == 1 and mapped for _, decision, mapped in rows)
        assert scored[part.name, None, "n_queries"] == len(part.n_act)


@given(worlds(), st.lists(st.floats(-3, 3), max_size=3))
def test_twv_at_thresholds(world: World, thresholds: list[float]) -> None:
    asked = evaluation(operating_point=POINTS[0], thresholds=thresholds)
    scored, _, reference = score(world, asked)
    point = weights(reference, asked)
    names = {"twv_bayes": point.bayes_threshold} | {f"twv@{theta!r}": theta for theta in thresholds}
    for part in parts(world):
        for name, theta in names.items():
            if part.n_act:
                miss, alarm = part.rates(above(theta))
                assert close(scored[part.name, None, name], 1 - (miss + point.exact_beta * alarm))


@given(worlds(), st.lists(st.floats(0, 1), max_size=3))
def test_det(world: World, points: list[float]) -> None:
    asked = evaluation(p_fa_points=points)
    scored, found, reference = score(world, asked)
    drawn = {(curve.condition, curve.curve): curve for curve in curves(Scored(found, reference, asked))}
    for part in parts(world):
        if not part.n_act:
            continue
        hits = {s for rows in part.rows.values() for s, _, mapped in rows if mapped}
        thresholds = sorted(hits | {math.inf} | set(part.scores[:1]), reverse=True)
        curve, pooled = drawn[part.name, "det"], drawn[part.name, "det_pooled"]
        assert curve.threshold.tolist() == pooled.threshold.tolist() == thresholds
        every = [row for rows in part.rows.values() for row in rows]
        n_target = sum(part.n_act.values())
        n_nontarget = len(part.n_act) * part.n_trials - n_target
        exact = []
        for at, threshold in enumerate(thresholds):
            miss, alarm = part.rates(above(threshold))
            exact.append((alarm, miss))
            assert close(curve.x[at], alarm)
            assert close(curve.y[at], miss)
            accepted = [mapped for s, _, mapped in every if s >= threshold]
            assert close(pooled.y[at], Fraction(n_target - sum(accepted), n_target))
            assert close(pooled.x[at], Fraction(len(accepted) - sum(accepted), n_nontarget))
        assert_eer(scored[part.name, None, "eer"], exact)
        for point in points:
            value = scored[part.name, None, f"p_miss@{point!r}"]
            assert_on_curve(value, point, exact)


def assert_eer(value: float, vertices: list[tuple[Fraction, Fraction]]) -> None:
    for (x0, y0), (x1, y1) in pairwise(vertices):
        if x1 >= y1:
            share = (y0 - x0) / ((y0 - x0) - (y1 - x1))
            assert close(value, x0 + share * (x1 - x0))
            return
    assert math.isnan(value)


def assert_on_curve(value: float, point: float, vertices: list[tuple[Fraction, Fraction]]) -> None:
    """The lowest P_miss of all segments at a P_fa."""
    at = Fraction(point)
    heights = [y for x, y in vertices if x == at]
    for (x0, y0), (x1, y1) in pairwise(vertices):
        if x0 < at < x1:
            heights.append(y0 + (at - x0) / (x1 - x0) * (y1 - y0))
    if at > vertices[-1][0]:
        assert math.isnan(value) or any(abs(float(x) - point) < 1e-12 for x, _ in vertices)
    elif not any(abs(float(x) - point) < 1e-12 and x != at for x, _ in vertices):
        assert value == pytest.approx(float(min(heights)), rel=1e-9, abs=1e-9)


def average_precision(rows: list[tuple[float, int, bool]], n_act: int, compat: str) -> Fraction:
    """The definition, group by group (or, as KWSEval, row by row by the text of scores, false alarms first)."""
    if compat == "kwseval":
        ranked = sorted(rows, key=lambda row: row[2])
        ranked.sort(key=lambda row: str(pa.scalar(row[0] + 0.0).cast(pa.string())), reverse=True)
        flags = [mapped for _, _, mapped in ranked]
        return (
            sum((Fraction(sum(flags[: k + 1]), k + 1) for k, mapped in enumerate(flags) if mapped), Fraction(0)) / n_act
        )
    groups = []
    for s in sorted({s for s, _, _ in rows}, reverse=True):
        accepted = [mapped for t, _, mapped in rows if t >= s]
        new = sum(mapped for t, _, mapped in rows if t == s)
        groups.append((new, Fraction(sum(accepted), len(accepted))))
    return sum((new * max(p for _, p in groups[k:]) for k, (new, _) in enumerate(groups)), Fraction(0)) / n_act


@given(worlds(), st.sampled_from(["none", "kwseval"]))
def test_average_precision(world: World, compat: str) -> None:
    scored, _, reference = score(world, evaluation(compat=compat))
    for part in parts(world):
        each = {q: average_precision(part.rows[q], n_act, compat) for q, n_act in part.n_act.items()}
        for q, exact in each.items():
            assert close(scored[part.name, reference.query_ids[q], "ap"], exact)
        if each:
            assert close(scored[part.name, None, "map"], sum(each.values(), Fraction(0)) / len(each))
            every = [row for rows in part.rows.values() for row in rows]
            assert close(scored[part.name, None, "ap"], average_precision(every, sum(part.n_act.values()), compat))


@examples(50)
@given(worlds(decisions=(-1, 0, 1)).flatmap(lambda w: st.tuples(st.just(w), cells(w.rows))), st.integers(0, 99))
def test_any_split_gives_the_same_numbers(split: tuple[World, list[list[Any]]], tree: int) -> None:
    world, rows = split
    asked = evaluation(operating_point=POINTS[1], p_fa_points=[0.1], thresholds=[0.5])
    reference = with_thresholds(world.reference, asked)
    given = [
        [(*value[:3], value.value.hex()) for value in numbers(MEASURES, Scored(found, reference, asked))]
        for found in (statistics([world.rows], reference), statistics(rows, reference, tree))
    ]
    assert given[0] == given[1]


@given(worlds())
def test_a_condition_does_not_depend_on_the_others(world: World) -> None:
    asked = evaluation(operating_point=POINTS[1])
    scored, _, reference = score(world, asked)
    columns = {name: getattr(reference, name) for name in reference.__dataclass_fields__}
    whole = reference.conditions[:1]
    class_of = np.where(whole[0].queries[:, None], reference.targets.sum(axis=1)[:, None], -1) * np.ones_like(
        reference.targets
    )
    distinct, numbers = np.unique(class_of, return_inverse=True)
    numbers = numbers.reshape(class_of.shape) - int(-1 in distinct)
    alone = Reference(
        **{
            **columns,
            "conditions": whole,
            "class_of": numbers.astype(np.int32),
            "n_classes": int((distinct >= 0).sum()),
        }
    )
    scored_alone, _, _ = score(World(world.rows, alone), asked)
    for key, value in scored_alone.items():
        assert scored[key].hex() == value.hex()
