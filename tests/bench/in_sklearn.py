"""The affine calibration of given trials by scikit-learn: weighted logistic regression without a penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

PRIOR = 1 / (1 + 66.656667)


def fit(scores: Sequence[str], outcomes: Sequence[str]) -> Callable[[], list[float]]:
    """Fits one system after the other, whose trials are in memory; the slopes."""
    systems = [(np.load(score)[:, np.newaxis], np.load(hit)) for score, hit in zip(scores, outcomes, strict=True)]

    def step() -> list[float]:
        slopes = []
        with threadpool_limits(1):
            for score, hit in systems:
                n_hits = np.count_nonzero(hit)
                weight = np.where(hit, PRIOR / n_hits, (1 - PRIOR) / (len(hit) - n_hits))
                model = LogisticRegression(C=np.inf).fit(score, hit, sample_weight=weight)
                slopes.append(float(model.coef_[0, 0]))
        return slopes

    return step
