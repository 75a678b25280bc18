"""Moments of the scores of non-targets in narrow bins: any sum of a smooth function of scores follows.

Bins widen with the distance from a centre (`statistics.bins`). A few points of each bin have the same moments, and the
sum of a function over these points is its sum over the scores, up to what the function's sixth derivative makes of a
bin's width. Where hits and other trials overlap in bins that are too coarse, a second round narrows them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.kernels.ladder import count_slots
from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.model.units import INFINITE
from swsdask.statistics.bins import Bins, Points, Scores, Zoom, quadrature
from swsdask.statistics.counts import Counts, class_layers, class_targets, groups, members, stretches
from swsdask.statistics.ladder import Hits
from swsdask.statistics.statistic import Statistic

_FINE_ENOUGH = 32.0
"""Units, or distances of the median hit from 0, per spread of the hits up to which bins about 0 are fine."""

_SPREADS = 2.0**-900, 2.0**900

_NOTHING_TO = 2.0**-30
"""How little is next to nothing."""


@dataclass(frozen=True, eq=False)
class Moments:
    """The given non-target trials of one system in bins about 0, in units of 1: made for log-likelihood ratios.

    The layers are those of classes (`strata.class_layers`); strata that no condition counts are left out.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True

    zoom: Zoom
    bins: Bins

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> Zoom:
        """What scores are binned about."""
        return Zoom(0.0, 1.0)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """The moments of one aligned cell."""
        hit = trials.hit
        if hit is None:
            raise ValueError("moments of non-targets need aligned trials")
        hits = _each(trials.query[hit], groups(trials, hit), trials.score[hit], reference)
        _, n_layers = class_layers(reference)
        return cls(prepared, Bins.of(prepared, _every(trials, reference), hits, n_layers))

    def merge(self, other: Self) -> Self:
        """The moments of both parts together."""
        return type(self)(self.zoom, self.bins.merge(other.bins))

    def points(self, layers: I32) -> Points:
        """The trials of some layers as weighted points: computed once, for overlaps and fits need the same."""
        key = layers.tobytes()
        if key not in self._points:
            self._points[key] = quadrature(self.bins.pooled(layers), self.zoom)
        return self._points[key]

    @cached_property
    def _points(self) -> dict[bytes, Points]:
        return {}


@dataclass(frozen=True, eq=False)
class ZoomedMoments:
    """All given trials of one system, targets too, in bins about the median finite hit, in units of the hits' spread.

    Only for a system whose hits are too close together for bins about 0 (`Moments`).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits,)
    aligned: ClassVar[bool] = False

    zoom: Zoom
    bins: Bins

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> Zoom | None:
        """What scores are binned about; None where bins about 0 are fine enough, or nothing was hit."""
        hits: Hits = found[Hits]
        score = hits.score[(_layer_of(hits.query, hits.group, reference) >= 0) & (np.abs(hits.score) < INFINITE)]
        if len(score) == 0:
            return None
        centre = float(score[len(score) // 2])
        spread = _spread(score, centre)
        if abs(centre) + 1.0 <= _FINE_ENOUGH * spread:
            return None
        return Zoom(centre, math.ldexp(0.5, math.frexp(spread)[1]))

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """The moments of one cell."""
        _, n_layers = class_layers(reference)
        return cls(prepared, Bins.of(prepared, _every(trials, reference), _NOTHING, n_layers))

    def merge(self, other: Self) -> Self:
        """The moments of both parts together."""
        return type(self)(self.zoom, self.bins.merge(other.bins))


_NOTHING = Scores(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


def nontarget_points(found: Mapping[type[Statistic], Any], reference: Reference, number: int) -> Points:
    """The given non-target trials of condition `number` as weighted points, from the finest moments that were found.

    `found` has `Moments`, or `Hits` and `ZoomedMoments`.
    """
    layer, _ = class_layers(reference)
    layers = np.unique(layer[class_targets(reference)[number] >= 0])
    finest: ZoomedMoments | None = found.get(ZoomedMoments)
    if finest is None:
        moments: Moments = found[Moments]
        return moments.points(layers)
    hits: Hits = found[Hits]
    own = np.isin(_layer_of(hits.query, hits.group, reference), layers)
    scores = Scores(np.array([0, np.count_nonzero(own)]), np.zeros(1, np.int32), hits.score[own])
    bins = finest.bins.pooled(layers).minus(Bins.of(finest.zoom, scores, _NOTHING, 1))
    return quadrature(bins, finest.zoom)


def _every(trials: Trials, reference: Reference) -> Scores:
    parts = stretches(trials)
    return Scores(parts.bounds, _layer_of(parts.query, parts.group, reference), parts.score)


def _each(query: I32, group: I16, score: F64, reference: Reference) -> Scores:
    layer = _layer_of(query, group, reference)
    begins = np.flatnonzero(np.diff(layer, prepend=-2))
    return Scores(np.append(begins, len(score)), layer[begins], score)


def _layer_of(query: I32, group: I16, reference: Reference) -> I32:
    layer, _ = class_layers(reference)
    return np.append(layer, np.int32(-1))[reference.class_of[query, group]]


def _spread(score: F64, centre: float) -> float:
    """Twice the median distance of some scores from `centre`, their median; or the least distance, where that is 0.

    Equal scores have no spread, and anything may be close to them: then it is next to nothing.
    """
    away = np.sort(np.abs(score / 2 - centre / 2))
    half = float(away[len(away) // 2]) or float(away[away > 0].min(initial=np.inf))
    spread = 4.0 * half if half < np.inf else _NOTHING_TO * max(abs(centre), _NOTHING_TO)
    return float(np.clip(spread, *_SPREADS))


_BINS = 2.0**-9
"""Two bins of `Moments`, as a share of 1 + |score|."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Trials of one system at and around the ends of its hits' scores.

    Only for a system that has, in some condition with targets, no hit clearly below the highest of the other trials, or
    none clearly above the lowest.

    `rungs` are ascending distinct scores with inf behind them: the lowest and the highest hit in each condition, the
    lowest score of the run, `Reference.thresholds`, and the next float above each of these. Slot r holds the trials
    with rungs[r - 1] <= score < rungs[r], so those at one of these scores have a slot of their own. `counts` is int64
    [n_layers, n_rungs], by layer of classes (`strata.class_layers`).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits, Moments)
    aligned: ClassVar[bool] = False

    rungs: F64
    counts: I64

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> F64 | None:
        """The rungs; None where hits and others clearly overlap."""
        hits: Hits = found[Hits]
        marked = [*reference.thresholds, float(found[Counts].lowest.min(initial=np.inf))]
        clear = True
        for number, condition in enumerate(reference.conditions):
            score = hits.score[members(condition)[hits.query, hits.group]]
            marked += score[[0, -1]].tolist() if len(score) else []
            if reference.condition_targets(condition).any():
                clear = clear and _overlap(score, nontarget_points(found, reference, number).z)
        if clear:
            return None
        ends = np.array(marked)[np.isfinite(marked)] + 0.0
        with np.errstate(over="ignore"):
            ends = np.append(ends, np.nextafter(ends, np.inf))
        return np.append(np.unique(ends[np.isfinite(ends)]), np.inf)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: F64) -> Self:
        """The trials of one cell."""
        parts = stretches(trials)
        layer, n_layers = class_layers(reference)
        line = np.append(layer, np.int32(-1))[reference.class_of[parts.query, parts.group]]
        counts = np.zeros((n_layers, len(prepared)), np.int32)
        highest = np.empty(counts.shape)
        each = np.arange(n_layers, dtype=np.int32)
        count_slots(parts.bounds, line, each, parts.score, prepared, counts, highest)
        return cls(prepared, counts.astype(np.int64))

    def merge(self, other: Self) -> Self:
        """The trials of both parts together."""
        return type(self)(self.rungs, self.counts + other.counts)


def _overlap(hit: F64, other: F64) -> bool:
    """Whether some of the hits, ascending scores, clearly lie below some others, and some above."""
    if len(hit) == 0 or len(other) == 0:
        return False
    lowest, highest = float(other.min()), float(other.max())
    below = hit[0] < highest - _BINS * (1.0 + abs(highest))
    return bool(below and hit[-1] > lowest + _BINS * (1.0 + abs(lowest)))
