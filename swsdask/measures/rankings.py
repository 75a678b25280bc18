"""Rankings by query, and the steps of precision along them.

Rankings by score: of each query, and of all trials together, as the places of their hits.

A ranking as steps: where hits are, and the precision there, by the rule for equal scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from swsdask.measures.averages import Population, populations
from swsdask.model.trials import F64, I64, Bool, Condition, Reference
from swsdask.statistics.counts import class_layers, class_targets
from swsdask.statistics.ladder import Hits
from swsdask.statistics.ranks import (
    EventHits,
    EventPooledRanks,
    EventQueryRanks,
    HitPlaces,
    PooledRanks,
    QueryRanks,
    TiedRanks,
    ranked,
)
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (Hits, QueryRanks, EventHits, EventQueryRanks, HitPlaces, TiedRanks)
"""The statistics that the rankings of queries are made of: those of trials, or of events where rankings have events of
their own; the last two only where a rule orders equal scores."""

POOLED_NEEDS: tuple[type[Statistic], ...] = (Hits, PooledRanks, EventHits, EventPooledRanks, HitPlaces, TiedRanks)
"""The same of the ranking of all."""

_KNOWN: WeakKeyDictionary[QueryRanks, dict[Condition, list[Ranking]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Ranking:
    """The groups of equal scores that hold hits, from the highest score: equally long int64 columns.

    `new` are the hits of a group, `above` the false alarms of higher scores, `through` those of its own as well.
    `in_front`, by hit, are the false alarms in front of it, where a rule orders equal scores, else None. `relevant` is
    the number of targets, `retrieved` that of trials.
    """

    new: I64
    above: I64
    through: I64
    in_front: I64 | None
    relevant: int
    retrieved: int


def rankings(
    statistics: Mapping[type[Statistic], Any], reference: Reference
) -> Iterator[tuple[Population, list[Ranking]]]:
    """Of every condition the ranking of each query. Those of a statistic are made once, kept for as long as it is."""
    of_query: QueryRanks = statistics[EventQueryRanks if EventHits in statistics else QueryRanks]
    known = _KNOWN.setdefault(of_query, {})
    for population in populations(reference):
        condition = population.condition
        if condition not in known:
            known[condition] = list(_of_queries(of_query, statistics, reference, population))
        yield population, known[condition]


def pooled_rankings(statistics: Mapping[type[Statistic], Any], reference: Reference) -> Iterator[Ranking]:
    """Of every condition the one ranking of the queries that averages count."""
    pooled: PooledRanks = statistics[EventPooledRanks if EventHits in statistics else PooledRanks]
    for population in populations(reference):
        yield _pooled(pooled, statistics, reference, population)


def _hits(statistics: Mapping[type[Statistic], Any]) -> Hits:
    hits: Hits = statistics[EventHits].hits if EventHits in statistics else statistics[Hits]
    return hits


def _of_queries(
    of_query: QueryRanks, statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population
) -> Iterator[Ranking]:
    hits = _hits(statistics)
    groups = population.condition.groups
    targets = reference.targets[:, groups].sum(axis=1).tolist()
    inside = groups[hits.group]
    score, query = ranked(hits.score[inside], reference.ranking), hits.query[inside]
    order = np.lexsort((score, query))
    score, query = score[order], query[order]
    bounds = np.searchsorted(query, np.arange(reference.n_queries + 1))
    counts, tied = of_query.counts[:, groups].sum(axis=1), of_query.tied[:, groups].sum(axis=1)
    in_front = _own_in_front(statistics, reference, population)
    for number, relevant in enumerate(targets):
        rows = slice(of_query.offsets[number], of_query.offsets[number + 1])
        own = score[bounds[number] : bounds[number + 1]]
        new = np.bincount(np.searchsorted(of_query.rungs[rows], own), minlength=rows.stop - rows.start)
        yield _ranking(counts[rows], tied[rows], new, None if in_front is None else in_front[number], relevant)


def _pooled(
    pooled: PooledRanks, statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population
) -> Ranking:
    hits = _hits(statistics)
    lines = _lines(reference, population)
    inside = population.queries[hits.query] & population.condition.groups[hits.group]
    rung = np.searchsorted(pooled.rungs, ranked(hits.score[inside], reference.ranking))
    new = np.bincount(rung, minlength=len(pooled.rungs))
    counts, tied = pooled.counts[:, lines].sum(axis=1), pooled.tied[:, lines].sum(axis=1)
    in_front = None
    if TiedRanks in statistics:
        places: HitPlaces = statistics[HitPlaces]
        ties: TiedRanks = statistics[TiedRanks]
        chosen = population.queries[places.query] & population.condition.groups[places.group]
        columns = places.score[chosen], places.place[chosen], places.query[chosen]
        tie = np.searchsorted(ties.keys.scores, columns[0])
        number = ties.keys.pooled_keys(*columns)
        in_front = _within_ties(ties.pooled[:, lines].sum(axis=1), ties.keys.tie_of_pooled)[number]
        in_front = in_front[np.lexsort((number, -tie))]
    return _ranking(counts, tied, new, in_front, population.n_target)


def _own_in_front(
    statistics: Mapping[type[Statistic], Any], reference: Reference, population: Population
) -> list[I64] | None:
    """By query, the false alarms of its own score in front of each hit, hits from the first to the last."""
    if TiedRanks not in statistics:
        return None
    places: HitPlaces = statistics[HitPlaces]
    ties: TiedRanks = statistics[TiedRanks]
    chosen = population.condition.groups[places.group]
    score, query = places.score[chosen], places.query[chosen]
    number = ties.keys.own_keys(score, places.place[chosen], query)
    tied = _within_ties(ties.own[:, population.condition.groups].sum(axis=1), ties.keys.tie_of_own)[number]
    order = np.lexsort((number, -score, query))
    return np.split(tied[order], np.searchsorted(query[order], np.arange(1, reference.n_queries)))


def _within_ties(counts: I64, tie: I64) -> I64:
    """Sums of `counts` from the first key of each tie to each key; `tie` is that of every key, ascending."""
    sums = np.cumsum(counts)
    before: I64 = np.append(0, sums)[np.searchsorted(tie, tie)]
    within: I64 = sums - before
    return within


def _ranking(counts: I64, tied: I64, new: I64, tied_in_front: I64 | None, relevant: int) -> Ranking:
    """From the columns of rungs, ascending, the last one inf."""
    accepted, hits = _from(np.append(counts[1:], 0)), _from(new)
    steps = np.flatnonzero(new)[::-1]
    through, new = (accepted - hits)[steps], new[steps]
    above = through - (tied[steps] - new)
    in_front = None if tied_in_front is None else np.repeat(above, new) + tied_in_front
    return Ranking(new, above, through, in_front, relevant, int(counts.sum()))


def _from(counts: I64) -> I64:
    """Sums of counts from each place to the last."""
    sums: I64 = np.cumsum(counts[::-1])[::-1]
    return sums


def _lines(reference: Reference, population: Population) -> Bool:
    """The layers of classes that a condition holds: bool [n_layers]."""
    layer, n_layers = class_layers(reference)
    lines = np.zeros(n_layers, np.bool_)
    lines[layer[class_targets(reference)[population.number] >= 0]] = True
    return lines


_BLOCK = 1 << 20


class Steps(NamedTuple):
    """Equally long float64 columns, in order of rank.

    `hits` are those of a step, `recalled` all hits down to it, `precision` that at its end and `before` the precision
    at the step in front of it (NaN: the first of the ranking has none), be that one with hits or without.
    """

    hits: F64
    recalled: F64
    precision: F64
    before: F64


def steps(ranking: Ranking, ties: str) -> Iterator[Steps]:
    """The steps of a ranking, in blocks from the last to the first.

    "group": equal scores are one step. "best", "worst" and rules that order trials: every hit is one, with the false
    alarms that are in front of it. "expected": every rank that a hit may have is one, which has the expected number of
    hits, and the expected precision if a hit is there, over all orders of equal scores.
    """
    if ties == "group":
        recalled = np.cumsum(ranking.new)
        before = _ratio(recalled - ranking.new, recalled - ranking.new + ranking.above)
        yield Steps(
            ranking.new.astype(np.float64),
            recalled.astype(np.float64),
            _ratio(recalled, recalled + ranking.through),
            before,
        )
    elif ties == "expected":
        yield from _expected(ranking)
    else:
        in_front = false_alarms_in_front(ranking, ties)
        recalled = np.arange(1, len(in_front) + 1)
        before = _ratio(recalled - 1, recalled - 1 + in_front)
        yield Steps(np.ones(len(in_front)), recalled.astype(np.float64), _ratio(recalled, recalled + in_front), before)


def false_alarms_in_front(ranking: Ranking, ties: str) -> I64:
    """The false alarms in front of every hit, from the first to the last: `ties` is "best", "worst" or an order.

    Raises `ValueError` where the order was not counted.
    """
    if ties == "best":
        return np.repeat(ranking.above, ranking.new)
    if ties == "worst":
        return np.repeat(ranking.through, ranking.new)
    if ranking.in_front is None:
        raise ValueError(f"the order of equal scores was not counted for ties = {ties!r}")
    return ranking.in_front


def _expected(ranking: Ranking) -> Iterator[Steps]:
    size = ranking.new + ranking.through - ranking.above
    ends = np.cumsum(size)
    hits_before = np.cumsum(ranking.new) - ranking.new
    end = int(ends[-1]) if len(ends) else 0
    for begin in range((end - 1) // _BLOCK * _BLOCK if end else 0, -1, -_BLOCK):
        place = np.arange(begin, min(begin + _BLOCK, end))
        group = np.searchsorted(ends, place, "right")
        n, h = size[group], ranking.new[group]
        others = place - (ends[group] - n)
        hits = hits_before[group] + others * ((h - 1) / np.maximum(n - 1, 1))
        rank = hits_before[group] + ranking.above[group] + others
        recalled = hits_before[group] + (others + 1) * (h / n)
        yield Steps(h / n, recalled, (hits + 1) / (rank + 1), _ratio(hits, rank))


def _ratio(counts: I64 | F64, totals: I64) -> F64:
    quotients = np.full(len(totals), np.nan)
    np.divide(counts, totals, out=quotients, where=totals > 0)
    return quotients
