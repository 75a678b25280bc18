"""Trials by ascending score, the imputed ones among them: what calibrations that only keep the order of scores need.

Between the scores at which targets lie there are only non-targets. A rising map never separates those from the targets
below them, or from each other, so one row for a rung of the ladder and all above it up to the next one is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.measures.censoring import Censored
from swsdask.measures.query_sweep import QuerySweep
from swsdask.measures.sweep import Sweep
from swsdask.model.trials import F64, I64


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Equally long columns: the lowest score of a row (-inf: below the first rung), target and non-target trials.

    `lowest` is float64, the others int64. The rows offsets[i] .. offsets[i + 1] are a list of ascending scores.
    """

    offsets: I64
    lowest: F64
    target: I64
    nontarget: I64


def pooled_rows(sweep: Sweep, trials: Censored) -> ScoreRows:
    """All trials of a condition as one list."""
    new_hits = sweep.hits - np.append(sweep.hits[1:], 0)
    ends = np.array([0, len(sweep.thresholds)])
    return _rows(ends, sweep.thresholds, new_hits, sweep.false_alarms, trials.pooled)


def query_rows(sweep: QuerySweep, trials: Censored) -> ScoreRows:
    """The trials of each query of a condition as a list; those of other queries are empty."""
    inside = np.repeat(trials.target + trials.nontarget > 0, np.diff(sweep.offsets))
    new_hits, false_alarms = np.where(inside, sweep.new_hits, 0), np.where(inside, sweep.false_alarms, 0)
    return _rows(sweep.offsets, sweep.thresholds, new_hits, false_alarms, trials)


def _rows(offsets: I64, thresholds: F64, new_hits: I64, false_alarms: I64, trials: Censored) -> ScoreRows:
    """From the hits at each threshold and the false alarms at or above it: one more row in front of each list.

    Imputed trials are at the lower end of their row: where `impute` is a number it is a rung (`asked_thresholds`), and
    nothing lies below a run's lowest score.
    """
    list_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    front = offsets[:-1] + np.arange(len(offsets) - 1)
    behind = np.arange(len(thresholds)) + list_of + 1
    n_rows = len(thresholds) + len(front)
    lowest = np.full(n_rows, -np.inf)
    target, above = np.zeros((2, n_rows), np.int64)
    lowest[behind], target[behind], above[behind] = thresholds, new_hits, false_alarms
    above[front] = trials.given_nontarget
    nontarget = above - np.append(above[1:], 0)
    nontarget[front[1:] - 1] = 0
    at = front + np.bincount(list_of[thresholds <= trials.score], minlength=len(front))
    target[at] += trials.imputed_target
    nontarget[at] += trials.imputed_nontarget
    return ScoreRows(np.append(front, n_rows), lowest, target, nontarget)
