"""Made-up systems: which occurrences each finds, what else it takes for one, with which scores and decisions.

Scores start as log-likelihood ratios that mean what they say. A system finds the share `found` of the occurrences,
and their scores are normal with mean `mean` and standard deviation `spread`; then false alarms have to have the density
found * exp(-score) * normal(score), whose integral over a stretch of scores, times the number of non-target trials, is
how many there are. Only what scores at least `pruning` is put out. What the system reports is scale * score + shift,
plus a number that differs from query to query, which the system knows when it decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.model.schemas import DETECTIONS
from swsdask.model.ticks import TICKS_PER_SECOND
from swsdask.model.trials import F64, I64
from swsdask.simulate.queries import Occurrences
from swsdask.simulate.speech import Recordings

TICKS_PER_MS = TICKS_PER_SECOND // 1000
_NORMAL = NormalDist()
_PLACE = ("duration", "start", "channel", "document", "query")
SCORE_UNIT = 1e-4
"""Scores have four decimals."""


@dataclass(frozen=True)
class SystemModel:
    """One made-up system; see the module's text. `threshold` is on reported scores less the query's own number."""

    name: str
    found: float
    mean: float
    spread: float
    pruning: float
    scale: float = 1.0
    shift: float = 0.0
    query_spread: float = 0.0
    threshold: float = 4.2


SYSTEMS = (
    SystemModel("calibrated", found=0.62, mean=7.6, spread=2.0, pruning=1.8),
    SystemModel("overconfident", found=0.60, mean=7.5, spread=2.0, pruning=1.8, scale=1.4, shift=1.5),
    SystemModel("keyword-specific", found=0.52, mean=7.3, spread=2.0, pruning=2.2, query_spread=2.0),
    SystemModel("middling", found=0.45, mean=7.0, spread=2.2, pruning=2.0, scale=0.5, threshold=2.1),
    SystemModel("weak", found=0.30, mean=6.5, spread=2.5, pruning=2.8, threshold=3.4),
)
"""Five systems: a good one whose threshold is right, one as good that accepts too much, one that decides by thresholds
of each query, a middling and a weak one. The right threshold is SWS 2013's, log(66.66) = 4.2."""


@dataclass(frozen=True, eq=False)
class Task:
    """What all systems face: the speech, how hard each occurrence is, and how hard each query is."""

    recordings: Recordings
    occurrences: Occurrences
    hardness: F64
    query_ease: F64
    query_duration: F64
    n_nontargets: float


def detect(task: Task, model: SystemModel, rng: np.random.Generator) -> pa.Table:
    """The detections of one system: a table of `model.schemas.DETECTIONS`, in its canonical order."""
    n_queries = len(task.query_ease)
    found = np.clip(model.found * (1 + 0.35 * task.query_ease), 0.02, 0.97)
    mean = model.mean + 0.6 * task.query_ease + rng.normal(0.0, 0.3, n_queries)
    query_number = rng.normal(0.0, model.query_spread, n_queries) if model.query_spread else np.zeros(n_queries)

    hits = _hits(task, model, found, mean, rng)
    false_alarms = _false_alarms(task, model, found, mean, rng)
    again = _beside(hits, 0.07, rng), _beside(false_alarms, 0.05, rng)
    query, track, start, duration, score = (np.concatenate(c) for c in zip(hits, false_alarms, *again, strict=True))
    kept = score >= model.pruning
    query, track, start, duration, score = (column[kept] for column in (query, track, start, duration, score))

    document = task.recordings.track_document[track]
    length = task.recordings.length[document]
    start = np.clip(start, 0, length - 100)
    duration = np.clip(duration, 60, length - start)
    own = query_number[query]
    reported = np.round((model.scale * score + model.shift + own) / SCORE_UNIT) / round(1 / SCORE_UNIT)
    decision = (reported - own >= model.threshold).astype(np.int8)
    columns: dict[str, NDArray[Any]] = {
        "query": query,
        "document": document,
        "channel": task.recordings.track_channel[track],
        "start": start * TICKS_PER_MS,
        "duration": duration * TICKS_PER_MS,
        "score": reported,
        "decision": decision,
        "inside": start >= task.recordings.lead_in[document],
    }
    keys: list[NDArray[Any]] = [decision, -reported, *(columns[name] for name in _PLACE)]
    order = np.lexsort(keys)
    return pa.table({f.name: pa.array(columns[f.name][order]).cast(f.type) for f in DETECTIONS}, schema=DETECTIONS)


class _Rows(NamedTuple):
    """Detections in the making; times in ms."""

    query: I64
    track: I64
    start: I64
    duration: I64
    score: F64


def _hits(task: Task, model: SystemModel, found: F64, mean: F64, rng: np.random.Generator) -> _Rows:
    """Detections of occurrences: hard ones are hard for every system. A few are badly placed."""
    occurrences = task.occurrences
    n = len(occurrences.query)
    luck = 0.75 * task.hardness + np.sqrt(1 - 0.75**2) * rng.normal(size=n)
    there = np.flatnonzero(_each(_NORMAL.cdf, luck) < found[occurrences.query])
    query = occurrences.query[there].astype(np.int64)
    score = mean[query] + model.spread * (rng.normal(size=len(there)) - 0.5 * task.hardness[there]) / np.sqrt(1.25)
    wide = np.where(rng.random(len(there)) < 0.03, 6.0, 1.0)
    start = occurrences.start[there] + np.round(rng.normal(0.0, 45.0, len(there)) * wide).astype(np.int64)
    end = occurrences.end[there] + np.round(rng.normal(0.0, 60.0, len(there)) * wide).astype(np.int64)
    return _Rows(query, _track_of(task, there), start, np.maximum(end - start, 60), score)


def _false_alarms(task: Task, model: SystemModel, found: F64, mean: F64, rng: np.random.Generator) -> _Rows:
    """Detections anywhere, as many and with such scores that score is a log-likelihood ratio."""
    centre = mean - model.spread**2
    below = _each(_NORMAL.cdf, (model.pruning - centre) / model.spread)
    density = found * np.exp(model.spread**2 / 2 - mean) * (1 - below)
    counts = rng.poisson(density * task.n_nontargets)
    query = np.repeat(np.arange(len(counts)), counts)
    uniform = rng.random(len(query))
    share = below[query] + (1 - below[query]) * uniform
    score = centre[query] + model.spread * _each(_NORMAL.inv_cdf, share)
    track_length = task.recordings.length[task.recordings.track_document]
    tape = np.cumsum(track_length)
    place = rng.integers(0, int(tape[-1]), len(query))
    track = np.searchsorted(tape, place, "right")
    duration = task.query_duration[query] * rng.lognormal(0.0, 0.2, len(query))
    return _Rows(query, track, place - (tape - track_length)[track], duration.astype(np.int64), score)


def _beside(rows: _Rows, share: float, rng: np.random.Generator) -> _Rows:
    """Second detections that overlap a share of the given ones, nearly as good."""
    again = np.flatnonzero(rng.random(len(rows.query)) < share)
    n = len(again)
    duration = rows.duration[again]
    start = rows.start[again] + np.round(duration * rng.normal(0.0, 0.25, n)).astype(np.int64)
    duration = np.maximum(np.round(duration * rng.lognormal(0.0, 0.15, n)).astype(np.int64), 60)
    return _Rows(rows.query[again], rows.track[again], start, duration, rows.score[again] - rng.exponential(1.0, n))


def _track_of(task: Task, occurrence: I64) -> I64:
    """The track in which each of the given occurrences lies."""
    tracks = task.recordings.track_document.astype(np.int64) * 8 + task.recordings.track_channel
    wanted = task.occurrences.document[occurrence].astype(np.int64) * 8 + task.occurrences.channel[occurrence]
    return np.searchsorted(tracks, wanted)


def _each(function: Callable[[float], float], column: F64) -> F64:
    return np.fromiter(map(function, column.tolist()), np.float64, len(column))
