"""Sums over the points of moments are sums over the scores; and bins do not depend on how scores were split."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.kernels.entropy import softplus
from swsdask.model.trials import F64, Reference
from swsdask.statistics.ladder import Hits
from swsdask.statistics.moments import (
    Bins,
    LayeredScores,
    Moments,
    WeightedScores,
    Zoom,
    ZoomedMoments,
    nontarget_points,
    quadrature,
)
from tests.conftest import examples
from tests.engines import plain
from tests.property.worlds import World, cells, worlds
from tests.worlds import make_reference, make_trials, unaligned

N = 20_000
NOTHING = LayeredScores(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))
MAPS = ((1.0, 0.0), (1.0, -9.2), (-2.0, 3.0), (20.0, -10.0), (0.01, 0.0), (5.0, -100.0), (0.0, -4.2), (60.0, 10.0))
"""gamma, delta for scores in units of their spread, from their median."""

DRAWN: dict[str, Callable[[np.random.Generator], F64]] = {
    "like log-likelihood ratios": lambda rng: rng.normal(-4, 3, N),
    "probabilities": lambda rng: rng.beta(0.5, 3, N),
    "two kinds": lambda rng: np.where(rng.random(N) < 0.9, rng.normal(-6, 1, N), rng.normal(2, 2, N)),
    "one score": lambda rng: np.full(N, 0.37),
    "few scores": lambda rng: np.round(rng.normal(0, 1, N), 1),
    "many scores": lambda rng: np.round(rng.normal(0, 1, N), 4),
    "three in one bin": lambda rng: rng.choice([0.5001, 0.50011, 0.50013], N, p=[0.98, 0.0199, 0.0001]),
    "heavy tails": lambda rng: 3 * rng.standard_cauchy(N),
    "far away": lambda rng: 1e8 + rng.normal(0, 1, N),
    "tiny": lambda rng: rng.normal(0, 1e-6, N),
    "large": lambda rng: rng.normal(0, 1e6, N),
    "about one hit": lambda rng: np.append(rng.normal(7, 1e-4, N), [3.0]),
    "a few": lambda rng: rng.normal(0, 2, 7),
}


def hits_near(score: F64) -> F64:
    """Some targets: a little higher than most, or all of one score."""
    if score[-1] == 3.0:
        return np.full(9, 7.0)
    return np.quantile(score, np.linspace(0.5, 0.999, 201), method="inverted_cdf")


def points_of(score: F64, hits: F64) -> WeightedScores:
    """The points of some non-targets, by way of `found` as the engine has it."""
    reference = make_reference([[len(hits)]], {"all": ([True], [True], 10**6)})
    rows = [(0, 0, float(s), 0, False) for s in score] + [(0, 0, float(s), 1, True) for s in hits]
    trials = make_trials(rows)
    found: dict[type, object] = {}
    for kind in (Hits, Moments, ZoomedMoments):
        prepared = kind.prepare(found, reference)
        if prepared is not None:
            found[kind] = kind.from_trials(trials if kind.aligned else unaligned(trials), reference, prepared)
    return nontarget_points(found, reference, 0)


@pytest.mark.parametrize("name", DRAWN)
def test_costs_of_points_are_costs_of_scores(name: str) -> None:
    score = DRAWN[name](np.random.default_rng(len(name)))
    points = points_of(score, hits_near(score))
    assert points.n == len(score)
    centre = float(np.median(score))
    spread = float(np.subtract(*np.quantile(score, [0.75, 0.25]))) or 1.0
    z = (score - points.centre) / points.unit
    for gamma, delta in MAPS:
        slope = gamma / spread * points.unit
        shift = gamma * ((points.centre - centre) / spread) + delta
        literal = math.fsum(softplus(slope * z + shift))
        found = float(np.sum(points.weight * softplus(slope * points.z + shift)))
        assert found == pytest.approx(literal, rel=1e-13, abs=1e-13 * len(score))


@pytest.mark.parametrize("name", DRAWN)
def test_points_lie_among_the_scores_of_their_bin(name: str) -> None:
    score = DRAWN[name](np.random.default_rng(len(name)))
    points = points_of(score, hits_near(score))
    z = (score - points.centre) / points.unit
    wide = (np.abs(z).max() + 1.0) / 1024
    assert points.z.min() >= z.min() - 1e-12 * wide
    assert points.z.max() <= z.max() + 1e-12 * wide
    assert (points.weight > 0).all()
    assert len(points.z) <= len(score)
    assert float(np.sum(points.weight)) == pytest.approx(points.n, rel=1e-14)
    assert float(np.sum(points.weight * points.z)) == pytest.approx(math.fsum(z), rel=1e-13, abs=1e-13 * len(z))


def test_scores_of_any_size_give_points() -> None:
    score = np.array([-1.7e308, -1e200, -1e-200, -0.0, 5e-324, 3.0, 1e15, 1e308, 1e308])
    points = points_of(score, np.array([0.0, 1.0, 2.0]))
    assert np.isfinite(points.z).all()
    assert points.n == len(score)
    assert points.z[[0, 1, -1]].tolist() == [-(2.0**1023), -1e200, 2.0**1023]


def test_bins_about_0_do_for_log_likelihood_ratios_and_probabilities() -> None:
    reference = make_reference([[5], [0]], {"all": ([True, False], [True], 100)})

    def zoom(*scores: float, query: int = 0) -> Zoom | None:
        trials = make_trials([(query, 0, score, 1, True) for score in scores])
        moments = Moments.from_trials(trials, reference, Moments.prepare({}, reference))
        return ZoomedMoments.prepare({Hits: Hits.from_trials(trials, reference, ()), Moments: moments}, reference)

    assert zoom() is None
    assert zoom(-1.0, 4.0, 9.0) is None
    assert zoom(0.2, 0.5, 0.8) is None
    assert zoom(5e-6, 1e-6, 9e-6, query=1) is None
    assert zoom(1e-6, 5e-6, 9e-6) == Zoom(5e-6, 2.0**-17)
    assert zoom(1e8, 1e8 + 2, 1e8 + 3) == Zoom(1e8 + 2, 2.0)
    assert zoom(7.0, 7.0, 7.0, 7.0, 7.25) is None
    assert zoom(7.0, 7.0, 7.0, 7.0, 7.0625) == Zoom(7.0, 2.0**-3)
    assert zoom(7.0, 7.0) == Zoom(7.0, 2.0**-28)
    assert zoom(0.0, -0.0) == Zoom(0.0, 2.0**-900)


@examples(60)
@given(worlds().flatmap(lambda w: st.tuples(st.just(w), cells(w.rows))))
def test_zoomed_or_not_only_nontargets_of_the_condition_remain(
    split: tuple[World, list[list[tuple[int, int, float, int, bool]]]],
) -> None:
    world, parts = split
    reference = world.reference
    hits = Hits.from_trials(make_trials(world.rows), reference, ())
    moments = Moments.from_trials(make_trials([]), reference, Zoom(0.0, 1.0))
    zoom = Zoom(0.25, 0.5)
    zoomed = ZoomedMoments.from_trials(unaligned(make_trials([])), reference, zoom)
    for rows in parts:
        moments = Moments.from_trials(make_trials(rows), reference, moments.zoom).merge(moments)
        zoomed = zoomed.merge(ZoomedMoments.from_trials(unaligned(make_trials(rows)), reference, zoom))
    for number, condition in enumerate(reference.conditions):
        inside = counted(reference, number)
        score = np.array([row[2] for row in world.rows if inside[row[0], row[1]] and not row[4]])
        assert inside.any() == bool(condition.queries.any() and condition.groups.any())
        for found, about in (({Moments: moments}, moments.zoom), ({Hits: hits, ZoomedMoments: zoomed}, zoom)):
            alone = LayeredScores(np.array([0, len(score)]), np.zeros(1, np.int32), score)
            expected = quadrature(Bins.of(about, alone if len(score) else NOTHING, 1), about)
            assert plain(nontarget_points(found, reference, number)) == plain(expected)


def counted(reference: Reference, number: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    condition = reference.conditions[number]
    return condition.queries[:, np.newaxis] & condition.groups & (reference.class_of >= 0)
