"""The points of the error tradeoff as KWSEval writes them (-d): its file ROOTdets/sum.Occurrence.dat.1.

A line for every distinct score of the queries that are averaged, ascending: the score; the normal deviates of P_miss
and P_fa; P_miss, P_fa and TWV where what scores at least so much is accepted, averaged over queries; then the normal
deviates of P_miss and P_fa two standard errors below and above; then P_miss and P_fa, and TWV, two standard errors
below and above. With one query there are no standard errors.

P_miss is averaged over the queries with targets (-inc counts the others too), P_fa over those with a non-target (-g
may have queries without), and TWV has no standard errors where these are not all. If no query counts there are no
lines.

Sums go over queries in the order of their ids, the tool's in that of a hash, which the version of Perl gives: with more
than two queries the last of 15 digits may differ, as may the order of the parameters in the heading. Scores have as
many decimals as the longest, see `render.f4de_tables`. QUIRK: a standard error is the sample standard deviation over
sqrt(n), where the heading says sqrt(n-1); n is the number of all queries, with -inc too. QUIRK: normal deviates are
those of a rational approximation (Beasley and Springer 1977, algorithm AS 111), 0 and 1 taken as 2.2204e-16 from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.trials import F64
from swsdask.render.f4de_tables import decimals, fixed

_COLUMNS = (
    "# 1:score 2:ppndf(PMiss) 3:ppndf(PFA) 4:PMiss 5:PFA 6:TWV 7:ppndf(-2SE(PMiss)) 8:ppndf(-2SE(PFA)) "
    "9:ppndf(+2SE(PMiss)) 10:ppndf(+2SE(PFA)) 11:-2SE(PMiss) 12:-2SE(PFA) 13:+2SE(PMiss) 14:+2SE(PFA) 15:-2SE(TWV) "
    "16:+2SE(TWV)\n"
)
_ABOUT = (
    "# Abbreviations: ssd() is the sample Standard Deviation of a Variable\n"
    "#                ppndf() is the normal deviant of a probability. ppndf(.5)=0\n"
    "#                -2SE(v) is v - 2(StandardError(v)) = v - 2 * (sampleStandardDev / sqrt(n-1)\n"
    '#                        the value "NA" is used when n <= 1\n'
)
_LINES_AT_ONCE = 4096
_LEAST = 2.2204e-16
_MIDDLE = 0.42
_A = (-25.4410604963, 41.3911977353, -18.6150006252, 2.5066282388)
_B = (3.1308290983, -21.0622410182, 23.0833674374, -8.4735109309, 1.0)
_C = (2.3212127685, 4.8501412713, -2.2979647913, -2.7871893113)
_D = (1.6370678189, 3.5438892476, 1.0)


def kwseval_det(
    alignment: pa.Table, targets: Mapping[str, float], trials: float, beta: float, parameters: Sequence[str]
) -> Iterator[str]:
    """The lines of one system.

    `targets` has the number of targets of every query that averages count, `trials` is the number of trials of each,
    `parameters` are the heading's, of trials and of the metric.
    """
    of_trials, of_metric = parameters
    yield "# DET Graph made by DETCurve\n"
    yield f"# Trial Params = {{ ({of_trials}) }}\n# Metric Params = {{ ({of_metric}) }}\n{_ABOUT}{_COLUMNS}"
    queries = sorted(targets)
    scored = alignment.filter(pc.is_valid(alignment["score"]))
    query = pc.fill_null(pc.index_in(scored["query"], pa.array(queries, pa.string())), -1).to_numpy()
    scored, query = scored.filter(pa.array(query >= 0)), query[query >= 0]
    score, is_target = scored["score"].to_numpy(), pc.is_valid(scored["reference_start"]).to_numpy()
    thresholds = np.unique(score)
    order = np.lexsort((score, is_target, query))
    bounds = np.searchsorted((2 * query + is_target)[order], np.arange(2 * len(queries) + 1))
    of_kinds = [score[order[first:last]] for first, last in pairwise(bounds.tolist())]
    n_target = np.array([targets[name] for name in queries], np.float64)[:, np.newaxis]
    n_nontarget = trials - n_target
    with_targets, with_nontargets = n_target[:, 0] > 0, n_nontarget[:, 0] != 0
    every = (with_targets & with_nontargets).all()
    places = decimals(scored["score"])
    for chunk in np.split(thresholds, range(_LINES_AT_ONCE, len(thresholds), _LINES_AT_ONCE)):
        accepted = np.array([len(scores) - np.searchsorted(scores, chunk) for scores in of_kinds], np.float64)
        accepted = accepted.reshape(len(of_kinds), len(chunk))
        p_fa = accepted[0::2][with_nontargets] / n_nontarget[with_nontargets]
        p_miss = (n_target - accepted[1::2])[with_targets] / n_target[with_targets]
        value = 1 - (p_miss + beta * p_fa) if every else np.empty((0, len(chunk)))
        for number, threshold in enumerate(chunk.tolist()):
            miss, false_alarm, twv = (_Averaged.of(values[:, number], len(queries)) for values in (p_miss, p_fa, value))
            yield _line(fixed(threshold, places), miss, false_alarm, twv, beta)


@dataclass(frozen=True)
class _Averaged:
    """The mean over some queries, NaN of none, and two standard errors, NaN of one."""

    mean: float
    errors: float

    @classmethod
    def of(cls, values: F64, n_queries: int) -> _Averaged:
        """Average; the errors are those of `n_queries`, by sums of squares as the tool has it."""
        count, total = len(values), math.fsum(values)
        if count < 2:
            return cls(total if count else math.nan, math.nan)
        variance = (count * math.fsum(values * values) - total * total) / (count * (count - 1))
        return cls(total / count, 2 * (math.sqrt(max(variance, 0.0)) / math.sqrt(n_queries)))

    @property
    def ends(self) -> tuple[float, float]:
        """Two standard errors below and above."""
        return self.mean - self.errors, self.mean + self.errors


def _line(score: str, miss: _Averaged, false_alarm: _Averaged, twv: _Averaged, beta: float) -> str:
    """The line of a score, from P_miss, P_fa and TWV of the queries.

    QUIRK: P_miss of no query has the deviate of 0; its deviate above is that of the mean where it has no standard
    errors, and none where P_fa has none.
    """
    value = 1 - (miss.mean + beta * false_alarm.mean)
    means = [miss.mean, false_alarm.mean]
    low, high = zip(miss.ends, false_alarm.ends, strict=True)
    rate = 0.0 if math.isnan(miss.mean) else miss.mean
    above = rate if math.isnan(miss.errors) else high[0]
    if math.isnan(false_alarm.errors):
        above = math.nan
    deviates = map(normal_deviate, (rate, false_alarm.mean, *low, above, high[1]))
    of_value = (value - twv.errors, value + twv.errors)
    numbers = [next(deviates), next(deviates), *means, value, *deviates, *low, *high, *of_value]
    return " ".join([score, *map(_number, numbers), "\n"])


def _number(value: float) -> str:
    return "NA" if math.isnan(value) else f"{value:.15g}"


def normal_deviate(probability: float) -> float:
    """The standard normal variate below which a probability lies, by AS 111; NaN of NaN."""
    p = 1 - _LEAST if probability >= 1 else _LEAST if probability <= 0 else probability
    q = p - 0.5
    if abs(q) <= _MIDDLE:
        return q * _polynomial(_A, q * q) / _polynomial(_B, q * q)
    r = math.sqrt(-math.log(1 - p if q > 0 else p))
    found = _polynomial(_C, r) / _polynomial(_D, r)
    return -found if q < 0 else found


def _polynomial(factors: Sequence[float], x: float) -> float:
    value = 0.0
    for factor in factors:
        value = value * x + factor
    return value
