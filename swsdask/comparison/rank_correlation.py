"""Rank correlation between measures: Kendall's tau-b, and tau_AP, which gives more weight to the top.

A low correlation of two measures means that they rank systems differently. Rankings are given by values, higher is
better; values may be infinite. Equal values are ties. All counts are integers and sums are rounded once, so the result
does not depend on the order of the systems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdask.model.errors import SettingsError
from swsdask.model.measures import better, measures_of_merit, select_measures
from swsdask.model.results import RankCorrelation, Result
from swsdask.model.trials import F64, I64
from swsdask.model.wording import choices, nearest


class Correlations(NamedTuple):
    """For each pair of rankings: the number of items in both, tau-b, tau_AP of the first with the second as truth."""

    n: I64
    tau_b: F64
    tau_ap: F64


def correlated(values: F64) -> Correlations:
    """Return the correlations of each pair of rankings.

    tau-b is (concordant - discordant pairs) / sqrt(pairs not tied in x * pairs not tied in y): 1 for equal rankings, -1
    for reversed ones. NaN if all of x or all of y are tied, so for fewer than two items.
    Source: Kendall, The Treatment of Ties in Ranking Problems, Biometrika 33 (1945).

    tau_AP of the ranking x with y as the truth is 1 for equal rankings, -1 for reversed ones, and not symmetric. It is
    the mean of C - D over the items with others above them in x: C is the share of those above that y puts above too,
    D the share that y puts below. Without ties it is 2 / (n - 1) sum over ranks i = 2 .. n of C(i) / (i - 1), minus 1,
    as in Yilmaz, Aslam and Robertson, A New Rank Correlation Coefficient for Information Retrieval, SIGIR 2008,
    Section 4. They do not define ties. Here "above" is strictly above: items tied in x are not compared with each
    other, items tied in y only are neither right nor wrong; so equal rankings have 1 with ties too. NaN if all of x
    are tied.

    Parameters
    ----------
    values : float64 [rankings, items]
        Higher is better; NaN for an item that a ranking does not have, which is left out of the ranking's pairs.

    Returns
    -------
    Correlations
        Arrays [rankings, rankings].

    Examples
    --------
    >>> correlated(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]])).tau_ap.tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """
    m, n = values.shape
    there = ~np.isnan(values)
    agreed, untied = np.zeros((m, m), np.int64), np.zeros((m, m), np.int64)
    shares = np.full((m, m, n), math.nan)
    at_once = max(1, _AT_ONCE // max(1, m * n))
    for items in (slice(first, first + at_once) for first in range(0, n, at_once)):
        own = values.T[items, :, np.newaxis]
        # Products of floats are fast, and sums of fewer than 2^24 ones exact.
        above = (values > own).astype(np.float32)  # [items, rankings, others]
        balance = _counts(above @ (above - (values < own)).swapaxes(1, 2))  # [items, rankings, truths]
        if there.all():
            n_above = np.broadcast_to(_counts(above.sum(axis=2))[..., np.newaxis], balance.shape)
        else:
            n_above = _counts(above @ (there & there.T[items, :, np.newaxis]).astype(np.float32).swapaxes(1, 2))
        agreed += balance.sum(axis=0)
        untied += n_above.sum(axis=0)
        shares[..., items] = np.where(n_above, balance / np.maximum(n_above, 1), math.nan).transpose(1, 2, 0)
    counted: I64 = there.astype(np.int64) @ there.T.astype(np.int64)
    # In a pair either item may be above the other, so both sums are half of those over all pairs.
    tau = [[_ratio(int(agreed[i, j]), int(untied[i, j]) * int(untied[j, i])) for j in range(m)] for i in range(m)]
    ap = [[_mean(row[~np.isnan(row)].tolist()) for row in of_one] for of_one in shares]
    return Correlations(counted, np.array(tau, np.float64).reshape(m, m), np.array(ap, np.float64).reshape(m, m))


def _counts(sums: NDArray[np.float32]) -> I64:
    return sums.astype(np.int64)


def _ratio(agreed: int, untied: int) -> float:
    return agreed / math.sqrt(untied) if untied else math.nan


def _mean(shares: Sequence[float]) -> float:
    return math.fsum(shares) / len(shares) if shares else math.nan


_AT_ONCE = 1 << 18
"""The number of pairs of items that are compared together, over all rankings: as many as fit in the cache."""


ENOUGH = 3
"""The minimum number of systems for which a comparison is shown by default: with two, tau is 1 or -1."""

NumbersByMeasure = dict[str, dict[str, float]]
"""Numbers over all queries, by measure and system."""


def rank_correlation(result: Result, measures: Iterable[str] | None = None, condition: str = "all") -> RankCorrelation:
    """Compare the rankings of a condition's systems under each pair of measures.

    `measures` are names, `twv@` for all its points; None: the requested ones with an order of merit, or, if all were
    requested, `model.measures.measures_of_merit`; without those that no system has. A system that lacks one of two
    measures is left out of that pair, and counted. Raises `SettingsError` for an unknown condition or measure, for a
    measure without an order of merit, and if there are fewer than two systems or measures to compare.
    """
    conditions = _by_condition(result)
    if condition not in conditions:
        raise SettingsError(f"condition {condition!r} is not in the result. It has: {choices(conditions, condition)}.")
    values = conditions[condition]
    systems = _systems(values)
    if len(systems) < 2:
        raise SettingsError(f"Rank correlation needs at least two systems; the result has only {', '.join(systems)}.")
    chosen = _default(result, values) if measures is None else _chosen(list(measures), list(values))
    if len(chosen) < 2:
        one, there = (", ".join(names) or "none" for names in (chosen, measures_of_merit(list(values))))
        raise SettingsError(f"Give two or more measures to compare; found {one}. The result has, for example: {there}.")
    return _compare(values, systems, chosen, condition)


def rank_correlations(result: Result) -> tuple[RankCorrelation, ...]:
    """The comparison of every condition that has `ENOUGH` systems and two measures, in the order of the result."""
    found = []
    for condition, values in _by_condition(result).items():
        systems, chosen = _systems(values), _default(result, values)
        if len(systems) >= ENOUGH and len(chosen) > 1:
            found.append(_compare(values, systems, chosen, condition))
    return tuple(found)


def _by_condition(result: Result) -> dict[str, NumbersByMeasure]:
    found: dict[str, NumbersByMeasure] = {}
    for (condition, system, measure), value in result.numbers.values.items():
        found.setdefault(condition, {}).setdefault(measure, {})[system] = value
    return found


def _systems(values: NumbersByMeasure) -> tuple[str, ...]:
    return tuple(dict.fromkeys(system for own in values.values() for system in own))


def _default(result: Result, values: NumbersByMeasure) -> list[str]:
    there = [name for name, own in values.items() if not all(map(math.isnan, own.values()))]
    return measures_of_merit(there, result.requested)


def _chosen(names: Sequence[str], known: Sequence[str]) -> list[str]:
    for name in names:
        if not any(select_measures([name], known)):
            near = nearest(name, known)
            raise SettingsError(f"measure {name!r} is not in the result. Nearest: {near}. Or score with it.")
        if not better(name):
            raise SettingsError(f"measure {name!r} has no order of merit: neither more nor less of it is better.")
    return list(dict.fromkeys(select_measures(names, known)))


def _compare(
    values: NumbersByMeasure, systems: tuple[str, ...], measures: Sequence[str], condition: str
) -> RankCorrelation:
    merits: F64 = np.array(
        [[better(name) * values[name].get(system, math.nan) for system in systems] for name in measures], np.float64
    )
    there = ~np.isnan(merits)
    winners = tuple(
        tuple(system for system, value in zip(systems, own.tolist(), strict=True) if value == best)
        for own, best in zip(merits, np.max(merits, axis=1, where=there, initial=-math.inf).tolist(), strict=True)
    )
    return RankCorrelation(condition, systems, tuple(measures), winners, *correlated(merits))
