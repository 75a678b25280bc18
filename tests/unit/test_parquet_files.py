from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.model import system_rows
from swsdask.model.name_columns import coded
from swsdask.model.parquet_files import (
    _BEGIN,
    _ROW_GROUPS,
    _CompactReader,
    _CompactWriter,
    _footer,
    count_rows,
    decoded_groups,
    decoded_rows,
    encoded,
    joined,
)
from swsdask.model.results import ALIGNMENT, CURVES, SCORES
from swsdask.model.system_rows import Spill, SpilledRows, SystemRows

NAME = st.sampled_from(["a", "b", "ž", 'q"', ""])
ROWS = st.lists(st.tuples(NAME, NAME, st.none() | NAME, NAME, st.floats(allow_nan=False)), max_size=12)


def table(rows: list[tuple[str, str, str | None, str, float]]) -> pa.Table:
    return pa.table([[row[place] for row in rows] for place in range(5)], schema=SCORES)


def whole(files: list[pa.Buffer]) -> pa.Buffer:
    return pa.py_buffer(b"".join(joined(files)))


def read(file: pa.Buffer) -> pa.Table:
    return pq.read_table(pa.BufferReader(file))


@given(st.lists(ROWS, min_size=1, max_size=20))
def test_a_joined_file_has_the_rows_of_all(parts: list[list[tuple[str, str, str | None, str, float]]]) -> None:
    tables = [table(rows) for rows in parts]
    file = whole([encoded(each, SCORES) for each in tables])
    expected = pa.concat_tables(tables)
    assert read(file).equals(expected)
    assert decoded_rows(file, SCORES).cast(SCORES).equals(expected)
    assert count_rows(file) == expected.num_rows
    described = pq.ParquetFile(pa.BufferReader(file)).metadata
    assert described.num_row_groups == (sum(each.num_rows > 0 for each in tables) or 1)
    for number in range(described.num_row_groups if expected.num_rows else 0):
        column = described.row_group(number).column(0)
        assert column.statistics.has_min_max
        assert 4 <= column.dictionary_page_offset < column.data_page_offset < file.size


def test_row_groups_begin_where_their_first_page_does() -> None:
    file = whole([encoded(table([(name, "all", None, "atwv", 0.5)]), SCORES) for name in "abc"])
    groups = _footer(memoryview(file))[0][_ROW_GROUPS][1][1]
    begins = [group[_BEGIN][1] for group in groups]
    described = pq.ParquetFile(pa.BufferReader(file)).metadata
    assert begins == [described.row_group(number).column(0).dictionary_page_offset for number in range(3)]


def test_joining_goes_by_what_is_in_the_files_not_by_how_they_were_joined() -> None:
    parts = [encoded(table([(name, "all", None, "atwv", 0.5)]), SCORES) for name in "abcd"]
    assert whole([whole(parts[:3]), parts[3]]) == whole(parts) == whole([whole(parts[:1]), whole(parts[1:])])


def test_names_are_coded_by_first_appearance() -> None:
    rows = [("s", "c", "q", "m", 1.0), ("s", "all", None, "m", 2.0), ("s", "c", "p", "n", 3.0)]
    plain = table(rows)
    sliced = coded(pa.concat_tables([table([("s", "x", "p", "n", 0.0)]), plain]), SCORES).slice(1)
    assert encoded(sliced, SCORES) == encoded(plain, SCORES)
    found = decoded_rows(encoded(plain, SCORES), SCORES)
    assert decoded_rows(sliced, SCORES).equals(found)
    assert found["query"].chunk(0).dictionary.to_pylist() == ["q", "p"]


FILES = [
    {},
    {"write_page_index": True},
    {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
    {"row_group_size": 3, "write_statistics": False},
    {"store_schema": False, "write_page_checksum": True},
]


@pytest.mark.parametrize("options", FILES)
def test_footers_are_written_as_they_were_read(options: dict[str, object]) -> None:
    """Those of files with many columns and row groups, nested types, and every kind of page."""
    columns = {f"c{number}": pa.array(range(50), pa.int16()) for number in range(20)}
    columns |= {
        "flag": pa.array([None, True] * 25),
        "list": pa.array([[number, None] for number in range(50)], pa.list_(pa.int64())),
        "time": pa.array(range(50), pa.timestamp("us")),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, metadata={"made": "x" * 200}), sink, **options)
    content = sink.getvalue().to_pybytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    written = _CompactWriter()
    written.struct(_CompactReader(footer).struct())
    assert bytes(written.content) == footer
    twice = read(whole([pa.py_buffer(content)] * 2))
    assert twice.equals(pa.concat_tables([pa.table(columns)] * 2).cast(twice.schema))


def test_page_indexes_move_with_their_pages() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": range(10)}), sink, write_page_index=True)
    file = sink.getvalue()
    opened = pq.ParquetFile(pa.BufferReader(whole([file, file])), page_checksum_verification=True)
    for number in range(2):
        assert opened.metadata.row_group(number).column(0).has_column_index
        assert opened.read_row_group(number)["n"].to_pylist() == [*range(10)]


def test_files_that_cannot_be_joined() -> None:
    scores = encoded(SCORES.empty_table(), SCORES)
    with pytest.raises(ValueError, match="several schemas"):
        whole([scores, encoded(CURVES.empty_table(), CURVES)])
    for other in (b"", b"PAR1", b"PAR1" + bytes(20), scores.to_pybytes()[:-1], b"PAR1\xff\xff\xff\x7fPAR1"):
        with pytest.raises(ValueError, match="not a Parquet file"):
            whole([pa.py_buffer(other)])
    content = scores.to_pybytes()
    length = int.from_bytes(content[-8:-4], "little")
    cut = content[: -8 - length] + content[-8 - length : -8][:-1] + (length - 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ValueError, match="cut off"):
        whole([pa.py_buffer(cut)])


def spilled_rows(rows: SystemRows, most: int) -> SystemRows:
    """The same rows, those beyond so many bytes in a file."""
    spill = Spill(most)
    return SystemRows(SCORES, {system: spill.hold(rows.among([system]), SCORES) for system in rows.systems})


@given(ROWS)
def test_rows_of_systems_are_held_together(rows: list[tuple[str, str, str | None, str, float]]) -> None:
    plain = table(rows)
    systems = list(dict.fromkeys(row[0] for row in rows))
    expected = table([row for system in systems for row in rows if row[0] == system])
    held = SystemRows.of(plain, SCORES)
    again = SystemRows(SCORES, held.files)
    spilled = [spilled_rows(held, most) for most in (0, 100)]
    filed = SystemRows.in_file(pa.py_buffer(b"".join(held.parts())), SCORES)
    foreign = pa.BufferOutputStream()
    pq.write_table(plain, foreign)
    for each in (held, again, *spilled, filed, SystemRows.in_file(foreign.getvalue(), SCORES)):
        assert each.systems == systems
        assert each.num_rows == len(rows)
        assert each.table.cast(SCORES).equals(expected)
        assert read(pa.py_buffer(b"".join(each.parts()))).equals(expected)
        for system in (*systems, "nobody"):
            own = each.among([system]).cast(SCORES)
            assert own.equals(expected.filter(pc.equal(expected["system"], system)))
        assert each.among(systems[::-1]).num_rows == len(rows)
        assert each.without("query").cast(SCORES).equals(expected.filter(pc.is_null(expected["query"])))
        assert each.table.schema == coded(plain, SCORES).schema


def test_rows_in_a_file_are_decoded_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    file = whole([encoded(table([(name, "all", None, "atwv", 0.5)]), SCORES) for name in "abc"])
    decoded: list[list[int]] = []

    def decode(file: pa.Buffer, metadata: pq.FileMetaData, groups: list[int], schema: pa.Schema) -> pa.Table:
        decoded.append(groups)
        return decoded_groups(file, metadata, groups, schema)

    monkeypatch.setattr(system_rows, "decoded_groups", decode)
    held = SystemRows.in_file(file, SCORES)
    assert (held.systems, held.num_rows, decoded) == (["a", "b", "c"], 3, [])
    assert held.among(["b"])["system"].to_pylist() == ["b"]
    assert decoded == [[1]]
    assert b"".join(held.parts()) == file
    (sent,) = pickle.loads(pickle.dumps([held._held["c"]]))
    assert sent == encoded(table([("c", "all", None, "atwv", 0.5)]), SCORES)


def test_rows_in_a_file_of_other_columns() -> None:
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"system": ["a"], "x": [1]}), other)
    with pytest.raises((ValueError, KeyError)):
        SystemRows.in_file(other.getvalue(), SCORES)


def test_spilled_rows_travel_and_end_with_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    file = encoded(table([("a", "all", None, "atwv", 0.5)]), SCORES)
    spill = Spill(file.size)
    assert spill.hold(file, SCORES) is file
    spilled = spill.hold(file, SCORES)
    assert isinstance(spilled, SpilledRows)
    assert spilled.read() == file
    assert spill.hold(spilled, SCORES) is spilled
    assert pickle.loads(pickle.dumps(spilled)) == file
    os.ftruncate(spilled.here().file.number, 10)
    with pytest.raises(OSError, match=f"10 bytes of {file.size} that were written"):
        spilled.read()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert spill.hold(file, SCORES) is file
    monkeypatch.setattr(os, "pwrite", lambda *_: 3)
    assert spill.hold(file, SCORES) is file
    monkeypatch.undo()
    assert spill.hold(file, SCORES).read() == file


def test_rows_that_are_sent_by_name_stay_with_who_holds_them(tmp_path: Path) -> None:
    file = encoded(table([("a", "all", None, "atwv", 0.5)]), SCORES)
    sending = Spill(0, str(tmp_path))
    sent = [sending.hold(file, SCORES) for _ in range(2)]
    assert len(list(tmp_path.iterdir())) == 1
    del sending
    arrived = pickle.loads(pickle.dumps(sent))
    lost = pickle.loads(pickle.dumps(sent))
    holding = Spill()
    held = [holding.hold(each, SCORES) for each in arrived]
    assert not list(tmp_path.iterdir())
    for each in held:
        assert each.read() == file
        assert pickle.loads(pickle.dumps(each)) == file
    assert [each.begin for each in held] == [0, file.size]
    with pytest.raises(FileNotFoundError):
        holding.hold(lost[0], SCORES)


def test_other_tables_are_written_in_the_same_form() -> None:
    row = ("a", "q1", "d", 1, None, 1.0, 0.4, 0.9, 2.5, "YES", "hit")
    aligned = pa.table([[value] for value in row], schema=ALIGNMENT)
    assert read(encoded(aligned, ALIGNMENT)).equals(aligned)
