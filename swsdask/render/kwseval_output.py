"""Our numbers as the reports that KWSEval writes, so that scripts that read them still work.

SYSTEM.sum.txt and .csv have one row over all queries (its -o), SYSTEM.bsum.txt and .csv a row for each query, in the
order of their ids (-b). Of a result with an alignment, SYSTEM.alignment.csv has a row for each trial and each missed
target (-c, `render.nist_alignment`), and SYSTEM.det.dat, without -inc, the points of the error tradeoff (-d,
`render.kwseval_det`).

OTWV, STWV and MAP have columns where these measures were requested (--zGlobalMeasures Optimum, Supremum, MAP and
MAPpct). The numbers are KWSEval's under `compat = "kwseval"`.

QUIRK: with -inc the tool's Optimum columns depend on the order of a hash, see `measures.optimum`. QUIRK: its title of
the system is always NA.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from swsdask.model.results import Result
from swsdask.render.kwseval_det import kwseval_det
from swsdask.render.nist_alignment import kwseval_alignment
from swsdask.render.text_table import Name, TextTable

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
"""Measures that have columns of their own, and what these columns hold."""

_BESTS = {"otwv": "Optimum TWV", "stwv": "Supremum TWV"}
"""What is best with a threshold for each query, and with one above all false alarms of each."""

_SUPREMUM_THRESHOLD = 0.5
"""QUIRK: what the tool writes as the threshold of a query's supremum."""

Numbers = Mapping[str, float]

_NOWHERE = dict.fromkeys(("n_target", "n_hit", "n_correct_nondetection", "n_false_alarm", "n_miss", "p_fa", "ap"), 0.0)
"""Of a query without targets and detections, which counts under -inc."""


@dataclass(frozen=True)
class Evaluated:
    """What the reports say of the evaluation beside the numbers.

    `segments` says whether trials are segments, `all_queries` whether queries without targets count (-inc). `language`
    is the query list's, `texts` has what was searched by the ids of queries.
    """

    seconds: float
    n_trials: int
    trials_per_second: float
    beta: float
    c_fa: float
    p_target: float
    c_miss: float
    segments: bool
    all_queries: bool
    language: str
    texts: Mapping[str, str]


def write_kwseval_output(result: Result, evaluated: Evaluated, directory: Path) -> list[Path]:
    """Write the reports of every system, and its alignment if the result has one; return the paths."""
    paths = []
    whole = result.table.filter(pc.equal(result.table["condition"], "all"))
    for system in result.manifest["runs"]:
        numbers: dict[str | None, dict[str, float]] = {}
        for row in whole.filter(pc.equal(whole["system"], system)).to_pylist():
            numbers.setdefault(row["query"], {})[row["measure"]] = row["value"]
        overall = numbers.pop(None)
        texts = [
            (ending, iter([text]))
            for ending, text in kwseval_reports(evaluated, overall, {str(name): own for name, own in numbers.items()})
        ]
        if result.alignment_table is not None:
            own = result.alignment_table.filter(pc.equal(result.alignment_table["system"], system))
            if not evaluated.all_queries:
                targets = {str(query): numbers[query]["n_target"] for query in numbers}
                of_both = (_of_trials(evaluated), _of_metric(evaluated))
                texts.append(("det.dat", kwseval_det(own, targets, evaluated.n_trials, evaluated.beta, of_both)))
            texts.append(("alignment.csv", kwseval_alignment(own, evaluated.language, evaluated.texts)))
        for ending, lines in texts:
            path = directory / f"{system}.{ending}"
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
            paths.append(path)
    return paths


def kwseval_reports(
    evaluated: Evaluated, overall: Numbers, of_queries: Mapping[str, Numbers]
) -> Iterator[tuple[str, str]]:
    """The endings of the files' names, and what they hold, of one system.

    `of_queries` has the queries that are averaged over.
    """
    heading = _heading(evaluated).text(named=False) + "\n\n"
    title = _title(evaluated)
    summary, blocks = _summary(title, overall), _blocks(title, evaluated, overall, of_queries)
    yield "sum.txt", heading + summary.text(named=False)
    yield "sum.csv", summary.csv(named=False)
    yield "bsum.txt", heading + blocks.text(named=True)
    yield "bsum.csv", blocks.csv(named=True)


def _title(evaluated: Evaluated) -> str:
    return "Segment" if evaluated.segments else "Occurrence"


def _of_trials(evaluated: Evaluated) -> str:
    """The parameters of trials, as the heading of the error tradeoff has them."""
    timed = "" if evaluated.segments else f"'TrialsPerSecond' => '{evaluated.trials_per_second:.15g}', "
    timed += "" if evaluated.segments else f"'TotDur' => '{evaluated.seconds:.15g}', "
    return (
        f"{timed}'TotTrials' => '{evaluated.n_trials}', 'IncludeBlocksWithNoTargets' => '{evaluated.all_queries:d}', "
    )


def _of_metric(evaluated: Evaluated) -> str:
    """The parameters of TWV, likewise."""
    weights = f"BETA => '{evaluated.beta:.15g}', Ptarg => '{evaluated.p_target:.15g}', "
    return f"{weights}Cost => '{evaluated.c_fa:.4f}', Value => '{evaluated.c_miss:.15g}', "


def _heading(evaluated: Evaluated) -> TextTable:
    said = {
        "System Title": "NA",
        "Decision ID": _title(evaluated),
        "IncludeBlocksWithNoTargets": f"{evaluated.all_queries:d}",
        **({} if evaluated.segments else {"TotDur": f"{evaluated.seconds:.15g}"}),
        "TotTrials": f"{evaluated.n_trials}",
        **({} if evaluated.segments else {"TrialsPerSecond": f"{evaluated.trials_per_second:.15g}"}),
        "BETA": f"{evaluated.beta:.15g}",
        "Cost": f"{evaluated.c_fa:.4f}",
        "Ptarg": f"{evaluated.p_target:.15g}",
        "Value": f"{evaluated.c_miss:.15g}",
    }
    table, over = TextTable(), "Performance Summary Over and Ensemble of Subsets"
    for key, value in said.items():
        table.put((key,), (over, "Key"), key)
        table.put((key,), (over, "Value"), value)
    return table


def _summary(title: str, overall: Numbers) -> TextTable:
    table = TextTable()

    def put(group: str, cells: Mapping[str, str]) -> None:
        for column, text in cells.items():
            table.put((title,), (group, column), text)

    put(" ", {"Title": title})
    queries = {"#Keyword": "n_queries"} if overall["n_queries"] > 1 else {}
    put("Inputs", _counts(overall, {**queries, "#Targ": "n_target", "#NTarg": "n_nontarget", "#Sys": "n_detections"}))
    decided = {"#CorDet": "n_hit", "#Cor!Det": "n_correct_nondetection", "#FA": "n_false_alarm", "#Miss": "n_miss"}
    put("Actual Decision TWV Analysis", _counts(overall, decided))
    put("Actual Decision TWV Analysis", _rates(overall, ""))
    put("Actual Decision TWV Analysis", {"Dec. Tresh": _number(overall["actual_threshold"], ".4f")})
    put("Maximum TWV Analysis", _rates(overall, "mtwv") | _threshold(overall["mtwv_threshold"], "   NaN"))
    for measure, group in _BESTS.items():
        if measure in overall:
            put(f"{group} Analysis", _best(overall, _rates(overall, measure) | _threshold(math.nan)))
    if "map" in overall:
        put("Global Measures", _precision("MAP", overall["map"]))
    return table


def _blocks(title: str, evaluated: Evaluated, overall: Numbers, of_queries: Mapping[str, Numbers]) -> TextTable:
    table = TextTable()

    def put(row: Name, group: str, cells: Mapping[str, str]) -> None:
        for column, text in cells.items():
            table.put(row, (group, column), text)

    rejected = {"#Corr!Det": "n_correct_nondetection"} if evaluated.segments else {}
    decided = {"#Targ": "n_target", "#Corr": "n_hit", **rejected, "#FA": "n_false_alarm", "#Miss": "n_miss"}
    for query in sorted(evaluated.texts):
        row = ("Keyword", query)
        put(row, "MetaData", {"Text": evaluated.texts[query]})
        if query not in of_queries and not evaluated.all_queries:
            continue
        own = of_queries.get(query, _NOWHERE)
        of_decisions = _rates(own, "")
        put(row, title, _counts(own, decided) | {"TWV": of_decisions["TWV"], "PFA": of_decisions["PFA"]})
        put(row, title, {"PMISS": of_decisions["PMiss"]})
        for measure, group in _BESTS.items():
            if measure in overall:
                threshold = own.get("otwv_threshold", math.nan) if measure == "otwv" else _SUPREMUM_THRESHOLD
                put(row, group, _best(overall, _rates(own, measure) | _threshold(threshold)))
        if "map" in overall:
            put(row, "Global Measures", _precision("AP", own["ap"]))
    totals, means = ("Summary", "Totals"), ("Summary", "Means")
    averages = {name: overall[name] / (overall["n_queries"] or math.inf) for name in decided.values()}
    of_decisions = _rates(overall, "")
    put(totals, title, _counts(overall, decided))
    put(means, title, _counts(averages, decided) | {"PFA": of_decisions["PFA"], "PMISS": of_decisions["PMiss"]})
    put(("Summary", "TWV"), title, {"TWV": of_decisions["TWV"]})
    for measure, group in _BESTS.items():
        if measure in overall:
            put(means, group, _best(overall, _rates(overall, measure)))
    if "map" in overall:
        put(means, "Global Measures", _precision("AP", overall["map"]))
    return table


def _counts(numbers: Numbers, names: Mapping[str, str]) -> dict[str, str]:
    return {column: f"{numbers[name]:.0f}" for column, name in names.items()}


def _rates(numbers: Numbers, measure: str) -> dict[str, str]:
    """P_fa, P_miss and TWV of a measure, or of the decisions."""
    before = f"{measure}_" if measure else ""
    p_fa = 0.0 if measure == "stwv" else numbers.get(f"{before}p_fa", math.nan)
    return {
        "PFA": _number(p_fa, ".5f"),
        "PMiss": _number(numbers.get(f"{before}p_miss", math.nan), "6.3f"),
        "TWV": _number(numbers.get(measure or "atwv", math.nan), ".4f"),
    }


def _best(overall: Numbers, cells: dict[str, str]) -> dict[str, str]:
    """The cells of an optimum or supremum, which nothing has where no query that averages count is detected."""
    return cells if overall["n_detections"] else dict.fromkeys(cells, "NA")


def _threshold(score: float, without: str = "NA") -> dict[str, str]:
    return {"Dec. Thresh": without if math.isnan(score) else format(score, "6.3f")}


def _precision(title: str, value: float) -> dict[str, str]:
    return {title: _number(value, ".2f"), f"{title}%": _number(100 * value, ".1f")}


def _number(value: float, form: str) -> str:
    return "NA" if math.isnan(value) else format(value, form)
