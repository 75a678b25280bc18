"""A table that is rewritten keeps every value but the new ones, whichever way its lines are rewritten."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.formats.runs.rewrite import NewValues, Rewriting, in_system, quoted, rewrite_table
from swsdask.model.trials import F64

COLUMNS = ["query", "document", "start", "duration", "score", "remark"]
values = st.text(st.sampled_from("a1é ,\t'"), max_size=4)
scores = st.floats(allow_nan=False, allow_infinity=False).map(repr)
rows = st.tuples(values.map(lambda text: f"q{text}"), values, st.just("1.50"), st.just(" 2"), scores, values)


def doubled(scores: F64) -> dict[str, pa.StringArray]:
    """New scores and decisions."""
    with np.errstate(over="ignore"):
        new = pa.array(2.0 * scores).cast(pa.string())
    return {"score": new, "decision": pa.array(np.where(scores > 0, "YES", "NO").tolist(), pa.string())}


def lines_of(table: list[tuple[str, ...]], delimiter: str) -> str:
    return "".join(delimiter.join(quoted(value, delimiter) for value in row) + "\n" for row in table)


@given(st.lists(rows, max_size=5), st.sampled_from("\t,"), st.sampled_from("\t,"), st.booleans(), st.booleans())
def test_only_new_values_differ(
    table: list[tuple[str, ...]], delimiter: str, to: str, blank_lines: bool, carriage_returns: bool
) -> None:
    text = lines_of([tuple(COLUMNS), *table], delimiter)
    text = text.replace("\n", "\n\n") if blank_lines else text
    text = text.replace("\n", "\r\n") if carriage_returns else text
    ending = {"\t": "tsv", ",": "csv"}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, f"a.{ending[delimiter]}"), Path(folder, f"b.{ending[to]}")
        source.write_bytes(text.encode())
        rewrite_table(str(source), str(target), doubled)
        with target.open(encoding="utf-8", newline="") as file:
            head, *found = csv.reader(file, delimiter=to)
        assert target.read_bytes().endswith(b"\r\n" if carriage_returns else b"\n")
    assert head == [*COLUMNS, "decision"]
    assert [(*row[:4], row[5]) for row in found] == [(*row[:4], row[5]) for row in table]
    assert [float(row[4]) for row in found] == [2.0 * float(row[4]) for row in table]
    assert [row[6] for row in found] == ["YES" if float(row[4]) > 0 else "NO" for row in table]


@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from("\t,"))
def test_columns_at_a_time_give_the_lines_of_line_by_line(table: list[tuple[str, ...]], delimiter: str) -> None:
    data = lines_of(table, delimiter).encode()
    found = rewriting(delimiter, delimiter, doubled).in_columns(data)
    if b'"' in data:
        assert found is None
    else:
        assert found == rewriting(delimiter, delimiter, doubled).line_by_line(data)


@pytest.mark.parametrize(
    "line",
    ['q,d,1,"2",0.5,x\n', "q,d,1,2,0.5,x\r\n", "q,d,1,2,0.5,x\n   \n", ",,,,,\n", "\n\n", "q,d,1,2,1_0,x\n", ""],
)
def test_lines_that_are_not_ordinary_are_rewritten_line_by_line(line: str) -> None:
    assert rewriting(",", ",", doubled).in_columns(line.encode()) is None


def test_new_values_are_quoted_where_they_must_be() -> None:
    named = rewriting(",", ",", lambda scores: in_system('a,"b', scores))
    assert named.in_columns(b"q,d,1,2,0.5,x\n") is None
    assert named.line_by_line(b"q,d,1,2,0.5,x\n") == b'q,d,1,2,0.5,x,"a,""b"\n'
    to_commas = rewriting("\t", ",", doubled)
    assert to_commas.in_columns(b"q\td,e\t1\t2\t0.5\tx\n") is None
    assert to_commas.in_columns(b"q\td\t1\t2\t0.5\tx\n") == b"q,d,1,2,1,x,YES\n"


def rewriting(delimiter: str, to: str, new_values: NewValues) -> Rewriting:
    """Rewriting of tables with `COLUMNS`, where the first new column that they lack is added."""
    added = next(name for name in new_values(np.zeros(0)) if name not in COLUMNS)
    places = {name: place for place, name in enumerate([*COLUMNS, added])}
    return Rewriting(delimiter, to, len(COLUMNS), 1, places, new_values, harmless=False)
