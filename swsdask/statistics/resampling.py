"""Statistics for resampling queries: counts and moments of trials by stratum, where other statistics have only sums.

A replicate weights the queries, so what other statistics add over queries is kept by query here. A cell is a stratum
and a slot or bin with trials of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from swsdask.kernels.resampling import find_ladder_slots
from swsdask.model.columns import row_changes
from swsdask.model.trials import F64, I64, Reference, Trials
from swsdask.statistics.alignment import ranked_events
from swsdask.statistics.counts import Counts, stratum_numbers, stretches, trial_groups
from swsdask.statistics.ladder import Hits, Ladder
from swsdask.statistics.moments import Bins, LayeredScores, Moments, Zoom, ZoomedMoments
from swsdask.statistics.ranks import EventHits, HitPlaces, OfEvents, OfPlaces, TieKeys, pooled_rungs, ranked
from swsdask.statistics.statistic import FirstRound, Found, Statistic


@dataclass(frozen=True, eq=False)
class StratumLadder:
    """Trials of one system between rungs, stratum by stratum.

    `rungs` are those of `Ladder`, and the highest score of every stratum. A cell is a stratum and a slot:
    (query * n_groups + group) * len(rungs) + slot. `cells` int64, ascending, are the cells with trials, and `counts`
    int64 the numbers of trials.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits)
    aligned: ClassVar[bool] = False

    rungs: F64
    cells: I64
    counts: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> F64 | None:
        """Return the rungs of a system."""
        highest: F64 = found[Counts].highest
        return np.union1d(Ladder.prepare(found, reference).rungs, highest[np.isfinite(highest)])

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: F64) -> Self:
        """Return the trials of one cell of the archive."""
        parts = stretches(trials)
        slots = np.empty(len(parts.score), np.int32)
        find_ladder_slots(cls.compared(parts.score, reference), prepared, slots)
        stratum = stratum_numbers(parts.query, parts.group, reference.n_groups)
        cells, counts = np.unique(np.repeat(stratum * len(prepared), np.diff(parts.bounds)) + slots, return_counts=True)
        return cls(prepared, cells, np.asarray(counts, np.int64))

    @classmethod
    def compared(cls, score: F64, reference: Reference) -> F64:
        """Return scores in the form that is compared with rungs."""
        return score

    def merge(self, other: Self) -> Self:
        """Return the trials of both parts together."""
        return type(self)(self.rungs, *_added(self, other))

    def drawn(self, times: I64) -> Self:
        """Return the trials of a resample, see `Drawable.drawn`."""
        return type(self)(self.rungs, *_drawn(self, len(self.rungs), times))


class StratumRanks(StratumLadder):
    """Trials of one system between the rungs of `PooledRanks`; those with the score of a rung are separate.

    `rungs` are the scores of hits and the next float above each, so a slot has one score or those between two hits.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits,)
    follows: ClassVar[tuple[str, ...]] = ("ranking",)

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> F64 | None:
        """Return the rungs of a system; None if rankings have events of their own."""
        return cls._between(found[Hits], reference) if reference.ranking.duplicates is None else None

    @staticmethod
    def _between(hits: Hits, reference: Reference) -> F64:
        rungs = pooled_rungs(hits, reference).rungs
        with np.errstate(over="ignore"):
            return np.union1d(rungs, np.nextafter(rungs[:-1], np.inf))

    @classmethod
    def compared(cls, score: F64, reference: Reference) -> F64:
        """Return scores as rankings compare them."""
        return ranked(score, reference.ranking)


class EventStratumRanks(OfEvents, StratumRanks):
    """`StratumRanks` of the events of rankings, if these are not the evaluation's own trials."""

    after: ClassVar[tuple[type[Statistic], ...]] = (EventHits,)

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> F64 | None:
        """Return the rungs of a system; None if events are the evaluation's own trials."""
        return cls._between(found[EventHits].hits, reference) if EventHits in found else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: F64) -> Self:
        """Return the events of one aligned cell."""
        return super().from_trials(ranked_events(trials, reference)[0], reference, prepared)


@dataclass(frozen=True, eq=False)
class StratumTies(OfPlaces):
    """False alarms of one system before hits of equal score, if a rule orders them, stratum by stratum.

    A cell is a stratum and one of `keys.pooled`, as in `StratumLadder`; a false alarm counts at the first key after it
    only.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (HitPlaces,)

    keys: TieKeys
    cells: I64
    counts: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> TieKeys | None:
        """Return the keys of a system's hits; None if no rule orders equal scores."""
        return TieKeys.of(found[HitPlaces], reference.n_queries) if HitPlaces in found else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: TieKeys) -> Self:
        """Return the false alarms of one aligned cell."""
        query, group, columns = HitPlaces.others(trials, reference)
        _, (row, key) = prepared.in_front(*columns, query)
        stratum = stratum_numbers(query[row], group[row], reference.n_groups)
        cells, counts = np.unique(stratum * len(prepared.pooled) + key, return_counts=True)
        return cls(prepared, cells, np.asarray(counts, np.int64))

    def merge(self, other: Self) -> Self:
        """Return the false alarms of both parts together."""
        return type(self)(self.keys, *_added(self, other))

    def drawn(self, times: I64) -> Self:
        """Return the false alarms of a resample, see `Drawable.drawn`."""
        return type(self)(self.keys, *_drawn(self, len(self.keys.pooled), times))


def _added(one: StratumLadder | StratumTies, other: StratumLadder | StratumTies) -> tuple[I64, I64]:
    """Return the cells of both and their counts."""
    cells = np.concatenate([one.cells, other.cells])
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    first = np.flatnonzero(row_changes(cells))
    counts = np.concatenate([one.counts, other.counts])[order]
    return cells[first], np.add.reduceat(counts, first) if len(first) else counts


def _drawn(one: StratumLadder | StratumTies, n_slots: int, times: I64) -> tuple[I64, I64]:
    """Return the cells and their counts of a resample, in one group: group g counts times[g] times."""
    stratum, slot = np.divmod(one.cells, n_slots)
    query, group = np.divmod(stratum, len(times))
    counts = one.counts * times[group]
    kept = counts > 0
    cells, place = np.unique((query * n_slots + slot)[kept], return_inverse=True)
    sums = np.zeros(len(cells), np.int64)
    np.add.at(sums, place, counts[kept])
    return cells, sums


_STRATA = 256
"""The number of strata that are binned together: memory grows with it."""


@dataclass(frozen=True, eq=False)
class StratumMoments:
    """All given trials of one system, targets too, in the bins of `ZoomedMoments` or else of `Moments`.

    A layer of the bins is a stratum: query * n_groups + group.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits, Moments)
    aligned: ClassVar[bool] = False

    zoom: Zoom
    bins: Bins

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> Zoom:
        """Return the centre and the unit of the bins."""
        return ZoomedMoments.prepare(found, reference) or Moments.prepare(found, reference)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """Return the moments of one cell of the archive."""
        parts = stretches(trials)
        stratum = stratum_numbers(parts.query, parts.group, reference.n_groups)
        return cls(prepared, stratum_bins(prepared, parts.bounds, stratum, parts.score))

    def merge(self, other: Self) -> Self:
        """Return the moments of both parts together."""
        return type(self)(self.zoom, self.bins.merge(other.bins))

    def drawn(self, times: I64) -> Self:
        """Return the moments of a resample, see `Drawable.drawn`."""
        query, group = np.divmod(self.bins.layer, len(times))
        return type(self)(self.zoom, self.bins.weighed(query, times[group]))


def stratum_bins(zoom: Zoom, bounds: I64, stratum: I64, score: F64) -> Bins:
    """Return the bins of stretches of scores, whose layers are their strata."""
    block = stratum // _STRATA
    parts = [Bins.none()]
    for number in np.unique(block).tolist():
        own = np.where(block == number, stratum - number * _STRATA, -1).astype(np.int32)
        parts.append(Bins.of(zoom, LayeredScores(bounds, own, score), _STRATA).raised(number * _STRATA))
    return Bins(np.concatenate([part.key for part in parts]), np.concatenate([part.sums for part in parts]))


@dataclass(frozen=True, eq=False)
class NontargetEnds(FirstRound):
    """The lowest and the highest score of the non-target trials of each stratum, and the number of trials with each.

    All are [n_queries, n_groups]; without non-targets inf and -inf, and 0 trials.
    """

    aligned: ClassVar[bool] = True

    lowest: F64
    highest: F64
    n_lowest: I64
    n_highest: I64

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Return the ends of one aligned cell."""
        if trials.hit is None:
            raise ValueError("ends of non-targets need aligned trials")
        shape = (reference.n_queries, reference.n_groups)
        other = np.ones(len(trials), np.bool_)
        other[trials.hit] = False
        place = trials.query[other], trial_groups(trials, np.flatnonzero(other))
        score = trials.score[other] + 0.0
        lowest, highest = np.full(shape, np.inf), np.full(shape, -np.inf)
        np.minimum.at(lowest, place, score)
        np.maximum.at(highest, place, score)
        n_lowest, n_highest = np.zeros((2, *shape), np.int64)
        np.add.at(n_lowest, place, score == lowest[place])
        np.add.at(n_highest, place, score == highest[place])
        return cls(lowest, highest, n_lowest, n_highest)

    def merge(self, other: Self) -> Self:
        """Return the ends of both parts together."""
        lowest, highest = np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        n_lowest, n_highest = np.zeros((2, *lowest.shape), np.int64)
        for part in (self, other):
            n_lowest += np.where(part.lowest == lowest, part.n_lowest, 0)
            n_highest += np.where(part.highest == highest, part.n_highest, 0)
        return type(self)(lowest, highest, n_lowest, n_highest)

    def drawn(self, times: I64) -> Self:
        """Return the ends of a resample, see `Drawable.drawn`."""
        there = times > 0
        lowest = self.lowest[:, there].min(axis=1, initial=np.inf, keepdims=True)
        highest = self.highest[:, there].max(axis=1, initial=-np.inf, keepdims=True)
        n_lowest = np.where(self.lowest == lowest, self.n_lowest, 0) @ times
        n_highest = np.where(self.highest == highest, self.n_highest, 0) @ times
        return type(self)(lowest, highest, n_lowest[:, np.newaxis], n_highest[:, np.newaxis])
