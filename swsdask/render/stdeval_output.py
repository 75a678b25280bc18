"""Results as the reports of STDEval, so that scripts that read these still work; and tables of F4DE.

SYSTEM.occ.txt is the occurrence report (-A -o, with the summary of -d): a row for each term in the order of ids, then
totals, means and maxima, for each type of source and for all. SYSTEM.ali.csv is its CSV report (-C). The numbers are
STDEval's under `compat = "stdeval"`.

QUIRK: a term without occurrences has no rates, but its false alarms are listed and totalled. Without any occurrence
the mean time of a search is -1000. The maxima of a type of source are those of all types whose names contain its name,
in any case: those of CTS cover SPLITCTS. Types whose names differ only in case are one.

F4DE's two scorers, KWSEval and STDEval, print tables as text in columns with nested headings, and as CSV. A column is
named by its headings from the outermost inwards, a row likewise. A column is four characters wider than its widest
entry; a heading that is wider than its columns widens them evenly, the last one by the remainder. Entries are
right-aligned, headings centred, row names left-aligned. A row name is printed if it or an outer name is new.

Both write the alignment as CSV files. A row is a trial and the occurrence that it is mapped to, or only one of them.
Rows are in the order of the query list; the tools use the order of a hash. Where a tool prints the text of an input
file, the alignment may have this text in extra columns (`formats.runs.read`). Otherwise a number has as many decimals
as the longest of its column, at most `MOST_DECIMALS`: this is the text if a program wrote all of them alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from operator import add
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.results import Result
from swsdask.model.tables import Row

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


Aligned = Callable[[str], pa.Table]
"""The alignment of a system."""


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
        overall, of_queries = _numbers(scores, condition)
        if title == ALL or overall["n_target"]:
            maxima, of_curve = _numbers(scores, evaluated.curves[title])
            has_curve = len(of_curve) > 1 and not math.isnan(maxima["mtwv_threshold"])
            trials, seconds = evaluated.trials[title], evaluated.seconds[title]
            blocks.append(Block(title, overall, of_queries, maxima if has_curve else None, trials, seconds))
    return blocks


def _numbers(scores: pa.Table, condition: str) -> tuple[Numbers, dict[str, Numbers]]:
    """The numbers of a condition over all queries and for each."""
    numbers: dict[str | None, dict[str, float]] = {}
    for row in scores.filter(pc.equal(scores["condition"], condition)).to_pylist():
        numbers.setdefault(row["query"], {})[row["measure"]] = row["value"]
    overall = numbers.pop(None, {"n_target": 0.0})
    return overall, {str(query): own for query, own in numbers.items()}


def occurrence_report(
    system: str, attributes: Mapping[str, str], blocks: Sequence[Block], alignment: pa.Table, evaluated: StdevalContext
) -> str:
    """The occurrence report of one system; `attributes` are those of its list of detections."""
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


Name = tuple[str, ...]

_MARGIN = 2


@dataclass(frozen=True)
class TextTable:
    """Cells by row and column, in the order in which rows and columns were first named."""

    cells: dict[tuple[Name, Name], str] = field(default_factory=dict)
    rows: dict[Name, None] = field(default_factory=dict)
    columns: dict[Name, None] = field(default_factory=dict)

    def put(self, row: Name, column: Name, text: str) -> None:
        """Set a cell."""
        self.rows.setdefault(row)
        self.columns.setdefault(column)
        self.cells[row, column] = text

    def text(self, *, named: bool) -> str:
        """The table as text, with the names of its rows if they are `named`."""
        widths = [max(map(len, level)) + _MARGIN for level in zip(*self.rows, strict=True)] if named else []
        headings = _Headings.of(list(self.columns), self._widest())
        lines = [" " * sum(widths) + "|" + "".join(f"{cell}|" for cell in level) for level in headings.lines()]
        rule = "-" * sum(widths) + ("+" if named else "|")
        lines.append(rule + "".join("-" * width + "+" for width in headings.widths))
        before: Name = ()
        for row in self.rows:
            first = next((level for level, name in enumerate(row) if before[level : level + 1] != (name,)), len(row))
            names = "".join(
                ("" if level < first else name).ljust(width)
                for level, (name, width) in enumerate(zip(row, widths, strict=False))
            )
            cells = (
                f" {self.cells.get((row, column), ''):>{width - 2}} |"
                for column, width in zip(self.columns, headings.widths, strict=True)
            )
            lines.append(f"{names}|{''.join(cells)}")
            before = row
        return "\n".join(lines) + "\n"

    def csv(self, *, named: bool) -> str:
        """The table as CSV: cells are in quotes, cells that were not set are empty."""
        lines: list[list[str | None]] = [
            [*(["MasterKey"] if named else []), *("|".join(column) for column in self.columns)]
        ]
        lines += [
            [*(["|".join(row)] if named else []), *(self.cells.get((row, column)) for column in self.columns)]
            for row in self.rows
        ]
        return "".join(",".join(map(_quoted, line)) + "\n" for line in lines)

    def _widest(self) -> dict[Name, int]:
        widest = dict.fromkeys(self.columns, 0)
        for (_, column), text in self.cells.items():
            widest[column] = max(widest[column], len(text))
        return widest


def _quoted(cell: str | None) -> str:
    return "" if cell is None else '"' + cell.replace('"', '""') + '"'


@dataclass(frozen=True)
class _Headings:
    """Headings side by side at one level, their widths, and the headings below them; the innermost have none."""

    titles: Sequence[str]
    own: Sequence[int]
    below: Sequence[_Headings]

    @classmethod
    def of(cls, columns: Sequence[Name], widest: dict[Name, int], level: int = 0, least: int = 0) -> _Headings:
        """The headings of columns from a level on, `least` wide together at least, including the bars between them."""
        if level + 1 == len(columns[0]):
            titles = [column[level] for column in columns]
            own = [2 * _MARGIN + max(len(column[level]), widest[column]) for column in columns]
            return cls(titles, _widened(own, least), ())
        groups = [(title, list(group)) for title, group in groupby(columns, key=lambda column: column[level])]
        below = [cls.of(group, widest, level + 1, 2 * _MARGIN + len(title)) for title, group in groups]
        own = [each.width for each in below]
        if (wider := _widened(own, least)) != own:
            below = [cls.of(group, widest, level + 1, width) for (_, group), width in zip(groups, wider, strict=True)]
        return cls([title for title, _ in groups], wider, below)

    @property
    def width(self) -> int:
        return sum(self.own) + len(self.own) - 1

    @property
    def widths(self) -> list[int]:
        """Return the widths of the innermost headings."""
        return [width for each in self.below for width in each.widths] if self.below else list(self.own)

    def lines(self) -> Iterator[list[str]]:
        """The headings of every level, centred."""
        yield [_centred(title, width) for title, width in zip(self.titles, self.own, strict=True)]
        for levels in zip(*(each.lines() for each in self.below), strict=True):
            yield [cell for level in levels for cell in level]


def _widened(widths: list[int], least: int) -> list[int]:
    missing = least - (sum(widths) + len(widths) - 1)
    if missing <= 0:
        return widths
    share = missing // len(widths)
    return [*(width + share for width in widths[:-1]), widths[-1] + missing - share * (len(widths) - 1)]


def _centred(text: str, width: int) -> str:
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)


MOST_DECIMALS = 6
_ROWS_AT_ONCE = 65_536
_KWSEVAL = {"hit": "CORR", "miss": "MISS", "false_alarm": "FA", "correct_nondetection": "CORR!DET"}
_COLUMNS = "language,file,channel,termid,term,ref_bt,ref_et,sys_bt,sys_et,sys_score,sys_decision,alignment\n"


def kwseval_alignment(alignment: pa.Table, language: str, texts: Mapping[str, str]) -> Iterator[str]:
    """The lines of KWSEval's alignment.csv (-c) of one system, some at a time.

    `language` is that of the query list; `texts` has the searched text by query id.
    """
    yield _COLUMNS
    for lines in _lines(alignment, language, texts, end_decimals=4):
        yield "".join(f"{line},{_KWSEVAL[row['outcome']]}\n" for row, line in lines)


def stdeval_alignment(
    alignment: pa.Table, language: str, texts: Mapping[str, str], types: Mapping[tuple[str, int], str]
) -> Iterator[str]:
    """The lines of STDEval's CSV report (-C) of one system, some at a time; `types` are those of source.

    QUIRK: a mapped detection is CORR and any other is FA, whatever the decision.
    """
    yield f"type,{_COLUMNS}"
    for lines in _lines(alignment, language, texts, end_decimals=None):
        yield "".join(
            f"{types.get((row['document'], row['channel'] or 1), '')},{line},{_label_of_stdeval(row)}\n"
            for row, line in lines
        )


def _label_of_stdeval(row: Mapping[str, object]) -> str:
    if row["score"] is None:
        return "MISS"
    return "CORR" if row["outcome"] in ("hit", "miss") else "FA"


def _lines(
    alignment: pa.Table, language: str, texts: Mapping[str, str], end_decimals: int | None
) -> Iterator[list[tuple[Row, str]]]:
    """Rows and the text that both tools print for them, some at a time."""
    places = {name: decimals(alignment[name]) for name in ("reference_start", "start", "score")}
    places |= {"reference_end": end_decimals, "end": None}
    numbers = ("reference_start", "reference_end", "start", "end", "score")
    for batch in alignment.to_batches(max_chunksize=_ROWS_AT_ONCE):
        lines = []
        for row in batch.to_pylist():
            query = row["query"]
            shown = ",".join(row.get(f"{name}_text") or fixed(row[name], places[name]) for name in numbers)
            spoken = f"{language},{row['document']},{row['channel'] or 1},{query},{texts[query]}"
            lines.append((row, f"{spoken},{shown},{row['decision'] or ''}"))
        yield lines


def fixed(value: float | None, places: int | None) -> str:
    """A number with so many decimals, or with 15 digits, an infinite one as in lists of detections; "" for None."""
    if value is None:
        return ""
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return f"{value:.15g}" if places is None else f"{value:.{places}f}"


def decimals(column: pa.ChunkedArray) -> int | None:
    """Return the decimals of the longest number of a column; None if more than `MOST_DECIMALS`."""
    most = 0
    for chunk in column.chunks:
        for first in range(0, len(chunk), _ROWS_AT_ONCE):
            values = pc.drop_null(chunk.slice(first, _ROWS_AT_ONCE)).to_numpy()
            while most <= MOST_DECIMALS and not np.array_equal(np.round(values, most), values):
                most += 1
    return None if most > MOST_DECIMALS else most
