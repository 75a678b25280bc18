"""Replay points that earn something from an onset, and their ranks: the input of GAP.

A point is the start of a trial's detection, an onset the start of an evaluated occurrence; channels play no part.
Points of a query are ranked by score from the highest, equal scores by the document's id (unknown documents last), then
by start. A point earns the penalty function's value at its distance from the nearest unused onset of its query and
document; if that is more than 0, the onset is used.

A (query, document) lies in one cell, so the points that use its onsets are known there: at most as many as there are
onsets. Other points matter only if they rank before these, and are counted in the round after these are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from swsdask.kernels.onsets import count_before, in_rank_order, near_onsets, use_onsets
from swsdask.model.columns import row_changes
from swsdask.model.trials import F64, I16, I32, I64, Detections, Reference, Trials
from swsdask.statistics.counts import trial_groups
from swsdask.statistics.statistic import FirstRound, Found, OfDetections, Statistic

_COLUMNS = ("document", "start")


@dataclass(frozen=True, eq=False)
class Onsets(FirstRound, OfDetections):
    """The points of one system that use an onset: equally long columns, by query, then in rank order.

    `group` is the document's group, `place` its place by id; `start` in ticks; `earned` float64, above 0, at most 1.
    """

    aligned: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = _COLUMNS
    follows: ClassVar[tuple[str, ...]] = ("replay",)

    query: I32
    group: I16
    score: F64
    place: I32
    start: I32
    earned: F64

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Return the points of one cell that use an onset."""
        step, penalty = reference.replay
        onsets = _onsets(reference)
        document, start = _points(trials)
        rows, group = near_onsets(
            trials.query,
            document,
            start,
            step,
            onsets.of_query,
            onsets.document,
            onsets.begins,
            onsets.time,
            float(penalty.at[0]),
            float(penalty.at[-1]),
            reference.n_documents,
        )
        order = in_rank_order(group, trials.score[rows], start[rows], start[rows])
        rows = rows[order]
        earned = use_onsets(group[order], _stepped(start[rows], step), onsets.begins, onsets.time, *penalty)
        rows, earned = rows[earned > 0], earned[earned > 0]
        place = _places(reference)[document[rows]]
        used = (trials.query[rows], trial_groups(trials, rows), trials.score[rows] + 0.0, place, start[rows], earned)
        return cls(*used)._ranked()

    def merge(self, other: Self) -> Self:
        """Return the points of both parts together."""
        mine, others = vars(self), vars(other)
        return type(self)(*(np.concatenate([mine[name], others[name]]) for name in mine))._ranked()

    def __len__(self) -> int:
        return len(self.query)

    @property
    def times(self) -> I64:
        """The multiplicity of each point."""
        return np.ones(len(self), np.int64)

    def drawn(self, times: I64) -> DrawnOnsets:
        """Return the points of a resample, see `Drawable.drawn`."""
        columns = vars(self) | {"group": np.zeros(len(self), np.int16)}
        return DrawnOnsets(**columns, copies=times[self.group])

    def offsets(self, n_queries: int) -> I64:
        """Return the ends of queries: the points of query q are offsets[q] .. offsets[q + 1], int64 [n_queries + 1]."""
        return np.searchsorted(self.query, np.arange(n_queries + 1))

    def _ranked(self) -> Self:
        """Sort the points. Points with equal query, score, place and start are of one cell, and keep their order."""
        order = in_rank_order(self.query, self.score, self.place, self.start)
        return type(self)(*(column[order] for column in vars(self).values()))


@dataclass(frozen=True, eq=False)
class DrawnOnsets(Onsets):
    """The points of drawn documents: each counts as often as its document was drawn; equal points follow each other."""

    copies: I64

    @property
    def times(self) -> I64:
        """The multiplicity of each point."""
        return self.copies


@dataclass(frozen=True, eq=False)
class PointsBefore(OfDetections):
    """The number of points of one system that rank before those of `Onsets`.

    `counts` int64 [len(Onsets), n_groups], by group of documents: the points of the query that rank before a point of
    `Onsets`, but not before the previous one.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Onsets,)
    aligned: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = _COLUMNS

    counts: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> Onsets | None:
        """Return the points that use an onset; None if there are none."""
        onsets: Onsets = found[Onsets]
        return onsets if len(onsets) else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Onsets) -> Self:
        """Return the points of one cell."""
        counts = np.zeros((len(prepared) + 1, reference.n_groups), np.int64)
        document, start = _points(trials)
        count_before(
            trials.query,
            np.zeros(len(trials), np.int16) if trials.group is None else trials.group,
            trials.score,
            document,
            _places(reference),
            start,
            prepared.offsets(reference.n_queries),
            prepared.score,
            prepared.place,
            prepared.start,
            counts,
        )
        return cls(counts[:-1])

    def merge(self, other: Self) -> Self:
        """Return the points of both parts together."""
        return type(self)(self.counts + other.counts)

    def drawn(self, times: I64) -> Self:
        """Return the points of a resample, see `Drawable.drawn`."""
        return type(self)((self.counts @ times)[:, np.newaxis])


@lru_cache(maxsize=2)
def onset_counts(reference: Reference) -> I64:
    """Count the onsets of every query in every group of documents: int64 [n_queries, n_groups]."""
    counts = np.zeros((reference.n_queries, reference.n_groups), np.int64)
    np.add.at(counts, (reference.query, reference.group_of_document[reference.document]), 1)
    counts.flags.writeable = False
    return counts


class _OnsetGroups(NamedTuple):
    """The onsets by group: a (query, document) with onsets. See `kernels.onsets.near_onsets`; `time` in ticks."""

    of_query: I64
    document: I32
    begins: I64
    time: I64


@lru_cache(maxsize=2)
def _onsets(reference: Reference) -> _OnsetGroups:
    order = np.lexsort((reference.start, reference.document, reference.query))
    query, document = reference.query[order], reference.document[order]
    begins = np.flatnonzero(row_changes(query, document))
    return _OnsetGroups(
        of_query=np.searchsorted(query[begins], np.arange(reference.n_queries + 1)),
        document=document[begins],
        begins=np.append(begins, len(query)),
        time=_stepped(reference.start[order], reference.replay.step),
    )


@lru_cache(maxsize=2)
def _places(reference: Reference) -> I32:
    """Return the place of every document by its id, int32 [n_documents + 1]; the last is -1, for unknown documents."""
    order = np.argsort(np.array(reference.document_ids, object), kind="stable")
    places = np.full(len(order) + 1, -1, np.int32)
    places[order] = np.arange(len(order))
    return places


def _stepped(time: I32, step: int) -> I64:
    whole = time.astype(np.int64)
    return whole if step == 1 else whole // step * step


def _points(trials: Trials) -> tuple[I32, I32]:
    """Return the document and the start of every trial's detection."""
    detections: Detections | None = trials.detections
    if detections is None or detections.document is None or detections.start is None:
        raise ValueError("replay points need documents and starts of detections")
    document, start = detections.document, detections.start
    return (document, start) if trials.row is None else (document[trials.row], start[trials.row])
