"""Costs over a grid of priors, by Taylor's series, against the cost at each prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.measures.logistic_fit import ScoreShares, Shares
from swsdask.measures.threshold_curves import costs_over_priors

PRIORS = np.union1d(np.arange(-40, 41) / 4, [-6.906754778648554])


@given(
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([1e-3, 0.1, 1.0, 5.0, 30.0, 1e3, 1e300]),
    gamma=st.floats(-3, 3),
    delta=st.floats(-20, 20),
)
def test_the_series_is_the_cost(seed: int, spread: float, gamma: float, delta: float) -> None:
    generator = np.random.default_rng(seed)
    sides = [
        Shares(generator.normal(at, 1, n) * spread, generator.dirichlet(np.ones(n))) for at, n in ((1, 40), (-1, 90))
    ]
    scores = ScoreShares(*sides)
    literal = [scores.cost(x, gamma, delta) for x in PRIORS.tolist()]
    assert costs_over_priors(scores, PRIORS, gamma, delta) == pytest.approx(literal, rel=1e-12)


def test_each_prior_has_the_cost_that_it_has_alone() -> None:
    generator = np.random.default_rng(1)
    scores = ScoreShares(*(Shares(generator.normal(size=500), np.full(500, 0.002)) for _ in range(2)))
    whole = costs_over_priors(scores, PRIORS)
    alone = [costs_over_priors(scores, PRIORS[at : at + 1])[0] for at in range(len(PRIORS))]
    assert whole == pytest.approx(alone, rel=1e-13)
