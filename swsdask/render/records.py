"""Tables for programs: JSON that every reader takes, and CSV.

JSON has no numbers for NaN and infinities: NaN is null, infinities are the strings "inf" and "-inf". In CSV they are
empty, `inf` and `-inf`, and semicolons part what is in a list. Numbers have the shortest digits that give the same
float back. For spreadsheets CSV has an apostrophe before text that would be a formula.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from io import StringIO

import pyarrow as pa

from swsdask.model.errors import without_formula

Records = Sequence[Mapping[str, object]]


def as_json(value: object, indent: int | None = None) -> str:
    """A value of lists, mappings, text and numbers as JSON.

    Examples
    --------
    >>> as_json({"low": float("-inf"), "value": 0.5, "high": float("nan")})
    '{"low": "-inf", "value": 0.5, "high": null}'
    """
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent)


def records_as(form: str, records: Records) -> str:
    """Records with equal keys as "json", a list of objects, or "csv" or "spreadsheet": names, and a line for each.

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
    """Tables by name as "json", one object with a list of records for each, or one of them as CSV (`records_as`)."""
    if form == "json":
        return as_json({name: table.to_pylist() for name, table in tables.items()}, indent=1) + "\n"
    return records_as(form, tables[of_csv].to_pylist()) + "\n"


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
