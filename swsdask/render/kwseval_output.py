"""Results as the reports of KWSEval, so that scripts that read these still work.

SYSTEM.sum.txt and .csv have one row over all queries (its -o), SYSTEM.bsum.txt and .csv a row for each query, in the
order of their ids (-b). Of a result with an alignment, SYSTEM.alignment.csv has a row for each trial and each missed
target (-c, `render.f4de`), SYSTEM.det.dat the points of the error tradeoff (-d, see below), and
SYSTEM.cond.sum and .cond.bsum the conditions that the tool has: types of source (-O -B -Y), attributes of queries (-q)
and patterns of their ids (-T).

OTWV, STWV and MAP have columns where these measures were requested (--zGlobalMeasures Optimum, Supremum, MAP and
MAPpct). The numbers are KWSEval's under `compat = "kwseval"`.

QUIRK: a query is listed in a condition if the system has a trial of it there; a query without any trial is listed in
all conditions of patterns and sources. QUIRK: with -inc the tool's Optimum columns depend on the order of a hash, see
`measures.twv`; without it they do so if a query has a target in every segment (-g). QUIRK: such a query has no P_fa,
but 0 is printed for its decisions, and no supremum. QUIRK: the title of the system is always NA.

The points of the error tradeoff (-d)
-------------------------------------
The file ROOTdets/sum.Occurrence.dat.1. A line for every distinct score of the queries that are averaged, ascending: the
score; the normal deviates of P_miss and P_fa; P_miss, P_fa and TWV if detections with at least this score are accepted,
averaged over queries; then the normal deviates of P_miss and P_fa two standard errors below and above; then P_miss and
P_fa, and TWV, two standard errors below and above. With one query there are no standard errors.

P_miss is averaged over the queries with targets (-inc counts the others too), P_fa over those with a non-target (-g
may have queries without). TWV has no standard errors unless every query has both. If no query counts there are no
lines.

Sums are over queries in the order of their ids. The tool uses the order of a hash, which depends on the version of
Perl: with more than two queries the last of 15 digits may differ, as may the order of parameters in the heading. Scores
have as many decimals as the longest, see `render.f4de`. QUIRK: a standard error is the sample standard
deviation over sqrt(n), where the heading says sqrt(n-1); n is the number of all queries, with -inc too. QUIRK: normal
deviates are from a rational approximation (Beasley and Springer 1977, algorithm AS 111), with 0 and 1 moved inwards by
2.2204e-16.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.kernels.sums import rounded_sums
from swsdask.model.results import Result
from swsdask.model.trials import F64, given_score
from swsdask.model.units import INFINITE
from swsdask.render.f4de import Aligned, Name, TextTable, decimals, fixed, kwseval_alignment
from swsdask.render.pages import numbers_by_query

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
    """Yield the lines of one system.

    QUIRK: for a single query the tool leaves out two of ten columns that are not defined.

    `targets` has the number of targets of every query that averages count, `trials` is the number of trials of each.
    `parameters` are those of trials and of the metric, for the heading.
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
    n_target = np.array([targets[name] for name in queries], np.float64)
    n_nontarget = trials - n_target
    with_targets, with_nontargets = n_target > 0, n_nontarget != 0
    every = (with_targets & with_nontargets).all()
    places = decimals(scored["score"])
    for chunk in np.split(thresholds, range(_LINES_AT_ONCE, len(thresholds), _LINES_AT_ONCE)):
        accepted = np.array([len(scores) - np.searchsorted(scores, chunk) for scores in of_kinds], np.float64)
        accepted = accepted.reshape(len(of_kinds), len(chunk)).T
        p_fa = accepted[:, 0::2][:, with_nontargets] / n_nontarget[with_nontargets]
        p_miss = (n_target - accepted[:, 1::2])[:, with_targets] / n_target[with_targets]
        value = 1 - (p_miss + beta * p_fa) if every else np.empty((len(chunk), 0))
        miss, false_alarm, twv = (_Averaged.of(values, len(queries)) for values in (p_miss, p_fa, value))
        lines = _lines((fixed(threshold, places) for threshold in chunk.tolist()), miss, false_alarm, twv, beta)
        for numbers in lines:
            yield " ".join([*(numbers if len(queries) > 1 else [*numbers[:6], *["NA"] * 8]), "\n"])


@dataclass(frozen=True, eq=False)
class _Averaged:
    """The mean over some queries, NaN for none, and two standard errors, NaN for one: float64 [n_scores]."""

    mean: F64
    errors: F64

    @classmethod
    def of(cls, values: F64, n_queries: int) -> _Averaged:
        """Average [n_scores, queries]; the errors are those of `n_queries`, by sums of squares as in the tool."""
        count, total = values.shape[1], _sums(values)
        undefined = np.full_like(total, np.nan)
        if count < 2:
            return cls(total if count else undefined, undefined)
        variance = (count * _sums(values * values) - total * total) / (count * (count - 1))
        return cls(total / count, 2 * (np.sqrt(np.maximum(variance, 0.0)) / math.sqrt(n_queries)))

    @property
    def ends(self) -> tuple[F64, F64]:
        """Two standard errors below and above."""
        return self.mean - self.errors, self.mean + self.errors


def _sums(values: F64) -> F64:
    """Sums over the second axis, each rounded once."""
    n_sums, n_values = values.shape
    return rounded_sums(values.ravel(), n_values * np.arange(n_sums + 1))


def _lines(
    scores: Iterable[str], miss: _Averaged, false_alarm: _Averaged, twv: _Averaged, beta: float
) -> Iterator[list[str]]:
    """Yield the numbers of each score's line, from P_miss, P_fa and TWV of the queries.

    QUIRK: without queries, P_miss has the deviate of 0. Its upper deviate is that of the mean if it has no standard
    errors, and is not defined if P_fa has none.
    """
    value = 1 - (miss.mean + beta * false_alarm.mean)
    low, high = zip(miss.ends, false_alarm.ends, strict=True)
    rate = np.where(np.isnan(miss.mean), 0.0, miss.mean)
    above = np.where(np.isnan(miss.errors), rate, high[0])
    above = np.where(np.isnan(false_alarm.errors), np.nan, above)
    deviates = [[*map(normal_deviate, rates.tolist())] for rates in (rate, false_alarm.mean, *low, above, high[1])]
    rates = (miss.mean, false_alarm.mean, value)
    ends = (*low, *high, value - twv.errors, value + twv.errors)
    columns = (*deviates[:2], *(each.tolist() for each in rates), *deviates[2:], *(each.tolist() for each in ends))
    for score, *numbers in zip(scores, *columns, strict=True):
        yield [score, *map(_as_perl, numbers)]


def _as_perl(value: float) -> str:
    return "NA" if math.isnan(value) else f"{value:.15g}"


def normal_deviate(probability: float) -> float:
    """Return the standard normal variate below which a probability lies, by AS 111; NaN of NaN."""
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


NEEDED = (
    *("n_queries", "n_target", "n_nontarget", "n_detections", "n_hit", "n_correct_nondetection", "n_false_alarm"),
    *("n_miss", "p_fa", "p_miss", "atwv", "actual_threshold", "mtwv_p_fa", "mtwv_p_miss", "mtwv", "mtwv_threshold"),
)
"""The measures that both reports always have."""

ON_REQUEST: dict[str, tuple[str, ...]] = {
    "otwv": ("otwv_p_fa", "otwv_p_miss", "otwv", "otwv_threshold"),
    "stwv": ("stwv_p_miss", "stwv"),
    "map": ("map", "ap"),
}
"""Measures that have columns of their own, and the measures in these columns."""

_BESTS = {"otwv": "Optimum TWV", "stwv": "Supremum TWV"}
"""The best values with a threshold for each query, and with one above all false alarms of each."""

_SUPREMUM_THRESHOLD = 0.5
"""QUIRK: the tool writes this as the threshold of a query's supremum."""

Numbers = Mapping[str, float]

_NOWHERE = dict.fromkeys(("n_target", "n_hit", "n_correct_nondetection", "n_false_alarm", "n_miss", "p_fa", "ap"), 0.0)
"""The numbers of a query without targets and detections, which counts under -inc."""


@dataclass(frozen=True)
class ReportPart:
    """A row of the summary and columns of the block summary: all, or a condition.

    `places` are its documents and channels, `queries` its queries; None: all. A query without any trial of a system is
    listed if it is one of `queries`, or if the part `adopts` all such queries.
    """

    title: str
    condition: str
    seconds: float
    n_trials: int
    places: frozenset[tuple[str, int]] | None = None
    queries: frozenset[str] | None = None
    adopts: bool = False


@dataclass(frozen=True)
class Group:
    """A part with the numbers of a system: over all queries and of each that averages count; and the queries listed."""

    part: ReportPart
    overall: Numbers
    of_queries: Mapping[str, Numbers]
    listed: Sequence[str]


@dataclass(frozen=True)
class KwsevalContext:
    """The facts of the evaluation that reports have beside the numbers.

    `whole` is all of the evaluation, `parts` are the conditions that have reports. `segments` says whether trials are
    segments, `all_queries` whether queries without targets count (-inc). `language` is that of the query list, `texts`
    has the searched text by query id. `listed` has the queries of the systems whose reports have only some (-j).
    """

    whole: ReportPart
    parts: Sequence[ReportPart]
    trials_per_second: float
    beta: float
    c_fa: float
    p_target: float
    c_miss: float
    segments: bool
    all_queries: bool
    language: str
    texts: Mapping[str, str]
    listed: Mapping[str, frozenset[str]]

    def for_system(self, system: str) -> KwsevalContext:
        """Select the queries of a system's reports."""
        listed = self.listed.get(system, self.texts)
        return replace(self, texts={query: text for query, text in self.texts.items() if query in listed})


def write_kwseval_output(
    result: Result, of_systems: KwsevalContext, aligned: Aligned | None, directory: Path
) -> list[Path]:
    """Write the reports of every system, and its alignment if there is one; return the paths."""
    paths = []
    for system in result.manifest["runs"]:
        evaluated = of_systems.for_system(system)
        own_scores = result.score_rows.among([system])
        whole = _group(evaluated.whole, own_scores, sorted(evaluated.texts))
        texts = [(ending, iter([text])) for ending, text in kwseval_reports(evaluated, [whole])]
        if aligned is not None:
            own = aligned(system)
            listed = _listed(own, evaluated)
            parts = [part for part in evaluated.parts if listed[part.title]]
            groups = [_group(part, own_scores, listed[part.title]) for part in parts]
            if groups:
                of_parts = kwseval_reports(evaluated, groups, whole=False)
                texts += [(f"cond.{ending}", iter([text])) for ending, text in of_parts]
            targets = {query: numbers["n_target"] for query, numbers in whole.of_queries.items()}
            if evaluated.all_queries:
                targets = dict.fromkeys(evaluated.texts, 0.0) | targets
            of_both = (_of_trials(evaluated), _of_metric(evaluated))
            lines = kwseval_det(own, targets, evaluated.whole.n_trials, evaluated.beta, of_both)
            texts.append(("det.dat", lines))
            texts.append(("alignment.csv", kwseval_alignment(own, evaluated.language, evaluated.texts)))
        for ending, lines in texts:
            path = directory / f"{system}.{ending}"
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
            paths.append(path)
    return paths


def _group(part: ReportPart, scores: pa.Table, listed: Sequence[str]) -> Group:
    return Group(part, *numbers_by_query(scores, part.condition), listed)


def _listed(alignment: pa.Table, evaluated: KwsevalContext) -> dict[str, list[str]]:
    """Return the queries of each part that the block summary lists, sorted, by its title."""
    rows = alignment.select(["query", "document", "channel"]).group_by(["query", "document", "channel"]).aggregate([])
    trials = [(row["query"], (row["document"], row["channel"] or 1)) for row in rows.to_pylist()]
    nowhere = evaluated.texts.keys() - {query for query, _ in trials}
    listed = {}
    for part in evaluated.parts:
        own = evaluated.texts.keys() if part.queries is None else part.queries
        there = {query for query, place in trials if part.places is None or place in part.places}
        listed[part.title] = sorted(there & own | (nowhere if part.adopts else nowhere & own))
    return listed


def kwseval_reports(
    evaluated: KwsevalContext, groups: Sequence[Group], *, whole: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield the ending of the name and the text of each file of one system: of all (`whole`), or of conditions."""
    heading = _heading(evaluated, groups).text(named=False) + "\n\n"
    summary, blocks = _summary(evaluated, groups), _blocks(evaluated, groups, whole=whole)
    yield "sum.txt", heading + summary.text(named=False)
    yield "sum.csv", summary.csv(named=False)
    yield "bsum.txt", heading + blocks.text(named=True)
    yield "bsum.csv", blocks.csv(named=True)


def _differing(evaluated: KwsevalContext, groups: Sequence[Group]) -> dict[str, list[str]]:
    """Return the parameters that differ between groups, with the value of each group."""
    seconds, trials = (
        [f"{group.part.seconds:.15g}" for group in groups],
        [f"{group.part.n_trials}" for group in groups],
    )
    values = {**({} if evaluated.segments else {"TotDur": seconds}), "TotTrials": trials}
    return {name: each for name, each in values.items() if len(set(each)) > 1}


def _of_trials(evaluated: KwsevalContext) -> str:
    """Return the parameters of trials, as the heading of the error tradeoff has them."""
    timed = "" if evaluated.segments else f"'TrialsPerSecond' => '{evaluated.trials_per_second:.15g}', "
    timed += "" if evaluated.segments else f"'TotDur' => '{evaluated.whole.seconds:.15g}', "
    counted = f"'IncludeBlocksWithNoTargets' => '{evaluated.all_queries:d}', "
    return f"{timed}'TotTrials' => '{evaluated.whole.n_trials}', {counted}"


def _of_metric(evaluated: KwsevalContext) -> str:
    """Return the parameters of TWV, likewise."""
    weights = f"BETA => '{evaluated.beta:.15g}', Ptarg => '{evaluated.p_target:.15g}', "
    return f"{weights}Cost => '{_cost(evaluated)}', Value => '{evaluated.c_miss:.15g}', "


def _cost(evaluated: KwsevalContext) -> str:
    """Return the cost of a false alarm: with four decimals where it is the tool's default."""
    default = f"{evaluated.c_miss / 10:.4f}"
    return default if evaluated.c_fa == float(default) else f"{evaluated.c_fa:.15g}"


def _heading(evaluated: KwsevalContext, groups: Sequence[Group]) -> TextTable:
    part, differing = groups[0].part, _differing(evaluated, groups)
    said = {
        "System Title": "NA",
        "Decision ID": "Segment" if evaluated.segments else "Occurrence",
        "IncludeBlocksWithNoTargets": f"{evaluated.all_queries:d}",
        **({} if evaluated.segments else {"TotDur": f"{part.seconds:.15g}"}),
        "TotTrials": f"{part.n_trials}",
        **({} if evaluated.segments else {"TrialsPerSecond": f"{evaluated.trials_per_second:.15g}"}),
        "BETA": f"{evaluated.beta:.15g}",
        "Cost": _cost(evaluated),
        "Ptarg": f"{evaluated.p_target:.15g}",
        "Value": f"{evaluated.c_miss:.15g}",
    }
    table, over = TextTable(), "Performance Summary Over and Ensemble of Subsets"
    for key, value in said.items():
        if key not in differing:
            table.put((key,), (over, "Key"), key)
            table.put((key,), (over, "Value"), value)
    return table


def _summary(evaluated: KwsevalContext, groups: Sequence[Group]) -> TextTable:
    table, differing = TextTable(), _differing(evaluated, groups)
    for number, group in enumerate(groups):
        overall, title = group.overall, group.part.title

        def put(heading: str, cells: Mapping[str, str], title: str = title) -> None:
            for column, text in cells.items():
                table.put((title,), (heading, column), text)

        put(" ", {"Title": title})
        put("Parameters", {name: values[number] for name, values in differing.items()})
        queries = {"#Keyword": "n_queries"} if overall["n_queries"] > 1 else {}
        put(
            "Inputs",
            _counts(overall, {**queries, "#Targ": "n_target", "#NTarg": "n_nontarget", "#Sys": "n_detections"}),
        )
        decided = {"#CorDet": "n_hit", "#Cor!Det": "n_correct_nondetection", "#FA": "n_false_alarm", "#Miss": "n_miss"}
        put("Actual Decision TWV Analysis", _counts(overall, decided))
        put("Actual Decision TWV Analysis", _rates(overall, ""))
        put("Actual Decision TWV Analysis", {"Dec. Tresh": _number(overall["actual_threshold"], ".4f")})
        put("Maximum TWV Analysis", _rates(overall, "mtwv") | _threshold(overall["mtwv_threshold"], "NaN"))
        for measure, heading in _BESTS.items():
            if measure in overall:
                put(f"{heading} Analysis", _best(overall, _rates(overall, measure) | _threshold(math.nan)))
        if "map" in overall:
            put("Global Measures", _precision("MAP", overall["map"]))
    return table


def _blocks(evaluated: KwsevalContext, groups: Sequence[Group], *, whole: bool) -> TextTable:
    """Return the block summary. It has the measures on request only for the `whole`."""
    table = TextTable()

    def put(row: Name, heading: str, cells: Mapping[str, str]) -> None:
        for column, text in cells.items():
            table.put(row, (heading, column), text)

    rejected = {"#Corr!Det": "n_correct_nondetection"} if evaluated.segments else {}
    decided = {"#Targ": "n_target", "#Corr": "n_hit", **rejected, "#FA": "n_false_alarm", "#Miss": "n_miss"}
    for group in groups:
        overall, title = group.overall, group.part.title
        for query in group.listed:
            row = ("Keyword", query)
            put(row, "MetaData", {"Text": evaluated.texts[query]})
            if query not in group.of_queries and not evaluated.all_queries:
                continue
            own = group.of_queries.get(query, _NOWHERE)
            of_decisions = _rates(own, "")
            p_fa = "0" if math.isnan(own["p_fa"]) else of_decisions["PFA"]
            put(row, title, _counts(own, decided) | {"TWV": of_decisions["TWV"], "PFA": p_fa})
            put(row, title, {"PMISS": of_decisions["PMiss"]})
            for measure, heading in _BESTS.items():
                if whole and measure in overall:
                    threshold = own.get("otwv_threshold", math.nan) if measure == "otwv" else _SUPREMUM_THRESHOLD
                    put(row, heading, _best(overall, _rates(own, measure) | _threshold(threshold)))
            if whole and "map" in overall:
                put(row, "Global Measures", _precision("AP", own["ap"]))
    totals, means = ("Summary", "Totals"), ("Summary", "Means")
    for group in groups:
        overall, title = group.overall, group.part.title
        averages = {name: overall[name] / (overall["n_queries"] or math.inf) for name in decided.values()}
        of_decisions = _rates(overall, "")
        put(
            totals,
            title,
            _counts(overall, {name: decided[name] for name in ("#FA", "#Miss", "#Targ", "#Corr")} | rejected),
        )
        put(means, title, _counts(averages, decided) | {"PFA": of_decisions["PFA"], "PMISS": of_decisions["PMiss"]})
        put(("Summary", "TWV"), title, {"TWV": of_decisions["TWV"]})
        for measure, heading in _BESTS.items():
            if whole and measure in overall:
                put(means, heading, _best(overall, _rates(overall, measure)))
        if whole and "map" in overall:
            put(means, "Global Measures", _precision("AP", overall["map"]))
    return table


def _counts(numbers: Numbers, names: Mapping[str, str]) -> dict[str, str]:
    return {column: f"{numbers[name]:.0f}" for column, name in names.items()}


def _rates(numbers: Numbers, measure: str) -> dict[str, str]:
    """P_fa, P_miss and TWV of a measure, or of the decisions. Without non-targets no measure has P_fa and TWV."""
    before = f"{measure}_" if measure else ""
    p_fa, value = numbers.get(f"{before}p_fa", math.nan), numbers.get(measure or "atwv", math.nan)
    if measure == "stwv":
        p_fa = 0.0 * numbers["p_fa"]
        value += p_fa
    return {
        "PFA": _number(p_fa, ".5f"),
        "PMiss": _number(numbers.get(f"{before}p_miss", math.nan), "6.3f"),
        "TWV": _number(value, ".4f"),
    }


def _best(overall: Numbers, cells: dict[str, str]) -> dict[str, str]:
    """Return the cells of an optimum or supremum; NA if no query that averages count is detected."""
    return cells if overall["n_detections"] else dict.fromkeys(cells, "NA")


def _threshold(score: float, without: str = "NA") -> dict[str, str]:
    """The cell of a threshold, which is a score of the run: KWSEval prints infinite ones as they are in the list."""
    text = fixed(given_score(score), 3)
    return {"Dec. Thresh": without if math.isnan(score) else f"{text:>6}"}


def _precision(title: str, value: float) -> dict[str, str]:
    return {title: _number(value, ".2f"), f"{title}%": _number(100 * value, ".1f")}


def _number(value: float, form: str) -> str:
    """Return a number as Perl prints it; a mean with an infinite score is infinite."""
    if abs(value) >= INFINITE / 2:
        return "Inf" if value > 0 else "-Inf"
    return "NA" if math.isnan(value) else format(value, form)
