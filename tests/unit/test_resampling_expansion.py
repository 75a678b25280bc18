"""The expansion of the cost of calibration: where it says that it is known, the least cost is that of a whole fit."""

from __future__ import annotations

import numpy as np
import pytest

from swsdask.measures.logistic_fit import ScoreShares, Separation, Shares, fit, sigmoid
from swsdask.measures.resampling.calibration import TrialCosts, least_costs

ETA = -1.5


@pytest.mark.parametrize(("n_queries", "spread", "least_known"), [(60, 0.2, 0.9), (8, 1.5, 0.0)])
def test_what_is_known_is_the_least_cost(n_queries: int, spread: float, least_known: float) -> None:
    rng = np.random.default_rng(n_queries)
    query = np.repeat(np.arange(n_queries), 40)
    target = rng.random(len(query)) < 0.3
    moved = spread * rng.normal(size=n_queries)[query]
    score = np.where(target, 1.5, -0.5) + moved + rng.normal(0.0, 1.0, len(query))

    def best(times: np.ndarray) -> tuple[float, float, float]:
        own = [Shares(score[side], times[query][side] / times[query][side].sum()) for side in (target, ~target)]
        found = fit(ScoreShares(own[0].there, own[1].there), Separation(None, None), ETA)
        return found.gamma, found.delta, found.cost

    gamma, delta, _ = best(np.ones(n_queries))
    x = gamma * score + delta + ETA
    weights = rng.multinomial(n_queries, np.full(n_queries, 1 / n_queries), 50).T
    sums, bound = 0.0, 0.0
    for side, share in ((target, sigmoid(ETA)), (~target, sigmoid(-ETA))):
        costs = TrialCosts.of(x[side], np.ones(side.sum()), query[side], n_queries, target=side is target)
        of_side = np.bincount(query[side], minlength=n_queries) @ weights
        polynomials, bounds = costs.weighed(np.ascontiguousarray(weights, np.float64))
        sums, bound = sums + polynomials * (share / of_side), bound + bounds * (share / of_side)
    assert isinstance(sums, np.ndarray)
    assert isinstance(bound, np.ndarray)
    found, known = least_costs(sums, bound)
    assert known.mean() >= least_known
    for replicate in np.flatnonzero(known).tolist():
        assert found[replicate] == pytest.approx(best(weights[:, replicate].astype(float))[2], rel=1e-13)
    assert not known[np.abs(found - [best(each.astype(float))[2] for each in weights.T]) > 1e-12].any()
