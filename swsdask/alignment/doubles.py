"""What NIST's tools lose by computing the times of detections in double precision, where this package is exact.

KWSEval and STDEval read begin and duration as doubles and add them, so that 0.1 + 0.2 lies behind an end at 0.3. These
functions say on which side of the exact time the tools' own is, in the rare places where it decides: QUIRK, under
`compat = "kwseval"` and `"stdeval"` only.
"""

from __future__ import annotations

import numpy as np

from swsdask.model.trials import I32, I64
from swsdask.model.units import TICKS_PER_SECOND


def end_noise(start: I32, duration: I32) -> I64:
    """How many doubles begin + duration in doubles lies above the end's nearest double; times in ticks."""
    end = start.astype(np.int64) + duration
    exact, added = end / TICKS_PER_SECOND, start / TICKS_PER_SECOND + duration / TICKS_PER_SECOND
    noise: I64 = added.view(np.int64) - exact.view(np.int64)
    return noise


def middle_noise(start: I32, duration: I32) -> I64:
    """The sign of (begin + duration / 2 in doubles) - (the mid-point's nearest double); times in ticks."""
    doubled = 2 * start.astype(np.int64) + duration
    noise = np.sign(start / TICKS_PER_SECOND + duration / TICKS_PER_SECOND / 2 - doubled / (2 * TICKS_PER_SECOND))
    return noise.astype(np.int64)
