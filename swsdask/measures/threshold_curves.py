"""Curves of a threshold: the detection error trade-off (DET), and precision and recall.

The detection error trade-off: P_miss against P_fa as one threshold moves over all queries
------------------------------------------------------------------------------------------
The vertices of a curve are rejecting everything, accepting the scores >= that of each hit, and accepting everything;
from one to the next it runs straight. Between two of them only false alarms are added, which a straight line takes as
spread evenly; every vertex itself is exact. Curves:

- "det": rates averaged over queries (2013 measures document, Eq. 4-5).
- "det_pooled": all queries that averages count as one set of trials (see `measures.rates`, and its QUIRK about |Q|).
  There is no curve where N_nt is negative.

QUIRK, under `compat = "kwseval"` and `"stdeval"`: "det_pooled" counts the false alarms of the queries that averages
leave out, as NIST's tools do (KWSEval -P), and ends at the lowest score of all queries.

Read off the averaged curve, linearly between vertices:

- `eer`: the rate at which P_miss = P_fa. NaN if the system never accepts enough for the two to meet.
- `p_miss@P_FA`: P_miss at each of the settings' `p_fa_points`, the lowest one there; NaN beyond the curve's end.

Precision and recall at thresholds, F1 and its best threshold, and the precision-recall curve
---------------------------------------------------------------------------------------------
With H hits among A accepted trials and R targets: precision = H / A, recall = H / R (Eq. 5.1-5.4 of the thesis), and
F1 = 2 H / (A + R), their harmonic mean; `model.measures.TABLE` has these quotients. Over all queries the counts are
added up first (Eq. 5.5-5.6). Precision is not defined (NaN) where nothing is accepted, recall and F1 without targets;
F1 of accepting nothing is 0.

- `precision`, `recall`, `f1`: of the trials with decision YES; NaN where a trial has no decision.
- `precision@THETA`, `recall@THETA`, `f1@THETA`: of the trials with score >= each of the settings' `thresholds`.
- `best_f1`: the highest F1 that a threshold gives, `best_f1_threshold` the lowest such (inf without hits). Between the
  scores of hits only false alarms are added, so it is one of these.

Each over all queries and per query. Curves, of all queries, x = recall and y = precision at the score of each hit, from
the highest on, and at the lowest score of all: "precision_recall", and "precision_recall_interpolated", where precision
is the highest at this recall or a higher one (Eq. 5.7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from swsdask.measures import sweep
from swsdask.measures.measure import Curve, Scored, Values, ratio
from swsdask.measures.rates import confusion_counts, pooled_rates, undefined_without
from swsdask.measures.sweep import QuerySweep, query_sweep, threshold_sweep
from swsdask.model.measures import TABLE, Accepted
from swsdask.model.trials import F64, I64
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import AllScores
from swsdask.statistics.statistic import Statistic


class DetectionErrorTradeoff:
    """eer, p_miss@P_FA."""

    names: ClassVar[tuple[str, ...]] = ("eer", "p_miss@")
    needs: ClassVar[tuple[type[Statistic], ...]] = (*sweep.NEEDS, AllScores)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        for population in scored.populations:
            sweep = threshold_sweep(scored, population)
            at = sweep.vertices
            p_fa, p_miss = sweep.p_fa[at], sweep.p_miss[at]
            numbers = {"eer": _equal_error_rate(p_fa, p_miss)}
            numbers |= {f"p_miss@{point!r}": _p_miss_at(point, p_fa, p_miss) for point in scored.settings.p_fa_points}
            yield population.overall(numbers)


def _error_tradeoff(scored: Scored) -> Iterator[Curve]:
    """Yield both curves of every condition, x = P_fa, y = P_miss, from the highest threshold to the lowest."""
    for population in scored.populations:
        sweep = threshold_sweep(scored, population)
        at = sweep.vertices
        threshold, name = sweep.thresholds[at], population.condition.name
        yield Curve(name, "det", threshold, sweep.p_fa[at], sweep.p_miss[at])
        hits, false_alarms = sweep.hits[at], sweep.false_alarms[at]
        if (every := scored.get(AllScores)) is not None:
            strata = population.asked[:, np.newaxis] & population.condition.groups
            scores = every.score[strata[every.query, every.group]]
            if len(scores) and scores[0] < threshold[-1]:
                threshold, hits = np.append(threshold, scores[0]), np.append(hits, hits[-1])
            false_alarms = len(scores) - np.searchsorted(scores, threshold) - hits
        p_miss, p_fa = pooled_rates(scored, population, hits, false_alarms)
        yield Curve(name, "det_pooled", threshold, np.where(np.signbit(p_fa), np.nan, p_fa), p_miss)


def _equal_error_rate(p_fa: F64, p_miss: F64) -> float:
    """Return the rate at which a curve of ascending P_fa and descending P_miss crosses the diagonal from above."""
    crossed = np.flatnonzero(p_fa >= p_miss)
    if len(crossed) == 0:
        return np.nan
    after = int(crossed[0])
    above, below = p_miss[after - 1] - p_fa[after - 1], p_fa[after] - p_miss[after]
    return float(p_fa[after - 1] + (p_fa[after] - p_fa[after - 1]) * (above / (above + below)))


def _p_miss_at(point: float, p_fa: F64, p_miss: F64) -> float:
    after = int(np.searchsorted(p_fa, point, side="right"))
    if after == 0 or np.isnan(p_fa[0]) or point > p_fa[-1]:
        return np.nan
    if after == len(p_fa):
        return float(p_miss[-1])
    share = (point - p_fa[after - 1]) / (p_fa[after] - p_fa[after - 1])
    return float(p_miss[after - 1] + share * (p_miss[after] - p_miss[after - 1]))


NEEDS: tuple[type[Statistic], ...] = sweep.NEEDS
"""The statistics that the curves are made of."""

_QUOTIENTS = {row.name: row.quotient for row in TABLE if row.quotient is not None}
"""The measures that are quotients of hits, accepted trials and targets; those at thresholds end in "@"."""


class PrecisionRecall:
    """precision, recall, f1, by decision and at thresholds; best_f1 and its threshold."""

    names: ClassVar[tuple[str, ...]] = (*_QUOTIENTS, "best_f1", "best_f1_threshold")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(dict.fromkeys((*sweep.NEEDS, *sweep.QUERY_NEEDS)))

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall and per query."""
        defined = undefined_without(scored[Counts].has_decisions)
        for population in scored.populations:
            line, lines = threshold_sweep(scored, population), query_sweep(scored, population)
            n_target = np.array([population.n_target])
            counts = confusion_counts(scored, population)
            hits, accepted = counts.hit, counts.hit + counts.false_alarm
            all_hits, all_accepted = (np.array([population.total(column)]) for column in (hits, accepted))
            numbers = _rates(all_hits, all_accepted, n_target)
            numbers = {name: value * defined for name, value in numbers.items()}
            columns = {name: value * defined for name, value in _rates(hits, accepted, population.targets).items()}
            for theta in scored.settings.thresholds:
                at, rows = slice(place := line.place(theta + 0.0), place + 1), _rows(lines, theta)
                numbers |= _rates(line.hits[at], line.hits[at] + line.false_alarms[at], n_target, theta)
                accepted = lines.hits[rows] + lines.false_alarms[rows]
                columns |= _rates(lines.hits[rows], accepted, population.targets, theta)
            numbers["best_f1"], numbers["best_f1_threshold"] = _best(
                line.thresholds, line.hits, line.false_alarms, np.array([0, len(line.hits)]), n_target
            )
            columns["best_f1"], columns["best_f1_threshold"] = _best(
                lines.thresholds, lines.hits, lines.false_alarms, lines.offsets, population.targets
            )
            yield population.overall({name: float(value[0]) for name, value in numbers.items()})
            yield population.by_query(columns)


def _precision_recall(scored: Scored) -> Iterator[Curve]:
    """Yield both curves of every condition that has targets, from the highest threshold to the lowest."""
    for population in scored.populations:
        line = threshold_sweep(scored, population)
        accepted = line.hits + line.false_alarms
        at = line.vertices[accepted[line.vertices] > 0]
        if not population.n_target:
            continue
        recall, precision = line.hits[at] / population.n_target, line.hits[at] / accepted[at]
        name, threshold = population.condition.name, line.thresholds[at]
        yield Curve(name, "precision_recall", threshold, recall, precision)
        yield Curve(name, "precision_recall_interpolated", threshold, recall, _highest_from(precision))


def _highest_from(precision: F64) -> F64:
    """The highest value at each place or behind it."""
    highest: F64 = np.maximum.accumulate(precision[::-1])[::-1]
    return highest


def _rates(hits: I64, accepted: I64, targets: I64, theta: float | None = None) -> dict[str, F64]:
    """The quotients by decision, or at a threshold."""
    found, point = Accepted(hits, accepted, targets), "" if theta is None else repr(theta)
    wanted = {name: each for name, each in _QUOTIENTS.items() if name.endswith("@") == bool(point)}
    return {f"{name}{point}": ratio(*quotient(found)) for name, quotient in wanted.items()}


def _rows(lines: QuerySweep, threshold: float) -> I64:
    """The row of every query at a threshold that all queries have."""
    rows: I64 = np.flatnonzero(lines.thresholds == threshold)
    return rows


def _best(thresholds: F64, hits: I64, false_alarms: I64, offsets: I64, targets: I64) -> tuple[F64, F64]:
    """The highest F1 in rows offsets[i] .. offsets[i + 1], and the lowest threshold that has it.

    Rows are by ascending threshold, the last one accepts nothing. Only rows whose hits the next row has not are looked
    at: the others have the same hits as the next and no fewer false alarms.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    f1 = ratio(2 * hits, hits + false_alarms + targets[query])
    fewer = np.append(hits[1:], 0)
    f1[hits == fewer] = -1.0
    f1[offsets[1:] - 1] = 0.0
    f1[np.isnan(f1)] = 0.0
    highest = np.maximum.reduceat(f1, offsets[:-1])
    at = np.flatnonzero(f1 == highest[query])
    first = at[np.searchsorted(at, offsets[:-1])]
    defined = np.where(targets > 0, 1.0, np.nan)
    return highest * defined, thresholds[first] * defined


def curves(scored: Scored) -> Iterator[Curve]:
    """All of these curves, of every condition."""
    yield from _error_tradeoff(scored)
    yield from _precision_recall(scored)
