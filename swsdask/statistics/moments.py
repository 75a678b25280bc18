"""The scores of non-targets in few numbers, from which the sum of any smooth function of a score follows.

A score is binned by v = |z| + 1, z = (score - centre) / unit: every binade of v has 1024 equal bins on either side of
the centre, so a bin is a thousandth as wide as its distance from the centre, or as the unit. A bin holds sums of powers
of the position u in it, up to the fifth, as integers, so bins merge exactly. Three points of a bin have the same
moments (`statistics.quadrature`), and the sum over them of a function is that over the bin's scores, but for its sixth
derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from swsdask.model.trials import F64, I32, I64, Reference, Trials
from swsdask.statistics.base import Statistic
from swsdask.statistics.hits import Hits
from swsdask.statistics.quadrature import Points, quadrature
from swsdask.statistics.strata import class_layers, class_targets
from swsdask.statistics.stretches import groups

_BINS = 1 << 22
"""Bins of a layer: more than twice 1024 for each of the 1024 binades from 1 on."""

_AS_FINE_AS_UNIT = 16.0
_SMALLEST_UNIT = 2.0**-900


@dataclass(frozen=True, eq=False)
class Zoom:
    """What scores are binned about: z = (score - centre) / unit, `unit` a power of two."""

    centre: float
    unit: float


@dataclass(frozen=True, eq=False)
class _Binned:
    """Sums by bin. `key` int64 ascending: layer * 2^22 + 2^21 + bin, where bins ascend with the score and bin 0 begins
    at the centre. `sums` int64 [n_bins, 8]: how many scores, and the powers of u in [-1, 1), the position in the bin as
    v ascends: u as two sums (times 2^20, and the rest times 2^41), u^2 as two (times 2^28, and the rest times 2^56),
    u^3, u^4 and u^5 (times 2^29), each rounded to the nearest integer score by score.
    """

    zoom: Zoom
    key: I64
    sums: I64

    def merge(self, other: Self) -> Self:
        """The sums of both parts together."""
        key, sums = _joined([self.key, other.key], [self.sums, other.sums])
        return type(self)(self.zoom, key, sums)


@dataclass(frozen=True, eq=False)
class Moments(_Binned):
    """Moments of the given non-target trials about 0, in units of 1: for scores that are log-likelihood ratios."""

    after: ClassVar[tuple[type[Statistic], ...]] = ()
    aligned: ClassVar[bool] = True

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> Zoom:
        """Where bins are."""
        return Zoom(0.0, 1.0)

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """The moments of one aligned cell."""
        if trials.hit is None:
            raise ValueError("moments of non-targets need aligned trials")
        key, sums = _bins(
            trials.score, _layers(trials.query, groups(trials, np.arange(len(trials))), reference), prepared
        )
        hit = trials.hit
        hits = _bins(trials.score[hit], _layers(trials.query[hit], groups(trials, hit), reference), prepared)
        return cls(prepared, *_joined([key, hits[0]], [sums, -hits[1]]))


@dataclass(frozen=True, eq=False)
class ZoomedMoments(_Binned):
    """Moments of all given trials, targets too, about the median hit, in units of the hits' spread.

    Only for a system whose hits lie too close together for `Moments`, compared with how far they are from 0.
    """

    after: ClassVar[tuple[type[Statistic], ...]] = (Hits,)
    aligned: ClassVar[bool] = False

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> Zoom | None:
        """Where bins are; None if `Moments` are fine enough."""
        hits: Hits = found[Hits]
        score = hits.score[reference.class_of[hits.query, hits.group] >= 0]
        if len(score) == 0:
            return None
        centre = float(score[len(score) // 2])
        spread = _spread(score, centre)
        if abs(centre) + 1.0 <= _AS_FINE_AS_UNIT * spread:
            return None
        return Zoom(centre, 2.0 ** np.floor(np.log2(spread)))

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Zoom) -> Self:
        """The moments of one cell."""
        layer = _layers(trials.query, groups(trials, np.arange(len(trials))), reference)
        return cls(prepared, *_bins(trials.score, layer, prepared))


def nontarget_points(found: Mapping[type[Statistic], Any], reference: Reference, number: int) -> Points:
    """The given non-target trials of condition `number` as weighted points, from the finest moments that were found.

    `found` holds `Moments`, and `Hits` and `ZoomedMoments` where they were needed.
    """
    layer, _ = class_layers(reference)
    layers = np.unique(layer[class_targets(reference)[number] >= 0])
    binned: _Binned = found.get(ZoomedMoments) or found[Moments]
    chosen = np.isin(binned.key // _BINS, layers)
    keys, sums = [binned.key[chosen] % _BINS], [binned.sums[chosen]]
    if isinstance(binned, ZoomedMoments):
        hits: Hits = found[Hits]
        of_hits = _layers(hits.query, hits.group, reference)
        own = np.isin(of_hits, layers)
        key, hit_sums = _bins(hits.score[own], np.zeros(np.count_nonzero(own), np.int32), binned.zoom)
        keys.append(key)
        sums.append(-hit_sums)
    key, joined = _joined(keys, sums)
    return quadrature(key - _BINS // 2, joined, binned.zoom.centre, binned.zoom.unit)


def _spread(score: F64, centre: float) -> float:
    """How far from their median `centre` the inner half of some scores is; or the nearest that is not equal to it."""
    away = np.sort(np.abs(score / 2 - centre / 2))
    middle = float(away[len(away) // 2]) or float(away[away > 0].min(initial=np.inf))
    return min(max(2 * middle, _SMALLEST_UNIT), 2.0**900) if np.isfinite(middle) else 1.0


def _layers(query: I32, group: np.ndarray[Any, np.dtype[np.int16]], reference: Reference) -> I32:
    layer, _ = class_layers(reference)
    layer_of: I32 = np.append(layer, np.int32(-1))[reference.class_of[query, group]]
    return layer_of


def _bins(score: F64, layer: I32, zoom: Zoom) -> tuple[I64, I64]:
    score, layer = score[layer >= 0], layer[layer >= 0]
    z = (score - zoom.centre) / zoom.unit
    bits = (np.abs(z) + 1.0).view(np.int64)
    away = (bits >> 42) - (1023 << 10)
    key = layer.astype(np.int64) * _BINS + _BINS // 2 + np.where(z < 0, ~away, away)
    position = (bits & (2**42 - 1)) - 2**41
    u = position * 2.0**-41
    square = u * u * 2.0**28
    sums = np.stack(
        [
            np.ones(len(u), np.int64),
            position >> 21,
            position & (2**21 - 1),
            np.rint(square),
            np.rint((square - np.rint(square)) * 2.0**28),
            np.rint(u * u * u * 2.0**29),
            np.rint(u * u * (u * u) * 2.0**29),
            np.rint(u * u * (u * u * u) * 2.0**29),
        ],
        axis=1,
    ).astype(np.int64)
    return _joined([key], [sums])


def _joined(keys: list[I64], sums: list[I64]) -> tuple[I64, I64]:
    """Bins of several parts together: ascending distinct keys of the bins that hold scores, and their sums."""
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    joined = np.zeros((len(key), 8), np.int64)
    np.add.at(joined, place, np.concatenate(sums))
    filled = joined[:, 0] != 0
    return key[filled], joined[filled]
