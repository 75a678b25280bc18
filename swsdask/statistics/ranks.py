"""Ranks of relevant trials: the number of trials between the hits of a ranking, those that tie with a hit, their order.

Hits are known from the first round; precision rises at hits only, so the second round counts all trials between the
scores of hits, of each query and of all. Equal scores are also counted separately, since the treatment of ties is a
convention. Before counting, scores below the floor of the rankings are raised to it. If rankings compare in single
precision, scores are rounded to the nearest (half to even; those beyond its range count as its largest). If they are
compared as texts, they are replaced by numbers with the same order.

If the events of rankings (`statistics.alignment`) are not the evaluation's own trials, the same is counted for events;
otherwise this costs nothing.

If a rule orders equal scores, by document or as in the run, only the false alarms before hits matter, and of these only
those with a hit's own score are not yet counted. So the first round takes the places of hits among equal scores, the
second counts false alarms between these. Trials here are the events of rankings. The place of a trial is that of its
document, then that of its start; or that of its best detection in the run's files. Among equal places targets come
first. In the ranking of all queries equal places are ordered by query.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.kernels.ladder import count_ranks
from swsdask.kernels.text import text_order
from swsdask.model.ranked_measures import RankRule
from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.statistics.alignment import judged_events, ranked_events
from swsdask.statistics.counts import class_layers, stratum_layers, stretches, trial_groups
from swsdask.statistics.ladder import Hits, ListedRungs, distinct_scores
from swsdask.statistics.statistic import FirstRound, Found, OfDetections, Statistic

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def ranked(score: F64, rule: RankRule) -> F64:
    """Return scores as rankings compare them: 0.0 for -0.0."""
    if rule.floor > -np.inf:
        score = np.maximum(score, rule.floor)
    if rule.single:
        score = np.clip(score, -_LARGEST_SINGLE, _LARGEST_SINGLE).astype(np.float32).astype(np.float64)
    score = score + 0.0
    if rule.text:
        _, offsets, data = pa.array(score).cast(pa.string()).buffers()
        score = text_order(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32, len(score) + 1))
    return score


def query_rungs(hits: Hits | HitPlaces, reference: Reference) -> ListedRungs:
    """Return the rungs of every query."""
    query = np.concatenate([hits.query, np.arange(reference.n_queries)])
    score = np.append(ranked(hits.score, reference.ranking), np.full(reference.n_queries, np.inf))
    return ListedRungs.by_query(query, score, reference.n_queries)


def pooled_rungs(hits: Hits, reference: Reference) -> ListedRungs:
    """Return the rungs of the one ranking of the trials that conditions count."""
    counted = reference.class_of[hits.query, hits.group] >= 0
    return ListedRungs.of_all(np.append(distinct_scores(ranked(hits.score[counted], reference.ranking)), np.inf))


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Trials of one system between rungs.

    The rungs of a ranking are the ascending distinct scores of its hits, followed by inf; `counts` int64
    [len(rungs), n_lines] has in the same rows the number of its trials with a score >= the previous rung (if any) and
    < this one, `tied` its trials with exactly this score.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits,)
    aligned: ClassVar[bool] = False
    follows: ClassVar[tuple[str, ...]] = ("ranking",)

    rungs: F64
    offsets: I64
    counts: I64
    tied: I64

    def merge(self, other: Self) -> Self:
        """Return the trials of both parts together."""
        return type(self)(self.rungs, self.offsets, self.counts + other.counts, self.tied + other.tied)


class QueryRanks(_Ranked):
    """The ranking of every query; a line for every group of documents."""

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> ListedRungs | None:
        """Return the rungs of every query of a system; None if rankings have events of their own."""
        return query_rungs(found[Hits], reference) if reference.ranking.duplicates is None else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: ListedRungs) -> Self:
        """Return the trials of one cell between the rungs of their queries."""
        parts = stretches(trials)
        return cls(
            *_counted(parts.bounds, parts.query, parts.group, parts.score, reference.n_groups, reference, prepared)
        )

    def drawn(self, times: I64) -> Self:
        """Return the trials of a resample, see `Drawable.drawn`."""
        counts, tied = ((column @ times)[:, np.newaxis] for column in (self.counts, self.tied))
        return type(self)(self.rungs, self.offsets, counts, tied)


class PooledRanks(_Ranked):
    """One ranking of the trials of all queries; a line for each layer of classes (`statistics.counts.class_layers`)."""

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> ListedRungs | None:
        """Return the rungs of a system; None if rankings have events of their own."""
        return pooled_rungs(found[Hits], reference) if reference.ranking.duplicates is None else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: ListedRungs) -> Self:
        """Return the trials of one cell between the rungs."""
        parts = stretches(trials)
        _, n_layers = class_layers(reference)
        line = stratum_layers(parts.query, parts.group, reference)
        pooled = np.zeros(len(line), np.int32)
        return cls(*_counted(parts.bounds, pooled, line, parts.score, n_layers, reference, prepared))


def _counted(
    bounds: I64, ranking: I32, line: I16 | I32, score: F64, n_lines: int, reference: Reference, prepared: ListedRungs
) -> tuple[F64, I64, I64, I64]:
    rungs, offsets = prepared.rungs, prepared.offsets
    counts, tied = np.zeros((2, len(rungs), n_lines), np.int64)
    if not reference.ranking.as_given:
        score = ranked(score, reference.ranking)
    count_ranks(bounds, ranking, line.astype(np.int32), score, offsets, rungs, counts, tied)
    return rungs, offsets, counts, tied


class OfEvents(OfDetections):
    """A statistic of events: it needs outcomes, and the order in the run's files if events depend on it."""

    aligned: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()
    follows: ClassVar[tuple[str, ...]] = ("ranking",)

    @classmethod
    def columns_for(cls, reference: Reference) -> tuple[str, ...]:
        """With the order in the run's files if it counts."""
        return (*cls.columns, "position") if reference.ranking.duplicates == "first" else cls.columns


@dataclass(frozen=True, eq=False)
class EventHits(FirstRound, OfEvents):
    """The hits among one system's events; `further` counts the other detections of events."""

    hits: Hits
    further: int

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()] | None:
        """None if events are the evaluation's own trials."""
        return None if reference.ranking.duplicates is None else ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Return the events of one aligned cell."""
        events, further = ranked_events(trials, reference)
        return cls(Hits.from_trials(events, reference, ()), further)

    def merge(self, other: Self) -> Self:
        """Return the events of both parts together."""
        return type(self)(self.hits.merge(other.hits), self.further + other.further)

    def drawn(self, times: I64) -> Self:
        """Return the events of a resample, see `Drawable.drawn`."""
        return type(self)(self.hits.drawn(times), self.further)


class EventQueryRanks(OfEvents, QueryRanks):
    """The ranking of every query's events."""

    after: ClassVar[tuple[type[Statistic], ...]] = (EventHits,)

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> ListedRungs | None:
        """Return the rungs of every query of a system; None if events are the evaluation's own trials."""
        return query_rungs(found[EventHits].hits, reference) if EventHits in found else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: ListedRungs) -> Self:
        """Return the events of one aligned cell between the rungs of their queries."""
        return super().from_trials(ranked_events(trials, reference)[0], reference, prepared)


class EventPooledRanks(OfEvents, PooledRanks):
    """One ranking of the events of all queries."""

    after: ClassVar[tuple[type[Statistic], ...]] = (EventHits,)

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> ListedRungs | None:
        """Return the rungs of a system; None if events are the evaluation's own trials."""
        return pooled_rungs(found[EventHits].hits, reference) if EventHits in found else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: ListedRungs) -> Self:
        """Return the events of one aligned cell between the rungs."""
        return super().from_trials(ranked_events(trials, reference)[0], reference, prepared)


class OfPlaces(OfEvents):
    """A statistic of events with places: it needs their documents and starts, or the order in the run's files."""

    columns: ClassVar[tuple[str, ...]] = ("document", "start")

    @classmethod
    def columns_for(cls, reference: Reference) -> tuple[str, ...]:
        """With the order in the run's files if it counts."""
        columns = super().columns_for(reference)
        return (*columns, "position") if reference.ranking.order == "input" else columns


@dataclass(frozen=True, eq=False)
class HitPlaces(FirstRound, OfPlaces):
    """The multiset of one system's hits with their places, sorted by (score, place, query, group)."""

    score: F64
    place: I64
    query: I32
    group: I16

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()] | None:
        """None if no rule orders equal scores."""
        return None if reference.ranking.order is None else ()

    @classmethod
    def chosen(cls, trials: Trials, reference: Reference) -> tuple[Trials, I64, tuple[I64, ...]]:
        """Return the events of one aligned cell, the rows of the placed ones, and further columns of these."""
        events, _ = ranked_events(trials, reference)
        if events.hit is None:
            raise ValueError("hits need aligned trials")
        return events, events.hit, ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: object) -> Self:
        """Return the hits of one aligned cell."""
        events, rows, further = cls.chosen(trials, reference)
        score = ranked(events.score[rows], reference.ranking)
        place = _places(events, rows, reference)
        return cls._sorted(score, place, events.query[rows], trial_groups(events, rows), *further)

    @classmethod
    def others(cls, trials: Trials, reference: Reference) -> tuple[I32, I16, tuple[F64, I64]]:
        """Return the events of one aligned cell that are not placed: their queries, groups, and (scores, places)."""
        events, placed, _ = cls.chosen(trials, reference)
        rows = np.delete(np.arange(len(events)), placed)
        columns = ranked(events.score[rows], reference.ranking), _places(events, rows, reference)
        return events.query[rows], trial_groups(events, rows), columns

    @classmethod
    def _sorted(cls, *columns: NDArray[Any]) -> Self:
        score, place, query, group, *further = columns
        order = np.lexsort((*further, group, query, place, score))
        return cls(*(column[order] for column in columns))

    def merge(self, other: Self) -> Self:
        """Return the hits of both parts together."""
        names = [each.name for each in fields(self)]
        return self._sorted(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def drawn(self, times: I64) -> Self:
        """Return the hits of a resample, see `Drawable.drawn`."""
        row = np.repeat(np.arange(len(self.group)), times[self.group])
        columns = {each.name: getattr(self, each.name)[row] for each in fields(self)}
        return type(self)(**{**columns, "group": np.zeros(len(row), np.int16)})


@dataclass(frozen=True, eq=False)
class TieKeys:
    """The positions of hits among trials of equal score, as sorted distinct integers: of one query, and of all.

    `scores` are the distinct scores of hits, `places` their distinct places, `points` the distinct (place, query).
    A key is (tie, point); a tie is a score or, in `own`, a (query, score): `own_ties`.
    """

    scores: F64
    places: I64
    points: I64
    own_ties: I64
    own: I64
    pooled: I64
    n_queries: int

    @classmethod
    def of(cls, hits: HitPlaces, n_queries: int) -> Self:
        """Return the keys of some hits."""
        none = np.empty(0, np.int64)
        bare = cls(np.unique(hits.score), np.unique(hits.place), none, none, none, none, n_queries)
        at = np.searchsorted(bare.scores, hits.score)
        point, tie = bare._point(hits.place, hits.query), bare._own_tie(at, hits.query)
        points, own_ties = np.unique(point), np.unique(tie)
        n = len(points) + 1
        point = np.searchsorted(points, point)
        own = np.unique(np.searchsorted(own_ties, tie) * n + point)
        return cls(bare.scores, bare.places, points, own_ties, own, np.unique(at * n + point), n_queries)

    @property
    def tie_of_own(self) -> I64:
        """The tie of every key in `own`."""
        return self.own // (len(self.points) + 1)

    @property
    def tie_of_pooled(self) -> I64:
        """The tie of every key in `pooled`."""
        return self.pooled // (len(self.points) + 1)

    def pooled_keys(self, score: F64, place: I64, query: I32) -> I64:
        """Return the number in `pooled` of each hit."""
        return np.searchsorted(self.pooled, self._keys(np.searchsorted(self.scores, score), place, query))

    def own_keys(self, score: F64, place: I64, query: I32) -> I64:
        """Return the number in `own` of each hit."""
        tie = np.searchsorted(self.own_ties, self._own_tie(np.searchsorted(self.scores, score), query))
        return np.searchsorted(self.own, self._keys(tie, place, query))

    def in_front(self, score: F64, place: I64, query: I32) -> tuple[tuple[I64, I64], tuple[I64, I64]]:
        """Return (rows, first key after each) for the false alarms before some key; in `own`, and in `pooled`."""
        at = np.minimum(np.searchsorted(self.scores, score), max(len(self.scores) - 1, 0))
        tied = np.flatnonzero(self.scores[at] == score) if len(self.scores) else np.empty(0, np.int64)
        at, place, query = at[tied], place[tied], query[tied]
        wanted = self._own_tie(at, query)
        tie = np.minimum(np.searchsorted(self.own_ties, wanted), max(len(self.own_ties) - 1, 0))
        own = np.flatnonzero(self.own_ties[tie] == wanted)
        of_own, row_own = self._behind(self.own, tie[own], place[own], query[own])
        of_all, row_all = self._behind(self.pooled, at, place, query)
        return (tied[own[row_own]], of_own), (tied[row_all], of_all)

    def _behind(self, keys: I64, tie: I64, place: I64, query: I32) -> tuple[I64, I64]:
        n = len(self.points) + 1
        point = np.searchsorted(self.points, self._point(place, query), "right")
        key = np.searchsorted(keys, tie * n + point)
        there = np.flatnonzero(np.append(keys // n, -1)[key] == tie)
        return key[there], there

    def _keys(self, tie: I64, place: I64, query: I32) -> I64:
        keys: I64 = tie * (len(self.points) + 1) + np.searchsorted(self.points, self._point(place, query))
        return keys

    def _own_tie(self, at: I64, query: I32) -> I64:
        ties: I64 = query.astype(np.int64) * len(self.scores) + at
        return ties

    def _point(self, place: I64, query: I32) -> I64:
        """(place, query) as one integer, in order; a place without a hit comes before the next place with one."""
        at = np.searchsorted(self.places, place)
        exact = np.append(self.places, -1)[at] == place
        points: I64 = (2 * at + exact) * self.n_queries + np.where(exact, query, 0)
        return points


@dataclass(frozen=True, eq=False)
class TiedRanks(OfPlaces):
    """False alarms of one system between hits of equal score.

    `own` int64 [n_own_keys, n_groups] counts those before each own key of `keys` and after the previous key of the same
    query and score; `pooled` int64 [n_pooled_keys, n_layers] the same for all queries, by layer of classes.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (HitPlaces,)
    placed: ClassVar[type[HitPlaces]] = HitPlaces

    keys: TieKeys
    own: I64
    pooled: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> TieKeys | None:
        """Return the keys of a system's hits; None if no rule orders equal scores."""
        if reference.ranking.order is None or cls.placed not in found:
            return None
        return TieKeys.of(found[cls.placed], reference.n_queries)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: TieKeys) -> Self:
        """Return the false alarms of one aligned cell."""
        query, group, columns = cls.placed.others(trials, reference)
        _, n_layers = class_layers(reference)
        own = np.zeros((len(prepared.own), reference.n_groups), np.int64)
        pooled = np.zeros((len(prepared.pooled), n_layers), np.int64)
        (row, key), (row_all, key_all) = prepared.in_front(*columns, query)
        np.add.at(own, (key, group[row]), 1)
        line = stratum_layers(query[row_all], group[row_all], reference)
        np.add.at(pooled, (key_all[line >= 0], line[line >= 0]), 1)
        return cls(prepared, own, pooled)

    def merge(self, other: Self) -> Self:
        """Return the false alarms of both parts together."""
        return type(self)(self.keys, self.own + other.own, self.pooled + other.pooled)

    def drawn(self, times: I64) -> Self:
        """Return the false alarms of a resample, see `Drawable.drawn`.

        Those of all queries are omitted: their layers do not separate documents (`StratumTies` has them).
        """
        return type(self)(self.keys, (self.own @ times)[:, np.newaxis], self.pooled[:, :0])


@dataclass(frozen=True, eq=False)
class JudgedTrials(HitPlaces):
    """The judged trials of one system with their places, sorted by (score, place, query, group, grade).

    Together with the counts of `JudgedRanks` and `JudgedTies`, they give the rank and the grade of every judged trial
    in the ranking of its query. All measures of judged documents follow from these, at any relevant grade.
    """

    grade: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()] | None:
        """None if no documents were judged."""
        return None if reference.judgments is None else ()

    @classmethod
    def chosen(cls, trials: Trials, reference: Reference) -> tuple[Trials, I64, tuple[I64, ...]]:
        """Return the events of one aligned cell, the rows of those that are judged, and their grades."""
        events, rows, grade = judged_events(trials, reference)
        return events, rows, (grade,)


class JudgedRanks(EventQueryRanks):
    """The ranking of every query, counted between the scores of its judged trials."""

    after: ClassVar[tuple[type[Statistic], ...]] = (JudgedTrials,)

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> ListedRungs | None:
        """Return the rungs of every query; None if no documents were judged."""
        return query_rungs(found[JudgedTrials], reference) if JudgedTrials in found else None


class JudgedTies(TiedRanks):
    """Trials that are not judged between judged ones of equal score."""

    after: ClassVar[tuple[type[Statistic], ...]] = (JudgedTrials,)
    placed: ClassVar[type[HitPlaces]] = JudgedTrials


def _places(trials: Trials, rows: I64, reference: Reference) -> I64:
    """Return the order among equal scores: the places of trials, not negative, distinct for distinct rows.

    0 for all if no rule orders them.
    """
    if reference.ranking.order is None:
        return np.zeros(len(rows), np.int64)
    detections = trials.detections
    if detections is None or detections.document is None or detections.start is None:
        raise ValueError("documents and starts of detections were not read")
    rows = rows if trials.row is None else trials.row[rows]
    if reference.ranking.order == "input":
        if detections.position is None:
            raise ValueError("positions of detections were not read")
        return detections.position[rows]
    places: I64 = _document_places(reference)[detections.document[rows]] << 32 | detections.start[rows]
    return places


@lru_cache(maxsize=2)
def _document_places(reference: Reference) -> I64:
    """Return the place of every document by its id, int64 [n_documents + 1].

    The last is that of unknown documents, id "".
    """
    ids = np.array([*reference.document_ids, ""], object)
    order = np.argsort(ids, kind="stable")
    if reference.ranking.order == "document-descending":
        order = order[::-1]
    places = np.empty(len(ids), np.int64)
    places[order] = np.arange(len(ids))
    return places
