"""Moments of scores in narrow bins, which determine any sum of a smooth function of scores.

Scores in bins that widen with their distance from a centre, and the points that represent a bin in a sum
---------------------------------------------------------------------------------------------------------
The moments of the scores in a bin are kept. Gauss quadrature gives points that represent the bin: three points with the
same moments as the scores, up to the fifth (two points or one if there are no more scores). They lie among the scores
and have weights >= 0 (Golub and Welsch 1969). So a sum over the points of weight * f(score) replaces the sum over
scores, for any smooth f; it is convex where that is; it is exact for straight lines, and for bins of one distinct
score.

Moments of the scores of non-targets
------------------------------------
Bins widen with the distance from a centre. A few points of each bin have the same moments, and the sum of a function
over these points is its sum over the scores, up to an error of the function's sixth derivative over the bin's width. If
hits and other trials overlap in bins that are too coarse, a second round uses narrower bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar, Self

import numpy as np

from swsdask.kernels.ladder import count_slots
from swsdask.kernels.moments import FARTHEST, SUMS, add_powers, merge_sums, nodes, reach
from swsdask.model.columns import row_changes
from swsdask.model.trials import F64, I16, I32, I64, Reference, Trials
from swsdask.model.units import INFINITE
from swsdask.statistics.counts import (
    Counts,
    class_layers,
    ends_of,
    layers_of,
    stratum_layers,
    stretches,
    trial_groups,
)
from swsdask.statistics.ladder import Hits
from swsdask.statistics.statistic import FirstRound, Found, Statistic

_SPAN = 1 << 22
"""Keys of a layer: more than twice 1024 for each of the binades from 1 to `kernels.moments.FARTHEST`."""


@dataclass(frozen=True)
class Zoom:
    """The centre and the unit of bins: z = (score - centre) / unit. The unit is a power of two."""

    centre: float
    unit: float


@dataclass(frozen=True, eq=False)
class LayeredScores:
    """Stretches of scores: bounds[i] .. bounds[i + 1] of `score` are of `layer` [i], int32; -1: not counted."""

    bounds: I64
    layer: I32
    score: F64


_NOTHING = LayeredScores(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


@dataclass(frozen=True, eq=False)
class Bins:
    """The number of scores in a bin, and the sums of the powers of their positions in it, layer by layer.

    Every binade of |z| + 1 has 1024 equal bins on either side of the centre: the width of a bin is about a thousandth
    of its distance from the centre, or of the unit. Bin 0 begins at the centre, and bins ascend with the score. u in
    [-1, 1) is the position in a bin, ascending with |z|.

    `key` is int64, ascending: layer * 2^22 + 2^21 + bin, of bins with scores. `sums` is int64 [n_bins, 8]: the number
    of scores; u as two integers, 2^20 times it rounded down and 2^41 times the rest; u^2 as two, 2^28 times it and
    2^56 times the rest; u^3, u^4, u^5, 2^29 times each. All but the first are rounded to the nearest, score by score,
    so sums do not depend on their order; they can hold 2^33 scores in one bin.
    """

    key: I64
    sums: I64

    @classmethod
    def of(cls, zoom: Zoom, scores: LayeredScores, n_layers: int, without: LayeredScores = _NOTHING) -> Self:
        """Return the bins of some scores; `without` are scores among them that do not count."""
        there = np.zeros(n_layers + 1, np.bool_)
        there[scores.layer] = True
        there[-1] = False
        here = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
        n_side = reach(ends_of(scores.score), zoom.centre, zoom.unit)
        line = np.zeros(2 * n_side * np.count_nonzero(there), np.int32)
        sums = np.empty((min(len(line), len(scores.score)), SUMS), np.int64)
        n_lines = 0
        for part, times in ((scores, 1), (without, -1)):
            layer = here[part.layer]
            n_lines = add_powers(
                part.bounds, layer, part.score, zoom.centre, zoom.unit, times, n_side, line, sums, n_lines
            )
        place = np.flatnonzero(line)
        ordered = sums[line[place] - 1]
        filled = ordered[:, 0] > 0
        which, at = np.divmod(place[filled], 2 * n_side)
        return cls(np.flatnonzero(there)[which] * _SPAN + _SPAN // 2 + at - n_side, ordered[filled])

    def merge(self, other: Self) -> Self:
        """Return the bins of both parts together."""
        return type(self)(*merge_sums(self.key, self.sums, other.key, other.sums))

    def minus(self, other: Self) -> Self:
        """Return the bins without scores that are among them."""
        return type(self)(*merge_sums(self.key, self.sums, other.key, -other.sums))

    def pooled(self, layers: I32) -> Self:
        """Return some layers as one, layer 0."""
        ends = np.searchsorted(self.key, [[layer * _SPAN, (layer + 1) * _SPAN] for layer in layers.tolist()])
        parts = [type(self)(self.key[a:b] % _SPAN, self.sums[a:b]) for a, b in ends.reshape(-1, 2).tolist()]
        return reduce(type(self).merge, parts, self.none())

    def weighed(self, layers: I64, times: I64) -> Self:
        """Multiply every bin by `times` and move it to a layer of `layers`, int64 [n_bins] both."""
        kept = np.flatnonzero(times)
        if not len(kept):
            return self.none()
        key = layers[kept] * _SPAN + self.key[kept] % _SPAN
        order = np.argsort(key, kind="stable")
        rows = kept[order]
        distinct, first = np.unique(key[order], return_index=True)
        return type(self)(distinct, np.add.reduceat(self.sums[rows] * times[rows, np.newaxis], first, axis=0))

    @classmethod
    def none(cls) -> Self:
        """No bins."""
        return cls(np.empty(0, np.int64), np.empty((0, SUMS), np.int64))

    def raised(self, layers: int) -> Self:
        """Return the same bins, `layers` layers higher."""
        return type(self)(self.key + layers * _SPAN, self.sums)

    @property
    def layer(self) -> I64:
        """The layer of every bin."""
        return self.key // _SPAN

    @property
    def bin(self) -> I64:
        """The number of every bin, whatever its layer."""
        return self.key % _SPAN - _SPAN // 2


class WeighedBins:
    """Bins of many layers, to be pooled with several weightings of the layers, one after the other."""

    def __init__(self, bins: Bins, weight_of: I64) -> None:
        """`weight_of` is the index of the weight of every bin."""
        order = np.argsort(bins.key % _SPAN, kind="stable")
        self._weight_of = weight_of[order]
        self._sums = np.ascontiguousarray(bins.sums[order].T)
        self._key, self._first = np.unique((bins.key % _SPAN)[order], return_index=True)

    def nodes(self) -> tuple[F64, F64, I64]:
        """Return the points of every bin: positions z and weights > 0, float64 [n], and the index of their weight."""
        number = np.repeat(self._key, np.diff(np.append(self._first, len(self._weight_of)))) - _SPAN // 2
        z, weight, row = nodes(number, np.ascontiguousarray(self._sums.T))
        return z, weight, self._weight_of[row]

    def pooled(self, weights: I64) -> Bins:
        """Return all layers as one, layer 0, every score multiplied by its weight."""
        if not len(self._key):
            return Bins.none()
        sums = np.add.reduceat(self._sums * weights[self._weight_of], self._first, axis=1)
        there = sums[0] > 0
        return Bins(self._key[there], np.ascontiguousarray(sums[:, there].T))


@dataclass(frozen=True, eq=False)
class WeightedScores:
    """Weighted scores: `z` and `weight` > 0 float64, equally long, by bins in ascending order.

    z = (score - centre) / unit, `unit` a power of two. `n` is the sum of the weights, exactly.
    """

    z: F64
    weight: F64
    centre: float
    unit: float
    n: int


def quadrature(bins: Bins, zoom: Zoom) -> WeightedScores:
    """Return the points of some bins, whatever their layers."""
    z, weight, _ = nodes(bins.bin, bins.sums)
    return WeightedScores(z, weight, zoom.centre, zoom.unit, int(bins.sums[:, 0].sum()))


_FINE_ENOUGH = 32.0
"""Bins about 0 are fine enough if 1 + |median| of the scores is at most this many times their spread."""

_TOGETHER = 2.0**-34
"""Scores that are closer to each other, as a share of 1 + |score|, may have one point in bins about 0."""

_SPREADS = 2.0**-900, 2.0**900

_NOTHING_TO = 2.0**-30
"""The greatest difference that is negligible."""


@dataclass(frozen=True, eq=False)
class Moments(FirstRound):
    """The given non-target trials of one system in bins about 0, in units of 1: made for log-likelihood ratios.

    The layers are those of classes (`statistics.counts.class_layers`); strata that no condition counts are left out.
    """

    aligned: ClassVar[bool] = True

    zoom: Zoom
    bins: Bins

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> Zoom:
        """Return the centre and the unit of the bins."""
        return Zoom(0.0, 1.0)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """Return the moments of one aligned cell."""
        hit = trials.hit
        if hit is None:
            raise ValueError("moments of non-targets need aligned trials")
        hits = _each(trials.query[hit], trial_groups(trials, hit), trials.score[hit], reference)
        _, n_layers = class_layers(reference)
        return cls(prepared, Bins.of(prepared, _every(trials, reference), n_layers, without=hits))

    def merge(self, other: Self) -> Self:
        """Return the moments of both parts together."""
        return type(self)(self.zoom, self.bins.merge(other.bins))

    def points(self, layers: I32) -> WeightedScores:
        """Return the trials of some layers as weighted points; computed once, since overlaps and fits need the same."""
        key = layers.tobytes()
        if key not in self._points:
            self._points[key] = quadrature(self.bins.pooled(layers), self.zoom)
        return self._points[key]

    @cached_property
    def _points(self) -> dict[bytes, WeightedScores]:
        return {}


@dataclass(frozen=True, eq=False)
class ZoomedMoments:
    """All given trials of one system, targets too, in bins about the median of some scores, in units of their spread.

    Only for a system for which bins about 0 (`Moments`) are too coarse. How finely scores must be distinguished follows
    from where the classes overlap: the scores are those of finite hits that lie among the points of other trials; if
    there are none, these points; without other trials, all finite hits.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits, Moments)
    aligned: ClassVar[bool] = False

    zoom: Zoom
    bins: Bins

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> Zoom | None:
        """Return the centre and the unit of the bins; None if bins about 0 are fine enough, or there are no trials."""
        hits: Hits = found[Hits]
        score = hits.score[(stratum_layers(hits.query, hits.group, reference) >= 0) & (np.abs(hits.score) < INFINITE)]
        others = found[Moments].points(layers_of(reference, 0)).z
        others = others[np.abs(others) < FARTHEST]
        if len(others):
            low, high = (end + side * _TOGETHER * (1.0 + abs(end)) for end, side in ((others[0], -1), (others[-1], 1)))
            among = score[(score >= low) & (score <= high)]
            score = among if len(among) else others
        if len(score) == 0:
            return None
        centre = float(score[len(score) // 2])
        spread = _spread(score, centre)
        if abs(centre) + 1.0 <= _FINE_ENOUGH * spread:
            return None
        return Zoom(centre, math.ldexp(0.5, math.frexp(spread)[1]))

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """Return the moments of one cell."""
        _, n_layers = class_layers(reference)
        return cls(prepared, Bins.of(prepared, _every(trials, reference), n_layers))

    def merge(self, other: Self) -> Self:
        """Return the moments of both parts together."""
        return type(self)(self.zoom, self.bins.merge(other.bins))


def nontarget_points(found: Found, reference: Reference, number: int) -> WeightedScores:
    """Return the given non-target trials of condition `number` as weighted points, from the finest moments in `found`.

    `found` has `Moments`, or `Hits` and `ZoomedMoments`.
    """
    layers = layers_of(reference, number)
    finest: ZoomedMoments | None = found.get(ZoomedMoments)
    if finest is None:
        moments: Moments = found[Moments]
        return moments.points(layers)
    hits: Hits = found[Hits]
    own = np.isin(stratum_layers(hits.query, hits.group, reference), layers)
    scores = LayeredScores(np.array([0, np.count_nonzero(own)]), np.zeros(1, np.int32), hits.score[own])
    bins = finest.bins.pooled(layers).minus(Bins.of(finest.zoom, scores, 1))
    return quadrature(bins, finest.zoom)


def _every(trials: Trials, reference: Reference) -> LayeredScores:
    parts = stretches(trials)
    return LayeredScores(parts.bounds, stratum_layers(parts.query, parts.group, reference), parts.score)


def _each(query: I32, group: I16, score: F64, reference: Reference) -> LayeredScores:
    layer = stratum_layers(query, group, reference)
    begins = np.flatnonzero(row_changes(layer))
    return LayeredScores(np.append(begins, len(score)), layer[begins], score)


def _spread(score: F64, centre: float) -> float:
    """Twice the median distance of some scores from `centre`, their median; or the least distance, if that is 0.

    Equal scores have no spread, and other trials may be arbitrarily close to them: then the spread is tiny.
    """
    away = np.abs(score / 2 - centre / 2)
    middle = len(away) // 2
    half = float(np.partition(away, middle)[middle]) or float(away[away > 0].min(initial=np.inf))
    spread = 4.0 * half if half < np.inf else _NOTHING_TO * abs(centre)
    return float(np.clip(spread, *_SPREADS))


_BINS = 2.0**-9
"""Two bins of `Moments`, as a share of 1 + |score|."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Trials of one system at and around the ends of its hits' scores.

    Only for a system that has, in some condition with targets, no hit clearly below the highest of the other trials, or
    none clearly above the lowest.

    `rungs` are ascending distinct scores, followed by inf: the lowest and the highest hit in each condition, the
    lowest score of the run, `Reference.thresholds`, and the next float above each of these. Slot r holds the trials
    with rungs[r - 1] <= score < rungs[r], so those at one of these scores have a slot of their own. `counts` is int64
    [n_layers, n_rungs], by layer of classes (`statistics.counts.class_layers`).
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Counts, Hits, Moments)
    aligned: ClassVar[bool] = False

    rungs: F64
    counts: I64

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> F64 | None:
        """Return the rungs; None if hits and others clearly overlap."""
        hits: Hits = found[Hits]
        marked = [*reference.thresholds, float(found[Counts].lowest.min(initial=np.inf))]
        clear = True
        for number, condition in enumerate(reference.conditions):
            score = hits.score[condition.has(hits.query, hits.group)]
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
        """Return the trials of one cell."""
        parts = stretches(trials)
        _, n_layers = class_layers(reference)
        line = stratum_layers(parts.query, parts.group, reference)
        counts = np.zeros((n_layers, len(prepared)), np.int32)
        highest = np.empty(counts.shape)
        each = np.arange(n_layers, dtype=np.int32)
        count_slots(parts.bounds, line, each, parts.score, prepared, counts, highest)
        return cls(prepared, counts.astype(np.int64))

    def merge(self, other: Self) -> Self:
        """Return the trials of both parts together."""
        return type(self)(self.rungs, self.counts + other.counts)


def _overlap(hit: F64, other: F64) -> bool:
    """Return whether some hits (ascending scores) lie clearly below some other trials, and some clearly above."""
    if len(hit) == 0 or len(other) == 0:
        return False
    lowest, highest = float(other.min()), float(other.max())
    below = hit[0] < highest - _BINS * (1.0 + abs(highest))
    return bool(below and hit[-1] > lowest + _BINS * (1.0 + abs(lowest)))
