"""Lines that compiled code reads give what the same lines give without it, and so do those that it leaves."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.formats import text
from swsdask.formats.runs.builder import OrdinaryLines
from swsdask.formats.runs.gathering import join_pieces
from swsdask.formats.runs.table import choose_columns, read_text_table
from swsdask.formats.text import Lines
from swsdask.model.errors import Problems

COLUMNS = {
    "query": ["q1", "q2", "q10", "q", "\u0436", " q1", "q.2"],
    "document": ["d1", "audio/d1.wav", "d", "d12.SPH", "\u00e9t\u00e9"],
    "start": ["0", "1.5", "12.34567", "+3", "4e1", "214748.3647", ".25", "7."],
    "duration": ["0.1", "0", "2.00005", "1e-1"],
    "end": ["214748.3647", "300000e-1", "214748"],
    "score": ["0.5", "-0.0", "-1.25e-3", "12345678901234567", "0.12345678901234567", "1e22", "00000000000000000000.5"],
    "system": ["a", "b", "a"],
    "channel": ["1", "2", "127", "007"],
    "decision": ["YES", "NO"],
    "comment": ["", "x y", "1"],
}
ODD = {
    "query": ["", '"q1"', "a/b"],
    "document": ["", "a\x01b"],
    "start": ["-1", "214748.3648", "", "x", "1.5s", "1" * 70],
    "duration": ["-0.1", "214748.3647", " 1"],
    "end": ["0"],
    "score": ["inf", "nan", "", "1e-300", "1.2345678901234567890123", "0x1"],
    "channel": ["128", "-1", "", "1.0"],
    "decision": ["yes", ""],
}
ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """A delimiter, columns, and lines of which a few are odd."""
    delimiter = draw(st.sampled_from("\t,"))
    length = draw(st.sampled_from(["duration", "end"]))
    optional = draw(st.lists(st.sampled_from(["system", "channel", "decision", "comment"]), unique=True))
    names = draw(st.permutations(["query", "document", "start", length, "score", *optional]))
    lines = []
    for _ in range(draw(st.integers(0, 12))):
        values = [draw(st.sampled_from(COLUMNS[name])) for name in names]
        if draw(st.integers(0, 19)) == 0:
            place = draw(st.integers(0, len(names) - 1))
            values[place] = draw(st.sampled_from(ODD.get(names[place], [""])))
        if draw(st.integers(0, 39)) == 0:
            values = draw(st.sampled_from([values[:-1], [*values, "more"], []]))
        lines.append(delimiter.join(values) + draw(ENDS))
    return delimiter, names, lines


@given(tables(), st.integers(1, 6), st.integers(10, 500))
def test_compiled_lines_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[str, list[str], list[str]], rows_per_piece: int, size: int
) -> None:
    """Blocks of `size` bytes are read in turn by either code, so that the one goes on where the other ended."""
    delimiter, names, lines = table
    file = tmp_path_factory.mktemp("run") / "a.tsv"
    file.write_bytes((delimiter.join(names) + "\n" + "".join(lines)).encode())
    with patch.object(text, "read_blocks", lambda source: iter(lambda: source.read(size), b"")):
        with patch.object(OrdinaryLines, "read", lambda *_: None):
            expected = pieces(file, rows_per_piece)
        assert pieces(file, rows_per_piece) == expected


def pieces(file: Path, rows_per_piece: int) -> tuple[list[object], list[object], int]:
    """All that is read, to the bit, and all that is wrong."""
    problems = Problems()
    found = []
    for piece in read_text_table(str(file), problems, rows_per_piece, None):
        values = [getattr(piece, field.name) for field in fields(piece)]
        found.append([(each.dtype.str, each.tobytes()) if isinstance(each, np.ndarray) else each for each in values])
    return found, [astuple(problem) for problem in problems], problems.total


LINE = {"query": "q1", "document": "d1", "start": "1", "duration": "0", "score": "3", "channel": "1", "decision": "NO"}


def ordinary(lines: list[str]) -> bool:
    reader = OrdinaryLines("\t", len(LINE), choose_columns(list(LINE))[0])
    return reader.read(Lines(1, "".join(lines).encode())) is not None


@pytest.mark.parametrize("name", LINE)
def test_only_ordinary_lines_are_compiled(name: str) -> None:
    """The test above would say nothing if all were left to other code."""
    for value in COLUMNS[name]:
        assert ordinary(["\t".join({**LINE, name: value}.values()) + "\n"] * 3), value
    for value in ODD[name]:
        if (name, value) not in {("decision", ""), ("query", "a/b"), ("document", "a\x01b")}:
            assert not ordinary(["\t".join({**LINE, name: value}.values()) + "\n"] * 3), value


def test_any_number_of_ids_has_room(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    rows = [f"q{n % 5000}\t{'d' * (n % 90)}{n}\t0\t1\t{n}\n" for n in range(9000)]
    file.write_text("query\tdocument\tstart\tduration\tscore\n" + "".join(rows))
    piece = join_pieces(read_text_table(str(file), Problems(), 4000, None))
    assert [piece.queries[code] for code in piece.query] == [f"q{n % 5000}" for n in range(9000)]
    assert [piece.documents[code] for code in piece.document] == [f"{'d' * (n % 90)}{n}" for n in range(9000)]
    assert piece.score.tolist() == list(range(9000))


def test_blocks_that_are_not_ordinary_leave_no_ids_behind() -> None:
    """Left in the dictionary, those of three such blocks would fill it, and looking for a new id would never end."""
    reader = OrdinaryLines("\t", 2, {"document": 0, "score": 1})
    rows = [[f"{'d' * (n % 7)}{n}\t{n}\n" for n in range(begin, begin + 1500)] for begin in range(0, 6000, 1500)]
    assert reader.read(Lines(1, "".join(rows[0][:100]).encode())) is not None
    for block in rows[1:]:
        assert reader.read(Lines(1, "".join([*block, "x\t1e-30\n"]).encode())) is None
    found = reader.read(Lines(1, "".join(rows[0][50:]).encode()))
    assert found is not None
    names = [row.partition("\t")[0] for row in rows[0]]
    assert found.document.ids == names
    assert found.document.codes.tolist() == list(range(50, 1500))


@given(st.lists(st.text("ab", min_size=1, max_size=26), min_size=1), st.text("ab", max_size=26))
def test_long_ids_are_compared_to_the_end(tmp_path_factory: pytest.TempPathFactory, ids: list[str], begin: str) -> None:
    """Ids are looked at by eight bytes at a time."""
    file = tmp_path_factory.mktemp("run") / "a.tsv"
    names = [begin + name for name in ids]
    file.write_text("query\tdocument\tscore\n" + "".join(f"{name}\tx{name}\t1\n" for name in names))
    piece = join_pieces(read_text_table(str(file), Problems(), 1000, None))
    assert [piece.queries[code] for code in piece.query] == names
    assert [piece.documents[code] for code in piece.document] == [f"x{name}" for name in names]
