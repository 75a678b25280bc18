"""Fragments cut to speech: tde2015 only, where stretches of speech are given.

A fragment that is not entirely inside one stretch is cut to the stretch that it shares most time with, of several the
first; without such a stretch it is dropped.
"""

from __future__ import annotations

import numpy as np

from swsdask.kernels.containment import holding, sharing_most
from swsdask.model.corpus import Stretches
from swsdask.model.trials import I32, Bool


def clip(file: I32, start: I32, end: I32, speech: Stretches) -> tuple[I32, I32, Bool]:
    """The starts and ends inside speech, and which fragments have any (the times of the others are as they were)."""
    stretches = (speech.first, speech.start, speech.end)
    inside = holding(file, start, end, *stretches)
    outside = inside < 0
    holder = inside
    holder[outside] = sharing_most(file[outside], start[outside], end[outside], *stretches)
    some = holder >= 0
    start, end = start.copy(), end.copy()
    start[some] = np.maximum(start[some], speech.start[holder[some]])
    end[some] = np.minimum(end[some], speech.end[holder[some]])
    return start, end, some
