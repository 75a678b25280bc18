"""Isotonic regression: the rising map of scores with the least cross entropy, by pooling adjacent violators (PAV).

Rows are distinct scores, ascending, each with its number of target and of non-target trials, so equal scores stay
together. Rows are pooled into the fewest blocks whose share of targets rises from each to the next; in a block that
share, pav, is the empirical posterior of a target, and

    llr = logit(pav) - logit(|T_true| / |T|) = log(targets / nontargets) - log(|T_true| / |T_false|),

-inf in a block without targets (only the lowest can be one) and inf in one without non-targets (only the highest).
These are the log-likelihood ratios that cost least at every prior at once (Ayer et al. 1955; Brümmer and du Preez
2013, "The PAV algorithm optimizes binary proper scoring rules"). Blocks of one class cost nothing.

With u = P_tar targets / |T_true| and v = (1 - P_tar) nontargets / |T_false| in a block, its posterior log-odds at the
prior P_tar are log(u / v), so it costs u log((u + v) / u) + v log((u + v) / v) nats.

Imputed trials are among the rows. Between the scores at which targets lie there are only non-targets. A rising map
never separates those from the targets below them, or from each other, so one row for a rung of the ladder and all above
it up to the next one is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swsdask.kernels.entropy import pool_adjacent_violators
from swsdask.measures.cross_entropy import Censored
from swsdask.measures.logistic_fit import sigmoid
from swsdask.measures.sweep import QuerySweep, Sweep
from swsdask.model.trials import F64, I64


@dataclass(frozen=True, eq=False)
class Blocks:
    """Equally long int64 columns: the first row of each block, and its target and non-target trials."""

    first: I64
    target: I64
    nontarget: I64

    def llr(self, n_target: int, n_nontarget: int) -> F64:
        """The log-likelihood ratio of each block where the classes have so many trials: float64, -inf .. inf."""
        with np.errstate(divide="ignore"):
            return np.log(self.target / n_target) - np.log(self.nontarget / n_nontarget)

    def cost(self, n_target: int, n_nontarget: int, prior_log_odds: float) -> float:
        """The cost in nats of all trials at their blocks' llr: Eq. 43 of the 2013 measures document, without bits."""
        return float(self.costs(n_target, n_nontarget, [prior_log_odds])[0])

    def costs(self, n_target: int, n_nontarget: int, prior_log_odds: Sequence[float]) -> F64:
        """The same at each of some prior log-odds."""
        mixed = (self.target > 0) & (self.nontarget > 0)
        p_tar, other = (np.array([[sigmoid(sign * x)] for x in prior_log_odds]) for sign in (1, -1))
        u, v = p_tar * (self.target[mixed] / n_target), other * (self.nontarget[mixed] / n_nontarget)
        costs: F64 = np.sum(u * np.log1p(v / u) + v * np.log1p(u / v), axis=1)
        return costs


def isotonic_blocks(target: I64, nontarget: I64, offsets: I64 | None = None) -> Blocks:
    """The blocks of int64 [n] counts by ascending score; with `offsets`, of each list of rows on its own.

    The rows of list i are offsets[i] .. offsets[i + 1], int64 ascending, from 0 to n. Rows without trials are allowed.
    Raises `ValueError` if there are too many trials to count exactly: more than 2^63 pairs of a target and a
    non-target.
    """
    if int(target.sum()) * int(nontarget.sum()) >= 2**63:
        raise ValueError("too many pairs of a target and a non-target trial")
    ends = np.array([0, len(target)], np.int64) if offsets is None else offsets
    first = pool_adjacent_violators(ends, target, nontarget)
    if len(first) == 0:
        return Blocks(first, first, first)
    return Blocks(first, np.add.reduceat(target, first), np.add.reduceat(nontarget, first))


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
    """Put one more row in front of the hits at each threshold and the false alarms at or above it.

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
