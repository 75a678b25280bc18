"""Systems compared: intervals, differences, failed gates, and how they were made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from swsdask.model.errors import SettingsError
from swsdask.model.leaderboard import MOST_TABLES
from swsdask.model.measures import better, distinct_headings, written
from swsdask.model.tables import HTML, LATEX, MARKDOWN, LateImport, Markup, Row, Tables
from swsdask.model.wording import counted, listed

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")

INTERVALS = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("low", pa.float64(), nullable=False),
        pa.field("high", pa.float64(), nullable=False),
        pa.field("standard_error", pa.float64(), nullable=False),
    ]
)
"""One row per number over all queries, with its confidence interval. NaN where something is not defined."""

DIFFERENCES = pa.schema(
    [
        pa.field("a", pa.string(), nullable=False),
        pa.field("b", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("difference", pa.float64(), nullable=False),
        pa.field("low", pa.float64(), nullable=False),
        pa.field("high", pa.float64(), nullable=False),
        pa.field("p_bootstrap", pa.float64(), nullable=False),
        pa.field("p_randomization", pa.float64(), nullable=False),
        pa.field("p_sign", pa.float64(), nullable=False),
        pa.field("p_wilcoxon", pa.float64(), nullable=False),
        pa.field("p_adjusted", pa.float64(), nullable=False),
    ]
)
"""One row per pair of systems: a - b over the queries that count for both, its interval, and p values: of the
bootstrap, of approximate randomization, of the sign test and of Wilcoxon's test (NaN where the measure is not a sum
over queries), and of approximate randomization, or else of the bootstrap, adjusted for all pairs of the condition and
measure. Intervals are not adjusted."""


Interval = Literal["percentile", "bca"]
Adjustment = Literal["holm", "max-t"]
Drawn = Literal["queries", "documents"]


@dataclass(frozen=True)
class Resampling:
    """Settings of a comparison: everything that it depends on beside the scores.

    `interval` is "percentile" or "bca"; `adjust` is how p values of several pairs are adjusted, "holm" or "max-t".
    `resample` names the units that are drawn: "queries", or "documents" as well; for term discovery "folds".
    """

    seed: int = 0
    replicates: int = 10_000
    level: float = 0.95
    interval: Interval = "percentile"
    adjust: Adjustment = "holm"
    resample: Drawn | Literal["folds"] = "queries"

    @property
    def alpha(self) -> float:
        """The level of significance: a difference is significant if its adjusted p value is less."""
        return round(1 - self.level, 12)


def written_p(p: float, equals: str = "") -> str:
    """Return a p value to four digits, after `equals`; a smaller one is written as less than the smallest of these.

    Examples
    --------
    >>> written_p(0.0123, "= "), written_p(0.00004, "= ")
    ('= 0.0123', '<0.0001')
    """
    return f"{equals}{p:.4f}" if p >= _LEAST_WRITTEN else f"<{_LEAST_WRITTEN}"


_LEAST_WRITTEN = 0.0001


@dataclass(frozen=True)
class Failure:
    """A gate that failed: the systems, the condition, the measure and the numbers.

    Attributes
    ----------
    gate : str
        The gate as it was written.
    system, baseline, condition, measure : str
        The systems that were compared, the condition and the measure.
    value, baseline_value, difference : float
        The measure for both, and system - baseline over the queries that count for both. `value` and `difference` are
        NaN if the system has no number for the measure.
    p : float
        The adjusted p value of the difference; NaN if the gate requires none.
    """

    gate: str
    system: str
    baseline: str
    condition: str
    measure: str
    value: float
    baseline_value: float
    difference: float
    p: float = math.nan

    def __str__(self) -> str:
        value, old = written(self.measure, self.value), written(self.measure, self.baseline_value)
        moved = f"{written(self.measure, abs(self.difference))} {'lower' if self.difference < 0 else 'higher'}"
        if math.isnan(self.difference):
            moved = "it has none"
        p = "" if math.isnan(self.p) else f", p {written_p(self.p, '= ')}"
        where = "" if self.condition == "all" else f" in {self.condition}"
        return (
            f"gate {self.gate!r} failed: {self.measure} of {self.system}{where} is {value}, "
            f"of {self.baseline} {old}: {moved}{p}."
        )


class Tied(NamedTuple):
    """The best system by a measure, and the others, best first, that do not differ from it significantly. Systems
    without a p value, for example over a single query, are `untested`.
    """

    best: str
    others: tuple[str, ...]
    untested: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Comparison(Tables):
    """Systems compared: rows of `INTERVALS` and `DIFFERENCES`, how they were made, and notes for the reader.

    `failures` are the gates of this comparison that failed.
    """

    interval_table: pa.Table
    difference_table: pa.Table
    how: Resampling
    notes: tuple[str, ...] = ()
    signature: str = ""
    failures: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        pairs = counted(self.difference_table.num_rows, "differences")
        return f"<Comparison: {counted(self.interval_table.num_rows, 'intervals')}, {pairs}; {self.signature}>"

    @property
    def measures(self) -> list[tuple[str, str]]:
        """The pairs (condition, measure) that were compared, in order."""
        return list(self._intervals)

    def intervals_of(self, condition: str, measure: str) -> list[Row]:
        """Return the rows of `INTERVALS` of one measure in a condition."""
        return self._intervals.get((condition, measure), [])

    def differences_of(self, condition: str, measure: str) -> list[Row]:
        """Return the rows of `DIFFERENCES` of one measure in a condition."""
        return self._differences.get((condition, measure), [])

    def tied(self, condition: str, measure: str) -> Tied | None:
        """Return the best system, and those that do not differ from it; None unless it was compared with all others."""
        merit = {row["system"]: better(measure) * row["value"] for row in self.intervals_of(condition, measure)}
        merit = {system: value for system, value in merit.items() if not math.isnan(value)}
        if len(merit) < 2 or not better(measure):
            return None
        best, *others = sorted(merit, key=lambda system: -merit[system])
        p = {frozenset((row["a"], row["b"])): row["p_adjusted"] for row in self.differences_of(condition, measure)}
        with_best = {system: frozenset((best, system)) for system in others}
        if any(pair not in p for pair in with_best.values()):
            return None
        return Tied(
            best,
            tuple(system for system, pair in with_best.items() if p[pair] >= self.how.alpha),
            tuple(system for system, pair in with_best.items() if math.isnan(p[pair])),
        )

    def to_csv(self, path: str | PathLike[str] | None = None, table: str = "differences") -> str | None:
        """Return the differences, or the table `intervals`, as CSV: a file, or its text if no path is given.

        Columns are those of the DataFrame. Numbers have enough digits to give the same float64 when read; undefined
        ones are empty.
        """
        text: str | None = self._frame(table).to_csv(path, index=False)
        return text

    def to_markdown(self, condition: str | None = "all") -> str:
        """Return the numbers of a condition with their intervals as a Markdown table; with None, a table for each.

        Rows are systems, the best by the first measure first. The best number of each measure is bold. If it was
        compared with all others, the numbers that are tied with it are bold too.
        """
        return "\n\n".join(self._tables(MARKDOWN, condition))

    def to_latex(self, condition: str | None = "all") -> str:
        """Return a LaTeX table, which needs the package booktabs."""
        return "\n\n".join(self._tables(LATEX, condition))

    def _repr_html_(self) -> str:
        """Return the numbers of the first conditions with their intervals, and the notes, as notebooks show them."""
        tables = "".join(islice(self._tables(HTML, None), MOST_TABLES))
        notes = "".join(f"<li>{HTML.plain(note)}</li>" for note in self.notes)
        n_conditions = len({name for name, _ in self.measures})
        if n_conditions > MOST_TABLES:
            more = f"{MOST_TABLES} of {n_conditions:,} conditions; <code>to_markdown(None)</code> has all."
            notes = f"<li>{more}</li>{notes}"
        return f"{tables}<ul>{notes}</ul><p><code>{HTML.plain(self.signature)}</code></p>"

    def _tables(self, markup: Markup, condition: str | None) -> Iterator[str]:
        conditions = list(dict.fromkeys(name for name, _ in self.measures))
        if condition is not None and condition not in conditions:
            raise SettingsError(f"no condition {condition!r} was compared. There are: {listed(conditions)}.")
        for name in conditions if condition is None else [condition]:
            caption = name if condition is None and len(conditions) > 1 else ""
            yield markup.table(self._rows(markup, name), markup.plain(caption))

    def _rows(self, markup: Markup, condition: str) -> list[list[str]]:
        """Return the heading and a row for every system: each number and its interval."""
        measures = [measure for name, measure in self.measures if name == condition]
        cells: dict[str, dict[str, str]] = {}
        for measure in measures:
            rows = sorted(self.intervals_of(condition, measure), key=lambda row: _order(measure, row["value"]))
            tied = self.tied(condition, measure)
            best = {row["system"] for row in rows if row["value"] == rows[0]["value"]}
            bold = best if tied is None else {tied.best, *tied.others}
            for row in rows:
                value, low, high = (written(measure, row[name]) for name in ("value", "low", "high"))
                text = markup.plain(value if math.isnan(row["low"]) else f"{value} [{low}, {high}]")
                emphasised = bool(better(measure)) and row["system"] in bold
                cells.setdefault(row["system"], {})[measure] = markup.bold(text) if emphasised else text
        headings = ["System", *map(markup.plain, distinct_headings(measures))]
        return [headings, *([markup.plain(s), *(own.get(m, "") for m in measures)] for s, own in cells.items())]

    @cached_property
    def _intervals(self) -> dict[tuple[str, str], list[Row]]:
        return _by_measure(self.interval_table)

    @cached_property
    def _differences(self) -> dict[tuple[str, str], list[Row]]:
        return _by_measure(self.difference_table)

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by the names of `to_arrow`: intervals, differences."""
        return {"intervals": self.interval_table, "differences": self.difference_table}

    @property
    def intervals(self) -> pd.DataFrame:
        """Every number with its interval: system, condition, measure, value, low, high, standard_error."""
        return self._frame("intervals")

    @property
    def differences(self) -> pd.DataFrame:
        """Every pair: a, b, condition, measure, difference (a - b), low, high and p values."""
        return self._frame("differences")


def _order(measure: str, value: float) -> tuple[bool, float]:
    """Return a sort key: better values first, undefined values last."""
    return math.isnan(value), -(better(measure) or 1) * value


def _by_measure(table: pa.Table) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in table.to_pylist():
        found.setdefault((row["condition"], row["measure"]), []).append(row)
    return found
