"""Results as the reports of STDEval, so that scripts that read these still work.

SYSTEM.occ.txt is the occurrence report (-A -o, with the summary of -d): a row for each term in the order of ids, then
totals, means and maxima, for each type of source and for all. SYSTEM.ali.csv is its CSV report (-C, `render.f4de`). The
numbers are STDEval's under `compat = "stdeval"`.

QUIRK: a term without occurrences has no rates, but its false alarms are listed and totalled. Without any occurrence
the mean time of a search is -1000. The maxima of a type of source are those of all types whose names contain its name,
in any case: those of CTS cover SPLITCTS. Types whose names differ only in case are one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.results import Result
from swsdask.render.f4de import Aligned, stdeval_alignment
from swsdask.render.pages import numbers_by_query

NEEDED = (
    *("n_queries", "n_target", "n_hit", "n_false_alarm", "n_miss", "occurrence_weighted_value", "p_fa", "p_miss"),
    *("p_fa_pooled", "p_miss_pooled", "mtwv_p_fa", "mtwv_p_miss", "mtwv", "mtwv_threshold"),
)
"""The measures that the report has."""

TYPES = ("BNEWS", "CTS", "CONFMTG")
"""The types of source that have a block, in this order."""

ALL = "ALL"
_BLOCK = 45
_FIRST = 46
_NONE = -1000.0

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Block:
    """A type of source, or all: its numbers over all queries and for each, its trials and seconds of speech.

    `maxima` are the numbers over all queries of its DET curve, None if there is none.
    """

    title: str
    overall: Numbers
    of_queries: Mapping[str, Numbers]
    maxima: Numbers | None
    n_trials: int
    seconds: float

    @property
    def of_terms(self) -> list[Numbers]:
        """The numbers of the terms with occurrences, in the order of their ids."""
        return [own for _, own in sorted(self.of_queries.items())]


@dataclass(frozen=True)
class StdevalContext:
    """The facts of the evaluation that reports have beside the numbers.

    `conditions`, `trials` and `seconds` have the name of the condition, the number of trials and the seconds of each
    block by its title, `curves` the condition of its DET curve. `texts` has the searched text by query id, `types` the
    type of source by document and channel, `times` the seconds that each system searched for each query. `decided` has
    the highest score of a NO and the lowest of a YES for the systems whose list has more detections than the alignment.
    """

    c_fa: float
    c_miss: float
    p_target: float
    trials_per_second: float
    language: str
    conditions: Mapping[str, str]
    curves: Mapping[str, str]
    trials: Mapping[str, int]
    seconds: Mapping[str, float]
    texts: Mapping[str, str]
    types: Mapping[tuple[str, int], str]
    times: Mapping[str, Mapping[str, float]]
    decided: Mapping[str, tuple[float, float]]


def write_stdeval_output(result: Result, evaluated: StdevalContext, aligned: Aligned, directory: Path) -> list[Path]:
    """Write the reports of every system; return the paths."""
    paths = []
    for system, run in result.manifest["runs"].items():
        own = aligned(system)
        blocks = _blocks(result.score_rows.among([system]), evaluated)
        report = occurrence_report(system, run["attributes"], blocks, own, evaluated)
        lines = stdeval_alignment(own, evaluated.language, evaluated.texts, evaluated.types)
        for ending, texts in (("occ.txt", iter([report])), ("ali.csv", lines)):
            path = directory / f"{system}.{ending}"
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(texts)
            paths.append(path)
    return paths


def _blocks(scores: pa.Table, evaluated: StdevalContext) -> list[Block]:
    """Select the types with terms that have occurrences, and all."""
    blocks = []
    for title, condition in evaluated.conditions.items():
        overall, of_queries = numbers_by_query(scores, condition)
        if title == ALL or overall.get("n_target"):
            maxima, of_curve = numbers_by_query(scores, evaluated.curves[title])
            has_curve = len(of_curve) > 1 and not math.isnan(maxima["mtwv_threshold"])
            trials, seconds = evaluated.trials[title], evaluated.seconds[title]
            blocks.append(Block(title, overall, of_queries, maxima if has_curve else None, trials, seconds))
    return blocks


def occurrence_report(
    system: str, attributes: Mapping[str, str], blocks: Sequence[Block], alignment: pa.Table, evaluated: StdevalContext
) -> str:
    """Return the occurrence report of one system; `attributes` are those of its list of detections."""
    rule = "+" + "-" * _FIRST + ("+" + "-" * _BLOCK) * len(blocks) + "+"
    false_alarms = _false_alarms(alignment, evaluated.types)
    times = evaluated.times[system]
    searched = math.fsum(times.get(query, 0.0) for query in evaluated.texts)
    mean_time = searched / len(evaluated.texts) if any(block.of_queries for block in blocks) else _NONE
    values = [_weighted_value(block, evaluated) for block in blocks]
    parts = [_parts_of_block(block, false_alarms, value) for block, value in zip(blocks, values, strict=True)]

    def row(first: str, cells: Iterable[str]) -> str:
        return "|".join([f"|{first:<{_FIRST}}", *cells, ""])

    lines = ["+" + "-" * _FIRST * (len(blocks) + 1) + "+"]
    lines += [
        f"| {key:<23} {value:>12}         " + " " * _FIRST * len(blocks) + "|"
        for key, value in _said(system, attributes, alignment, evaluated)
    ]
    lines += [
        rule,
        row("                                       Search", (block.title.center(_BLOCK) for block in blocks)),
        row("", ["                          Occ.               "] * len(blocks)),
        row(
            "    TermID                     Text     Time",
            ["    Ref  Corr   FA  Miss  Value P(FA)  P(Mis)"] * len(blocks),
        ),
        rule,
    ]
    for query, title in _term_titles(evaluated.texts):
        cells = (_term(block, query, false_alarms[query, block.title]) for block in blocks)
        lines.append(row(f" {title} {times.get(query, 0.0):8.2f} ", cells))
    lines += [
        rule,
        row(f" Totals, Actual Occ. Weighted Value  {searched:8.2f}", (part["totals"] for part in parts)),
        row(f" Means (N/A excl.)                   {mean_time:8.2f}", (part["means"] for part in parts)),
        rule,
        *(row("", (part[name] for part in parts)) for name in ("trials", "seconds", "value")),
        rule,
        "",
        *_maxima(blocks, values),
    ]
    return "\n".join(lines) + "\n"


def _said(
    system: str, attributes: Mapping[str, str], alignment: pa.Table, evaluated: StdevalContext
) -> Iterator[tuple[str, str]]:
    """Return the heading of the table. QUIRK: without a YES or a NO the tool prints 9999 or -9999."""
    indexing = float(attributes.get("indexing_time") or 0)
    yield "Indexing Time:", f"{indexing:.4f}"
    yield "Language:", attributes.get("language", "")
    yield "Index size (bytes):", attributes.get("index_size", "")
    yield "System ID:", system
    yield "Coefficient C:", f"{evaluated.c_fa:.4f}"
    yield "Coefficient V:", f"{evaluated.c_miss:.4f}"
    yield "Trials Per Second:", f"{evaluated.trials_per_second:.4f}"
    yield "Probability of a Term:", f"{evaluated.p_target:.4f}"
    if system in evaluated.decided:
        found = evaluated.decided[system]
    else:
        no, yes = (alignment.filter(pc.equal(alignment["decision"], each))["score"] for each in ("NO", "YES"))
        found = pc.max(no).as_py() if len(no) else -math.inf, pc.min(yes).as_py() if len(yes) else math.inf
    highest, lowest = max(found[0], -9999.0), min(found[1], 9999.0)
    verdict = "OK" if lowest >= highest else "Inconsistent"
    yield "Decision Score ", f"{verdict} (Max NO: {highest:.4f}, Min YES: {lowest:.4f})"


def _false_alarms(alignment: pa.Table, types: Mapping[tuple[str, int], str]) -> Counter[tuple[str, str]]:
    """Count the false alarms of each query in each block, also of a query without occurrences there."""
    rows = alignment.filter(pc.equal(alignment["outcome"], "false_alarm"))
    found: Counter[tuple[str, str]] = Counter()
    counts = rows.group_by(["query", "document", "channel"]).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        title = types.get((row["document"], row["channel"] or 1), "").upper()
        found[row["query"], ALL] += row["count_all"]
        found[row["query"], title] += row["count_all"]
    return found


def _term_titles(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Ids in order, each with the title of its row: id and text, right-aligned in 35 characters; long texts are cut."""
    longest = max(len("COEFF"), *map(len, texts))
    room = 34 - longest
    for query in sorted(texts):
        text = texts[query] if len(texts[query]) <= room else texts[query][: room - 3] + "..."
        yield query, f"{query:>{longest}} {text:>{room}}"


def _term(block: Block, query: str, false_alarms: int) -> str:
    if query not in block.of_queries:
        return f" {0:5} {0:5} {false_alarms:5} {0:5} {'N/A':>6} {'N/A':>6} {'N/A':>5} "
    own = block.of_queries[query]
    return (
        f" {own['n_target']:5.0f} {own['n_hit']:5.0f} {own['n_false_alarm']:5.0f} {own['n_miss']:5.0f}"
        f" {own['occurrence_weighted_value']:5.3f} {own['p_fa']:7.5f} {_miss_rate(own):.3f} "
    )


def _weighted_value(block: Block, evaluated: StdevalContext) -> float:
    """Return the ATWV of a block, 0 without occurrences."""
    beta = evaluated.c_fa / evaluated.c_miss * (1 / evaluated.p_target - 1)
    return _mean(1 - (_miss_rate(own) + beta * own["p_fa"]) for own in block.of_terms) if block.of_queries else 0.0


def _miss_rate(own: Numbers) -> float:
    return 1 - own["n_hit"] / own["n_target"]


def _mean(numbers: Iterable[float]) -> float:
    """Return the mean of the defined numbers of terms. QUIRK: the tool adds them one by one."""
    defined = [number for number in numbers if not math.isnan(number)]
    return reduce(add, defined, 0.0) / (len(defined) or math.nan)


def _parts_of_block(block: Block, false_alarms: Mapping[tuple[str, str], int], value: float) -> dict[str, str]:
    """Return the rows below the terms. QUIRK: totals are rounded twice, means of counts are truncated."""
    own, there = block.overall, len(block.of_queries)
    count = sum(number for (_, title), number in false_alarms.items() if title == block.title)
    total, p_fa, p_miss, mean = "  N/A", _NONE, _NONE, "  N/A"
    means = dict.fromkeys(("n_target", "n_hit", "n_false_alarm", "n_miss"), 0)
    rates = (0.0, 0.0)
    if there:
        total = f"{round(own['occurrence_weighted_value'], 4):5.3f}"
        p_fa, p_miss = round(own["p_fa_pooled"], 8), round(own["p_miss_pooled"], 4)
        mean = f"{_mean(each['occurrence_weighted_value'] for each in block.of_terms):5.3f}"
        means = {name: int(own[name] / there) for name in means}
        rates = (_mean(each["p_fa"] for each in block.of_terms), _mean(map(_miss_rate, block.of_terms)))
    counts = {name: int(own.get(name, 0)) for name in means} | {"n_false_alarm": count}
    of_both = [
        " ".join(f"{numbers[name]:5d}" for name in ("n_target", "n_hit", "n_false_alarm", "n_miss"))
        for numbers in (counts, means)
    ]
    return {
        "totals": f" {of_both[0]} {total} {p_fa:7.5f} {p_miss:5.3f} ",
        "means": f" {of_both[1]} {mean} {rates[0]:7.5f} {rates[1]:5.3f} ",
        "trials": f"  Number of Trials             {block.n_trials:8d}      ",
        "seconds": f"  Total Speech Time (sec.)       {block.seconds:8.1f}    ",
        "value": f"  A. T-Weighted Value (N/A excl.)  {value:8.3f}  ",
    }


def _maxima(blocks: Sequence[Block], values: Sequence[float]) -> Iterator[str]:
    """Return the summary of -d. QUIRK: the tool has no curve where fewer than two terms have occurrences."""
    rule = "+-------------+-----------+----------+------------------------------+"
    yield "+-------------------------------------------------------------------+"
    yield "|                    DET Curve Analysis Summary                     |"
    yield "+-------------+----------------------+------------------------------+"
    yield f"|             |     {'Term' if len(blocks) > 1 else ''} Weighted    |                   Decision   |"
    yield "| Description | Max Value | A. Value |   P(Fa) P(Miss)      Score   |"
    yield rule
    for block, value in zip(blocks, values, strict=True):
        if block.title == ALL:
            yield rule
        own = block.maxima
        if own is None:
            yield f"| {block.title:>11} |      N/A  |     N/A  |     N/A     N/A          N/A |"
        else:
            point = f"{own['mtwv_p_fa']:.5f}   {own['mtwv_p_miss']:.3f}   {own['mtwv_threshold']:.8f}"
            yield f"| {block.title:>11} |   {own['mtwv']:.4f}  |  {value:.4f}  | {point} |"
    yield rule
