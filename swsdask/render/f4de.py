"""Tables as text and CSV, and the alignment as CSV, of F4DE's two scorers KWSEval and STDEval.

Both print tables as text in columns with nested headings, and as CSV. A column is named by its headings from the
outermost inwards, a row likewise. A column is four characters wider than its widest entry; a heading that is wider than
its columns widens them evenly, the last one by the remainder. Entries are right-aligned, headings centred, row names
left-aligned. A row name is printed if it or an outer name is new.

Both write the alignment as CSV files. A row is a trial and the occurrence that it is mapped to, or only one of them.
Rows are in the order of the query list; the tools use the order of a hash. Where a tool prints the text of an input
file, the alignment may have this text in extra columns (`formats.runs.read`). Otherwise a number has as many decimals
as the longest of its column, at most `MOST_DECIMALS`: this is the text if a program wrote all of them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.tables import Row

Aligned = Callable[[str], pa.Table]
"""The alignment of a system."""

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
        """Return the table as text, with the names of its rows if they are `named`."""
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
        """Return the table as CSV: cells are in quotes, cells that were not set are empty."""
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
        """Yield the headings of every level, centred."""
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
    """Yield the lines of KWSEval's alignment.csv (-c) of one system, some at a time.

    `language` is that of the query list; `texts` has the searched text by query id.
    """
    yield _COLUMNS
    for lines in _lines(alignment, language, texts, end_decimals=4):
        yield "".join(f"{line},{_KWSEVAL[row['outcome']]}\n" for row, line in lines)


def stdeval_alignment(
    alignment: pa.Table, language: str, texts: Mapping[str, str], types: Mapping[tuple[str, int], str]
) -> Iterator[str]:
    """Yield the lines of STDEval's CSV report (-C) of one system, some at a time; `types` are those of source.

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
