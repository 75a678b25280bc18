"""Scores in bins that widen with their distance from a centre, and the moments of what is in each bin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from swsdask.kernels.moments import SUMS, add_powers, merge_sums, reach
from swsdask.model.trials import F64, I32, I64

_SPAN = 1 << 22
"""Keys of a layer: more than twice 1024 for each of the binades from 1 to `kernels.moments.FARTHEST`."""


@dataclass(frozen=True)
class Zoom:
    """What scores are binned about: z = (score - centre) / unit. The unit is a power of two."""

    centre: float
    unit: float


@dataclass(frozen=True, eq=False)
class Scores:
    """Stretches of scores: bounds[i] .. bounds[i + 1] of `score` are of `layer` [i], int32; -1: not counted."""

    bounds: I64
    layer: I32
    score: F64


@dataclass(frozen=True, eq=False)
class Bins:
    """How many scores are in a bin, and the sums of the powers of their positions in it, layer by layer.

    Every binade of |z| + 1 has 1024 equal bins on either side of the centre: a bin is a thousandth as wide as it is far
    from the centre, or as the unit. Bin 0 begins at the centre, and bins ascend with the score. u in [-1, 1) is the
    position in a bin, ascending with |z|.

    `key` is int64, ascending: layer * 2^22 + 2^21 + bin, of bins with scores. `sums` is int64 [n_bins, 8]: the number
    of scores; u as two integers, 2^20 times it rounded down and 2^41 times what is left; u^2 as two, 2^28 times it and
    2^56 times what is left; u^3, u^4, u^5, 2^29 times each. All but the first are rounded to the nearest, score by
    score, so sums do not depend on their order; they hold 2^33 scores in one bin.
    """

    key: I64
    sums: I64

    @classmethod
    def of(cls, zoom: Zoom, scores: Scores, without: Scores, n_layers: int) -> Self:
        """The bins of some scores, `without` those that are among them but do not count."""
        there = np.zeros(n_layers + 1, np.bool_)
        there[scores.layer] = True
        there[-1] = False
        here = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
        n_side = reach(scores.score, zoom.centre, zoom.unit)
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
        """The bins of both parts together."""
        return type(self)(*merge_sums(self.key, self.sums, other.key, other.sums))

    def minus(self, other: Self) -> Self:
        """The bins without scores that are among them."""
        return type(self)(*merge_sums(self.key, self.sums, other.key, -other.sums))

    def pooled(self, layers: I32) -> Self:
        """Some layers as one, layer 0."""
        ends = np.searchsorted(self.key, [[layer * _SPAN, (layer + 1) * _SPAN] for layer in layers.tolist()])
        parts = [type(self)(self.key[a:b] % _SPAN, self.sums[a:b]) for a, b in ends.reshape(-1, 2).tolist()]
        return reduce(type(self).merge, parts, self.none())

    @classmethod
    def none(cls) -> Self:
        """No bins."""
        return cls(np.empty(0, np.int64), np.empty((0, SUMS), np.int64))

    @property
    def bin(self) -> I64:
        """The number of every bin, whatever its layer."""
        return self.key % _SPAN - _SPAN // 2
