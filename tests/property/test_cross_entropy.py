"""C_nxe and its minima against a loop over every trial, imputed ones too; and the laws between them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.measures import curves
from swsdask.measures.calibration import AffineCalibration, PavCalibration
from swsdask.measures.cross_entropy import CrossEntropy
from swsdask.measures.measure import Scored
from swsdask.model.settings import EvaluationSettings, weights
from swsdask.model.trials import Condition, Reference
from tests.conftest import examples
from tests.recalibration import exact_minimum, min_max_shares, overlapping
from tests.worlds import Row, make_reference, settings, statistics, with_thresholds
from tests.worlds import numbers as numbers_of

FAMILIES = (CrossEntropy(), AffineCalibration(), PavCalibration())
SCORES = st.sampled_from([-2.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 4.0]) | st.integers(-5000, 5000).map(
    lambda n: n / 1000
)


@dataclass(frozen=True)
class World:
    rows: Sequence[Row]
    reference: Reference
    asked: EvaluationSettings


@st.composite
def worlds(draw: st.DrawFn, **fixed: Any) -> World:
    """Up to four queries, two groups of documents, and the conditions "all", "first queries" and "second group"."""
    n_queries = draw(st.integers(1, 4))
    targets = [[draw(st.integers(0, 3)), draw(st.integers(0, 2))] for _ in range(n_queries)]
    rows: list[Row] = []
    for query in range(n_queries):
        for group in range(2):
            for number in range(draw(st.integers(0, 4))):
                hit = number < targets[query][group] and draw(st.booleans())
                rows.append((query, group, draw(SCORES), draw(st.integers(0, 1)), hit))
    listed = [sum(of) > 0 for of in targets]
    with_second = [of[1] > 0 for of in targets]
    n = draw(st.sampled_from([5, 9, 40, 10**6]))
    bare = make_reference(
        targets,
        {
            "all": (listed, [True, True], n),
            "first queries": ([q < 2 and listed[q] for q in range(n_queries)], [True, True], n),
            "second group": (with_second, [False, True], n // 2),
        },
    )
    impute = draw(st.sampled_from(["min", "min", 0.25, -3.0, 7.0]))
    point = {"beta": draw(st.sampled_from([0.3, 12.49, 66.656667, 999.9]))}
    asked = settings(**{"impute": impute, "operating_point": point, **fixed})
    return World(rows, with_thresholds(bare, asked), asked)


def numbers(world: World, cut: random.Random | None = None) -> dict[tuple[Any, ...], float]:
    cells = [list(world.rows)]
    if cut is not None:
        shuffled = cut.sample(list(world.rows), len(world.rows))
        places = [cut.randrange(3) for _ in shuffled]
        cells = [
            sorted((r for r, p in zip(shuffled, places, strict=True) if p == at), key=lambda r: r[0]) for at in range(3)
        ]
    found = statistics(cells, world.reference, None if cut is None else cut.randrange(100))
    return {v[:3]: v.value for v in numbers_of(FAMILIES, Scored(found, world.reference, world.asked))}


# --- trial by trial


@dataclass(frozen=True)
class Trials:
    """The scores of a query's trials, given and imputed."""

    target: list[float]
    nontarget: list[float]


def impute_score(world: World) -> float:
    if world.asked.impute != "min":
        return float(world.asked.impute)
    return min((row[2] for row in world.rows), default=0.0)


def trials_of(world: World, condition: Condition, query: int) -> Trials:
    given = [row for row in world.rows if row[0] == query and condition.groups[row[1]]]
    target = [row[2] for row in given if row[4]]
    nontarget = [row[2] for row in given if not row[4]]
    n_act = int(world.reference.targets[query][condition.groups].sum())
    score = impute_score(world)
    target += [score] * (n_act - len(target))
    nontarget += [score] * (min(condition.n_trials, 40) - n_act - len(nontarget))
    return Trials(target, nontarget)


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def literal_cxe(trials: Trials, eta: float, p_tar: float) -> float:
    """Eq. 43, in nats."""
    missed = math.fsum(softplus(-(s + eta)) for s in trials.target) / len(trials.target)
    accepted = math.fsum(softplus(s + eta) for s in trials.nontarget) / len(trials.nontarget)
    return p_tar * missed + (1 - p_tar) * accepted


def rows_of(trials: Trials) -> list[tuple[float, int, int]]:
    target, nontarget = Counter(trials.target), Counter(trials.nontarget)
    return [(s + 0.0, target[s], nontarget[s]) for s in sorted({*target, *nontarget})]


def literal_pav(parts: Sequence[Trials], eta: float, p_tar: float) -> float:
    """Eq. 43 in nats of isotonic llr: each part has its own map, and all share |T_true| and |T_false|."""
    n_target, n_nontarget = (sum(len(getattr(part, side)) for part in parts) for side in ("target", "nontarget"))
    costs = []
    for part in parts:
        rows = rows_of(part)
        for (_, t, n), share in zip(rows, min_max_shares([row[1:] for row in rows]), strict=True):
            if 0 < share < 1:
                llr = math.log(share / (1 - share)) - math.log(Fraction(n_target, n_nontarget))
                costs.append(p_tar * t / n_target * softplus(-(llr + eta)))
                costs.append((1 - p_tar) * n / n_nontarget * softplus(llr + eta))
    return math.fsum(costs)


@examples(60)
@given(world=worlds().filter(lambda world: world.reference.conditions[0].n_trials <= 40))
def test_every_number_is_that_of_a_loop_over_trials(world: World) -> None:
    found = numbers(world)
    point = weights(world.reference, world.asked)
    eta, p_tar = -math.log(point.beta), 1 / (1 + point.beta)
    prior = p_tar * -math.log(p_tar) + (1 - p_tar) * -math.log1p(-p_tar)
    for condition in world.reference.conditions:
        parts = {int(q): trials_of(world, condition, int(q)) for q in np.flatnonzero(condition.queries)}
        for query, part in parts.items():
            name = world.reference.query_ids[query]
            defined = part.target and part.nontarget
            expected = literal_cxe(part, eta, p_tar) / prior if defined else math.nan
            assert found[condition.name, name, "cnxe"] == pytest.approx(expected, rel=2e-15, nan_ok=True)
            assert found[condition.name, name, "cxe"] == pytest.approx(
                expected * prior / math.log(2), rel=3e-15, nan_ok=True
            )

        def overall(name: str, of: str = condition.name) -> float:
            return found[of, None, name]

        pool = Trials([s for p in parts.values() for s in p.target], [s for p in parts.values() for s in p.nontarget])
        counts = [overall(f"n_{kind}_{side}") for side in ("target", "nontarget") for kind in ("given", "imputed")]
        given = [r for r in world.rows if condition.queries[r[0]] and condition.groups[r[1]]]
        hits = sum(r[4] for r in given)
        assert counts[::2] == [hits, len(given) - hits]
        assert [counts[0] + counts[1], counts[2] + counts[3]] == [len(pool.target), len(pool.nontarget)]
        assert overall("impute_score") == impute_score(world)
        assert overall("cxe_prior") == pytest.approx(prior / math.log(2), rel=1e-15)
        if not (pool.target and pool.nontarget):
            for name in ("cnxe", "cnxe_min", "cnxe_min_pav", "cnxe_query_pav", "calibration_loss"):
                assert math.isnan(overall(name))
            continue
        cnxe = literal_cxe(pool, eta, p_tar) / prior
        pav, query_pav = (literal_pav(of, eta, p_tar) / prior for of in ([pool], list(parts.values())))
        assert overall("cnxe") == pytest.approx(cnxe, rel=2e-15)
        assert overall("cnxe_min_pav") == pytest.approx(pav, rel=1e-12, abs=1e-300)
        assert overall("cnxe_query_pav") == pytest.approx(query_pav, rel=1e-12, abs=1e-300)
        assert overall("calibration_loss_pav") == pytest.approx(cnxe - pav, abs=1e-12)
        rows = rows_of(pool)
        if overlapping(rows):
            with localcontext(prec=50):
                least, gamma, _ = exact_minimum(rows, eta)
            assert overall("cnxe_min") == pytest.approx(float(least), abs=1e-12)
            assert overall("cnxe_gamma") == pytest.approx(float(gamma), rel=1e-5, abs=1e-9)
            continue
        shared = [row for row in rows if row[1] and row[2]]
        assert overall("cnxe_min") == pytest.approx(literal_shared(shared, pool, p_tar) / prior, rel=1e-12)
        expected = math.inf if min(pool.target) >= max(pool.nontarget) else -math.inf
        assert overall("cnxe_gamma") == (0.0 if len(rows) == 1 else expected)


def literal_shared(shared: Sequence[tuple[float, int, int]], pool: Trials, p_tar: float) -> float:
    """The prior entropy of what is at the one score that both classes have, if there is one."""
    if not shared:
        return 0.0
    ((_, t, n),) = shared
    u, v = p_tar * t / len(pool.target), (1 - p_tar) * n / len(pool.nontarget)
    return u * math.log((u + v) / u) + v * math.log((u + v) / v)


@given(world=worlds(nonnegative_gamma=True))
def test_isotonic_below_affine_below_actual(world: World) -> None:
    found = numbers(world)
    for condition in world.reference.conditions:
        values = {
            name: found[condition.name, None, name] for name in ("cnxe_query_pav", "cnxe_min_pav", "cnxe_min", "cnxe")
        }
        if math.isnan(values["cnxe"]):
            continue
        ordered = list(values.values())
        assert all(low <= high + 1e-12 for low, high in pairwise(ordered))
        assert values["cnxe_min"] <= 1.0 + 1e-12
        assert found[condition.name, None, "cnxe_gamma"] >= 0.0
        assert found[condition.name, None, "calibration_loss"] >= 0.0


@examples(60)
@given(world=worlds(), seed=st.integers(0, 10**6))
def test_cells_and_their_order_change_no_bit(world: World, seed: int) -> None:
    assert repr(numbers(world, random.Random(seed))) == repr(numbers(world))


@examples(60)
@given(world=worlds())
def test_curves_agree_with_the_numbers_at_the_operating_point(world: World) -> None:
    found = Scored(statistics([list(world.rows)], world.reference), world.reference, world.asked)
    eta = world.reference.prior_log_odds
    values = numbers(world)
    drawn = {(c.condition, c.curve): c for c in curves(found) if c.curve.startswith("ece")}
    for condition in world.reference.conditions:
        prior = values[condition.name, None, "cxe_prior"]
        if math.isnan(values[condition.name, None, "cnxe"]):
            assert not any(name == condition.name for name, _ in drawn)
            continue
        expected = {
            "ece_default": prior,
            "ece_actual": values[condition.name, None, "cxe"],
            "ece_affine": values[condition.name, None, "cnxe_min"] * prior,
            "ece_pav": values[condition.name, None, "cnxe_min_pav"] * prior,
        }
        for name, value in expected.items():
            curve = drawn[condition.name, name]
            assert curve.x.tolist() == sorted({*(x / 4 for x in range(-40, 41)), eta})
            assert (curve.threshold == -curve.x).all()
            assert curve.y[curve.x == eta] == pytest.approx([value], abs=1e-12)
        pav, default = drawn[condition.name, "ece_pav"].y, drawn[condition.name, "ece_default"].y
        assert (pav <= default + 1e-12).all()
        assert (pav <= drawn[condition.name, "ece_actual"].y + 1e-12).all()


def literal_error_rate(x: float, trials: Trials, gamma: float = 1.0, delta: float = 0.0) -> float:
    missed = sum(gamma * s + delta < -x for s in trials.target) / len(trials.target)
    accepted = sum(gamma * s + delta >= -x for s in trials.nontarget) / len(trials.nontarget)
    return missed / (1 + math.exp(-x)) + accepted / (1 + math.exp(x))


def least_error_rate(x: float, trials: Trials) -> float:
    rates = []
    for threshold in {*trials.target, *trials.nontarget, math.inf}:
        missed = sum(s < threshold for s in trials.target) / len(trials.target)
        accepted = sum(s >= threshold for s in trials.nontarget) / len(trials.nontarget)
        rates.append(missed / (1 + math.exp(-x)) + accepted / (1 + math.exp(x)))
    return min(rates)


@examples(100)
@given(world=worlds().filter(lambda world: world.reference.conditions[0].n_trials <= 40))
def test_error_rates_over_priors_are_those_of_deciding_every_trial(world: World) -> None:
    found = Scored(statistics([list(world.rows)], world.reference), world.reference, world.asked)
    values = numbers(world)
    drawn = {(c.condition, c.curve): c for c in curves(found) if c.curve.startswith("ape")}
    for condition in world.reference.conditions:
        if math.isnan(values[condition.name, None, "cnxe"]):
            assert not any(name == condition.name for name, _ in drawn)
            continue
        parts = [trials_of(world, condition, int(q)) for q in np.flatnonzero(condition.queries)]
        pool = Trials([s for p in parts for s in p.target], [s for p in parts for s in p.nontarget])
        gamma, delta = (values[condition.name, None, f"cnxe_{name}"] for name in ("gamma", "delta"))

        def literal(name: str, x: float, pool: Trials = pool, gamma: float = gamma, delta: float = delta) -> float:
            if name == "ape_default":
                return 1 / (1 + math.exp(abs(x)))
            if name == "ape_actual":
                return literal_error_rate(x, pool)
            if name == "ape_affine" and math.isfinite(gamma):
                return literal_error_rate(x, pool, gamma, delta)
            if name == "ape_affine" and gamma < 0.0:
                return least_error_rate(x, Trials([-s for s in pool.target], [-s for s in pool.nontarget]))
            return least_error_rate(x, pool)

        for name in ("ape_default", "ape_actual", "ape_affine", "ape_pav"):
            curve = drawn[condition.name, name]
            assert curve.x.tolist() == sorted({*(x / 4 for x in range(-40, 41)), world.reference.prior_log_odds})
            assert (curve.threshold == -curve.x).all()
            assert curve.y.tolist() == pytest.approx([literal(name, x) for x in curve.x.tolist()], abs=1e-12)
