"""Rank correlation between measures: Kendall's tau-b, and tau_AP, which weighs the top.

A low correlation of two measures means that they rank systems differently. Rankings are given by values, higher is
better, float64 [n]; infinities may be among them, NaN may not. Equal values are ties. All counts are integers and sums
are rounded once, so the order of the systems never shows.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow.compute as pc

from swsdask.model.errors import SettingsError
from swsdask.model.measures import BALANCED, better, named
from swsdask.model.results import RankCorrelation, Result
from swsdask.model.tables import names_of
from swsdask.model.trials import F64, I8, I64


def tau_b(x: F64, y: F64) -> float:
    """Kendall's tau-b: (concordant - discordant pairs) / sqrt(pairs not tied in x * pairs not tied in y).

    1 for equal rankings, -1 for reversed ones. NaN where all of x or all of y are tied, so for fewer than two things.
    Source: Kendall, The Treatment of Ties in Ranking Problems, Biometrika 33 (1945).
    """
    s, t = _order(x), _order(y)
    untied = int(np.count_nonzero(s)) * int(np.count_nonzero(t))
    return int((s * t).sum()) / math.sqrt(untied) if untied else math.nan


def tau_ap(x: F64, y: F64) -> float:
    """tau_AP of the ranking x with y as the truth: 1 for equal rankings, -1 for reversed ones; not symmetric.

    Mean over the things with others above them in x of C - D, C being the share of those above that y puts above too,
    D the share of those that y puts below. Without ties it is 2 / (n - 1) sum over ranks i = 2 .. n of C(i) / (i - 1),
    less 1, as in Yilmaz, Aslam and Robertson, A New Rank Correlation Coefficient for Information Retrieval, SIGIR 2008,
    Section 4. They leave ties open. Here "above" is strictly above: what is tied in x says nothing of one another,
    what is tied in y only is neither right nor wrong; so it is 1 for equal rankings with ties too. NaN where all of x
    are tied.
    """
    above = _order(x) > 0
    n_above: I64 = above.sum(axis=0)
    agreed: I64 = (above * _order(y)).sum(axis=0)
    below = n_above > 0
    shares = (agreed[below] / n_above[below]).tolist()
    return math.fsum(shares) / len(shares) if shares else math.nan


def _order(x: F64) -> I8:
    """1 where the thing of a row is better than that of a column, -1 where it is worse: int8 [n, n]."""
    return np.greater.outer(x, x).view(np.int8) - np.less.outer(x, x).view(np.int8)


ENOUGH = 3
"""How many systems make a comparison worth showing unasked: with two, tau is 1 or -1."""

Values = dict[str, dict[str, float]]
"""Numbers over all queries, by measure and system."""


def rank_correlation(result: Result, measures: Iterable[str] | None = None, condition: str = "all") -> RankCorrelation:
    """Compare the rankings of a condition's systems under each pair of measures.

    `measures` are names, `twv@` for all its points; None: the requested ones with an order of merit, or, where
    all were, `model.measures.BALANCED`; less those that no system has. A system without one of two measures is left out
    of that pair, and counted. Raises `SettingsError` for an unknown condition or measure, one without an order of
    merit, and where fewer than two systems or measures are there to compare.
    """
    conditions = _by_condition(result)
    if condition not in conditions:
        raise SettingsError(f"condition {condition!r} is not in the result. It has: {', '.join(conditions)}.")
    values = conditions[condition]
    systems = _systems(values)
    if len(systems) < 2:
        raise SettingsError(
            f"Rankings are of two or more systems; here is {', '.join(systems)}. Score others beside it."
        )
    chosen = _default(result, values) if measures is None else _chosen(list(measures), list(values))
    if len(chosen) < 2:
        one, there = (", ".join(names) or "none" for names in (chosen, named(BALANCED, list(values))))
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


def _by_condition(result: Result) -> dict[str, Values]:
    rows = result.table.filter(pc.is_null(result.table["query"]))
    found: dict[str, Values] = {}
    names = (names_of(rows[name]) for name in ("condition", "measure", "system"))
    for condition, measure, system, value in zip(*names, rows["value"].to_pylist(), strict=True):
        found.setdefault(condition, {}).setdefault(measure, {})[system] = value
    return found


def _systems(values: Values) -> tuple[str, ...]:
    return tuple(dict.fromkeys(system for own in values.values() for system in own))


def _default(result: Result, values: Values) -> list[str]:
    asked = result.asked or BALANCED
    there = [name for name, own in values.items() if better(name) and not all(map(math.isnan, own.values()))]
    return list(dict.fromkeys(named(asked, there)))


def _chosen(names: Sequence[str], known: Sequence[str]) -> list[str]:
    for name in names:
        if not any(named([name], known)):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise SettingsError(f"measure {name!r} is not in the result. Nearest: {', '.join(near)}. Or score with it.")
        if not better(name):
            raise SettingsError(f"measure {name!r} has no order of merit: neither more nor less of it is better.")
    return list(dict.fromkeys(named(names, known)))


def _compare(values: Values, systems: tuple[str, ...], measures: Sequence[str], condition: str) -> RankCorrelation:
    n = len(measures)
    merits: F64 = np.array(
        [[better(name) * values[name].get(system, math.nan) for system in systems] for name in measures], np.float64
    )
    there = ~np.isnan(merits)
    taus, aps = np.full((n, n), math.nan), np.full((n, n), math.nan)
    n_systems = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(n):
            both = there[i] & there[j]
            x, y = merits[i, both], merits[j, both]
            n_systems[i, j] = len(x)
            taus[i, j] = tau_b(x, y)
            aps[i, j] = tau_ap(x, y)
    winners = tuple(
        tuple(system for system, value in zip(systems, own.tolist(), strict=True) if value == best)
        for own, best in zip(merits, np.max(merits, axis=1, where=there, initial=-math.inf).tolist(), strict=True)
    )
    return RankCorrelation(condition, systems, tuple(measures), winners, n_systems, taus, aps)
