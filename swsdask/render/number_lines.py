"""All numbers of a result as lines of JSON or CSV, some at a time, so that memory never holds the whole text."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from io import StringIO

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.results import SCORES
from swsdask.model.system_rows import SystemRows
from swsdask.model.tables import as_json

_AT_ONCE = 1 << 18
"""The number of lines that memory holds. Most systems have fewer numbers."""


def json_parts(rows: SystemRows) -> Iterator[str]:
    """Yield the parts of a JSON list of {system, condition, query, measure, value}, one number per line.

    `query` is null for a number over all queries. `value` is null where a number is not defined; infinities are the
    strings "inf" and "-inf". Numbers have the shortest digits that give the same float back.
    """
    named = [f'"{name}": ' for name in SCORES.names]
    joints = ("{" + named[0], *(f", {each}" for each in named[1:]), "}")
    before = "[\n"
    for lines in _lines(rows, joints, as_json, {"nan": "null", "inf": '"inf"', "-inf": '"-inf"'}):
        yield before
        yield ",\n".join(lines)
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[\n]\n"


def csv_parts(rows: SystemRows, safe: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the parts of a CSV with a line for each number, in the digits of `json_parts`, and names made `safe`.

    Undefined numbers, and the query of a number over all queries, are empty.
    """

    def cell(name: str | None) -> str:
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerow([safe(name) if name else "", ""])
        return text.getvalue().removesuffix(",\n")

    yield ",".join(SCORES.names)
    for lines in _lines(rows, ("", ",", ",", ",", ",", ""), cell, {"nan": ""}):
        yield "\n"
        yield "\n".join(lines)
    yield "\n"


def _lines(
    rows: SystemRows, joints: Sequence[str], text: Callable[[str | None], str], odd: Mapping[str, str]
) -> Iterator[list[str]]:
    """Yield lines of each system that has any: cells between `joints`, names as `text`, numbers by `repr` or `odd`.

    Nearly all systems have the same conditions, queries and measures row by row. These texts are joined once.
    """
    text = cache(text)
    columns: list[pa.ChunkedArray] = []
    names: list[str] = []
    for system, own in _slices(rows):
        before, columns = columns, [own[name] for name in SCORES.names[1:-1]]
        if not before or any(not new.equals(old) for new, old in zip(columns, before, strict=True)):
            _, first, second, third, last, _ = joints
            cells = (_texts(column, text) for column in columns)
            names = [f"{first}{c}{second}{q}{third}{m}{last}" for c, q, m in zip(*cells, strict=True)]
        begin, end = f"{joints[0]}{text(system)}", joints[-1]
        numbers = map(repr, own["value"].to_pylist())
        yield [f"{begin}{name}{odd.get(number, number)}{end}" for name, number in zip(names, numbers, strict=True)]


def _slices(rows: SystemRows) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each system in slices of at most `_AT_ONCE`."""
    for system in rows.systems:
        own = rows.among([system])
        for first in range(0, own.num_rows, _AT_ONCE):
            yield system, own.slice(first, _AT_ONCE)


def _texts(column: pa.ChunkedArray, text: Callable[[str | None], str]) -> list[str]:
    """Return the text of every name in a column."""
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    known = [text(name) for name in (*encoded.dictionary.to_pylist(), None)]
    return [known[code] for code in pc.fill_null(encoded.indices, len(known) - 1).to_pylist()]
