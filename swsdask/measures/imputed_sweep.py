"""The sweep of a condition in which imputed trials are accepted too, where the threshold is at their score or below.

Where scores are log-likelihood ratios of all trials, as for error rates over priors (`measures.ape`), an imputed trial
is decided for like any other.

QUIRK, for TWV under `compat = "mediaeval"` only: MediaEval's tool gives a missing trial the default score and moves the
threshold over it. Elsewhere TWV accepts a trial that was not given at no threshold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from swsdask.measures.censoring import Censored
from swsdask.measures.population import Population
from swsdask.measures.sweep import Sweep


def with_imputed(sweep: Sweep, population: Population, trials: Censored) -> Sweep:
    """The sweep with one more threshold at the imputed score, unless nothing is imputed."""
    targets, nontargets = trials.imputed_target, trials.imputed_nontarget
    n_imputed = int(targets.sum() + nontargets.sum())
    if not n_imputed:
        return sweep
    at = int(np.searchsorted(sweep.thresholds, trials.score))
    if sweep.thresholds[at] != trials.score:
        sweep = _with_row(sweep, at, trials.score)
    accepted = np.arange(len(sweep.thresholds)) <= at
    p_miss, p_fa = population.rates_of(targets, nontargets)
    step = sweep.step.copy()
    step[at] |= bool(targets.any())
    rejected = np.where(accepted, sweep.rejected, np.maximum(sweep.rejected, trials.score))
    return replace(
        sweep,
        hits=sweep.hits + accepted * int(targets.sum()),
        false_alarms=sweep.false_alarms + accepted * int(nontargets.sum()),
        p_miss=np.maximum(sweep.p_miss - accepted * p_miss, 0.0),
        p_fa=sweep.p_fa + accepted * p_fa,
        rejected=rejected,
        step=step,
        bottom=min(sweep.bottom, at),
        top=max(sweep.top, at) if sweep.top < len(sweep.thresholds) - 1 else at,
    )


def _with_row(sweep: Sweep, at: int, threshold: float) -> Sweep:
    """A threshold between two others, where no trial is."""
    columns = {name: getattr(sweep, name) for name in ("hits", "false_alarms", "p_miss", "p_fa", "rejected")}
    return replace(
        sweep,
        thresholds=np.insert(sweep.thresholds, at, threshold),
        step=np.insert(sweep.step, at, False),
        bottom=sweep.bottom + (sweep.bottom >= at),
        top=sweep.top + (sweep.top >= at),
        **{name: np.insert(column, at, column[at]) for name, column in columns.items()},
    )
