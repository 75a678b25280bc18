"""Results: scores in long form, curves, rank correlations, and the study of GAP's penalty functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from swsdask.model.comparison import Comparison
from swsdask.model.errors import SettingsError
from swsdask.model.leaderboard import MOST_LINES, MOST_TABLES, Leaderboard
from swsdask.model.measures import better, distinct_headings, select_measures, written
from swsdask.model.plots import Figures
from swsdask.model.system_rows import SystemRows
from swsdask.model.tables import HTML, LATEX, MARKDOWN, LateImport, Markup, Tables
from swsdask.model.trials import F64, I64
from swsdask.model.wording import choices, counted, listed

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")


SCORES = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("query", pa.string()),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""One row per number; `query` is null for a number over all queries; NaN where a number is not defined."""

CURVES = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("curve", pa.string(), nullable=False),
        pa.field("threshold", pa.float64(), nullable=False),
        pa.field("x", pa.float64(), nullable=False),
        pa.field("y", pa.float64(), nullable=False),
    ]
)
"""One row per point. `curve` is

- "det" (x = P_fa, y = P_miss, averaged over queries) or "det_pooled";
- "ece_default", "ece_actual", "ece_affine" or "ece_pav" (x = prior log-odds, y = C_xe in bits);
- "ape_default", "ape_actual", "ape_affine" or "ape_pav" (x = prior log-odds, y = error rate);
- "precision_recall" or "precision_recall_interpolated" (x = recall, y = precision).
"""

ALIGNMENT = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8()),
        pa.field("reference_start", pa.float64()),
        pa.field("reference_end", pa.float64()),
        pa.field("start", pa.float64()),
        pa.field("end", pa.float64()),
        pa.field("score", pa.float64()),
        pa.field("decision", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),
    ]
)
"""One row per trial that a run gives, and per target without a trial. Times in seconds; `decision` YES, NO or null;
`outcome` is hit, miss, false_alarm or correct_nondetection."""


QUERY_TEXTS = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""One row per query, in the order of the list; `text` is "" where the list has none."""


class Note(NamedTuple):
    """A note on one system, and a summary without its numbers; notes of several systems with one summary are merged.

    A summary with a `number` has `{}` in its place: the line of several systems gives the sum.
    """

    text: str
    summary: str
    number: int | None = None

    @classmethod
    def of_count(cls, before: str, number: int, things: str, after: str) -> Self:
        """Return a sentence with a number of things, such as "queries"; the line of several systems gives the sum."""
        around = (text.replace("{", "{{").replace("}", "}}") for text in (before, f" {things}{after}"))
        return cls(f"{before}{counted(number, things)}{after}", "{}".join(around), number)


FEW_SYSTEMS = 3
"""A note on at most this many systems is repeated for each; a note on more systems is one line."""


def note_lines(notes: Mapping[str, Sequence[Note]]) -> Iterator[str]:
    """Yield the notes of systems as lines: one for each note, and one for a note that many systems share."""
    holders: dict[str, list[str]] = {}
    texts: dict[str, set[str]] = {}
    total: Counter[str] = Counter()
    for system, own in notes.items():
        for note in own:
            holders.setdefault(note.summary, []).append(system)
            texts.setdefault(note.summary, set()).add(note.text)
            total[note.summary] += note.number or 0
    said = set()
    for system, own in notes.items():
        for note in own:
            who, same = holders[note.summary], len(texts[note.summary]) == 1
            if len(who) <= FEW_SYSTEMS and not (same and len(who) == len(notes) > 1):
                yield f"{system}: {note.text}"
            elif note.summary not in said:
                said.add(note.summary)
                every = "both systems" if len(notes) == 2 else f"all {len(notes)} systems"
                some = f"{len(who)} of {len(notes)} systems ({listed(who, FEW_SYSTEMS)})"
                line = every if len(who) == len(notes) else some
                if same or note.number is None:
                    yield f"{line}: {note.text if same else note.summary}"
                else:
                    yield f"{line}, together: {note.summary.format(f'{total[note.summary]:,}')}"


@dataclass(frozen=True, eq=False)
class Result(Figures, Tables):
    """Scores of systems on one evaluation.

    `score` and `discover` return one.

    Attributes
    ----------
    scores, curves, alignment, query_texts : pandas.DataFrame
        The tables, made at each access: assign one to a name before you change it. `to_arrow` has the same in Arrow.
        `alignment` is None unless it was requested, `query_texts` unless the list of queries has texts.
    score_rows, curve_rows, alignment_rows : SystemRows
        The rows of `scores`, `curves` and `alignment` as they are held: separately for each system, as tables or
        encoded as Parquet.
    overall : pyarrow.Table
        The rows of `scores` over all queries.
    table, curve_table, alignment_table, text_table : pyarrow.Table
        The tables in Arrow; `table` and `curve_table` have dictionaries for repeated names.
    manifest : dict
        The signature (measures, settings, definitions, version, hashes of the inputs), the counts of what was dropped,
        and how the work ran.
    notes : tuple of str
        Notes that are needed to understand the numbers.
    system_notes : tuple of str
        Those of the notes that are about systems, such as how many detections were dropped. A result that was
        read has none.
    comparison : Comparison or None
        Intervals and differences of these numbers, if `compare` made them; the report shows them.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> result = sws.score("demo/archive", "atwv", runs="calibrated")
    >>> result
    <Result: 1 system, 20 numbers; swsdask 0.3.0.dev0 outside=false_alarm p_target=0.00015 c_miss=100.0 c_fa=1.0 ...>
    >>> result.scores[["system", "measure", "value"]].head(2)
           system measure     value
    0  calibrated    atwv  0.503781
    1  calibrated    atwv  0.925875
    """

    score_rows: SystemRows
    curve_rows: SystemRows
    overall: pa.Table
    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()
    alignment_rows: SystemRows | None = field(default=None, repr=False)
    comparison: Comparison | None = field(default=None, repr=False)
    text_table: pa.Table | None = field(default=None, repr=False)
    system_notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        scores: pa.Table | SystemRows,
        curves: pa.Table | SystemRows,
        manifest: dict[str, Any],
        *others: Any,
        **named: Any,
    ) -> Self:
        """Return the result with rows of `SCORES` and of `CURVES`, and with attributes that follow the manifest."""
        score_rows = scores if isinstance(scores, SystemRows) else SystemRows.of(scores, SCORES)
        curve_rows = curves if isinstance(curves, SystemRows) else SystemRows.of(curves, CURVES)
        return cls(score_rows, curve_rows, score_rows.without("query"), manifest, *others, **named)

    def __repr__(self) -> str:
        held = f"{counted(len(self.score_rows.systems), 'systems')}, {counted(self.score_rows.num_rows, 'numbers')}"
        return f"<Result: {held}; {self.manifest.get('signature')}>"

    @property
    def table(self) -> pa.Table:
        """The rows of `SCORES`, decoded on first access."""
        return self.score_rows.table

    @property
    def curve_table(self) -> pa.Table:
        """The rows of `CURVES`, decoded on first access."""
        return self.curve_rows.table

    @property
    def alignment_table(self) -> pa.Table | None:
        """The rows of `ALIGNMENT`, decoded on each access and not kept: there may be many."""
        return None if self.alignment_rows is None else self.to_arrow("alignment")

    @property
    def tables(self) -> dict[str, pa.Table | SystemRows | None]:
        """The tables as they are held, by the names of `to_arrow`."""
        return {
            "scores": self.score_rows,
            "curves": self.curve_rows,
            "alignment": self.alignment_rows,
            "query_texts": self.text_table,
        }

    @property
    def scores(self) -> pd.DataFrame:
        """All numbers in long form: system, condition, query (None: over all queries), measure, value."""
        return self._frame("scores")

    @property
    def curves(self) -> pd.DataFrame:
        """The points of all curves: system, condition, curve, threshold, x, y."""
        return self._frame("curves")

    @property
    def alignment(self) -> pd.DataFrame | None:
        """A row for each trial and each occurrence without one, if they were requested (``alignment=True``)."""
        return None if self.alignment_rows is None else self._frame("alignment")

    @property
    def query_texts(self) -> pd.DataFrame | None:
        """The text of every query, if the list of queries has texts: query, text."""
        return None if self.text_table is None else self._frame("query_texts")

    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return all numbers in long form as CSV: a file with the columns of `scores`, or its text if no path is given.

        Numbers have enough digits to give the same float64 when read. Undefined numbers are empty, and so is the query
        of a number over all queries.
        """
        text: str | None = self.scores.to_csv(path, index=False)
        return text

    def leaderboard(self, measures: str | Iterable[str] | None = None, condition: str = "all") -> pd.DataFrame:
        """Return the numbers over all queries as a wide DataFrame, the best system first.

        Parameters
        ----------
        measures : str or iterable of str, optional
            The columns, in this order. Default: the measures that were requested, or all.
        condition : str, default "all"
            The condition whose numbers are shown.

        Returns
        -------
        pandas.DataFrame
            One row for each system, indexed by its name, and one column for each measure; NaN where a number is not
            defined. By default, a measure without a number over all queries, such as an undefined one, has no column.

        Raises
        ------
        SettingsError
            The result has no such condition or measure.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> sws.score("demo/archive", ["atwv", "map"]).leaderboard().round(2).columns.tolist()
        ['atwv', 'map']
        """
        names, found = self._columns(measures, condition)
        systems = found.ranked(condition)
        rows = [[found.value(condition, system, name) for name in names] for system in systems]
        return pd.DataFrame(rows, index=pd.Index(systems, name="system"), columns=names)

    def to_markdown(self, measures: str | Iterable[str] | None = None, condition: str | None = "all") -> str:
        """Return the leaderboard as a Markdown table, the best number of each column bold; parameters of `leaderboard`.

        With None for the condition, a table for each, under its name; of a single system one table, a row for each.
        """
        return "\n\n".join(self._tables(MARKDOWN, measures, condition))

    def to_latex(self, measures: str | Iterable[str] | None = None, condition: str | None = "all") -> str:
        """Return the leaderboard as a LaTeX table, the best number of each column bold; parameters of `leaderboard`.

        The table needs the package booktabs. With None for the condition, a table for each, under its name; of a
        single system one table, a row for each.
        """
        return "\n\n".join(self._tables(LATEX, measures, condition))

    def _repr_html_(self) -> str:
        """The leaderboards as tables of HTML, as notebooks show them: the first systems of the first conditions."""
        found = self.numbers
        names = found.columns or found.measures
        most_conditions = MOST_LINES if found.of_one_system else MOST_TABLES
        if found.of_one_system:
            rows = self._rows_by_condition(HTML, names)[: 1 + most_conditions]
            tables = [HTML.table(rows, HTML.plain(found.systems[0]))]
        else:
            tables = [
                HTML.table(self._rows(HTML, names, each)[: 1 + MOST_LINES], HTML.plain(each))
                for each in found.conditions[:most_conditions]
            ]
        limits = ((found.systems, MOST_LINES, "systems"), (found.conditions, most_conditions, "conditions"))
        left_out = [f"{most} of {len(every):,} {things}" for every, most, things in limits if len(every) > most]
        if left_out:
            tables.append(f"<p>{' and '.join(left_out)}; <code>leaderboard(condition=...)</code> has all.</p>")
        return "".join([*tables, f"<p><code>{HTML.plain(str(self.manifest.get('signature')))}</code></p>"])

    def _tables(self, markup: Markup, measures: str | Iterable[str] | None, condition: str | None) -> Iterator[str]:
        """Yield the leaderboard of a condition in a markup, or those of all, under their names if there are several."""
        if condition is not None:
            yield markup.table(self._rows(markup, measures, condition), "")
            return
        if self.numbers.of_one_system:
            yield markup.table(self._rows_by_condition(markup, measures), markup.plain(self.numbers.systems[0]))
            return
        conditions = self.numbers.conditions
        for name in conditions:
            yield markup.table(self._rows(markup, measures, name), markup.plain(name) if len(conditions) > 1 else "")

    def _columns(self, measures: str | Iterable[str] | None, condition: str) -> tuple[list[str], Leaderboard]:
        found = self.numbers
        names = [name for name in self.requested or found.measures if any(select_measures([name], found.measures))]
        if measures is not None:
            names = [measures] if isinstance(measures, str) else list(measures)
        if condition not in (found.conditions or ("all",)):
            there = choices(found.conditions, condition)
            raise SettingsError(f"no condition {condition!r} was scored. There are: {there}.")
        unknown = [name for name in names if not any(select_measures([name], found.measures))]
        if unknown:
            there = choices(found.measures, unknown[0])
            raise SettingsError(f"{unknown[0]} was not scored over all queries. There are: {there}.")
        return list(select_measures(names, found.measures)), found

    def _rows(self, markup: Markup, measures: str | Iterable[str] | None, condition: str) -> list[list[str]]:
        """Return the heading and the rows of a leaderboard, the best numbers bold."""
        names, found = self._columns(measures, condition)
        systems = found.ranked(condition)
        best = {
            name: max((better(name) * found.value(condition, system, name) for system in systems), default=math.nan)
            for name in names
        }
        rows = [["System", *map(markup.plain, distinct_headings(names))]]
        for system in systems:
            row = [markup.plain(system)]
            for name in names:
                value = found.value(condition, system, name)
                text = markup.plain(written(name, value))
                row.append(markup.bold(text) if better(name) and better(name) * value == best[name] else text)
            rows.append(row)
        return rows

    def _rows_by_condition(self, markup: Markup, measures: str | Iterable[str] | None) -> list[list[str]]:
        """Return the heading and the numbers of the only system, a row for each condition."""
        names, found = self._columns(measures, self.numbers.conditions[0])
        (system,) = found.systems
        rows = [["Condition", *map(markup.plain, distinct_headings(names))]]
        for condition in found.conditions:
            numbers = (written(name, found.value(condition, system, name)) for name in names)
            rows.append([markup.plain(condition), *map(markup.plain, numbers)])
        return rows


RANK_CORRELATION = pa.schema(
    [
        pa.field("condition", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("other", pa.string(), nullable=False),
        pa.field("n_systems", pa.int64(), nullable=False),
        pa.field("n_left_out", pa.int64(), nullable=False),
        pa.field("tau_b", pa.float64(), nullable=False),
        pa.field("tau_ap", pa.float64(), nullable=False),
        pa.field("tau_ap_symmetric", pa.float64(), nullable=False),
    ]
)
"""A row for every ordered pair of measures, including a measure with itself. `tau_ap` compares the ranking under
`measure` with that under `other` as the truth. NaN if fewer than two systems have both measures, or if all of them
are tied."""


@dataclass(frozen=True, eq=False)
class RankCorrelation:
    """Rankings of the systems of one condition under each of n_measures measures, compared pair by pair.

    A pair is computed over the systems that have both measures: `n_systems` int64 [n_measures, n_measures] counts them.
    `tau_b` and `tau_ap` are float64 of that shape: see `comparison.rank_correlation`. `winners` holds the best systems
    by measure: several if they are equal, none if no system has the measure.
    """

    condition: str
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    winners: tuple[tuple[str, ...], ...]
    n_systems: I64
    tau_b: F64
    tau_ap: F64

    @property
    def tau_ap_symmetric(self) -> F64:
        """The mean of tau_AP in both directions."""
        return (self.tau_ap + self.tau_ap.T) / 2

    @cached_property
    def same_winner(self) -> list[list[bool]]:
        """Whether some system is the best, or one of several equal best, under both measures of a pair."""
        return [[not set(own).isdisjoint(others) for others in self.winners] for own in self.winners]

    @property
    def table(self) -> pa.Table:
        """All pairs as rows of `RANK_CORRELATION`."""
        n = len(self.measures)
        names = pa.array(self.measures, pa.string())
        measure, other = (axis.ravel() for axis in np.indices((n, n)))
        columns = [
            pa.array([self.condition] * n * n, pa.string()),
            names.take(pa.array(measure)),
            names.take(pa.array(other)),
            self.n_systems.ravel(),
            len(self.systems) - self.n_systems.ravel(),
            self.tau_b.ravel(),
            self.tau_ap.ravel(),
            self.tau_ap_symmetric.ravel(),
        ]
        return pa.table(columns, schema=RANK_CORRELATION)
