"""Tables for users: DataFrames, Arrow and its PyCapsule interface; Markdown, LaTeX and HTML for papers.

Tables in markup have their heading in the first row and names in the first column.

Tables for programs: strictly valid JSON, and CSV.

JSON has no numbers for NaN and infinities: NaN is null, infinities are the strings "inf" and "-inf". In CSV they are
empty, `inf` and `-inf`, and semicolons separate the items of a list. Numbers have the shortest digits that give the
same float back. CSV for spreadsheets has an apostrophe before text that would be a formula.
"""

from __future__ import annotations

import csv
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.model.errors import SettingsError
from swsdask.model.name_columns import decoded
from swsdask.model.safe_text import one_line, visible, without_formula


class LateImport:
    """A proxy of the module `name`, which is imported when an attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")


Row = dict[str, Any]
"""A row of a table: its values by column."""


def number_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return the NumPy type of signed integers and floats. Arrow's own conversion imports pandas in some versions."""
    return np.dtype(f"{'f' if pa.types.is_floating(kind) else 'i'}{kind.bit_width // 8}")


def read_parquet(content: bytes | pa.Buffer) -> pa.Table:
    """Return the table in the bytes of a Parquet file.

    Unlike `pyarrow.parquet.read_table` it starts no thread: a process that ends soon afterwards is sometimes aborted,
    and a process that cannot start threads waits for them forever.
    """
    return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read(use_threads=False)


class Late(Protocol):
    """A table that is made on access."""

    @property
    def table(self) -> pa.Table:
        """The table."""
        ...


class Tables(ABC):
    """Named tables. The attribute of that name is the table as a DataFrame; `to_arrow` returns it in Arrow.

    Libraries with the Arrow PyCapsule interface read the object as its first table: ``polars.DataFrame(result)``.
    """

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, pa.Table | Late | None]:
        """The tables as they are held, by their names; None for one that was not requested."""

    def to_arrow(self, table: str | None = None) -> pa.Table:
        """One of the tables in Arrow, with strings for names.

        Parameters
        ----------
        table : str, optional
            The name of the attribute that has the table as a DataFrame. Default: the first, `scores` of a result.

        Returns
        -------
        pyarrow.Table
            The rows, with the columns of the DataFrame.

        Raises
        ------
        SettingsError
            There is no such table.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> result = sws.score("demo/archive", "mtwv", runs="calibrated")
        >>> result.to_arrow("curves").column_names
        ['system', 'condition', 'curve', 'threshold', 'x', 'y']
        """
        held = {name: rows for name, rows in self.tables.items() if rows is not None}
        name = next(iter(held)) if table is None else table
        if name not in held:
            raise SettingsError(f"there is no table {name!r} here. There are: {', '.join(held)}.")
        rows = held[name]
        return decoded(rows if isinstance(rows, pa.Table) else rows.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _frame(self, name: str) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow(name).to_pandas()
        return frame


Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Markup:
    """A markup language: how it writes any text (`plain`), how it emphasises, and a table of texts written in this way.

    Text is one line, with invisible control characters escaped: ids and notes are untrusted.
    """

    plain: Callable[[str], str]
    bold: Callable[[str], str]
    table: Callable[[Rows, str], str]


_LATEX = str.maketrans(
    {each: "\\" + each for each in "&%$#_{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)

_SIGNS = re.compile(r"[\\`*~<&|\[]|(?<![^\W_])_|_(?![^\W_])")
"""The special characters of Markdown; a _ between letters is not special."""


def _in_markdown(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", one_line(visible(text)))


def _in_latex(text: str) -> str:
    """Return the text for a table; a [ at its beginning would be an argument of the preceding end of row."""
    return re.sub(r"^\[", "{[}", one_line(visible(text)).translate(_LATEX))


def _in_html(text: str) -> str:
    return escape(one_line(visible(text)))


def _markdown_table(rows: Rows, caption: str) -> str:
    heading, *lines = rows
    rule = ["---", *["---:"] * (len(heading) - 1)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in (heading, rule, *lines))
    return f"**{caption}**\n\n{table}" if caption else table


def _latex_table(rows: Rows, caption: str) -> str:
    heading, *lines = (" & ".join(row) + r" \\" for row in rows)
    begin = [rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", r"\toprule", heading, r"\midrule"]
    table = "\n".join([*begin, *lines, r"\bottomrule", r"\end{tabular}"])
    return f"% {caption}\n{table}" if caption else table


def _html_table(rows: Rows, caption: str) -> str:
    heading, *lines = rows
    cells = ["".join(f"<th>{text}</th>" for text in heading)]
    cells += [f"<th>{line[0]}</th>" + "".join(f"<td>{text}</td>" for text in line[1:]) for line in lines]
    titled = f"<caption>{caption}</caption>" if caption else ""
    return f"<table>{titled}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


MARKDOWN = Markup(_in_markdown, "**{}**".format, _markdown_table)

LATEX = Markup(_in_latex, r"\textbf{{{}}}".format, _latex_table)
"""The table needs the package booktabs."""

HTML = Markup(_in_html, "<b>{}</b>".format, _html_table)


Records = Sequence[Mapping[str, object]]


def as_json(value: object, indent: int | None = None) -> str:
    """Return a value that consists of lists, mappings, text and numbers, as JSON.

    Examples
    --------
    >>> as_json({"low": float("-inf"), "value": 0.5, "high": float("nan")})
    '{"low": "-inf", "value": 0.5, "high": null}'
    """
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent)


def records_as(form: str, records: Records) -> str:
    """Records with equal keys as "json", a list of objects, or as "csv" or "spreadsheet": a header and a line for each.

    Examples
    --------
    >>> print(records_as("csv", [{"system": "a", "value": 0.25}, {"system": "b", "value": float("nan")}]))
    system,value
    a,0.25
    b,
    """
    if form == "json":
        return as_json(records, indent=1)
    if not records:
        return ""
    text = StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        cells = {name: _in_csv(value) for name, value in record.items()}
        if form == "spreadsheet":
            cells = {name: without_formula(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        writer.writerow(cells)
    return text.getvalue().rstrip("\n")


def tables_as(form: str, tables: Mapping[str, pa.Table], of_csv: str) -> str:
    """Tables by name as "json" (`tables_as_json`), or one of them as CSV (`records_as`)."""
    if form == "json":
        return tables_as_json(tables)
    return records_as(form, tables[of_csv].to_pylist()) + "\n"


def tables_as_json(tables: Mapping[str, pa.Table], heading: Mapping[str, object] | None = None) -> str:
    """One object with the values of a heading, then a list of records for each table; a line for each record."""
    parts = [f" {as_json(name)}: {as_json(value)}" for name, value in (heading or {}).items()]
    for name, table in tables.items():
        lines = ",".join(f"\n  {record}" for record in _json_records(table))
        parts.append(f" {as_json(name)}: [{lines}\n ]")
    text = ",\n".join(parts)
    return f"{{\n{text}\n}}\n"


def _json_records(table: pa.Table) -> Iterator[str]:
    """Yield each row as an object in JSON. Only columns with numbers that JSON lacks are converted."""
    columns = []
    for column in table.columns:
        values = column.to_pylist()
        floats = pa.types.is_floating(column.type)
        columns.append(_finite(values) if floats and not pc.all(pc.is_finite(column)).as_py() else values)
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for row in zip(*columns, strict=True):
        yield encode(dict(zip(table.column_names, row, strict=True)))


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value


def _in_csv(value: object) -> object:
    if isinstance(value, list):
        return ";".join(map(str, value))
    return "" if isinstance(value, float) and math.isnan(value) else value
