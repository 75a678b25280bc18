"""Rankings by score, of each query and of all trials together, as the places of their hits; and their precision.

A ranking is kept as its hits with the false alarms before each, since precision peaks at hits. Its steps have the
precision at every hit, by the rule for equal scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from swsdask.kernels.ladder import find_own_rungs
from swsdask.measures.measure import Population, Scored, cached
from swsdask.model.columns import between, list_sums, ratio
from swsdask.model.ranked_measures import RELEVANT
from swsdask.model.trials import F64, I64, Bool
from swsdask.statistics.counts import class_layers, layers_of
from swsdask.statistics.ladder import Hits
from swsdask.statistics.ranks import (
    EventHits,
    EventPooledRanks,
    EventQueryRanks,
    HitPlaces,
    JudgedRanks,
    JudgedTies,
    JudgedTrials,
    PooledRanks,
    QueryRanks,
    TiedRanks,
    ranked,
)
from swsdask.statistics.statistic import Statistic

NEEDS: tuple[type[Statistic], ...] = (Hits, QueryRanks, EventHits, EventQueryRanks, HitPlaces, TiedRanks)
"""The statistics that the rankings of queries are built from: those of trials, or of events if rankings have events of
their own; the last two only if a rule orders equal scores."""

POOLED_NEEDS: tuple[type[Statistic], ...] = (Hits, PooledRanks, EventHits, EventPooledRanks, HitPlaces, TiedRanks)
"""The same for the ranking of all trials."""


@dataclass(frozen=True, eq=False)
class Rankings:
    """Some rankings, as their groups of equal scores that contain hits, each ranking from the highest score.

    Rows offsets[i] .. offsets[i + 1] of the int64 columns `new`, `above` and `through` are ranking i: `new` are the
    hits of a group, `above` the false alarms with higher scores, `through` those with its own score as well. `in_front`
    are the false alarms before each hit, if a rule orders equal scores, else None. `relevant` and `retrieved`, int64
    [n_rankings], are the numbers of targets and of trials.
    """

    offsets: I64
    new: I64
    above: I64
    through: I64
    in_front: I64 | None
    relevant: I64
    retrieved: I64

    def __len__(self) -> int:
        return len(self.relevant)

    @cached_property
    def number(self) -> I64:
        """The ranking of each group."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def hit_offsets(self) -> I64:
        """The hits of ranking i are hit_offsets[i] .. hit_offsets[i + 1] of all hits."""
        return np.append(0, np.cumsum(self.new))[self.offsets]

    @cached_property
    def hits(self) -> I64:
        """The hits of a ranking down to each group, including the group."""
        return np.cumsum(self.new) - self.hit_offsets[self.number]

    @cached_property
    def hit_ranks(self) -> I64:
        """The number of each hit in its ranking, from 1."""
        return np.arange(1, len(self._ranking_of_hit) + 1) - self.hit_offsets[self._ranking_of_hit]

    @cached_property
    def _ranking_of_hit(self) -> I64:
        return np.repeat(np.arange(len(self)), np.diff(self.hit_offsets))

    def false_alarms_in_front(self, ties: str) -> I64:
        """Return the false alarms before every hit: `ties` is "best", "worst" or an order.

        Raises `ValueError` if the order was not counted.
        """
        if ties == "best":
            return np.repeat(self.above, self.new)
        if ties == "worst":
            return np.repeat(self.through, self.new)
        if self.in_front is None:
            raise ValueError(f"the order of equal scores was not counted for ties = {ties!r}")
        return self.in_front


JUDGED: tuple[type[Statistic], ...] = (JudgedTrials, JudgedRanks, JudgedTies)
"""The statistics that the rankings of judged documents are built from."""


@cached
def query_rankings(scored: Scored, population: Population, level: int) -> Rankings:
    """Return the ranking of every query in the groups of documents of a condition.

    Targets are of grade `level` or above.
    """
    return _target_rankings(scored, population) if level == RELEVANT else judged_rankings(scored, population).at(level)


def _target_rankings(scored: Scored, population: Population) -> Rankings:
    reference = scored.reference
    ranks: QueryRanks = scored[EventQueryRanks] if EventHits in scored else scored[QueryRanks]
    hits = ranked_hits(scored)
    groups = population.condition.groups
    inside = groups[hits.group]
    score = ranked(hits.score[inside], reference.ranking)
    row = find_own_rungs(hits.query[inside], score, ranks.offsets, ranks.rungs)
    return rankings_of(
        offsets=ranks.offsets,
        counts=ranks.counts[:, groups].sum(axis=1),
        tied=ranks.tied[:, groups].sum(axis=1),
        new=np.bincount(row, minlength=len(ranks.rungs)),
        tied_in_front=_own_in_front(scored, population, HitPlaces, TiedRanks),
        relevant=reference.targets[:, groups].sum(axis=1),
    )


@dataclass(frozen=True, eq=False)
class JudgedRankings:
    """The rankings of queries as the places of their judged trials.

    `rankings` have all judged trials in place of hits: rows offsets[i] .. offsets[i + 1] of `rank`, from 1, and `grade`
    are those of ranking i in order. `judged` are the grades of all judged documents, retrieved or not, descending;
    those of ranking i are rows judged_offsets[i] .. judged_offsets[i + 1].
    """

    rankings: Rankings
    rank: I64
    grade: I64
    judged: I64
    judged_offsets: I64

    @property
    def offsets(self) -> I64:
        """The judged trials of ranking i are offsets[i] .. offsets[i + 1]."""
        return self.rankings.hit_offsets

    def n_judged(self, wanted: Bool) -> I64:
        """Return the number of `wanted` rows of `judged` in each ranking."""
        return list_sums(wanted, self.judged_offsets)

    def sums(self, wanted: Bool) -> I64:
        """Return the number of `wanted` judged trials in each ranking."""
        return list_sums(wanted, self.offsets)

    def before(self, wanted: Bool) -> I64:
        """Return the number of `wanted` judged trials before each one in its ranking."""
        sums = np.append(0, np.cumsum(wanted))
        in_front: I64 = sums[:-1] - np.repeat(sums[self.offsets[:-1]], np.diff(self.offsets))
        return in_front

    def at(self, level: int) -> Rankings:
        """Return the rankings with the judged trials of grade `level` or above as hits, all others as false alarms."""
        graded, relevant = self.rankings, self.grade >= level
        begin = np.append(0, np.cumsum(graded.new))
        sums = np.append(0, np.cumsum(relevant))
        first = graded.hit_offsets[graded.number]
        others_above = (begin[:-1] - first) - (sums[begin[:-1]] - sums[first])
        others_through = (begin[1:] - first) - (sums[begin[1:]] - sums[first])
        new = np.diff(sums[begin])
        held = new > 0
        return Rankings(
            offsets=np.append(0, np.cumsum(held))[graded.offsets],
            new=new[held],
            above=(graded.above + others_above)[held],
            through=(graded.through + others_through)[held],
            in_front=None if graded.in_front is None else (self.rank - 1 - self.before(relevant))[relevant],
            relevant=self.n_judged(self.judged >= level),
            retrieved=graded.retrieved,
        )


@cached
def judged_rankings(scored: Scored, population: Population) -> JudgedRankings:
    """Return the ranking of every query in the groups of documents of a condition, if documents are judged."""
    reference, trials, ranks = scored.reference, scored[JudgedTrials], scored[JudgedRanks]
    judgments, ties = reference.judgments, scored.settings.average_precision.ties
    if judgments is None:
        raise ValueError("no documents were judged")
    groups = population.condition.groups
    inside = groups[trials.group]
    query, score, grade = trials.query[inside], trials.score[inside], trials.grade[inside]
    row = find_own_rungs(query, score, ranks.offsets, ranks.rungs)
    counted = np.flatnonzero(groups[reference.group_of_document[judgments.document]])
    counted = counted[np.lexsort((-judgments.grade[counted], judgments.query[counted]))]
    rankings = rankings_of(
        offsets=ranks.offsets,
        counts=ranks.counts[:, groups].sum(axis=1),
        tied=ranks.tied[:, groups].sum(axis=1),
        new=np.bincount(row, minlength=len(ranks.rungs)),
        tied_in_front=_own_in_front(scored, population, JudgedTrials, JudgedTies),
        relevant=np.bincount(judgments.query[counted], minlength=reference.n_queries),
    )
    if rankings.in_front is None:
        ties = ties if ties == "best" else "worst"
        within = -grade if ties == "best" else grade
    else:
        within = trials.place[inside]
    return JudgedRankings(
        rankings=rankings,
        rank=rankings.false_alarms_in_front(ties) + rankings.hit_ranks,
        grade=grade[np.lexsort((within, -score, query))],
        judged=judgments.grade[counted],
        judged_offsets=np.searchsorted(judgments.query[counted], np.arange(reference.n_queries + 1)),
    )


@cached
def pooled_ranking(scored: Scored, population: Population) -> Rankings:
    """Return the one ranking of all trials of the queries that averages count."""
    reference = scored.reference
    ranks: PooledRanks = scored[EventPooledRanks] if EventHits in scored else scored[PooledRanks]
    hits = ranked_hits(scored)
    lines = _lines(scored, population)
    inside = population.queries[hits.query] & population.condition.groups[hits.group]
    rung = np.searchsorted(ranks.rungs, ranked(hits.score[inside], reference.ranking))
    return rankings_of(
        offsets=np.array([0, len(ranks.rungs)]),
        counts=ranks.counts[:, lines].sum(axis=1),
        tied=ranks.tied[:, lines].sum(axis=1),
        new=np.bincount(rung, minlength=len(ranks.rungs)),
        tied_in_front=_pooled_in_front(scored, population, lines),
        relevant=np.array([population.n_target]),
    )


def ranked_hits(scored: Scored) -> Hits:
    """Return the hits of rankings."""
    return scored[EventHits].hits if EventHits in scored else scored[Hits]


def _pooled_in_front(scored: Scored, population: Population, lines: Bool) -> I64 | None:
    """Return the false alarms of equal score before each hit, in the order of hits."""
    ties = scored.get(TiedRanks)
    if ties is None:
        return None
    places = scored[HitPlaces]
    chosen = population.queries[places.query] & population.condition.groups[places.group]
    columns = places.score[chosen], places.place[chosen], places.query[chosen]
    tie = np.searchsorted(ties.keys.scores, columns[0])
    number = ties.keys.pooled_keys(*columns)
    in_front = _within_ties(ties.pooled[:, lines].sum(axis=1), ties.keys.tie_of_pooled)[number]
    return in_front[np.lexsort((number, -tie))]


def _own_in_front(
    scored: Scored, population: Population, placed: type[HitPlaces], tied_ranks: type[TiedRanks]
) -> I64 | None:
    """For each placed trial, the trials of the same query and score that are before it and not placed themselves.

    By query, then in the order of placed trials.
    """
    ties = scored.get(tied_ranks)
    if ties is None:
        return None
    places = scored[placed]
    chosen = population.condition.groups[places.group]
    score, query = places.score[chosen], places.query[chosen]
    number = ties.keys.own_keys(score, places.place[chosen], query)
    tied = _within_ties(ties.own[:, population.condition.groups].sum(axis=1), ties.keys.tie_of_own)[number]
    return tied[np.lexsort((number, -score, query))]


def _within_ties(counts: I64, tie: I64) -> I64:
    """Return sums of `counts` from the first key of each tie to each key; `tie` is the tie of every key, ascending."""
    sums = np.cumsum(counts)
    before: I64 = np.append(0, sums)[np.searchsorted(tie, tie)]
    within: I64 = sums - before
    return within


def rankings_of(offsets: I64, counts: I64, tied: I64, new: I64, tied_in_front: I64 | None, relevant: I64) -> Rankings:
    """Build from columns of rungs: those of ranking i are offsets[i] .. offsets[i + 1], ascending, the last one inf."""
    end = np.repeat(offsets[1:], np.diff(offsets))
    row = np.arange(len(new))
    hits = between(new, row, end)
    false_alarms = between(counts, row + 1, end) - hits
    held = np.flatnonzero(new)
    ranking = np.searchsorted(offsets, held, "right") - 1
    steps = held[np.lexsort((-held, ranking))]
    through, new = false_alarms[steps], new[steps]
    above = through - (tied[steps] - new)
    return Rankings(
        offsets=np.searchsorted(ranking, np.arange(len(relevant) + 1)),
        new=new,
        above=above,
        through=through,
        in_front=None if tied_in_front is None else np.repeat(above, new) + tied_in_front,
        relevant=relevant,
        retrieved=list_sums(counts, offsets),
    )


def _lines(scored: Scored, population: Population) -> Bool:
    """Return the layers of classes that a condition holds: bool [n_layers]."""
    lines = np.zeros(class_layers(scored.reference)[1], np.bool_)
    lines[layers_of(scored.reference, population.number)] = True
    return lines


_BLOCK = 1 << 20


class Steps(NamedTuple):
    """Equally long float64 columns, in order of rank; those of ranking i are rows offsets[i] .. offsets[i + 1].

    `hits` are the hits of a step, `recalled` all hits down to it, `precision` the precision at its end and `before`
    that at the previous step, with hits or without (NaN for the first step of a ranking).
    """

    offsets: I64
    hits: F64
    recalled: F64
    precision: F64
    before: F64


def steps(rankings: Rankings, ties: str) -> Steps:
    """The steps of rankings. "group": equal scores are one step. "best", "worst" and rules that order trials: every
    hit is one step, with the false alarms that are before it.
    """
    if ties == "group":
        recalled, earlier = rankings.hits, rankings.hits - rankings.new
        return Steps(
            rankings.offsets,
            rankings.new.astype(np.float64),
            recalled.astype(np.float64),
            ratio(recalled, recalled + rankings.through),
            ratio(earlier, earlier + rankings.above),
        )
    in_front, recalled = rankings.false_alarms_in_front(ties), rankings.hit_ranks
    return Steps(
        rankings.hit_offsets,
        np.ones(len(in_front)),
        recalled.astype(np.float64),
        ratio(recalled, recalled + in_front),
        ratio(recalled - 1, recalled - 1 + in_front),
    )


def expected_steps(rankings: Rankings, number: int) -> Iterator[Steps]:
    """Yield the steps of one ranking with equal scores in any order, in blocks from the last to the first.

    Every possible rank of a hit is a step, with the expected number of hits, and the expected precision if a hit is
    there, over all orders of equal scores.
    """
    rows = slice(rankings.offsets[number], rankings.offsets[number + 1])
    new, above, through = rankings.new[rows], rankings.above[rows], rankings.through[rows]
    size = new + through - above
    ends = np.cumsum(size)
    hits_before = np.cumsum(new) - new
    end = int(ends[-1]) if len(ends) else 0
    for begin in range((end - 1) // _BLOCK * _BLOCK if end else 0, -1, -_BLOCK):
        place = np.arange(begin, min(begin + _BLOCK, end))
        group = np.searchsorted(ends, place, "right")
        n, h = size[group], new[group]
        others = place - (ends[group] - n)
        hits = hits_before[group] + others * ((h - 1) / np.maximum(n - 1, 1))
        rank = hits_before[group] + above[group] + others
        recalled = hits_before[group] + (others + 1) * (h / n)
        yield Steps(np.array([0, len(place)]), h / n, recalled, (hits + 1) / (rank + 1), ratio(hits, rank))
